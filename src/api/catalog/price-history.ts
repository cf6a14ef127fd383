import type { Catalog } from '../../catalog/catalog.ts';
import { pricedEndpoints, pricesSince } from '../../catalog/price-history.ts';
import type { EndpointPriceStore } from '../../storage/endpoint-prices.ts';

/** The interval of checks whether the catalog is still the same object. */
const LOOK_MS = 5_000;
/** Another node may add the same rows at the same time. */
const ATTEMPTS_MAX = 3;

export interface PriceHistoryOptions {
  /** The catalog in force: the same object as long as no price changes. */
  catalog: () => Catalog;
  store: Pick<EndpointPriceStore, 'findLast' | 'add'>;
  nowMs: () => number;
  log: { warn(facts: object, message: string): void };
}

/** Records the prices of endpoints in the background: at the start, after a reload, and when declared prices come into force. */
export function createPriceHistory({ catalog, store, nowMs, log }: PriceHistoryOptions) {
  let recorded: Catalog | undefined;
  let work: Promise<void> | undefined;
  let looks: NodeJS.Timeout | undefined;
  let hasWarned = false;

  async function record(current: Catalog): Promise<void> {
    const endpoints = pricedEndpoints(current);
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
      const last = new Map((await store.findLast(endpoints.map(({ id }) => id))).map((row) => [row.endpoint_id, row]));
      const rows = endpoints.flatMap((endpoint) => {
        const known = last.get(endpoint.id);
        const seq = known?.seq ?? 0;
        return pricesSince(endpoint, known, nowMs()).map(({ endpoint_id, from_ms, prices }, index) => ({
          endpoint_id,
          seq: seq + index + 1,
          from_ms,
          prices,
        }));
      });
      if (rows.length === 0 || (await store.add(rows)) === rows.length) return;
    }
  }

  async function look(): Promise<void> {
    const current = catalog();
    if (current === recorded) return;
    try {
      await record(current);
      recorded = current;
      hasWarned = false;
    } catch (error) {
      if (!hasWarned) log.warn({ err: error }, 'the prices of endpoints could not be recorded; trying again');
      hasWarned = true;
    }
  }

  const run = () => {
    work ??= look().finally(() => {
      work = undefined;
    });
  };
  return {
    start(): void {
      run();
      looks = setInterval(run, LOOK_MS).unref();
    },
    /** Waits for the check in progress. */
    async stop(): Promise<void> {
      clearInterval(looks);
      await work;
    },
  };
}
