import { sql } from 'kysely';
import type { LeaseRow } from '../ledger/settle.ts';
import type { Database, Queries } from './database.ts';
import { storeNow } from './store-now.ts';

/** In the order in which batches take windows, whatever the engine sorts by: two writers do not wait for each other. */
function inOrder(rows: LeaseRow[]): LeaseRow[] {
  const name = ({ budget_id, window_start }: LeaseRow) => `${budget_id} ${window_start}`;
  return rows.sort((a, b) => (name(a) < name(b) ? -1 : 1));
}

/** Moves money of a window: what is spent of it, and what nodes have set aside, rise by so much. */
async function raiseWindow(tx: Queries, { budget_id, window_start }: LeaseRow, by: { spent: number; leased: number }) {
  await tx
    .updateTable('ledger_windows')
    .set(({ eb }) => ({ spent: eb('spent', '+', by.spent), leased: eb('leased', '+', by.leased) }))
    .where('budget_id', '=', budget_id)
    .where('window_start', '=', window_start)
    .execute();
}

/** What was moved, in all. */
export interface MovedLeases {
  leased_nano: number;
  leases: number;
}

function sumOf(rows: readonly LeaseRow[]): MovedLeases {
  return { leases: rows.length, leased_nano: rows.reduce((sum, { amount }) => sum + amount, 0) };
}

/**
 * Fences a node that was silent for so long, and takes its leases off. Undefined where there is no such node, or it was
 * heard of since.
 */
async function takeLeases(
  tx: Queries,
  engine: Database['engine'],
  { node, at, silent_ms }: { node: string; at: number; silent_ms: number },
): Promise<LeaseRow[] | undefined> {
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
    .returning(['budget_id', 'window_start', 'amount'])
    .execute();
  return inOrder(rows.filter(({ amount }) => amount > 0));
}

/** Takes off what was booked as spent for a node. */
async function takeBooked(tx: Queries, node: string): Promise<LeaseRow[]> {
  const rows = await tx
    .deleteFrom('ledger_lost_leases')
    .where('node_id', '=', node)
    .returning(['budget_id', 'window_start', 'amount'])
    .execute();
  return inOrder(rows);
}

/**
 * Gives up what a silent node has set aside, and what was booked for it: it is free, and what the node settles later is spent
 * without having been set aside. Run in a transaction. Undefined: see `takeLeases`.
 */
export async function releaseLeases(
  tx: Queries,
  engine: Database['engine'],
  facts: { node: string; at: number; silent_ms: number },
): Promise<(MovedLeases & { booked_nano: number }) | undefined> {
  const leases = await takeLeases(tx, engine, facts);
  if (leases === undefined) return undefined;
  for (const lease of leases) await raiseWindow(tx, lease, { spent: 0, leased: -lease.amount });
  const booked = await takeBooked(tx, facts.node);
  for (const lease of booked) await raiseWindow(tx, lease, { spent: -lease.amount, leased: 0 });
  return { ...sumOf(leases), booked_nano: sumOf(booked).leased_nano };
}

/**
 * Books what a silent node has set aside as spent, and fences it: nothing becomes free. It is a lease again when the node
 * registers, so that its journal says what of it was spent. Run in a transaction. Undefined: see `takeLeases`.
 */
export async function bookLeases(
  tx: Queries,
  engine: Database['engine'],
  facts: { node: string; at: number; silent_ms: number },
): Promise<MovedLeases | undefined> {
  const leases = await takeLeases(tx, engine, facts);
  if (leases === undefined) return undefined;
  const booked_at = new Date(facts.at).toISOString();
  for (const lease of leases) {
    await raiseWindow(tx, lease, { spent: lease.amount, leased: -lease.amount });
    await tx
      .insertInto('ledger_lost_leases')
      .values({ node_id: facts.node, ...lease, booked_at })
      .onConflict((conflict) =>
        conflict
          .columns(['node_id', 'budget_id', 'window_start'])
          .doUpdateSet({ amount: sql`ledger_lost_leases.amount + excluded.amount` }),
      )
      .execute();
  }
  return sumOf(leases);
}

/** What was booked for a node is its lease again: it registers, and its journal says what of it was spent. Run in the registration's transaction. */
export async function restoreLeases(tx: Queries, node: string): Promise<void> {
  for (const lease of await takeBooked(tx, node)) {
    await raiseWindow(tx, lease, { spent: -lease.amount, leased: lease.amount });
    await tx
      .insertInto('ledger_leases')
      .values({ node_id: node, ...lease })
      .onConflict((conflict) =>
        conflict
          .columns(['node_id', 'budget_id', 'window_start'])
          .doUpdateSet({ amount: sql`ledger_leases.amount + excluded.amount` }),
      )
      .execute();
  }
}

/** Nodes that have money set aside and were silent for so long, with the moment at which each was last heard of. */
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
