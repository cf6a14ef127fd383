import { setTimeout as sleep } from 'node:timers/promises';
import type { AnalyticsStore } from '../../storage/analytics.ts';

/** The pause between two portions, in which calls can settle. */
const PORTION_PAUSE_MS = 100;
/** The interval of searches for generations that nodes of an older version have stored since. */
const LOOK_MS = 600_000;

export interface UsageUpkeepOptions {
  store: Pick<AnalyticsStore, 'countPortion'>;
  log: { info(facts: object, message: string): void; warn(facts: object, message: string): void };
}

/** Counts the generations of older versions in the sums of usage, in portions in the background. */
export function createUsageUpkeep({ store, log }: UsageUpkeepOptions) {
  const stopped = new AbortController();
  let work: Promise<void> | undefined;
  let looks: NodeJS.Timeout | undefined;

  async function count(): Promise<void> {
    let counted = 0;
    try {
      for (let portion = 1; portion > 0 && !stopped.signal.aborted; ) {
        portion = await store.countPortion();
        counted += portion;
        if (portion > 0) await sleep(PORTION_PAUSE_MS, undefined, { signal: stopped.signal, ref: false });
      }
    } catch (error) {
      if (!stopped.signal.aborted) log.warn({ err: error }, 'usage of an older version could not be counted');
    }
    if (counted > 0) log.info({ generations: counted }, 'counted generations of an older version');
  }

  function look(): void {
    work ??= count().finally(() => {
      work = undefined;
    });
  }

  return {
    start(): void {
      look();
      looks = setInterval(look, LOOK_MS).unref();
    },
    /** Waits for the portion in progress. */
    async stop(): Promise<void> {
      clearInterval(looks);
      stopped.abort();
      await work;
    },
  };
}
