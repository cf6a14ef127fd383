import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { BROWSER, type ConsoleBrowser, startConsole } from './browser.ts';

const DAY_MS = 86_400_000;

/** Tasks of a new user, done as a person does them: from the overview, by the texts of the pages. */
describe.skipIf(BROWSER === undefined)('tasks of a new user', () => {
  let open: ConsoleBrowser;
  let now = Date.now();
  const manage = async (method: string, path: string, body?: object) => {
    const answer = await fetch(`${open.gateway.base_url}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${open.gateway.management_key}`,
        ...(body && { 'content-type': 'application/json' }),
      },
      ...(body && { body: JSON.stringify(body) }),
    });
    return (await answer.json()) as { data: { id: string; hash: string }; key: string };
  };

  beforeAll(async () => {
    open = await startConsole();
    await manage('POST', '/workspaces', { name: 'Research', slug: 'research' });
  });
  afterAll(() => open.stop());

  test('by keyboard: a key with a daily limit', async () => {
    const { page, faults } = await open.visit();
    await page.keyboard.press('/');
    await page.keyboard.type('create a key');
    await page.keyboard.press('Enter');
    await page.getByRole('dialog', { name: 'Create a key' }).waitFor();
    await page.keyboard.type('laptop');
    await page.keyboard.press('Tab');
    await page.keyboard.type('5');
    await page.keyboard.press('Tab');
    await page.keyboard.type('daily');
    await page.getByText('$5.00 a day, from midnight UTC').waitFor();
    // Enter in a text field sends the form.
    await page.keyboard.press('Shift+Tab');
    await page.keyboard.press('Enter');
    await page.getByRole('dialog', { name: 'Copy the key now' }).waitFor();
    await page.getByRole('button', { name: 'I have stored it' }).focus();
    await page.keyboard.press('Enter');
    expect(await page.getByRole('row', { name: /laptop/ }).innerText()).toContain('$5.00 a day');
    expect(faults).toEqual([]);
    await page.context().close();
  });

  test('by keyboard: a provider is added, and its credential is tested', async () => {
    const { page, faults } = await open.visit();
    await page.keyboard.press('/');
    await page.keyboard.type('add a provider');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Provider credentials' }).waitFor();
    await page.getByText('OPENAI_API_KEY=sk-… npm start').waitFor();
    await page
      .getByRole('row', { name: /OpenAI openai/ })
      .first()
      .waitFor();
    await page.getByRole('button', { name: 'Add a credential' }).focus();
    await page.keyboard.press('Enter');
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Credential', { exact: true }).focus();
    await page.keyboard.type('sk-planted-0123456789abcdef');
    await page.keyboard.press('Enter');
    await page
      .getByRole('row', { name: /in use/ })
      .first()
      .waitFor();
    expect(await page.content()).not.toContain('planted');
    expect(faults).toEqual([]);
    await page.context().close();
  });

  test('by mouse: from the page of a team to a model that is forbidden for it', async () => {
    const { page, faults } = await open.visit();
    await page.getByRole('link', { name: 'Workspaces' }).first().click();
    await page.getByRole('link', { name: /Research/ }).click();
    await page.getByRole('heading', { name: 'Research' }).waitFor();
    await page.getByRole('link', { name: 'Forbid models, filter content or limit members' }).click();
    const dialog = page.getByRole('dialog', { name: 'Create a guardrail' });
    await dialog.getByLabel('Name').first().fill('No story for Research');
    await dialog.getByLabel('Forbidden models', { exact: true }).fill('sandbox/story');
    await dialog.getByRole('button', { name: 'Create guardrail' }).click();
    // The team of the previous page is already chosen.
    await page.getByRole('button', { name: 'Apply to workspace' }).click();
    await page.getByRole('button', { name: 'Remove from the workspace Research' }).waitFor();
    expect(faults).toEqual([]);
    await page.context().close();
  });

  test('by mouse: a prompt is sent to two models, each chosen without a further step', async () => {
    const { page, faults } = await open.visit();
    await page.getByRole('link', { name: 'Playground' }).first().click();
    await page.getByRole('button', { name: 'Make a $1 key' }).click();
    await page.getByText('expires in an hour').waitFor();
    await page.getByLabel('Model', { exact: true }).fill('sandbox/story');
    await page.locator('datalist option[value="sandbox/story"]').waitFor({ state: 'attached' });
    await page.getByLabel('Model', { exact: true }).blur();
    await page.getByLabel('Compare with').fill('sandbox/echo');
    await page.locator('datalist option[value="sandbox/echo"]').waitFor({ state: 'attached' });
    await page.getByLabel('Prompt', { exact: true }).fill('Say this again');
    await page.getByRole('button', { name: 'Send to 2 models' }).click();
    for (const model of ['sandbox/story', 'sandbox/echo']) {
      await page
        .getByRole('region', { name: `Answer of ${model}` })
        .getByText('tokens')
        .waitFor();
    }
    // The credential of the previous test pays: the amount is at the own account.
    await page.getByText('Together').waitFor();
    expect(faults).toEqual([]);
    await page.context().close();
  });

  describe('with calls of earlier days', () => {
    let yesterday: ConsoleBrowser;
    let fellBack = '';
    beforeAll(async () => {
      const clock = { now_ms: () => now, monotonic_ms: () => performance.now() };
      yesterday = await startConsole({ clock });
      const today = Math.floor(now / DAY_MS) * DAY_MS;
      const send = async (at: number, model: string, content: string) => {
        now = at;
        const answer = await yesterday.gateway.call('POST', '/chat/completions', {
          model,
          messages: [{ role: 'user', content }],
        });
        await answer.text();
        return answer.headers.get('x-generation-id') ?? '';
      };
      const at = (days: number, hour: number, minute: number) => today - days * DAY_MS + (hour * 60 + minute) * 60_000;
      await send(at(2, 9, 0), 'sandbox/echo', 'short');
      await send(at(2, 9, 1), 'sandbox/echo', 'short');
      await send(at(1, 9, 0), 'sandbox/echo', 'short');
      for (let minute = 0; minute < 5; minute += 1) await send(at(1, 10, minute), 'sandbox/story', `long ${minute}`);
      fellBack = await send(at(1, 10, 42), 'sandbox/fallback', 'hello');
      await send(at(1, 11, 0), 'sandbox/fail-503', 'hello');
      now = Date.now();
    });
    afterAll(() => yesterday.stop());

    test('by mouse: the reason for yesterday’s higher bill is found, down to the calls', async () => {
      const { page, faults } = await yesterday.visit();
      const card = page.locator('.figures > div', { hasText: 'Spent yesterday' });
      expect(await card.innerText()).toMatch(/\+\d+ %/);
      await card.getByRole('link').click();
      await page.getByRole('columnheader', { name: 'Change' }).waitFor();
      // The largest change is in the first row.
      const first = page.locator('tbody tr').first();
      expect(await first.innerText()).toMatch(/sandbox\/story[\s\S]*\+\$[\d.]+ \(new\)/);
      await first.locator('a.sum').first().click();
      await page.getByText('5 calls').waitFor();
      expect(await page.locator('tbody tr').count()).toBe(5);
      expect(faults).toEqual([]);
      await page.context().close();
    });

    test('by keyboard: the call that failed at 10:42 is found, and why it fell back', async () => {
      const { page, faults } = await yesterday.visit();
      await page.keyboard.press('/');
      await page.keyboard.type('logs');
      await page.keyboard.press('Enter');
      await page.getByLabel('Result').focus();
      await page.keyboard.type('Failed, or fell');
      await page.keyboard.press('Enter');
      await page.getByText('2 calls').waitFor();
      const day = new Date(now - DAY_MS).toISOString();
      const [, month, date] = day.slice(0, 10).split('-');
      await page.getByLabel('From (UTC)').focus();
      await page.keyboard.type(`${month}${date}${day.slice(0, 4)}`);
      await page.keyboard.press('Tab');
      await page.keyboard.type('1042AM');
      await page.getByLabel('Before (UTC)').focus();
      await page.keyboard.type(`${month}${date}${day.slice(0, 4)}`);
      await page.keyboard.press('Tab');
      await page.keyboard.type('1043AM');
      await page.getByText('1 call,').waitFor();
      await page.locator('tbody th button').focus();
      await page.keyboard.press('Enter');
      const dialog = page.getByRole('dialog', { name: 'Call' });
      await dialog.getByText(fellBack).waitFor();
      expect(await dialog.locator('.attempts > li').first().innerText()).toContain(
        'The gateway went on to the next endpoint',
      );
      expect(faults).toEqual([]);
      await page.context().close();
    });
  });
});
