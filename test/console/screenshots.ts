/** `node bin/launch.cjs test/console/screenshots.ts FOLDER [demo]`: pictures of every page, dialog and menu at two widths, light and dark, over the sandbox or the demo. */
import { mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { type Browser, chromium, type Page } from 'playwright-core';
import { BROWSER, startConsole } from './browser.ts';
import { startDemo } from './demo.ts';

const folder = resolve(process.argv[2] ?? 'screenshots');
mkdirSync(folder, { recursive: true });

interface Source {
  origin: string;
  browser: Browser;
  /** The cookies of a signed-in browser. */
  state: Awaited<ReturnType<ReturnType<Page['context']>['storageState']>>;
  model: string;
  stop(): Promise<void>;
}

async function overDemo(): Promise<Source> {
  const demo = await startDemo();
  const browser = await chromium.launch({
    ...(BROWSER === undefined ? {} : { executablePath: BROWSER }),
    args: ['--no-sandbox', '--disable-gpu'],
  });
  const page = await browser.newPage();
  await page.goto(demo.link);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('heading', { name: 'Overview' }).waitFor();
  const stop = async () => {
    await browser.close();
    await demo.stop();
  };
  const state = await page.context().storageState();
  return { origin: new URL(demo.link).origin, browser, state, model: 'aurora/large-3', stop };
}

/** A gateway with the sandbox, a few keys, workspaces and calls, so that pages have something to show. */
async function overSandbox(): Promise<Source> {
  const { gateway, browser, visit, stop } = await startConsole();
  const manage = async (method: string, path: string, body: object) => {
    const headers = { authorization: `Bearer ${gateway.management_key}`, 'content-type': 'application/json' };
    const answer = await fetch(`${gateway.base_url}${path}`, { method, headers, body: JSON.stringify(body) });
    return (await answer.json()) as { data: { id: string; hash: string }; key: string };
  };
  const budgets = [
    ['laptop of Ada', 5, 'daily'],
    ['nightly evaluation', 0.0002, 'monthly'],
    ['support assistant, production', 200, 'weekly'],
    ['experiments', null, null],
  ] as const;
  for (const [name, limit, reset] of budgets) {
    const { key } = await manage('POST', '/keys', { name, limit, limit_reset: reset });
    for (const model of ['sandbox/story', 'sandbox/echo', 'sandbox/think', 'sandbox/fallback']) {
      const messages = [{ role: 'user', content: 'Tell me a story of a lighthouse.' }];
      const body = { model, messages, max_tokens: 300 };
      const answer = await gateway.call('POST', '/chat/completions', body, { authorization: `Bearer ${key}` });
      await answer.text();
    }
  }
  const research = { name: 'Research', slug: 'research', description: 'Papers and experiments.' };
  const { data } = await manage('POST', '/workspaces', research);
  await manage('PUT', `/workspaces/${data.id}/budgets/monthly`, { limit_usd: 250 });
  await manage('PATCH', `/keys/${gateway.key_hash}`, { name: 'old laptop', disabled: true });
  const { page } = await visit();
  return { origin: gateway.url, browser, state: await page.context().storageState(), model: 'sandbox/story', stop };
}

type Step = (page: Page, width: number) => Promise<unknown>;
const press =
  (name: string | RegExp): Step =>
  (page) =>
    page.locator('main, dialog[open]').getByRole('button', { name }).last().click();
const firstRow: Step = (page) => page.locator('main tbody th a').first().click();

/** Each view: its name, its address, and what a person does there before the picture. */
const VIEWS = (model: string): [name: string, path: string, ...steps: Step[]][] => [
  ['overview', ''],
  ['logs', 'logs'],
  ['logs-filters', 'logs', (page) => page.getByText('More filters').click()],
  ['logs-columns', 'logs', (page) => page.locator('.columns > summary').click()],
  ['logs-none', 'logs?model=nobody%2Fnothing'],
  ['call', 'logs', (page) => page.locator('main tbody th button').first().click()],
  ['call-problem', 'logs?result=problems', (page) => page.locator('main tbody th button').first().click()],
  ['sessions', 'sessions'],
  ['session', 'sessions?id=a-conversation'],
  ['usage', 'usage'],
  ['usage-compared', 'usage?compare=on&by2=api_key_id&range=7d'],
  ['usage-latency', 'usage?metric=p95_latency&range=7d'],
  ['usage-none', 'usage?model=nobody%2Fnothing'],
  ['keys', 'keys'],
  ['key-form', 'keys?new=1'],
  ['key-change', 'keys', press(/^Change /)],
  ['key-delete', 'keys', press(/^Delete /)],
  ['key', 'keys', firstRow],
  ['key-rotate', 'keys', firstRow, press('Rotate')],
  ['models', 'models'],
  ['models-none', 'models?q=nothing-like-this'],
  ['model', `models?id=${encodeURIComponent(model)}`],
  ['model-unknown', 'models?id=nobody%2Fnothing'],
  [
    'comparison',
    'models',
    (page) => page.locator('main tbody input').first().check(),
    (page) => page.locator('main tbody input').nth(1).check(),
    (page) => page.getByRole('link', { name: /^Compare/ }).click(),
  ],
  ['playground-empty', 'playground'],
  [
    'playground',
    `playground?models=${encodeURIComponent(model)}`,
    press('Make a $1 key'),
    (page) => page.getByText('expires in an hour').waitFor(),
    (page) => page.getByLabel('Prompt', { exact: true }).fill('Tell me a story of a lighthouse.'),
    press(/^Send/),
    (page) => page.locator('.facts').first().waitFor(),
  ],
  ['workspaces', 'workspaces'],
  ['workspace', 'workspaces', (page) => page.locator('.choices a').last().click()],
  ['workspace-form', 'workspaces', press('Create workspace')],
  ['budgets', 'budgets'],
  ['guardrails', 'guardrails'],
  ['guardrail-form', 'guardrails?new=1'],
  ['routing', 'routing'],
  ['credentials', 'credentials'],
  ['credentials-all', 'credentials?all=1'],
  ['credential-form', 'credentials', press('Add a credential')],
  ['audit', 'audit'],
  ['audit-open', 'audit', (page) => page.locator('.events summary').first().click()],
  ['ledger', 'ledger'],
  ['ledger-verified', 'ledger', press('Verify the ledger'), (page) => page.getByText('all sums agree').waitFor()],
  ['system', 'system'],
  ['system-all', 'system?source=all'],
  ['palette', '', (page) => page.keyboard.press('Control+k')],
  ['account', '', (page) => page.locator('.person').click()],
  ['menu', '', async (page, width) => width < 800 && page.getByRole('button', { name: 'Menu' }).click()],
];

const source = await (process.argv[3] === 'demo' ? overDemo() : overSandbox());
const only = process.argv[4]?.split(',');
const views = VIEWS(source.model).filter(([name]) => only === undefined || only.includes(name));
for (const colorScheme of ['light', 'dark'] as const) {
  for (const width of [1_440, 360]) {
    const context = await source.browser.newContext({
      colorScheme,
      viewport: { width, height: width === 360 ? 740 : 900 },
      storageState: source.state,
    });
    context.setDefaultTimeout(20_000);
    const page = await context.newPage();
    page.on('console', (message) => {
      if (['error', 'warning'].includes(message.type())) process.stdout.write(`fault: ${message.text()}\n`);
    });
    for (const [name, path, ...steps] of views) {
      try {
        await page.goto(`${source.origin}/${path}`);
        await page.locator('main h1').waitFor();
        await page.waitForLoadState('networkidle');
        for (const step of steps) await step(page, width);
        await page.waitForLoadState('networkidle');
        await page.locator('.loading').first().waitFor({ state: 'detached' });
      } catch (error) {
        process.stdout.write(`${name} at ${width}: ${String(error).split('\n')[0]}\n`);
      }
      const overflow = await page.evaluate('document.documentElement.scrollWidth - innerWidth');
      if (Number(overflow) > 0) process.stdout.write(`${name} at ${width}: ${overflow} px too wide\n`);
      const hasDialog = (await page.locator('dialog[open], [popover]:popover-open').count()) > 0;
      await page.screenshot({ path: join(folder, `${name}-${width}-${colorScheme}.png`), fullPage: !hasDialog });
    }
    await context.close();
  }
}
await source.stop();
process.exit(0);
