import { limits } from '../limits.ts';
import type { TokenClasses } from '../schemas/inner.ts';
import type { LedgerClock } from './ledger-clock.ts';
import type { LedgerLog } from './pipe.ts';
import type { ChargeLine, OpenRecord } from './records.ts';

/** Lost attempts that are looked up at the same time. */
const LOOKUPS_AT_ONCE_MAX = 16;

/** An attempt whose outcome this node did not record. */
export interface LostAttempt {
  /** The generation. */
  id: string;
  /** Counted from 1 in each generation. */
  number: number;
  endpoint: string;
  /** The call's record when the attempt was sent: it contains the earlier attempts, not this one. */
  record: OpenRecord;
  is_byok: boolean;
}

/** What the provider reports for an attempt. */
export interface FoundAttempt {
  /** Null if the request never arrived or nothing was generated. */
  usage: TokenClasses | null;
  cost_nano: number;
  charges: ChargeLine[];
  upstream_id: string | null;
}

/** Asks the provider for the outcome of an attempt; undefined if the provider cannot say. */
export type Lookup = (attempt: LostAttempt) => Promise<FoundAttempt | undefined>;

/**
 * Asks providers about all attempts, `lookups_at_once_max` at a time and for at most `lookups_ms_max` in all: a provider that
 * does not answer must not keep the gateway from starting. Returns the reports by generation id; attempts without a report
 * are missing. Never rejects.
 */
export async function lookUpAll(
  attempts: readonly LostAttempt[],
  { lookup, clock, log }: { lookup?: Lookup | undefined; clock: LedgerClock; log: LedgerLog },
): Promise<ReadonlyMap<string, FoundAttempt>> {
  const reports = new Map<string, FoundAttempt>();
  if (lookup === undefined || attempts.length === 0) return reports;
  const late = Promise.withResolvers<void>();
  let isLate = false;
  const timer = clock.setTimeout(() => {
    isLate = true;
    late.resolve();
  }, limits.lookups_ms_max);
  const left = [...attempts];
  const work = async () => {
    for (let attempt = left.shift(); attempt !== undefined && !isLate; attempt = left.shift()) {
      try {
        const report = await lookup(attempt);
        if (report !== undefined && !isLate) reports.set(attempt.id, report);
      } catch (error) {
        log.warn(
          { err: error, generation: attempt.id },
          'the provider could not be queried for the outcome of an attempt',
        );
      }
    }
  };
  await Promise.race([Promise.all(Array.from({ length: LOOKUPS_AT_ONCE_MAX }, work)), late.promise]);
  clock.clearTimeout(timer);
  if (reports.size > 0) {
    log.info(
      { attempts: attempts.length, known: reports.size },
      'providers reported the outcomes of interrupted attempts',
    );
  }
  return reports;
}
