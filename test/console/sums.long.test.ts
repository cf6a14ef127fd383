import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { GenerationRow } from '../../src/schemas/generation-list.ts';
import { arrive, BROWSER, type ConsoleBrowser, SLOW, startConsole } from './browser.ts';

const CALLS = 1_000;
const AT_ONCE = 8;
const CORRECTED = 25;
const MODELS = [
  'echo',
  'story',
  'tools',
  'think',
  'fallback',
  'fail-503',
  'fail-late',
  'fail-mid-stream',
  'no-usage',
  'truncate',
];
const TAGS = ['night', 'batch', 'a%b', 'x_y', '=SUM(1)'];
const APPS = ['Desk', 'Support "bot"', undefined];

type Nano = number;
const nano = (usd: number | null | undefined): Nano => Math.round((usd ?? 0) * 1e9);
/** The exact amount in the title of an amount. */
const nanoOf = (title: string): Nano => nano(Number(title.replaceAll(/[$,]/g, '').replace('−', '-')));

/** A sequence of numbers from 0 to 1 that is the same at each run (Lehmer). */
function createChance(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 48_271) % 2_147_483_647;
    return state / 2_147_483_647;
  };
}

/** What a call adds to each metric of usage. */
const ADDED: Record<string, (row: GenerationRow) => number> = {
  credits_usage: (row) => nano(row.total_cost),
  byok_usage: (row) => nano(row.upstream_inference_cost),
  total_usage: (row) => nano(row.total_cost) + nano(row.upstream_inference_cost),
  request_count: () => 1,
  error_count: () => 1,
  tokens_total: (row) => (row.tokens_prompt ?? 0) + (row.tokens_completion ?? 0),
  cached_tokens: (row) => row.tokens_cached ?? 0,
};
const MONEY = ['credits_usage', 'byok_usage', 'total_usage'];

interface Linked {
  page: string;
  text: string;
  title: string | null;
  href: string;
}

