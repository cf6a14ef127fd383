import { GatewayError } from '../errors.ts';
import { limits } from '../limits.ts';
import type { AttemptEntry } from './journal/attempt-line.ts';
import { Journal, type JournalSync } from './journal/journal.ts';
import { isInDoubt, type LastRun, writeLastRun } from './journal/last-run.ts';
import type { Outcome, Replay } from './journal/replay.ts';
import type { Segments } from './journal/segments.ts';
import type { Slot } from './journal/slot.ts';
import { JournalUpkeep } from './journal/upkeep.ts';
import type { Hold, HoldRequest } from './leases/hold.ts';
import type { Holding } from './leases/lease-book.ts';
import { Leases } from './leases/leases.ts';
import type { LedgerClock, Timer } from './ledger-clock.ts';
import { heldLines, Outcomes } from './outcomes.ts';
import { type AppliedAnswer, type LedgerLog, type LostAnswer, Pipe } from './pipe.ts';
import type { Recorder, RecorderOptions } from './recorder.ts';
import { register } from './registration.ts';
import { Resend } from './resend.ts';
import type { LeaseRow, LedgerStore, Position, Registered, Settle } from './settle.ts';
import { StoreTime } from './store-time.ts';

/** The interval of checks of the free space. */
const JOURNAL_SPACE_MS = 1_000;
/** The interval at which a node with leases checks whether they are wanted. */
const LEASE_WATCH_MS = 250;
/** The time between two signs of life of a node without leases and outcomes: far below `limits.node_lost_ms`, since some may get lost. */
const KEEP_ALIVE_MS = 20_000;
/** The tries of a preview for a moment without a batch in flight, and the time between two. */
const PREVIEW_TRIES_MAX = 10;
const PREVIEW_AGAIN_MS = 2;

function refusal(cause: unknown): GatewayError {
  return new GatewayError(503, 'The gateway cannot record requests at the moment; try again soon', {
    headers: { 'retry-after': '1' },
    cause,
  });
}

/** Whether one of the request's budgets has windows, so that the time decides which window it counts in. */
function hasWindows({ budgets }: HoldRequest): boolean {
  for (const { reset_interval } of budgets) if (reset_interval !== 'never') return true;
  return false;
}

/** One running node: connects its journal, its leases and the pipe to the store. */
export class Node implements Recorder {
  readonly #slot: Slot;
  readonly #segments: Segments;
  readonly #journal: Journal;
  readonly #upkeep: JournalUpkeep;
  readonly #pipe: Pipe;
  readonly #outcomes: Outcomes;
  readonly #resend: Resend;
  readonly #store: LedgerStore;
  readonly #leases: Leases;
  readonly #sync: JournalSync;
  readonly #clock: LedgerClock;
  readonly #time: StoreTime;
  readonly #log: LedgerLog;
  readonly #checkTimer: Timer;
  readonly #watchTimer: Timer;
  readonly #spaceTimer: Timer;
  #epoch: number;
  /** The last batch that the store has acknowledged. */
  #acknowledged: Position;
  #watching = false;
  /** When this node last sent the store a sign of life; monotonic milliseconds. */
  #signedAt: number;
  /** Set while a further request for the waiting requests is scheduled. */
  #waitersTimer: Timer;
  #stopped = false;
  /** The store forgot outcomes and no resend has started yet: a registration may take several tries. */
  #needsResend = false;

