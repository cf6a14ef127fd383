import { sql } from 'kysely';
import { recordOf } from '../ledger/journal/record-values.ts';
import { isCorrectable } from '../ledger/settle.ts';
import { BulkStatement, type Step, transact } from './bulk.ts';
import type { Database } from './database.ts';
import { type DeletedSums, sumsOf } from './deleted-generations.ts';
import { storeNow } from './store-now.ts';

/** The kinds of rows that settings delete. */
export const SWEPT_KINDS = ['generations', 'audit', 'closed_windows'] as const;
export type SweptKind = (typeof SWEPT_KINDS)[number];

/** Rows that one transaction deletes at most. */
const PORTION_ROWS = 200;
/** How long a process may be silent before another one takes its sweep over. */
const OWNER_MS = 60_000;
/** No window lasts longer. */
const WINDOW_DAYS_MAX = 31;
const DAY_MS = 86_400_000;

/** A process that sweeps rows of one kind, and its time in milliseconds since 1970. */
interface Sweep {
  kind: SweptKind;
  owner: string;
  at: number;
}

/** The place of the last examined row, by the values that rows of its kind are ordered by; undefined at the beginning. */
export type SweepPlace = readonly string[] | undefined;

/** The result of one portion of a sweep. `next`: where the next one begins; undefined: nothing is left. */
export interface Portion {
  deleted: number;
  next: SweepPlace;
}

/** Thrown if another process has taken the sweep over, or has changed rows of the portion. */
export class SweepLost extends Error {}

/** The state of the sweeps of one kind. */
export interface SweepState {
  kind: SweptKind;
  /** Rows that were deleted so far. */
  deleted: number;
  /** Everything older is deleted, or being deleted; null: nothing yet. */
  deleted_before: string | null;
  /** The end of the last sweep; null: it is not complete. */
  ended_at: string | null;
}

/** A node that the store may not know: then it has not registered yet. */
function nodeRow(id: string, deletedTo: number) {
  return { id, epoch: 0, instance: '', batch: 0, seen_at: 0, charges_leases: 1, deleted_to: deletedTo };
}

const text = (value: string) => sql`CAST(${value} AS TEXT)`;
const bigint = (value: number) => sql`CAST(${value} AS BIGINT)`;

/** A window that nobody can charge by a reservation, whose spending is explained by deleted generations alone. */
const SETTLED_WINDOW = sql.raw(`ledger_windows.leased = 0 AND ledger_windows.wanted_by = ''
  AND ledger_windows.spent = ledger_windows.opening + COALESCE((SELECT d.amount FROM ledger_deleted_charges AS d
    WHERE d.budget_id = ledger_windows.budget_id AND d.window_start = ledger_windows.window_start), 0)
  AND NOT EXISTS (SELECT 1 FROM ledger_adjustments AS a
    WHERE a.budget_id = ledger_windows.budget_id AND a.window_start = ledger_windows.window_start)`);

/**
 * Deletes old rows by settings. Generations leave their ids and their sums, in the transaction that deletes them: nothing is counted twice,
 * and `ledger verify` stays exact. Each portion is one transaction, and only of the process that owns the sweep.
 */
