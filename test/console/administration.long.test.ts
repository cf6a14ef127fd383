import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findings } from './accessibility.ts';
import { arrive, BROWSER, type ConsoleBrowser, loaded, SLOW, startConsole } from './browser.ts';

/** More workspaces than a part of the list shows. */
const WORKSPACES = 27;

describe.skipIf(BROWSER === undefined)('changes of workspaces, people, keys and guardrails', SLOW, () => {
  let open: ConsoleBrowser;
  const workspaces: string[] = [];
  beforeAll(async () => {
    open = await startConsole();
    for (let number = 1; number <= WORKSPACES; number += 1) {
      const body = { name: `Team ${number}`, slug: `team-${number}` };
      workspaces.push((await manage('POST', '/workspaces', body)).data.id);
    }
  }, SLOW.timeout);
  afterAll(() => open.stop());

  async function manage(method: string, path: string, body?: object) {
    const { management_key, base_url } = open.gateway;
    const headers = { authorization: `Bearer ${management_key}`, 'content-type': 'application/json' };
    const init = { method, headers, ...(body ? { body: JSON.stringify(body) } : {}) };
    const answer = await fetch(`${base_url}${path}`, init);
    return { status: answer.status, ...((await answer.json()) as { data: { id: string; hash: string }; key: string }) };
  }

  test('a link opens its workspace from any part of the list; it is changed, and deleted after the dialog has named its contents', async () => {
    const last = workspaces.at(-1) as string;
    const { data: key } = await manage('POST', '/keys', { name: 'of the last team', workspace_id: last });
    await manage('POST', '/guardrails', { name: 'rule of the last team', workspace_id: last });
    const { page, faults } = await open.visit();
    await arrive(page, `${open.gateway.url}/workspaces?id=${last}`);
    await page.getByRole('heading', { name: `Team ${WORKSPACES}` }).waitFor();
    await page.getByRole('button', { name: 'Next' }).click();
    const choices = page.getByRole('list', { name: 'Workspaces' });
    await choices.getByRole('link', { name: `team-${WORKSPACES}` }).click();
    await page.getByRole('heading', { name: `Team ${WORKSPACES}` }).waitFor();
    // The list still shows the part of the chosen workspace.
    await choices.getByRole('link', { name: `team-${WORKSPACES}` }).waitFor();

    await page.getByRole('button', { name: 'Change', exact: true }).click();
    const form = page.getByRole('dialog', { name: 'Change the workspace' });
    await form.getByLabel('Name').fill('The last team');
    await form.getByLabel('Description').fill('Soon gone.');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'The last team' }).waitFor();
    await page.getByText('Soon gone.').waitFor();

    const remove = page.getByRole('button', { name: 'Delete', exact: true });
    await remove.click();
    const question = page.getByRole('dialog', { name: 'Delete this workspace?' });
    await question.getByText('of the last team', { exact: true }).waitFor();
    await question.getByText('rule of the last team').waitFor();
    expect(await findings(page)).toEqual([]);
    await question.getByRole('button', { name: 'Delete The last team' }).click();
    await question.getByRole('alert').getByText('active API key').waitFor();
    await manage('PATCH', `/keys/${key.hash}`, { disabled: true });
    await question.getByRole('button', { name: 'Delete The last team' }).click();
    await question.waitFor({ state: 'detached' });
    expect((await manage('GET', `/workspaces/${last}`)).status).toBe(404);
    // The browser reports the refusal too.
    expect(faults.filter((fault) => !fault.includes('status of 400'))).toEqual([]);
    await page.context().close();
  });

  test('a person is removed after the dialog has named them, and another one takes over the keys', async () => {
    const leaver = await open.visit({ member: { email: 'leaver@example.com', role: 'member' } });
    await leaver.page.goto(`${open.gateway.url}/keys?new=1`);
    await leaver.page.getByLabel('Name').fill('of the leaver');
    await leaver.page.keyboard.press('Enter');
    await leaver.page.getByRole('button', { name: 'I have stored it' }).click();
    await leaver.page.context().close();
    const heir = await open.visit({ member: { email: 'heir@example.com', role: 'member' } });
    const { page, faults } = await open.visit();
    await arrive(page, `${open.gateway.url}/workspaces`);
    await page.getByRole('button', { name: 'Remove leaver@example.com from the organization' }).click();
    const question = page.getByRole('dialog', { name: 'Remove this person?' });
    await question.getByLabel('Their keys').selectOption({ label: 'stay enabled and belong to heir@example.com' });
    await question.getByRole('button', { name: 'Remove leaver@example.com' }).click();
    await page.getByText('Removed, 1 key handed over.').waitFor();
    await question.waitFor({ state: 'detached' });
    await arrive(heir.page, `${open.gateway.url}/keys`);
    await heir.page.getByRole('link', { name: 'of the leaver' }).waitFor();
    expect({ faults, heirs: heir.faults }).toEqual({ faults: [], heirs: [] });
    await heir.page.context().close();
    await page.context().close();
  });

  test('the list of keys shows what is held of a limit, and the page of a key changes, disables and deletes it', async () => {
    const made = await manage('POST', '/keys', { name: 'nightly', limit: 4, limit_reset: 'daily' });
    const { page, faults } = await open.visit();
    await page.goto(`${open.gateway.url}/keys`);
    await page.getByRole('img', { name: '$0.00 spent, $0.00 held, $4.00 left of $4.00 a day' }).waitFor();
    await page.getByRole('link', { name: 'nightly' }).click();
    await page.getByRole('button', { name: 'Change', exact: true }).click();
    const form = page.getByRole('dialog', { name: 'Change the key' });
    await form.getByLabel('Limit in USD').fill('6');
    await form.getByLabel('What calls cost at own provider accounts counts as well').check();
    await form.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('img', { name: /\$6\.00 left of \$6\.00 a day/ }).waitFor();
    const { data } = (await manage('GET', `/keys/${made.data.hash}`)) as unknown as { data: object };
    expect(data).toMatchObject({ limit: 6, include_byok_in_limit: true });
    await page.getByRole('button', { name: 'Disable' }).click();
    await page.getByRole('button', { name: 'Enable' }).waitFor();
    await page.getByText('The next call receives 401').waitFor();
    await page.getByRole('button', { name: 'Delete', exact: true }).click();
    await page
      .getByRole('dialog', { name: 'Delete this key?' })
      .getByRole('button', { name: 'Delete nightly' })
      .click();
    await page.getByRole('heading', { name: 'Keys' }).waitFor();
    await loaded(page);
    expect(await page.getByRole('link', { name: 'nightly' }).count()).toBe(0);
    expect(faults).toEqual([]);
    await page.context().close();
  });

  test('a guardrail is removed from a key after the dialog has named it, and the audit lists the events of one resource or person', async () => {
    const { data: guardrail } = await manage('POST', '/guardrails', {
      name: 'No story',
      ignored_models: ['sandbox/story'],
    });
    const { data: key } = await manage('POST', '/keys', { name: 'guarded' });
    await manage('POST', `/guardrails/${guardrail.id}/assignments/keys`, { key_hashes: [key.hash] });
    const { page, faults } = await open.visit();
    await arrive(page, `${open.gateway.url}/guardrails?id=${guardrail.id}`);
    const remove = page.getByRole('button', { name: 'Remove from the key guarded' });
    await remove.click();
    const question = page.getByRole('dialog', { name: 'Remove the guardrail from it?' });
    await question.getByRole('button', { name: 'Keep it' }).click();
    await question.waitFor({ state: 'detached' });
    await remove.click();
    await question.getByText('no longer under the rules of No story').waitFor();
    await question.getByRole('button', { name: 'Remove from guarded' }).click();
    await page.getByText('Nobody yet').waitFor();

    await arrive(page, `${open.gateway.url}/audit?type=guardrail`);
    const rows = page.locator('.events > li');
    await page.locator('.events summary').filter({ hasText: 'No story' }).first().click();
    await page.getByRole('link', { name: 'All its events' }).click();
    await page.getByRole('button', { name: 'One resource' }).waitFor();
    await loaded(page);
    await expect.poll(() => rows.count()).toBe(1);
    await page.getByRole('button', { name: 'One resource' }).click();
    await page.getByLabel('Resource').selectOption('retention');
    await page.getByText('No event matches').waitFor();
    await page.getByRole('button', { name: 'Show all events' }).click();
    await page.getByLabel('By', { exact: true }).selectOption({ label: 'heir@example.com' });
    await expect
      .poll(() => rows.allTextContents().then((all) => all.every((text) => text.includes('by heir'))))
      .toBe(true);
    expect(faults).toEqual([]);
    await page.context().close();
  });
});
