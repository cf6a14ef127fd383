import { sql } from 'kysely';
import { recordOf, recordText } from '../ledger/journal/record-values.ts';
import type { GenerationRecord } from '../ledger/records.ts';
import { limits } from '../limits.ts';
import type { Database } from './database.ts';
import { bookLeases, findSilent, type MovedLeases, releaseLeases } from './lost-leases.ts';
import type { Queries } from './queries.ts';
import { storeNow } from './store-now.ts';
import { hourOf, NO_USAGE, SPANS, startOf } from './usage-rows.ts';
import { USAGE_OF_KEY } from './verify-ledger.ts';

/** A node that has settled anything in this store, and its leases. */
export interface LedgerNode {
  id: string;
  epoch: number;
  /** Milliseconds since it was last seen, by the store's clock; undefined: never. */
  unseen_ms: number | undefined;
  leased_nano: number;
  leases: number;
}

/** A generation with an estimated part, in a list. */
export interface EstimatedGeneration {
  id: string;
  created_at: string;
  node_id: string;
  key_hash: string;
  model: string;
  cost_nano: number;
  estimated_nano: number;
}

/** A generation whose cost was an estimate, for correction by an operator. */
export interface Resolvable {
  id: string;
  organization_id: string;
  /** Whether its cost is that of the organization's own account. */
  is_byok: boolean;
  cost_nano: number;
  /** Whether its record marks the cost as an estimate. */
  is_estimated: boolean;
  /** The windows that it was charged to. */
  windows: { budget_id: string; window_start: string }[];
  row: { key_hash: string; day: string; record: GenerationRecord };
}

