import { limits } from '../limits.ts';
import type { TokenClasses } from '../schemas/inner.ts';
import type { LedgerClock } from './ledger-clock.ts';
import type { LedgerLog } from './pipe.ts';
import type { ChargeLine, OpenRecord } from './records.ts';

/** An attempt whose end this node was never told. */
export interface LostAttempt {
  /** The generation. */
  id: string;
  /** Counted from 1 in each generation. */
  number: number;
  endpoint: string;
  /** As it was when the attempt was sent: earlier attempts are in it, this one is not. */
  record: OpenRecord;
  is_byok: boolean;
}

/** What the provider says that an attempt has come to. */
export interface FoundAttempt {
  /** Null: it never arrived, or nothing was made for it. */
  usage: TokenClasses | null;
  cost_nano: number;
  charges: ChargeLine[];
  upstream_id: string | null;
}

/** Asks the provider what came of an attempt; undefined: it cannot say. */
export type Lookup = (attempt: LostAttempt) => Promise<FoundAttempt | undefined>;

/**
 * Asks about every attempt, a few at a time and for a bounded time in all: a provider that does not answer must not keep
 * the gateway from starting. What is not in the answer is not known.
 */
export async function lookUpAll(
  attempts: readonly LostAttempt[],
  { lookup, clock, log }: { lookup?: Lookup | undefined; clock: LedgerClock; log: LedgerLog },
): Promise<ReadonlyMap<string, FoundAttempt>> {
  const found = new Map<string, FoundAttempt>();
  if (lookup === undefined || attempts.length === 0) return found;
  const late = Promise.withResolvers<void>();
  let is_late = false;
  const timer = clock.setTimeout(() => {
    is_late = true;
    late.resolve();
  }, limits.lookups_ms_max);
  const left = [...attempts];
  const ask = async () => {
    for (let attempt = left.shift(); attempt !== undefined && !is_late; attempt = left.shift()) {
      try {
        const answer = await lookup(attempt);
        if (answer !== undefined && !is_late) found.set(attempt.id, answer);
      } catch (error) {
        log.warn(
          { err: error, generation: attempt.id },
          'the provider could not be asked for the outcome of an attempt',
        );
      }
    }
  };
  await Promise.race([Promise.all(Array.from({ length: limits.lookups_at_once_max }, ask)), late.promise]);
  clock.clearTimeout(timer);
  if (found.size > 0) {
    log.info(
      { attempts: attempts.length, known: found.size },
      'asked providers for the outcomes of interrupted attempts',
    );
  }
  return found;
}
