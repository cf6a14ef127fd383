import { spawn } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { realClock } from '../../src/ledger/ledger-clock.ts';
import { startRecorder } from '../../src/ledger/start-recorder.ts';
import { type Database, openDatabase } from '../../src/storage/database.ts';
import { ledgerStore } from '../../src/storage/ledger.ts';
import { describeStores } from './store-variants.ts';

const ROUNDS = 24;
/** The number of acknowledgements of a process before it may be killed, however slow the machine. */
const OUTCOMES_MIN = 40;
const KEYS_MIN = 2;
/** The longest time from then to the kill. */
const LIFE_MS_MAX = 250;

const counted = (output: string, what: string) => output.split(`\n${what} `).length - 1;

/**
 * Runs the driver, kills it without warning at a random moment of its work, and returns the lines that it had written.
 */
async function runAndKill(args: string[]): Promise<string[]> {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'crash-driver.ts'), ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  let complained = '';
  onTestFinished(() => void child.kill('SIGKILL'));
  const killed = Promise.withResolvers<void>();
  child.stderr.on('data', (bytes) => {
    complained += bytes;
  });
  let doomed = false;
  child.stdout.on('data', (bytes) => {
    output += bytes;
    if (doomed || counted(output, 'outcome') < OUTCOMES_MIN || counted(output, 'key') < KEYS_MIN) return;
    doomed = true;
    setTimeout(() => child.kill('SIGKILL'), Math.random() * LIFE_MS_MAX);
  });
  child.on('close', (_code, signal) => {
    if (signal === 'SIGKILL') killed.resolve();
    else killed.reject(new Error(`the driver ended by itself: ${complained}${output.slice(-500)}`));
  });
  await killed.promise;
  return output.split('\n').slice(0, -1);
}

/** Starts the driver, which the end of the test kills; `output` returns its output so far. */
function run(args: string[]) {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'crash-driver.ts'), ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let text = '';
  child.stdout.on('data', (bytes) => {
    text += bytes;
  });
  const ended = new Promise<void>((resolve) => child.on('close', () => resolve()));
  const kill = () => {
    child.kill('SIGKILL');
    return ended;
  };
  onTestFinished(kill);
  return { child, kill, output: () => text.split('\n').slice(0, -1) };
}

type Running = ReturnType<typeof run>;
const outcomes = ({ output }: Running) => output().filter((line) => line.startsWith('outcome')).length;
const keys = ({ output }: Running) => output().filter((line) => line.startsWith('key')).length;

/**
 * Pauses a process at a place where it does not block the others: one that stops inside a transaction keeps its lock.
 */
async function pause(one: Running, others: readonly Running[]): Promise<void> {
  const made = () => others.reduce((sum, other) => sum + keys(other), 0);
  for (;;) {
    one.child.kill('SIGSTOP');
    // Waits for what the others had written before.
    await sleep(100);
    const before = made();
    for (let waits = 0; waits < 20 && made() === before; waits++) await sleep(50);
    if (made() > before) return;
    const outputChars = one.output().length;
    one.child.kill('SIGCONT');
    // Lets it leave its transaction, however slow the machine: the others wait only that long for its lock.
    await expect.poll(() => one.output().length).toBeGreaterThan(outputChars);
    await sleep(Math.random() * 50);
  }
}

/** The store after a restart that has replayed the journals of the killed processes, here and in other folders. */
async function replayed(dataDir: string, databaseUrl: string | undefined, older: string[] = []): Promise<Database> {
  const database = await openDatabase({ data_dir: dataDir, database_url: databaseUrl });
  const log = { info() {}, warn() {}, error() {} };
  const store = ledgerStore(database.queries, database.engine);
  for (const dir of [dataDir, ...older]) {
    const recorder = await startRecorder({
      data_dir: dir,
      store,
      journal_sync: 'group',
      unknown_outcome: 'hold',
      clock: realClock(Date.now),
      log,
    });
    await recorder.flush();
    await recorder.stop();
  }
  return database;
}