/** The operator's view of the ledger, and corrections by hand. */
export function ledgerOperations(queries: Queries, engine: Database['engine']) {
  const raiseSpent = async (window: { budget_id: string; window_start: string }, by: number) => {
    await queries
      .updateTable('ledger_windows')
      .set(({ eb }) => ({ spent: eb('spent', '+', by), scarce: 1 }))
      .where('budget_id', '=', window.budget_id)
      .where('window_start', '=', window.window_start)
      .execute();
  };

  /** Corrects the sums of usage that count a generation. One that is not counted yet is counted with its corrected record. */
  const correctUsage = async (
    { id, organization_id, row: { record } }: Resolvable,
    column: 'usage_nano' | 'byok_usage_nano',
    amount: number,
  ) => {
    // A lock: another process may count it now.
    const row = await queries
      .updateTable('ledger_generations')
      .set(({ ref }) => ({ series: ref('series') }))
      .where('id', '=', id)
      .returning('series')
      .executeTakeFirst();
    const series = row?.series ?? null;
    if (series === null) return;
    const hour = hourOf(record.created_at);
    for (const span of SPANS) {
      // The sums of its batch may be pending: then the row is added now.
      const row = { span, start: startOf(hour, span), series, ...NO_USAGE, [column]: amount };
      await queries
        .insertInto('analytics_usage')
        .values(row)
        .onConflict((conflict) =>
          conflict.columns(['span', 'start', 'series']).doUpdateSet({
            [column]: sql`${sql.ref(`analytics_usage.${column}`)} + ${sql.ref(`excluded.${column}`)}`,
          }),
        )
        .execute();
    }
    if (column !== 'usage_nano') return;
    await queries
      .insertInto('organization_usage')
      .values({ organization_id, node_id: '', usage_nano: amount })
      .onConflict((conflict) =>
        conflict.columns(['organization_id', 'node_id']).doUpdateSet({
          usage_nano: sql`organization_usage.usage_nano + excluded.usage_nano`,
        }),
      )
      .execute();
  };

  return {
    /** All nodes, the last seen first. `at`: this machine's time, milliseconds since 1970. */
    listNodes: async (at: number): Promise<LedgerNode[]> => {
      const rows = await queries
        .selectFrom('ledger_nodes as n')
        .leftJoin('ledger_leases as l', (join) => join.onRef('l.node_id', '=', 'n.id').on('l.amount', '>', sql.lit(0)))
        .select(['n.id', 'n.epoch', 'n.seen_at', storeNow(engine, at).as('now')])
        .select(({ fn }) => fn.count<number>('l.amount').as('leases'))
        .select(sql<number>`CAST(COALESCE(SUM(l.amount), 0) AS BIGINT)`.as('leased_nano'))
        .groupBy(['n.id', 'n.epoch', 'n.seen_at'])
        .orderBy('n.seen_at', 'desc')
        .orderBy('n.id')
        .execute();
      return rows.map(({ seen_at, now, ...node }) => ({
        ...node,
        unseen_ms: seen_at === 0 ? undefined : now - seen_at,
      }));
    },

    /** The money leased to nodes that were not seen for `limits.node_lost_ms`, nano-USD. */
    sumInDoubt: async (at: number): Promise<number> => {
      const { in_doubt } = await queries
        .selectFrom('ledger_leases as l')
        .innerJoin('ledger_nodes as n', 'n.id', 'l.node_id')
        .select(sql<number>`CAST(COALESCE(SUM(l.amount), 0) AS BIGINT)`.as('in_doubt'))
        .where('n.seen_at', '<', sql<number>`${storeNow(engine, at)} - ${sql.lit(limits.node_lost_ms)}`)
        .executeTakeFirstOrThrow();
      return in_doubt;
    },

    /** The money booked as spent for lost nodes, and the estimated part of all generations; nano-USD. */
    sumPresumed: async (): Promise<{ booked_nano: number; estimated_nano: number; estimated: number }> => {
      const { booked_nano } = await queries
        .selectFrom('ledger_lost_leases')
        .select(sql<number>`CAST(COALESCE(SUM(amount), 0) AS BIGINT)`.as('booked_nano'))
        .executeTakeFirstOrThrow();
      const sums = await queries
        .selectFrom('ledger_generations')
        .select(({ fn }) => fn.countAll<number>().as('estimated'))
        .select(sql<number>`CAST(COALESCE(SUM(estimated), 0) AS BIGINT)`.as('estimated_nano'))
        .where('estimated', '>', sql.lit(0))
        .executeTakeFirstOrThrow();
      return { booked_nano, ...sums };
    },

    /** Generations with an estimated part, by id, after the one with the id `after`. */
    listEstimated: async ({ after, limit }: { after: string; limit: number }): Promise<EstimatedGeneration[]> => {
      const rows = await queries
        .selectFrom('ledger_generations')
        .select(['id', 'created_at', 'node_id', 'key_hash', 'cost', 'estimated', 'record'])
        .where('estimated', '>', sql.lit(0))
        .where('id', '>', after)
        .orderBy('id')
        .limit(limit)
        .execute();
      return rows.map(({ cost, estimated, record, ...row }) => ({
        ...row,
        model: recordOf(record).model,
        cost_nano: cost,
        estimated_nano: estimated,
      }));
    },

    /** See `releaseLeases`: for a node that was silent for `limits.node_lost_ms`. */
    release: (node: string, at: number) => releaseLeases(queries, engine, { node, at, silent_ms: limits.node_lost_ms }),

    /** See `findSilent`. */
    findSilent: (at: number, silentMs: number) => findSilent(queries, engine, { at, silent_ms: silentMs }),

    /** See `bookLeases`. */
    book: (node: string, at: number, silentMs: number): Promise<MovedLeases | undefined> =>
      bookLeases(queries, engine, { node, at, silent_ms: silentMs }),

    /** A generation as it was charged; undefined if the store has none with this id. */
    findResolvable: async (id: string): Promise<Resolvable | undefined> => {
      const row = await queries
        .selectFrom('ledger_generations')
        .select(['organization_id', 'key_hash', 'cost', 'charges', 'record', 'created_at'])
        .where('id', '=', id)
        .executeTakeFirst();
      if (row === undefined) return undefined;
      const record = recordOf(row.record);
      const { is_byok, attempts, outcome } = record;
      const charges = JSON.parse(row.charges) as [string, string, number][];
      return {
        id,
        organization_id: row.organization_id,
        is_byok,
        cost_nano: is_byok ? (record.byok_cost_nano ?? record.upstream_cost_nano) : record.cost_nano,
        is_estimated: outcome === 'unknown' || attempts.some(({ estimated }) => estimated === true),
        // Own accounts count in some budgets only: those that were charged more than what the organization owes.
        windows: charges
          .filter(([, , amount]) => !is_byok || amount > row.cost)
          .map(([budgetId, windowStart]) => ({ budget_id: budgetId, window_start: windowStart })),
        row: { key_hash: row.key_hash, day: row.created_at.slice(0, 'YYYY-MM-DD'.length), record },
      };
    },

    /**
     * Corrects the cost of a generation everywhere it is counted. Throws a unique violation of the adjustments if it was
     * corrected before.
     */
    resolve: async (
      generation: Resolvable,
      { cost_nano, reason, at }: { cost_nano: number; reason: string; at: string },
    ) => {
      const { id, is_byok, windows, row } = generation;
      const { key_hash, day, record } = row;
      const amount = cost_nano - generation.cost_nano;
      const adjustment = { generation_id: id, reason, created_at: at };
      await queries
        .insertInto('ledger_adjustments')
        .values([
          {
            id: `${id}:usage`,
            budget_id: `${USAGE_OF_KEY}${key_hash}`,
            window_start: day,
            amount: is_byok ? 0 : amount,
            ...adjustment,
          },
          ...windows.map((window) => ({ id: `${id}:${window.budget_id}`, ...window, amount, ...adjustment })),
        ])
        .execute();
      const column = is_byok ? 'byok_usage_nano' : 'usage_nano';
      await queries
        .updateTable('usage_days')
        .set(({ eb }) => ({ [column]: eb(column, '+', amount) }))
        .where('scope', '=', 'key')
        .where('scope_id', '=', key_hash)
        .where('day', '=', day)
        .execute();
      await queries
        .updateTable('activity_days')
        .set(({ eb }) => ({ [column]: eb(column, '+', amount) }))
        .where('key_hash', '=', key_hash)
        .where('day', '=', day)
        .where('model', '=', record.model)
        .where('endpoint_id', '=', record.endpoint_id ?? '')
        .execute();
      await correctUsage(generation, column, amount);
      const ordered = [...windows].sort((a, b) => (a.budget_id < b.budget_id ? -1 : 1));
      for (const window of ordered) await raiseSpent(window, amount);
      await queries
        .updateTable('ledger_generations')
        .set({ record: recordText(correctedRecord(record, { is_byok, cost_nano, amount })), estimated: 0 })
        .where('id', '=', id)
        .execute();
    },
  };
}

/** The corrected record, for `GET /generation`. The row's own cost and charges stay as settled. */
function correctedRecord(
  record: GenerationRecord,
  { is_byok, cost_nano, amount }: { is_byok: boolean; cost_nano: number; amount: number },
): GenerationRecord {
  const last = record.attempts.findLastIndex(({ estimated }) => estimated === true);
  const attempts = record.attempts.map((attempt, index) =>
    index === last ? { ...attempt, cost_nano: attempt.cost_nano + amount, estimated: false } : attempt,
  );
  return { ...record, ...(is_byok ? { byok_cost_nano: cost_nano } : { cost_nano }), attempts, is_resolved: true };
}
