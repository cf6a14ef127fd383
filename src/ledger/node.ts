import { randomUUID } from 'node:crypto';
import { brokenRule, GatewayError } from '../errors.ts';
import { limits } from '../limits.ts';
import { carry } from './journal/carry.ts';
import { isDiskFull } from './journal/disk.ts';
import { Journal, type JournalSync } from './journal/journal.ts';
import { lineOf, outcomeLine } from './journal/journal-format.ts';
import { isInDoubt, type LastRun, readLastRun, writeLastRun } from './journal/last-run.ts';
import { recordOf } from './journal/record-values.ts';
import {
  forgottenSince,
  lastAcknowledged,
  type Outcome,
  outcomeOf,
  type Replay,
  replay,
  type Unfinished,
  type UnknownOutcome,
} from './journal/replay.ts';
import { Segments } from './journal/segments.ts';
import type { Slot } from './journal/slot.ts';
import type { Ask, Hold, HoldLine } from './leases/hold.ts';
import type { Holding } from './leases/lease-book.ts';
import { Leases } from './leases/leases.ts';
import type { LedgerClock, Timer } from './ledger-clock.ts';
import { lookUpAll } from './lookup.ts';
import { type AppliedAnswer, type LedgerLog, type LostAnswer, Pipe } from './pipe.ts';
import type { Recorder, RecorderOptions } from './recorder.ts';
import type { Charged, GenerationRecord, HeldLine } from './records.ts';
import { storeRefusal } from './refusal.ts';
import {
  isBefore,
  isCountable,
  isMoney,
  type LeaseRow,
  type LedgerStore,
  type Position,
  type Registered,
  type Settle,
  toSettle,
} from './settle.ts';

function refusal(cause: unknown): GatewayError {
  return new GatewayError(503, 'The gateway cannot record requests at the moment; try again soon', {
    headers: { 'retry-after': '1' },
    cause,
  });
}

const SHORT_OF_SPACE =
  'the disk is short of space: a journal segment was deleted early. If the store is restored to an earlier time, this node cannot send it those entries again. Give the data directory more space, or lower ledger.journal_keep_bytes';

