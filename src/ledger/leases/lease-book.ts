import { brokenRule } from '../../errors.ts';
import { limits } from '../../limits.ts';
import type { Charged } from '../records.ts';
import { type LeaseRow, SCARCE_TIMES, type Settle, type WindowState } from '../settle.ts';
import type { Hold, HoldLine, Lease } from './hold.ts';

/** The idle time after which a lease is returned if money of its window is scarce. */
export const LEASE_IDLE_MS = 5_000;
/**
 * When a lease is returned after `limits.lease_kept_ms`, all leases that were unused for this part of that time are returned too,
 * so that few batches return money.
 */
const KEPT_PART = 4 / 5;
/** The interval of searches for leases to be returned. */
const LEASE_SWEEP_MS = 250;
/** The time whose spending a lease covers, if the limit is far. */
const LEASE_SPAN_MS = 2_000;

/** The public part of a lease. */
export type Holding = Readonly<
  Pick<Lease, 'budget_id' | 'window_start' | 'stored' | 'returning' | 'held' | 'pending' | 'frozen'>
>;
/** The money of a lease that is neither held, pending, frozen nor being returned. Nano-USD. */
export function freeOf(lease: Lease): number {
  return lease.stored - lease.returning - lease.held - lease.pending - lease.frozen;
}

/** Takes money out of a lease's holds. If that is more than they have, nothing changes: the money may be spent, so nobody else gets it. */
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
 * What this node has of each window, and how much of it is held or pending. Keeps the sums; `Leases` decides who gets how
 * much.
 */
export class LeaseBook {
  readonly #monotonic: () => number;
  readonly #leases = new Set<Lease>();
  /** Leases that were used lately, or lack money for a running request. */
  readonly #used = new Set<Lease>();
  /** Leases with a claim. */
  readonly #claiming = new Set<Lease>();
  /** Leases whose idle money is to be returned, unless they are used before. */
  readonly #returnable = new Set<Lease>();
  #sweptAt = Number.NEGATIVE_INFINITY;
  /** The same leases by budget and window: no key is built for each lookup. */
  readonly #byBudget = new Map<string, Map<string, Lease>>();

  constructor(monotonic: () => number) {
    this.#monotonic = monotonic;
  }

  /** A live view of all leases. */
  get all(): ReadonlySet<Lease> {
    return this.#leases;
  }

