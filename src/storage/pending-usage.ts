import { sql } from 'kysely';
import { BulkStatement, type Step, transact } from './bulk.ts';
import type { Queries } from './queries.ts';
import { type HourSums, hoursOf, hoursText, UsageStatements, usageRowsOf } from './usage-rows.ts';

/** Batches whose sums are added in one transaction. */
const PORTION_BATCHES = 64;
/** The calls, and the batches, after which a node adds its pending sums. */
const PENDING_CALLS_MAX = 8_000;
const PENDING_BATCHES_MAX = PORTION_BATCHES;

interface PendingRow {
  node_id: string;
  epoch: number;
  batch: number;
  sums: string;
}

type PendingName = Pick<PendingRow, 'node_id' | 'epoch' | 'batch'>;

function deleteQuery(rows: readonly PendingName[]) {
  const names = rows.map(
    ({ node_id, epoch, batch }) => sql`(CAST(${node_id} AS TEXT), CAST(${epoch} AS BIGINT), CAST(${batch} AS BIGINT))`,
  );
  return sql`DELETE FROM analytics_pending WHERE (node_id, epoch, batch) IN (VALUES ${sql.join(names)})`;
}

/**
 * The sums of usage that batches have stored as one text each and that are not part of `analytics_usage` and `analytics_histograms` yet. Many
 * batches change the same rows of these tables: they are added together, by any process, and always before the tables are read.
 */
export class PendingUsage {
  readonly #queries: Queries;
  readonly #statements = new UsageStatements();
  readonly #insert = new BulkStatement<PendingRow>((tx, rows) =>
    tx.insertInto('analytics_pending').values(rows).compile(),
  );
  /** The first statement of a transaction that adds sums: such transactions wait for each other, not in a cycle. */
  readonly #takeTurn = new BulkStatement<{ name: string; value: number }>((tx, rows) =>
    tx
      .insertInto('counters')
      .values(rows)
      .onConflict((conflict) => conflict.column('name').doUpdateSet({ value: sql`counters.value + excluded.value` }))
      .compile(),
  );
  readonly #delete = new BulkStatement<PendingName>((tx, rows) => deleteQuery(rows).compile(tx));
  /** The calls and batches that this process has stored since it last added sums. */
  #calls = 0;
  #batches = 0;

  constructor(queries: Queries) {
    this.#queries = queries;
  }

  /** Stores the sums of a batch as one row. */
  step(name: PendingName, hours: readonly HourSums[]): Step {
    return this.#insert.step(hours.length === 0 ? [] : [{ ...name, sums: hoursText(hours) }]);
  }

  /** Call it after a batch is stored: adds what is pending from time to time. A failure leaves it pending. */
  async stored(calls: number): Promise<void> {
    this.#calls += calls;
    this.#batches += 1;
    if (this.#calls < PENDING_CALLS_MAX && this.#batches < PENDING_BATCHES_MAX) return;
    this.#calls = 0;
    this.#batches = 0;
    await this.addAll().catch(() => {});
  }

  /** Adds the pending sums of all nodes. */
  async addAll(): Promise<void> {
    for (;;) {
      const rows = await this.#queries
        .selectFrom('analytics_pending')
        .selectAll()
        .orderBy('node_id')
        .orderBy('epoch')
        .orderBy('batch')
        .limit(PORTION_BATCHES)
        .execute();
      if (rows.length === 0) return;
      const names = rows.map(({ node_id, epoch, batch }) => ({ node_id, epoch, batch }));
      const added = this.#delete.step(names, { must_change: true });
      const sums = usageRowsOf(hoursOf(rows.map((row) => row.sums)));
      const turn = this.#takeTurn.step([{ name: 'analytics_pending', value: 1 }]);
      const missed = await transact(this.#queries, [turn, added, ...this.#statements.sumSteps(sums)]);
      // Another process has added some of them: what is left is read again.
      if (missed === undefined && rows.length < PORTION_BATCHES) return;
    }
  }
}
