/**
 * Measures analytics at a year and at 30 days of usage: fills fresh stores with the sums that a million generations leave, then times queries, with
 * percentiles over the 30 days. Also times the settling of batches. `node bin/launch.cjs bench/analytics.ts [generations]`; with `TEST_DATABASE_URL`, PostgreSQL as well.
 * Exits with 1 if a query takes longer than its bound.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sql } from 'kysely';
import { Client } from 'pg';
import { type QueryBounds, runQuery } from '../src/api/analytics/run-query.ts';
import { toSettle } from '../src/ledger/settle.ts';
import { usageFactsOf } from '../src/ledger/usage-facts.ts';
import { analyticsStore } from '../src/storage/analytics.ts';
import { transact } from '../src/storage/bulk.ts';
import { type Database, openDatabase } from '../src/storage/database.ts';
import { ledgerStore } from '../src/storage/ledger.ts';
import { countedCalls, SeriesNames, UsageStatements, usageRowsOf } from '../src/storage/usage-rows.ts';
import { generation } from '../test/generation-fixture.ts';
import { registerNode } from '../test/ledger/registered-node.ts';

const GENERATIONS = Number(process.argv[2] ?? 1_000_000);
const QUERY_MS_MAX = 100;
const print = (line: string) => process.stdout.write(`${line}\n`);
const DAY_MS = 86_400_000;
const START = Date.parse('2026-01-01T00:00:00Z');
const BATCH = 2_000;
const ORGANIZATION = 'o';
const BOUNDS: QueryBounds = { rows_max: 500_000, groups_max: 50_000, calls_max: 20_000 };

/** A small company: 12 keys of 6 people, each with an application and two or three models it prefers. */
function call(index: number, count: number, days: number) {
  const key = (index * 7) % 12;
  const model = (key + (index % 5 === 0 ? 1 : 0) + (index % 31 === 0 ? 2 : 0)) % 10;
  const status = index % 50 === 0 ? ('failed' as const) : ('completed' as const);
  return generation({
    id: `gen-${index}`,
    organization_id: ORGANIZATION,
    workspace_id: `w${key % 3}`,
    key_hash: `key ${key}`,
    user_id: `user ${key % 6}`,
    model: `acme/model-${model}`,
    provider_name: `Provider ${model % 4}`,
    created_at: new Date(START + Math.floor((index / count) * days * DAY_MS)).toISOString(),
    title: `app ${key % 8}`,
    outcome: status,
    finish_reason: status === 'failed' ? 'error' : 'stop',
    generation_time: 300 + ((index * 7_919) % 20_000),
    latency: 100 + ((index * 104_729) % 2_000),
    cost_nano: 1_000 + (index % 1_000_003),
    ...(key % 4 === 0 ? { tags: ['batch'] } : {}),
  });
}

async function fill({ queries }: Database, days: number): Promise<bigint> {
  const statements = new UsageStatements();
  const names = new SeriesNames();
  let spent = 0n;
  for (let from = 0; from < GENERATIONS; from += BATCH) {
    const calls = Array.from({ length: Math.min(BATCH, GENERATIONS - from) }, (_, at) =>
      call(from + at, GENERATIONS, days),
    );
    for (const { cost_nano } of calls) spent += BigInt(cost_nano);
    const counted = countedCalls(
      calls.map((record) => ({
        id: record.id,
        created_at: record.created_at,
        usage: usageFactsOf(record, 0),
      })),
      () => 'n',
      names,
    );
    await transact(queries, [...statements.callSteps(counted), ...statements.sumSteps(usageRowsOf(counted.hours))]);
  }
  return spent;
}

interface TimedQuery {
  title: string;
  metrics: string[];
  dimensions?: string[];
  granularity?: 'hour' | 'day' | 'week' | 'month';
  /** Not held against the bound. */
  isSlow?: true;
}

const YEAR_QUERIES: TimedQuery[] = [
  { title: 'spend', metrics: ['credits_usage'] },
  { title: 'spend by month', metrics: ['credits_usage', 'request_count'], granularity: 'month' },
  { title: 'spend by day', metrics: ['credits_usage', 'request_count'], granularity: 'day' },
  { title: 'spend by day and model', metrics: ['credits_usage'], granularity: 'day', dimensions: ['model'] },
  {
    title: 'tokens by week, key and model',
    metrics: ['tokens_total', 'error_rate'],
    granularity: 'week',
    dimensions: ['api_key_id', 'model'],
  },
  {
    title: 'spend by month, tag and user',
    metrics: ['credits_usage'],
    granularity: 'month',
    dimensions: ['tag', 'user'],
  },
  { title: 'p95 latency by week', metrics: ['p95_latency'], granularity: 'week' },
];

const MONTH_QUERIES: TimedQuery[] = [
  { title: 'p95 latency', metrics: ['p95_latency'] },
  { title: 'p95 latency by day', metrics: ['p95_latency'], granularity: 'day' },
  { title: 'p95 latency by day and model', metrics: ['p95_latency'], granularity: 'day', dimensions: ['model'] },
  { title: 'p50 and p95 of two measures', metrics: ['p50_latency', 'p95_latency', 'p50_throughput', 'p95_throughput'] },
  { title: 'p95 latency by hour', metrics: ['p95_latency'], granularity: 'hour', isSlow: true },
];

