/**
 * What the ledger costs for a request: the hold, the journaled attempt and outcome, and the settlement. Runs the real
 * recorder in a hot loop; `--profile` writes a CPU profile of it.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { Session } from 'node:inspector/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import type { JournalSync } from '../src/ledger/journal/journal.ts';
import type { Hold } from '../src/ledger/leases/hold.ts';
import { realClock } from '../src/ledger/ledger-clock.ts';
import type { Recorder } from '../src/ledger/recorder.ts';
import type { GenerationRecord } from '../src/ledger/records.ts';
import type { LedgerStore } from '../src/ledger/settle.ts';
import { startRecorder } from '../src/ledger/start-recorder.ts';
import type { Budget } from '../src/schemas/budget.ts';
import { type Database, openDatabase } from '../src/storage/database.ts';
import { ledgerStore } from '../src/storage/ledger.ts';
import { generation } from '../test/generation-fixture.ts';
import { digits, median, table } from './report.ts';

const USAGE = `node bin/launch.cjs bench/ledger.ts [options]
  --requests N   of one counted round (20,000)
  --rounds N     interleaved rounds, of which the median counts (5)
  --profile      one long round of five budgets, its profile in results/ledger.cpuprofile
`;

const LIMIT_NANO = 2 ** 52;
const COST_NANO = 1_000_000;

/** A store that accepts and grants everything at once, so that only the part of the serving thread remains. */
const endless: LedgerStore = {
  position: async () => ({ epoch: 0, batch: 0 }),
  register: async ({ epoch_seen }) => ({
    epoch: epoch_seen + 1,
    leases: [],
    now: Date.now(),
  }),
  watch: async () => ({ wanted: [], scarce: [], keeps_leases: true, nodes: 1, now: Date.now() }),
  keepAlive: async () => {},
  look: async () => [],
  settle: async ({ windows }) => ({
    is: 'applied',
    now: Date.now(),
    windows: windows.map(({ budget_id, window_start }) => ({
      budget_id,
      window_start,
      lease: LIMIT_NANO / 4,
      leased: LIMIT_NANO / 4,
      spent: 0,
      free: LIMIT_NANO / 2,
      claimed: false,
      claims: false,
    })),
  }),
};

/** Does nothing, to measure the loop itself. */
const nothing: Pick<Recorder, 'reserve' | 'attempt' | 'outcome'> = {
  reserve: ({ id }) => ({ id, lines: [], granted_nano: 0 }),
  attempt: async () => {},
  outcome: async () => {},
};

function budgetsOf(count: number): Budget[] {
  return Array.from({ length: count }, (_, index) => ({
    id: `bench-${index}`,
    scope: 'key',
    label: 'the limit of this API key',
    reset_interval: index % 2 === 0 ? 'monthly' : 'never',
    limit_nano: LIMIT_NANO,
    include_byok: false,
  }));
}

async function addBudgets({ queries }: Database): Promise<void> {
  const rows = budgetsOf(5).map(({ label, ...budget }) => ({
    ...budget,
    label,
    subject: 'key:bench',
    guardrail_id: null,
    version: 1,
  }));
  await queries.insertInto('ledger_budgets').values(rows).execute();
}

interface Round {
  /** CPU time for a request, of the serving thread and of the whole process. */
  loop_us: number;
  process_us: number;
  batches: number;
}

interface Setting {
  name: string;
  recorder: Pick<Recorder, 'reserve' | 'attempt' | 'outcome'>;
  flush(): Promise<void>;
  batches(): number;
  budgets: readonly Budget[];
  clients: number;
}

let ordinal = 0;
const template = generation({ id: 'gen-bench', cost_nano: COST_NANO });
const opened: GenerationRecord = { ...template, outcome: 'unknown', cost_nano: 0, usage: null, attempts: [] };

async function request({ recorder, budgets }: Setting): Promise<void> {
  ordinal += 1;
  const id = `gen-1763719200-${String(ordinal).padStart(20, '0')}`;
  const ask = { id, budgets, is_byok: false, full_nano: 2 * COST_NANO, least_nano: COST_NANO };
  const reserved = recorder.reserve(ask);
  const hold: Hold = reserved instanceof Promise ? await reserved : reserved;
  await recorder.attempt({ id, attempt: 1, endpoint: template.endpoint_id ?? '', record: { ...opened, id }, hold });
  // The provider's answer arrives in a later turn.
  await nextTurn();
  await recorder.outcome({ ...template, id }, hold);
}

