import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { findings } from './accessibility.ts';
import { arrive, BROWSER, type ConsoleBrowser, loaded, SLOW, startConsole } from './browser.ts';

const HOSTILE = `<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>"'&{{x}}\u202e`;
/** Also without a place where a line may break. */
const LONG = `${HOSTILE}${'W'.repeat(100)}`;

describe.skipIf(BROWSER === undefined)('the pages of guardrails, budgets, routing and one key', SLOW, () => {
  let open: ConsoleBrowser;
  let key: { hash: string };
  let guardrail: { id: string };
  let workspace: { id: string };
  beforeAll(async () => {
    open = await startConsole();
    key = (await manage('POST', '/keys', { name: LONG, limit: 5, limit_reset: 'daily' })).data;
    guardrail = (
      await manage('POST', '/guardrails', {
        name: LONG,
        description: LONG,
        limit_usd: 20,
        reset_interval: 'weekly',
        ignored_models: ['sandbox/think'],
        content_filters: [{ pattern: 'codename-[0-9]+', action: 'block', label: HOSTILE.slice(0, 90) }],
        content_filter_builtins: [{ slug: 'email', action: 'redact', label: HOSTILE.slice(0, 90) }],
      })
    ).data;
    await manage('POST', `/guardrails/${guardrail.id}/assignments/keys`, { key_hashes: [key.hash] });
    workspace = (await manage('POST', '/workspaces', { name: 'W'.repeat(100), slug: 'hostile', description: LONG }))
      .data;
    await manage('POST', '/workspaces', { name: 'Research', slug: 'research' });
  }, SLOW.timeout);
  afterAll(() => open.stop());

  async function manage(method: string, path: string, body?: object) {
    const { management_key, base_url } = open.gateway;
    const headers = { authorization: `Bearer ${management_key}`, 'content-type': 'application/json' };
    const init = { method, headers, ...(body ? { body: JSON.stringify(body) } : {}) };
    return (await (await fetch(`${base_url}${path}`, init)).json()) as {
      data: { id: string; hash: string } & Record<string, unknown>;
      key: string;
    };
  }

  const pages = () => [
    'guardrails',
    'guardrails?new=1',
    `guardrails?id=${guardrail.id}`,
    `workspaces?id=${workspace.id}`,
    'budgets',
    `budgets?key=${key.hash}`,
    `keys?id=${key.hash}`,
    'routing',
    `routing?key=${key.hash}&model=sandbox%2Fecho`,
  ];

  test.each([
    [1_440, 'light'],
    [1_440, 'dark'],
    [360, 'light'],
    [360, 'dark'],
  ] as const)(
    'no page at %d px, %s, has an axe finding, an error, a foreign request, is too wide, or runs a hostile name',
    async (width, colorScheme) => {
      const { page, faults, foreign } = await open.visit({ colorScheme, viewport: { width, height: 800 } });
      for (const path of pages()) {
        await arrive(page, `${open.gateway.url}/${path}`);
        if (path.startsWith('routing?')) {
          await page.getByRole('button', { name: 'Explain' }).click();
          await page.getByRole('heading', { name: 'Funnel' }).waitFor();
        }
        if (path.startsWith('guardrails?id')) {
          await page.getByRole('heading', { name: 'Applies to' }).waitFor();
          await page.getByRole('button', { name: 'Test', exact: true }).click();
          await page.getByText('Passes with redacted text').waitFor();
        }
        await page.evaluate('for (const one of document.querySelectorAll("details")) one.open = true');
        expect([path, await findings(page)]).toEqual([path, []]);
        expect([path, await page.evaluate('document.documentElement.scrollWidth - innerWidth')]).toEqual([path, 0]);
        expect([path, await page.evaluate('window.hacked ?? "no"')]).toEqual([path, 'no']);
        await expect.poll(() => page.locator('main img, main script').count()).toBe(0);
      }
      expect({ faults, foreign }).toEqual({ faults: [], foreign: [] });
      await page.context().close();
    },
  );

  test("by mouse a model is forbidden for one team, the draft is tested first, and the team's key is refused", async () => {
    const { page, faults } = await open.visit();
    await page.getByRole('link', { name: 'Guardrails' }).first().click();
    await page.getByRole('button', { name: 'Create guardrail' }).click();
    const dialog = page.getByRole('dialog', { name: 'Create a guardrail' });
    await dialog.getByLabel('Name').first().fill('No story');
    await dialog.getByLabel('Forbidden models', { exact: true }).fill('sandbox/story');
    await dialog.getByRole('button', { name: 'Add to Forbidden models' }).click();
    // A name that was written and not added counts as well.
    await dialog.getByLabel('Forbidden models', { exact: true }).fill('sandbox/think');
    await dialog.getByRole('button', { name: 'Test this draft' }).click();
    const bench = page.getByRole('dialog', { name: 'Test the draft' });
    await bench.getByRole('button', { name: 'A request' }).click();
    const request = { model: 'sandbox/story', messages: [{ role: 'user', content: 'Hello' }] };
    await bench.getByLabel('Body of the request, JSON').fill(JSON.stringify(request));
    await bench.getByRole('button', { name: 'Test', exact: true }).click();
    await bench.getByText('model-ignored-by-guardrail').first().waitFor();
    await bench.getByRole('button', { name: 'Close' }).click();
    await dialog.getByRole('button', { name: 'Create guardrail' }).click();
    await page.getByRole('heading', { name: 'No story' }).waitFor();
    await page.getByText('Forbids models: sandbox/story, sandbox/think').waitFor();
    await page.getByText('Nobody yet').waitFor();
    await page.getByLabel('A workspace (team)').selectOption({ label: 'Research' });
    await page.getByRole('button', { name: 'Apply to workspace' }).click();
    await page.getByRole('button', { name: 'Remove from the workspace Research' }).waitFor();
    const research = ((await manage('GET', '/workspaces')).data as unknown as { id: string; slug: string }[]).find(
      ({ slug }) => slug === 'research',
    );
    const made = await manage('POST', '/keys', { name: 'of research', workspace_id: research?.id });
    const refused = await open.gateway.call('POST', '/chat/completions', request, {
      authorization: `Bearer ${made.key}`,
    });
    expect(refused.status).toBe(403);
    await page.goto(`${open.gateway.url}/routing?key=${made.data.hash}&model=sandbox%2Fstory`);
    await page.getByRole('button', { name: 'Explain' }).click();
    await page.getByText('The client would receive 403').waitFor();
    await page.goto(`${open.gateway.url}/keys?id=${made.data.hash}`);
    await page.getByRole('link', { name: 'No story' }).click();
    await page.getByRole('button', { name: 'Remove from the workspace Research' }).waitFor();
    await page.getByRole('button', { name: 'Delete', exact: true }).click();
    const question = page.getByRole('dialog', { name: 'Delete this guardrail?' });
    await question.getByText('the workspace Research').waitFor();
    await question.getByRole('button', { name: 'Delete No story' }).click();
    await page.getByRole('heading', { name: 'Guardrails', exact: true }).waitFor();
    await loaded(page);
    await expect.poll(() => page.getByRole('link', { name: 'No story' }).count()).toBe(0);
    const allowed = await open.gateway.call('POST', '/chat/completions', request, {
      authorization: `Bearer ${made.key}`,
    });
    expect(allowed.status).toBe(200);
    await allowed.text();
    expect(faults).toEqual([]);
    await page.context().close();
  });

  test('by keyboard a guardrail is changed: every field that was filled is stored, and an emptied one is removed', async () => {
    const { data } = await manage('POST', '/guardrails', { name: 'Plain', ignored_models: ['sandbox/think'] });
    const { page, faults } = await open.visit();
    await page.goto(`${open.gateway.url}/guardrails?id=${data.id}`);
    await page.getByRole('button', { name: 'Change' }).focus();
    await page.keyboard.press('Enter');
    const dialog = page.getByRole('dialog', { name: 'Change the guardrail' });
    const press = async (name: string) => {
      await dialog.getByRole('button', { name }).focus();
      await page.keyboard.press('Enter');
    };
    const write = async (label: string, text: string) => {
      await dialog.getByLabel(label, { exact: true }).focus();
      await page.keyboard.type(text);
    };
    await press('Remove sandbox/think from Forbidden models');
    await write('Description', 'By keyboard');
    await write('Allowed providers', 'sandbox');
    await page.keyboard.press('Enter');
    for (const title of ['Spending limit', 'Zero data retention', 'Content filters']) {
      await dialog.locator('summary', { hasText: title }).focus();
      await page.keyboard.press('Enter');
    }
    await write('Limit in USD', '12.5');
    await dialog.getByRole('combobox', { name: 'Reset' }).focus();
    await page.keyboard.type('monthly');
    for (const label of ['Count usage of own provider accounts', 'xAI', 'Filter answers too']) {
      await dialog.getByLabel(label).focus();
      await page.keyboard.press('Space');
    }
    await dialog.getByLabel('Action for Email addresses').focus();
    await page.keyboard.type('Block');
    await press('Add a pattern');
    await write('Pattern 1', 'secret-[0-9]+');
    await write('Label of pattern 1', 'SECRET');
    await press('Save');
    await dialog.waitFor({ state: 'detached' });
    expect((await manage('GET', `/guardrails/${data.id}`)).data).toMatchObject({
      name: 'Plain',
      description: 'By keyboard',
      ignored_models: null,
      allowed_models: null,
      allowed_providers: ['sandbox'],
      limit_usd: 12.5,
      reset_interval: 'monthly',
      include_byok_in_budgets: true,
      enforce_zdr_xai: true,
      enforce_zdr_openai: false,
      content_filter_builtins: [{ slug: 'email', action: 'block' }],
      content_filters: [{ pattern: 'secret-[0-9]+', action: 'redact', label: 'SECRET' }],
      content_filter_output: true,
      content_filter_reversible: false,
    });
    await manage('DELETE', `/guardrails/${data.id}`);
    expect(faults).toEqual([]);
    await page.context().close();
  });

  test('the budgets page says what blocks a key and shows the sum that the API states, and the limit that refuses', async () => {
    const { data, key: secret } = await manage('POST', '/keys', { name: 'spender', limit: 1, limit_reset: 'daily' });
    const body = { model: 'sandbox/story', messages: [{ role: 'user', content: 'hello' }], max_tokens: 50 };
    const authorization = `Bearer ${secret}`;
    const answer = await open.gateway.call('POST', '/chat/completions', body, { authorization });
    const { cost } = ((await answer.json()) as { usage: { cost: number } }).usage;
    // A limit counts the held amount until the call is settled, and a page does not load again by itself.
    const spent = await vi.waitFor(
      async () => {
        const { limits } = (await manage('GET', `/keys/${data.hash}/policy`)).data as unknown as {
          limits: { spent: number; held: number }[];
        };
        expect(limits[0]).toMatchObject({ spent: cost, held: 0 });
        return cost;
      },
      { timeout: 60_000, interval: 50 },
    );
    expect(spent).toBeGreaterThan(0);
    const { page, faults } = await open.visit();
    await page.getByRole('link', { name: 'Budgets' }).first().click();
    // The page begins with the workspace of most calls, which depends on what is already counted.
    const blocks = page.locator('section', { hasText: 'What blocks this key now?' });
    await blocks.getByRole('combobox', { name: 'Workspace' }).selectOption(String(data['workspace_id']));
    await page.getByRole('combobox', { name: 'Key' }).selectOption(data.hash);
    await page.getByText('not blocked').waitFor();
    await page
      .locator('.limits')
      .getByTitle(`$${spent.toFixed(9)}`)
      .waitFor();
    await page.getByLabel('Set by').selectOption('key');
    await page
      .getByRole('row', { name: /spender/ })
      .getByTitle(`$${spent.toFixed(9)}`)
      .waitFor();
    await manage('PATCH', `/keys/${data.hash}`, { limit: 0 });
    // A lower limit is in force within a second, and the page does not load again by itself.
    await vi.waitFor(
      async () => {
        const { refusal } = (await manage('GET', `/keys/${data.hash}/policy`)).data;
        expect(refusal).toMatchObject({ code: 402 });
      },
      { timeout: 60_000, interval: 50 },
    );
    await page.getByRole('button', { name: 'Check again' }).click();
    await page.getByText('The next call receives 402').waitFor();
    await page.locator('.limits').getByText('refuses').waitFor();
    expect(faults).toEqual([]);
    await page.context().close();
  });

  test('a member explains a request and reads the policy with only its own keys', async () => {
    const member = { email: 'routing@example.com', role: 'member' } as const;
    const { page, faults } = await open.visit({ member });
    await expect.poll(() => page.getByRole('link', { name: 'Guardrails' }).count()).toBe(0);
    await page.getByRole('link', { name: 'Routing' }).first().click();
    await page.getByText('No key yet').waitFor();
    await page.getByRole('link', { name: 'Create a key' }).click();
    await page.getByLabel('Name').fill('mine');
    await page.getByRole('dialog').getByRole('button', { name: 'Create key' }).click();
    await page.getByRole('button', { name: 'I have stored it' }).click();
    await page.getByRole('link', { name: 'mine' }).click();
    await page.getByText('No guardrail applies').waitFor();
    await page.getByRole('link', { name: 'Explain a request' }).click();
    await page.getByLabel('Model').fill('sandbox/fallback');
    await page.getByLabel('Model').press('Enter');
    await page.getByRole('region', { name: /^Attempt 2/ }).waitFor();
    const [{ length: keys }] = [await page.getByLabel('As a call of the key').locator('option').all()];
    expect(keys).toBe(2);
    expect(faults).toEqual([]);
    await page.context().close();
  });
});
