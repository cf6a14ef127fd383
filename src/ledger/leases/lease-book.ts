import { brokenRule } from '../../errors.ts';
import { limits } from '../../limits.ts';
import type { Charged } from '../records.ts';
import type { LeaseRow, Settle, WindowState } from '../settle.ts';
import type { Hold, HoldLine, Lease } from './hold.ts';

/** A lease as others may see it. */
export type Holding = Readonly<
  Pick<Lease, 'budget_id' | 'window_start' | 'stored' | 'returning' | 'held' | 'pending' | 'frozen'>
>;

export function freeOf(lease: Lease): number {
  return lease.stored - lease.returning - lease.held - lease.pending - lease.frozen;
}

/** Takes money out of holds. More than there is in them stays set aside: nobody else gets what may be spent. */
function unhold(lease: Lease, amount: number, { id }: Hold): void {
  if (amount <= lease.held) {
    lease.held -= amount;
    return;
  }
  const { budget_id, window_start, held } = lease;
  brokenRule('held_not_negative', { generation: id, budget_id, window_start, held, amount });
}

function isCharged({ amount }: Charged): boolean {
  return amount !== 0;
}

/**
 * What this node has of each window, and what is set aside of it. The sums alone: who may have how much of them is
 * decided by `Leases`.
 */
export class LeaseBook {
  readonly #monotonic: () => number;
  readonly #leases = new Set<Lease>();
  /** The same, by budget and window: no name to be put together for every look. */
  readonly #by_budget = new Map<string, Map<string, Lease>>();

  constructor(monotonic: () => number) {
    this.#monotonic = monotonic;
  }

  /** Live: it changes with the leases. */
  get all(): ReadonlySet<Lease> {
    return this.#leases;
  }