  /** Whether the store has leased anything to this node. */
  get holds(): boolean {
    for (const lease of this.#leases) if (lease.stored > 0) return true;
    return false;
  }

  /** Money in holds and in leases, over all windows. */
  sums(): { held_nano: number; leased_nano: number } {
    const sums = { held_nano: 0, leased_nano: 0 };
    for (const lease of this.#leases) {
      sums.held_nano += lease.held;
      sums.leased_nano += lease.stored;
    }
    return sums;
  }

  /** The lease of a window; undefined if this node has none. */
  find(budgetId: string, windowStart: string): Lease | undefined {
    return this.#byBudget.get(budgetId)?.get(windowStart);
  }

  /** As `find`; creates an empty lease if there is none. */
  of(budgetId: string, windowStart: string): Lease {
    let windows = this.#byBudget.get(budgetId);
    if (windows === undefined) {
      windows = new Map();
      this.#byBudget.set(budgetId, windows);
    }
    let lease = windows.get(windowStart);
    if (lease === undefined) {
      lease = {
        budget_id: budgetId,
        window_start: windowStart,
        stored: 0,
        returning: 0,
        held: 0,
        frozen: 0,
        pending: 0,
        is_new: true,
        elsewhere: undefined,
        spent: 0,
        store_free: 0,
        scarce: true,
        interval: undefined,
        wanted: false,
        claims: false,
        growth: 0,
        growth_requested_at: Number.NEGATIVE_INFINITY,
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
      windows.set(windowStart, lease);
      this.#leases.add(lease);
    }
    return lease;
  }

  /** The lease of a line. An empty lease may have been forgotten: then a new one is created. */
  leaseOf(line: HoldLine): Lease {
    if (line.lease.is_forgotten) line.lease = this.of(line.budget.id, line.window_start);
    return line.lease;
  }

  /** Replaces all leases with those that the store reports at a registration. */
  registered(rows: readonly LeaseRow[]): void {
    for (const lease of this.#leases) {
      lease.stored = 0;
      lease.returning = 0;
      lease.scarce = true;
      this.claim(lease, false);
      // A store that was set back may not know the window any more.
      lease.is_new = true;
    }
    for (const { budget_id, window_start, amount } of rows) this.of(budget_id, window_start).stored = amount;
    // What an operator has released is no longer in doubt.
    for (const lease of this.#leases) lease.frozen = Math.min(lease.frozen, lease.stored);
  }

  /** Takes over the state of a window after a batch. */
  applyState(state: WindowState): Lease {
    const lease = this.of(state.budget_id, state.window_start);
    lease.stored = state.lease;
    lease.returning = 0;
    lease.is_new = false;
    lease.elsewhere = state.leased - state.lease;
    lease.spent = state.spent + lease.pending;
    lease.store_free = state.free ?? 0;
    lease.scarce = lease.store_free < SCARCE_TIMES * state.leased;
    const isOver = state.free === null || state.free < 0;
    lease.wanted = state.claimed || (isOver && lease.stored > 0);
    if (lease.wanted) this.#returnable.add(lease);
    this.claim(lease, state.claims);
    return lease;
  }

  /**
   * Freezes what requests of an earlier run may have spent without a record: the amounts in `known`, and with `inDoubt` all
   * that is free. Frozen money is neither used nor returned. Returns all frozen amounts, to be recorded for the next run.
   */
  freezeDoubtful(known: readonly LeaseRow[], inDoubt: boolean): LeaseRow[] {
    for (const { budget_id, window_start, amount } of known) {
      const lease = this.of(budget_id, window_start);
      lease.frozen = Math.min(amount, Math.max(0, freeOf(lease)));
    }
    const rows: LeaseRow[] = [];
    for (const lease of this.#leases) {
      if (inDoubt) lease.frozen += Math.max(0, freeOf(lease));
      const { budget_id, window_start, frozen } = lease;
      if (frozen > 0) rows.push({ budget_id, window_start, amount: frozen });
    }
    return rows;
  }

  /** See `Recorder.keep`. */
  keep(hold: Hold, costNano: number, isByok: boolean): void {
    for (const line of hold.lines) if (!isByok || line.budget.include_byok) line.share += costNano;
  }

  /**
   * The attempt that was reserved last is in the journal with its new amounts: what earlier attempts held and did not cost
   * becomes free. Not before: after a crash the journal would show the old hold, and another request might have its money.
   */
  attempted(hold: Hold): void {
    for (const line of hold.lines) {
      const needed = line.share + line.granted;
      if (line.amount <= needed) continue;
      unhold(this.leaseOf(line), line.amount - needed, hold);
      line.amount = needed;
    }
  }

  /** Takes back an extension that could not be recorded. Its money stays reserved, since the record may be on the disk. */
  undoExtend(hold: Hold, grantedNano: number): void {
    for (const line of hold.lines) if (line.granted > 0) line.granted -= hold.granted_nano - grantedNano;
    hold.granted_nano = grantedNano;
  }

  /** Drops a hold. The cost of its request, `amountOf` each line, is pending from here on. Returns the charges that are not 0. */
  settle(hold: Hold, amountOf: (line: HoldLine) => number): Charged[] {
    const charges = hold.lines.map((line): Charged => {
      const { budget, window_start, amount: held } = line;
      const lease = this.leaseOf(line);
      const amount = amountOf(line);
      unhold(lease, held, hold);
      // A charge above its hold also uses up what is free of the lease, never what other calls hold: the next call then asks the
      // store, which knows of the charge.
      const cover = Math.min(amount, Math.max(held, freeOf(lease)));
      // The store is not sent a charge of 0, so no acknowledgement would remove it again.
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

  /** Counts charges from a journal as pending. */
  addPending(charges: readonly Charged[]): void {
    for (const { budget_id, window_start, cover } of charges) this.of(budget_id, window_start).pending += cover;
  }

  /** The store has stored these settles: their charges are no longer pending. */
  acknowledge(settles: readonly Settle[]): void {
    for (const { charges } of settles) {
      for (const { budget_id, window_start, cover } of charges) this.of(budget_id, window_start).pending -= cover;
    }
  }

  /** Other nodes return idle money for this one, or do not any more. */
  claim(lease: Lease, claims: boolean): void {
    lease.claims = claims;
    if (claims) this.#claiming.add(lease);
    else this.#claiming.delete(lease);
  }

  /** Leases with a claim; a live view. */
  get claiming(): ReadonlySet<Lease> {
    return this.#claiming;
  }

  /** Idle money of it is to be returned now. */
  want(lease: Lease): void {
    lease.wanted = true;
    this.#returnable.add(lease);
  }

  /** A running request lacks `amount`. */
  lack(lease: Lease, amount: number): void {
    lease.growth = amount;
    this.#used.add(lease);
  }

  /** Leases that were used lately, or lack money for a running request. */
  used(): ReadonlySet<Lease> {
    for (const lease of this.#used) if (lease.growth === 0 && this.isIdle(lease)) this.#used.delete(lease);
    return this.#used;
  }

  /** Leases whose idle money may have to be returned; a live view. Those that need not be are removed with `retain`. */
  get returnable(): ReadonlySet<Lease> {
    return this.#returnable;
  }

  retain(lease: Lease): void {
    this.#returnable.delete(lease);
  }

  /**
   * Finds the leases that are to be returned because nobody uses them, and drops empty ones if there are many. Does nothing if it did so
   * a moment ago. `isOpen`: whether the window of a lease still admits calls. `keeps`: whether money that is not scarce is kept.
   * `needed`: leases that requests wait for.
   */
  sweep(isOpen: (lease: Lease) => boolean, keeps: boolean, needed: () => ReadonlySet<Lease>): void {
    const now = this.#monotonic();
    if (now - this.#sweptAt < LEASE_SWEEP_MS) return;
    this.#sweptAt = now;
    const keepsAll = keeps && this.#leases.size <= limits.leases_kept;
    let isKeptLongEnough = false;
    for (const lease of this.#leases) {
      const unusedMs = now - lease.used_at;
      if (unusedMs < LEASE_IDLE_MS || lease.stored === 0) continue;
      if (unusedMs >= limits.lease_kept_ms) isKeptLongEnough = true;
      else if (keepsAll && !lease.scarce && isOpen(lease)) continue;
      this.#returnable.add(lease);
    }
    if (isKeptLongEnough) {
      for (const lease of this.#leases) {
        if (lease.stored > 0 && now - lease.used_at >= limits.lease_kept_ms * KEPT_PART) this.#returnable.add(lease);
      }
    }
    this.#forget(needed);
  }

  /** Notes that `amount` more was reserved at `now`, by the monotonic clock. */
  recordUse(lease: Lease, amount: number, now: number): void {
    lease.used_at = now;
    this.#used.add(lease);
    if (now - lease.span_began >= LEASE_SPAN_MS) {
      lease.span_before = now - lease.span_began >= 2 * LEASE_SPAN_MS ? 0 : lease.span;
      lease.span = 0;
      lease.span_began = now;
    }
    lease.span += amount;
  }

  /** How much a lease should have beyond current requests: the most that was reserved in a recent span. */
  slackOf(lease: Lease): number {
    const now = this.#monotonic();
    if (now - lease.span_began >= 2 * LEASE_SPAN_MS) return 0;
    return Math.max(lease.span, lease.span_before);
  }

  /** Whether nobody has used it for `LEASE_IDLE_MS`. */
  isIdle(lease: Lease): boolean {
    return this.#monotonic() - lease.used_at >= LEASE_IDLE_MS;
  }

  /** Drops empty idle leases if there are many. `needed`: those that requests wait for. */
  #forget(needed: () => ReadonlySet<Lease>): void {
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
    this.#used.delete(lease);
    this.#returnable.delete(lease);
    lease.is_forgotten = true;
    const windows = this.#byBudget.get(budget_id);
    windows?.delete(window_start);
    if (windows?.size === 0) this.#byBudget.delete(budget_id);
  }
}