async function round(setting: Setting, requests: number): Promise<Round> {
  const batches = setting.batches();
  const loop = process.threadCpuUsage();
  const whole = process.cpuUsage();
  let left = requests;
  const client = async () => {
    while (left-- > 0) await request(setting);
  };
  await Promise.all(Array.from({ length: setting.clients }, client));
  await setting.flush();
  const spent = process.threadCpuUsage(loop);
  const all = process.cpuUsage(whole);
  return {
    loop_us: (spent.user + spent.system) / requests,
    process_us: (all.user + all.system) / requests,
    batches: setting.batches() - batches,
  };
}

const recorders: Recorder[] = [];
const directories: string[] = [];

async function settingOf(
  budgets: number,
  clients: number,
  kind: { store: LedgerStore; description: string; sync: JournalSync } | undefined,
): Promise<Setting> {
  const shared = { budgets: budgetsOf(budgets), clients };
  const name = `${budgets} budgets, ${clients} at once`;
  if (kind === undefined) {
    return {
      ...shared,
      name: `nothing, ${clients} at once`,
      recorder: nothing,
      flush: async () => {},
      batches: () => 0,
    };
  }
  const dataDir = mkdtempSync(join(tmpdir(), 'gateway-bench-ledger-'));
  directories.push(dataDir);
  const recorder = await startRecorder({
    data_dir: dataDir,
    store: kind.store,
    journal_sync: kind.sync,
    unknown_outcome: 'hold',
    clock: realClock(Date.now),
    log: { info() {}, warn: (facts) => process.stderr.write(`${JSON.stringify(facts)}\n`), error() {} },
  });
  recorders.push(recorder);
  return {
    ...shared,
    name: `${name}, ${kind.description}, sync ${kind.sync}`,
    recorder,
    flush: recorder.flush,
    batches: () => recorder.state().batches,
  };
}

const { values } = parseArgs({
  options: {
    requests: { type: 'string', default: '20000' },
    rounds: { type: 'string', default: '5' },
    profile: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

async function measure(settings: readonly Setting[]): Promise<void> {
  const requests = Number(values.requests);
  const rounds = settings.map((): Round[] => []);
  for (const setting of settings) await round(setting, requests / 2);
  for (let nth = 0; nth < Number(values.rounds); nth += 1) {
    for (const [index, setting] of settings.entries()) rounds[index]!.push(await round(setting, requests));
  }
  const rows = settings.map(({ name, clients }, index) => {
    const of = (pick: (one: Round) => number) => median(rounds[index]!.map(pick));
    const empty = settings.findIndex((other) => other.clients === clients && other.recorder === nothing);
    const floor = (pick: (one: Round) => number) => median(rounds[empty]!.map(pick));
    const net = (pick: (one: Round) => number) => digits(1)(of(pick) - floor(pick));
    const loop = (one: Round) => one.loop_us;
    const whole = (one: Round) => one.process_us;
    const batches = of((one) => one.batches);
    return [name, net(loop), net(whole), batches === 0 ? '' : digits(0)(requests / batches)];
  });
  process.stdout.write(
    `${table('The ledger: CPU of a request, us, less the loop without it', ['', 'serving thread', 'process', 'a batch'], rows)}\n`,
  );
}

async function profile(setting: Setting): Promise<void> {
  await round(setting, 20_000);
  const session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.setSamplingInterval', { interval: 200 });
  await session.post('Profiler.start');
  await round(setting, 200_000);
  const { profile: cpuProfile } = await session.post('Profiler.stop');
  writeFileSync(join(import.meta.dirname, 'results/ledger.cpuprofile'), JSON.stringify(cpuProfile));
}

if (values.help) {
  process.stdout.write(USAGE);
} else {
  const dataDir = mkdtempSync(join(tmpdir(), 'gateway-bench-'));
  directories.push(dataDir);
  const database = await openDatabase({ data_dir: dataDir });
  await addBudgets(database);
  const memory = { store: ledgerStore(database.queries, database.engine), description: 'SQLite' };
  try {
    if (values.profile) {
      await profile(await settingOf(5, 64, { store: endless, description: 'no store', sync: 'os' }));
    } else {
      const settings: Setting[] = [];
      for (const clients of [8, 64]) {
        settings.push(await settingOf(0, clients, undefined));
        for (const budgets of [0, 1, 5]) {
          settings.push(await settingOf(budgets, clients, { store: endless, description: 'no store', sync: 'os' }));
        }
        for (const budgets of [0, 1, 5]) {
          settings.push(await settingOf(budgets, clients, { ...memory, sync: 'group' }));
        }
      }
      await measure(settings);
    }
  } finally {
    for (const recorder of recorders) await recorder.stop();
    await database.close();
    for (const directory of directories) rmSync(directory, { recursive: true, force: true });
  }
}
