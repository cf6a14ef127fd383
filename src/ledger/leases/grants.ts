import { brokenRule, type GatewayError } from '../../errors.ts';
import { limits } from '../../limits.ts';
import { grown } from '../../schemas/append.ts';
import { type Budget, type BudgetInterval, DAY_MS, windowEnd, windowStart } from '../../schemas/budget.ts';
import { budgetRefusal } from '../refusal.ts';
import type { WindowSums } from '../settle.ts';
import type { Hold, HoldLine, HoldRequest, Lease, Preview } from './hold.ts';
import { freeOf, type LeaseBook } from './lease-book.ts';

export interface GrantsOptions {
  /** The store's clock as this node knows it: milliseconds since 1970. */
  now(): number;
  monotonic(): number;
  /** Called if something must be requested from the store or returned to it now. */
  onNeed(): void;
}

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
export function roomOf({ lease, amount, share }: HoldLine): number {
  return freeOf(lease) + (amount - share);
}

/** The most that one budget allows the next attempt if all idle money was moved here, as far as this node knows. */
export function reachOf(line: HoldLine): number {
  const { elsewhere = 0, store_free } = line.lease;
  return roomOf(line) + Math.max(0, store_free) + elsewhere;
}

/** The rest of one budget for the next attempt, on any node; before the store's first answer, all that is not known to be spent. */
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
export function maxGrant(request: HoldRequest, lines: readonly HoldLine[]): number {
  let most = request.full_nano;
  if (request.share !== undefined) {
    for (const line of lines) most = Math.min(most, maxGrantOf(request, leftOf(line)));
  }
  return most;
}

/**
 * Decides what this node's leases grant calls now: the budgets that an attempt counts against, what these allow, the money that
 * is taken for it, and the refusal if it is too little. Nothing here waits: in `Leases` requests wait for more.
 */
export class Grants {
  /** False until the replay has queued everything: nothing is granted or returned before. */
  isOpen = false;
  /** The node stops: nothing more is granted to requests that would have to wait. */
  isDraining = false;
  readonly #book: LeaseBook;
  readonly #options: GrantsOptions;
  readonly #starts = new Map<BudgetInterval, { start: string; until: number }>();

  constructor(book: LeaseBook, options: GrantsOptions) {
    this.#book = book;
    this.#options = options;
  }

  /** The windows that an attempt of a request without a hold would count in. */
  windowsOf(request: HoldRequest): { budget_id: string; window_start: string }[] {
    const at = this.#momentOf(request);
    return countedIn(request).map(({ id, reset_interval }) => ({
      budget_id: id,
      window_start: this.startOf(reset_interval, at),
    }));
  }

