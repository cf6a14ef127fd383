import type { LedgerLog } from '../../src/ledger/pipe.ts';
import type { LedgerStore } from '../../src/ledger/settle.ts';
import type { Budget } from '../../src/schemas/budget.ts';
import { type MemoryDatabase, openMemoryDatabase } from './memory-database.ts';
import { MemoryDisk } from './memory-disk.ts';
import { type Machine, NodeProcess } from './node-process.ts';
import { Random } from './random.ts';
import type { Request } from './requests.ts';
import { Scheduler } from './scheduler.ts';
import { FRESH, LAST_MONEY_STEP, SLICED_STEP, STEPS, type Step } from './steps.ts';
import { CALM, STORM, type Weather } from './store-way.ts';
import type { Subject } from './subject.ts';
import { Upstream } from './upstream.ts';
import { Watcher } from './watcher.ts';

export type Mode = 'strict' | 'soft' | 'sliced';

/** The options of a run. */
export interface Plan {
  mode: Mode;
  journal_sync: 'group' | 'os';
  unknown_outcome: 'hold' | 'metered';
  /**
   * Nodes run on machines whose clocks are off by seconds and follow the store's time, as on PostgreSQL; otherwise they
   * share one.
   */
  store_clock: boolean;
  /** Providers bill more than their bound. */
  overruns: boolean;
  /** An operator releases some nodes while they are stopped. */
  releases: boolean;
  /** A node that is released is booked as having spent its leases, as the gateway does by itself. */
  books_lost: boolean;
  /** Some machines' clocks are set during the run. */
  clock_steps: boolean;
  /** The store is set back to an earlier state, as after a restore or a failover. */
  set_backs: boolean;
  /** The provider can be queried about attempts. */
  lookups: boolean;
  /** Segments, batches and caches of nodes are small: files are full, closed and rewritten all the time. */
  small: boolean;
  /** Processes pause often, so that many calls end at once, and report one outcome at a time to the store. */
  bursts: boolean;
  /** Disks have little more room than what must be kept, and are full at times. */
  full_disks: boolean;
  /** Every first attempt breaks off soon, and the next one takes long. */
  retries: boolean;
  /** Processes end at this step more often than at others, and lose their power there. */
  aim: Step | undefined;
  /** The share of crashes with a power loss. */
  power_loss: number;
  requests: number;
  /** How long unused leases are kept if money is not scarce. */
  lease_kept_ms: number;
}

/** The part of the plan that does not depend on the seed. */
export type RunOptions = Partial<
  Pick<
    Plan,
    | 'mode'
    | 'journal_sync'
    | 'unknown_outcome'
    | 'requests'
    | 'clock_steps'
    | 'set_backs'
    | 'lookups'
    | 'small'
    | 'bursts'
    | 'retries'
    | 'full_disks'
    | 'books_lost'
    | 'aim'
  >
>;

export interface Violation {
  rule: string;
  message: string;
}

/** The description of a run and its findings. */
export interface RunReport {
  seed: number;
  plan: Plan;
  violations: Violation[];
  counts: World['counts'];
  crashed_at: Map<Step, number>;
  events: number;
  hash: number;
}

type Row = Record<string, number | string | null>;

/** Enough findings to explain a fault, which shows at many places. */
const VIOLATIONS_MAX = 10;
const NODES = 4;
/**
 * A lease could not be kept beyond the quiet end of a run without looking lost; up to this time it is kept through
 * failures.
 */
const KEPT_MS = [30_000, 12_000, 6_000];
const FULL_DISK_BYTES = 40_000;
const CHAOS_MS = 24_000;
const CALM_MS = 8_000;
const QUIET_MS = 40_000;
const PROBE_MS = 3_000;
const FIRST_REQUEST_MS = 300;
/** How often traps are set, and how often at their targets. */
const TRAP_MS = 900;
const AIMED_TRAP_MS = 50;
/** This share of the requests arrives shortly before or after midnight. */
const AT_THE_TURN = 0.15;

/** The bounds of `bursts` instead of those of `limits.ts`. */
const ONE_BY_ONE = { flush_batch_records_max: 1 };

