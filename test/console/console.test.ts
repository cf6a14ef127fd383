import { afterAll, beforeAll, expect, test } from 'vitest';
import { findings } from './accessibility.ts';
import { BROWSER, type ConsoleBrowser, startConsole } from './browser.ts';

let open: ConsoleBrowser;
beforeAll(async () => {
  if (BROWSER !== undefined) open = await startConsole();
});
afterAll(() => open?.stop());

test.skipIf(BROWSER === undefined)(
  'a person signs in by a link, makes a key by keyboard, and calls a model with it, without errors or foreign requests',
  async () => {
    const { page, faults, foreign } = await open.visit();
    await page.keyboard.press('/');
    await page.keyboard.type('create a key');
    await page.keyboard.press('Enter');
    await page.getByRole('dialog', { name: 'Create a key' }).waitFor();
    await page.keyboard.type('laptop');
    await page.keyboard.press('Enter');
    const secret = await page.getByRole('group', { name: 'Secret' }).innerText();
    expect(secret).toMatch(/^sk-gw-v1-[0-9a-f]{64}$/);
    expect(await findings(page)).toEqual([]);
    await page.keyboard.press('Escape');
    await page.getByRole('row', { name: /laptop/ }).waitFor();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    expect(await page.content()).not.toContain(secret);
    const answer = await open.gateway.call(
      'POST',
      '/chat/completions',
      { model: 'sandbox/echo', messages: [{ role: 'user', content: 'hello' }] },
      { authorization: `Bearer ${secret}` },
    );
    expect(answer.status).toBe(200);
    expect({ faults, foreign }).toEqual({ faults: [], foreign: [] });
  },
);
