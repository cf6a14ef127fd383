import { sql } from 'kysely';
import type { Settle } from '../ledger/settle.ts';
import type { Queries } from './queries.ts';
import { hourOf } from './usage-rows.ts';

const PAGE = 5_000;

/** Calls of a node that were admitted before this moment may be deleted; milliseconds since 1970, 0: none. */
export async function deletedTo(queries: Queries, node: string): Promise<number> {
  const row = await queries.selectFrom('ledger_nodes').select('deleted_to').where('id', '=', node).executeTakeFirst();
  return row?.deleted_to ?? 0;
}

/** The settles of a node without those that the store has counted and deleted. Reads the ids of one hour at a time. */
export async function withoutDeleted(queries: Queries, node: string, settles: readonly Settle[]): Promise<Settle[]> {
  const deleted = new Set<string>();
  for (const [hour, ofHour] of Map.groupBy(settles, ({ created_at }) => hourOf(created_at))) {
    const rows = await queries
      .selectFrom('ledger_deleted_ids')
      .select('ids')
      .where('node_id', '=', node)
      .where('hour', '=', hour)
      .execute();
    const ids = new Set(rows.flatMap((row) => JSON.parse(row.ids) as string[]));
    for (const { id } of ofHour) if (ids.has(id)) deleted.add(id);
  }
  return settles.filter(({ id }) => !deleted.has(id));
}

/** Adds what deleted generations have charged. */
export async function addDeletedCharges(tx: Queries, charged: Map<string, number>): Promise<void> {
  for (let last = { budget_id: '', window_start: '' }; ; ) {
    const rows = await tx
      .selectFrom('ledger_deleted_charges')
      .selectAll()
      .where(sql<boolean>`(budget_id, window_start) > (${last.budget_id}, ${last.window_start})`)
      .orderBy('budget_id')
      .orderBy('window_start')
      .limit(PAGE)
      .execute();
    for (const { budget_id, window_start, amount } of rows) {
      const name = `${budget_id} ${window_start}`;
      charged.set(name, (charged.get(name) ?? 0) + amount);
    }
    last = rows.at(-1) ?? last;
    if (rows.length < PAGE) return;
  }
}

/** The sums of a series on a day of which generations are deleted. */
export interface DeletedDay {
  /** The sum of the generations. */
  cost: number;
  requests: number;
  key_hash: string;
  /** The sum of the hours of usage. */
  actual_cost: number;
  actual_requests: number;
}

/** The sums of deleted generations, by series and the first hour of the day. */
export async function deletedDays(tx: Queries): Promise<Map<string, DeletedDay>> {
  const days = new Map<string, DeletedDay>();
  for (let last = { series: -1, day: '', key_hash: '' }; ; ) {
    const rows = await tx
      .selectFrom('ledger_deleted_days')
      .selectAll()
      .where(sql<boolean>`(series, day, key_hash) > (${last.series}, ${last.day}, ${last.key_hash})`)
      .orderBy('series')
      .orderBy('day')
      .orderBy('key_hash')
      .limit(PAGE)
      .execute();
    for (const { series, day, key_hash, cost, requests, corrections } of rows) {
      const name = `${series} ${hourOf(day)}`;
      const sums = days.get(name) ?? { cost: 0, requests: 0, key_hash, actual_cost: 0, actual_requests: 0 };
      days.set(name, sums);
      sums.cost += cost + corrections;
      sums.requests += requests;
    }
    last = rows.at(-1) ?? last;
    if (rows.length < PAGE) return days;
  }
}

/** The sums that are kept of deleted generations, as rows of their tables. */
export interface DeletedSums {
  /** In the order of their ids. `deleted_to`: milliseconds since 1970, after the last admission. */
  nodes: { id: string; deleted_to: number }[];
  ids: { node_id: string; hour: number; first_id: string; ids: string }[];
  days: { series: number; day: string; key_hash: string; cost: number; requests: number; corrections: number }[];
  charges: { budget_id: string; window_start: string; amount: number }[];
}

interface DeletedRow {
  id: string;
  node_id: string;
  key_hash: string;
  series: number;
  cost: number;
  charges: string;
  admitted_at: number;
  created_at: string;
}

/** `corrections`: of the cost, by generation. */
export function sumsOf(rows: readonly DeletedRow[], corrections: ReadonlyMap<string, number>): DeletedSums {
  const nodes = new Map<string, DeletedSums['nodes'][number]>();
  const lists = new Map<string, { node_id: string; hour: number; ids: string[] }>();
  const days = new Map<string, DeletedSums['days'][number]>();
  const charges = new Map<string, DeletedSums['charges'][number]>();
  for (const { id, node_id, key_hash, series, cost, ...row } of rows) {
    const node = nodes.get(node_id) ?? { id: node_id, deleted_to: 0 };
    nodes.set(node_id, node);
    node.deleted_to = Math.max(node.deleted_to, row.admitted_at + 1);
    const hour = hourOf(row.created_at);
    const list = lists.get(`${hour} ${node_id}`) ?? { node_id, hour, ids: [] };
    lists.set(`${hour} ${node_id}`, list);
    list.ids.push(id);
    const day = row.created_at.slice(0, 'YYYY-MM-DD'.length);
    const name = `${series} ${day} ${key_hash}`;
    const sums = days.get(name) ?? { series, day, key_hash, cost: 0, requests: 0, corrections: 0 };
    days.set(name, sums);
    sums.cost += cost;
    sums.requests += 1;
    sums.corrections += corrections.get(id) ?? 0;
    for (const [budgetId, windowStart, amount] of JSON.parse(row.charges) as [string, string, number][]) {
      const window = `${budgetId} ${windowStart}`;
      const charge = charges.get(window) ?? { budget_id: budgetId, window_start: windowStart, amount: 0 };
      charges.set(window, charge);
      charge.amount += amount;
    }
  }
  return {
    nodes: [...nodes.values()].sort((a, b) => (a.id < b.id ? -1 : 1)),
    ids: [...lists.values()].map(({ ids, ...place }) => {
      return { ...place, first_id: ids[0] ?? '', ids: JSON.stringify(ids) };
    }),
    days: [...days.values()],
    charges: [...charges.values()].filter(({ amount }) => amount !== 0),
  };
}