/** The bounds of `small` runs instead of those of `limits.ts`. */
const SMALL = {
  journal_segment_bytes_max: 2_500,
  journal_sweep_ms: 700,
  journal_carry_ms: 1_000,
  ...ONE_BY_ONE,
  leases_remembered: 3,
};

function planOf(seed: number, options: RunOptions): Plan {
  const { mode = 'strict', journal_sync, requests = 700 } = options;
  const random = new Random(seed * 7 + 1);
  const isOs = random.chance(0.12);
  const sync = journal_sync ?? (mode === 'strict' && isOs ? 'os' : 'group');
  const policy = random.chance(0.5) ? 'hold' : 'metered';
  const storeClock = random.chance(0.5) || options.clock_steps === true;
  const plan: Plan = {
    mode,
    journal_sync: sync,
    unknown_outcome: options.unknown_outcome ?? policy,
    store_clock: storeClock,
    overruns: mode === 'soft',
    releases: random.chance(0.15) || options.books_lost === true,
    books_lost: options.books_lost ?? seed % 2 === 0,
    clock_steps: storeClock && (options.clock_steps ?? random.chance(0.3)),
    // Data that neither the journal nor the store has is lost in that mode: a store that forgets removes one of the two
    // copies.
    set_backs: sync === 'group' && (options.set_backs ?? random.chance(0.25)),
    lookups: options.lookups ?? random.chance(0.4),
    small: options.small ?? random.chance(0.5),
    bursts: options.bursts ?? false,
    full_disks: options.full_disks ?? seed % 4 === 1,
    retries: options.retries ?? false,
    aim: options.aim,
    power_loss: 0.35,
    requests,
    lease_kept_ms: KEPT_MS[seed % KEPT_MS.length] ?? 0,
  };
  // Records that were dropped for want of space cannot be sent again.
  return plan.full_disks ? { ...plan, set_backs: false } : plan;
}

