import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findings } from './accessibility.ts';
import { BROWSER, type ConsoleBrowser, loaded, SLOW, startConsole } from './browser.ts';

const HOSTILE = `<img src=x onerror="window.hacked=1">"'\u202e`;
const FOLDER = process.env['ROTATION_PICTURES'];

describe.skipIf(BROWSER === undefined)('the secrets of a key in the console', SLOW, () => {
  let open: ConsoleBrowser;
  beforeAll(async () => {
    open = await startConsole();
  }, SLOW.timeout);
  afterAll(() => open.stop());

  const makeKey = async (name: string) => {
    const { call, management_key } = open.gateway;
    const answer = await call('POST', '/keys', { name }, { authorization: `Bearer ${management_key}` });
    return (await answer.json()) as { data: { hash: string; label: string }; key: string };
  };
  const statusOf = async (secret: string) =>
    (await open.gateway.call('GET', '/key', undefined, { authorization: `Bearer ${secret}` })).status;

  test('a rotation shows the new secret once, and the old one as valid until it is ended', async () => {
    const { page, faults } = await open.visit();
    const { data, key } = await makeKey(HOSTILE);
    await page.goto(`${open.gateway.url}/keys?id=${data.hash}`);
    await page.getByRole('button', { name: 'Rotate' }).click();
    const dialog = page.getByRole('dialog');
    await expect
      .poll(() => dialog.getByLabel('How long the old secret works').locator('option').allInnerTexts())
      .toEqual(['not at all: it stops now', '1 hour', '24 hours', '7 days']);
    await expect
      .poll(() => dialog.textContent())
      .toMatch(/works until .*; what it spends counts against the same limits/);
    await dialog.getByLabel('How long the old secret works').selectOption('3600');
    await dialog.getByRole('button', { name: /^Rotate / }).click();
    const secret = (await page.getByRole('group', { name: 'Secret' }).textContent()) ?? '';
    expect(secret).toMatch(/^sk-gw-v1-[0-9a-f]{64}$/);
    expect([await statusOf(key), await statusOf(secret)]).toEqual([200, 200]);
    await page.getByRole('button', { name: 'I have stored it' }).click();
    expect(await page.content()).not.toContain(secret);
    const notice = page.getByText(/The old secret .* is valid until/);
    await expect.poll(() => notice.textContent()).toContain(data.label);
    await expect.poll(() => notice.textContent()).toContain('No request has used it since the rotation.');

    await page.getByRole('button', { name: 'Rotate' }).click();
    await dialog.getByLabel('Which old secret').selectOption('previous');
    await expect
      .poll(() => dialog.textContent())
      .toMatch(new RegExp(`${data.label} works until .* stops working at once`, 's'));
    await dialog.getByRole('button', { name: 'Cancel' }).click();

    await page.getByRole('button', { name: 'End it now' }).click();
    await page.getByRole('button', { name: `End ${data.label}` }).click();
    await notice.waitFor({ state: 'detached' });
    expect([await statusOf(key), await statusOf(secret)]).toEqual([401, 200]);
    expect(await page.evaluate('window.hacked ?? "no"')).toBe('no');
    expect(faults).toEqual([]);
    await page.context().close();
  });

  test('without a grace period the dialog says that the old secret stops, and it does', async () => {
    const { page, faults } = await open.visit();
    const { data, key } = await makeKey('leaked');
    await page.goto(`${open.gateway.url}/keys?id=${data.hash}`);
    await page.getByRole('button', { name: 'Rotate' }).press('Enter');
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('How long the old secret works').selectOption('0');
    await expect.poll(() => dialog.textContent()).toContain(`${data.label} stops working at once, on every node.`);
    await dialog.getByRole('button', { name: 'Rotate leaked' }).press('Enter');
    await page.getByText('No older secret works any more.').waitFor();
    expect(await statusOf(key)).toBe(401);
    await page.keyboard.press('Escape');
    await page.getByText(/The secret was replaced/).waitFor();
    expect(faults).toEqual([]);
    await page.context().close();
  });

  test('a member that may not rotate a key sees the reason', async () => {
    const member = { email: 'rotation@example.com', role: 'member' as const };
    const { page } = await open.visit({ member });
    const { user_id } = (await page.evaluate(
      `fetch('api/v1/session').then((answer) => answer.json()).then(({ data }) => data)`,
    )) as {
      user_id: string;
    };
    const { call, management_key } = open.gateway;
    const body = { name: 'granted', creator_user_id: user_id };
    const made = await call('POST', '/keys', body, { authorization: `Bearer ${management_key}` });
    const { data } = (await made.json()) as { data: { hash: string } };
    await page.goto(`${open.gateway.url}/keys?id=${data.hash}`);
    await page.getByRole('button', { name: 'Rotate' }).click();
    await page.getByRole('button', { name: 'Rotate granted' }).click();
    await expect.poll(() => page.getByRole('alert').textContent()).toContain('ask an administrator to rotate it');
    await page.context().close();
  });

  test.each([
    [1_440, 'light'],
    [1_440, 'dark'],
    [360, 'light'],
    [360, 'dark'],
  ] as const)('at %d px, %s, page and dialogs have no axe finding and fit', async (width, colorScheme) => {
    const { page } = await open.visit({ colorScheme, viewport: { width, height: 800 } });
    const { data } = await makeKey('nightly job');
    const check = async (name: string) => {
      if (FOLDER !== undefined) await page.screenshot({ path: `${FOLDER}/${name}-${width}-${colorScheme}.png` });
      expect([name, await findings(page)]).toEqual([name, []]);
      expect([name, await page.evaluate('document.documentElement.scrollWidth - innerWidth')]).toEqual([name, 0]);
    };
    await page.goto(`${open.gateway.url}/keys?id=${data.hash}`);
    await page.getByRole('button', { name: 'Rotate' }).click();
    await check('rotate');
    await page.getByRole('button', { name: 'Rotate nightly job' }).click();
    await page.getByRole('button', { name: 'I have stored it' }).waitFor();
    await check('secret');
    await page.getByRole('button', { name: 'I have stored it' }).click();
    await page.getByRole('button', { name: 'End it now' }).waitFor();
    await loaded(page);
    await check('page');
    await page.getByRole('button', { name: 'Rotate' }).click();
    await page.getByLabel('Which old secret').selectOption('current');
    await check('rotate-again');
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'End it now' }).click();
    await check('end');
    await page.keyboard.press('Escape');
    await page.goto(`${open.gateway.url}/keys`);
    await page
      .getByText(/old secret until/)
      .first()
      .waitFor();
    await check('list');
    await page.context().close();
  });
});
