import { sql } from 'kysely';
import { BulkStatement } from './bulk.ts';
import type { Queries } from './queries.ts';

/** Rows that are kept of one endpoint: the newest. */
export const PRICES_OF_ENDPOINT_MAX = 100;
/** Endpoints of one statement. */
const ENDPOINTS_PORTION = 200;

/** Prices of an endpoint from a moment on. */
interface PriceRow {
  endpoint_id: string;
  seq: number;
  from_ms: number;
  prices: string;
}

/** The same with the row before and the start of the row after. */
export interface ListedPrices extends PriceRow {
  until_ms: number | null;
  prices_before: string | null;
}

/** The place of the last row of a page. */
export type PricePlace = Pick<PriceRow, 'from_ms' | 'endpoint_id' | 'seq'>;

/** The prices of endpoints over time. */
export function endpointPriceStore(queries: Queries) {
  const insert = new BulkStatement<PriceRow>((tx, rows) =>
    tx
      .insertInto('endpoint_prices')
      .values(rows)
      .onConflict((conflict) => conflict.columns(['endpoint_id', 'seq']).doNothing())
      .compile(),
  );

  return {
    /** The last recorded prices of each of these endpoints. */
    async findLast(endpointIds: readonly string[]): Promise<PriceRow[]> {
      const rows: PriceRow[] = [];
      for (let at = 0; at < endpointIds.length; at += ENDPOINTS_PORTION) {
        const lastRows = await queries
          .selectFrom('endpoint_prices as p')
          .selectAll()
          .where('p.endpoint_id', 'in', endpointIds.slice(at, at + ENDPOINTS_PORTION))
          .where('p.seq', '=', ({ selectFrom }) =>
            selectFrom('endpoint_prices as q')
              .select(({ fn }) => fn.max('q.seq').as('seq'))
              .whereRef('q.endpoint_id', '=', 'p.endpoint_id'),
          )
          .execute();
        rows.push(...lastRows);
      }
      return rows;
    },

    /** Adds rows. A row whose number another node has used meanwhile is left out. Returns how many were added. */
    async add(rows: readonly PriceRow[]): Promise<number> {
      const { changes } = await insert.run(queries, rows);
      for (const { endpoint_id, seq } of rows) {
        if (seq <= PRICES_OF_ENDPOINT_MAX) continue;
        await queries
          .deleteFrom('endpoint_prices')
          .where('endpoint_id', '=', endpoint_id)
          .where('seq', '<=', seq - PRICES_OF_ENDPOINT_MAX)
          .execute();
      }
      return changes;
    },

    /** A page of the prices of these endpoints, the newest first, after `after`. */
    async list(
      endpointIds: readonly string[],
      { limit, after }: { limit: number; after?: PricePlace | undefined },
    ): Promise<ListedPrices[]> {
      if (endpointIds.length === 0) return [];
      const listed = queries
        .selectFrom('endpoint_prices')
        .selectAll()
        .select([
          sql<number | null>`LEAD(from_ms) OVER (PARTITION BY endpoint_id ORDER BY seq)`.as('until_ms'),
          sql<string | null>`LAG(prices) OVER (PARTITION BY endpoint_id ORDER BY seq)`.as('prices_before'),
        ])
        .where('endpoint_id', 'in', endpointIds);
      let page = queries.selectFrom(listed.as('listed')).selectAll();
      if (after !== undefined) {
        const { from_ms: fromMs, endpoint_id: endpointId, seq } = after;
        page = page.where(
          sql<boolean>`(from_ms, endpoint_id, seq) < (CAST(${fromMs} AS BIGINT), CAST(${endpointId} AS TEXT), CAST(${seq} AS BIGINT))`,
        );
      }
      const rows = await page
        .orderBy('from_ms', 'desc')
        .orderBy('endpoint_id', 'desc')
        .orderBy('seq', 'desc')
        .limit(limit)
        .execute();
      // The types of computed columns are not declared to the drivers.
      return rows.map((row) => ({ ...row, until_ms: row.until_ms === null ? null : Number(row.until_ms) }));
    },
  };
}

export type EndpointPriceStore = ReturnType<typeof endpointPriceStore>;