/** Several nodes on one store, their clients and their provider, and all failures between them. */
export class World {
  readonly plan: Plan;
  readonly subject: Subject;
  readonly random: Random;
  readonly scheduler: Scheduler;
  readonly database: MemoryDatabase = openMemoryDatabase();
  readonly store: LedgerStore;
  readonly upstream = new Upstream();
  readonly watcher: Watcher;
  readonly machines: Machine[] = [];
  readonly budgets = new Map<string, Budget>();
  readonly requests: Request[] = [];
  readonly crashed_at = new Map<Step, number>();
  readonly violations: Violation[] = [];
  weather: Weather = STORM;
  readonly counts = {
    requests: 0,
    admitted: 0,
    refused_402: 0,
    refused_503: 0,
    refused_later: 0,
    refused_by_journal: 0,
    unknown: 0,
    found_out: 0,
    crashes: 0,
    crashed_requests: 0,
    power_losses: 0,
    pauses: 0,
    cuts: 0,
    drains: 0,
    failed_starts: 0,
    lost: 0,
    repeated: 0,
    fenced: 0,
    limit_changes: 0,
    releases: 0,
    clock_steps: 0,
    set_backs: 0,
    probes: 0,
    disk_full: 0,
    discarded: 0,
    booked: 0,
  };
  readonly log: LedgerLog = {
    info() {},
    warn: (_facts, message) => {
      if (message.startsWith('the disk is short of space')) this.counts.discarded++;
    },
    error: (facts, message) => {
      this.counts.failed_starts += 0;
      if (this.plan.full_disks && String((facts as { err?: unknown }).err).includes('ENOSPC')) return;
      if (this.#strictLog) this.fail('log', `${message}: ${String((facts as { err?: unknown }).err ?? '')}`);
    },
  };
  readonly #strictLog = true;
  #trap: Step | undefined;
  #isChaos = true;
  readonly #seed: number;
  /** The end of the first window that ends. */
  readonly #midnight: number;

  constructor(seed: number, subject: Subject, options: RunOptions) {
    this.#seed = seed;
    this.subject = subject;
    this.plan = planOf(seed, options);
    this.random = new Random(seed);
    // Friday evening or the last of a month: the day changes in every run, the week and the month in some.
    const midnight = this.random.pick(['2026-11-22', '2026-11-23', '2026-12-01']);
    this.#midnight = Date.parse(midnight);
    this.scheduler = new Scheduler(this.#midnight - this.random.between(4_000, 20_000));
    this.store = subject.ledgerStore(this.database.queries, 'sqlite');
    this.watcher = new Watcher(this);
  }

  fail(rule: string, message: string): void {
    if (this.violations.length < VIOLATIONS_MAX) this.violations.push({ rule, message });
  }

  /** Whether a process ends here. */
  isTrap(step: Step): boolean {
    if (this.#trap !== step || !this.#isChaos) return false;
    this.#trap = undefined;
    return true;
  }

  /** A process has ended; another soon replaces it. */
  ended(process: NodeProcess): void {
    const { machine } = process;
    if (machine.process !== process) return;
    if (this.plan.releases && this.#isChaos && this.random.chance(0.15)) {
      this.#loseFor(machine, this.random.between(2_000, 15_000));
      return;
    }
    const delayMs = this.#isChaos ? this.random.longTailed(20, 1_500, 5_000) : 50;
    this.scheduler.after(delayMs, 'restart', undefined, () => this.#start(machine));
  }

  #start(machine: Machine): void {
    if (machine.process?.dead === false) return;
    machine.process = new NodeProcess(this, machine);
    void machine.process.run();
  }

  /** The operator gives a node up, which returns later. */
  #loseFor(machine: Machine, absenceMs: number): void {
    this.scheduler.after(1_000, 'release', undefined, () => {
      machine.is_released = true;
      this.#giveUp(machine.node);
      this.scheduler.after(absenceMs, 'back again', undefined, () => {
        machine.is_released = false;
        this.#start(machine);
      });
    });
  }

  #giveUp(node: string): void {
    this.counts.releases++;
    this.watcher.storeChanges();
    void this.#release(node).catch((error: unknown) => this.fail('I4', `the release of ${node}: ${String(error)}`));
  }

  /** As the operator's command does after the node was lost. */
  async #release(node: string): Promise<void> {
    const { database, subject } = this;
    const rows = database.all<{ budget_id: string; window_start: string; amount: number }>(
      'SELECT budget_id, window_start, amount FROM ledger_leases WHERE node_id = ?',
      node,
    );
    const at = Math.floor(this.scheduler.now_ms) + 2 * subject.limits.node_lost_ms;
    const { books_lost } = this.plan;
    const released = await database.queries.transaction().execute((tx) => {
      const operations = subject.ledgerOperations(tx, 'sqlite');
      return books_lost ? operations.book(node, at, subject.limits.node_lost_ms) : operations.release(node, at);
    });
    const leasedNano = rows.reduce((sum, { amount }) => sum + amount, 0);
    if (released !== undefined && released.leased_nano !== leasedNano)
      this.fail('I4', `${leasedNano} were leased by ${node}, ${released.leased_nano} are released`);
    if (books_lost) this.counts.booked += released?.leases ?? 0;
    // Booked money is given to nobody, so that every rule holds as before.
    else if (released !== undefined) this.watcher.released(rows);
  }

  /** Remembers the store's state, to which it is set back some time later. */
  #setBack(delayMs = this.random.longTailed(20, 400, 2_000)): void {
    const { database, watcher } = this;
    const tables = database
      .all<{ name: string }>("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
      .map(({ name }) => name);
    const kept = new Map(tables.map((name) => [name, database.all<Row>(`SELECT * FROM ${name}`)]));
    this.scheduler.after(delayMs, 'store set back', undefined, () => {
      this.counts.set_backs++;
      const running = database.all<Row>('SELECT id, epoch FROM ledger_nodes');
      watcher.forgets(() => {
        for (const [name, rows] of kept) {
          database.all(`DELETE FROM ${name}`);
          for (const row of rows) {
            const columns = Object.keys(row);
            const values = columns.map(() => '?').join(', ');
            database.all(`INSERT INTO ${name} (${columns.join(', ')}) VALUES (${values})`, ...Object.values(row));
          }
        }
        // The operator sets the limits again that were changed since.
        for (const { id, limit_nano } of this.budgets.values()) {
          database.all('UPDATE ledger_budgets SET limit_nano = ? WHERE id = ?', limit_nano, id);
          database.all('UPDATE ledger_windows SET scarce = 1 WHERE budget_id = ?', id);
        }
      });
      // Runs that may look lost in the store's current state, above all under an epoch that it no longer knows.
      const [risen] = database.all<{ id: string }>(
        `SELECT n.id FROM ledger_nodes n JOIN json_each(?) e ON n.id = e.value ->> 'id' AND n.epoch < e.value ->> 'epoch'`,
        JSON.stringify(running),
      );
      if (risen !== undefined) this.#giveUp(risen.id);
    });
  }

