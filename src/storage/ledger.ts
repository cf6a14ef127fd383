import { sql } from 'kysely';
import {
  isSame,
  type LeaseRow,
  type LedgerStore,
  type Position,
  SCARCE_TIMES,
  type Settle,
  type SettleAnswer,
  type SettleBatch,
  UnstorableData,
  windowRaisesOf,
} from '../ledger/settle.ts';
import { limits } from '../limits.ts';
import { BulkStatement, transact } from './bulk.ts';
import { CallStatements } from './call-statements.ts';
import type { Database } from './database.ts';
import { deletedTo, withoutDeleted } from './deleted-generations.ts';
import { restoreLeases } from './lost-leases.ts';
import { PendingUsage } from './pending-usage.ts';
import type { Queries } from './queries.ts';
import { settledOf } from './settled.ts';
import type { StoreClock } from './store-clock.ts';
import { storeNow } from './store-now.ts';
import { isDataFault } from './unavailable.ts';
import { WindowStatements } from './window-statements.ts';

/** What a node's program can do (`ledger_nodes.charges_leases`): it charges leases alone; it also marks windows that are scarce. */
const CHARGES_LEASES = 1;
const MARKS_SCARCE = 2;

/**
 * The interval at which a node reads all windows of its leases: a change of a limit may have missed a window that was being
 * opened.
 */
const ALL_WINDOWS_MS = 60_000;

interface NodeRow extends Position {
  instance: string;
}

async function findNode(queries: Queries, node: string): Promise<NodeRow> {
  const known = await queries
    .selectFrom('ledger_nodes')
    .select(['epoch', 'batch', 'instance'])
    .where('id', '=', node)
    .executeTakeFirst();
  return known ?? { epoch: 0, batch: 0, instance: '' };
}

/** The last batch of a node. Releasing a node raises its epoch; its last batch is of the epoch before. */
function positionOf({ epoch, batch, instance }: NodeRow): Position {
  return { epoch: instance === '' ? Math.max(0, epoch - 1) : epoch, batch };
}

/** A literal: with a parameter no engine uses the partial index of leases above zero. */
const NOTHING = sql.lit(0);

const text = (value: string) => sql`CAST(${value} AS TEXT)`;
const bigint = (value: number) => sql`CAST(${value} AS BIGINT)`;

/**
 * Numbering guards everything in a batch: it is applied once, in order, in its own epoch. No batch is applied in the epoch of
 * a release: after the store was set back, a node may have registered that epoch. Nor is one whose calls are so old that the store may
 * have counted and deleted them, unless they were looked for.
 */
function passQuery(engine: Database['engine']) {
  return sql`UPDATE ledger_nodes SET batch = ${bigint(0)}, seen_at = ${storeNow(engine, 0)}
    WHERE id = ${text('')} AND epoch = ${bigint(0)} AND batch = ${bigint(0)} AND instance <> ''
      AND COALESCE(deleted_to, 0) <= ${bigint(0)} RETURNING seen_at`;
}

/** The parameters of `passQuery`; PostgreSQL uses its own clock. `oldest`: no call that may be deleted was admitted from then on. */
function passRow(engine: Database['engine'], { node, epoch, number, at }: SettleBatch, oldest: number) {
  const guard = { node, epoch, before: number - 1, oldest };
  return engine === 'sqlite' ? { number, at, ...guard } : { number, ...guard };
}

/** Why a batch was not applied; undefined: it would be applied now. */
async function refusalOf(
  tx: Queries,
  engine: Database['engine'],
  batch: SettleBatch,
): Promise<Exclude<SettleAnswer, { is: 'applied' }> | undefined> {
  const node = await tx
    .selectFrom('ledger_nodes')
    .select(['epoch', 'batch', 'instance', storeNow(engine, batch.at).as('now')])
    .where('id', '=', batch.node)
    .executeTakeFirst();
  const { epoch, batch: number, instance, now } = node ?? { epoch: 0, batch: 0, instance: '', now: batch.at };
  if (epoch > batch.epoch || (epoch === batch.epoch && instance === '')) return { is: 'fenced', epoch };
  if (epoch === batch.epoch && number === batch.number - 1) return undefined;
  if (epoch !== batch.epoch || number < batch.number) return { is: 'behind', epoch, batch: number };
  return { is: 'already_applied', leases: await leasesOf(tx, batch.node), now };
}

