import { cpSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect } from 'vitest';
import { realClock } from '../../src/ledger/ledger-clock.ts';
import type { Recorder, RecorderOptions } from '../../src/ledger/recorder.ts';
import type { LedgerStore, SettleAnswer, SettleBatch } from '../../src/ledger/settle.ts';
import { startRecorder } from '../../src/ledger/start-recorder.ts';
import type { Budget } from '../../src/schemas/budget.ts';
import type { Database } from '../../src/storage/database.ts';
import { ledgerStore } from '../../src/storage/ledger.ts';
import { generation, noHold } from '../generation-fixture.ts';

const log = { info() {}, warn() {}, error() {} };

/** Nodes on real folders, over a store whose answers a test may change. All are removed after the test. */
export function recorders(open: () => Promise<Database>) {
  const dirs: string[] = [];
  let running: Recorder[] = [];

  function freshDir(): string {
    const dir = mkdtempSync(join(tmpdir(), 'gateway-recorder-'));
    dirs.push(dir);
    return dir;
  }

  /** The data directory as a process that is killed now would leave it. */
  function asKilled(dataDir: string): string {
    const copy = freshDir();
    cpSync(dataDir, copy, { recursive: true });
    return copy;
  }

  async function start(
    store: LedgerStore,
    dataDir = freshDir(),
    over: Partial<RecorderOptions> = {},
  ): Promise<Recorder> {
    const recorder = await startRecorder({
      data_dir: dataDir,
      store,
      journal_sync: 'group',
      unknown_outcome: 'hold',
      clock: realClock(Date.now),
      log,
      ...over,
    });
    running.push(recorder);
    return recorder;
  }

  async function stop(recorder: Recorder): Promise<void> {
    running = running.filter((other) => other !== recorder);
    await recorder.stop();
  }

  afterEach(async () => {
    for (const recorder of running.splice(0)) await recorder.stop();
    for (const dir of dirs.splice(0)) rmSync(dir, { recursive: true });
  });

  async function setUp() {
    const database = await open();
    const store = faulty(ledgerStore(database.queries, database.engine));
    const dataDir = freshDir();
    return { database, store, data_dir: dataDir, recorder: await start(store, dataDir) };
  }

  return { freshDir, asKilled, start, stop, setUp };
}

/** The first attempt of a call without a hold. */
export function attempt(id: string) {
  const record = generation({ id, outcome: 'unknown', usage: null, attempts: [], cost_nano: 5 });
  return { id, attempt: 1, endpoint: 'acme|acme/fast-1', record, hold: noHold(id) };
}

/** A store whose answers a test may lose or change; everything else is the real one. */
export function faulty(store: LedgerStore): LedgerStore & {
  batches: SettleBatch[];
  settle: LedgerStore['settle'];
  answers: ((batch: SettleBatch) => Promise<SettleAnswer>)[];
} {
  const made = {
    ...store,
    batches: [] as SettleBatch[],
    answers: [] as ((batch: SettleBatch) => Promise<SettleAnswer>)[],
    settle: (batch: SettleBatch) => {
      made.batches.push(batch);
      return (made.answers.shift() ?? store.settle)(batch);
    },
  };
  return made;
}

/** The error of a store that is unreachable. */
export const down = () => Promise.reject(new Error('the store is down'));

/** The generations of a store, which are the sum of its days. */
export async function stored({ queries }: Database) {
  const rows = await queries.selectFrom('ledger_generations').select(['id', 'outcome', 'cost']).orderBy('id').execute();
  const days = await queries.selectFrom('usage_days').select(['usage_nano', 'requests']).execute();
  const sum = days.reduce((all, { usage_nano }) => all + usage_nano, 0);
  const requests = days.reduce((all, day) => all + day.requests, 0);
  expect(sum).toBe(rows.reduce((all, { cost }) => all + cost, 0));
  expect(requests).toBe(rows.length);
  return rows;
}

/** The files of a slot besides its lock. */
export const files = (dataDir: string, slot = 0) =>
  readdirSync(join(dataDir, 'slots', String(slot))).filter((name) => !name.startsWith('lock'));

/** A limit of key `a`, in force in the store. */
export async function budgetOf(database: Database, limitNano: number, over: Partial<Budget> = {}): Promise<Budget> {
  const budget: Budget = {
    id: 'key:a:never',
    scope: 'key',
    label: 'the limit of this API key',
    reset_interval: 'never',
    limit_nano: limitNano,
    include_byok: false,
    ...over,
  };
  const { scope, label, reset_interval, include_byok } = budget;
  await database.queries
    .insertInto('ledger_budgets')
    .values({
      id: budget.id,
      scope,
      subject: 'key:a',
      guardrail_id: null,
      label,
      reset_interval,
      limit_nano: limitNano,
      include_byok,
      version: 1,
    })
    .execute();
  return budget;
}
