import { brokenRule, type GatewayError } from '../../errors.ts';
import { limits } from '../../limits.ts';
import { type Budget, type BudgetInterval, DAY_MS, windowEnd, windowStart } from '../../schemas/budget.ts';
import { budgetRefusal, storeRefusal } from '../refusal.ts';
import type { LeaseRow, Settle, Watched, WindowRequest, WindowState, WindowSums } from '../settle.ts';
import type { Hold, HoldLine, HoldRequest, Lease, Preview } from './hold.ts';
import { freeOf, LeaseBook } from './lease-book.ts';

/** A node that gave back what another wished for asks for none of it for so long. */
const CLAIM_YIELD_MS = 40;

/** Leases that one batch returns because nobody uses them. */
const RETURNS_MAX = 1_000;

/** A lease is filled ahead of need once one part in so many of what its node spends in `LEASE_SPAN_MS` is missing. */
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

export interface LeasesOptions {
  /** The store's clock as this node knows it: milliseconds since 1970. */
  now(): number;
  monotonic(): number;
  /** Called if something must be requested from the store or returned to it now. */
  onNeed(): void;
  /** Whether the store is known not to answer: then no request waits for it. */
  isStoreAway(): boolean;
}

/** Above any limit, so a larger request changes nothing; close to the largest integer of the store. */
const NANO_MAX = limits.usd_max * 1e9;

/** The budgets that an attempt counts against. */
function countedIn({ budgets, is_byok }: HoldRequest): readonly Budget[] {
  return is_byok ? budgets.filter(({ include_byok }) => include_byok) : budgets;
}

function hasRoom(lines: readonly HoldLine[], granted: number): boolean {
  for (const line of lines) if (roomOf(line) < granted) return false;
  return true;
}

function overGranted({ id }: Hold, lines: readonly HoldLine[], granted: number): GatewayError {
  const leases = lines.map(({ lease: { budget_id, window_start, stored, returning, held, pending, frozen } }) => {
    return { budget_id, window_start, stored, returning, held, pending, frozen };
  });
  return brokenRule('grant_within_lease', { generation: id, granted, leases });
}

/** The most that one budget's lease allows the next attempt of a request. */
function roomOf({ lease, amount, share }: HoldLine): number {
  return freeOf(lease) + (amount - share);
}

/** The most that one budget allows the next attempt if all idle money was moved here, as far as this node knows. */
function reachOf(line: HoldLine): number {
  const { elsewhere = 0, store_free } = line.lease;
  return roomOf(line) + Math.max(0, store_free) + elsewhere;
}

/** What is left of one budget for the next attempt, on any node; before the store's first answer, all that is not known to be spent. */
function leftOf(line: HoldLine): number {
  const { budget, lease } = line;
  if (lease.elsewhere !== undefined) return reachOf(line);
  return Math.max(roomOf(line), budget.limit_nano - lease.spent);
}

/** The largest grant to an attempt if `left` is left of a budget. */
function maxGrantOf({ full_nano, least_nano, share }: HoldRequest, left: number): number {
  if (share === undefined) return full_nano;
  const { part, fixed_nano } = share;
  return Math.min(full_nano, Math.max(least_nano, fixed_nano + Math.floor((left - fixed_nano) * part)));
}

/** The largest grant to an attempt over all of its budgets. */
function maxGrant(request: HoldRequest, lines: readonly HoldLine[]): number {
  let most = request.full_nano;
  if (request.share !== undefined) {
    for (const line of lines) most = Math.min(most, maxGrantOf(request, leftOf(line)));
  }
  return most;
}

/**
 * The money that this node may spend without the store: one lease for each window, the holds against it, and the requests
 * that wait for more. It runs on one event loop, so a request gets what it needs of all its budgets or of none. Time never
 * frees money here: a lease shrinks when a settle is acknowledged, or when idle money is returned in a numbered batch.
 */
