import type { GatewayError } from '../../errors.ts';
import type { Budget, BudgetMode } from '../../schemas/budget.ts';
import type { Metered, OpenRecord } from '../records.ts';

/** What this node has of one window; see `freeOf` of the lease book. */
export interface Lease {
  readonly budget_id: string;
  readonly window_start: string;
  /** The store's last word. */
  stored: number;
  /** In the batch in flight, on its way back. */
  returning: number;
  /** In holds. */
  held: number;
  /** Left by a life of this node whose last requests are not known: neither used nor returned. */
  frozen: number;
  /** Covers of settles that the store has not acknowledged. */
  pending: number;
  /** No answer has told of it yet. */
  is_new: boolean;
  /** What other nodes held when the store last answered; undefined: it has not. */
  elsewhere: number | undefined;
  /** Spent, when the store last answered; charges since then are added. */
  spent: number;
  /** What the store could still have given. */
  store_free: number;
  /** Somebody else waits for what is idle here. */
  wanted: boolean;
  /** Others give back for this node what is idle, until it says that nobody waits here any more. */
  claims: boolean;
  /** What a running request lacked for its next slice, to be asked for; and when that was asked last. */
  growth: number;
  growth_asked_at: number;
  /** Until then nothing is asked, so that who was given way to comes first. */
  yields_until: number;
  /** Until then, who needs `refused_need` or more is refused without asking, as long as the limit is the same. */
  refused_until: number;
  refused_need: number;
  refused_limit: number;
  used_at: number;
  /** What was set aside in the span that runs and in the one before: what the next span may need. */
  span_began: number;
  span: number;
  span_before: number;
  /** Its book does not have it any more. */
  is_forgotten: boolean;
}

/** The time that a request may wait for the store, counted between `begin` and `end`. */
export interface StoreWaiting {
  left_ms(): number;
  begin(): void;
  end(): void;
}

/** What the next attempt of a request may cost at most, and what it counts against. Nano-USD. */
export interface Ask {
  /** The generation. */
  id: string;
  /** Every budget of the caller; those that do not count the organization's own accounts are left out where `is_byok`. */
  budgets: readonly Budget[];
  is_byok: boolean;
  /** How strictly the caller's budgets are kept; absent: strictly. */
  mode?: BudgetMode;
  /**
   * When the call came, by this node's clock, milliseconds since 1970: what its record says. It counts in the windows of
   * that moment, so that days and windows add up to the same, unless the clock is plainly off. Absent: in those of now.
   */
  at?: number;
  /** With the output bound that the request asks for. */
  full_nano: number;
  /** With the smallest output bound worth sending; below it the request is refused. Equal to `full_nano`: all or nothing. */
  least_nano: number;
  /**
   * Beyond `fixed_nano` at most this part of what is left is granted, though never less than `least_nano`: nobody asked for so much.
   * Absent: all of `full_nano`, where it is there.
   */
  share?: { part: number; fixed_nano: number };
  /** Absent: the store may take `limits.store_read_ms_max`. */
  store_wait?: StoreWaiting | undefined;
}

/** What `reserve` would come to now, by the store's own sums. */
export interface Preview {
  granted_nano: number;
  /** Every budget that it would be set aside in. */
  lines: PreviewLine[];
  /** Why nothing would be granted. */
  refusal: GatewayError | undefined;
}

/** One budget as a request that asks now finds it. */
export interface PreviewLine {
  budget: Budget;
  window_start: string;
  /** In its window until now, what is not in the store yet included. */
  spent_nano: number;
  /** Neither spent nor set aside for anything else. */
  available_nano: number;
  /** Milliseconds since 1970; undefined: never. */
  resets_at: number | undefined;
}

/** One budget's part in a hold. `amount` is what is set aside now, `share` what earlier attempts of the request may have cost of it. */
export interface HoldLine {
  budget: Budget;
  /** Fixed at admission: a request that outlives its window is charged to the one it began in. */
  window_start: string;
  /** What it is set aside in, for the ledger alone. */
  lease: Lease;
  amount: number;
  share: number;
  /** The part that the last attempt was granted; 0 where it does not count against this budget. */
  granted: number;
}

/** The money of one request, set aside in every budget it counts against. Changed by the ledger alone. */
export interface Hold {
  readonly id: string;
  lines: HoldLine[];
  /** What of the last `Ask` was granted: from `least_nano` to `full_nano`. */
  granted_nano: number;
  /** Of the last `Ask`. */
  mode?: BudgetMode;
  /** Its request has an outcome. */
  is_settled?: true;
  /** The running attempt, as the journal was told of it. */
  attempt?: { attempt: number; endpoint: string; record: OpenRecord; least: Metered | undefined };
}
