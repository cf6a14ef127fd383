import type { Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { BROWSER, type ConsoleBrowser, SLOW, startConsole } from './browser.ts';

const DAY_MS = 86_400_000;
/** A page with more controls before the wanted one is a burden. */
const TABS_MAX = 120;

/** Moves the focus with Tab alone until it is on the control with this role and name, as a person without a mouse does. */
async function tabTo(
  within: Page | Locator,
  role: 'button' | 'link' | 'textbox' | 'combobox',
  name: string | RegExp,
): Promise<void> {
  const wanted = within.getByRole(role, { name, exact: typeof name === 'string' }).first();
  await wanted.waitFor();
  for (let presses = 0; presses < TABS_MAX; presses += 1) {
    if (await wanted.evaluate((element: { matches(selector: string): boolean }) => element.matches(':focus'))) return;
    await wanted.page().keyboard.press('Tab');
  }
  throw new Error(`${String(name)} is not reached with Tab`);
}

/** Opens a page or an action with the palette. */
async function goTo(page: Page, text: string) {
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox', { name: 'Page, action or model' }).waitFor();
  await page.keyboard.type(text);
  await page.keyboard.press('Enter');
}

/** What a new user wants to do, as a person does it: from the overview, by what the pages say. Each by mouse and by keyboard only. */
describe.skipIf(BROWSER === undefined)('tasks of a new user', SLOW, () => {
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
    await manage('POST', '/workspaces', { name: 'Design', slug: 'design' });
  }, SLOW.timeout);
  afterAll(() => open.stop());

  test('by keyboard: a key with a daily limit', async () => {
    const { page, faults } = await open.visit();
    await page.keyboard.press('/');
    await page.getByRole('combobox', { name: 'Page, action or model' }).waitFor();
    await page.keyboard.type('create a key');
    await page.keyboard.press('Enter');
    await page.getByRole('dialog', { name: 'Create a key' }).waitFor();
    await page.keyboard.type('laptop');
    await page.keyboard.press('Tab');
    await page.keyboard.type('5');
    await page.keyboard.press('Tab');
    await page.keyboard.type('daily');
    await page.getByText('$5.00 a day, from midnight UTC').waitFor();
    // Enter in a field of text sends the form.
    await page.keyboard.press('Shift+Tab');
    await page.keyboard.press('Enter');
    await page.getByRole('dialog', { name: 'Copy the key now' }).waitFor();
    await page.getByRole('button', { name: 'I have stored it' }).focus();
    await page.keyboard.press('Enter');
    await expect.poll(() => page.getByRole('row', { name: /laptop/ }).innerText()).toContain('$5.00 a day');
    expect(faults).toEqual([]);
    await page.context().close();
  });

  test('by mouse: a key with a daily limit', async () => {
    const { page, faults } = await open.visit();
    await page.getByRole('link', { name: 'Keys' }).first().click();
    await page.getByRole('button', { name: 'Create key' }).click();
    const dialog = page.getByRole('dialog', { name: 'Create a key' });
    await dialog.getByLabel('Name').fill('desktop');
    await dialog.getByLabel('Limit in USD').fill('7');
    await dialog.getByLabel('Reset').selectOption('daily');
    await dialog.getByText('$7.00 a day, from midnight UTC').waitFor();
    await dialog.getByRole('button', { name: 'Create key' }).click();
    await page.getByRole('button', { name: 'I have stored it' }).click();
    await expect.poll(() => page.getByRole('row', { name: /desktop/ }).innerText()).toContain('$7.00 a day');
    expect(faults).toEqual([]);
    await page.context().close();
  });

  test('by mouse: a provider is added, from the first steps', async () => {
    const { page, faults } = await open.visit();
    // The next step is open.
    await page.getByRole('link', { name: 'Provider credentials' }).click();
    await page.getByText('OPENAI_API_KEY=sk-… npm start').waitFor();
    await page.getByRole('button', { name: 'Add a credential' }).click();
    const dialog = page.getByRole('dialog', { name: 'Add a credential of your own' });
    await dialog.getByLabel('Provider').selectOption({ label: 'Mistral' });
    await dialog.getByLabel('Credential', { exact: true }).fill('planted-0123456789abcdef');
    await dialog.getByRole('button', { name: 'Store the credential' }).click();
    const row = page.getByRole('row', { name: /in use/ }).filter({ hasText: 'mistral' });
    await row.waitFor();
    expect(await page.content()).not.toContain('planted');
    expect(faults).toEqual([]);
    await page.context().close();
  });

  test('by keyboard: a model that is forbidden for one team', async () => {
    const { page, faults } = await open.visit();
    await goTo(page, 'workspaces');
    await tabTo(page, 'link', /Design/);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Design' }).waitFor();
    await tabTo(page, 'link', 'Forbid models, filter content or limit members');
    await page.keyboard.press('Enter');
    const dialog = page.getByRole('dialog', { name: 'Create a guardrail' });
    await dialog.waitFor();
    await page.keyboard.type('No tools for Design');
    await tabTo(dialog, 'combobox', 'Forbidden models');
    await page.keyboard.type('sandbox/tools');
    await tabTo(dialog, 'button', 'Create guardrail');
    await page.keyboard.press('Enter');
    await tabTo(page, 'button', 'Apply to workspace');
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Remove from the workspace Design' }).waitFor();
    expect(faults).toEqual([]);
    await page.context().close();
  });

  test('by keyboard: a prompt on two models', async () => {
    const { page, faults } = await open.visit();
    await goTo(page, 'playground');
    await tabTo(page, 'button', /Make a \$1 key/);
    await page.keyboard.press('Enter');
    await page.getByText('expires in an hour').waitFor();
    await tabTo(page, 'combobox', 'Model');
    await page.keyboard.type('sandbox/story');
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Remove sandbox/story' }).waitFor();
    await tabTo(page, 'combobox', 'Compare with');
    await page.keyboard.type('sandbox/echo');
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Remove sandbox/echo' }).waitFor();
    await tabTo(page, 'textbox', 'Prompt');
    await page.keyboard.type('Say this again');
    await page.keyboard.press('Control+Enter');
    for (const model of ['sandbox/story', 'sandbox/echo']) {
      await page
        .getByRole('region', { name: `Answer of ${model}` })
        .getByText('tokens')
        .waitFor();
    }
    expect(faults).toEqual([]);
    await page.context().close();
  });

  test('by keyboard: a provider is added, and its credential tested', async () => {
    const { page, faults } = await open.visit();
    await page.keyboard.press('/');
    await page.getByRole('combobox', { name: 'Page, action or model' }).waitFor();
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
    // The team of the page before is chosen already.
    await page.getByRole('button', { name: 'Apply to workspace' }).click();
    await page.getByRole('button', { name: 'Remove from the workspace Research' }).waitFor();
    expect(faults).toEqual([]);
    await page.context().close();
  });

  test('by mouse: a prompt on two models, each chosen without a further step', async () => {
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
    // The credential of the test before pays: the amount is at the own account.
    await page.getByText('Together').waitFor();
    expect(faults).toEqual([]);
    await page.context().close();
  });

  describe('with calls of the days before', () => {
    let yesterday: ConsoleBrowser;
    let fellBack = '';
    beforeAll(async () => {
      const clock = { nowMs: () => now, monotonicMs: () => performance.now() };
      yesterday = await startConsole({ clock });
      const today = Math.floor(now / DAY_MS) * DAY_MS;
      const send = async (at: number, model: string, content: string) => {
        now = at;
        const answer = await yesterday.gateway.call('POST', '/chat/completions', {
          model,
          messages: [{ role: 'user', content }],
        });
        await answer.text();
        const id = answer.headers.get('x-generation-id') ?? '';
        await yesterday.recorded(id);
        return id;
      };
      const at = (days: number, hour: number, minute: number) => today - days * DAY_MS + (hour * 60 + minute) * 60_000;
      await send(at(2, 9, 0), 'sandbox/echo', 'short');
      await send(at(2, 9, 1), 'sandbox/echo', 'short');
      await send(at(1, 9, 0), 'sandbox/echo', 'short');
      for (let minute = 0; minute < 5; minute += 1) await send(at(1, 10, minute), 'sandbox/story', `long ${minute}`);
      fellBack = await send(at(1, 10, 42), 'sandbox/fallback', 'hello');
      await send(at(1, 11, 0), 'sandbox/fail-503', 'hello');
      now = Date.now();
    }, SLOW.timeout);
    afterAll(() => yesterday.stop());

    test('by mouse: why yesterday’s bill rose, down to the calls', async () => {
      const { page, faults } = await yesterday.visit();
      const card = page.locator('.figures > div', { hasText: 'Spent yesterday' });
      await expect.poll(() => card.innerText()).toMatch(/\+\d+ %/);
      await card.getByRole('link').click();
      await page.getByRole('columnheader', { name: 'Change' }).waitFor();
      // What changed most stands first.
      const first = page.locator('tbody tr').first();
      await expect.poll(() => first.innerText()).toMatch(/sandbox\/story[\s\S]*\+\$[\d.]+ \(new\)/);
      await first.locator('a.sum').first().click();
      await page.getByText('5 calls').waitFor();
      await expect.poll(() => page.locator('tbody tr').count()).toBe(5);
      expect(faults).toEqual([]);
      await page.context().close();
    });

    test('by keyboard: why yesterday’s bill rose, down to the calls', async () => {
      const { page, faults } = await yesterday.visit();
      await goTo(page, 'spend of yesterday');
      await page.getByRole('columnheader', { name: 'Change' }).waitFor();
      const first = page.locator('tbody tr').first();
      await expect.poll(() => first.innerText()).toMatch(/sandbox\/story[\s\S]*\+\$[\d.]+ \(new\)/);
      const amount = (await first.locator('a.sum').first().innerText()).trim();
      await tabTo(page, 'button', 'sandbox/story');
      await page.keyboard.press('Tab');
      await expect.poll(() => page.evaluate('document.activeElement.textContent')).toBe(amount);
      await page.keyboard.press('Enter');
      await page.getByText('5 calls').waitFor();
      await expect.poll(() => page.locator('tbody tr').count()).toBe(5);
      expect(faults).toEqual([]);
      await page.context().close();
    });

    test('by mouse: the call that failed at 10:42, and why it fell back', async () => {
      const { page, faults } = await yesterday.visit();
      await page.getByRole('link', { name: 'Logs' }).first().click();
      await page.getByLabel('Result').selectOption({ label: 'Failed, or fell back' });
      await page.getByText('2 calls').waitFor();
      const day = new Date(now - DAY_MS).toISOString().slice(0, 10);
      // The pickers of the browser are its own; what they set is what counts.
      await page.getByLabel('From (UTC)').fill(`${day}T10:42`);
      await page.getByLabel('Before (UTC)').fill(`${day}T10:43`);
      await page.getByText('1 call,').waitFor();
      await page.locator('tbody th button').click();
      const dialog = page.getByRole('dialog', { name: 'Call' });
      await dialog.getByText(fellBack).waitFor();
      await expect
        .poll(() => dialog.locator('.attempts > li').first().innerText())
        .toContain('The gateway went on to the next endpoint');
      expect(faults).toEqual([]);
      await page.context().close();
    });

    test('by keyboard: the call that failed at 10:42, and why it fell back', async () => {
      const { page, faults } = await yesterday.visit();
      await page.keyboard.press('/');
      await page.getByRole('combobox', { name: 'Page, action or model' }).waitFor();
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
      await expect
        .poll(() => dialog.locator('.attempts > li').first().innerText())
        .toContain('The gateway went on to the next endpoint');
      expect(faults).toEqual([]);
      await page.context().close();
    });
  });
});