export class Leases {
  readonly #options: LeasesOptions;
  /** The sums. Code that only changes holds uses the book directly. */
  readonly book: LeaseBook;
  #waiters: Waiter[] = [];
  #nodes = 1;
  /** Leases for which the last batch may have made a claim. */
  #requested: Lease[] = [];
  #draining = false;
  /** Whether leases may be kept while they are not used; not before the store has said so. */
  #keeps = false;
  /** More is to be returned than the last batch could carry. */
  #hasMore = false;
  /** False until the replay has queued everything: nothing is granted or returned before. */
  #open = false;
  readonly #starts = new Map<BudgetInterval, { start: string; until: number }>();

  constructor(options: LeasesOptions) {
    this.#options = options;
    this.book = new LeaseBook(options.monotonic);
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
    this.#open = true;
  }

  /** The windows that an attempt of a request without a hold would count in. */
  windowsOf(request: HoldRequest): { budget_id: string; window_start: string }[] {
    const at = this.#momentOf(request);
    return countedIn(request).map(({ id, reset_interval }) => ({
      budget_id: id,
      window_start: this.#startOf(reset_interval, at),
    }));
  }

  /** See `Recorder.preview`; `sums` are the store's for `windowsOf`. */
  preview(request: HoldRequest, sums: readonly WindowSums[]): Preview {
    const now = this.#options.now();
    const at = this.#momentOf(request);
    const budgets = countedIn(request).map((budget) => {
      const start = this.#startOf(budget.reset_interval, at);
      const isOf = (sum: WindowSums) => sum.budget_id === budget.id && sum.window_start === start;
      const { spent, leased } = sums.find(isOf) ?? { spent: 0, leased: 0 };
      const lease = this.book.find(budget.id, start);
      const { stored, pending } = lease ?? { stored: 0, pending: 0 };
      const elsewhere = Math.max(0, leased - stored);
      const own = lease === undefined ? 0 : freeOf(lease);
      const availableNano = Math.max(0, own + Math.max(0, budget.limit_nano - spent - leased));
      const resetsAt = windowEnd(budget.reset_interval, now);
      const spentNano = spent + pending;
      const line = {
        budget,
        window_start: start,
        spent_nano: spentNano,
        available_nano: availableNano,
        resets_at: resetsAt,
      };
      return { line, elsewhere };
    });
    const lines = budgets.map(({ line }) => line);
    const { full_nano, least_nano: neededNano } = request;
    const mostNano = budgets.map(({ line, elsewhere }) => maxGrantOf(request, line.available_nano + elsewhere));
    const grantedNano = Math.min(full_nano, ...mostNano, ...lines.map(({ available_nano }) => available_nano));
    if (full_nano === 0 || (grantedNano >= neededNano && grantedNano > 0)) {
      return { granted_nano: grantedNano, lines, refusal: undefined };
    }
    const [short] = budgets
      .filter(({ line }) => line.available_nano < Math.max(1, neededNano))
      .sort((a, b) => a.line.available_nano + a.elsewhere - b.line.available_nano - b.elsewhere);
    const { budget, spent_nano, resets_at } = short!.line;
    return {
      granted_nano: 0,
      lines,
      refusal: budgetRefusal({ budget, spent_nano, needed_nano: neededNano, resets_at, now }),
    };
  }