  constructor(slot: Slot, segments: Segments, registered: Registered, options: RecorderOptions) {
    const { store, journal_sync, clock, log } = options;
    const { epoch } = registered;
    this.#slot = slot;
    this.#segments = segments;
    this.#epoch = epoch;
    this.#acknowledged = { epoch, batch: 0 };
    this.#sync = journal_sync;
    this.#store = store;
    this.#clock = clock;
    this.#log = log;
    this.#time = new StoreTime(clock, () => store.watch(slot.node, clock.now()));
    this.#time.update(registered.now);
    this.#signedAt = clock.monotonic();
    const boot = segments.disk.boot();
    this.#journal = new Journal({
      segments,
      node: slot.node,
      epoch,
      boot,
      sync: journal_sync,
      clock,
      outcomeLineOf: (id) => this.#outcomes.lineOf(id),
    });
    this.#upkeep = new JournalUpkeep({ journal: this.#journal, segments, clock, log });
    this.#leases = new Leases({
      now: () => this.#time.now(),
      monotonic: clock.monotonic,
      onNeed: () => this.#pipe.sendNow(),
      isStoreAway: options.isStoreAway ?? (() => false),
    });
    this.#pipe = new Pipe({
      store,
      node: slot.node,
      epoch,
      clock,
      log,
      freeze: (settles, number, isLast) => ({
        windows: this.#leases.freeze(settles, number, isLast),
        divisor: this.#leases.divisor,
      }),
      onApplied: (settles, batch, answer) => this.#applied(settles, batch, answer),
      onLost: (answer) => this.#registerAgain(answer),
    });
    this.#outcomes = new Outcomes({
      journal: this.#journal,
      pipe: this.#pipe,
      book: this.#leases.book,
      unknownOutcome: options.unknown_outcome,
      log,
    });
    this.#resend = new Resend({
      node: slot.node,
      segments,
      journal: this.#journal,
      pipe: this.#pipe,
      outcomes: this.#outcomes,
      clock,
      log,
      makeRoom: () => this.#upkeep.makeRoom(),
      isStopped: () => this.#stopped,
    });
    this.#leases.registered(registered.leases);
    this.#checkTimer = clock.setInterval(() => {
      this.#pipe.retryAside();
      this.#upkeep.check();
    }, limits.journal_sweep_ms);
    this.#watchTimer = clock.setInterval(() => void this.#watch(), LEASE_WATCH_MS);
    this.#spaceTimer = clock.setInterval(() => this.#upkeep.makeRoom(), JOURNAL_SPACE_MS);
  }

  /** Sends on what the slot's last owner left, and opens the leases. `ended`: the outcomes of its unfinished attempts. */
  async replay(
    left: Pick<Replay, 'outcomes'>,
    { ended, last }: { ended: readonly Outcome[]; last: LastRun | undefined },
  ): Promise<void> {
    for (const settle of left.outcomes) this.#outcomes.requeue(settle);
    await Promise.all(ended.map(({ record, charges }) => this.#outcomes.record(record, charges)));
    await this.#freezeDoubtful(last);
    this.#leases.open();
    if (this.#segments.owed) this.#resend.start(this.#segments.owed);
    this.#upkeep.sweep();
  }

  /** Without a sync before each send, a machine that stopped suddenly may have sent requests that the journal does not have. */
  async #freezeDoubtful(last: LastRun | undefined): Promise<void> {
    if (last === undefined && this.#sync === 'group') return;
    const inDoubt = isInDoubt(last, this.#segments.disk.boot());
    // What the journal does have is settled first: it is not in doubt, and the store may have it already.
    if (inDoubt) await this.#pipe.flush();
    const frozen = this.#leases.book.freezeDoubtful(last?.frozen ?? [], inDoubt);
    // Before anything is sent: until then the slot's file still describes the last run.
    this.#writeLastRun(frozen, this.#sync === 'group');
    if (frozen.length === 0) return;
    this.#log.warn(
      { node: this.#slot.node, frozen },
      'the machine stopped suddenly: money that this node had reserved may be spent; it stays reserved until it is released',
    );
  }

  #writeLastRun(frozen: LeaseRow[], isSure: boolean): void {
    const { dir, disk } = this.#segments;
    this.#segments.retention.withRoom(() => writeLastRun(dir, disk, { boot: disk.boot(), is_sure: isSure, frozen }));
  }

  reserve: Recorder['reserve'] = (request, hold) => {
    if (hasWindows(request) && !this.#time.isKnown())
      return this.#time.refreshFor(request.store_wait).then(() => this.#reserve(request, hold));
    return this.#reserve(request, hold);
  };

  reserveNow: Recorder['reserveNow'] = (request, hold) => {
    return (!hasWindows(request) || this.#time.isKnown()) && this.#leases.grants.reserveNow(request, hold);
  };

  #reserve(request: HoldRequest, hold: Hold | undefined): Hold | Promise<Hold> {
    const reserved = this.#leases.reserve(request, hold);
    if (reserved instanceof Promise) this.#retryWaiters();
    return reserved;
  }

  preview: Recorder['preview'] = async (request) => {
    if (!this.#time.isKnown()) await this.#time.refresh();
    const windows = this.#leases.grants.windowsOf(request);
    if (windows.length === 0) return this.#leases.grants.preview(request, []);
    for (let tries = 1; ; tries += 1) {
      const before = this.#pipe.settled();
      const sums = await this.#time.withinBound(this.#store.look(windows));
      // While a batch is in flight, its money is counted at both ends or at none.
      const isStill = before !== undefined && before === this.#pipe.settled();
      if (isStill || tries >= PREVIEW_TRIES_MAX) return this.#leases.grants.preview(request, sums);
      await new Promise<void>((resolve) => this.#clock.setTimeout(resolve, PREVIEW_AGAIN_MS));
    }
  };

  extend: Recorder['extend'] = async (hold, grantedNano) => {
    const before = hold.granted_nano;
    if (!this.#leases.grants.extend(hold, grantedNano)) return false;
    if (before === hold.granted_nano || !hold.attempt) return true;
    try {
      await this.#journal.extend(this.#entryOf(hold, hold.attempt));
      return true;
    } catch (error) {
      this.#leases.book.undoExtend(hold, before);
      this.#log.error({ err: error, generation: hold.id }, 'a larger hold could not be written to the journal');
      return false;
    }
  };

  keep: Recorder['keep'] = (hold, costNano, isByok) => this.#leases.book.keep(hold, costNano, isByok);

  release: Recorder['release'] = (hold) => this.#outcomes.release(hold);

  attempt: Recorder['attempt'] = ({ id, attempt, endpoint, record, hold, least }) => {
    // The fallback of an admitted request is admitted as well.
    if (attempt === 1 && !this.#outcomes.hasRoom) {
      return Promise.reject(refusal(new Error('too many outcomes wait for the store')));
    }
    hold.attempt = { attempt, endpoint, record, least };
    return this.#journal.attempt(this.#entryOf(hold, hold.attempt)).then(
      () => {
        // If a power loss can take the record, an older record may still count, so its hold is kept.
        if (this.#sync === 'group' && hold.lines.length > 0) this.#leases.book.attempted(hold);
      },
      (error: unknown) => {
        // If the record may be on the disk, its money stays reserved until the next start has counted it.
        if (attempt === 1 && this.#journal.abandon(id)) this.release(hold);
        throw refusal(error);
      },
    );
  };

  progress: Recorder['progress'] = (id, usage, costNano) =>
    this.#journal.note({ t: 'P', id, usage, cost_nano: costNano });

  outcome: Recorder['outcome'] = (generation, hold) => this.#outcomes.settle(generation, hold);

  lose: Recorder['lose'] = (hold) => this.#outcomes.settleUnknown(hold);

  find: Recorder['find'] = (id) => this.#outcomes.find(id);

  flush: Recorder['flush'] = () => this.#pipe.flush();

  state: Recorder['state'] = () => {
    const { unflushed, aside, reduced, oldestAt, batches, failing } = this.#pipe.state();
    return {
      node: this.#slot.node,
      epoch: this.#epoch,
      unflushed,
      refused: aside,
      reduced,
      oldest_unflushed_ms: oldestAt === undefined ? 0 : Math.max(0, this.#clock.now() - oldestAt),
      admitting: this.admits(),
      store_failing: failing,
      problem: this.#problem(),
      journal_bytes: this.#segments.bytes,
      journal_discarded_bytes: this.#segments.retention.discarded_bytes,
      disk_free_bytes: this.#segments.retention.free_bytes,
      batches,
      ...this.#leases.book.sums(),
      waiting: this.#leases.waiting,
    };
  };

  /** This node's share of each window, for checks of the sums. */
  holdings(): Holding[] {
    return [...this.#leases.book.all];
  }

  admits: Recorder['admits'] = () => this.#outcomes.hasRoom && !this.#journal.failing;

  stop: Recorder['stop'] = async () => {
    this.#stopped = true;
    this.#clock.clearInterval(this.#checkTimer);
    this.#clock.clearInterval(this.#watchTimer);
    this.#clock.clearInterval(this.#spaceTimer);
    this.#clock.clearTimeout(this.#waitersTimer);
    this.#leases.drain();
    const isClean = await this.#pipe.stop();
    if (isClean) this.#journal.note({ t: 'C' });
    else
      this.#log.warn(
        { unflushed: this.#outcomes.unflushed },
        'stopping; some outcomes are only in the journal and are stored at the next start',
      );
    try {
      await this.#journal.close();
      if (isClean && this.#sync === 'os') this.#writeLastRun(this.#leases.book.freezeDoubtful([], false), true);
      this.#upkeep.sweep();
      await this.#upkeep.idle;
    } finally {
      this.#slot.release();
    }
  };

  /** Resolves when nothing is being sent again. */
  get resent(): Promise<void> {
    return this.#resend.done;
  }

  /** Why calls are refused, for an operator; undefined if they are not. */
  #problem(): string | undefined {
    if (this.#outcomes.hasRoom) return this.#journal.problem;
    const { failure } = this.#pipe.state();
    const cause = failure === undefined ? '' : `: ${failure}`;
    return `${this.#outcomes.unflushed} outcomes wait for the store, which does not accept them${cause}`;
  }

  #entryOf(held: Hold, { attempt, endpoint, record, least }: NonNullable<Hold['attempt']>): AttemptEntry {
    const { id, granted_nano, mode } = held;
    const hold = held.lines.length === 0 ? [] : heldLines(held);
    const { is_byok } = record;
    return { t: 'A', id, attempt, endpoint, hold, grant_nano: granted_nano, mode, is_byok, least, record };
  }

  #applied(settles: readonly Settle[], batch: number, answer: AppliedAnswer): void {
    this.#time.update(answer.now);
    this.#signedAt = this.#clock.monotonic();
    this.#acknowledged = { epoch: this.#epoch, batch };
    if (answer.is === 'applied') this.#leases.applied(settles, batch, answer.windows);
    else this.#leases.alreadyApplied(settles, answer.leases);
    if (this.#leases.waiting > 0) this.#retryWaiters();
    if (settles.length === 0) return;
    const ids = settles.map(({ id }) => id);
    this.#journal.note({ t: 'F', ids, batch });
    this.#outcomes.acknowledge(ids);
    this.#upkeep.sweep();
  }

  /** While requests wait, asks the store again at intervals for what other nodes may have returned. */
  #retryWaiters(): void {
    if (this.#waitersTimer !== undefined || this.#stopped) return;
    this.#waitersTimer = this.#clock.setTimeout(() => {
      this.#waitersTimer = undefined;
      this.#leases.expire();
      if (this.#leases.waiting === 0) return;
      this.#pipe.sendNow();
      this.#retryWaiters();
    }, limits.recall_ask_ms);
  }

  /** While the node has leases: returns those that other nodes wait for or that are idle. Otherwise sends signs of life alone. */
  async #watch(): Promise<void> {
    if (this.#watching) return;
    const { holds } = this.#leases.book;
    const now = this.#clock.monotonic();
    if (!holds && now - this.#signedAt < KEEP_ALIVE_MS) return;
    this.#watching = true;
    this.#signedAt = now;
    try {
      if (!holds) {
        await this.#store.keepAlive(this.#slot.node, this.#clock.now());
        return;
      }
      const watched = await this.#store.watch(this.#slot.node, this.#clock.now());
      this.#time.update(watched.now);
      if (!this.#stopped && this.#leases.watched(watched)) this.#pipe.sendNow();
    } catch {
      // The pipe logs that the store does not answer.
    } finally {
      this.#watching = false;
    }
  }

  async #registerAgain(answer: LostAnswer): Promise<Registered> {
    const node = this.#slot.node;
    this.#log.warn(
      { answer, node, epoch: this.#epoch },
      'the store and this node disagree about its leases; registering again',
    );
    const registered = await register(this.#store, node, {
      epochSeen: this.#epoch,
      acknowledged: this.#acknowledged,
      onForgotten: (known) => {
        this.#segments.oweFrom(known);
        this.#needsResend = true;
      },
      clock: this.#clock,
    });
    this.#epoch = registered.epoch;
    this.#acknowledged = { epoch: registered.epoch, batch: 0 };
    this.#journal.beginEpoch(registered.epoch);
    this.#leases.registered(registered.leases);
    if (this.#needsResend && this.#segments.owed) this.#resend.start(this.#segments.owed);
    this.#needsResend = false;
    return registered;
  }
}
