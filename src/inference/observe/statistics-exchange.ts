import { setTimeout as sleep } from 'node:timers/promises';
import { limits } from '../../limits.ts';
import type { BucketRow, SketchName } from '../../routing/endpoint-bucket.ts';
import type { EndpointStatistics } from '../../routing/endpoint-statistics.ts';

/** Rows in one write, batches in one exchange, and rows in one read. */
export const STATISTICS_BATCH_ROWS = 200;
const STATISTICS_BATCHES_MAX = 20;
const STATISTICS_PAGE_ROWS = 2_000;
/** Rows that were written up to this long before the last read are read again: a slow transaction shows late. */
export const STATISTICS_OVERLAP_MS = 15_000;
const STATISTICS_SWEEP_MS = 60_000;
/** How long a stopping process tries to write its last rows. */
const STATISTICS_STOP_MS_MAX = 2_000;

/** A row as the store keeps it. */
interface StoredRow extends Omit<BucketRow, 'version' | 'sketches'> {
  sketches: string;
}

type RowKey = readonly [endpoint_id: string, span: number, start: number, run: string];

/** The statistics of all processes, which also survive a restart. */
export interface StatisticsStore {
  save(run: string, rows: readonly StoredRow[], at: number): Promise<void>;
  /** The store's time. */
  now(at: number): Promise<number>;
  findOthers(
    run: string,
    since: number,
    after: RowKey | undefined,
    rowsMax: number,
  ): Promise<(StoredRow & { run: string })[]>;
  sweep(at: number, rowsMax: { minutes: number; quarters: number }): Promise<void>;
}

export interface ExchangeOptions {
  statistics: EndpointStatistics;
  store: StatisticsStore;
  /** The id of this run of the process: its earlier rows count as another's. */
  run: string;
  nowMs(): number;
  log: { warn(facts: object, message: string): void };
}

/** Exchanges the statistics of this process with the store. */
export interface StatisticsExchange {
  /** Runs one round, after the running one if there is one. Never rejects. */
  exchange(): Promise<void>;
  /** Runs a round every `statistics_exchange_ms`. */
  start(): void;
  /** Writes the rest, within `statistics_stop_ms_max`. */
  stop(): Promise<void>;
}

const STORED_ROWS_MAX = {
  minutes: limits.statistics_minute_rows_max,
  quarters: limits.statistics_quarter_rows_max,
};

const NAMES: readonly SketchName[] = ['latency', 'throughput', 'whole_latency', 'whole_throughput'];

function stored({ version: _, sketches, ...row }: BucketRow): StoredRow {
  return { ...row, sketches: NAMES.some((name) => sketches[name]) ? JSON.stringify(sketches) : '' };
}

function read({ sketches: text, ...row }: StoredRow & { run: string }): BucketRow & { run: string } {
  const sketches: BucketRow['sketches'] = {};
  if (text !== '') {
    try {
      const sketchTexts = JSON.parse(text) as Record<string, unknown>;
      for (const name of NAMES) {
        const packed = sketchTexts[name];
        if (typeof packed === 'string') sketches[name] = packed;
      }
    } catch {
      // Written by an unknown version: its counts are still valid.
    }
  }
  return { ...row, version: 0, sketches };
}

/**
 * Writes in the background in batches, and reads the rows of other processes. If the store fails or is slow, statistics are less
 * current; unwritten rows are written later.
 */
export function createStatisticsExchange(options: ExchangeOptions): StatisticsExchange {
  const { statistics, store, run, nowMs, log } = options;
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> | undefined;
  /** The store's time of the last read; undefined before the first. */
  let readAt: number | undefined;
  let sweptMs = 0;
  let expiredMs = 0;
  let isFailing = false;

  function expire(): void {
    if (nowMs() - expiredMs < STATISTICS_SWEEP_MS) return;
    expiredMs = nowMs();
    statistics.sweep(expiredMs);
  }

  async function write(): Promise<void> {
    for (let batch = 0; batch < STATISTICS_BATCHES_MAX; batch += 1) {
      const rows = statistics.unwritten(STATISTICS_BATCH_ROWS);
      if (rows.length === 0) return;
      await store.save(run, rows.map(stored), nowMs());
      statistics.written(rows);
      // Rows that change all the time would be written repeatedly.
      if (rows.length < STATISTICS_BATCH_ROWS) return;
    }
  }

  async function readOthers(): Promise<void> {
    const at = await store.now(nowMs());
    // If the clock was set back, new rows have times that were read before.
    const since = readAt === undefined ? 0 : Math.min(readAt, at) - STATISTICS_OVERLAP_MS;
    let after: RowKey | undefined;
    for (let count = 0; count < limits.statistics_rows_max; ) {
      const page = await store.findOthers(run, since, after, STATISTICS_PAGE_ROWS);
      statistics.merge(page.map(read));
      const last = page.at(-1);
      if (last === undefined || page.length < STATISTICS_PAGE_ROWS) break;
      count += page.length;
      after = [last.endpoint_id, last.span, last.start, last.run];
    }
    readAt = at;
  }

  async function round(): Promise<void> {
    try {
      expire();
      await write();
      await readOthers();
      if (nowMs() - sweptMs >= STATISTICS_SWEEP_MS) {
        sweptMs = nowMs();
        await store.sweep(sweptMs, STORED_ROWS_MAX);
      }
      isFailing = false;
    } catch (err) {
      if (!isFailing) log.warn({ err }, 'endpoint statistics could not be exchanged; each process uses its own');
      isFailing = true;
    }
  }

  async function exchange(): Promise<void> {
    await running;
    running ??= round().finally(() => {
      running = undefined;
    });
    await running;
  }

  return {
    exchange,
    start() {
      timer = setInterval(() => {
        if (running === undefined) void exchange();
      }, limits.statistics_exchange_ms);
      timer.unref();
      void exchange();
    },
    async stop() {
      clearInterval(timer);
      const last = (async () => {
        await running;
        await write();
      })().catch(() => undefined);
      await Promise.race([last, sleep(STATISTICS_STOP_MS_MAX, undefined, { ref: false })]);
    },
  };
}
