import { readFile } from 'node:fs/promises';
import { createServer, request as httpRequest, type Server } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { signInLink } from '../http/console-client.ts';
import { findings } from './accessibility.ts';
import { arrive, BROWSER, type ConsoleBrowser, SLOW, startConsole } from './browser.ts';

const HOSTILE = `<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>"'&{{x}}\u202e`;

describe.skipIf(BROWSER === undefined)('the console in a browser', SLOW, () => {
  let open: ConsoleBrowser;
  beforeAll(async () => {
    open = await startConsole();
    for (const model of ['sandbox/echo', 'sandbox/story']) {
      const body = { model, messages: [{ role: 'user', content: 'hello' }] };
      await send(body);
    }
    await manage('POST', '/keys', { name: HOSTILE, limit: 5, limit_reset: 'daily' });
    await manage('POST', '/workspaces', { name: HOSTILE.slice(0, 60), slug: 'hostile', description: HOSTILE });
  }, SLOW.timeout);
  afterAll(() => open.stop());

  /** Sends a call and waits until it is recorded. */
  const send = async (body: object, headers: Record<string, string> = {}) => {
    const answer = await open.gateway.call('POST', '/chat/completions', body, headers);
    await answer.text();
    await open.recorded(answer.headers.get('x-generation-id'));
  };

  const manage = async (method: string, path: string, body?: object) => {
    const { management_key, base_url } = open.gateway;
    const headers = { authorization: `Bearer ${management_key}`, 'content-type': 'application/json' };
    const answer = await fetch(`${base_url}${path}`, {
      method,
      headers,
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    return (await answer.json()) as { data: never };
  };

  const PAGES = [
    '',
    'usage?compare=on&by2=tag',
    'usage?metric=p95_latency&range=24h&by=none',
    'keys',
    'models',
    'models?id=sandbox%2Fecho',
    'playground?models=sandbox%2Fecho',
    'workspaces',
    'audit',
    'credentials?all=1',
    'ledger',
    'system?source=all',
  ];

  test.each([
    [1_440, 'light'],
    [1_440, 'dark'],
    [360, 'light'],
    [360, 'dark'],
  ] as const)(
    'no page at %d px, %s, has an axe finding, an error, a request to another site, or is too wide',
    async (width, colorScheme) => {
      const { page, faults, foreign } = await open.visit({ colorScheme, viewport: { width, height: 800 } });
      for (const path of PAGES) {
        await arrive(page, `${open.gateway.url}/${path}`);
        expect([path, await findings(page)]).toEqual([path, []]);
        expect([path, await page.evaluate('document.documentElement.scrollWidth - innerWidth')]).toEqual([path, 0]);
      }
      expect({ faults, foreign }).toEqual({ faults: [], foreign: [] });
      await page.context().close();
    },
  );

  test('hostile names stay text on every page', async () => {
    const { page, faults } = await open.visit();
    for (const path of [
      ...PAGES,
      'models?id=%3Cscript%3Ewindow.hacked%3D1%3C%2Fscript%3E%2Fx',
      `audit?type=${encodeURIComponent(HOSTILE)}`,
    ]) {
      await arrive(page, `${open.gateway.url}/${path}`);
      expect([path, await page.evaluate('window.hacked ?? "no"')]).toEqual([path, 'no']);
      await expect.poll(() => page.locator('main img, main script').count()).toBe(0);
    }
    await page.goto(`${open.gateway.url}/keys`);
    await page.locator('th bdi', { hasText: '<img src=x' }).waitFor();
    const allowed = /status of (400|404)/;
    expect(faults.filter((fault) => !allowed.test(fault))).toEqual([]);
    await page.context().close();
  });

  test('keys by mouse: create with a limit, change, disable, enable, delete after the dialog has named it', async () => {
    const { page, faults } = await open.visit();
    await page.getByRole('link', { name: 'Keys' }).first().click();
    await page.getByRole('button', { name: 'Create key' }).click();
    await page.getByLabel('Name').fill('nightly job');
    await page.getByLabel('Limit in USD').fill('2.5');
    await page.getByLabel('Reset').selectOption('daily');
    await page.getByRole('dialog').getByRole('button', { name: 'Create key' }).click();
    await page.getByRole('button', { name: 'I have stored it' }).click();
    const row = page.getByRole('row', { name: /nightly job/ });
    await expect.poll(() => row.innerText()).toContain('$2.50 a day');
    await row.getByRole('button', { name: 'Change' }).click();
    await page.getByLabel('Limit in USD').fill('3');
    await page.getByRole('button', { name: 'Save' }).click();
    await row.getByRole('img', { name: /left of \$3\.00 a day/ }).waitFor();
    await row.getByRole('button', { name: 'Disable' }).click();
    await row.getByText('disabled').waitFor();
    await row.getByRole('button', { name: 'Enable' }).click();
    await row.getByText('in use').waitFor();
    await row.getByRole('button', { name: 'Delete' }).click();
    const dialog = page.getByRole('dialog', { name: 'Delete this key?' });
    await expect.poll(() => dialog.innerText()).toContain('nightly job');
    await dialog.getByRole('button', { name: 'Delete nightly job' }).click();
    await row.waitFor({ state: 'detached' });
    expect(faults).toEqual([]);
    await page.context().close();
  });

  test('usage: a metric by two dimensions, one value alone, the previous period, and a file without formulas', async () => {
    const hostile = {
      model: 'sandbox/echo',
      metadata: { tags: '=HYPERLINK(1)' },
      messages: [{ role: 'user', content: 'x' }],
    };
    await send(hostile);
    const { page, faults } = await open.visit();
    await page.getByRole('link', { name: 'Usage' }).first().click();
    await page.getByLabel('Metric').selectOption('request_count');
    await page.getByLabel('And by').selectOption('tag');
    await page.getByLabel('Compare with the period before').check();
    await page.getByRole('columnheader', { name: 'Before' }).waitFor();
    await page.waitForURL(/metric=request_count.*by2=tag.*compare=on/);
    const saved = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Download CSV' }).click();
    const text = await readFile(await (await saved).path(), 'utf8');
    expect(text.split('\r\n')[0]).toBe('date__day,model,tag,request_count');
    expect(text).toContain(`,'=HYPERLINK(1),`);
    await page.getByRole('button', { name: 'sandbox/story' }).first().focus();
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: /Model: sandbox\/story/ }).waitFor();
    await page.waitForURL(/model=sandbox%2Fstory/);
    const total = page.locator('dl.figures dd').first();
    await expect.poll(() => total.innerText()).toBe('1');
    await page.getByRole('button', { name: 'Values by day' }).click();
    await page.getByRole('region', { name: 'Values by day' }).waitFor();
    expect(faults).toEqual([]);
    await page.context().close();
  });

  test('models by keyboard: search, open, try; the playground answers on two models and states the cost', async () => {
    const { page, faults } = await open.visit();
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox', { name: 'Page, action or model' }).waitFor();
    await page.keyboard.type('models');
    await page.keyboard.press('Enter');
    await page.getByRole('searchbox').focus();
    await page.keyboard.type('sandbox/story');
    await page.waitForURL(/q=sandbox/);
    await page.getByRole('link', { name: 'Sandbox story' }).first().focus();
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Endpoints' }).waitFor();
    await page.getByRole('link', { name: 'Try it' }).focus();
    await page.keyboard.press('Enter');
    await page.getByLabel('Compare with').focus();
    await page.keyboard.type('sandbox/echo');
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Remove sandbox/echo' }).waitFor();
    await page.getByRole('button', { name: 'Make a $1 key' }).focus();
    await page.keyboard.press('Enter');
    await page.getByText('expires in an hour').waitFor();
    await page.getByLabel('Prompt', { exact: true }).focus();
    await page.keyboard.type('Say this again');
    await page.keyboard.press('Control+Enter');
    const echo = page.getByRole('region', { name: 'Answer of sandbox/echo' });
    await echo.getByText('tokens').waitFor();
    await expect.poll(() => echo.innerText()).toContain('Say this again');
    await expect.poll(() => echo.innerText()).toMatch(/\$0\.0000\d+/);
    await page.getByRole('region', { name: 'Answer of sandbox/story' }).getByText('tokens').waitFor();
    await page.getByRole('button', { name: 'Code' }).click();
    await expect
      .poll(() => page.getByRole('group', { name: 'Request: curl' }).innerText())
      .toContain('"content": "Say this again"');
    expect(faults).toEqual([]);
    await page.context().close();
  });

  test('workspaces and audit: a workspace with a budget is made, and the audit shows who made it', async () => {
    const { page, faults } = await open.visit();
    await page.getByRole('link', { name: 'Workspaces' }).first().click();
    await page.getByRole('button', { name: 'Create workspace' }).click();
    await page.getByLabel('Name').fill('Research Lab');
    await expect.poll(() => page.getByLabel('Slug').inputValue()).toBe('research-lab');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Research Lab' }).waitFor();
    await page.getByLabel('Limit in USD').fill('250');
    await page.getByRole('button', { name: 'Set budget' }).click();
    await page.getByRole('img', { name: '$0.00 spent, $0.00 held, $250.00 left of $250.00 a month' }).waitFor();
    await page.getByRole('link', { name: 'Audit' }).first().click();
    await page.getByText('Research Lab').first().click();
    await page.locator('details[open]').getByText('the console or a page').waitFor();
    expect(faults).toEqual([]);
    await page.context().close();
  });

  test('credentials by mouse: add, test, disable, delete after the dialog has named it; the secret is on no page', async () => {
    const { page, faults } = await open.visit();
    await page.getByRole('link', { name: 'Credentials' }).first().click();
    await page.getByRole('button', { name: 'Test Sandbox', exact: true }).click();
    await page
      .getByRole('row', { name: /^Sandbox sandbox / })
      .getByRole('status')
      .getByText(/works|not known|refused/)
      .waitFor();
    await page.getByRole('button', { name: 'Add a credential' }).click();
    await page.getByLabel('Credential', { exact: true }).fill('sk-planted-0123456789abcdef');
    await page.getByLabel('Name').fill(HOSTILE.slice(0, 40));
    await page.getByRole('button', { name: 'Store the credential' }).click();
    const row = page.getByRole('row', { name: /<img src=x/ });
    await row.getByText('in use').waitFor();
    expect(await page.content()).not.toContain('planted');
    await expect.poll(() => page.locator('main img').count()).toBe(0);
    await row.getByRole('button', { name: 'Disable' }).click();
    await row.getByText('disabled').waitFor();
    await row.getByRole('button', { name: 'Delete' }).click();
    const dialog = page.getByRole('dialog', { name: 'Delete this credential?' });
    await expect.poll(() => dialog.innerText()).toContain('<img src=x');
    await dialog.getByRole('button', { name: /^Delete/ }).click();
    await row.waitFor({ state: 'detached' });
    expect(faults).toEqual([]);
    await page.context().close();
  });

  test('the ledger is verified, and a setting is searched, by keyboard', async () => {
    const { page, faults } = await open.visit();
    const goTo = async (name: string) => {
      await page.keyboard.press('Control+k');
      await page.getByRole('combobox', { name: 'Page, action or model' }).waitFor();
      await page.keyboard.type(name);
      await page.keyboard.press('Enter');
      await page.getByRole('heading', { name, level: 1 }).waitFor();
    };
    await goTo('Ledger');
    await page.getByRole('button', { name: 'Verify the ledger' }).focus();
    await page.keyboard.press('Enter');
    await page.getByText('all sums agree').waitFor();
    await goTo('System');
    await page.getByLabel('Search settings').focus();
    await page.keyboard.type('GATEWAY_MANAGEMENT_KEY');
    await page
      .getByRole('row', { name: /GATEWAY_MANAGEMENT_KEY/ })
      .getByText('set', { exact: true })
      .waitFor();
    expect(await page.content()).not.toContain(open.gateway.management_key);
    expect(faults).toEqual([]);
    await page.context().close();
  });

  test('a member sees no page of administrators, and only its own keys', async () => {
    const { page, faults } = await open.visit({ member: { email: 'member@example.com', role: 'member' } });
    await expect.poll(() => page.getByRole('link', { name: 'Audit' }).count()).toBe(0);
    await page.getByRole('link', { name: 'Keys' }).first().click();
    await page.getByText('No key yet').waitFor();
    await page.getByRole('link', { name: 'Workspaces' }).first().click();
    await page.getByRole('heading', { name: 'Members', exact: true }).waitFor();
    expect(faults).toEqual([]);
    await page.context().close();
  });

  test('times, money and theme follow the person’s choice, and stay chosen; sign-out everywhere ends other browsers', async () => {
    const who = { member: { email: 'two@example.com', role: 'admin' } as const };
    const [{ page }, other] = [await open.visit(who), await open.visit(who)];
    await page.getByRole('button', { name: 'two@example.com' }).click();
    await page.getByRole('button', { name: 'To the nano-dollar' }).click();
    await page.getByRole('button', { name: 'Dark' }).click();
    await page.keyboard.press('Escape');
    await expect.poll(() => page.locator('.figures').first().innerText()).toMatch(/\$0\.\d{9}/);
    await page.reload();
    await page.locator('.figures').first().waitFor();
    await expect.poll(() => page.locator('.figures').first().innerText()).toMatch(/\$0\.\d{9}/);
    expect(await page.evaluate('document.documentElement.dataset.theme')).toBe('dark');
    await page.getByRole('button', { name: 'two@example.com' }).click();
    await page.getByRole('button', { name: 'Sign out everywhere' }).click();
    await page.getByLabel('Management key').waitFor();
    await other.page.goto(`${open.gateway.url}/keys`);
    await other.page.getByLabel('Management key').waitFor();
    expect(other.page.url()).toContain('return_to=%2Fkeys');
    await page.context().close();
    await other.page.context().close();
  });

  test('behind a proxy below a path, sign-in, pages, files and requests work', async () => {
    const upstream = new URL(open.gateway.url);
    const proxy: Server = createServer((from, to) => {
      if (!from.url?.startsWith('/ai/')) return void to.writeHead(418).end();
      const { method, headers } = from;
      const passed = httpRequest(
        { host: upstream.hostname, port: upstream.port, path: from.url.slice(3), method, headers },
        (answer) => {
          to.writeHead(answer.statusCode ?? 500, answer.headers);
          answer.pipe(to);
        },
      );
      from.pipe(passed);
    }).listen(0, '127.0.0.1');
    await new Promise((resolve) => proxy.once('listening', resolve));
    const { port } = proxy.address() as { port: number };
    const context = await open.browser.newContext();
    const page = await context.newPage();
    const refused: string[] = [];
    page.on('response', (answer) => void (answer.status() === 418 && refused.push(answer.url())));
    const { path } = await signInLink(open.gateway);
    await page.goto(`http://127.0.0.1:${port}/ai${path}`);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    await page.getByRole('link', { name: 'Keys' }).first().click();
    await page.getByRole('button', { name: 'Create key' }).waitFor();
    expect(page.url()).toBe(`http://127.0.0.1:${port}/ai/keys`);
    await page.reload();
    await page.getByRole('row', { name: /test/ }).waitFor();
    expect(refused).toEqual([]);
    await context.close();
    proxy.close();
    proxy.closeAllConnections();
  });

  test('keys: the page opens on the workspace with the most calls, then on the one that was chosen last', async () => {
    const made = (await manage('POST', '/workspaces', { name: 'Busy', slug: 'busy' })).data as { id: string };
    const { management_key, base_url } = open.gateway;
    const headers = { authorization: `Bearer ${management_key}`, 'content-type': 'application/json' };
    const body = JSON.stringify({ name: 'busy key', workspace_id: made.id });
    const { key } = (await (await fetch(`${base_url}/keys`, { method: 'POST', headers, body })).json()) as {
      key: string;
    };
    for (let calls = 0; calls < 12; calls += 1) {
      const call = { model: 'sandbox/echo', messages: [{ role: 'user', content: 'hello' }] };
      await send(call, { authorization: `Bearer ${key}` });
    }
    const { page, faults } = await open.visit();
    await page.getByRole('link', { name: 'Keys' }).first().click();
    await page.getByRole('row', { name: /busy key/ }).waitFor();
    await page.getByLabel('Workspace').selectOption({ label: 'Default' });
    await page.getByRole('row', { name: /test/ }).first().waitFor();
    await page.getByRole('link', { name: 'Models' }).first().click();
    await page.getByRole('link', { name: 'Keys' }).first().click();
    await page.getByRole('row', { name: /test/ }).first().waitFor();
    expect(new URL(page.url()).search).toBe('');
    expect(faults).toEqual([]);
    await page.context().close();
  });
});
