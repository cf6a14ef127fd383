import type { GatewayError } from '../../errors.ts';
import { limits } from '../../limits.ts';
import { storeRefusal } from '../refusal.ts';
import type { LeaseRow, Settle, Watched, WindowRequest, WindowState } from '../settle.ts';
import { Grants, type GrantsOptions, maxGrant, reachOf, roomOf } from './grants.ts';
import type { Hold, HoldLine, HoldRequest, Lease } from './hold.ts';
import { freeOf, LeaseBook } from './lease-book.ts';

/** How long a node that returned money for another node's claim requests none of it. */
const CLAIM_YIELD_MS = 40;

/** Leases that one batch returns because nobody uses them. */
const RETURNS_MAX = 1_000;

/** A lease is filled in advance once one part in `LACKING_PART` of its node's spending in `LEASE_SPAN_MS` is missing. */
const LACKING_PART = 4;

/** A request that this node lacks the money for. */
interface Waiter {
  request: HoldRequest;
  hold: Hold;
  lines: HoldLine[];
  /** When it stops waiting for money of other nodes, and when for the store's first answer; monotonic milliseconds. */
  deadline: number;
  storeDeadline: number;
  /** The number of the batch that requested its money; 0: none yet. */
  requestedIn: number;
  /** A batch that requested its money was answered. */
  isAnswered: boolean;
  resolve: (hold: Hold) => void;
  reject: (error: GatewayError) => void;
}

export interface LeasesOptions extends GrantsOptions {
  /** Whether the store is known not to answer: then no request waits for it. */
  isStoreAway(): boolean;
}

/** Above any limit, so a larger request changes nothing; close to the largest integer of the store. */
const NANO_MAX = limits.usd_max * 1e9;

/**
 * The money that this node may spend without the store: one lease for each window, the requests that wait for more (`Grants` has what
 * they may take now), and what each batch requests and returns. It runs on one event loop, so a request gets what it needs of all its
 * budgets or of none. Time never frees money here: a lease shrinks when a settle is acknowledged, or when idle money is returned in a
 * numbered batch.
 */
export class Leases {
  readonly #options: LeasesOptions;
  /** The sums. Code that only changes holds uses the book directly. */
  readonly book: LeaseBook;
  /** Grants from the leases that the node has now. Code that never waits for more uses it directly. */
  readonly grants: Grants;
  #waiters: Waiter[] = [];
  #nodes = 1;
  /** Leases for which the last batch may have made a claim. */
  #requested: Lease[] = [];
  /** Whether leases may be kept while they are not used; not before the store has said so. */
  #keeps = false;
  /** More is to be returned than the last batch could carry. */
  #hasMore = false;

  constructor(options: LeasesOptions) {
    this.#options = options;
    this.book = new LeaseBook(options.monotonic);
    this.grants = new Grants(this.book, options);
  }

  get waiting(): number {
    return this.#waiters.length;
  }

