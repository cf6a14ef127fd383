import type { Hold, HoldRequest } from '../../src/ledger/leases/hold.ts';
import type { SettleAnswer, SettleBatch } from '../../src/ledger/settle.ts';
import type { NodeProcess } from './node-process.ts';
import type { Request } from './requests.ts';
import type { World } from './world.ts';

/** A window as the store has it. */
interface WindowRow {
  budget_id: string;
  window_start: string;
  spent: number;
  leased: number;
  opening: number;
}

/** A node's lease of a window, or, without a node, the spent amount of the window. */
interface Amount {
  node_id: string;
  budget_id: string;
  window_start: string;
  amount: number;
}

/** Unused money that every caller can reach, over time. */
class Available {
  readonly #changes: [at: number, nano: number][] = [];

  note(at: number, nano: number): void {
    const last = this.#changes.at(-1);
    if (last?.[1] === nano) return;
    if (last?.[0] === at) last[1] = nano;
    else this.#changes.push([at, nano]);
  }

  leastSince(since: number): number {
    let least = Number.POSITIVE_INFINITY;
    for (let index = this.#changes.length - 1; index >= 0; index--) {
      const [at, nano] = this.#changes[index] ?? [0, 0];
      least = Math.min(least, nano);
      if (at <= since) return least;
    }
    // Before the first change nothing was known.
    return 0;
  }
}

/** How long money must have been idle to make a refusal for want of it wrong. */
const IDLE_MS = 1_500;

/** Windows as they count: the settled part of a node's lease is spent, before the window's row says so. */
const WINDOWS = `SELECT w.budget_id, w.window_start, w.opening, w.spent + COALESCE(SUM(l.settled), 0) AS spent,
  w.leased - COALESCE(SUM(l.settled), 0) AS leased FROM ledger_windows AS w
  LEFT JOIN ledger_leases AS l ON l.budget_id = w.budget_id AND l.window_start = w.window_start
  GROUP BY w.budget_id, w.window_start, w.opening, w.spent, w.leased`;

const nameOf = (row: { budget_id: string; window_start: string }) => `${row.budget_id} ${row.window_start}`;

/** Checks the invariants after every event and at the end. */
export class Watcher {
  readonly #world: World;
  #windows = new Map<string, WindowRow>();
  #storeChanged = true;
  readonly #sums = new Map<string, number>();
  readonly #available = new Map<string, Available>();
  readonly #sent = new Map<string, string>();
  /** By window: charges without a lease, as intended if the provider overran or an operator had given a lease up. */
  readonly #uncovered = new Map<string, number>();
  readonly #released = new Map<string, number>();
  /** Requests that ended with their process and are charged only their metered part: their charges. */
  readonly #metered = new Map<Request, ReadonlyMap<string, number>>();
  #hasForgotten = false;

  constructor(world: World) {
    this.#world = world;
  }

  storeChanges(): void {
    this.#storeChanged = true;
  }

  released(rows: readonly { budget_id: string; window_start: string; amount: number }[]): void {
    for (const row of rows) this.#released.set(nameOf(row), (this.#released.get(nameOf(row)) ?? 0) + row.amount);
  }

  /** The store is set back: grants that it forgets may be granted again, until its nodes have reported them. */
  forgets(setBack: () => void): void {
    const { database } = this.#world;
    const standing = () => [
      ...database.all<Amount>(`SELECT '' AS node_id, budget_id, window_start, spent AS amount FROM (${WINDOWS})`),
      ...database.all<Amount>('SELECT node_id, budget_id, window_start, amount FROM ledger_leases'),
    ];
    const before = standing();
    setBack();
    const after = new Map(standing().map((row) => [`${row.node_id} ${nameOf(row)}`, row.amount]));
    for (const row of before) {
      const forgotten = row.amount - (after.get(`${row.node_id} ${nameOf(row)}`) ?? 0);
      if (forgotten > 0) this.released([{ ...row, amount: forgotten }]);
    }
    this.#hasForgotten = true;
    // From the current amount on, a sum above a lowered limit must not grow.
    for (const { spent, leased, ...row } of database.all<WindowRow>(WINDOWS))
      this.#sums.set(nameOf(row), spent + leased - (this.#uncovered.get(nameOf(row)) ?? 0));
    this.storeChanges();
  }