  #momentOf({ at }: HoldRequest): number {
    const now = this.#options.now();
    return at !== undefined && Math.abs(at - now) <= limits.admission_clock_ms_max ? at : now;
  }

  /** See `Recorder.reserve`. */
  reserve(request: HoldRequest, current: Hold | undefined): Hold | Promise<Hold> {
    const hold = current ?? { id: request.id, lines: [], granted_nano: 0 };
    const lines = this.#linesOf(request, hold);
    const most = maxGrant(request, lines);
    if (request.full_nano === 0 || lines.length === 0 || this.#available(lines) >= most) {
      this.#take(hold, lines, request, most);
      return hold;
    }
    const refused = this.#rememberedRefusal(request, lines);
    if (refused) throw refused;
    const storeMsMax = Math.min(
      limits.store_read_ms_max,
      request.store_wait?.remainingMs() ?? Number.POSITIVE_INFINITY,
    );
    if (storeMsMax === 0 || this.#options.isStoreAway()) {
      // The store cannot add anything: what this node has must suffice.
      const granted = Math.min(most, this.#available(lines));
      if (this.#draining || granted < request.least_nano || granted <= 0) throw storeRefusal();
      this.#take(hold, lines, request, granted);
      return hold;
    }
    if (this.#draining) throw storeRefusal();
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

  /** See `Recorder.reserveNow`. */
  reserveNow(request: HoldRequest, hold: Hold): boolean {
    const lines = this.#linesOf(request, hold);
    const most = maxGrant(request, lines);
    if (this.#draining || this.#available(lines) < most) {
      for (const line of lines) {
        const lacking = most - roomOf(line);
        if (lacking > 0) this.#requestGrowth(line.lease, lacking);
      }
      return false;
    }
    this.#take(hold, lines, request, most);
    return true;
  }

  /** The lines that an attempt counts against: those of the hold, and new ones, which are added to the hold when money is taken. */
  #linesOf(request: HoldRequest, hold: Hold): HoldLine[] {
    let at: number | undefined;
    const lines: HoldLine[] = [];
    for (const budget of countedIn(request)) {
      let known: HoldLine | undefined;
      for (const line of hold.lines) if (line.budget.id === budget.id) known = line;
      if (known !== undefined) {
        this.book.leaseOf(known);
        lines.push(known);
        continue;
      }
      at ??= this.#momentOf(request);
      const start = this.#startOf(budget.reset_interval, at);
      const lease = this.book.of(budget.id, start);
      lease.interval = budget.reset_interval;
      lines.push({ budget, window_start: start, lease, amount: 0, share: 0, granted: 0 });
    }
    return lines;
  }

  /** See `Recorder.extend`. */
  extend(hold: Hold, grantedNano: number): boolean {
    const more = grantedNano - hold.granted_nano;
    if (more <= 0) return true;
    const growing = hold.lines
      .filter((line) => line.granted > 0)
      .map((line) => ({ line, lease: this.book.leaseOf(line) }));
    const lacking = growing.filter(({ lease }) => freeOf(lease) < more);
    if (lacking.length > 0) {
      for (const { lease } of lacking) this.#requestGrowth(lease, more - freeOf(lease));
      return false;
    }
    const now = this.#options.monotonic();
    for (const { line, lease } of growing) {
      lease.held += more;
      line.amount += more;
      line.granted += more;
      this.book.recordUse(lease, more, now);
    }
    hold.granted_nano = grantedNano;
    return true;
  }

  /** Requests money with the next batch, so that a later try may succeed; at most once in `refusal_ms` for each lease. */
  #requestGrowth(lease: Lease, amount: number): void {
    const now = this.#options.monotonic();
    if (now - lease.growth_requested_at < limits.refusal_ms) return;
    lease.growth_requested_at = now;
    this.book.lack(lease, amount);
    this.#options.onNeed();
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
    if (!this.#open) return [...requests.values()];
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
      interval !== undefined && this.#startOf(interval, now) === window_start;
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
      waiter.reject(waiter.isAnswered ? this.#refusal(waiter.request, waiter.lines) : storeRefusal());
    }
    if (this.#abandoned().length > 0) this.#options.onNeed();
  }

  /** Refuses all further requests; everything idle is returned. */
  drain(): void {
    this.#draining = true;
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

  #startOf(interval: BudgetInterval, now: number): string {
    if (interval === 'never') return '';
    const known = this.#starts.get(interval);
    if (known !== undefined && now < known.until && now >= known.until - DAY_MS) return known.start;
    const start = windowStart(interval, now);
    // Valid until the end of the day, and only if the clock was not set back by more than a day.
    this.#starts.set(interval, { start, until: windowEnd('daily', now) ?? 0 });
    return start;
  }

  /** The most that this node can grant an attempt, on top of what earlier ones of the request may have cost; -1 before `open`. */
  #available(lines: readonly HoldLine[]): number {
    if (!this.#open) return -1;
    let available = Number.POSITIVE_INFINITY;
    for (const line of lines) available = Math.min(available, roomOf(line));
    return available;
  }

  /** Reserves `granted` in every line. Throws, and takes nothing, if a lease does not have it. */
  #take(hold: Hold, lines: HoldLine[], { mode }: HoldRequest, granted: number): void {
    if (granted > 0 && !hasRoom(lines, granted)) throw overGranted(hold, lines, granted);
    hold.granted_nano = granted;
    if (mode !== undefined) hold.mode = mode;
    for (const line of hold.lines) line.granted = 0;
    const now = this.#options.monotonic();
    for (const line of lines) {
      line.granted = granted;
      const more = Math.max(0, line.share + granted - line.amount);
      line.amount += more;
      line.lease.held += more;
      this.book.recordUse(line.lease, granted, now);
    }
    if (hold.lines.length === 0) hold.lines = lines;
    else for (const line of lines) if (!hold.lines.includes(line)) hold.lines.push(line);
  }

  /** Grants a waiting request `granted`. */
  #grant({ hold, lines, request, resolve, reject }: Waiter, granted: number): void {
    try {
      this.#take(hold, lines, request, granted);
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
    for (const lease of this.#draining ? this.book.all : this.book.returnable) {
      const idle = freeOf(lease);
      if (!(lease.wanted || this.#draining || this.book.isIdle(lease))) {
        this.book.retain(lease);
        continue;
      }
      if (idle <= 0) continue;
      // If a request here waits for more of it, it is not idle.
      if (awaited.has(lease) && !(lease.wanted || this.#draining)) continue;
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
    if (this.#draining) return;
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
      if (this.#available(lines) >= most) {
        this.#grant(waiter, most);
      } else if (!wasRequested || !this.#isDecided(waiter)) {
        waiting.push(waiter);
      } else if (!this.#takeLess(waiter)) {
        const refusal = this.#refusal(request, lines);
        this.#rememberRefusal(request, waiter.hold, lines);
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
    const granted = Math.min(maxGrant(request, lines), this.#available(lines));
    if (granted < request.least_nano || granted <= 0) return false;
    this.#grant(waiter, granted);
    return true;
  }

  /** The budget that a refusal names: of those that lack something here, the one of which least is left on all nodes. */
  #shortest(lines: readonly HoldLine[], needed: number): HoldLine {
    const lacking = lines.filter((line) => roomOf(line) < needed);
    return (lacking.length === 0 ? lines : lacking).reduce((least, line) =>
      reachOf(line) < reachOf(least) ? line : least,
    );
  }

  #refusal(request: HoldRequest, lines: readonly HoldLine[]): GatewayError {
    const { budget, lease, share } = this.#shortest(lines, request.least_nano);
    const now = this.#options.now();
    return budgetRefusal({
      budget,
      spent_nano: lease.spent,
      needed_nano: request.least_nano + share,
      resets_at: windowEnd(budget.reset_interval, now),
      now,
    });
  }

  #rememberRefusal(request: HoldRequest, hold: Hold, lines: readonly HoldLine[]): void {
    const shortest = this.#shortest(lines, request.least_nano);
    if (hold.lines.includes(shortest)) return;
    const { budget, lease } = shortest;
    lease.refused_limit = budget.limit_nano;
    lease.refused_until = this.#options.monotonic() + limits.refusal_ms;
    lease.refused_need = request.least_nano;
  }

  #rememberedRefusal(request: HoldRequest, lines: readonly HoldLine[]): GatewayError | undefined {
    const now = this.#options.monotonic();
    const refused = lines.find((line) => {
      const { budget, lease } = line;
      if (now >= lease.refused_until || budget.limit_nano !== lease.refused_limit) return false;
      return request.least_nano >= lease.refused_need && roomOf(line) < request.least_nano;
    });
    return refused && this.#refusal(request, lines);
  }
}