  /** The node is registered: its leases are those that the store reports. */
  registered(rows: readonly LeaseRow[]): void {
    this.book.registered(rows);
    for (const waiter of this.#waiters) waiter.requestedIn = 0;
    if (this.#waiters.length > 0) this.#options.onNeed();
  }

  /** The replay is complete: grants and returns begin. */
  open(): void {
    this.grants.isOpen = true;
  }

  /** See `Recorder.reserve`. */
  reserve(request: HoldRequest, current: Hold | undefined): Hold | Promise<Hold> {
    const hold = current ?? { id: request.id, lines: [], granted_nano: 0 };
    const lines = this.grants.linesOf(request, hold);
    const most = maxGrant(request, lines);
    if (request.full_nano === 0 || lines.length === 0 || this.grants.available(lines) >= most) {
      this.grants.take(hold, lines, request, most);
      return hold;
    }
    const refused = this.grants.rememberedRefusal(request, lines);
    if (refused) throw refused;
    const storeMsMax = Math.min(
      limits.store_read_ms_max,
      request.store_wait?.remainingMs() ?? Number.POSITIVE_INFINITY,
    );
    if (storeMsMax === 0 || this.#options.isStoreAway()) {
      // The store cannot add anything: what this node has must suffice.
      const granted = Math.min(most, this.grants.available(lines));
      if (this.grants.isDraining || granted < request.least_nano || granted <= 0) throw storeRefusal();
      this.grants.take(hold, lines, request, granted);
      return hold;
    }
    if (this.grants.isDraining) throw storeRefusal();
    if (this.#waiters.length >= limits.admissions_waiting_max) throw storeRefusal();
    const { promise, resolve, reject } = Promise.withResolvers<Hold>();
    const now = this.#options.monotonic();
    const deadline = now + limits.recall_wait_ms;
    const storeDeadline = now + storeMsMax;
    const waiter = {
      request,
      hold,
      lines,
      deadline,
      storeDeadline,
      requestedIn: 0,
      isAnswered: false,
      resolve,
      reject,
    };
    this.#waiters.push(waiter);
    request.store_wait?.begin();
    const answered = () => this.#answered(waiter);
    promise.then(answered, answered);
    this.#options.onNeed();
    return promise;
  }

  /** The lease requests of the batch `number`; its content is frozen from here on. */
  freeze(settles: readonly Settle[], number: number, isLast: boolean): WindowRequest[] {
    const requests = new Map<Lease, WindowRequest>();
    const requestOf = (lease: Lease): WindowRequest => {
      let request = requests.get(lease);
      if (request === undefined) {
        const { budget_id, window_start, is_new, stored } = lease;
        request = {
          budget_id,
          window_start,
          is_new,
          own: stored,
          returned: 0,
          need: 0,
          want: 0,
          slack: 0,
          withdraws: false,
        };
        requests.set(lease, request);
      }
      return request;
    };
    for (const { charges } of settles) {
      for (const charge of charges) requestOf(this.book.of(charge.budget_id, charge.window_start));
    }
    if (!this.grants.isOpen) return [...requests.values()];
    // Money that an outcome freed is returned with that outcome or later: otherwise a replay could charge money that was returned.
    if (isLast) this.#return(requestOf);
    this.#requestForWaiters(requestOf, number);
    this.#requestAhead(requestOf);
    for (const lease of this.#abandoned()) requestOf(lease).withdraws = true;
    this.#requested = [...requests].flatMap(([lease, { need }]) => (need > 0 ? [lease] : []));
    return [...requests.values()];
  }

  /** The store has applied a batch: takes over the state of each window, and the settles are no longer pending. */
  applied(settles: readonly Settle[], number: number, windows: readonly WindowState[]): void {
    this.book.acknowledge(settles);
    for (const state of windows) this.book.applyState(state);
    this.#serve(number);
    this.#sweep();
    if (this.#hasMore || this.#isWanted() || this.#abandoned().length > 0) this.#options.onNeed();
  }

  /** The store had applied a batch whose answer was lost: the leases are known again, the windows are not. */
  alreadyApplied(settles: readonly Settle[], rows: readonly LeaseRow[]): void {
    this.book.acknowledge(settles);
    // The lost answer contained the claims: withdrawing one that does not exist changes nothing.
    const claiming = this.#awaited();
    for (const lease of this.#requested) claiming.add(lease);
    for (const lease of this.book.claiming) claiming.add(lease);
    this.registered(rows);
    for (const lease of claiming) this.book.claim(lease, true);
    this.#serve(0);
    if (this.#hasMore || this.#abandoned().length > 0) this.#options.onNeed();
  }

  /** Takes over the store's answer to `watch`. True if money is to be returned or a claim withdrawn now. */
  watched({ wanted, scarce, keeps_leases, nodes }: Watched): boolean {
    this.#nodes = Math.max(1, nodes);
    this.#keeps = keeps_leases;
    for (const { budget_id, window_start } of wanted) {
      const lease = this.book.find(budget_id, window_start);
      if (lease !== undefined) this.book.want(lease);
    }
    for (const { budget_id, window_start } of scarce) {
      const lease = this.book.find(budget_id, window_start);
      if (lease !== undefined) lease.scarce = true;
    }
    this.#sweep();
    return this.#isWanted() || this.#isUnused() || this.#abandoned().length > 0;
  }

  #sweep(): void {
    const now = this.#options.now();
    const isOpen = ({ interval, window_start }: Lease) =>
      interval !== undefined && this.grants.startOf(interval, now) === window_start;
    this.book.sweep(isOpen, this.#keeps, () => this.#awaited());
  }

  /** Whether money is to be returned that other nodes wait for, or that exceeds a limit. */
  #isWanted(): boolean {
    for (const lease of this.book.returnable) if (lease.wanted && freeOf(lease) > 0) return true;
    return false;
  }

  /** Whether money is to be returned that nobody uses. */
  #isUnused(): boolean {
    for (const lease of this.book.returnable) if (freeOf(lease) > 0 && this.book.isIdle(lease)) return true;
    return false;
  }

  /** Grants or refuses the requests that have waited as long as they may. */
  expire(): void {
    const now = this.#options.monotonic();
    // A store that is slow to answer has not refused.
    const isLate = ({ deadline, storeDeadline, isAnswered }: Waiter) => (isAnswered ? deadline : storeDeadline) <= now;
    const late = this.#waiters.filter(isLate);
    if (late.length === 0) return;
    this.#waiters = this.#waiters.filter((waiter) => !isLate(waiter));
    for (const waiter of late) {
      if (this.#takeLess(waiter)) continue;
      waiter.reject(waiter.isAnswered ? this.grants.refusal(waiter.request, waiter.lines) : storeRefusal());
    }
    if (this.#abandoned().length > 0) this.#options.onNeed();
  }

  /** Refuses all further requests; everything idle is returned. */
  drain(): void {
    this.grants.isDraining = true;
    for (const { reject } of this.#waiters.splice(0)) reject(storeRefusal());
  }

  /** See `SettleBatch.divisor`. */
  get divisor(): number {
    return 2 * this.#nodes;
  }

  /** The leases that requests wait for. */
  #awaited(): Set<Lease> {
    return new Set(this.#waiters.flatMap(({ lines }) => lines.map(({ lease }) => lease)));
  }

  /** Leases for which other nodes still return money, although no request here waits for it any more. */
  #abandoned(): Lease[] {
    const { claiming } = this.book;
    if (claiming.size === 0) return [];
    const awaited = this.#awaited();
    const now = this.#options.monotonic();
    return [...claiming].filter(
      (lease) => !awaited.has(lease) && now - lease.growth_requested_at > limits.recall_wait_ms,
    );
  }

  /** Grants a waiting request `granted`. */
  #grant({ hold, lines, request, resolve, reject }: Waiter, granted: number): void {
    try {
      this.grants.take(hold, lines, request, granted);
      resolve(hold);
    } catch (error) {
      reject(error as GatewayError);
    }
  }

  /** Before money is returned because other nodes wait for it, requests that wait here take it if it suffices. */
  #takeBeforeReturn(): void {
    const isLeaving = ({ lease }: HoldLine) => lease.wanted && freeOf(lease) > 0;
    this.#waiters = this.#waiters.filter(
      (waiter) => !(waiter.isAnswered && waiter.lines.some(isLeaving) && this.#takeLess(waiter)),
    );
  }

  #return(requestOf: (lease: Lease) => WindowRequest): void {
    this.#takeBeforeReturn();
    this.#sweep();
    this.#hasMore = false;
    const now = this.#options.monotonic();
    const awaited = this.#awaited();
    let returns = 0;
    for (const lease of this.grants.isDraining ? this.book.all : this.book.returnable) {
      const idle = freeOf(lease);
      if (!(lease.wanted || this.grants.isDraining || this.book.isIdle(lease))) {
        this.book.retain(lease);
        continue;
      }
      if (idle <= 0) continue;
      // If a request here waits for more of it, it is not idle.
      if (awaited.has(lease) && !(lease.wanted || this.grants.isDraining)) continue;
      if (returns >= RETURNS_MAX && !lease.wanted) {
        this.#hasMore = true;
        continue;
      }
      returns += 1;
      if (lease.wanted) lease.yields_until = now + CLAIM_YIELD_MS;
      lease.wanted = false;
      lease.returning = idle;
      requestOf(lease).returned = idle;
    }
  }

  #requestForWaiters(requestOf: (lease: Lease) => WindowRequest, number: number): void {
    const now = this.#options.monotonic();
    const wants = new Map<Lease, { most: number; least: number; largest: number }>();
    for (const waiter of this.#waiters) {
      if (waiter.lines.some(({ lease }) => now < lease.yields_until)) continue;
      waiter.requestedIn = number;
      const { request, lines } = waiter;
      const most = maxGrant(request, lines);
      for (const { lease, amount, share } of lines) {
        const kept = share - amount;
        // What it holds already suffices here.
        if (most + kept <= 0) continue;
        const want = wants.get(lease) ?? { most: 0, least: Number.POSITIVE_INFINITY, largest: 0 };
        want.most += most + kept;
        want.least = Math.min(want.least, request.least_nano + kept);
        want.largest = Math.max(want.largest, most);
        wants.set(lease, want);
      }
    }
    for (const [lease, { most, least, largest }] of wants) {
      const free = freeOf(lease);
      if (most <= free) continue;
      const request = requestOf(lease);
      request.want = Math.min(most - free, NANO_MAX);
      request.need = Math.min(request.want, Math.max(1, least - free));
      request.slack = Math.min(Math.max(largest, this.book.slackOf(lease)), NANO_MAX);
    }
  }

  /** Requests money before leases are empty, in batches that are sent anyway, if the store has enough. */
  #requestAhead(requestOf: (lease: Lease) => WindowRequest): void {
    if (this.grants.isDraining) return;
    const now = this.#options.monotonic();
    for (const lease of this.book.used()) {
      const { growth } = lease;
      if (lease.wanted || now < lease.yields_until) continue;
      if (growth === 0 && (lease.store_free <= 0 || this.book.isIdle(lease))) continue;
      const slack = this.book.slackOf(lease);
      const lacking = Math.max(growth, slack - freeOf(lease) - lease.held);
      // Not for every charge: only a batch that requests money locks the row of the window.
      if (lacking <= 0 || (growth === 0 && lacking * LACKING_PART < slack)) continue;
      const request = requestOf(lease);
      if (request.want > 0 || request.returned > 0) continue;
      lease.growth = 0;
      request.want = Math.max(1, growth);
      request.need = growth === 0 ? 0 : 1;
      request.slack = lacking;
    }
  }

  /** Grants what there is to waiting requests, first come, first served; refuses those that the answer to batch `number` decides. */
  #serve(number: number): void {
    const waiting: Waiter[] = [];
    for (const waiter of this.#waiters) {
      const { request, lines } = waiter;
      const wasRequested = waiter.requestedIn !== 0 && waiter.requestedIn === number;
      if (wasRequested) this.#answered(waiter);
      const most = maxGrant(request, lines);
      if (this.grants.available(lines) >= most) {
        this.#grant(waiter, most);
      } else if (!wasRequested || !this.#isDecided(waiter)) {
        waiting.push(waiter);
      } else if (!this.#takeLess(waiter)) {
        const refusal = this.grants.refusal(request, lines);
        this.grants.rememberRefusal(request, waiter.hold, lines);
        waiter.reject(refusal);
      }
    }
    this.#waiters = waiting;
  }

  /** The store has answered: from here on the request waits for other nodes only. */
  #answered(waiter: Waiter): void {
    if (waiter.isAnswered) return;
    waiter.isAnswered = true;
    waiter.request.store_wait?.end();
  }

  /** Whether waiting cannot help: what a budget lacks is not at other nodes, or is more than they have. */
  #isDecided({ request, lines }: Waiter): boolean {
    let hope = false;
    const most = maxGrant(request, lines);
    for (const line of lines) {
      if (roomOf(line) >= most) continue;
      const { elsewhere, store_free } = line.lease;
      // It had enough when another budget's money was requested, so the store has not answered about it.
      if (elsewhere === undefined) hope = true;
      else if (reachOf(line) < request.least_nano) return true;
      else if (elsewhere > 0 || store_free > 0) hope = true;
    }
    return !hope;
  }

  /** Grants less than the full amount, if it is at least `least_nano`. */
  #takeLess(waiter: Waiter): boolean {
    const { request, lines } = waiter;
    const granted = Math.min(maxGrant(request, lines), this.grants.available(lines));
    if (granted < request.least_nano || granted <= 0) return false;
    this.#grant(waiter, granted);
    return true;
  }
}
