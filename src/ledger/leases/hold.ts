import type { GatewayError } from '../../errors.ts';
import type { Budget, BudgetInterval, BudgetMode } from '../../schemas/budget.ts';
import type { Metered, OpenRecord } from '../records.ts';

/** This node's share of one window, in nano-USD; times are by the monotonic clock. See `freeOf` of the lease book. */
export interface Lease {
  readonly budget_id: string;
  readonly window_start: string;
  /** The lease, as of the store's last answer. */
  stored: number;
  /** Being returned with the batch in flight. */
  returning: number;
  /** Reserved in holds. */
  held: number;
  /** Possibly spent by an earlier run of this node whose last requests are not known: neither used nor returned. */
  frozen: number;
  /** Covers of settles that the store has not acknowledged. */
  pending: number;
  /** The store has not answered about this window yet. */
  is_new: boolean;
  /** Leased to other nodes, as of the store's last answer; undefined before the first. */
  elsewhere: number | undefined;
  /** Spent, as of the store's last answer; later charges are added. */
  spent: number;
  /** Free at the store, as of its last answer. */
  store_free: number;
  /** Little is free at the store compared with what is leased, or the store has not answered about it: it is returned soon. */
  scarce: boolean;
  /** Of the budget, if a request of this process has used it. */
  interval: BudgetInterval | undefined;
  /** Another node waits for money that is idle here, or the limit is exceeded or removed. */
  wanted: boolean;
  /** Other nodes return idle money for this node, until it withdraws its claim. */
  claims: boolean;
  /** The amount that a running request lacked for its next extension, and the time of its last request. */
  growth: number;
  growth_requested_at: number;
  /** Until then nothing is requested, so that the node for which money was returned is served first. */
  yields_until: number;
  /** Until then, a request that needs `refused_need` or more is refused at once, as long as the limit is the same. */
  refused_until: number;
  refused_need: number;
  refused_limit: number;
  used_at: number;
  /** The amounts reserved in the current span and in the one before: an estimate of what the next span needs. */
  span_began: number;
  span: number;
  span_before: number;
  /** It is no longer in the lease book. */
  is_forgotten: boolean;
}

/** The time that a request may wait for the store, measured between `begin` and `end`. */
export interface StoreWaiting {
  remainingMs(): number;
  begin(): void;
  end(): void;
}

/** The most that the next attempt of a request may cost, and the budgets that it counts against. Nano-USD. */
export interface HoldRequest {
  /** The generation. */
  id: string;
  /** Every budget of the caller. With `is_byok`, those that exclude the organization's own accounts do not count. */
  budgets: readonly Budget[];
  is_byok: boolean;
  /** How strictly the caller's budgets are enforced. Not set: strictly. */
  mode?: BudgetMode;
  /**
   * When the call was received, by this node's clock, milliseconds since 1970, as in its record. It counts in the windows of
   * that moment, so that days and windows add up to the same, unless the clock is clearly wrong. Not set: now.
   */
  at?: number;
  /** The cost with the requested output bound. */
  full_nano: number;
  /** The cost with the smallest useful output bound; with less the request is refused. Equal to `full_nano`: all or nothing. */
  least_nano: number;
  /**
   * Beyond `fixed_nano` at most this part of what is left is granted, but never less than `least_nano`: for requests without
   * an output bound. Not set: `full_nano` if it is available.
   */
  share?: { part: number; fixed_nano: number };
  /** Not set: the store may take `limits.store_read_ms_max`. */
  store_wait?: StoreWaiting | undefined;
}

/** What `reserve` would grant now, by the store's sums. */
export interface Preview {
  granted_nano: number;
  /** Every budget that money would be reserved in. */
  lines: PreviewLine[];
  /** Why nothing would be granted; undefined if something would. */
  refusal: GatewayError | undefined;
}

/** The state of one budget for a new request. */
export interface PreviewLine {
  budget: Budget;
  window_start: string;
  /** Spent in the window so far, including what is not in the store yet. */
  spent_nano: number;
  /** Neither spent nor reserved. */
  available_nano: number;
  /** Milliseconds since 1970; undefined: it never resets. */
  resets_at: number | undefined;
}

/** One budget's part of a hold. `amount` is reserved now; `share` of it is what earlier attempts of the request may have cost. */
export interface HoldLine {
  budget: Budget;
  /** Fixed at admission: a request that outlives its window is charged to the window it began in. */
  window_start: string;
  /** The lease that the money is reserved in; used by the ledger alone. */
  lease: Lease;
  amount: number;
  share: number;
  /** The grant of the last attempt; 0 if it does not count against this budget. */
  granted: number;
}

/** The money of one request, reserved in every budget that it counts against. Changed by the ledger alone. */
export interface Hold {
  readonly id: string;
  lines: HoldLine[];
  /** The grant of the last `reserve`: from `least_nano` to `full_nano`. */
  granted_nano: number;
  /** The mode of the last `reserve`. */
  mode?: BudgetMode;
  /** Its request has an outcome. */
  is_settled?: true;
  /** The running attempt, as recorded in the journal. */
  attempt?: { attempt: number; endpoint: string; record: OpenRecord; least: Metered | undefined };
}
