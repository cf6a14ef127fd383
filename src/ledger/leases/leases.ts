import { brokenRule, type GatewayError } from '../../errors.ts';
import { limits } from '../../limits.ts';
import { type Budget, type BudgetInterval, DAY_MS, windowEnd, windowStart } from '../../schemas/budget.ts';
import { budgetRefusal, storeRefusal } from '../refusal.ts';
import type { LeaseRow, Settle, Watched, WindowAsk, WindowState, WindowSums } from '../settle.ts';
import type { Ask, Hold, HoldLine, Lease, Preview } from './hold.ts';
import { freeOf, LeaseBook } from './lease-book.ts';

/** A request that this node has not the money for. */
interface Waiter {
  ask: Ask;
  hold: Hold;
  lines: HoldLine[];
  /** Until when it waits for money of other nodes, and until when for the store's first answer. */
  deadline: number;
  store_deadline: number;
  /** The batch that asked for it; 0: none yet. */
  asked_in: number;
  /** A batch that asked for it was answered. */
  is_heard: boolean;
  resolve: (hold: Hold) => void;
  reject: (error: GatewayError) => void;
}

export interface LeasesOptions {
  /** The store's clock, as far as this node knows it: milliseconds since 1970. */
  now(): number;
  monotonic(): number;
  /** Told that something must be asked of the store, now. */
  onNeed(): void;
  /** The store is known not to answer: nobody waits for it. */
  isStoreAway(): boolean;
}

/** More than any limit, so asking for more changes nothing; the store's integers end not far above. */
const NANO_MAX = limits.usd_max * 1e9;

