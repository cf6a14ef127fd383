/**
 * How many statements a call costs if many keys are each used rarely: authentication and ledger of one node, at the rate of one of
 * several nodes, on a PostgreSQL database. Statements are counted, not timed; the first round finds no key in memory.
 */
import { hash } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { createAuthenticate } from '../src/api/authenticate.ts';
import { GatewayError } from '../src/errors.ts';
import type { Hold, HoldRequest } from '../src/ledger/leases/hold.ts';
import { realClock } from '../src/ledger/ledger-clock.ts';
import { startRecorder } from '../src/ledger/start-recorder.ts';
import { budgetStore } from '../src/storage/budgets.ts';
import { localChangeFeed } from '../src/storage/change-feed.ts';
import { openDatabase } from '../src/storage/database.ts';
import { findKeyFacts } from '../src/storage/key-facts.ts';
import { ledgerStore } from '../src/storage/ledger.ts';
import { organizationStore } from '../src/storage/organizations.ts';
import { generation } from '../test/generation-fixture.ts';
import { countingProxy } from '../test/process/counting-proxy.ts';

const USAGE = `node bin/launch.cjs bench/keys.ts --database URL [options]
  --database URL   an empty PostgreSQL database
  --keys N         so many keys, each used once a round (12500)
  --rate N         calls a second (1040)
  --rounds N       rounds of all keys (3)
  --limit          each key has a spend limit
  --credits        the organization has credits
`;

const { values } = parseArgs({
  options: {
    database: { type: 'string' },
    keys: { type: 'string', default: '12500' },
    rate: { type: 'string', default: '1040' },
    rounds: { type: 'string', default: '3' },
    limit: { type: 'boolean', default: false },
    credits: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});
if (values.help || values.database === undefined) {
  process.stdout.write(USAGE);
  process.exit(values.help ? 0 : 2);
}

/** Concurrent calls: with more, a call would wait too long for a connection to the store. */
const CALLS_MAX = 60;
const HOLD_NANO = 2_000_000;
const CALL_NANO = 100_000;
const AT = new Date().toISOString();
const count = Number(values.keys);
const proxy = await countingProxy(values.database);
const database = await openDatabase({ database_url: proxy.url });
const { queries } = database;
const home = await organizationStore(queries).insertFirst({ at: AT });
const { organization_id, default_workspace_id: workspaceId } = home;
const secrets = Array.from({ length: count }, (_, index) => `sk-bench-${index}`);
const hashes = secrets.map((secret) => hash('sha256', secret));

for (let at = 0; at < count; at += 500) {
  const portion = hashes.slice(at, at + 500);
  const keys = portion.map((name, index) => ({
    ...{
      id: 1_000_000 + at + index,
      hash: name,
      organization_id,
      workspace_id: workspaceId,
      creator_user_id: null,
      name: 'k',
      label: 'l',
    },
    ...{ is_management: false, disabled: false, limit_nano: values.limit ? 1e12 : null, limit_reset: null },
    ...{
      include_byok_in_limit: false,
      expires_at: null,
      created_at: AT,
      updated_at: null,
      version: 1,
      budget_mode: null,
    },
    ...{ parent_hash: null, made_by: null, external_user: null },
  }));
  await queries.insertInto('api_keys').values(keys).execute();
  if (!values.limit) continue;
  const budgets = portion.map((name) => ({
    ...{ id: `key:${name}:never`, scope: 'key', subject: `key:${name}`, guardrail_id: null, label: 'limit' },
    ...{ reset_interval: 'never', limit_nano: 1e12, include_byok: false, version: 1 },
  }));
  await queries.insertInto('ledger_budgets').values(budgets).execute();
}
if (values.credits) await budgetStore(queries).keepCredits(organization_id, 1e15, AT);

const clock = { nowMs: Date.now, monotonicMs: () => performance.now() };
const authenticate = createAuthenticate({
  findKey: (name) => findKeyFacts(queries, name),
  findBudgets: async () => [],
  findGuardrails: async () => [],
  findWorkspace: async () => undefined,
  findOwner: async () => undefined,
  management_key: undefined,
  home,
  clock,
  memory: { clock: { ...clock, is_sure: true }, changes: localChangeFeed(), serve_without_store_ms: 0 },
  isRevokedHere: () => false,
  onPreviousSecret: () => {},
});
const dataDir = mkdtempSync(join(tmpdir(), 'gateway-bench-keys-'));
const recorder = await startRecorder({
  data_dir: dataDir,
  store: ledgerStore(queries, database.engine),
  journal_sync: 'group',
  unknown_outcome: 'hold',
  clock: realClock(Date.now),
  log: { info() {}, warn: (facts) => process.stderr.write(`${JSON.stringify(facts)}\n`), error() {} },
});

/** Waits until a slow store has granted the lease. */
async function reserve(request: HoldRequest): Promise<Hold> {
  for (;;) {
    try {
      return await recorder.reserve(request);
    } catch (error) {
      if (!(error instanceof GatewayError) || error.status !== 503) throw error;
      await sleep(100);
    }
  }
}

let ordinal = 0;
async function call(secret: string): Promise<void> {
  const { budgets, key_hash } = await authenticate(secret);
  ordinal += 1;
  const id = `gen-1763719200-${String(ordinal).padStart(20, '0')}`;
  const hold = await reserve({ id, budgets, is_byok: false, full_nano: HOLD_NANO, least_nano: HOLD_NANO });
  const record = generation({
    id,
    organization_id,
    workspace_id: workspaceId,
    key_hash: key_hash ?? '',
    created_at: AT,
  });
  const open = { ...record, outcome: 'unknown' as const, cost_nano: 0, usage: null, attempts: [] };
  await recorder.attempt({ id, attempt: 1, endpoint: record.endpoint_id ?? '', record: open, hold });
  await sleep(50);
  await recorder.outcome({ ...record, cost_nano: CALL_NANO }, hold);
}

/** Each key once, at the rate. A store that is too slow for the rate makes the round longer. */
async function round(): Promise<{ statements: number; batches: number; seconds: number }> {
  const before = { statements: proxy.counted.statements, batches: recorder.state().batches };
  const beganMs = performance.now();
  const running = new Set<Promise<void>>();
  for (let next = 0; next < count; ) {
    const due = Math.min(count, Math.floor(((performance.now() - beganMs) / 1_000) * Number(values.rate)));
    for (; next < due && running.size < CALLS_MAX; next += 1) {
      const one = call(secrets[next] ?? '').finally(() => running.delete(one));
      running.add(one);
    }
    await sleep(2);
  }
  await Promise.all(running);
  const seconds = (performance.now() - beganMs) / 1_000;
  await recorder.flush();
  return {
    statements: proxy.counted.statements - before.statements,
    batches: recorder.state().batches - before.batches,
    seconds,
  };
}

for (let nth = 1; nth <= Number(values.rounds); nth += 1) {
  const { statements, batches, seconds } = await round();
  process.stdout.write(
    `round ${nth}: ${(statements / count).toFixed(3)} statements a call, ${(count / batches).toFixed(1)} calls a batch, ` +
      `${Math.round(count / seconds)} calls a second\n`,
  );
}
await recorder.stop();
await database.close();
proxy.close();
rmSync(dataDir, { recursive: true });