  /** Whether the store has anything set aside for this node. */
  get holds(): boolean {
    for (const lease of this.#leases) if (lease.stored > 0) return true;
    return false;
  }

  /** Money in holds, and leased, over all windows; for the operator. */
  sums(): { held_nano: number; leased_nano: number } {
    const sums = { held_nano: 0, leased_nano: 0 };
    for (const lease of this.#leases) {
      sums.held_nano += lease.held;
      sums.leased_nano += lease.stored;
    }
    return sums;
  }

  /** Undefined: this node has never had to do with the window. */
  find(budget_id: string, window_start: string): Lease | undefined {
    return this.#by_budget.get(budget_id)?.get(window_start);
  }

  /** As `find`; begins one that is empty where there is none. */
  of(budget_id: string, window_start: string): Lease {
    let windows = this.#by_budget.get(budget_id);
    if (windows === undefined) {
      windows = new Map();
      this.#by_budget.set(budget_id, windows);
    }
    let lease = windows.get(window_start);
    if (lease === undefined) {
      lease = {
        budget_id,
        window_start,
        stored: 0,
        returning: 0,
        held: 0,
        frozen: 0,
        pending: 0,
        is_new: true,
        elsewhere: undefined,
        spent: 0,
        store_free: 0,
        wanted: false,
        claims: false,
        growth: 0,
        growth_asked_at: Number.NEGATIVE_INFINITY,
        yields_until: Number.NEGATIVE_INFINITY,
        refused_until: Number.NEGATIVE_INFINITY,
        refused_need: 0,
        refused_limit: 0,
        used_at: this.#monotonic(),
        span_began: this.#monotonic(),
        span: 0,
        span_before: 0,
        is_forgotten: false,
      };
      windows.set(window_start, lease);
      this.#leases.add(lease);
    }
    return lease;
  }

  /** The lease of a line; begun anew where it was forgotten meanwhile, as one that nothing is held of may be. */
  leaseOf(line: HoldLine): Lease {
    if (line.lease.is_forgotten) line.lease = this.of(line.budget.id, line.window_start);
    return line.lease;
  }

  /** What the store says that this node holds, and nothing else. */
  registered(rows: readonly LeaseRow[]): void {
    for (const lease of this.#leases) {
      lease.stored = 0;
      lease.returning = 0;
      lease.claims = false;
      // A store that was set back may not know the window any more.
      lease.is_new = true;
    }
    for (const { budget_id, window_start, amount } of rows) this.of(budget_id, window_start).stored = amount;
    // What an operator has released is no longer in doubt.
    for (const lease of this.#leases) lease.frozen = Math.min(lease.frozen, lease.stored);
  }

  /** What the store says of a window after a batch. */
  told(state: WindowState): Lease {
    const lease = this.of(state.budget_id, state.window_start);
    lease.stored = state.lease;
    lease.returning = 0;
    lease.is_new = false;
    lease.elsewhere = state.leased - state.lease;
    lease.spent = state.spent + lease.pending;
    lease.store_free = state.free ?? 0;
    lease.wanted = state.claimed;
    lease.claims = state.claims;
    return lease;
  }

  /**
   * What may have been spent by requests nobody knows of, by what an earlier run said of it or, where this start is
   * itself `in_doubt`, all that is not pending. Set aside for good; told, so that the next run knows it too.
   */
  freezeDoubtful(known: readonly LeaseRow[], in_doubt: boolean): LeaseRow[] {
    for (const { budget_id, window_start, amount } of known) {
      const lease = this.of(budget_id, window_start);
      lease.frozen = Math.min(amount, Math.max(0, freeOf(lease)));
    }
    const rows: LeaseRow[] = [];
    for (const lease of this.#leases) {
      if (in_doubt) lease.frozen += Math.max(0, freeOf(lease));
      const { budget_id, window_start, frozen } = lease;
      if (frozen > 0) rows.push({ budget_id, window_start, amount: frozen });
    }
    return rows;
  }

  /** See `Recorder.keep`. */
  keep(hold: Hold, cost_nano: number, is_byok: boolean): void {
    for (const line of hold.lines) if (!is_byok || line.budget.include_byok) line.share += cost_nano;
  }

  /**
   * The attempt that was reserved last is in the journal with its new amounts: what an earlier one held and did not cost
   * is free. Not before: in a crash the journal would tell of the old hold, and somebody else might have its money.
   */
  attempted(hold: Hold): void {
    for (const line of hold.lines) {
      const needed = line.share + line.granted;
      if (line.amount <= needed) continue;
      unhold(this.leaseOf(line), line.amount - needed, hold);
      line.amount = needed;
    }
  }

  /** A larger grant could not be written down: it is not to be relied on. Its money stays aside, since the record may be there. */
  notGranted(hold: Hold, granted_nano: number): void {
    for (const line of hold.lines) if (line.granted > 0) line.granted -= hold.granted_nano - granted_nano;
    hold.granted_nano = granted_nano;
  }

  /** Drops a hold; what its request cost is pending from here on, each line at its own amount. */
  settle(hold: Hold, amountOf: (line: HoldLine) => number): Charged[] {
    const charges = hold.lines.map((line): Charged => {
      const { budget, window_start, amount: held } = line;
      const lease = this.leaseOf(line);
      const amount = amountOf(line);
      unhold(lease, held, hold);
      // A charge above its hold also uses up what is free of the lease, never what other calls hold: the next call then asks the
      // store, which knows of the charge.
      const cover = Math.min(amount, Math.max(held, freeOf(lease)));
      // What costs nothing is not told to the store, so nothing would take it off again.
      if (amount !== 0) {
        lease.pending += cover;
        lease.spent += amount;
      }
      return { budget_id: budget.id, window_start, amount, cover };
    });
    hold.lines = [];
    hold.granted_nano = 0;
    return charges.every(isCharged) ? charges : charges.filter(isCharged);
  }

  /** Counts charges that a journal tells of as pending. */
  owe(charges: readonly Charged[]): void {
    for (const { budget_id, window_start, cover } of charges) this.of(budget_id, window_start).pending += cover;
  }

  /** The store has these: what they cost is no longer pending. */
  acknowledge(settles: readonly Settle[]): void {
    for (const { charges } of settles) {
      for (const { budget_id, window_start, cover } of charges) this.of(budget_id, window_start).pending -= cover;
    }
  }

  /** So much more of it was set aside now, by the monotonic clock. */
  used(lease: Lease, amount: number, now: number): void {
    lease.used_at = now;
    if (now - lease.span_began >= limits.lease_span_ms) {
      lease.span_before = now - lease.span_began >= 2 * limits.lease_span_ms ? 0 : lease.span;
      lease.span = 0;
      lease.span_began = now;
    }
    lease.span += amount;
  }

  /** What a lease should have beyond what is wanted now. */
  slackOf(lease: Lease): number {
    const now = this.#monotonic();
    if (now - lease.span_began >= 2 * limits.lease_span_ms) return 0;
    return Math.max(lease.span, lease.span_before);
  }

  /** Nobody has used it for long. */
  isIdle(lease: Lease): boolean {
    return this.#monotonic() - lease.used_at >= limits.lease_idle_ms;
  }

  /** Windows that are over, and others that nothing is known of any more that matters. `needed`: who still waits for one. */
  forget(needed: () => ReadonlySet<Lease>): void {
    if (this.#leases.size < limits.leases_remembered) return;
    const kept = needed();
    for (const lease of this.#leases) {
      const empty = lease.stored === 0 && lease.held === 0 && lease.pending === 0 && !lease.claims;
      if (empty && !kept.has(lease) && this.isIdle(lease)) this.#drop(lease);
    }
  }

  #drop(lease: Lease): void {
    const { budget_id, window_start } = lease;
    this.#leases.delete(lease);
    lease.is_forgotten = true;
    const windows = this.#by_budget.get(budget_id);
    windows?.delete(window_start);
    if (windows?.size === 0) this.#by_budget.delete(budget_id);
  }
}