function leasesOf(queries: Queries, node: string): Promise<LeaseRow[]> {
  return queries
    .selectFrom('ledger_leases')
    .select(['budget_id', 'window_start', 'amount'])
    .where('node_id', '=', node)
    .where('amount', '>', NOTHING)
    .execute();
}

/** A lease of a window that is scarce. */
interface ScarceLease {
  budget_id: string;
  window_start: string;
  wanted_by: string;
  spent: number;
  leased: number;
  limit_nano: number | null;
  /** The node that waits, if it was active lately. */
  claimant: string | null;
}

/**
 * Compiled once: a node with leases runs it four times a second. Parameters: `at` (on SQLite alone), then the node. `marked`: reads
 * the windows that are marked as scarce, which are few; otherwise all windows of the node's leases.
 */
function scarceLeasesQuery(queries: Queries, engine: Database['engine'], marked: boolean) {
  const windows = queries
    // SQLite joins in this order, whatever it knows of the tables; PostgreSQL chooses.
    .selectFrom('ledger_windows as w')
    .crossJoin('ledger_leases as l')
    .leftJoin('ledger_budgets as b', 'b.id', 'l.budget_id')
    .where(sql<boolean>`w.scarce = ${sql.lit(1)}`)
    .whereRef('l.budget_id', '=', 'w.budget_id')
    .whereRef('l.window_start', '=', 'w.window_start');
  const leases = queries
    .selectFrom('ledger_leases as l')
    .innerJoin('ledger_windows as w', (join) =>
      join.onRef('w.budget_id', '=', 'l.budget_id').onRef('w.window_start', '=', 'l.window_start'),
    )
    .leftJoin('ledger_budgets as b', 'b.id', 'l.budget_id');
  return (marked ? windows : leases)
    .select(['l.budget_id', 'l.window_start', 'w.wanted_by', 'w.spent', 'w.leased', 'b.limit_nano'])
    .select(
      sql<string | null>`(SELECT c.id FROM ledger_nodes AS c
        WHERE c.id || ' ' || CAST(c.epoch AS TEXT) = w.wanted_by
          AND c.seen_at > ${storeNow(engine, 0)} - ${sql.lit(limits.node_live_ms)})`.as('claimant'),
    )
    .where('l.node_id', '=', '')
    .where('l.amount', '>', NOTHING)
    .where(({ eb, or, ref }) =>
      or([
        eb('w.wanted_by', '<>', sql.lit('')),
        eb('b.limit_nano', 'is', null),
        eb(
          sql<number>`${ref('w.spent')} + ${sql.lit(SCARCE_TIMES + 1)} * ${ref('w.leased')}`,
          '>',
          ref('b.limit_nano'),
        ),
      ]),
    )
    .compile();
}

/** A store that adjusts the clock with the time in each answer. */
export function withTime(store: LedgerStore, clock: StoreClock): LedgerStore {
  const timed = async <T extends object>(send: () => Promise<T>): Promise<T> => {
    const sentMs = clock.monotonicMs();
    const answer = await send();
    if ('now' in answer && typeof answer.now === 'number') clock.adjust(answer.now, sentMs);
    return answer;
  };
  return {
    ...store,
    settle: (batch) => timed(() => store.settle(batch)),
    watch: (node, at) => timed(() => store.watch(node, at)),
  };
}

