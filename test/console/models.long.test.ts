import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { openDatabase } from '../../src/storage/database.ts';
import { endpointPriceStore } from '../../src/storage/endpoint-prices.ts';
import { findings } from './accessibility.ts';
import { arrive, BROWSER, type ConsoleBrowser, SLOW, startConsole } from './browser.ts';

const HOSTILE = `<img src=x onerror="window.hacked=1">`;

describe.skipIf(BROWSER === undefined)('models in a browser', SLOW, () => {
  let open: ConsoleBrowser;
  beforeAll(async () => {
    open = await startConsole();
    for (const model of ['sandbox/echo', 'sandbox/echo', 'sandbox/story', 'sandbox/fail-503']) {
      const body = { model, messages: [{ role: 'user', content: 'hello' }], stream: model !== 'sandbox/fail-503' };
      const answer = await open.gateway.call('POST', '/chat/completions', body);
      await answer.text();
      await open.recorded(answer.headers.get('x-generation-id'));
    }
    const authorization = `Bearer ${open.gateway.management_key}`;
    const failing = async () =>
      (await open.gateway.call('GET', '/endpoints/failing', undefined, { authorization })).text();
    await vi.waitFor(async () => expect(await failing()).toContain('sandbox/fail-503'), { timeout: 60_000 });
  }, SLOW.timeout);
  afterAll(() => open.stop());

  test('the overview lists failing endpoints, with the way to the model and to the failed calls', async () => {
    const { page, faults } = await open.visit();
    const card = page.locator('section', { has: page.getByRole('heading', { name: /^Failing endpoints/ }) });
    await card.waitFor();
    await expect.poll(() => card.innerText()).toMatch(/24 h: 1 of 1 failed \(100 %\)/);
    const text = await card.innerText();
    expect(text).toContain('fails');
    expect(text).toContain('cools down until');
    await card
      .getByRole('link', { name: /^Failed calls of .*sandbox\/fail-503/ })
      .first()
      .click();
    await page.getByRole('heading', { name: 'Logs' }).waitFor();
    expect(new URL(page.url()).searchParams.get('endpoint')).toContain('sandbox/fail-503');
    const rows = page.locator('table.logs tbody tr');
    await rows.first().waitFor();
    await expect.poll(() => rows.count()).toBe(1);
    await expect.poll(() => rows.first().innerText()).toContain('sandbox/fail-503');
    await page.goBack();
    await card.getByRole('link', { name: 'sandbox/fail-503', exact: true }).first().click();
    await page.getByRole('heading', { name: 'Endpoints' }).waitFor();
    await page.locator('.endpoints .tag.bad').first().waitFor();
    await expect.poll(() => page.locator('.endpoints').innerText()).toContain('cools down until');
    expect(faults).toEqual([]);
    await page.context().close();
  });

  test('models are chosen and compared by mouse: at most four, over searches, with a permanent link', async () => {
    const { page, faults } = await open.visit();
    await page.goto(`${open.gateway.url}/models?q=echo`);
    const choose = (name: string) =>
      page
        .getByRole('row')
        .filter({ has: page.getByText(name, { exact: true }) })
        .getByRole('checkbox');
    await choose('sandbox/echo').check();
    await page.getByText('Choose one more model to compare.').waitFor();
    await page.getByLabel('Search models').fill('story');
    await page.waitForURL(/q=story/);
    await choose('sandbox/story').check();
    await page.getByRole('link', { name: 'Compare 2 models' }).click();
    await page.getByRole('heading', { name: 'Compare models' }).waitFor();
    const table = page.getByRole('table', { name: /,/ });
    await table.waitFor();
    const row = (name: string) =>
      table
        .getByRole('row')
        .filter({ has: page.getByRole('rowheader', { name: new RegExp(`^${name} \\(differs|^${name}$|^${name} ≠`) }) });
    await expect.poll(() => row('Input').locator('td').allInnerTexts()).toHaveLength(2);
    await expect.poll(() => row('Calls').locator('td').allInnerTexts()).toEqual(['2', '1']);
    await expect.poll(() => row('Calls').innerText()).toContain('(differs)');
    const all = await table.getByRole('row').count();
    await page.getByLabel('Only differences').check();
    await expect.poll(() => table.getByRole('row').count()).toBeLessThan(all);
    expect(page.url()).toContain('only=differences');
    await page.reload();
    await table.waitFor();
    await expect.poll(() => page.getByLabel('Only differences').isChecked()).toBe(true);
    await page.goto(`${open.gateway.url}/models?chosen=sandbox/echo,sandbox/story,sandbox/think,sandbox/hang`);
    await page.getByRole('link', { name: 'Compare 4 models' }).waitFor();
    await expect.poll(() => page.locator('td.tick input:not(:checked):enabled').count()).toBe(0);
    expect(faults).toEqual([]);
    await page.context().close();
  });

  test('models are compared with the keyboard alone', async () => {
    const { page, faults } = await open.visit();
    await page.goto(`${open.gateway.url}/models?q=sandbox/&chosen=sandbox/story`);
    const box = page.locator('td.tick input:not(:checked)').first();
    await box.focus();
    await page.keyboard.press('Space');
    const link = page.getByRole('link', { name: 'Compare 2 models' });
    await link.waitFor();
    const focused = () => page.evaluate('document.activeElement.textContent');
    for (let presses = 0; presses < 50 && (await focused()) !== 'Compare 2 models'; presses += 1)
      await page.keyboard.press('Shift+Tab');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Compare models' }).waitFor();
    await page.getByLabel('Only differences').focus();
    await page.keyboard.press('Space');
    await page.waitForURL(/only=differences/);
    expect(faults).toEqual([]);
    await page.context().close();
  });

  test('a page shows percentiles by provider and prices over time, older ones in portions', async () => {
    const { page, faults } = await open.visit();
    const database = await openDatabase({ data_dir: open.gateway.data_dir });
    const prices = endpointPriceStore(database.queries);
    await expect.poll(async () => (await prices.findLast(['sandbox|sandbox/story']))[0]?.seq).toBe(1);
    const rows = Array.from({ length: 25 }, (_, index) => ({
      endpoint_id: 'sandbox|sandbox/story',
      seq: index + 2,
      from_ms: Date.now() + index,
      prices: JSON.stringify({ pricing: { prompt: index + 1, completion: 5 } }),
    }));
    await prices.add(rows);
    await database.close();
    await page.goto(`${open.gateway.url}/models?id=sandbox%2Fstory`);
    const speed = page.getByRole('table', { name: 'Percentiles by provider' });
    await speed.waitFor();
    await expect.poll(() => speed.innerText()).toMatch(/First token\s+\d/);
    const history = page.getByRole('table', { name: /^Prices of the endpoints/ });
    await history.waitFor();
    await expect.poll(() => history.locator('tbody tr').count()).toBe(20);
    await expect
      .poll(() => history.locator('tbody tr').first().innerText())
      .toMatch(/in force[\s\S]*\$0\.000025[\s\S]*Input/);
    await page.getByRole('button', { name: 'Show older prices' }).press('Enter');
    await page.getByRole('button', { name: 'Show older prices' }).waitFor({ state: 'detached' });
    await expect.poll(() => history.innerText()).toContain('first record');
    expect(faults).toEqual([]);
    await page.context().close();
  });

  test('the budget of a workspace is removed after the dialog has named it, and kept if the person closes the dialog', async () => {
    const { gateway } = open;
    const headers = { authorization: `Bearer ${gateway.management_key}`, 'content-type': 'application/json' };
    const made = await fetch(`${gateway.base_url}/workspaces`, {
      method: 'POST',
      headers,
      body: JSON.stringify({ name: 'Research', slug: 'research' }),
    });
    const { data } = (await made.json()) as { data: { id: string } };
    await fetch(`${gateway.base_url}/workspaces/${data.id}/budgets/monthly`, {
      method: 'PUT',
      headers,
      body: JSON.stringify({ limit_usd: 250 }),
    });
    const { page, faults } = await open.visit();
    await page.goto(`${gateway.url}/workspaces?id=${data.id}`);
    const remove = page.getByRole('button', { name: 'Remove the monthly budget' });
    await remove.click();
    const dialog = page.getByRole('dialog', { name: 'Remove this budget?' });
    await dialog.getByRole('button', { name: 'Keep it' }).click();
    await dialog.waitFor({ state: 'detached' });
    await remove.click();
    await dialog.getByText('Research').waitFor();
    await dialog.getByRole('button', { name: 'Remove $250.00 monthly' }).click();
    await remove.waitFor({ state: 'detached' });
    expect(faults).toEqual([]);
    await page.context().close();
  });

  test.each([
    [1_440, 'light'],
    [1_440, 'dark'],
    [360, 'light'],
    [360, 'dark'],
  ] as const)(
    'no page of models at %d px, %s, has an axe finding or is too wide; addresses stay text',
    async (width, colorScheme) => {
      const { page, foreign } = await open.visit({ colorScheme, viewport: { width, height: 800 } });
      for (const path of [
        '',
        'models?chosen=sandbox/echo,sandbox/story',
        'models?compare=sandbox/echo,sandbox/story,sandbox/fail-503',
        'models?id=sandbox%2Ffail-503',
        `models?chosen=${encodeURIComponent(HOSTILE)}`,
        `models?compare=sandbox/echo,${encodeURIComponent(`${HOSTILE}/x`)}`,
      ]) {
        await arrive(page, `${open.gateway.url}/${path}`);
        expect([path, await findings(page)]).toEqual([path, []]);
        expect([path, await page.evaluate('document.documentElement.scrollWidth - innerWidth')]).toEqual([path, 0]);
        expect(await page.evaluate('window.hacked ?? "no"')).toBe('no');
      }
      expect(foreign).toEqual([]);
      await page.context().close();
    },
  );
});