  /** See `Recorder.preview`; `sums` are the store's for `windowsOf`. */
  preview(request: HoldRequest, sums: readonly WindowSums[]): Preview {
    const now = this.#options.now();
    const at = this.#momentOf(request);
    const budgets = countedIn(request).map((budget) => {
      const start = this.startOf(budget.reset_interval, at);
      const isOf = (sum: WindowSums) => sum.budget_id === budget.id && sum.window_start === start;
      const { spent, leased } = sums.find(isOf) ?? { spent: 0, leased: 0 };
      const lease = this.#book.find(budget.id, start);
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

  /** See `Recorder.reserveNow`. */
  reserveNow(request: HoldRequest, hold: Hold): boolean {
    const lines = this.linesOf(request, hold);
    const most = maxGrant(request, lines);
    if (this.isDraining || this.available(lines) < most) {
      for (const line of lines) {
        const lacking = most - roomOf(line);
        if (lacking > 0) this.#requestGrowth(line.lease, lacking);
      }
      return false;
    }
    this.take(hold, lines, request, most);
    return true;
  }

  /** The lines that an attempt counts against: those of the hold, and new ones, which are added to the hold when money is taken. */
  linesOf(request: HoldRequest, hold: Hold): HoldLine[] {
    let at: number | undefined;
    let lines: HoldLine[] = [];
    for (const budget of countedIn(request)) {
      let known: HoldLine | undefined;
      for (const line of hold.lines) if (line.budget.id === budget.id) known = line;
      if (known !== undefined) {
        this.#book.leaseOf(known);
        lines = grown(lines, known);
        continue;
      }
      at ??= this.#momentOf(request);
      const start = this.startOf(budget.reset_interval, at);
      const lease = this.#book.of(budget.id, start);
      lease.interval = budget.reset_interval;
      lines = grown(lines, { budget, window_start: start, lease, amount: 0, share: 0, granted: 0 });
    }
    return lines;
  }

  /** See `Recorder.extend`. */
  extend(hold: Hold, grantedNano: number): boolean {
    const more = grantedNano - hold.granted_nano;
    if (more <= 0) return true;
    const growing = hold.lines
      .filter((line) => line.granted > 0)
      .map((line) => ({ line, lease: this.#book.leaseOf(line) }));
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
      this.#book.recordUse(lease, more, now);
    }
    hold.granted_nano = grantedNano;
    return true;
  }

  /** Requests money with the next batch, so that a later try may succeed; at most once in `refusal_ms` for each lease. */
  #requestGrowth(lease: Lease, amount: number): void {
    const now = this.#options.monotonic();
    if (now - lease.growth_requested_at < limits.refusal_ms) return;
    lease.growth_requested_at = now;
    this.#book.lack(lease, amount);
    this.#options.onNeed();
  }

  /** The beginning of the window of this time; an empty text for a budget that never resets. */
  startOf(interval: BudgetInterval, now: number): string {
    if (interval === 'never') return '';
    const known = this.#starts.get(interval);
    if (known !== undefined && now < known.until && now >= known.until - DAY_MS) return known.start;
    const start = windowStart(interval, now);
    // Valid until the end of the day, and only if the clock was not set back by more than a day.
    this.#starts.set(interval, { start, until: windowEnd('daily', now) ?? 0 });
    return start;
  }

  /** The most that this node can grant an attempt, on top of what earlier ones of the request may have cost; -1 before `open`. */
  available(lines: readonly HoldLine[]): number {
    if (!this.isOpen) return -1;
    let available = Number.POSITIVE_INFINITY;
    for (const line of lines) available = Math.min(available, roomOf(line));
    return available;
  }

  /** Reserves `granted` in every line. Throws, and takes nothing, if a lease does not have it. */
  take(hold: Hold, lines: HoldLine[], { mode }: HoldRequest, granted: number): void {
    if (granted > 0 && !hasRoom(lines, granted)) throw overGranted(hold, lines, granted);
    hold.granted_nano = granted;
    if (mode !== undefined) hold.mode = mode;
    // By index: there is an object for each turn of these loops otherwise.
    for (let at = 0; at < hold.lines.length; at += 1) hold.lines[at]!.granted = 0;
    const now = this.#options.monotonic();
    for (let at = 0; at < lines.length; at += 1) {
      const line = lines[at]!;
      line.granted = granted;
      const more = Math.max(0, line.share + granted - line.amount);
      line.amount += more;
      line.lease.held += more;
      this.#book.recordUse(line.lease, granted, now);
    }
    if (hold.lines.length === 0) hold.lines = lines;
    else for (const line of lines) if (!hold.lines.includes(line)) hold.lines.push(line);
  }

  /** The budget that a refusal names: of those that lack something here, the one of which least is left on all nodes. */
  #shortest(lines: readonly HoldLine[], needed: number): HoldLine {
    const lacking = lines.filter((line) => roomOf(line) < needed);
    return (lacking.length === 0 ? lines : lacking).reduce((least, line) =>
      reachOf(line) < reachOf(least) ? line : least,
    );
  }

  /** The refusal of a request for which there is too little. */
  refusal(request: HoldRequest, lines: readonly HoldLine[]): GatewayError {
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

  /** Remembers that the store has refused a request, so that those like it are refused at once for a short time. */
  rememberRefusal(request: HoldRequest, hold: Hold, lines: readonly HoldLine[]): void {
    const shortest = this.#shortest(lines, request.least_nano);
    if (hold.lines.includes(shortest)) return;
    const { budget, lease } = shortest;
    lease.refused_limit = budget.limit_nano;
    lease.refused_until = this.#options.monotonic() + limits.refusal_ms;
    lease.refused_need = request.least_nano;
  }

  /** The refusal that a request shares with one that was refused just now; undefined if there is none. */
  rememberedRefusal(request: HoldRequest, lines: readonly HoldLine[]): GatewayError | undefined {
    const now = this.#options.monotonic();
    const refused = lines.find((line) => {
      const { budget, lease } = line;
      if (now >= lease.refused_until || budget.limit_nano !== lease.refused_limit) return false;
      return request.least_nano >= lease.refused_need && roomOf(line) < request.least_nano;
    });
    return refused && this.refusal(request, lines);
  }
}