describe.skipIf(BROWSER === undefined)('sums on pages', SLOW, () => {
  let open: ConsoleBrowser;
  const keys: { hash: string; key: string }[] = [];
  const ids: (string | null)[] = [];
  const chance = createChance(20_261_123);
  const one = <T>(of: readonly T[]): T => of[Math.floor(chance() * of.length)] as T;

  const manage = async <T = never>(method: string, path: string, body?: object): Promise<T> => {
    const { management_key, base_url } = open.gateway;
    const answer = await fetch(`${base_url}${path}`, {
      method,
      headers: { authorization: `Bearer ${management_key}`, ...(body && { 'content-type': 'application/json' }) },
      ...(body && { body: JSON.stringify(body) }),
    });
    expect([path, answer.status < 300]).toEqual([path, true]);
    return (await answer.json()) as T;
  };

  async function send(index: number): Promise<void> {
    const { key } = one(keys);
    const text = `call ${index} of ${'words '.repeat(Math.floor(chance() * 30))} ${chance() < 0.2 ? 'ada@example.com' : ''}`;
    const stream = chance() < 0.6;
    const isCut = stream && chance() < 0.15;
    // Only a slow answer is still in progress when its client disconnects.
    const model = `sandbox/${isCut ? 'slow' : one(MODELS)}`;
    const title = one(APPS);
    const tags = TAGS.filter(() => chance() < 0.2);
    const headers = {
      authorization: `Bearer ${key}`,
      ...(title === undefined ? {} : { 'x-title': title }),
      ...(tags.length === 0 ? {} : { 'x-gateway-tags': tags.join(',') }),
    };
    const shared = { model, stream, ...(chance() < 0.3 ? { session_id: `run ${index % 7}` } : {}) };
    const tools =
      model === 'sandbox/tools' ? { tools: [{ type: 'function', function: { name: 'look', parameters: {} } }] } : {};
    const messages = [{ role: 'user', content: text }];
    const [path, body] = one([
      [
        '/chat/completions',
        { ...shared, ...tools, messages, ...(chance() < 0.3 ? { user: one(['ann', 'bob']) } : {}) },
      ],
      ['/messages', { ...shared, messages, max_tokens: 200 }],
      ['/responses', { ...shared, input: text }],
      ['/chat/completions', { ...shared, messages }],
    ] as const);
    const leave = new AbortController();
    const { base_url } = open.gateway;
    try {
      const answer = await fetch(`${base_url}${path}`, {
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/json' },
        body: JSON.stringify(body),
        signal: leave.signal,
      });
      ids.push(answer.headers.get('x-generation-id'));
      if (!isCut) return void (await answer.text());
      await answer.body?.getReader().read();
      leave.abort();
    } catch {
      // A stream that the sandbox breaks off.
    }
  }

  beforeAll(async () => {
    open = await startConsole({ chance });
    const { data: research } = await manage<{ data: { id: string } }>('POST', '/workspaces', {
      name: 'Research',
      slug: 'research',
    });
    for (const [name, more] of [
      ['desk', { limit: 50, limit_reset: 'daily' }],
      ['nightly', { limit: 80, limit_reset: 'monthly', include_byok_in_limit: true, workspace_id: research.id }],
      ['agent', { workspace_id: research.id }],
      ['total', { limit: 90 }],
    ] as const) {
      const made = await manage<{ data: { hash: string }; key: string }>('POST', '/keys', { name, ...more });
      keys.push({ hash: made.data.hash, key: made.key });
    }
    await manage('PUT', `/workspaces/${research.id}/budgets/weekly`, { limit_usd: 70 });
    await manage('POST', '/byok', {
      provider: 'sandbox-anthropic',
      key: 'sk-own-0123456789abcdef',
      workspace_id: research.id,
      allow_shared_fallback: true,
    });
    const { data: guardrail } = await manage<{ data: { id: string } }>('POST', '/guardrails', {
      name: 'Addresses',
      content_filter_builtins: [{ slug: 'email', action: 'redact' }],
    });
    await manage('PATCH', `/workspaces/${research.id}`, { default_guardrail_id: guardrail.id });
    let next = 0;
    await Promise.all(
      Array.from({ length: AT_ONCE }, async () => {
        while (next < CALLS) {
          next += 1;
          await send(next);
        }
      }),
    );
    await open.recorded(...ids);
    const { data: status } = await manage<{ data: { generations: { id: string; cost: number }[] } }>(
      'GET',
      '/ledger/status',
    );
    expect(status.generations.length).toBeGreaterThan(0);
    for (const { id, cost } of status.generations.slice(0, CORRECTED)) {
      const corrected = one([0, cost / 2, cost * 3, 0.000000001]);
      await manage('POST', '/ledger/resolve', { generation_id: id, cost: nano(corrected) / 1e9 });
    }
  }, 600_000);
  afterAll(() => open.stop());

  /** All calls of a filter of the API, page by page. */
  const rowsOf = async (query: URLSearchParams): Promise<GenerationRow[]> => {
    const rows: GenerationRow[] = [];
    const filter = new URLSearchParams(query);
    for (const name of ['fields', 'totals']) filter.delete(name);
    filter.set('limit', '100');
    for (let cursor: string | null = ''; cursor !== null; ) {
      if (cursor !== '') filter.set('cursor', cursor);
      const page: { data: GenerationRow[]; next_cursor: string | null } = await manage('GET', `/generations?${filter}`);
      rows.push(...page.data);
      cursor = page.next_cursor;
    }
    return rows;
  };

  async function linksOf(page: Page, path: string): Promise<Linked[]> {
    await arrive(page, `${open.gateway.url}/${path}`);
    const values = page.getByRole('button', { name: 'Values by day' });
    if (/by=(model|tag|status)&/.test(path) && (await values.count()) > 0) await values.click();
    const links = await page.locator('main a.sum').evaluateAll((all) =>
      all.map((link) => ({
        text: link.textContent ?? '',
        title: (link.querySelector('[title]') as { title?: string } | null)?.title ?? null,
        href: link.getAttribute('href') ?? '',
      })),
    );
    return links.map((link) => ({ page: path, ...link }));
  }

  test('every sum equals that of the linked calls or usage, and of the ledger, to the nano-dollar', async () => {
    const { page, faults } = await open.visit();
    const { data: verification } = await manage<{ data: { differences: []; generations: number } }>(
      'POST',
      '/ledger/verify',
    );
    expect(verification.differences).toEqual([]);
    const all = await rowsOf(new URLSearchParams());
    expect(all.length).toBe(verification.generations);
    const { data: credits } = await manage<{ data: { total_usage: number } }>('GET', '/credits');
    expect(all.reduce((sum, row) => sum + nano(row.total_cost), 0)).toBe(nano(credits.total_usage));
    // The random calls include all kinds.
    for (const outcome of ['completed', 'failed', 'cancelled'])
      expect([outcome, all.some((row) => row.outcome === outcome)]).toEqual([outcome, true]);
    expect(
      all.some((row) => row.is_byok) && all.some((row) => row.failures.length > 0 && row.outcome === 'completed'),
    ).toBe(true);

    const { data: meta } = await manage<{ data: { dimensions: { name: string }[] } }>('GET', '/analytics/meta');
    const usagePages = [
      ...meta.dimensions.map(({ name }) => `usage?metric=credits_usage&by=${name}&range=7d`),
      ...Object.keys(ADDED).map((metric) => `usage?metric=${metric}&by=model&range=24h&step=day`),
      'usage?metric=total_usage&by=tag&by2=app&range=30d&compare=on',
      'usage?metric=error_count&by=api_key_id&by2=provider&range=7d',
    ];
    const links: Linked[] = [];
    for (const path of [
      '',
      'keys',
      ...keys.map(({ hash }) => `keys?id=${hash}`),
      'budgets',
      'sessions',
      ...usagePages,
    ]) {
      const linked = await linksOf(page, path);
      expect([path, linked.length > 0]).toEqual([path, true]);
      links.push(...linked);
    }

    /** The sum that a link leads to, read once for each address. */
    const behind = new Map<string, { rows?: GenerationRow[]; total?: string }>();
    for (const { href } of links) {
      if (behind.has(href) || href === 'budgets') continue;
      const isLogs = href.startsWith('logs');
      const listed = page.waitForResponse((answer) =>
        isLogs ? answer.url().includes('/generations?') : answer.url().endsWith('/analytics/query'),
      );
      await page.goto(`${open.gateway.url}/${href}`);
      const { url, status } = await listed.then((answer) => ({ url: answer.url(), status: answer.status() }));
      expect([href, status]).toEqual([href, 200]);
      if (isLogs) {
        const rows = await rowsOf(new URL(url).searchParams);
        // The page shows the same count and amount as its rows.
        await page.locator('.log-bar .number').first().waitFor();
        const amount = (await page.locator('.log-bar .number').first().getAttribute('title')) ?? '';
        expect([href, nanoOf(amount)]).toEqual([href, rows.reduce((sum, row) => sum + nano(row.total_cost), 0)]);
        behind.set(href, { rows });
      } else {
        const total = page.locator('dl.figures dd').first().locator('[title]');
        if (new URLSearchParams(href.split('?')[1]).get('metric')?.includes('_latency') === true) continue;
        if (new URLSearchParams(href.split('?')[1]).get('metric')?.includes('_ttft') === true) continue;
        await page.locator('dl.figures dd, .empty').first().waitFor();
        const figure = page.locator('dl.figures dd').first();
        const text = (await figure.count()) === 0 ? '0' : ((await figure.textContent()) ?? '');
        behind.set(href, { total: (await total.count()) === 0 ? text : ((await total.getAttribute('title')) ?? '') });
      }
    }
    const differences: unknown[] = [];
    let compared = 0;
    for (const { page: path, text, title, href } of links) {
      const target = behind.get(href);
      if (target === undefined) continue;
      const metricOf = (address: string) => new URLSearchParams(address.split('?')[1]).get('metric');
      const metric = metricOf(path) ?? metricOf(href) ?? (title === null ? 'request_count' : 'credits_usage');
      const shown = title === null ? Number(text.replaceAll(',', '')) : nanoOf(title);
      const counted =
        target.total === undefined
          ? (target.rows ?? []).reduce((sum, row) => sum + (ADDED[metric] ?? (() => 0))(row), 0)
          : MONEY.includes(metric)
            ? nanoOf(target.total)
            : Number(target.total.replaceAll(',', ''));
      if (text === '–') continue;
      compared += 1;
      if (MONEY.includes(metric) !== (title !== null) || shown !== counted)
        differences.push({ path, text, href, shown, counted });
    }
    expect(differences).toEqual([]);
    expect(compared).toBeGreaterThan(150);
    expect(faults).toEqual([]);
    await page.context().close();
  }, 1_200_000);
});