/** The ledger's tables: nodes, generations, and the usage that is the sum of these. One batch is one transaction. */
export function ledgerStore(queries: Queries, engine: Database['engine']): LedgerStore {
  const pass = new BulkStatement<object, { seen_at: number }>((tx) => passQuery(engine).compile(tx));
  const callStatements = new CallStatements();
  const windowStatements = new WindowStatements(engine);
  const pending = new PendingUsage(queries);
  const findScarce = new BulkStatement<object, ScarceLease>((tx) => scarceLeasesQuery(tx, engine, true));
  const findAllScarce = new BulkStatement<object, ScarceLease>((tx) => scarceLeasesQuery(tx, engine, false));
  /** When each node of this process read all of its windows last; milliseconds since 1970. */
  const allReadAt = new Map<string, number>();
  // Not known before the first `watch`. All processes on an embedded store are of one version.
  let olderNodesMayRun = engine === 'postgres';
  /** Whether nodes that do not mark scarce windows may run. */
  let unmarkedMayBeScarce = engine === 'postgres';

  /** One transaction of a batch that charges `charged`; does nothing if the store has one of these already. */
  async function apply(
    batch: SettleBatch,
    charged: readonly Settle[],
    { comparedTo, opensAll }: { comparedTo: number; opensAll: boolean },
  ): Promise<Extract<SettleAnswer, { is: 'applied' }> | { is: 'not_passed' | 'some_known' | 'window_missing' }> {
    const { node, at } = batch;
    const calls = callStatements.of(charged, node);
    const raises = windowRaisesOf(charged, batch.windows);
    const windows = windowStatements.steps(raises, batch, { opensAll, chargesLeases: !olderNodesMayRun });
    const oldest = Math.max(calls.oldest_ms, comparedTo);
    const passed = pass.step([passRow(engine, batch, oldest)], { must_change: true });
    const name = { node_id: node, epoch: batch.epoch, batch: batch.number };
    const steps = [passed, calls.inserted, ...calls.sums, pending.step(name, calls.counted.hours), ...windows.steps];
    const missed = await transact(queries, steps).catch((error: unknown) => {
      throw isDataFault(error) ? new UnstorableData((error as Error).message, { cause: error }) : error;
    });
    if (missed === passed) return { is: 'not_passed' };
    if (missed === calls.inserted) return { is: 'some_known' };
    if (missed !== undefined && !opensAll) return { is: 'window_missing' };
    if (missed !== undefined) throw new Error('A window or a lease of a batch does not exist in the store');
    callStatements.stored(calls);
    const [{ seen_at: now } = { seen_at: at }] = passed.answers;
    return { is: 'applied', windows: windows.states(), now };
  }

  /** The settles that the store does not have, each once. */
  async function unknownOf(settles: readonly Settle[]): Promise<Settle[]> {
    const ids = settles.map(({ id }) => id);
    const rows = await queries.selectFrom('ledger_generations').select('id').where('id', 'in', ids).execute();
    const known = new Set(rows.map(({ id }) => id));
    return settles.filter(({ id }) => !known.has(id) && known.add(id));
  }

  /** Ends a claim whose node is no longer active: nobody needs to return money for it. */
  async function endClaim(claim: Pick<LeaseRow, 'budget_id' | 'window_start'> & { wanted_by: string }): Promise<void> {
    await queries
      .updateTable('ledger_windows')
      .set({ wanted: 0, wanted_by: '', wanted_at: 0 })
      .where('budget_id', '=', claim.budget_id)
      .where('window_start', '=', claim.window_start)
      .where('wanted_by', '=', claim.wanted_by)
      .execute();
  }

  /** A window without leases concerns no node, until a batch leases some of it and marks it itself. */
  async function unmarkUnleased(): Promise<void> {
    await queries
      .updateTable('ledger_windows')
      .set({ scarce: 0 })
      .where(sql<boolean>`scarce = ${sql.lit(1)}`)
      .where('leased', '=', 0)
      .execute();
  }

  return {
    settle: async (batch) => {
      let comparedTo = 0;
      let opensAll = false;
      for (let charged = batch.settles; ; ) {
        const answer = await apply(batch, charged, { comparedTo, opensAll });
        if (answer.is === 'applied') {
          await pending.stored(charged.length);
          return answer;
        }
        if (answer.is === 'window_missing') {
          // It was deleted as long closed.
          opensAll = true;
          continue;
        }
        if (answer.is === 'some_known') {
          // What was charged before is not charged again.
          const unknown = await unknownOf(charged);
          if (unknown.length < charged.length) {
            charged = unknown;
            continue;
          }
          if ((await deletedTo(queries, batch.node)) === comparedTo)
            throw new Error('The store accepts generations that it does not keep');
          // They were deleted meanwhile.
        }
        const refusal = await queries.transaction().execute((tx) => refusalOf(tx, engine, batch));
        if (refusal) return refusal;
        // What was counted and deleted is not charged again. If more is deleted meanwhile, the batch does not pass.
        comparedTo = await deletedTo(queries, batch.node);
        charged = await withoutDeleted(queries, batch.node, charged);
      }
    },

    watch: async (node, at) => {
      const clock = storeNow(engine, at);
      const isAllDue = Math.abs(at - (allReadAt.get(node) ?? 0)) >= ALL_WINDOWS_MS;
      const find = unmarkedMayBeScarce || isAllDue ? findAllScarce : findScarce;
      const { answers: rows } = await find.run(queries, [engine === 'sqlite' ? { at, node } : { node }]);
      const wanted: { budget_id: string; window_start: string }[] = [];
      const scarce: typeof wanted = [];
      for (const { budget_id, window_start, wanted_by, claimant, spent, leased, limit_nano } of rows) {
        const isOver = limit_nano === null || spent + leased > limit_nano;
        if (isOver || (claimant !== null && claimant !== node)) wanted.push({ budget_id, window_start });
        else scarce.push({ budget_id, window_start });
        if (wanted_by !== '' && claimant === null) await endClaim({ budget_id, window_start, wanted_by });
      }
      const { nodes, least, now, seen_at } = await queries
        .selectFrom('ledger_nodes')
        .select(({ fn, cast }) => [
          fn.coalesce(fn.max(sql<number>`CASE WHEN id = ${node} THEN seen_at END`), sql<number>`0`).as('seen_at'),
          cast<number>(
            fn.coalesce(
              fn.sum(sql<number>`CASE WHEN seen_at > ${clock} - ${sql.lit(limits.node_live_ms)} THEN 1 ELSE 0 END`),
              sql<number>`0`,
            ),
            'bigint',
          ).as('nodes'),
          fn
            .coalesce(
              fn.min(
                sql<number>`CASE WHEN seen_at > ${clock} - ${sql.lit(limits.node_lost_ms)} THEN charges_leases END`,
              ),
              sql<number>`${sql.lit(MARKS_SCARCE)}`,
            )
            .as('least'),
          clock.as('now'),
        ])
        .executeTakeFirstOrThrow();
      olderNodesMayRun = least < CHARGES_LEASES;
      unmarkedMayBeScarce = least < MARKS_SCARCE;
      // A node may hold money for long without settling anything: it is not lost.
      if (seen_at < now - limits.node_live_ms / 2) {
        await queries.updateTable('ledger_nodes').set({ seen_at: now }).where('id', '=', node).execute();
      }
      if (isAllDue) {
        await unmarkUnleased();
        allReadAt.set(node, at);
      }
      return { wanted, scarce, keeps_leases: !unmarkedMayBeScarce, nodes, now };
    },

    keepAlive: async (node, at) => {
      await queries
        .updateTable('ledger_nodes')
        .set({ seen_at: storeNow(engine, at) })
        .where('id', '=', node)
        .execute();
    },

    look: (windows) =>
      queries
        .selectFrom('ledger_windows')
        .select(['budget_id', 'window_start'])
        .select((eb) => [
          eb('spent', '+', settledOf('ledger_windows')).as('spent'),
          eb('leased', '-', settledOf('ledger_windows')).as('leased'),
        ])
        .where(({ eb, or }) =>
          or(
            windows.map(({ budget_id, window_start }) =>
              eb.and([eb('budget_id', '=', budget_id), eb('window_start', '=', window_start)]),
            ),
          ),
        )
        .execute(),

    position: async (node) => positionOf(await findNode(queries, node)),

    register: ({ node, instance, epoch_seen, known, at }) => {
      callStatements.forget();
      return queries.transaction().execute(async (tx) => {
        await tx
          .insertInto('ledger_nodes')
          .values({ id: node, epoch: 0, instance: '', batch: 0, seen_at: 0, charges_leases: MARKS_SCARCE })
          .onConflict((conflict) => conflict.column('id').doNothing())
          .execute();
        const row = await findNode(tx, node);
        if (!isSame(positionOf(row), known)) return undefined;
        const epoch = Math.max(row.epoch, epoch_seen) + 1;
        // Compare and set: a late copy of an old registration changes nothing.
        const updated = await tx
          .updateTable('ledger_nodes')
          .set({ epoch, instance, batch: 0, seen_at: storeNow(engine, at), charges_leases: MARKS_SCARCE })
          .where('id', '=', node)
          .where('epoch', '=', row.epoch)
          .where('batch', '=', row.batch)
          .returning('seen_at')
          .executeTakeFirst();
        if (updated === undefined) return undefined;
        await restoreLeases(tx, node);
        return { epoch, leases: await leasesOf(tx, node), now: updated.seen_at };
      });
    },
  };
}
