import { sql } from 'kysely';
import type { LeaseRow } from '../ledger/settle.ts';
import type { Database } from './database.ts';
import type { Queries } from './queries.ts';
import { storeNow } from './store-now.ts';

/** A lease with what its node has settled of it and the window's row does not count as spent yet. */
interface HeldRow extends LeaseRow {
  settled: number;
}

/** Sorts leases in the order in which batches lock windows, independently of the engine: two writers do not deadlock. */
function inOrder<Row extends LeaseRow>(rows: Row[]): Row[] {
  const name = ({ budget_id, window_start }: LeaseRow) => `${budget_id} ${window_start}`;
  return rows.sort((a, b) => (name(a) < name(b) ? -1 : 1));
}

/** Raises the spent and the leased amount of a window. The next batch shows whether money is scarce then. */
async function raiseWindow(tx: Queries, { budget_id, window_start }: LeaseRow, by: { spent: number; leased: number }) {
  await tx
    .updateTable('ledger_windows')
    .set(({ eb }) => ({ spent: eb('spent', '+', by.spent), leased: eb('leased', '+', by.leased), scarce: 1 }))
    .where('budget_id', '=', budget_id)
    .where('window_start', '=', window_start)
    .execute();
}

/** The total of the moved leases. */
export interface MovedLeases {
  leased_nano: number;
  leases: number;
}

function sumOf(rows: readonly LeaseRow[]): MovedLeases {
  const held = rows.filter(({ amount }) => amount > 0);
  return { leases: held.length, leased_nano: rows.reduce((sum, { amount }) => sum + amount, 0) };
}

/**
 * Fences a node that has been silent for `silent_ms`, and removes its leases. Undefined if there is no such node, or if it
 * was seen since.
 */
async function takeLeases(
  tx: Queries,
  engine: Database['engine'],
  { node, at, silent_ms }: { node: string; at: number; silent_ms: number },
): Promise<HeldRow[] | undefined> {
  const fenced = await tx
    .updateTable('ledger_nodes')
    .set({ epoch: sql<number>`CASE WHEN instance = '' THEN epoch ELSE epoch + 1 END`, instance: '' })
    .where('id', '=', node)
    .where('seen_at', '<', sql<number>`${storeNow(engine, at)} - ${sql.lit(silent_ms)}`)
    .returning('epoch')
    .executeTakeFirst();
  if (fenced === undefined) return undefined;
  const rows = await tx
    .deleteFrom('ledger_leases')
    .where('node_id', '=', node)
    .returning(['budget_id', 'window_start', 'amount', 'settled'])
    .execute();
  return inOrder(rows.filter(({ amount, settled }) => amount > 0 || settled > 0));
}

/** Removes what was booked as spent for a node. */
async function takeBooked(tx: Queries, node: string): Promise<LeaseRow[]> {
  const rows = await tx
    .deleteFrom('ledger_lost_leases')
    .where('node_id', '=', node)
    .returning(['budget_id', 'window_start', 'amount'])
    .execute();
  return inOrder(rows);
}

/**
 * Frees the leases of a silent node, and what was booked for it; what the node settles later is spent without a lease. Run it
 * in a transaction. Returns undefined as `takeLeases` does.
 */
export async function releaseLeases(
  tx: Queries,
  engine: Database['engine'],
  facts: { node: string; at: number; silent_ms: number },
): Promise<(MovedLeases & { booked_nano: number }) | undefined> {
  const leases = await takeLeases(tx, engine, facts);
  if (leases === undefined) return undefined;
  for (const lease of leases)
    await raiseWindow(tx, lease, { spent: lease.settled, leased: -lease.settled - lease.amount });
  const booked = await takeBooked(tx, facts.node);
  for (const lease of booked) await raiseWindow(tx, lease, { spent: -lease.amount, leased: 0 });
  return { ...sumOf(leases), booked_nano: sumOf(booked).leased_nano };
}

/**
 * Books the leases of a silent node as spent, and fences it: nothing becomes free. They are leases again when the node
 * registers, and its journal then shows what was spent. Run it in a transaction. Returns undefined as `takeLeases` does.
 */
export async function bookLeases(
  tx: Queries,
  engine: Database['engine'],
  facts: { node: string; at: number; silent_ms: number },
): Promise<MovedLeases | undefined> {
  const leases = await takeLeases(tx, engine, facts);
  if (leases === undefined) return undefined;
  const bookedAt = new Date(facts.at).toISOString();
  for (const { settled, ...lease } of leases) {
    await raiseWindow(tx, lease, { spent: settled + lease.amount, leased: -settled - lease.amount });
    if (lease.amount === 0) continue;
    await tx
      .insertInto('ledger_lost_leases')
      .values({ node_id: facts.node, ...lease, booked_at: bookedAt })
      .onConflict((conflict) =>
        conflict
          .columns(['node_id', 'budget_id', 'window_start'])
          .doUpdateSet({ amount: sql`ledger_lost_leases.amount + excluded.amount` }),
      )
      .execute();
  }
  return sumOf(leases);
}

/** Turns what was booked for a node into leases again, in the transaction of its registration: its journal shows what was spent. */
export async function restoreLeases(tx: Queries, node: string): Promise<void> {
  for (const lease of await takeBooked(tx, node)) {
    await raiseWindow(tx, lease, { spent: -lease.amount, leased: lease.amount });
    await tx
      .insertInto('ledger_leases')
      .values({ node_id: node, ...lease, settled: 0 })
      .onConflict((conflict) =>
        conflict
          .columns(['node_id', 'budget_id', 'window_start'])
          .doUpdateSet({ amount: sql`ledger_leases.amount + excluded.amount` }),
      )
      .execute();
  }
}

/** Nodes with leases that have been silent for `silent_ms`, and when each was last seen. */
export function findSilent(
  queries: Queries,
  engine: Database['engine'],
  { at, silent_ms }: { at: number; silent_ms: number },
): Promise<{ id: string; seen_at: number }[]> {
  return queries
    .selectFrom('ledger_nodes as n')
    .select(['n.id', 'n.seen_at'])
    .where('n.seen_at', '<', sql<number>`${storeNow(engine, at)} - ${sql.lit(silent_ms)}`)
    .where(({ exists, selectFrom }) =>
      exists(
        selectFrom('ledger_leases as l')
          .select('l.amount')
          .whereRef('l.node_id', '=', 'n.id')
          .where('l.amount', '>', sql.lit(0)),
      ),
    )
    .orderBy('n.id')
    .execute();
}
