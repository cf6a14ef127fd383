/**
 * What settling a call costs: batches of outcomes of one key and of many. The folders of several commits take turns in one process, so that
 * their processor times can be compared on a busy machine. With `--database`, an empty PostgreSQL of its own, the bytes of its log are
 * counted; otherwise SQLite in a temporary folder.
 */
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { Client } from 'pg';
import { digits, median, table } from './report.ts';

const USAGE = `node bin/launch.cjs bench/settling.ts [options]
  --trees A,B    folders of commits (this one)
  --sizes N,M    calls of a batch (400)
  --keys N,M     keys of the calls (1,500)
  --calls N      calls of a round (8,000)
  --rounds N     rounds that count (5), after one to warm up
  --database U   an empty PostgreSQL that nothing else uses
`;

const { values } = parseArgs({
  options: {
    trees: { type: 'string', default: join(import.meta.dirname, '..') },
    sizes: { type: 'string', default: '400' },
    keys: { type: 'string', default: '1,500' },
    calls: { type: 'string', default: '8000' },
    rounds: { type: 'string', default: '5' },
    database: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
});
const START_MS = Date.parse('2026-11-21T10:00:00.000Z');

type Sources = typeof import('../src/storage/database.ts') &
  typeof import('../src/storage/ledger.ts') &
  typeof import('../src/ledger/settle.ts') &
  typeof import('../test/generation-fixture.ts');

async function load(tree: string): Promise<Sources> {
  const files = [
    'src/storage/database.ts',
    'src/storage/ledger.ts',
    'src/ledger/settle.ts',
    'test/generation-fixture.ts',
  ];
  const modules = await Promise.all(files.map((file) => import(pathToFileURL(resolve(tree, file)).href)));
  return Object.assign({}, ...modules);
}

/** The cost of a call in one round. */
interface Cost {
  thread_us: number;
  process_us: number;
  written_bytes: number;
}

/** The size of PostgreSQL's log, or the bytes that this process has written to files. */
async function writtenBytes(client: Client | undefined): Promise<number> {
  if (client === undefined) return Number(/^wchar: (\d+)/m.exec(readFileSync('/proc/self/io', 'utf8'))?.[1]);
  const { rows } = await client.query(`SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn AS bytes`);
  return Number(rows[0].bytes);
}

/** The store of one commit, in which batches are settled. */
class Subject {
  readonly costs: Cost[] = [];
  readonly #sources: Sources;
  readonly #size: number;
  readonly #keys: number;
  readonly #client: Client | undefined;
  readonly #folder = mkdtempSync(join(tmpdir(), 'settling-'));
  #database: Awaited<ReturnType<Sources['openDatabase']>> | undefined;
  #settle: ((settles: ReturnType<Sources['toSettle']>[]) => Promise<void>) | undefined;
  #calls = 0;

  constructor(sources: Sources, { size, keys, client }: { size: number; keys: number; client: Client | undefined }) {
    this.#sources = sources;
    this.#size = size;
    this.#keys = keys;
    this.#client = client;
  }

  async open(schema: string): Promise<void> {
    let where: Parameters<Sources['openDatabase']>[0] = { data_dir: this.#folder };
    if (this.#client !== undefined && values.database !== undefined) {
      await this.#client.query(`CREATE SCHEMA ${schema}`);
      const url = new URL(values.database);
      url.searchParams.set('options', `-c search_path=${schema}`);
      where = { database_url: url.href };
    }
    const database = await this.#sources.openDatabase(where);
    const ledger = this.#sources.ledgerStore(database.queries, database.engine);
    const known = await ledger.position('bench');
    const registered = await ledger.register({ node: 'bench', instance: 'i', epoch_seen: 0, known, at: START_MS });
    let number = 0;
    this.#database = database;
    this.#settle = async (settles) => {
      number += 1;
      const batch = {
        node: 'bench',
        epoch: registered?.epoch ?? 0,
        number,
        at: START_MS,
        settles,
        windows: [],
        divisor: 2,
      };
      const { is } = await ledger.settle(batch);
      if (is !== 'applied') throw new Error(`A batch was not applied: ${is}`);
    };
  }

  /** The time between calls at a hundred a second. */
  #batch(): ReturnType<Sources['toSettle']>[] {
    return Array.from({ length: this.#size }, () => {
      this.#calls += 1;
      const nth = this.#calls;
      const at = START_MS + nth * 10;
      const record = this.#sources.generation({
        id: `gen-${Math.floor(at / 1000)}-${String((nth * 48_271) % 2_147_483_647).padStart(20, '0')}`,
        key_hash: String((nth * 7_919) % this.#keys).padEnd(64, 'a'),
        created_at: new Date(at).toISOString(),
        latency: 300 + ((nth * 31) % 200),
        generation_time: 1_500 + ((nth * 37) % 800),
      });
      return this.#sources.toSettle(record, []);
    });
  }

  async round(): Promise<void> {
    const batches = Math.ceil(Number(values.calls) / this.#size);
    const cost: Cost = { thread_us: 0, process_us: 0, written_bytes: -(await writtenBytes(this.#client)) };
    for (let left = batches; left > 0; left -= 1) {
      const settles = this.#batch();
      const whole = process.cpuUsage();
      const thread = process.threadCpuUsage();
      await this.#settle?.(settles);
      const spent = process.threadCpuUsage(thread);
      const all = process.cpuUsage(whole);
      cost.thread_us += spent.user + spent.system;
      cost.process_us += all.user + all.system;
    }
    cost.written_bytes += await writtenBytes(this.#client);
    const calls = batches * this.#size;
    const { thread_us, process_us, written_bytes } = cost;
    this.costs.push({
      thread_us: thread_us / calls,
      process_us: process_us / calls,
      written_bytes: written_bytes / calls,
    });
  }

  /** Bytes of the file for a call; undefined for PostgreSQL. */
  async close(): Promise<number> {
    await this.#database?.close();
    const bytes =
      this.#client === undefined ? statSync(join(this.#folder, 'gateway.db')).size / this.#calls : Number.NaN;
    rmSync(this.#folder, { recursive: true, force: true });
    return bytes;
  }
}

async function measure(client: Client | undefined): Promise<void> {
  const trees = values.trees.split(',');
  const sources = await Promise.all(trees.map(load));
  for (const size of values.sizes.split(',').map(Number)) {
    for (const keys of values.keys.split(',').map(Number)) {
      const subjects = sources.map((source) => new Subject(source, { size, keys, client }));
      for (const [index, subject] of subjects.entries()) await subject.open(`settling_${size}_${keys}_${index}`);
      for (let nth = 0; nth <= Number(values.rounds); nth += 1) for (const subject of subjects) await subject.round();
      const rows: string[][] = [];
      for (const [index, subject] of subjects.entries()) {
        const costs = subject.costs.slice(1);
        const of = (pick: (cost: Cost) => number) => digits(1)(median(costs.map(pick)));
        const least = digits(1)(Math.min(...costs.map(({ process_us }) => process_us)));
        const stored = digits(0)(await subject.close());
        const [thread, whole] = [of(({ thread_us }) => thread_us), of(({ process_us }) => process_us)];
        rows.push([trees[index] ?? '', thread, whole, least, of(({ written_bytes }) => written_bytes), stored]);
      }
      const columns = ['', 'serving thread', 'process', 'least', 'bytes written', 'bytes stored'];
      process.stdout.write(`${table(`A call in batches of ${size}, ${keys} keys, us`, columns, rows)}\n`);
    }
  }
}

if (values.help) {
  process.stdout.write(USAGE);
} else {
  const client = values.database === undefined ? undefined : new Client({ connectionString: values.database });
  await client?.connect();
  await measure(client);
  await client?.end();
}