  /** A batch is sent: the same number always has the same content. */
  sends({ node, epoch, number }: SettleBatch, text: string): void {
    const name = `${node} ${epoch} ${number}`;
    const before = this.#sent.get(name);
    if (before !== undefined && before !== text) this.#world.fail('frozen', `batch ${name} changed`);
    this.#sent.set(name, text);
  }

  /** A batch arrives at the store: each of its settlements is covered by the node's lease. */
  async applies(batch: SettleBatch, apply: () => Promise<SettleAnswer>): Promise<SettleAnswer> {
    const { database, plan } = this.#world;
    const known = ({ id }: { id: string }) =>
      database.all('SELECT id FROM ledger_generations WHERE id = ?', id).length > 0;
    const ids = new Set(batch.settles.filter(known).map(({ id }) => id));
    const leases = this.#leasesOf(batch.node);
    this.storeChanges();
    const answer = await apply();
    if (answer.is !== 'applied') return answer;
    const covers = new Map<string, number>();
    for (const settle of batch.settles) {
      if (ids.has(settle.id)) continue;
      const request = this.#world.requests.find(({ id }) => id === settle.id);
      const charged = new Map(settle.charges.map((charge) => [nameOf(charge), charge.amount]));
      if (request !== undefined && this.#metered.has(request)) this.#metered.set(request, charged);
      for (const charge of settle.charges) {
        const name = nameOf(charge);
        const over = charge.amount - charge.cover;
        if (over > 0 && !plan.overruns)
          this.#world.fail('I3', `${settle.id} costs ${over} more than it held of ${name}`);
        if (over > 0) this.#uncovered.set(name, (this.#uncovered.get(name) ?? 0) + over);
        covers.set(name, (covers.get(name) ?? 0) + charge.cover);
      }
    }
    for (const window of batch.windows) {
      const name = nameOf(window);
      const lease = leases.get(name) ?? 0;
      if (window.own !== lease)
        this.#world.fail('I3', `${batch.node} thinks ${window.own} is its lease of ${name}: ${lease}`);
      const short = (covers.get(name) ?? 0) + window.returned - lease;
      if (short <= 0) continue;
      const released = this.#released.get(name) ?? 0;
      if (released < short) this.#world.fail('I3', `${batch.node} settles ${short} more than its lease of ${name}`);
      this.#uncovered.set(name, (this.#uncovered.get(name) ?? 0) + short);
    }
    return answer;
  }

  #leasesOf(node: string): Map<string, number> {
    const rows = this.#world.database.all<{ budget_id: string; window_start: string; amount: number }>(
      'SELECT budget_id, window_start, amount FROM ledger_leases WHERE node_id = ?',
      node,
    );
    return new Map(rows.map((row) => [nameOf(row), row.amount]));
  }

  /** Runs after every event. */
  check(label: string): void {
    this.#checkNodes(label);
    const { upstream } = this.#world;
    if (this.#storeChanged) this.#checkStore(label);
    if (this.#storeChanged || upstream.changed) this.#checkExposure(label);
    this.#storeChanged = false;
    upstream.changed = false;
    this.#noteAvailable();
  }

  /** A node reads only the marked windows. */
  #checkMarks(label: string): void {
    const unmarked = this.#world.database.all<WindowRow>(
      `SELECT w.* FROM ledger_windows AS w LEFT JOIN ledger_budgets AS b ON b.id = w.budget_id WHERE w.scarce = 0
        AND w.leased > 0 AND (w.wanted_by <> '' OR b.limit_nano IS NULL OR b.limit_nano - w.spent - w.leased < 8 * w.leased)`,
    );
    for (const row of unmarked) {
      this.#world.fail(
        'M1',
        `${label}: ${nameOf(row)} has ${row.leased} leased, is scarce, and no node would look at it`,
      );
    }
  }

  #checkStore(label: string): void {
    this.#checkMarks(label);
    const { database, budgets } = this.#world;
    const rows = database.all<WindowRow>(WINDOWS);
    this.#windows = new Map(rows.map((row) => [nameOf(row), row]));
    const leased = new Map(
      database
        .all<{ budget_id: string; window_start: string; amount: number }>(
          'SELECT budget_id, window_start, SUM(amount) AS amount FROM ledger_leases GROUP BY budget_id, window_start',
        )
        .map((row) => [nameOf(row), row.amount]),
    );
    for (const [name, row] of this.#windows) {
      if (row.leased < 0 || row.leased !== (leased.get(name) ?? 0)) {
        this.#world.fail('I4', `${label}: ${name} has ${row.leased} leased, its nodes ${leased.get(name) ?? 0}`);
      }
      const sum = row.spent + row.leased;
      const limit = budgets.get(row.budget_id)?.limit_nano ?? 0;
      // Charges without cover may raise the sum; nothing else may while it is above the limit.
      const grown = sum - (this.#uncovered.get(name) ?? 0);
      if (sum > limit && grown > (this.#sums.get(name) ?? 0)) {
        this.#world.fail('I2', `${label}: ${name} has ${row.spent} + ${row.leased} of ${limit}`);
      }
      this.#sums.set(name, grown);
    }
  }

  /**
   * A process has ended. If only the metered part is charged, the rest of its requests is not a fault of soft budgets.
   */
  ended(process: NodeProcess): void {
    const { database, plan, requests } = this.#world;
    if (plan.unknown_outcome !== 'metered' || plan.mode === 'strict') return;
    const stored = new Set(database.all<{ id: string }>('SELECT id FROM ledger_generations').map(({ id }) => id));
    for (const request of requests) {
      const isOpen = request.process === process && request.mode === 'soft' && !stored.has(request.id);
      if (isOpen) this.#metered.set(request, new Map());
    }
  }

  /** By window: the amount that may be billed for such requests above their charges. */
  #unmetered(): Map<string, number> {
    const sums = new Map<string, number>();
    for (const [{ sent }, charged] of this.#metered) {
      const own = new Map<string, number>();
      for (const attempt of sent) {
        const nano = attempt?.billed_nano ?? attempt?.bound_nano ?? 0;
        for (const window of attempt?.windows ?? []) own.set(window, (own.get(window) ?? 0) + nano);
      }
      for (const [window, nano] of own)
        sums.set(window, (sums.get(window) ?? 0) + Math.max(0, nano - (charged.get(window) ?? 0)));
    }
    return sums;
  }

  #checkExposure(label: string): void {
    const { upstream } = this.#world;
    const unmetered = this.#unmetered();
    for (const [name, exposure] of upstream.exposure) {
      const row = this.#windows.get(name);
      const allowed = (upstream.excess.get(name) ?? 0) + (this.#released.get(name) ?? 0) + (unmetered.get(name) ?? 0);
      const counted = (row?.spent ?? 0) + (row?.leased ?? 0);
      if (exposure - allowed > counted) {
        this.#world.fail('I1', `${label}: ${name} may be billed ${exposure}, ${counted} is counted`);
      }
    }
  }

  #checkNodes(label: string): void {
    for (const { process, index, is_released } of this.#world.machines) {
      if (process?.recorder === undefined || process.dead || !process.is_settled || is_released) continue;
      // It may not know yet that its leases are forgotten.
      if (this.#hasForgotten) continue;
      for (const lease of process.recorder.holdings()) {
        const used = lease.held + lease.pending + lease.returning;
        if (used <= lease.stored && lease.held >= 0 && lease.pending >= 0) continue;
        const { held, pending, returning, stored } = lease;
        const sums = `${held} held + ${pending} pending + ${returning} returning of ${stored}`;
        this.#world.fail('I5', `${label}: node ${index} has ${sums} in ${nameOf(lease)}`);
      }
    }
  }

  #isAnswering(process: NodeProcess | undefined): process is NodeProcess {
    if (process?.recorder === undefined || process.dead || process.draining) return false;
    return this.#world.scheduler.now_ms - process.disturbed_at > IDLE_MS;
  }

  #noteAvailable(): void {
    const { machines, budgets, scheduler } = this.#world;
    const idle = new Map<string, number>();
    for (const { process } of machines) {
      if (!this.#isAnswering(process)) continue;
      for (const lease of process.recorder?.holdings() ?? []) {
        const free = lease.stored - lease.held - lease.pending - lease.returning - lease.frozen;
        if (free > 0) idle.set(nameOf(lease), (idle.get(nameOf(lease)) ?? 0) + free);
      }
    }
    for (const [name, { budget_id, spent, leased }] of this.#windows) {
      const limit = budgets.get(budget_id)?.limit_nano ?? 0;
      let available = this.#available.get(name);
      if (available === undefined) {
        available = new Available();
        this.#available.set(name, available);
      }
      available.note(scheduler.now_ms, limit - spent - leased + (idle.get(name) ?? 0));
    }
  }

  /** A request was admitted: it counts in the windows of its arrival, or of now if its machine's clock is off. */
  admitted({ number, requested_at: requestedAt }: Request, { at }: HoldRequest, { lines }: Hold): void {
    const { scheduler, subject } = this.#world;
    const { now_ms } = scheduler;
    const offMs = subject.limits.admission_clock_ms_max;
    // A node knows the store's time only as exactly as its last answer was quick.
    const moments = [requestedAt - offMs, requestedAt, now_ms, now_ms + offMs];
    if (at !== undefined && Math.abs(at - now_ms) <= 2 * offMs) moments.push(at);
    for (const { budget, window_start } of lines) {
      if (moments.some((moment) => subject.windowStart(budget.reset_interval, moment) === window_start)) continue;
      this.#world.fail('W1', `request ${number} counts in the window ${window_start} of ${budget.id}`);
    }
  }

  /** A request was refused before anything was sent for it. */
  refused(process: NodeProcess, request: Request, ask: HoldRequest, error: unknown): void {
    const { counts, scheduler } = this.#world;
    const { now_ms } = scheduler;
    scheduler.note('refused', request.number);
    const { status } = error as { status?: number };
    if (status === 503) {
      counts.refused_503++;
      if (this.#isAnswering(process) && process.recorder?.admits() === true && !process.draining) {
        this.#world.fail('L1', `request ${request.number} was refused with 503 by a node that reaches the store`);
      }
      return;
    }
    if (status !== 402) {
      this.#world.fail('refusal', String(error));
      return;
    }
    counts.refused_402++;
    if (process.answered_at < this.#refusedSince(process, request)) {
      this.#world.fail('L3', `request ${request.number} was refused with 402 although the store had not answered`);
    }
    if (!this.#isAnswering(process)) return;
    const counted = ask.budgets.filter(({ include_byok }) => include_byok || !ask.is_byok);
    // Money that another request has just received is not idle.
    this.#noteAvailable();
    const { windowStart, limits } = this.#world.subject;
    const isNear = ask.at !== undefined && Math.abs(ask.at - now_ms) < limits.admission_clock_ms_max;
    const idle = counted.map((budget) => {
      const name = `${budget.id} ${windowStart(budget.reset_interval, isNear ? (ask.at ?? now_ms) : now_ms)}`;
      return this.#available.get(name)?.leastSince(now_ms - IDLE_MS) ?? 0;
    });
    if (Math.min(...idle) < ask.least_nano) return;
    this.#world.fail(
      'L1',
      `request ${request.number} for ${ask.least_nano} was refused while ${idle.join(', ')} was idle`,
    );
  }

  /**
   * The time since which the store must have answered for a refusal: since the request's query. A request that was
   * refused at once relied on the store's recent answer to another one; so may one that first had to query the time.
   */
  #refusedSince({ store_time_at: storeTimeAt }: NodeProcess, { requested_at: requestedAt }: Request): number {
    const { scheduler, subject } = this.#world;
    const isRemembered = scheduler.now_ms === requestedAt || storeTimeAt >= requestedAt;
    return isRemembered ? Math.min(requestedAt, scheduler.now_ms - subject.limits.refusal_ms) : requestedAt;
  }

  /** A further attempt was refused. */
  refusedAgain(error: unknown): void {
    this.#world.counts.refused_later++;
    const { status } = error as { status?: number };
    if (status !== 402 && status !== 503) this.#world.fail('refusal', String(error));
  }

  /** Everything has ended, and no request came for a while. */
  checkEnd(): void {
    this.#storeChanged = true;
    this.check('the end');
    this.#checkQuiet();
    this.#checkGenerations();
  }

  #checkQuiet(): void {
    const world = this.#world;
    const frozen = new Map<string, number>();
    for (const { process, index } of world.machines) {
      for (const lease of process?.recorder?.holdings() ?? []) {
        const { held, pending, returning } = lease;
        if (held !== 0 || pending !== 0 || returning !== 0) {
          world.fail('Q1', `node ${index} ends with ${held} held, ${pending} pending in ${nameOf(lease)}`);
        }
        frozen.set(nameOf(lease), (frozen.get(nameOf(lease)) ?? 0) + lease.frozen);
      }
      const left = process?.recorder?.state();
      if (left !== undefined && (left.unflushed > 0 || left.waiting > 0)) world.fail('Q1', `node ${index} is not done`);
    }
    for (const [name, { leased }] of this.#windows) {
      if (leased !== (frozen.get(name) ?? 0)) world.fail('Q2', `${name} ends with ${leased} leased`);
    }
  }

  #checkGenerations(): void {
    const world = this.#world;
    const { database, plan } = world;
    const rows = database.all<{ id: string; charges: string; outcome: string; cost: number }>(
      'SELECT id, charges, outcome, cost FROM ledger_generations',
    );
    const spent = new Map<string, number>();
    const recorded = new Map<string, { charges: Map<string, number>; outcome: string; cost: number }>();
    let cost = 0;
    for (const row of rows) {
      const charges = new Map<string, number>();
      for (const [budgetId, windowStart, amount] of JSON.parse(row.charges) as [string, string, number][]) {
        const name = `${budgetId} ${windowStart}`;
        charges.set(name, (charges.get(name) ?? 0) + amount);
        spent.set(name, (spent.get(name) ?? 0) + amount);
      }
      recorded.set(row.id, { charges, outcome: row.outcome, cost: row.cost });
      cost += row.cost;
    }
    const booked = new Map(
      database
        .all<Amount>(
          "SELECT '' AS node_id, budget_id, window_start, SUM(amount) AS amount FROM ledger_lost_leases GROUP BY 2, 3",
        )
        .map((row) => [nameOf(row), row.amount]),
    );
    for (const [name, amount] of booked) world.fail('Q8', `${name} ends with ${amount} booked for nodes that are back`);
    for (const [name, row] of this.#windows) {
      const sum = row.opening + (spent.get(name) ?? 0) + (booked.get(name) ?? 0);
      if (row.spent !== sum) world.fail('Q3', `${name} has ${row.spent} spent, its generations sum to ${sum}`);
    }
    const [days] = database.all<{ nano: number; requests: number }>(
      'SELECT COALESCE(SUM(usage_nano), 0) AS nano, COALESCE(SUM(requests), 0) AS requests FROM usage_days',
    );
    if (days?.nano !== cost || days.requests !== rows.length)
      world.fail('Q4', 'usage by day is not the sum of the generations');
    for (const request of world.requests) {
      const known = recorded.get(request.id);
      const billed = new Map<string, number>();
      for (const sent of request.sent) {
        for (const window of sent?.windows ?? [])
          billed.set(window, (billed.get(window) ?? 0) + (sent?.billed_nano ?? 0));
      }
      // Then the leases of every node that may have sent it are frozen, which the other rules check.
      const isLost = plan.journal_sync === 'os' && world.counts.power_losses > 0;
      if (known === undefined) {
        if (request.sent.length > 0 && !isLost)
          world.fail('Q5', `request ${request.number} was sent and is not recorded`);
        continue;
      }
      if (known.outcome === 'unknown') world.counts.unknown++;
      if (known.outcome === 'unknown') this.#checkLeast(request, known.cost);
      const exact = known.outcome !== 'unknown' && !request.has_unknown && !(isLost && request.process.dead);
      const isMetered = known.outcome === 'unknown' && request.mode === 'soft' && plan.unknown_outcome === 'metered';
      if (isMetered) this.#checkMetered(request, known.charges);
      for (const window of exact ? new Set([...billed.keys(), ...known.charges.keys()]) : billed.keys()) {
        const nano = billed.get(window) ?? 0;
        const charged = known.charges.get(window) ?? 0;
        const allowed = plan.overruns && !exact ? Math.ceil(nano * 0.3) : 0;
        if (charged + allowed < nano && !isMetered && !isLost) {
          world.fail('Q6', `request ${request.number} was billed ${nano}, and ${charged} is recorded in ${window}`);
        }
        if (exact && charged !== nano) {
          world.fail(
            'Q6',
            `request ${request.number} was billed ${nano}, and exactly ${charged} is recorded in ${window}`,
          );
        }
      }
    }
  }

  /**
   * The last possible metered amounts of a first attempt: the last one certainly written, if any, and all that followed
   * it.
   */
  #lastMetered({ metered, process }: Request): { isWritten: boolean; possible: number[] } {
    // A power loss may remove what was written and not synced, also one before the next start has recorded it.
    const last = process.hasLeftAll ? metered.findLastIndex(({ is_written }) => is_written) : -1;
    return { isWritten: last !== -1, possible: metered.slice(Math.max(0, last)).map(({ nano }) => nano) };
  }

  /** The lowest cost of a request without a reported end: without a budget also its metered part. */
  #checkLeast(request: Request, cost: number): void {
    const { number, budgets, attempts, least_nano } = request;
    const { isWritten, possible } = this.#lastMetered(request);
    const isSeen = isWritten && attempts === 1 && budgets.length === 0;
    const least = isSeen ? Math.max(least_nano, Math.min(...possible)) : least_nano;
    if (cost < least) this.#world.fail('Q6', `request ${number} costs at least ${least}, and ${cost} is recorded`);
  }

  /** The charge of a soft budget for a first attempt without a reported end: the last metered amount, or the hold. */
  #checkMetered(request: Request, charges: ReadonlyMap<string, number>): void {
    const { number, attempts, sent } = request;
    const [first] = sent;
    if (attempts !== 1 || first === undefined) return;
    const { isWritten, possible } = this.#lastMetered(request);
    for (const window of new Set([...first.windows, ...charges.keys()])) {
      const nano = charges.get(window) ?? 0;
      if (possible.includes(nano)) continue;
      // A provider's bill above the hold cannot be known.
      if (!isWritten && nano >= first.bound_nano) continue;
      this.#world.fail(
        'Q7',
        `request ${number} is charged ${nano} in ${window}, but metered amounts were ${possible.join(', ')}`,
      );
    }
  }

  /** The rest of each budget in its open window. */
  leftOf(budgetId: string, windowStart: string): number {
    const { budgets } = this.#world;
    const row = this.#windows.get(`${budgetId} ${windowStart}`);
    return (budgets.get(budgetId)?.limit_nano ?? 0) - (row?.spent ?? 0) - (row?.leased ?? 0);
  }
}
