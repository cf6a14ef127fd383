import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findings } from './accessibility.ts';
import { arrive, BROWSER, type ConsoleBrowser, loaded, SLOW, startConsole } from './browser.ts';

const HOSTILE = `<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>"'&{{x}}\u202e`;

describe.skipIf(BROWSER === undefined)('logs and sessions in a browser', SLOW, () => {
  let open: ConsoleBrowser;
  let fallen = '';
  beforeAll(async () => {
    open = await startConsole();
    const manage = async (method: string, path: string, body?: object) => {
      const headers = { authorization: `Bearer ${open.gateway.management_key}`, 'content-type': 'application/json' };
      const answer = await fetch(`${open.gateway.base_url}${path}`, {
        method,
        headers,
        ...(body ? { body: JSON.stringify(body) } : {}),
      });
      return (await answer.json()) as { data: { id: string }[]; key: string };
    };
    const { data: workspaces } = await manage('GET', '/workspaces');
    await manage('PATCH', `/workspaces/${workspaces[0]?.id}`, {
      is_observability_io_logging_enabled: true,
      io_logging_sampling_rate: 1,
    });
    const { key } = await manage('POST', '/keys', { name: HOSTILE });
    const send = async (model: string, over: object = {}) => {
      const answer = await open.gateway.call(
        'POST',
        '/chat/completions',
        { model, messages: [{ role: 'user', content: HOSTILE }], session_id: `run ${HOSTILE}`, ...over },
        { authorization: `Bearer ${key}`, 'x-title': 'App <b>', 'http-referer': 'https://app.example/' },
      );
      await answer.text();
      const id = answer.headers.get('x-generation-id') ?? '';
      await open.recorded(id);
      return id;
    };
    for (let index = 0; index < 4; index += 1) await send('sandbox/echo');
    await send('sandbox/echo', {
      tools: [{ type: 'function', function: { name: 'hack', description: HOSTILE, parameters: { type: 'object' } } }],
      tool_choice: 'required',
    });
    await send('sandbox/fail-503');
    fallen = await send('sandbox/fallback');
    for (let index = 0; index < 4; index += 1) await send('sandbox/story');
  }, SLOW.timeout);
  afterAll(() => open.stop());

  test.each([
    [1_440, 'light'],
    [1_440, 'dark'],
    [360, 'light'],
    [360, 'dark'],
  ] as const)(
    'cause no axe finding, error or overflow at %d px, %s, including the panel',
    async (width, colorScheme) => {
      const { page, faults, foreign } = await open.visit({ colorScheme, viewport: { width, height: 800 } });
      const all =
        'key,user,session,app,model,provider,status,tokens,cached,written,reasoning,cost,first,speed,guardrail,finish';
      for (const path of ['logs', `logs?columns=${all}`, 'logs?model=none', `logs?id=${fallen}`, 'sessions']) {
        await arrive(page, `${open.gateway.url}/${path}`);
        expect([path, await findings(page)]).toEqual([path, []]);
        expect([path, await page.evaluate('document.documentElement.scrollWidth - innerWidth')]).toEqual([path, 0]);
      }
      await page.locator('main th a').first().click();
      await page.getByText('All sessions').waitFor();
      await page.locator('tbody tr').first().waitFor();
      expect(await findings(page)).toEqual([]);
      expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBe(0);
      expect({ faults, foreign }).toEqual({ faults: [], foreign: [] });
      await page.context().close();
    },
  );

  test.each([1_200, 1_440])('the default columns fit at %d px', async (width) => {
    const { page } = await open.visit({ viewport: { width, height: 800 } });
    await arrive(page, `${open.gateway.url}/logs`);
    const table = page.locator('.wide-table');
    await table.waitFor();
    expect(
      await table.evaluate((one: { scrollWidth: number; clientWidth: number }) => one.scrollWidth - one.clientWidth),
    ).toBe(0);
    await page.context().close();
  });

  test('hostile models, prompts, keys, sessions, tools and errors stay text, in the panel as well', async () => {
    const { page, faults } = await open.visit();
    await page.goto(`${open.gateway.url}/logs?columns=key,session,app,model,status`);
    await page.getByRole('row').nth(10).waitFor();
    for (let index = 0; index < 8; index += 1) {
      await page.locator('tbody th button').nth(index).click();
      const dialog = page.getByRole('dialog');
      await dialog.getByRole('button', { name: 'Show prompt and answer' }).click();
      await dialog.locator('.message').first().waitFor();
      expect(await page.evaluate('window.hacked ?? "no"')).toBe('no');
      await expect.poll(() => page.locator('main img, main script, main bdi b').count()).toBe(0);
      await page.keyboard.press('Escape');
      await dialog.waitFor({ state: 'detached' });
    }
    const encoded = encodeURIComponent(HOSTILE);
    for (const path of [`logs?model=${encoded}&key=${encoded}`, `sessions?id=${encoded}`, `logs?id=${encoded}`]) {
      await page.goto(`${open.gateway.url}/${path}`);
      await loaded(page);
      expect(await page.evaluate('window.hacked ?? "no"')).toBe('no');
      await expect.poll(() => page.locator('main img, main script').count()).toBe(0);
    }
    expect(faults.filter((fault) => !/status of (400|404)/.test(fault))).toEqual([]);
    await page.context().close();
  });

  test('by keyboard: find the call that fell back, read the reason, show its prompt, replay it in the playground', async () => {
    const { page, faults } = await open.visit();
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox', { name: 'Page, action or model' }).waitFor();
    await page.keyboard.type('logs');
    await page.keyboard.press('Enter');
    await page.getByLabel('Result').focus();
    await page.keyboard.type('Failed, or');
    await page.keyboard.press('Enter');
    await page.waitForURL(/result=problems/);
    await page.getByText('2 calls').waitFor();
    const row = page.getByRole('row', { name: /sandbox\/fallback/ });
    await expect.poll(() => row.innerText()).toContain('after unavailable');
    await row.getByRole('button').focus();
    await page.keyboard.press('Enter');
    const dialog = page.getByRole('dialog', { name: 'Call' });
    const attempts = dialog.locator('.attempts > li');
    await attempts.nth(1).waitFor();
    await expect.poll(() => attempts.nth(0).innerText()).toContain('The gateway went on to the next endpoint');
    await expect.poll(() => attempts.nth(0).innerText()).toContain('503');
    await expect.poll(() => attempts.nth(1).innerText()).toContain('answered, status 200');
    await expect.poll(() => dialog.innerText()).toContain('Charged');
    await dialog.getByRole('button', { name: 'Show prompt and answer' }).focus();
    await page.keyboard.press('Enter');
    await dialog.locator('.message').first().waitFor();
    await dialog.getByRole('button', { name: 'Replay in the playground' }).focus();
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Playground' }).waitFor();
    await expect.poll(() => page.getByLabel('Prompt', { exact: true }).inputValue()).toContain('<img src=x');
    expect(page.url()).toContain('models=sandbox%2Ffallback');
    await page.goBack();
    await page.getByText('2 calls').waitFor();
    expect(faults).toEqual([]);
    await page.context().close();
  });

  test('CSV and JSON hold exactly the rows and columns that are shown, and the address keeps the filters', async () => {
    const { page, faults } = await open.visit();
    await page.goto(`${open.gateway.url}/logs?model=sandbox%2Fecho&columns=app,cost`);
    await page.getByText('5 calls').waitFor();
    await expect.poll(() => page.getByRole('row').count()).toBe(6);
    const saved = async (press: () => Promise<void>) => {
      const [download] = await Promise.all([page.waitForEvent('download'), press()]);
      return readFile(await download.path(), 'utf8');
    };
    const csv = await saved(() => page.getByRole('button', { name: 'CSV' }).click());
    expect(csv.trim().split('\r\n')).toHaveLength(6);
    expect(csv).toMatch(/^id,created_at,app,total_cost\r\n/);
    const json = JSON.parse(await saved(() => page.getByRole('button', { name: 'JSON' }).click())) as { app: string }[];
    expect(json).toHaveLength(5);
    expect(Object.keys(json[0] ?? {})).toEqual(['id', 'created_at', 'app', 'total_cost']);
    await page.reload();
    await page.getByText('5 calls').waitFor();
    expect(faults).toEqual([]);
    await page.context().close();
  });

  test('older calls follow on the first visit as well, the file has the rows that are shown, and the panel moves along them', async () => {
    const { page, faults } = await open.visit();
    // Pages of four calls in place of fifty.
    await page.route(
      (url) => url.pathname.endsWith('/api/v1/generations'),
      (one) => one.continue({ url: one.request().url().replace('limit=50', 'limit=4') }),
    );
    await arrive(page, `${open.gateway.url}/logs?columns=app,model`);
    const rows = page.locator('main tbody tr');
    const older = page.getByRole('button', { name: 'Older calls' });
    await expect.poll(() => rows.count()).toBe(4);
    expect(await page.getByRole('link', { name: 'All as CSV' }).getAttribute('href')).toContain('format=csv');
    await older.click();
    await expect.poll(() => rows.count()).toBe(8);
    const times = await rows.locator('th').allTextContents();
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'CSV', exact: true }).click(),
    ]);
    const lines = (await readFile(await download.path(), 'utf8')).trim().split('\r\n').slice(1);
    expect(lines.map((line) => line.split(',')[1]?.slice(0, 19).replace('T', ' '))).toEqual(times);
    // Anywhere in a row, beside its links.
    await rows.nth(6).locator('td').nth(1).click();
    const dialog = page.getByRole('dialog', { name: 'Call' });
    const idOf = () => new URL(page.url()).searchParams.get('id');
    const opened = idOf();
    await dialog.getByText(opened ?? '', { exact: true }).waitFor();
    await dialog.getByRole('button', { name: 'Newer' }).click();
    await expect.poll(idOf).not.toBe(opened);
    await dialog.getByText(idOf() ?? '', { exact: true }).waitFor();
    await dialog.getByRole('button', { name: 'Older' }).click();
    await expect.poll(idOf).toBe(opened);
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
    await expect.poll(idOf).toBe(null);
    expect(faults).toEqual([]);
    await page.context().close();
  });

  test('a range of time is one press, models are offered, and columns close with Escape', async () => {
    const { page, faults } = await open.visit();
    await arrive(page, `${open.gateway.url}/logs`);
    const sum = await page.locator('.log-bar p').textContent();
    await page.getByRole('button', { name: 'Today', exact: true }).click();
    await expect.poll(() => new URL(page.url()).searchParams.get('from')).toMatch(/T00:00:00.000Z$/);
    expect(await page.getByRole('button', { name: 'Today', exact: true }).getAttribute('aria-pressed')).toBe('true');
    await loaded(page);
    await expect.poll(() => page.locator('.log-bar p').textContent()).toBe(sum);
    await page.getByRole('button', { name: 'Yesterday' }).click();
    await page.getByText('No call matches').waitFor();
    await page.getByRole('button', { name: 'Any time' }).click();
    const model = page.getByLabel('Model served');
    await model.focus();
    await page.keyboard.type('story');
    const offered = () =>
      page.locator('datalist option').evaluateAll((all: { value: string }[]) => all.map(({ value }) => value));
    await expect.poll(offered).toContain('sandbox/story');
    await page.locator('.columns > summary').click();
    await page.getByLabel('Own account').check();
    await page.getByRole('columnheader', { name: 'Own account' }).waitFor();
    await page.keyboard.press('Escape');
    await expect.poll(() => page.getByLabel('Own account').isVisible()).toBe(false);
    expect(faults).toEqual([]);
    await page.context().close();
  });

  test('a kept conversation with tools is sent again as it was, from the panel', async () => {
    const { page, faults } = await open.visit();
    const tool = { type: 'function', function: { name: 'weather', parameters: { type: 'object' } } };
    const format = { type: 'json_schema', json_schema: { name: 'answer', schema: { type: 'object' } } };
    const called = { id: 'c1', type: 'function', function: { name: 'weather', arguments: '{"city":"Velm"}' } };
    const body = {
      model: 'sandbox/echo',
      tools: [tool],
      tool_choice: 'none',
      response_format: format,
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'How is the weather?' },
        { role: 'assistant', content: null, tool_calls: [called] },
        { role: 'tool', tool_call_id: 'c1', content: 'snow' },
        { role: 'assistant', content: 'It snows.' },
        { role: 'user', content: 'And tomorrow?' },
      ],
    };
    const answer = await open.gateway.call('POST', '/chat/completions', body);
    await answer.text();
    const id = answer.headers.get('x-generation-id');
    await open.recorded(id);
    await arrive(page, `${open.gateway.url}/logs?id=${id}`);
    const dialog = page.getByRole('dialog', { name: 'Call' });
    await dialog.getByRole('button', { name: 'Show prompt and answer' }).click();
    await dialog.locator('.message').first().waitFor();
    await expect
      .poll(() => dialog.getByRole('group', { name: 'Request: curl' }).textContent())
      .toContain('"json_schema"');
    await dialog.getByRole('button', { name: 'Replay in the playground' }).click();
    await page.getByRole('heading', { name: 'Playground' }).waitFor();
    expect(await page.getByLabel('Prompt', { exact: true }).inputValue()).toBe('And tomorrow?');
    await page.getByText('It snows.').waitFor();
    await page.getByRole('button', { name: 'Code' }).click();
    const code = await page.getByRole('group', { name: 'Request: curl' }).textContent();
    const sent = JSON.parse(code?.slice(code.indexOf("'{") + 1, -1) ?? '') as typeof body;
    expect(sent.messages.map(({ role, content }) => [role, content ?? ''])).toEqual(
      body.messages.map(({ role, content }) => [role, content ?? '']),
    );
    expect(sent.tools).toEqual([tool]);
    expect(sent.tool_choice).toBe('none');
    expect(sent.response_format).toEqual(format);
    expect(faults).toEqual([]);
    await page.context().close();
  });

  test('the live tail shows new calls without a reload, and a session sums its costs', async () => {
    const { page, faults } = await open.visit();
    await page.goto(`${open.gateway.url}/logs?session=live-1&live=1`);
    await page.getByText('No call matches').waitFor();
    for (const content of ['one', 'two']) {
      const body = { model: 'sandbox/echo', messages: [{ role: 'user', content }], session_id: 'live-1' };
      await (await open.gateway.call('POST', '/chat/completions', body)).text();
    }
    await page.getByText('2 calls').waitFor();
    await page.goto(`${open.gateway.url}/sessions`);
    await page.getByRole('link', { name: 'live-1' }).click();
    await page.getByText('2 calls').waitFor();
    const rows = page.locator('tbody tr');
    const title = (row: number, column: number) =>
      rows.nth(row).locator('td').nth(column).locator('.number').getAttribute('title');
    const costs = await Promise.all([title(0, 3), title(1, 3), title(1, 4)]);
    const [first = 0, second = 0, sum = 0] = costs.map((cost) => Math.round(Number(cost?.slice(1)) * 1e9));
    expect(first).toBeGreaterThan(0);
    expect(sum).toBe(first + second);
    expect(faults).toEqual([]);
    await page.context().close();
  });

  test('the live tail sends a request every five seconds, and no other page sends requests by itself', async () => {
    const { page, faults } = await open.visit();
    const requests: string[] = [];
    page.on('request', (request) => {
      if (request.url().includes('/api/v1/')) requests.push(new URL(request.url()).pathname);
    });
    await page.clock.install();
    for (const path of [
      '',
      'logs',
      'logs?live=1',
      'sessions',
      'usage',
      'keys',
      'models',
      'budgets',
      'ledger',
      'system',
    ]) {
      await arrive(page, `${open.gateway.url}/${path}`);
      requests.length = 0;
      for (let turn = 0; turn < 4; turn += 1) {
        await page.clock.runFor(5_000);
        await page.waitForLoadState('networkidle');
      }
      expect([path, requests]).toEqual([path, path === 'logs?live=1' ? Array(4).fill('/api/v1/generations') : []]);
    }
    expect(faults).toEqual([]);
    await page.context().close();
  });

  test('a member sees only its own calls', async () => {
    const { page, faults } = await open.visit({ member: { email: 'member@example.com', role: 'member' } });
    await page.getByRole('link', { name: 'Logs' }).first().click();
    await page.getByText('No call yet').waitFor();
    await page.getByRole('link', { name: 'Sessions' }).first().click();
    await page.getByText('No session yet').waitFor();
    expect(faults).toEqual([]);
    await page.context().close();
  });
});