export function retentionStore({ queries, engine }: Pick<Database, 'queries' | 'engine'>, portionRows = PORTION_ROWS) {
  const extend = new BulkStatement<object>((tx) =>
    sql`UPDATE retention_sweeps SET owner_until = ${storeNow(engine, 0)} + ${sql.lit(OWNER_MS)}, deleted = deleted + ${bigint(0)}
      WHERE kind = ${text('')} AND owner = ${text('')}`.compile(tx),
  );
  // Raised by at least 1 each time, so that a batch that was compared with the deleted ids before does not pass.
  const raiseNodes = new BulkStatement<ReturnType<typeof nodeRow>>((tx, rows) =>
    tx
      .insertInto('ledger_nodes')
      .values(rows)
      .onConflict((conflict) =>
        conflict.column('id').doUpdateSet({
          deleted_to: sql<number>`CASE WHEN COALESCE(ledger_nodes.deleted_to, 0) >= excluded.deleted_to
            THEN ledger_nodes.deleted_to + 1 ELSE excluded.deleted_to END`,
        }),
      )
      .compile(),
  );
  const deleteGenerations = new BulkStatement<{ id: string }>((tx, rows) =>
    tx
      .deleteFrom('ledger_generations')
      .where(
        'id',
        'in',
        rows.map(({ id }) => id),
      )
      .compile(),
  );
  const keepIds = new BulkStatement<DeletedSums['ids'][number]>((tx, rows) =>
    tx.insertInto('ledger_deleted_ids').values(rows).compile(),
  );
  const keepDays = new BulkStatement<DeletedSums['days'][number]>((tx, rows) =>
    tx
      .insertInto('ledger_deleted_days')
      .values(rows)
      .onConflict((conflict) =>
        conflict.columns(['series', 'day', 'key_hash']).doUpdateSet({
          cost: sql`ledger_deleted_days.cost + excluded.cost`,
          requests: sql`ledger_deleted_days.requests + excluded.requests`,
          corrections: sql`ledger_deleted_days.corrections + excluded.corrections`,
        }),
      )
      .compile(),
  );
  const keepCharges = new BulkStatement<DeletedSums['charges'][number]>((tx, rows) =>
    tx
      .insertInto('ledger_deleted_charges')
      .values(rows)
      .onConflict((conflict) =>
        conflict
          .columns(['budget_id', 'window_start'])
          .doUpdateSet({ amount: sql`ledger_deleted_charges.amount + excluded.amount` }),
      )
      .compile(),
  );
  const namesIn = (rows: readonly { budget_id: string; window_start: string }[]) =>
    sql`(budget_id, window_start) IN (VALUES ${sql.join(rows.map((row) => sql`(${text(row.budget_id)}, ${text(row.window_start)})`))})`;
  const deleteWindows = new BulkStatement<{ budget_id: string; window_start: string }>((tx, rows) =>
    sql`DELETE FROM ledger_windows WHERE ${namesIn(rows)} AND ${SETTLED_WINDOW}`.compile(tx),
  );
  const deleteCharges = new BulkStatement<{ budget_id: string; window_start: string }>((tx, rows) =>
    sql`DELETE FROM ledger_deleted_charges WHERE ${namesIn(rows)}`.compile(tx),
  );
  const deleteAudit = new BulkStatement<{ seq: number }>((tx, rows) =>
    tx
      .deleteFrom('audit_events')
      .where(
        'seq',
        'in',
        rows.map(({ seq }) => seq),
      )
      .compile(),
  );

  /** The first step of each portion: rejects if the sweep has another owner. */
  const extending = ({ kind, owner, at }: Sweep, deleted: number): Step => {
    const row = { deleted, kind, owner };
    return extend.step([engine === 'sqlite' ? { at, ...row } : row], { must_change: true });
  };

  const run = async (steps: readonly Step[]): Promise<void> => {
    if ((await transact(queries, steps)) !== undefined) throw new SweepLost('The sweep has another owner');
  };

  /** The first organization after this one that has generations. */
  const organizationAfter = async (id: string): Promise<string | undefined> => {
    const row = await queries
      .selectFrom('ledger_generations')
      .select('organization_id')
      .where('organization_id', '>', id)
      .orderBy('organization_id')
      .limit(1)
      .executeTakeFirst();
    return row?.organization_id;
  };

  /** The next generations of an organization, in the order of time. */
  const generationsAfter = (organizationId: string, createdAt: string, id: string, before: string) => {
    return queries
      .selectFrom('ledger_generations')
      .select(['id', 'node_id', 'key_hash', 'cost', 'charges', 'record', 'admitted_at', 'created_at', 'series'])
      .where('organization_id', '=', organizationId)
      .where('created_at', '<', before)
      .where(sql<boolean>`(created_at, id) > (${createdAt}, ${id})`)
      .orderBy('created_at')
      .orderBy('id')
      .limit(portionRows)
      .execute();
  };

  const portions = {
    /**
     * Deletes a portion of the generations that were admitted before a moment. Kept are those whose cost may still be corrected, and those
     * that the sums of usage do not have yet.
     */
    generations: async (sweep: Sweep, before: string, place: SweepPlace): Promise<Portion> => {
      const [organizationId = await organizationAfter(''), createdAt = '', after = ''] = place ?? [];
      if (organizationId === undefined) return { deleted: 0, next: undefined };
      const rows = await generationsAfter(organizationId, createdAt, after, before);
      const last = rows.at(-1);
      let next: SweepPlace;
      if (rows.length === portionRows && last !== undefined) {
        next = [organizationId, last.created_at, last.id];
      } else {
        const other = await organizationAfter(organizationId);
        if (other !== undefined) next = [other];
      }
      const deletable = rows.flatMap(({ series, record, ...row }) =>
        series === null || isCorrectable(recordOf(record)) ? [] : [{ ...row, series }],
      );
      if (deletable.length === 0) {
        await run([extending(sweep, 0)]);
        return { deleted: 0, next };
      }
      // After the records: a correction that was written since is of a row that is kept.
      const corrections = new Map(
        (
          await queries
            .selectFrom('ledger_adjustments')
            .select(['id', 'amount'])
            .where(
              'id',
              'in',
              deletable.map(({ id }) => `${id}:usage`),
            )
            .execute()
        ).map(({ id, amount }) => [id.slice(0, -':usage'.length), amount]),
      );
      const { nodes, ids, days, charges } = sumsOf(deletable, corrections);
      // A batch locks its node first as well, so that it neither deadlocks with this nor misses it.
      await run([
        extending(sweep, deletable.length),
        raiseNodes.step(nodes.map(({ id, deleted_to }) => nodeRow(id, deleted_to))),
        deleteGenerations.step(
          deletable.map(({ id }) => ({ id })),
          { must_change: true },
        ),
        keepIds.step(ids),
        keepDays.step(days),
        keepCharges.step(charges),
      ]);
      return { deleted: deletable.length, next };
    },

    /**
     * Deletes a portion of the limit windows that ended before a moment. Kept are those with reservations or corrections, and those that
     * stored generations have charged.
     */
    closed_windows: async (sweep: Sweep, before: string, place: SweepPlace): Promise<Portion> => {
      const [budgetId = '', windowStart = ''] = place ?? [];
      const rows = await queries
        .selectFrom('ledger_windows')
        .select(['budget_id', 'window_start', sql<number>`CASE WHEN ${SETTLED_WINDOW} THEN 1 ELSE 0 END`.as('settled')])
        .where(sql<boolean>`(budget_id, window_start) > (${budgetId}, ${windowStart})`)
        .orderBy('budget_id')
        .orderBy('window_start')
        .limit(portionRows)
        .execute();
      const began = new Date(Date.parse(before) - WINDOW_DAYS_MAX * DAY_MS).toISOString().slice(0, 'YYYY-MM-DD'.length);
      const closed = rows
        .filter((row) => row.settled === 1 && row.window_start !== '' && row.window_start < began)
        .map((row) => ({ budget_id: row.budget_id, window_start: row.window_start }));
      await run([
        extending(sweep, closed.length),
        deleteWindows.step(closed, { must_change: true }),
        deleteCharges.step(closed),
      ]);
      const last = rows.at(-1);
      const isEnd = last === undefined || rows.length < portionRows;
      return { deleted: closed.length, next: isEnd ? undefined : [last.budget_id, last.window_start] };
    },

    /** Deletes a portion of the oldest audit records, those before a moment. */
    audit: async (sweep: Sweep, before: string): Promise<Portion> => {
      const oldest = await queries
        .selectFrom('audit_events')
        .select(['seq', 'created_at'])
        .orderBy('seq')
        .limit(portionRows)
        .execute();
      const old = oldest.filter((row) => row.created_at < before).map(({ seq }) => ({ seq }));
      await run([extending(sweep, old.length), deleteAudit.step(old, { must_change: true })]);
      return { deleted: old.length, next: old.length === portionRows ? [] : undefined };
    },
  } satisfies Record<SweptKind, (sweep: Sweep, before: string, place: SweepPlace) => Promise<Portion>>;

  return {
    /** The state of each kind that was ever swept. */
    states: async (): Promise<SweepState[]> => {
      const rows = await queries
        .selectFrom('retention_sweeps')
        .select(['kind', 'deleted', 'deleted_before', 'ended_at'])
        .orderBy('kind')
        .execute();
      return rows as SweepState[];
    },

    /** Takes the sweep of a kind up to a moment. False if another process has it, or if it is complete. */
    claim: async ({ kind, owner, at }: Sweep, before: string): Promise<boolean> => {
      const now = storeNow(engine, at);
      const row = { kind, owner, owner_until: 0, deleted: 0, deleted_before: null, ended_at: null };
      await queries
        .insertInto('retention_sweeps')
        .values(row)
        .onConflict((conflict) => conflict.column('kind').doNothing())
        .execute();
      const claimed = await queries
        .updateTable('retention_sweeps')
        .set({
          owner,
          owner_until: sql<number>`${now} + ${sql.lit(OWNER_MS)}`,
          deleted_before: sql<string>`CASE WHEN deleted_before > ${before} THEN deleted_before ELSE ${before} END`,
          ended_at: null,
        })
        .where('kind', '=', kind)
        .where(({ eb, or }) => or([eb('owner', '=', owner), eb('owner_until', '<', now)]))
        .where(({ eb, or }) =>
          or([eb('ended_at', 'is', null), eb('deleted_before', 'is', null), eb('deleted_before', '<', before)]),
        )
        .returning('kind')
        .executeTakeFirst();
      return claimed !== undefined;
    },

    /** Gives a sweep up. `endedAt`: it is complete. */
    release: async ({ kind, owner }: Sweep, endedAt?: string): Promise<void> => {
      await queries
        .updateTable('retention_sweeps')
        .set({ owner_until: 0, ...(endedAt === undefined ? {} : { ended_at: endedAt }) })
        .where('kind', '=', kind)
        .where('owner', '=', owner)
        .execute();
    },

    /** Deletes a portion of the rows from before a moment, beginning at a place. Rejects with `SweepLost`. */
    sweep: (sweep: Sweep, before: string, place?: SweepPlace): Promise<Portion> =>
      portions[sweep.kind](sweep, before, place),
  };
}
