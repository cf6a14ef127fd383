/** `node bin/launch.cjs test/console/screenshots.ts FOLDER`: a picture of every page at two widths, light and dark, over the sandbox. */
import { mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { startConsole } from './browser.ts';

const folder = resolve(process.argv[2] ?? 'screenshots');
mkdirSync(folder, { recursive: true });
const { gateway, visit, stop } = await startConsole();

const manage = async (method: string, path: string, body: object) => {
  const headers = { authorization: `Bearer ${gateway.management_key}`, 'content-type': 'application/json' };
  const answer = await fetch(`${gateway.base_url}${path}`, { method, headers, body: JSON.stringify(body) });
  return (await answer.json()) as { data: { id: string; hash: string }; key: string };
};

/** A few keys, workspaces and calls, so that pages have something to show. */
async function fill(): Promise<void> {
  const budgets = [
    ['laptop of Ada', 5, 'daily'],
    ['nightly evaluation', 0.0002, 'monthly'],
    ['support assistant, production', 200, 'weekly'],
    ['experiments', null, null],
  ] as const;
  for (const [name, limit, reset] of budgets) {
    const { key } = await manage('POST', '/keys', { name, limit, limit_reset: reset });
    for (const model of ['sandbox/story', 'sandbox/echo', 'sandbox/think', 'sandbox/fallback']) {
      const body = {
        model,
        messages: [{ role: 'user', content: 'Tell me a story of a lighthouse.' }],
        max_tokens: 300,
      };
      await gateway
        .call('POST', '/chat/completions', body, { authorization: `Bearer ${key}` })
        .then((one) => one.text());
    }
  }
  const { data } = await manage('POST', '/workspaces', {
    name: 'Research',
    slug: 'research',
    description: 'Papers and experiments.',
  });
  await manage('PUT', `/workspaces/${data.id}/budgets/monthly`, { limit_usd: 250 });
  await manage('PATCH', `/keys/${gateway.key_hash}`, { name: 'old laptop', disabled: true });
}
await fill();

for (const colorScheme of ['light', 'dark'] as const) {
  for (const width of [1_440, 360]) {
    const { page, faults } = await visit({ colorScheme, viewport: { width, height: width === 360 ? 740 : 900 } });
    const shoot = async (name: string) => {
      await page.waitForLoadState('networkidle');
      const overflow = await page.evaluate('document.documentElement.scrollWidth - innerWidth');
      if (Number(overflow) > 0) process.stdout.write(`${name} at ${width}: ${overflow} px too wide\n`);
      await page.screenshot({ path: join(folder, `${name}-${width}-${colorScheme}.png`), fullPage: true });
    };
    const open = (path: string) => page.goto(`${gateway.url}/${path}`);
    await shoot('overview');
    for (const path of ['usage', 'keys', 'models', 'workspaces', 'audit', 'budgets', 'guardrails', 'routing']) {
      await open(path);
      await shoot(path);
    }
    await open('models?id=sandbox%2Fstory');
    await shoot('model');
    await page.evaluate("document.querySelector('main h1').focus()");
    await page.keyboard.press('/');
    await page.keyboard.type('story');
    await page.waitForTimeout(600);
    await shoot('palette');
    await open('keys?new=1');
    await shoot('key-form');
    await page.getByLabel('Name').fill('picture');
    await page.getByRole('button', { name: 'Create key' }).last().click();
    await page.getByText('Copy the key now').waitFor();
    await shoot('key-secret');
    await open('playground?models=sandbox%2Fstory,sandbox%2Fthink');
    await page.getByRole('button', { name: 'Make a $1 key' }).click();
    await page.getByText('expires in an hour').waitFor();
    await page.getByLabel('Prompt', { exact: true }).fill('Tell me a story of a lighthouse.');
    await page.getByRole('button', { name: /^Send/ }).click();
    await page.locator('.facts').nth(1).waitFor();
    await shoot('playground');
    await open('nothing-here');
    for (const fault of faults.filter((one) => !one.includes('404'))) process.stdout.write(`fault: ${fault}\n`);
    await page.context().close();
  }
}
await stop();
process.exit(0);