/** One node at work: its journal, its way to the store, and what is between them. */
class Node implements Recorder {
  readonly #slot: Slot;
  readonly #segments: Segments;
  readonly #journal: Journal;
  readonly #pipe: Pipe;
  readonly #store: LedgerStore;
  readonly #leases: Leases;
  readonly #sync: JournalSync;
  readonly #clock: LedgerClock;
  readonly #log: LedgerLog;
  readonly #unknown_outcome: UnknownOutcome;
  readonly #unflushed = new Map<string, Settle>();
  readonly #sweeper: Timer;
  #epoch: number;
  /** So much the store has said that it knows. */
  #acknowledged: Position;
  /** The store's clock less the monotonic one, as of its last answer; and this machine's then. */
  #store_ahead_ms = 0;
  #clock_ahead_ms = 0;
  #learning: Promise<void> | undefined;
  readonly #watcher: Timer;
  readonly #space_watcher: Timer;
  #watching = false;
  #asking: Timer;
  #stopped = false;
  #sweeping: Promise<void> = Promise.resolve();
  /** What was said last of a journal that needs attention. */
  #wrong: string | undefined;
  /** The store forgot something that is not being sent again yet: a registration may take several tries. */
  #owes = false;
  #resends = 0;
  #resent: Promise<void> = Promise.resolve();

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
    this.#unknown_outcome = options.unknown_outcome;
    this.#tellTime(registered.now);
    const boot = segments.disk.boot();
    this.#journal = new Journal({ segments, node: slot.node, epoch, boot, sync: journal_sync, clock });
    this.#leases = new Leases({
      now: () => clock.monotonic() + this.#store_ahead_ms,
      monotonic: clock.monotonic,
      onNeed: () => this.#pipe.ask(),
      isStoreAway: options.isStoreAway ?? (() => false),
    });
    this.#pipe = new Pipe({
      store,
      node: slot.node,
      epoch,
      clock,
      log,
      freeze: (settles, number, is_last) => ({
        windows: this.#leases.freeze(settles, number, is_last),
        divisor: this.#leases.divisor,
      }),
      onApplied: (settles, batch, answer) => this.#applied(settles, batch, answer),
      onLost: (answer) => this.#registerAgain(answer),
    });
    this.#leases.registered(registered.leases);
    this.#sweeper = clock.setInterval(() => this.#lookAfter(), limits.journal_sweep_ms);
    this.#watcher = clock.setInterval(() => void this.#watch(), limits.lease_watch_ms);
    this.#space_watcher = clock.setInterval(() => this.#makeRoom(), limits.journal_space_ms);
  }

  /** Sends on what the slot's last owner left. */
  async replay(
    left: Pick<Replay, 'outcomes'>,
    { ended, last }: { ended: readonly Outcome[]; last: LastRun | undefined },
  ): Promise<void> {
    for (const settle of left.outcomes) {
      this.#leases.book.owe(settle.charges);
      this.#queue(settle);
    }
    await Promise.all(
      ended.map(({ record, charges }) => {
        this.#leases.book.owe(charges);
        return this.#write(record, charges);
      }),
    );
    await this.#freezeDoubtful(last);
    this.#leases.open();
    if (this.#segments.owed) this.#resend(this.#segments.owed);
    this.#sweep();
  }

  /** Without a sync before each send, a machine that stopped at once may have sent what the journal does not tell of. */
  async #freezeDoubtful(last: LastRun | undefined): Promise<void> {
    if (last === undefined && this.#sync === 'group') return;
    const in_doubt = isInDoubt(last, this.#segments.disk.boot());
    // What the journal does tell is settled first: it is no part of the doubt, and the store may have it already.
    if (in_doubt) await this.#pipe.flush();
    const frozen = this.#leases.book.freezeDoubtful(last?.frozen ?? [], in_doubt);
    // Before anything is sent: until then the slot says what it said before.
    this.#tellRun(frozen, this.#sync === 'group');
    if (frozen.length === 0) return;
    this.#log.warn(
      { node: this.#slot.node, frozen },
      'the machine stopped suddenly: money that this node had reserved may be spent; it stays reserved until it is released',
    );
  }

  #tellRun(frozen: LeaseRow[], is_sure: boolean): void {
    const { dir, disk } = this.#segments;
    this.#segments.retention.withRoom(() => writeLastRun(dir, disk, { boot: disk.boot(), is_sure, frozen }));
  }

  reserve: Recorder['reserve'] = (ask, hold) => {
    if (hasTurns(ask) && !this.#isTimeKnown()) return this.#learnTimeFor(ask).then(() => this.#reserve(ask, hold));
    return this.#reserve(ask, hold);
  };

  reserveNow: Recorder['reserveNow'] = (ask, hold) => {
    return (!hasTurns(ask) || this.#isTimeKnown()) && this.#leases.reserveNow(ask, hold);
  };

  #reserve(ask: Ask, hold: Hold | undefined): Hold | Promise<Hold> {
    const reserved = this.#leases.reserve(ask, hold);
    if (reserved instanceof Promise) this.#askLater();
    return reserved;
  }

  preview: Recorder['preview'] = async (ask) => {
    if (!this.#isTimeKnown()) await this.#learnTime();
    const wanted = this.#leases.windowsOf(ask);
    if (wanted.length === 0) return this.#leases.preview(ask, []);
    for (let tries = 1; ; tries += 1) {
      const before = this.#pipe.settled();
      const sums = await this.#inTime(this.#store.look(wanted));
      // While a batch is on its way, its money is counted at both ends or at none.
      const is_still = before !== undefined && before === this.#pipe.settled();
      if (is_still || tries >= limits.preview_tries_max) return this.#leases.preview(ask, sums);
      await new Promise<void>((resolve) => this.#clock.setTimeout(resolve, limits.preview_again_ms));
    }
  };

  #tellTime(store_now: number): void {
    this.#store_ahead_ms = store_now - this.#clock.monotonic();
    this.#clock_ahead_ms = this.#clock.now() - this.#clock.monotonic();
  }

  /** False where the machine's two clocks have moved against each other: it slept, or was set, and which window is open is not known. */
  #isTimeKnown(): boolean {
    const ahead_ms = this.#clock.now() - this.#clock.monotonic();
    return Math.abs(ahead_ms - this.#clock_ahead_ms) <= limits.admission_clock_ms_max;
  }

  /** Asks the store for its time, once for all who need it. Rejects with a 503 where it does not answer. */
  #learnTime(): Promise<void> {
    this.#learning ??= this.#inTime(this.#store.watch(this.#slot.node, this.#clock.now()))
      .then(({ now }) => this.#tellTime(now))
      .finally(() => {
        this.#learning = undefined;
      });
    return this.#learning;
  }

  async #learnTimeFor({ store_wait }: Ask): Promise<void> {
    store_wait?.begin();
    try {
      await this.#inTime(this.#learnTime(), store_wait?.left_ms());
    } finally {
      store_wait?.end();
    }
  }

  /** What a request waits for the store. Rejects with a 503 where it does not answer within a bound. */
  async #inTime<T>(work: Promise<T>, ms_max: number = limits.store_read_ms_max): Promise<T> {
    const { promise: late, reject } = Promise.withResolvers<never>();
    const timer = this.#clock.setTimeout(() => reject(storeRefusal()), Math.min(ms_max, limits.store_read_ms_max));
    try {
      return await Promise.race([work.catch(() => Promise.reject(storeRefusal())), late]);
    } finally {
      this.#clock.clearTimeout(timer);
    }
  }

  extend: Recorder['extend'] = async (hold, granted_nano) => {
    const before = hold.granted_nano;
    if (!this.#leases.extend(hold, granted_nano)) return false;
    if (before === hold.granted_nano || !hold.attempt) return true;
    try {
      await this.#journal.extend(hold.id, this.#attemptLine(hold, hold.attempt));
      return true;
    } catch (error) {
      this.#leases.book.notGranted(hold, before);
      this.#log.error({ err: error, generation: hold.id }, 'a larger hold could not be written to the journal');
      return false;
    }
  };

  keep: Recorder['keep'] = (hold, cost_nano, is_byok) => this.#leases.book.keep(hold, cost_nano, is_byok);

  release: Recorder['release'] = (hold) => void this.#leases.book.settle(hold, () => 0);

  attempt: Recorder['attempt'] = async ({ id, attempt, endpoint, record, hold, least }) => {
    // A fallback of a request that was let in goes on.
    if (attempt === 1 && !this.#hasRoom()) throw refusal(new Error('too many outcomes wait for the store'));
    hold.attempt = { attempt, endpoint, record, least };
    const durable = this.#journal.attempt(id, this.#attemptLine(hold, hold.attempt));
    try {
      await durable;
      // Where a power loss can take the record, the hold stays what an older one says.
      if (this.#sync === 'group') this.#leases.book.attempted(hold);
    } catch (error) {
      if (attempt === 1) {
        this.#journal.abandon(id);
        this.release(hold);
      }
      throw refusal(error);
    }
  };

  progress: Recorder['progress'] = (id, usage, cost_nano) => this.#journal.note({ t: 'P', id, usage, cost_nano });

  outcome: Recorder['outcome'] = (generation, hold) => {
    const { cost_nano, byok_cost_nano = 0, id } = generation;
    if (!isCountable(generation)) {
      this.#log.error({ generation: id, cost_nano, byok_cost_nano }, 'the cost of an outcome is not a valid amount');
      return this.lose(hold);
    }
    return this.#end(generation, hold, ({ budget }) => cost_nano + (budget.include_byok ? byok_cost_nano : 0));
  };

  lose: Recorder['lose'] = async (hold) => {
    if (hold.attempt === undefined) return this.release(hold);
    const { attempt: number, endpoint, record, least } = hold.attempt;
    const { id, mode, granted_nano: grant_nano } = hold;
    const told = { id, number, endpoint, record, is_byok: record.is_byok, least, metered: undefined };
    const unfinished = { ...told, hold: heldLines(hold), grant_nano, is_soft: mode === 'soft' };
    const lost = outcomeOf(unfinished, this.#unknown_outcome, undefined);
    const isOf =
      ({ budget, window_start }: HoldLine) =>
      (charge: Charged) =>
        charge.budget_id === budget.id && charge.window_start === window_start;
    await this.#end(lost.record, hold, (line) => lost.charges.find(isOf(line))?.amount ?? 0);
  };

  /** Set aside until here, pending from here on: nothing can come between. */
  async #end(generation: GenerationRecord, hold: Hold, amountOf: (line: HoldLine) => number): Promise<void> {
    if (hold.is_settled) {
      brokenRule('settled_once', { generation: generation.id, cost_nano: generation.cost_nano });
      return;
    }
    hold.is_settled = true;
    await this.#write(generation, this.#leases.book.settle(hold, amountOf));
  }

  /** A journal that cannot be written keeps no outcome from the store; its attempt stays open until the store has it. */
  async #write(generation: GenerationRecord, charges: readonly Charged[]): Promise<void> {
    try {
      await this.#record(generation, charges);
    } catch (error) {
      this.#log.error({ err: error, generation: generation.id }, 'an outcome could not be written to the journal');
    }
  }

  find: Recorder['find'] = (id) => {
    const settle = this.#unflushed.get(id);
    return settle && recordOf(settle.record);
  };

  flush: Recorder['flush'] = () => this.#pipe.flush();

  state: Recorder['state'] = () => {
    const { unflushed, aside, oldest_at, batches, failing } = this.#pipe.state();
    return {
      node: this.#slot.node,
      epoch: this.#epoch,
      unflushed,
      refused: aside,
      oldest_unflushed_ms: oldest_at === undefined ? 0 : Math.max(0, this.#clock.now() - oldest_at),
      admitting: this.admits(),
      store_failing: failing,
      problem: this.#problem(),
      journal_bytes: this.#segments.bytes,
      journal_given_up_bytes: this.#segments.retention.given_up_bytes,
      disk_free_bytes: this.#segments.retention.free_bytes,
      batches,
      ...this.#leases.book.sums(),
      waiting: this.#leases.waiting,
    };
  };

  /** What this node has of each window, for whoever checks the sums. */
  holdings(): Holding[] {
    return [...this.#leases.book.all];
  }

  admits: Recorder['admits'] = () => this.#hasRoom() && !this.#journal.failing;

  stop: Recorder['stop'] = async () => {
    this.#stopped = true;
    this.#clock.clearInterval(this.#sweeper);
    this.#clock.clearInterval(this.#watcher);
    this.#clock.clearInterval(this.#space_watcher);
    this.#clock.clearTimeout(this.#asking);
    this.#leases.drain();
    const clean = await this.#pipe.stop();
    if (clean) this.#journal.note({ t: 'C' });
    else
      this.#log.warn(
        { unflushed: this.#unflushed.size },
        'stopping; some outcomes are only in the journal and are stored at the next start',
      );
    try {
      await this.#journal.close();
      if (clean && this.#sync === 'os') this.#tellRun(this.#leases.book.freezeDoubtful([], false), true);
      this.#sweep();
      await this.#sweeping;
    } finally {
      this.#slot.release();
    }
  };

  /** Resolves when nothing is being sent again. */
  get resent(): Promise<void> {
    return this.#resent;
  }

  #hasRoom(): boolean {
    return this.#unflushed.size < limits.journal_unflushed_records_max;
  }

  /** Why calls are refused, for an operator. */
  #problem(): string | undefined {
    if (this.#hasRoom()) return this.#journal.problem;
    const { failure } = this.#pipe.state();
    const cause = failure === undefined ? '' : `: ${failure}`;
    return `${this.#unflushed.size} outcomes wait for the store, which does not accept them${cause}`;
  }

  #queue(settle: Settle): void {
    this.#unflushed.set(settle.id, settle);
    this.#pipe.push(settle);
  }

  #attemptLine(held: Hold, { attempt, endpoint, record, least }: NonNullable<Hold['attempt']>): string {
    const { id, granted_nano, mode } = held;
    const hold = heldLines(held);
    const { is_byok } = record;
    return lineOf({ t: 'A', id, attempt, endpoint, hold, grant_nano: granted_nano, mode, is_byok, least, record });
  }

  #record(generation: GenerationRecord, charges: readonly Charged[]): Promise<void> {
    if (this.#unflushed.has(generation.id)) return Promise.resolve();
    const settle = toSettle(generation, charges);
    const written = this.#journal.outcome(generation.id, outcomeLine(settle.charged, settle.record));
    this.#queue(settle);
    return written;
  }

  #applied(settles: readonly Settle[], batch: number, answer: AppliedAnswer): void {
    this.#tellTime(answer.now);
    this.#acknowledged = { epoch: this.#epoch, batch };
    if (answer.is === 'applied') this.#leases.applied(settles, batch, answer.windows);
    else this.#leases.alreadyApplied(settles, answer.leases);
    if (this.#leases.waiting > 0) this.#askLater();
    if (settles.length === 0) return;
    const ids = settles.map(({ id }) => id);
    this.#journal.note({ t: 'F', ids, batch });
    for (const id of ids) this.#unflushed.delete(id);
    this.#sweep();
  }

  /** Asks again, while requests wait, for what others may have given back meanwhile. */
  #askLater(): void {
    if (this.#asking !== undefined || this.#stopped) return;
    this.#asking = this.#clock.setTimeout(() => {
      this.#asking = undefined;
      this.#leases.expire();
      if (this.#leases.waiting === 0) return;
      this.#pipe.ask();
      this.#askLater();
    }, limits.recall_ask_ms);
  }

  /** While the store has something set aside for this node: whether others want it, and whether it is used at all. */
  async #watch(): Promise<void> {
    if (this.#watching || !this.#leases.book.holds) return;
    this.#watching = true;
    try {
      const watched = await this.#store.watch(this.#slot.node, this.#clock.now());
      this.#tellTime(watched.now);
      if (!this.#stopped && this.#leases.watched(watched)) this.#pipe.ask();
    } catch {
      // The pipe tells of a store that does not answer.
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
      epoch_seen: this.#epoch,
      acknowledged: this.#acknowledged,
      onForgotten: (known) => {
        owe(this.#segments, known);
        this.#owes = true;
      },
      clock: this.#clock,
    });
    this.#epoch = registered.epoch;
    this.#acknowledged = { epoch: registered.epoch, batch: 0 };
    this.#journal.beginEpoch(registered.epoch);
    this.#leases.registered(registered.leases);
    if (this.#owes && this.#segments.owed) this.#resend(this.#segments.owed);
    this.#owes = false;
    return registered;
  }

  /** Sends everything that the store may have forgotten, a segment at a time, while the node serves. */
  #resend(position: Position): void {
    const resend = ++this.#resends;
    const run = async () => {
      for await (const forgotten of forgottenSince(this.#segments, position)) {
        if (resend !== this.#resends) return;
        for (const settle of forgotten) {
          if (this.#unflushed.has(settle.id)) continue;
          this.#leases.book.owe(settle.charges);
          this.#queue(settle);
        }
        await this.#pipe.flush();
      }
      if (resend !== this.#resends || this.#pipe.state().aside > 0) return;
      // A later set-back must find that it was acknowledged again.
      await this.#syncResent(resend);
      if (resend !== this.#resends) return;
      this.#segments.owePaid();
      this.#log.info({ node: this.#slot.node }, 'the store has received all outcomes that it was missing');
    };
    this.#log.warn(
      { node: this.#slot.node, position },
      'the store is older than the journal; sending the missing outcomes',
    );
    this.#resent = run().catch((error: unknown) =>
      this.#log.error({ err: error }, 'the missing outcomes could not all be sent; the next start tries again'),
    );
  }

  /** On a full disk, what was just sent again may go to make room for the note of it. */
  async #syncResent(resend: number): Promise<void> {
    for (;;) {
      try {
        return await this.#journal.sync();
      } catch (error) {
        if (!isDiskFull(error) || this.#stopped || resend !== this.#resends) throw error;
      }
      this.#segments.resent();
      this.#makeRoom();
      await new Promise<void>((resolve) => this.#clock.setTimeout(resolve, limits.journal_retry_ms, true));
    }
  }

  #sweep(): void {
    this.#sweeping = this.#sweeping
      .then(() => {
        const time = { now: this.#clock.now(), monotonic: this.#clock.monotonic() };
        return this.#segments.sweep(time, () => this.#journal.syncWritten());
      })
      .catch((error: unknown) => this.#log.error({ err: error }, 'settled journal segments could not be archived'));
  }

  /** While the disk is short of space: what the store has acknowledged makes room, the oldest first. */
  #makeRoom(): void {
    const { retention } = this.#segments;
    if (retention.lackingBytes() <= 0) return;
    this.#sweep();
    this.#sweeping = this.#sweeping.then(() => retention.makeRoom()).catch((error: unknown) => this.#tellWrong(error));
  }

  /** What is wrong with the journal stays wrong until somebody mends it: logged once. */
  #tellWrong(error: unknown): void {
    const message = String(error);
    if (message !== this.#wrong) this.#log.error({ err: error }, 'the journal cannot be written');
    this.#wrong = message;
  }

  #lookAfter(): void {
    this.#pipe.retryAside();
    this.#sweeping = this.#sweeping.then(async () => {
      try {
        this.#journal.lookAfter();
        const late = this.#segments.oldestOpen(this.#clock.now() - limits.journal_carry_ms);
        if (late) await carry(this.#journal, this.#segments, late);
        this.#wrong = undefined;
      } catch (error) {
        this.#tellWrong(error);
      }
    });
    this.#sweep();
  }
}

/** Whether a budget of the request starts anew now and then. */
function hasTurns({ budgets }: Ask): boolean {
  for (const { reset_interval } of budgets) if (reset_interval !== 'never') return true;
  return false;
}

/** A hold as the journal tells of it. */
function heldLines({ lines }: Hold): HeldLine[] {
  return lines.map(({ budget, window_start, share, granted }) => [budget.id, window_start, share + granted, granted]);
}

interface RegisterOptions {
  epoch_seen: number;
  acknowledged: Position;
  /** The store knows nothing after this position, which is before what it had acknowledged. */
  onForgotten: (known: Position) => void;
  clock: LedgerClock;
}

/**
 * Raises the node's epoch above the store's and the journal's. What the store forgot is told before: once it has registered
 * the node, nothing else tells, and whoever hears no answer to that asks again.
 */
async function register(store: LedgerStore, node: string, options: RegisterOptions): Promise<Registered> {
  const { epoch_seen, acknowledged, onForgotten, clock } = options;
  for (;;) {
    const known = await store.position(node);
    if (isBefore(known, acknowledged)) onForgotten(known);
    const registered = await store.register({ node, instance: randomUUID(), epoch_seen, known, at: clock.now() });
    // It may have been set back between the two.
    if (registered) return registered;
  }
}

/** Notes what the store forgot; what it was owed before is owed still. */
function owe(segments: Segments, position: Position): void {
  if (segments.owed === undefined || isBefore(position, segments.owed)) segments.owe(position);
}

/**
 * Replays what the slot's last owner left, under a new epoch, and records from then on. A store that knows less than the
 * journal saw acknowledged was restored from a backup: it gets again what it forgot.
 */
export async function startNode(slot: Slot, options: RecorderOptions): Promise<Node> {
  const { store, clock, log } = options;
  const onDamage = (file: string, at: number) =>
    log.error({ file, at }, 'an archived journal segment is damaged; its readable part is used');
  const segments = new Segments(slot.dir, {
    disk: options.disk,
    keep: options.journal_keep,
    onDamage,
    onGivenUp: ({ name, bytes, closed_at }) => {
      const facts = { dir: slot.dir, segment: name, bytes, age_ms: clock.now() - (closed_at ?? 0) };
      log.warn(facts, SHORT_OF_SPACE);
    },
  });
  const left = replay(segments);
  if (options.journal_sync === 'group') await segments.sync();
  // Before anything is registered or written: a gateway that ends here finds everything as it was.
  const found = await lookUpAll(left.unknown, options);
  const endOf = (attempt: Unfinished): Outcome => {
    const told = found.get(attempt.id);
    const is_sound = told === undefined || isMoney(told.cost_nano);
    if (!is_sound)
      log.error({ generation: attempt.id, told }, 'the usage that a provider reports for an attempt is not valid');
    return outcomeOf(attempt, options.unknown_outcome, is_sound ? told : undefined);
  };
  const ended = left.unknown.map(endOf);
  const registered = await register(store, slot.node, {
    epoch_seen: segments.epoch,
    acknowledged: await lastAcknowledged(segments),
    onForgotten: (known) => owe(segments, known),
    clock,
  });
  if (left.lost.length > 0) {
    const files = left.lost.map(({ name }) => name);
    log.warn(
      { node: slot.node, files },
      'the end of a journal file was lost in a power failure; the files that continue it are dropped',
    );
    segments.discard(left.lost);
  }
  const node = new Node(slot, segments, registered, options);
  try {
    await node.replay(left, { ended, last: readLastRun(slot.dir, segments.disk) });
    return node;
  } catch (error) {
    await node.stop();
    throw error;
  }
}
