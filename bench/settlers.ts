import { fork } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';

/**
 * How many batches a second several processes settle in one organization's credits on one PostgreSQL, which is a window
 * that all of them charge. The database of `--database` must be empty; `--sources` names the `src` of another commit.
 */
const { values } = parseArgs({
  options: {
    database: { type: 'string' },
    sources: { type: 'string', default: join(import.meta.dirname, '../src') },
    processes: { type: 'string', default: '4' },
    nodes: { type: 'string', default: '4' },
    seconds: { type: 'string', default: '5' },
    settler: { type: 'string' },
  },
});

const CALL_NANO = 1_000;
/** What a process reserves for a call: several times its cost, as in production. */
const HOLD_NANO = 20 * CALL_NANO;
const CREDITS = 'organization:bench';

type Sources = typeof import('../src/storage/database.ts') &
  typeof import('../src/storage/ledger.ts') &
  typeof import('../src/storage/verify-ledger.ts') &
  typeof import('../src/ledger/settle.ts') &
  typeof import('../src/ledger/leases/leases.ts') &
  typeof import('../test/generation-fixture.ts');

async function load(): Promise<Sources> {
  const files = [
    'storage/database.ts',
    'storage/ledger.ts',
    'storage/verify-ledger.ts',
    'ledger/settle.ts',
    'ledger/leases/leases.ts',
  ];
  const paths = [
    ...files.map((file) => join(values.sources, file)),
    join(values.sources, '../test/generation-fixture.ts'),
  ];
  return Object.assign({}, ...(await Promise.all(paths.map((path) => import(pathToFileURL(path).href)))));
}

const { openDatabase, ledgerStore, verifyLedger, toSettle, Leases, generation } = await load();
const database = await openDatabase({ database_url: values.database ?? '' });
const store = ledgerStore(database.queries, database.engine);
const budget = {
  id: CREDITS,
  scope: 'organization' as const,
  label: '',
  reset_interval: 'never' as const,
  limit_nano: 1e15,
  include_byok: false,
};

/** One node: it admits a call, ends it, and settles it in a batch of its own, then the next one. */
async function settleFor(node: string, untilMs: number): Promise<{ batches: number; longest_ms: number }> {
  const known = await store.position(node);
  const registered = await store.register({ node, instance: node, epoch_seen: 0, known, at: Date.now() });
  if (registered === undefined) throw new Error('The node was not registered');
  let needs = false;
  const leases = new Leases({
    now: Date.now,
    monotonic: () => performance.now(),
    onNeed: () => {
      needs = true;
    },
    isStoreAway: () => false,
  });
  await store.watch(node, Date.now());
  leases.registered(registered.leases);
  leases.open();
  let number = 0;
  let longestMs = 0;
  let settles: ReturnType<typeof toSettle>[] = [];
  const send = async () => {
    needs = false;
    number += 1;
    const windows = leases.freeze(settles, number, true);
    const sent = settles;
    settles = [];
    const beganMs = performance.now();
    const answer = await store.settle({
      ...{ node, epoch: registered.epoch, number, at: Date.now(), settles: sent, windows, divisor: leases.divisor },
    });
    longestMs = Math.max(longestMs, performance.now() - beganMs);
    if (answer.is !== 'applied') throw new Error(`A batch was not applied: ${answer.is}`);
    leases.applied(sent, number, answer.windows);
  };
  while (Date.now() < untilMs) {
    const request = {
      id: randomUUID(),
      budgets: [budget],
      is_byok: false,
      full_nano: HOLD_NANO,
      least_nano: HOLD_NANO,
    };
    const hold = leases.reserve(request as never, undefined);
    if (hold instanceof Promise) {
      if (needs) await send();
    }
    const held = await hold;
    leases.book.attempted(held);
    const charges = leases.book.settle(held, () => CALL_NANO);
    settles.push(toSettle(generation({ id: request.id, cost_nano: CALL_NANO, key_hash: node }), charges));
    await send();
  }
  return { batches: number, longest_ms: longestMs };
}

if (values.settler !== undefined) {
  const untilMs = Date.now() + Number(values.seconds) * 1_000;
  const nodes = Array.from({ length: Number(values.nodes) }, (_, at) => `${values.settler}-${at}`);
  process.send?.(await Promise.all(nodes.map((node) => settleFor(node, untilMs))));
  await database.close();
  process.disconnect();
} else {
  const { subject, ...row } = { ...budget, subject: CREDITS };
  await database.queries
    .insertInto('ledger_budgets')
    .values({ ...row, subject, guardrail_id: null, version: 1 } as never)
    .onConflict((conflict) => conflict.doNothing())
    .execute();
  const args = process.argv.slice(2);
  const all = await Promise.all(
    Array.from({ length: Number(values.processes) }, async (_, at) => {
      const child = fork(import.meta.filename, [...args, '--settler', `${Date.now()}-${at}`]);
      return await new Promise<{ batches: number; longest_ms: number }[]>((resolve, reject) => {
        child.once('message', (message) => resolve(message as never));
        child.once('error', reject);
        child.once('exit', (code) => code !== 0 && reject(new Error(`A settler ended with ${code}`)));
      });
    }),
  );
  const nodes = all.flat();
  const batches = nodes.reduce((sum, node) => sum + node.batches, 0);
  const { generations, differences } = await verifyLedger(database.queries);
  process.stdout.write(
    `${values.processes} processes of ${values.nodes} nodes: ${Math.round(batches / Number(values.seconds))} batches/s, ` +
      `the longest took ${Math.round(Math.max(...nodes.map((node) => node.longest_ms)))} ms; ` +
      `${generations} generations, ${differences.filter(({ of }) => of !== 'generations').length} differences\n`,
  );
  await database.close();
}