async function timeQueries(database: Database, spent: bigint, days: number, queries: TimedQuery[]): Promise<boolean> {
  const store = analyticsStore(database.queries);
  let isFast = true;
  for (const { title, metrics, dimensions = [], granularity, isSlow = false } of queries) {
    const query = {
      metrics,
      dimensions,
      granularity,
      filters: [],
      order_by: undefined,
      limit: 10_000,
      group_limit: undefined,
    };
    const options = {
      range: { from: START, to: START + days * DAY_MS },
      organization_id: ORGANIZATION,
      ownUser: undefined,
      store,
      bounds: BOUNDS,
    };
    const times: number[] = [];
    const processorTimes: number[] = [];
    let rows = 0;
    for (let turn = 0; turn < 7; turn += 1) {
      const started = performance.now();
      const startedCpu = process.cpuUsage();
      const answer = await runQuery(query, options);
      times.push(performance.now() - started);
      const { user, system } = process.cpuUsage(startedCpu);
      processorTimes.push((user + system) / 1000);
      rows = answer.rows.length;
      const sum = answer.rows.reduce(
        (total, row) => total + BigInt(Math.round(Number(row['credits_usage'] ?? 0) * 1e9)),
        0n,
      );
      if (metrics.includes('credits_usage') && sum !== spent) throw new Error(`${title}: ${sum} is not ${spent}`);
    }
    times.sort((a, b) => a - b);
    processorTimes.sort((a, b) => a - b);
    const [least = 0, median = 0] = [times[0], times[3]];
    if (median > QUERY_MS_MAX && !isSlow) isFast = false;
    print(
      `  ${title}: median ${median.toFixed(1)} ms, least ${least.toFixed(1)} ms, processor of this process ${processorTimes[3]?.toFixed(1)} ms, ${rows} rows`,
    );
  }
  return isFast;
}

/** Milliseconds of the store for batches of one hour, as a busy node sends them. */
async function timeSettling(database: Database): Promise<void> {
  const ledger = ledgerStore(database.queries, database.engine);
  const { epoch } = await registerNode(ledger, 'bench');
  const times: number[] = [];
  for (let number = 1; number <= 60; number += 1) {
    const settles = Array.from({ length: 256 }, (_, at) => {
      const record = call(at, GENERATIONS, 365);
      return toSettle({ ...record, id: `s-${number}-${at}`, created_at: '2026-06-01T10:00:00.000Z' }, []);
    });
    const started = performance.now();
    await ledger.settle({ node: 'bench', epoch, number, at: Date.now(), settles, windows: [], divisor: 2 });
    times.push(performance.now() - started);
  }
  times.sort((a, b) => a - b);
  print(`  settling 256 calls: median ${times[30]?.toFixed(1)} ms, least ${times[0]?.toFixed(1)} ms`);
}

async function run(title: string, database: Database, days: number): Promise<boolean> {
  print(`${title}, ${days} days`);
  try {
    const started = performance.now();
    const spent = await fill(database, days);
    // Autovacuum analyzes the tables after a while. Without statistics PostgreSQL reads the index once for each series.
    if (database.engine === 'postgres') await sql`ANALYZE`.execute(database.queries);
    const sums = await database.queries
      .selectFrom('analytics_usage')
      .select(({ fn }) => ['span', fn.countAll<number>().as('rows')])
      .groupBy('span')
      .orderBy('span')
      .execute();
    const rows = sums.map(({ span, rows: count }) => `${count} rows of ${span === 1 ? 'hours' : 'days'}`).join(', ');
    print(
      `  filled with ${GENERATIONS} generations in ${((performance.now() - started) / 1000).toFixed(0)} s: ${rows}`,
    );
    const isFast = await timeQueries(database, spent, days, days === 365 ? YEAR_QUERIES : MONTH_QUERIES);
    if (days === 365) await timeSettling(database);
    return isFast;
  } finally {
    await database.close();
  }
}

let isFast = true;
const url = process.env['TEST_DATABASE_URL'];
for (const days of [365, 30]) {
  const folder = mkdtempSync(join(tmpdir(), 'analytics-'));
  isFast = (await run('SQLite', await openDatabase({ data_dir: folder }), days)) && isFast;
  rmSync(folder, { recursive: true });
  if (url === undefined) continue;
  const client = new Client({ connectionString: url });
  await client.connect();
  const schema = `analytics_bench_${process.pid}`;
  await client.query(`CREATE SCHEMA ${schema}`);
  try {
    const scoped = new URL(url);
    scoped.searchParams.set('options', `-c search_path=${schema}`);
    isFast = (await run('PostgreSQL', await openDatabase({ database_url: scoped.href }), days)) && isFast;
  } finally {
    await client.query(`DROP SCHEMA ${schema} CASCADE`);
    await client.end();
  }
}
process.exitCode = isFast ? 0 : 1;