  async #open(): Promise<void> {
    await this.subject.migrate(this.database.queries, 'sqlite');
    const { random } = this;
    const made: [id: string, scope: Budget['scope'], interval: Budget['reset_interval'], limit: number][] = [
      ['organization', 'organization', 'never', random.whole(900_000, 3_000_000)],
      ['workspace', 'workspace', 'daily', random.whole(300_000, 900_000)],
      ['key-a', 'key', 'daily', random.whole(50_000, 300_000)],
      ['key-b', 'key', 'never', random.whole(100_000, 400_000)],
      ['guardrail', 'guardrail', random.pick(['weekly', 'monthly']), random.whole(100_000, 500_000)],
    ];
    for (const [id, scope, resetInterval, limitNano] of made) {
      const includeByok = random.chance(0.5);
      this.budgets.set(id, {
        id,
        scope,
        label: `limit of ${id}`,
        reset_interval: resetInterval,
        limit_nano: limitNano,
        include_byok: includeByok,
      });
      this.database.all(
        `INSERT INTO ledger_budgets (id, scope, subject, label, reset_interval, limit_nano, include_byok, version)
          VALUES (?, ?, ?, ?, ?, ?, ?, 1)`,
        ...[id, scope, `key:${id}`, id, resetInterval, limitNano, includeByok ? 1 : 0],
      );
    }
    for (let index = 0; index < NODES; index++) {
      const skewMs = this.plan.store_clock && random.chance(0.5) ? random.between(-5_000, 5_000) : 0;
      const disk = new MemoryDisk(this.scheduler, random, {
        sync_ms: random.chance(0.4) ? [5, 40, 150] : [0.2, 0.8, 20],
        capacity_bytes: this.plan.full_disks ? FULL_DISK_BYTES : Number.POSITIVE_INFINITY,
        onRename: (actor) => {
          const process = this.machines[index]?.process;
          if (process === actor) void process.enter(undefined, 'segment put away');
        },
      });
      const machine: Machine = {
        index,
        node: `node-${index}`,
        disk,
        process: undefined,
        cut_until: 0,
        skew_ms: skewMs,
        power_losses: 0,
        is_released: false,
      };
      this.machines.push(machine);
      this.scheduler.after(random.between(0, 300), 'first start', undefined, () => this.#start(machine));
    }
  }

