/**
 * Times lists, sums and the pages of the console against a running gateway with data: `node bin/launch.cjs bench/pages.ts ORIGIN MANAGEMENT_KEY`.
 * Requests are timed by the clock from sending to the whole answer, medians of seven; pages from navigation to the last change of what they show, medians
 * of three. Exits with 1 if a request takes longer than 100 ms, or a page longer than a second.
 */
import { existsSync } from 'node:fs';
import { chromium } from 'playwright-core';

const [origin = '', key = ''] = process.argv.slice(2);
const REQUEST_MS_MAX = 100;
const PAGE_MS_MAX = 1_000;
const REQUEST_ROUNDS = 7;
const PAGE_ROUNDS = 3;
const DAY_MS = 86_400_000;

const print = (line: string) => process.stdout.write(`${line}\n`);
const median = (values: number[]) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
let isFast = true;

async function ask(path: string, body?: object) {
  const init = { method: body === undefined ? 'GET' : 'POST', headers, ...(body && { body: JSON.stringify(body) }) };
  const started = performance.now();
  const answer = await fetch(`${origin}/api/v1${path}`, init);
  const text = await answer.text();
  const ms = performance.now() - started;
  if (!answer.ok) throw new Error(`${path}: ${text}`);
  return { ms, answer: JSON.parse(text) as { data: never } };
}

async function timeRequest(title: string, path: string, body?: object): Promise<void> {
  const times: number[] = [];
  for (let round = 0; round < REQUEST_ROUNDS; round += 1) times.push((await ask(path, body)).ms);
  const ms = median(times);
  if (ms > REQUEST_MS_MAX) isFast = false;
  print(`  ${title}: median ${ms.toFixed(1)} ms, least ${Math.min(...times).toFixed(1)} ms`);
}

async function timeRequests(): Promise<{ hash: string; model: string }> {
  const { data } = (await ask('/generations?limit=1')).answer as { data: { api_key_hash: string; model: string }[] };
  const { api_key_hash: hash = '', model = '' } = data[0] ?? {};
  const encodedModel = encodeURIComponent(model);
  const end = new Date(Math.ceil(Date.now() / DAY_MS) * DAY_MS);
  const iso = (days: number) => new Date(end.getTime() - days * DAY_MS).toISOString().replace('.000Z', 'Z');
  const monthAgo = iso(30);
  print('Lists and sums');
  for (const [title, path] of [
    ['calls', '/generations'],
    ['calls of a key', `/generations?api_key_hash=${hash}`],
    ['calls of a model', `/generations?model=${encodedModel}`],
    ['failed calls', '/generations?error=true'],
    ['failed calls of a key and a model', `/generations?error=true&api_key_hash=${hash}&model=${encodedModel}`],
    ['calls of at least a dollar', '/generations?min_cost=1'],
    ['calls of a month, the oldest first', `/generations?from=${monthAgo}&order=asc`],
    ['calls with their totals', '/generations?totals=true'],
    ['failed calls with their totals', '/generations?error=true&totals=true'],
    ['calls of an unknown model', '/generations?model=none'],
    ['sessions', '/generations/sessions'],
    ['keys', '/keys'],
    ['limits', '/budgets'],
    ['credits', '/credits'],
    ['activity by day', '/activity'],
    ['audit', '/audit'],
    ['status of the ledger', '/ledger/status'],
    ['system', '/system'],
    ['failing endpoints', '/endpoints/failing'],
  ] as const)
    await timeRequest(title, path);
  print('A year of usage');
  const timeRange = { start: iso(365), end: iso(0) };
  for (const [title, query] of [
    ['spend', { metrics: ['credits_usage', 'request_count'] }],
    ['spend by month', { metrics: ['credits_usage'], granularity: 'month' }],
    ['spend by day', { metrics: ['credits_usage'], granularity: 'day' }],
    [
      'spend by day and model',
      { metrics: ['credits_usage'], granularity: 'day', dimensions: ['model'], limit: 10_000 },
    ],
    [
      'tokens by week, key and model',
      { metrics: ['tokens_total'], granularity: 'week', dimensions: ['api_key_id', 'model'] },
    ],
    [
      'spend of one key by month',
      {
        metrics: ['credits_usage'],
        granularity: 'month',
        filters: [{ field: 'api_key_id', operator: 'eq', value: hash }],
      },
    ],
    ['p95 latency by day', { metrics: ['p95_latency'], granularity: 'day' }],
  ] as const)
    await timeRequest(title, '/analytics/query', { time_range: timeRange, ...query });
  return { hash, model };
}

/** Notes when a document last changed. */
const WATCH = `
  globalThis.lastChange = 0;
  new MutationObserver(() => { globalThis.lastChange = performance.now(); })
    .observe(document, { subtree: true, childList: true, characterData: true, attributes: true });
`;

async function timePages({ hash, model }: { hash: string; model: string }): Promise<void> {
  const path = '/usr/bin/chromium';
  const browser = await chromium.launch({
    ...(existsSync(path) ? { executablePath: path } : {}),
    args: ['--no-sandbox', '--disable-gpu'],
  });
  const page = await browser.newPage({ viewport: { width: 1_440, height: 900 } });
  await page.addInitScript(WATCH);
  await page.goto(`${origin}/sign-in`);
  await page.locator('input[type=password]').fill(key);
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Overview' }).waitFor();
  print('Pages');
  for (const [title, address] of [
    ['overview', ''],
    ['logs', 'logs'],
    ['logs of a key', `logs?key=${hash}`],
    ['failed calls', 'logs?result=problems'],
    ['sessions', 'sessions'],
    ['usage of 7 days', 'usage?range=7d'],
    ['usage of a year by model and key', 'usage?range=365d&by=model&by2=api_key_id'],
    ['p95 latency of a year', 'usage?range=365d&metric=p95_latency'],
    ['keys', 'keys'],
    ['key', `keys?id=${hash}`],
    ['models', 'models'],
    ['model', `models?id=${encodeURIComponent(model)}`],
    ['playground', 'playground'],
    ['workspaces', 'workspaces'],
    ['budgets', 'budgets'],
    ['guardrails', 'guardrails'],
    ['routing', 'routing'],
    ['credentials', 'credentials'],
    ['audit', 'audit'],
    ['ledger', 'ledger'],
    ['system', 'system'],
  ] as const) {
    const paints: number[] = [];
    const times: number[] = [];
    for (let round = 0; round < PAGE_ROUNDS; round += 1) {
      await page.goto(`${origin}/${address}`);
      await page.locator('main h1').waitFor();
      await page.waitForLoadState('networkidle');
      await page.locator('.loading').first().waitFor({ state: 'detached' });
      const [change, paint] = (await page.evaluate(
        `[globalThis.lastChange, performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0]`,
      )) as [number, number];
      times.push(change);
      paints.push(paint);
    }
    const ms = median(times);
    if (ms > PAGE_MS_MAX) isFast = false;
    print(`  ${title}: complete after ${ms.toFixed(0)} ms, first paint after ${median(paints).toFixed(0)} ms`);
  }
  await browser.close();
}

await timePages(await timeRequests());
process.exitCode = isFast ? 0 : 1;
