import { setTimeout as sleep } from 'node:timers/promises';
import { limits } from '../../limits.ts';
import type { BucketRow, SketchName } from '../../routing/endpoint-bucket.ts';
import type { EndpointStatistics } from '../../routing/endpoint-statistics.ts';

/** A row as the store keeps it. */
interface StoredRow extends Omit<BucketRow, 'version' | 'sketches'> {
  sketches: string;
}

type Place = readonly [endpoint_id: string, span: number, start: number, run: string];

/** Where processes leave what they counted for each other, and for themselves after a restart. */
export interface StatisticsStore {
  save(run: string, rows: readonly StoredRow[], at: number): Promise<void>;
  /** Its clock. */
  now(at: number): Promise<number>;
  findOthers(
    run: string,
    since: number,
    after: Place | undefined,
    rows_max: number,
  ): Promise<(StoredRow & { run: string })[]>;
  sweep(at: number, rows_max: { minutes: number; quarters: number }): Promise<void>;
}

export interface ExchangeOptions {
  statistics: EndpointStatistics;
  store: StatisticsStore;
  /** The name of this process, of this start of it: what it wrote before is another's. */
  run: string;
  now_ms(): number;
  log: { warn(facts: object, message: string): void };
}

/** Keeps what this process knows of endpoints and what is in the store alike. */
export interface StatisticsExchange {
  /** One round, or what is left of the one under way and another; never fails. */
  exchange(): Promise<void>;
  /** Begins to do so every few seconds. */
  start(): void;
  /** Writes what waits, within a bound. */
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
      const found = JSON.parse(text) as Record<string, unknown>;
      for (const name of NAMES) {
        const packed = found[name];
        if (typeof packed === 'string') sketches[name] = packed;
      }
    } catch {
      // What a version that is not known wrote: its counts are good all the same.
    }
  }
  return { ...row, version: 0, sketches };
}

/**
 * Writes in the background and in batches, and reads what others wrote. A store that fails, or that takes long, costs
 * nothing but freshness: what could not be written waits and is written when it can be.
 */
export function createStatisticsExchange(options: ExchangeOptions): StatisticsExchange {
  const { statistics, store, run, now_ms, log } = options;
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> | undefined;
  /** The store's time of the last reading; undefined: nothing was read yet. */
  let read_at: number | undefined;
  let swept_ms = 0;
  let forgot_ms = 0;
  let is_failing = false;

  function forget(): void {
    if (now_ms() - forgot_ms < limits.statistics_sweep_ms) return;
    forgot_ms = now_ms();
    statistics.sweep(forgot_ms);
  }

  async function write(): Promise<void> {
    for (let batch = 0; batch < limits.statistics_batches_max; batch += 1) {
      const rows = statistics.unwritten(limits.statistics_batch_rows);
      if (rows.length === 0) return;
      await store.save(run, rows.map(stored), now_ms());
      statistics.written(rows);
      // What is counted all the time would be written again and again.
      if (rows.length < limits.statistics_batch_rows) return;
    }
  }

  async function readOthers(): Promise<void> {
    const at = await store.now(now_ms());
    // A clock that was set back has written what is new under times that were read before.
    const since = read_at === undefined ? 0 : Math.min(read_at, at) - limits.statistics_overlap_ms;
    let after: Place | undefined;
    for (let count = 0; count < limits.statistics_rows_max; ) {
      const page = await store.findOthers(run, since, after, limits.statistics_page_rows);
      statistics.merge(page.map(read));
      const last = page.at(-1);
      if (last === undefined || page.length < limits.statistics_page_rows) break;
      count += page.length;
      after = [last.endpoint_id, last.span, last.start, last.run];
    }
    read_at = at;
  }

  async function round(): Promise<void> {
    try {
      forget();
      await write();
      await readOthers();
      if (now_ms() - swept_ms >= limits.statistics_sweep_ms) {
        swept_ms = now_ms();
        await store.sweep(swept_ms, STORED_ROWS_MAX);
      }
      is_failing = false;
    } catch (err) {
      if (!is_failing) log.warn({ err }, 'endpoint statistics could not be exchanged; each process uses its own');
      is_failing = true;
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
      await Promise.race([last, sleep(limits.statistics_stop_ms_max, undefined, { ref: false })]);
    },
  };
}