  #ask(number: number): void {
    const { random } = this;
    const able = this.machines.flatMap(({ process }) =>
      process?.recorder && !process.draining && !process.dead ? [process] : [],
    );
    if (able.length === 0) return;
    const process = random.pick(able);
    if (process.paused_until > this.scheduler.now_ms) return;
    const ids = random.pick([
      ['organization', 'workspace', 'key-a'],
      ['organization', 'workspace', 'key-a', 'guardrail'],
      ['organization', 'workspace', 'key-b'],
      ['organization', 'key-b', 'guardrail'],
      [],
    ]);
    const budgets = ids.flatMap((id) => this.budgets.get(id) ?? []).map((budget) => ({ ...budget }));
    const isSoft = this.plan.mode !== 'strict' && random.chance(0.8);
    const request: Request = {
      number,
      id: `gen-${number}`,
      budgets,
      mode: isSoft ? 'soft' : 'strict',
      process,
      least_nano: budgets.length === 0 ? random.whole(1, 500) : 0,
      step: 'asked',
      requested_at: this.scheduler.now_ms,
      sent: [],
      metered: [],
      attempts: 0,
      has_unknown: false,
      is_reported: false,
    };
    this.requests.push(request);
    this.counts.requests++;
    process.serve(request);
  }

  /** Repeats an event until the failures end. */
  #often(meanMs: number, label: string, until: number, happen: () => void): void {
    const plan = () =>
      this.scheduler.after(-Math.log(1 - this.random.next()) * meanMs, label, undefined, () => {
        if (this.scheduler.now_ms > until) return;
        happen();
        plan();
      });
    plan();
  }

  #changeLimit(): void {
    const { random } = this;
    const budget = random.pick([...this.budgets.values()]);
    const limitNano = Math.max(0, Math.floor(budget.limit_nano * random.between(0.7, 1.4)));
    this.counts.limit_changes++;
    this.#setLimit(budget, limitNano);
  }

  #setLimit(budget: Budget, limitNano: number): void {
    this.budgets.set(budget.id, { ...budget, limit_nano: limitNano });
    this.database.all(
      'UPDATE ledger_budgets SET limit_nano = ?, version = version + 1 WHERE id = ?',
      limitNano,
      budget.id,
    );
    // Like `budgetStore`.
    this.database.all('UPDATE ledger_windows SET scarce = 1 WHERE budget_id = ?', budget.id);
    this.watcher.storeChanges();
  }

  /** Shortly before the day changes there is money again, so that calls are in progress when it does. */
  #raiseLimits(): void {
    for (const budget of [...this.budgets.values()])
      this.#setLimit(budget, budget.limit_nano + this.random.whole(100_000, 300_000));
  }

  #makeTrouble(until: number): void {
    const { random, scheduler } = this;
    const alive = () => this.machines.flatMap(({ process }) => (process && !process.dead ? [process] : []));
    const some = (happen: (process: NodeProcess) => void) => () => {
      const processes = alive();
      if (processes.length > 0) happen(random.pick(processes));
    };
    this.#often(
      4_000,
      'crash',
      until,
      some((process) => process.crash()),
    );
    const steps: Step[] = [...STEPS, ...FRESH, ...FRESH];
    if (this.plan.mode === 'sliced') steps.push(SLICED_STEP, SLICED_STEP);
    const { aim } = this.plan;
    this.#often(aim ? AIMED_TRAP_MS : TRAP_MS, 'trap', until, () => {
      this.#trap = aim ?? random.pick(steps);
    });
    const { bursts } = this.plan;
    this.#often(
      bursts ? 300 : 5_000,
      'pause',
      until,
      some((process) => {
        this.counts.pauses++;
        process.pause(bursts ? random.between(100, 1_500) : random.longTailed(20, 1_500, 6_000));
      }),
    );
    this.#often(
      aim === LAST_MONEY_STEP ? 1_500 : 8_000,
      'cut off',
      until,
      some(({ machine, dead }) => {
        if (dead) return;
        this.counts.cuts++;
        machine.cut_until = Math.max(machine.cut_until, scheduler.now_ms + random.longTailed(50, 2_000, 5_000));
        machine.process?.disturbed();
      }),
    );
    this.#often(
      5_000,
      'drain',
      until,
      some((process) => process.drain()),
    );
  }

  /** Clocks that are set, and a store that forgets. */
  #makeRareTrouble(until: number): void {
    const { random, plan } = this;
    if (plan.clock_steps) {
      this.#often(5_000, 'clock set', until, () => {
        this.counts.clock_steps++;
        random.pick(this.machines).skew_ms = random.chance(0.3) ? random.between(-4e7, 4e7) : random.between(-9e3, 9e3);
      });
    }
    if (!plan.set_backs) return;
    this.#often(8_000, 'store kept', until - 3_000, () => this.#setBack());
    // Its state then lacks the new windows: all of them, or those of the next day.
    this.scheduler.after(FIRST_REQUEST_MS, 'store kept before the first', undefined, () =>
      this.#setBack(random.between(1_000, 4_000)),
    );
    this.scheduler.at(this.#midnight - 20, 'store kept before the turn', undefined, () =>
      this.#setBack(random.between(300, 2_000)),
    );
  }

  /**
   * Runs the whole sequence: failures, load without failures, quiet, and the exact check. `stops_early`: only up to the
   * first broken rule.
   */
  async run({ stops_early = false } = {}): Promise<RunReport> {
    const { limits } = this.subject;
    const bounds = { ...limits };
    if (this.plan.bursts) Object.assign(limits, ONE_BY_ONE);
    if (this.plan.small) Object.assign(limits, SMALL);
    Object.assign(limits, { lease_kept_ms: this.plan.lease_kept_ms });
    const unwatch = this.subject.watchRules((rule, facts) => this.fail(rule, JSON.stringify(facts)));
    try {
      return await this.#run(stops_early);
    } finally {
      unwatch();
      Object.assign(limits, bounds);
    }
  }

  #timeOfRequest(begin: number, end: number): number {
    const { random } = this;
    if (!random.chance(AT_THE_TURN)) return random.between(begin, end);
    return Math.max(begin, this.#midnight + random.between(-1_500, 500));
  }

  async #run(stopsEarly: boolean): Promise<RunReport> {
    const { scheduler, watcher } = this;
    await this.#open();
    const begin = scheduler.now_ms;
    const calm = begin + CHAOS_MS;
    const end = calm + CALM_MS;
    const after = (label: string) => {
      watcher.check(label);
      return !stopsEarly || this.violations.length === 0;
    };
    this.#makeTrouble(calm);
    this.#makeRareTrouble(calm);
    this.#often(3_000, 'limit', end, () => this.#changeLimit());
    scheduler.at(this.#midnight - 1_700, 'money before the turn', undefined, () => this.#raiseLimits());
    for (let number = 1; number <= this.plan.requests; number++) {
      scheduler.at(this.#timeOfRequest(begin + FIRST_REQUEST_MS, end), 'request', undefined, () => this.#ask(number));
    }
    await scheduler.runUntil(calm, after);
    this.#isChaos = false;
    this.weather = CALM;
    for (const machine of this.machines) machine.cut_until = 0;
    await scheduler.runUntil(end, after);
    await scheduler.runUntil(end + QUIET_MS, after);
    if (!stopsEarly || this.violations.length === 0) watcher.checkEnd();
    if (this.violations.length === 0) await this.#probe(after);
    this.database.close();
    const { counts, crashed_at, violations, plan } = this;
    for (const { disk } of this.machines) counts.disk_full += disk.full;
    return { seed: this.#seed, plan, violations, counts, crashed_at, events: scheduler.events, hash: scheduler.hash };
  }

  /** The rest of each budget is granted to a request for exactly that amount, and no more. */
  async #probe(after: (label: string) => boolean): Promise<void> {
    for (const budget of this.budgets.values()) {
      const windowStart = this.subject.windowStart(budget.reset_interval, this.scheduler.now_ms);
      const left = this.watcher.leftOf(budget.id, windowStart);
      if (left <= 0) continue;
      await this.#probeOne(budget, left + 1, false, after);
      await this.#probeOne(budget, left, true, after);
    }
    await this.scheduler.runUntil(this.scheduler.now_ms + QUIET_MS, after);
    this.watcher.checkEnd();
  }

  async #probeOne(budget: Budget, nano: number, passes: boolean, after: (label: string) => boolean): Promise<void> {
    const { scheduler } = this;
    this.counts.probes++;
    const { process } = this.random.pick(this.machines);
    const ask = {
      id: `probe-${this.counts.probes}`,
      budgets: [budget],
      is_byok: false,
      full_nano: nano,
      least_nano: nano,
    };
    let passed: boolean | undefined;
    scheduler.after(0, 'probe', process, () => {
      void (async () => {
        try {
          const hold = await process?.recorder?.reserve(ask);
          passed = hold !== undefined;
          if (hold !== undefined) process?.recorder?.release(hold);
        } catch {
          passed = false;
        }
      })();
    });
    await scheduler.runUntil(scheduler.now_ms + PROBE_MS, after);
    if (passed !== passes)
      this.fail('L2', `a request for ${nano} of ${budget.id} ${passed ? 'passed' : 'did not pass'}`);
  }
}