describeStores('processes on one data directory', ({ freshUrl }) => {
  test('three that start at once on an empty directory, one of them paused, get a slot each, and nothing is lost', {
    timeout: 180_000,
  }, async () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'gateway-crash-'));
    const databaseUrl = await freshUrl();
    const more = databaseUrl ? [databaseUrl] : [];
    const paused = run([dataDir, 'a', ...more]);
    const other = run([dataDir, 'b', ...more]);
    const third = run([dataDir, 'c', ...more]);
    const all = [paused, other, third];
    for (const one of all) await expect.poll(() => outcomes(one)).toBeGreaterThan(10);
    await pause(paused, [other, third]);
    // A new process finds the paused one's slot in use, and leaves its journal alone.
    const late = run([dataDir, 'd', ...more]);
    await expect.poll(() => outcomes(late)).toBeGreaterThan(10);
    const before = outcomes(paused);
    paused.child.kill('SIGCONT');
    await expect.poll(() => outcomes(paused)).toBeGreaterThan(before + 10);
    expect(readdirSync(join(dataDir, 'slots')).sort()).toEqual(['0', '1', '2', '3']);
    await Promise.all([...all, late].map(({ kill }) => kill()));

    const lines = [...all, late].flatMap(({ output }) => output());
    const database = await replayed(dataDir, databaseUrl);
    try {
      const rows = await database.queries.selectFrom('ledger_generations').select(['id', 'cost', 'outcome']).execute();
      const rowsById = new Map(rows.map((row) => [row.id, row]));
      const outcomes = lines.map((line) => line.split(' ')).filter(([what]) => what === 'outcome');
      expect(outcomes.filter(([, id = '', cost]) => rowsById.get(id)?.cost !== Number(cost))).toEqual([]);
      const days = await database.queries.selectFrom('usage_days').select(['usage_nano', 'requests']).execute();
      expect(days.reduce((all, { requests }) => all + requests, 0)).toBe(rows.length);
      expect(days.reduce((all, { usage_nano }) => all + usage_nano, 0)).toBe(
        rows.reduce((all, { cost }) => all + cost, 0),
      );
      expect(lines.filter((line) => line.startsWith('failed'))).toEqual([]);
    } finally {
      await database.close();
      rmSync(dataDir, { recursive: true });
    }
  });
});

describeStores('kill -9', ({ freshUrl }) => {
  test(`after ${ROUNDS} kills everything acknowledged is stored once, and usage is the sum of the generations`, {
    timeout: 600_000,
  }, async () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'gateway-crash-'));
    const databaseUrl = await freshUrl();
    const lines: string[] = [];
    const older = join(dataDir, 'older');
    for (let round = 0; round < ROUNDS; round++) {
      lines.push(...(await runAndKill([dataDir, String(round), ...(databaseUrl ? [databaseUrl] : [])])));
      // The next start sends the records of this kill; the same journal is replayed again at the end.
      if (round === 0) cpSync(join(dataDir, 'slots'), join(older, 'slots'), { recursive: true });
    }
    const words = lines.map((line) => line.split(' '));
    const linesOf = (what: string) => words.filter(([first]) => first === what);
    expect(linesOf('failed')).toEqual([]);

    const database = await replayed(dataDir, databaseUrl, [older]);
    try {
      const rows = await database.queries.selectFrom('ledger_generations').selectAll().execute();
      const rowsById = new Map(rows.map((row) => [row.id, row]));
      const missing = linesOf('attempt').filter(([, id = '']) => !rowsById.has(id));
      expect(missing).toEqual([]);
      const wrong = linesOf('outcome').filter(([, id = '', cost]) => {
        const row = rowsById.get(id);
        return row?.outcome !== 'completed' || row.cost !== Number(cost);
      });
      expect(wrong).toEqual([]);

      const days = await database.queries.selectFrom('usage_days').selectAll().execute();
      for (const keyHash of ['key-0', 'key-1', 'key-2']) {
        const own = rows.filter((row) => row.key_hash === keyHash);
        const counted = days.filter((day) => day.scope_id === keyHash);
        expect(counted.reduce((sum, day) => sum + day.requests, 0)).toBe(own.length);
        expect(counted.reduce((sum, day) => sum + day.usage_nano, 0)).toBe(own.reduce((sum, row) => sum + row.cost, 0));
      }

      const keys = await database.queries.selectFrom('api_keys').select(['hash', 'id']).execute();
      const hashes = new Set(keys.map(({ hash }) => hash));
      expect(linesOf('key').filter(([, hash = '']) => !hashes.has(hash))).toEqual([]);
      expect(new Set(keys.map(({ id }) => id)).size).toBe(keys.length);

      // Calls that were killed before their end are reported as such: at least the one of each process that never
      // ended.
      const cut = linesOf('endless').filter(([, id = '']) => rowsById.get(id)?.outcome === 'unknown');
      expect(cut.length).toBe(ROUNDS);
      expect(linesOf('outcome').length).toBeGreaterThanOrEqual(ROUNDS * OUTCOMES_MIN);
      expect(linesOf('key').length).toBeGreaterThanOrEqual(ROUNDS * KEYS_MIN);
    } finally {
      await database.close();
      rmSync(dataDir, { recursive: true });
    }
  });
});