/** The budgets that an attempt counts against. */
function countedIn({ budgets, is_byok }: Ask): readonly Budget[] {
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

/** What the next attempt of a request could be granted of one budget. */
function roomOf({ lease, amount, share }: HoldLine): number {
  return freeOf(lease) + (amount - share);
}

/** What the next attempt could be granted of one budget if everything idle came here, as far as this node knows. */
function reachOf(wanted: HoldLine): number {
  const { elsewhere = 0, store_free } = wanted.lease;
  return roomOf(wanted) + Math.max(0, store_free) + elsewhere;
}

/** What is left of one budget for the next attempt, wherever it is; all that was not spent, as long as the store has not said more. */
function leftOf(wanted: HoldLine): number {
  const { budget, lease } = wanted;
  if (lease.elsewhere !== undefined) return reachOf(wanted);
  return Math.max(roomOf(wanted), budget.limit_nano - lease.spent);
}

/** The most that an attempt is granted where so much is left. */
function mostOf({ full_nano, least_nano, share }: Ask, left: number): number {
  if (share === undefined) return full_nano;
  const { part, fixed_nano } = share;
  return Math.min(full_nano, Math.max(least_nano, fixed_nano + Math.floor((left - fixed_nano) * part)));
}

/** The same in all the budgets that it counts against. */
function mostIn(ask: Ask, lines: readonly HoldLine[]): number {
  let most = ask.full_nano;
  if (ask.share !== undefined) for (const wanted of lines) most = Math.min(most, mostOf(ask, leftOf(wanted)));
  return most;
}

/**
 * The money that this node may spend without asking: one lease a window, holds against it, and requests that wait for
 * more. One event loop owns it, so that a request gets what it needs of all its budgets or of none. Time never frees
 * money here: a lease shrinks when a settle is acknowledged, or when what is idle is returned in a numbered batch.
 */
export class Leases {
  readonly #options: LeasesOptions;
  /** The sums: who has to do with holds alone changes them there. */
  readonly book: LeaseBook;
  #waiters: Waiter[] = [];
  #nodes = 1;
  /** What the last batch may have claimed. */
  #asking: Lease[] = [];
  #draining = false;
  /** Until the replay has queued everything, nothing is given and nothing returned. */
  #open = false;
  readonly #starts = new Map<BudgetInterval, { start: string; until: number }>();

  constructor(options: LeasesOptions) {
    this.#options = options;
    this.book = new LeaseBook(options.monotonic);
  }

  get waiting(): number {
    return this.#waiters.length;
  }

  /** The node is registered: what the store says that it holds, and nothing else. */
  registered(rows: readonly LeaseRow[]): void {
    this.book.registered(rows);
    for (const waiter of this.#waiters) waiter.asked_in = 0;
    if (this.#waiters.length > 0) this.#options.onNeed();
  }

  /** The replay is done. */
  open(): void {
    this.#open = true;
  }

  /** The windows that an attempt of a request with nothing set aside would count in. */
  windowsOf(ask: Ask): { budget_id: string; window_start: string }[] {
    const at = this.#momentOf(ask);
    return countedIn(ask).map(({ id, reset_interval }) => ({
      budget_id: id,
      window_start: this.#startOf(reset_interval, at),
    }));
  }

  /** See `Recorder.preview`; `sums` are the store's of `windowsOf`. */
  preview(ask: Ask, sums: readonly WindowSums[]): Preview {
    const now = this.#options.now();
    const at = this.#momentOf(ask);
    const found = countedIn(ask).map((budget) => {
      const window_start = this.#startOf(budget.reset_interval, at);
      const isOf = (one: WindowSums) => one.budget_id === budget.id && one.window_start === window_start;
      const { spent, leased } = sums.find(isOf) ?? { spent: 0, leased: 0 };
      const lease = this.book.find(budget.id, window_start);
      const { stored, pending } = lease ?? { stored: 0, pending: 0 };
      const elsewhere = Math.max(0, leased - stored);
      const own = lease === undefined ? 0 : freeOf(lease);
      const available_nano = Math.max(0, own + Math.max(0, budget.limit_nano - spent - leased));
      const resets_at = windowEnd(budget.reset_interval, now);
      return { line: { budget, window_start, spent_nano: spent + pending, available_nano, resets_at }, elsewhere };
    });
    const lines = found.map(({ line }) => line);
    const { full_nano, least_nano: needed_nano } = ask;
    const most_nano = found.map(({ line, elsewhere }) => mostOf(ask, line.available_nano + elsewhere));
    const granted_nano = Math.min(full_nano, ...most_nano, ...lines.map(({ available_nano }) => available_nano));
    if (full_nano === 0 || (granted_nano >= needed_nano && granted_nano > 0)) {
      return { granted_nano, lines, refusal: undefined };
    }
    const [short] = found
      .filter(({ line }) => line.available_nano < Math.max(1, needed_nano))
      .sort((a, b) => a.line.available_nano + a.elsewhere - b.line.available_nano - b.elsewhere);
    const { budget, spent_nano, resets_at } = short!.line;
    return { granted_nano: 0, lines, refusal: budgetRefusal({ budget, spent_nano, needed_nano, resets_at, now }) };
  }

  #momentOf({ at }: Ask): number {
    const now = this.#options.now();
    return at !== undefined && Math.abs(at - now) <= limits.admission_clock_ms_max ? at : now;
  }

  /** See `Recorder.reserve`. */
  reserve(ask: Ask, given: Hold | undefined): Hold | Promise<Hold> {
    const hold = given ?? { id: ask.id, lines: [], granted_nano: 0 };
    const lines = this.#linesOf(ask, hold);
    const most = mostIn(ask, lines);
    if (ask.full_nano === 0 || lines.length === 0 || this.#available(lines) >= most) {
      this.#take(hold, lines, ask, most);
      return hold;
    }
    const refused = this.#remembered(ask, lines);
    if (refused) throw refused;
    const store_ms_max = Math.min(limits.store_read_ms_max, ask.store_wait?.left_ms() ?? Number.POSITIVE_INFINITY);
    if (store_ms_max === 0 || this.#options.isStoreAway()) {
      // Nobody can be asked for the rest: what there is does, or nothing will.
      const granted = Math.min(most, this.#available(lines));
      if (this.#draining || granted < ask.least_nano || granted <= 0) throw storeRefusal();
      this.#take(hold, lines, ask, granted);
      return hold;
    }
    if (this.#draining) throw storeRefusal();
    if (this.#waiters.length >= limits.admissions_waiting_max) throw storeRefusal();
    const { promise, resolve, reject } = Promise.withResolvers<Hold>();
    const now = this.#options.monotonic();
    const deadline = now + limits.recall_wait_ms;
    const store_deadline = now + store_ms_max;
    const waiter = { ask, hold, lines, deadline, store_deadline, asked_in: 0, is_heard: false, resolve, reject };
    this.#waiters.push(waiter);
    ask.store_wait?.begin();
    const heard = () => this.#heard(waiter);
    promise.then(heard, heard);
    this.#options.onNeed();
    return promise;
  }

  /** See `Recorder.reserveNow`. */
  reserveNow(ask: Ask, hold: Hold): boolean {
    const lines = this.#linesOf(ask, hold);
    const most = mostIn(ask, lines);
    if (this.#draining || this.#available(lines) < most) {
      for (const wanted of lines) {
        const lacking = most - roomOf(wanted);
        if (lacking > 0) this.#wantGrowth(wanted.lease, lacking);
      }
      return false;
    }
    this.#take(hold, lines, ask, most);
    return true;
  }

  /** What an attempt counts against: the lines that its request holds already, and new ones, which are the hold's once they are taken. */
  #linesOf(ask: Ask, hold: Hold): HoldLine[] {
    let at: number | undefined;
    const lines: HoldLine[] = [];
    for (const budget of countedIn(ask)) {
      let known: HoldLine | undefined;
      for (const line of hold.lines) if (line.budget.id === budget.id) known = line;
      if (known !== undefined) {
        this.book.leaseOf(known);
        lines.push(known);
        continue;
      }
      at ??= this.#momentOf(ask);
      const window_start = this.#startOf(budget.reset_interval, at);
      const lease = this.book.of(budget.id, window_start);
      lines.push({ budget, window_start, lease, amount: 0, share: 0, granted: 0 });
    }
    return lines;
  }

  /** See `Recorder.extend`. */
  extend(hold: Hold, granted_nano: number): boolean {
    const more = granted_nano - hold.granted_nano;
    if (more <= 0) return true;
    const growing = hold.lines
      .filter((line) => line.granted > 0)
      .map((line) => ({ line, lease: this.book.leaseOf(line) }));
    const lacking = growing.filter(({ lease }) => freeOf(lease) < more);
    if (lacking.length > 0) {
      for (const { lease } of lacking) this.#wantGrowth(lease, more - freeOf(lease));
      return false;
    }
    const now = this.#options.monotonic();
    for (const { line, lease } of growing) {
      lease.held += more;
      line.amount += more;
      line.granted += more;
      this.book.used(lease, more, now);
    }
    hold.granted_nano = granted_nano;
    return true;
  }

  /** The next batch asks for it, so that a later try may succeed; not again and again where the store has nothing. */
  #wantGrowth(lease: Lease, amount: number): void {
    const now = this.#options.monotonic();
    if (now - lease.growth_asked_at < limits.refusal_ms) return;
    lease.growth_asked_at = now;
    lease.growth = amount;
    this.#options.onNeed();
  }

  /** What the batch of this number says to the windows; frozen from here on. */
  freeze(settles: readonly Settle[], number: number, is_last: boolean): WindowAsk[] {
    const asks = new Map<Lease, WindowAsk>();
    const askOf = (lease: Lease): WindowAsk => {
      let ask = asks.get(lease);
      if (ask === undefined) {
        const { budget_id, window_start, is_new, stored } = lease;
        ask = {
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
        asks.set(lease, ask);
      }
      return ask;
    };
    for (const { charges } of settles) {
      for (const charge of charges) askOf(this.book.of(charge.budget_id, charge.window_start));
    }
    if (!this.#open) return [...asks.values()];
    // Money that an outcome freed is returned only with it or after it: else a replay could charge what is gone.
    if (is_last) this.#return(askOf);
    this.#askForWaiters(askOf, number);
    this.#askAhead(askOf);
    for (const lease of this.#abandoned()) askOf(lease).withdraws = true;
    this.#asking = [...asks].flatMap(([lease, { need }]) => (need > 0 ? [lease] : []));
    return [...asks.values()];
  }

  /** The store has applied a batch: its word about each window, and what of the settles is no longer pending. */
  applied(settles: readonly Settle[], number: number, windows: readonly WindowState[]): void {
    this.book.acknowledge(settles);
    let wanted = false;
    for (const state of windows) this.book.told(state);
    this.#serve(number);
    for (const state of windows) {
      if (state.claimed && freeOf(this.book.of(state.budget_id, state.window_start)) > 0) wanted = true;
    }
    if (wanted || this.#abandoned().length > 0) this.#options.onNeed();
    this.book.forget(() => this.#awaited());
  }

  /** The store had applied a batch whose answer was lost: leases are known again, and nothing else. */
  alreadyApplied(settles: readonly Settle[], rows: readonly LeaseRow[]): void {
    this.book.acknowledge(settles);
    // The answer would have told: what is not so is withdrawn in vain.
    const claiming = this.#awaited();
    for (const lease of this.#asking) claiming.add(lease);
    for (const lease of this.book.all) if (lease.claims) claiming.add(lease);
    this.registered(rows);
    for (const lease of claiming) lease.claims = true;
    this.#serve(0);
    if (this.#abandoned().length > 0) this.#options.onNeed();
  }

  /** What the store told between batches. True when something is to be returned now. */
  watched({ wanted, nodes }: Watched): boolean {
    this.#nodes = Math.max(1, nodes);
    let returns = false;
    for (const { budget_id, window_start } of wanted) {
      const lease = this.book.find(budget_id, window_start);
      if (lease === undefined) continue;
      lease.wanted = true;
      if (freeOf(lease) > 0) returns = true;
    }
    for (const lease of this.book.all) if (this.book.isIdle(lease) && freeOf(lease) > 0) returns = true;
    return returns || this.#abandoned().length > 0;
  }

  /** Answers who has waited as long as one may. */
  expire(): void {
    const now = this.#options.monotonic();
    // A store that is slow to answer has not said no.
    const isLate = ({ deadline, store_deadline, is_heard }: Waiter) => (is_heard ? deadline : store_deadline) <= now;
    const late = this.#waiters.filter(isLate);
    if (late.length === 0) return;
    this.#waiters = this.#waiters.filter((waiter) => !isLate(waiter));
    for (const waiter of late) {
      if (this.#takeLess(waiter)) continue;
      waiter.reject(waiter.is_heard ? this.#refusal(waiter.ask, waiter.lines) : storeRefusal());
    }
    if (this.#abandoned().length > 0) this.#options.onNeed();
  }

  /** No more admissions; everything idle goes back. */
  drain(): void {
    this.#draining = true;
    for (const { reject } of this.#waiters.splice(0)) reject(storeRefusal());
  }

  /** For the store: a lease takes at most one part in so many of what is free, beyond what is wanted. */
  get divisor(): number {
    return 2 * this.#nodes;
  }

  /** What requests wait for. */
  #awaited(): Set<Lease> {
    return new Set(this.#waiters.flatMap(({ lines }) => lines.map(({ lease }) => lease)));
  }

  /** What others still give back for this node, though nobody waits for it here any more. */
  #abandoned(): Lease[] {
    const claiming: Lease[] = [];
    for (const lease of this.book.all) if (lease.claims) claiming.push(lease);
    if (claiming.length === 0) return claiming;
    const awaited = this.#awaited();
    const now = this.#options.monotonic();
    return claiming.filter((lease) => !awaited.has(lease) && now - lease.growth_asked_at > limits.recall_wait_ms);
  }

  #startOf(interval: BudgetInterval, now: number): string {
    if (interval === 'never') return '';
    const known = this.#starts.get(interval);
    if (known !== undefined && now < known.until && now >= known.until - DAY_MS) return known.start;
    const start = windowStart(interval, now);
    // Known until the end of the day: a clock that is set back by more is noticed.
    this.#starts.set(interval, { start, until: windowEnd('daily', now) ?? 0 });
    return start;
  }

  /** What an attempt could cost at most, on top of what earlier ones of the request may have cost. */
  #available(lines: readonly HoldLine[]): number {
    if (!this.#open) return -1;
    let available = Number.POSITIVE_INFINITY;
    for (const wanted of lines) available = Math.min(available, roomOf(wanted));
    return available;
  }

  /** Throws, and takes nothing, where a lease does not have what is granted of it. */
  #take(hold: Hold, lines: HoldLine[], { mode }: Ask, granted: number): void {
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
      this.book.used(line.lease, granted, now);
    }
    if (hold.lines.length === 0) hold.lines = lines;
    else for (const line of lines) if (!hold.lines.includes(line)) hold.lines.push(line);
  }

  /** Grants a waiting request so much. */
  #give({ hold, lines, ask, resolve, reject }: Waiter, granted: number): void {
    try {
      this.#take(hold, lines, ask, granted);
      resolve(hold);
    } catch (error) {
      reject(error as GatewayError);
    }
  }

  /** Who waits here for more of what others wish for takes what there is, where that is enough, before it goes back. */
  #takeBeforeReturn(): void {
    const isLeaving = ({ lease }: HoldLine) => lease.wanted && freeOf(lease) > 0;
    this.#waiters = this.#waiters.filter(
      (waiter) => !(waiter.is_heard && waiter.lines.some(isLeaving) && this.#takeLess(waiter)),
    );
  }

  #return(askOf: (lease: Lease) => WindowAsk): void {
    this.#takeBeforeReturn();
    const now = this.#options.monotonic();
    const awaited = this.#awaited();
    for (const lease of this.book.all) {
      const idle = freeOf(lease);
      if (idle <= 0 || !(lease.wanted || this.#draining || this.book.isIdle(lease))) continue;
      // What somebody here waits for the rest of is not idle.
      if (awaited.has(lease) && !(lease.wanted || this.#draining)) continue;
      if (lease.wanted) lease.yields_until = now + limits.claim_yield_ms;
      lease.wanted = false;
      lease.returning = idle;
      askOf(lease).returned = idle;
    }
  }

  #askForWaiters(askOf: (lease: Lease) => WindowAsk, number: number): void {
    const now = this.#options.monotonic();
    const wants = new Map<Lease, { most: number; least: number; largest: number }>();
    for (const waiter of this.#waiters) {
      if (waiter.lines.some(({ lease }) => now < lease.yields_until)) continue;
      waiter.asked_in = number;
      const { ask, lines } = waiter;
      const most = mostIn(ask, lines);
      for (const { lease, amount, share } of lines) {
        const kept = share - amount;
        // What it holds already is enough here.
        if (most + kept <= 0) continue;
        const want = wants.get(lease) ?? { most: 0, least: Number.POSITIVE_INFINITY, largest: 0 };
        want.most += most + kept;
        want.least = Math.min(want.least, ask.least_nano + kept);
        want.largest = Math.max(want.largest, most);
        wants.set(lease, want);
      }
    }
    for (const [lease, { most, least, largest }] of wants) {
      const free = freeOf(lease);
      if (most <= free) continue;
      const ask = askOf(lease);
      ask.want = Math.min(most - free, NANO_MAX);
      ask.need = Math.min(ask.want, Math.max(1, least - free));
      ask.slack = Math.min(Math.max(largest, this.book.slackOf(lease)), NANO_MAX);
    }
  }

  /** Fills leases up before they are empty, in batches that go anyway, where the store has plenty. */
  #askAhead(askOf: (lease: Lease) => WindowAsk): void {
    if (this.#draining) return;
    const now = this.#options.monotonic();
    for (const lease of this.book.all) {
      const { growth } = lease;
      if (lease.wanted || now < lease.yields_until) continue;
      if (growth === 0 && (lease.store_free <= 0 || this.book.isIdle(lease))) continue;
      const lacking = Math.max(growth, this.book.slackOf(lease) - freeOf(lease) - lease.held);
      if (lacking <= 0) continue;
      const ask = askOf(lease);
      if (ask.want > 0 || ask.returned > 0) continue;
      lease.growth = 0;
      ask.want = Math.max(1, growth);
      ask.need = growth === 0 ? 0 : 1;
      ask.slack = lacking;
    }
  }

  /** Gives what there is to who waits, first come, first served; refuses whom the answer to batch `number` leaves no hope. */
  #serve(number: number): void {
    const waiting: Waiter[] = [];
    for (const waiter of this.#waiters) {
      const { ask, lines } = waiter;
      const was_asked = waiter.asked_in !== 0 && waiter.asked_in === number;
      if (was_asked) this.#heard(waiter);
      const most = mostIn(ask, lines);
      if (this.#available(lines) >= most) {
        this.#give(waiter, most);
      } else if (!was_asked || !this.#isDecided(waiter)) {
        waiting.push(waiter);
      } else if (!this.#takeLess(waiter)) {
        const refusal = this.#refusal(ask, lines);
        this.#remember(ask, waiter.hold, lines);
        waiter.reject(refusal);
      }
    }
    this.#waiters = waiting;
  }

  /** From here on it waits for other nodes alone, or not any longer. */
  #heard(waiter: Waiter): void {
    if (waiter.is_heard) return;
    waiter.is_heard = true;
    waiter.ask.store_wait?.end();
  }

  /** Whether waiting cannot help: what a budget lacks is not at other nodes, or is more than they have. */
  #isDecided({ ask, lines }: Waiter): boolean {
    let hope = false;
    const most = mostIn(ask, lines);
    for (const wanted of lines) {
      if (roomOf(wanted) >= most) continue;
      const { elsewhere, store_free } = wanted.lease;
      // It had enough when another budget was asked for, and the store has not told of it.
      if (elsewhere === undefined) hope = true;
      else if (reachOf(wanted) < ask.least_nano) return true;
      else if (elsewhere > 0 || store_free > 0) hope = true;
    }
    return !hope;
  }

  /** Grants less than was asked for, where that is enough to be worth sending. */
  #takeLess(waiter: Waiter): boolean {
    const { ask, lines } = waiter;
    const granted = Math.min(mostIn(ask, lines), this.#available(lines));
    if (granted < ask.least_nano || granted <= 0) return false;
    this.#give(waiter, granted);
    return true;
  }

  /** The budget that is to blame: of those that lack something here, the one of which least is left anywhere. */
  #shortest(lines: readonly HoldLine[], needed: number): HoldLine {
    const lacking = lines.filter((wanted) => roomOf(wanted) < needed);
    return (lacking.length === 0 ? lines : lacking).reduce((least, one) =>
      reachOf(one) < reachOf(least) ? one : least,
    );
  }

  #refusal(ask: Ask, lines: readonly HoldLine[]): GatewayError {
    const { budget, lease, share } = this.#shortest(lines, ask.least_nano);
    const now = this.#options.now();
    return budgetRefusal({
      budget,
      spent_nano: lease.spent,
      needed_nano: ask.least_nano + share,
      resets_at: windowEnd(budget.reset_interval, now),
      now,
    });
  }

  #remember(ask: Ask, hold: Hold, lines: readonly HoldLine[]): void {
    const shortest = this.#shortest(lines, ask.least_nano);
    if (hold.lines.includes(shortest)) return;
    const { budget, lease } = shortest;
    lease.refused_limit = budget.limit_nano;
    lease.refused_until = this.#options.monotonic() + limits.refusal_ms;
    lease.refused_need = ask.least_nano;
  }

  #remembered(ask: Ask, lines: readonly HoldLine[]): GatewayError | undefined {
    const now = this.#options.monotonic();
    const known = lines.find((wanted) => {
      const { budget, lease } = wanted;
      if (now >= lease.refused_until || budget.limit_nano !== lease.refused_limit) return false;
      return ask.least_nano >= lease.refused_need && roomOf(wanted) < ask.least_nano;
    });
    return known && this.#refusal(ask, lines);
  }
}
