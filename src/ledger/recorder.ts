import { setTimeout as sleep } from 'node:timers/promises';
import { limits } from '../limits.ts';
import type { TokenClasses } from '../schemas/inner.ts';
import { type Disk, nodeDisk } from './journal/disk.ts';
import type { JournalSync } from './journal/journal.ts';
import type { UnknownOutcome } from './journal/replay.ts';
import { type JournalKeep, lackingBytes } from './journal/retention.ts';
import { isLeftUndone } from './journal/segment.ts';
import { Segments } from './journal/segments.ts';
import { otherSlots, type Slot, slotDir, takeFirstSlot, takeSlot } from './journal/slot.ts';
import type { Ask, Hold, Preview } from './leases/hold.ts';
import type { LedgerClock, Timer } from './ledger-clock.ts';
import type { Lookup } from './lookup.ts';
import { startNode } from './node.ts';
import type { LedgerLog } from './pipe.ts';
import type { GenerationRecord, Metered, OpenRecord } from './records.ts';
import type { LedgerStore } from './settle.ts';

export interface RecorderOptions {
  data_dir: string;
  store: LedgerStore;
  journal_sync: JournalSync;
  clock: LedgerClock;
  log: LedgerLog;
  /** Where the journal is kept; the machine's own where none is given. */
  disk?: Disk;
  /** How long what the store has is kept, should it be set back; by default as `limits` say. */
  journal_keep?: JournalKeep;
  /** What an attempt is charged whose end was never told. */
  unknown_outcome: UnknownOutcome;
  /** Asked about such an attempt first. */
  lookup?: Lookup | undefined;
  /** Whether the store is known not to answer; absent: that is not known. */
  isStoreAway?: (() => boolean) | undefined;
}

interface RecorderState {
  node: string;
  epoch: number;
  /** Outcomes that the store has not acknowledged. */
  unflushed: number;
  /** Of these, what the store refuses while it takes others. */
  refused: number;
  /** Age of the oldest of them; 0 when there is none. */
  oldest_unflushed_ms: number;
  /** See `Recorder.admits`. */
  admitting: boolean;
  /** Why not, for an operator; undefined while it admits. */
  problem: string | undefined;
  /** Whether the last try to reach the store failed. */
  store_failing: boolean;
  /** What the journal takes on the disk, settled segments included. */
  journal_bytes: number;
  /** Settled segments that were deleted before their time because the disk was short of space. */
  journal_given_up_bytes: number;
  /** What the journal's disk has left. */
  disk_free_bytes: number;
  /** Batches that the store acknowledged. */
  batches: number;
  /** Money reserved for running requests, over all limits. */
  held_nano: number;
  /** Set aside for this node by the store, holds included. */
  leased_nano: number;
  /** Requests that wait for money. */
  waiting: number;
}

/** What the inference flow tells about a call: what it may cost, before the send, on the way, at the end. */
export interface Recorder {
  /**
   * Sets money aside in every budget that the next attempt counts against, in all or in none, on top of what earlier
   * attempts of the same hold may have cost. At once where this node has the money; after a question to the store where
   * it has not. Throws, or rejects with, a 402 that names the budget, its limit and when it starts anew, or a 503 where
   * the store does not answer; the hold is then as it was.
   */
  reserve(ask: Ask, hold?: Hold): Hold | Promise<Hold>;
  /** The same with all that is asked, where this node has it; else false, and the hold is as it was. */
  reserveNow(ask: Ask, hold: Hold): boolean;
  /** What `reserve` would come to for a request that has nothing set aside. Asks the store, and changes nothing. Rejects with a 503 where it does not answer. */
  preview(ask: Ask): Promise<Preview>;
  /** Enlarges a running attempt's grant to `granted_nano` from money that this node has; false where it has not enough. Durable when it resolves. */
  extend(hold: Hold, granted_nano: number): Promise<boolean>;
  /** The attempt that was reserved last has ended and may have cost this much: kept aside when the next one is reserved. */
  keep(hold: Hold, cost_nano: number, is_byok: boolean): void;
  /** Gives a hold up of whose request nothing was recorded. */
  release(hold: Hold): void;
  /**
   * Resolves when the attempt is durable: only then may bytes go upstream. Rejects with a 503 for the client when it
   * cannot be written, or when too many outcomes wait for the store and this is the first attempt of its request. `least`: what it
   * is charged if nobody ever tells more of it, where nothing is set aside for it.
   */
  attempt(attempt: {
    id: string;
    attempt: number;
    endpoint: string;
    record: OpenRecord;
    hold: Hold;
    least?: Metered | undefined;
  }): Promise<void>;
  /** A better estimate, should the end never be told: what was used, and what it costs so far. Never waited for. */
  progress(id: string, usage: TokenClasses, cost_nano: number): void;
  /**
   * Resolves when the outcome is in the journal, before the client is told the end; from the call on it is queued for
   * the store, once per id, and `find` knows it. Never rejects: where the journal fails it is logged, and the store
   * still gets the outcome. The hold is dropped and its cost (`cost_nano`, `byok_cost_nano`) counted at once; a cost that
   * cannot be counted is a fault of ours, as in `lose`.
   */
  outcome(record: GenerationRecord, hold: Hold): Promise<void>;
  /**
   * What became of a call cannot be told, by a fault of ours: it is charged as if its gateway had been killed, or given up
   * where nothing of it was recorded. Never rejects.
   */
  lose(hold: Hold): Promise<void>;
  /** A generation that the store does not have yet. */
  find(id: string): GenerationRecord | undefined;
  /** Resolves when everything recorded so far is in the store. */
  flush(): Promise<void>;
  state(): RecorderState;
  /** False: a first attempt that comes now is refused. Asked by every request, so it costs nothing. */
  admits(): boolean;
  /** Flushes, closes the journal, gives the slot back. What the store does not take stays in the journal. */
  stop(): Promise<void>;
}

/**
 * Looks after slots that nobody came back for: their outcomes go to the store, their money back, and they are free again. A
 * gateway may die in a slot that no later one takes, so they are looked for as long as this one runs.
 */
class Adopter {
  readonly #own: Slot;
  readonly #options: RecorderOptions;
  readonly #timer: Timer;
  #adopting: Promise<void> | undefined;
  /** Slots whose journal cannot be replayed, and what is wrong where they cannot be looked for: told once. */
  readonly #told = new Map<number | 'all', string>();

  constructor(own: Slot, options: RecorderOptions) {
    this.#own = own;
    this.#options = options;
    this.#look(() => true);
    this.#timer = options.clock.setInterval(() => {
      if (this.#adopting !== undefined) return;
      // What gateways that are gone have settled makes room as well.
      const is_short = lackingBytes(options.disk ?? nodeDisk, own.dir) > 0;
      this.#look(is_short ? () => true : isLeftUndone);
    }, limits.slots_look_ms);
  }

  /** Once more at the end, so that a clean stop leaves nothing of those that died before it. */
  async stop(): Promise<void> {
    this.#options.clock.clearInterval(this.#timer);
    await this.#adopting;
    this.#look(isLeftUndone);
    await this.#adopting;
  }

  /** A slot that is looked into is taken for a moment, and who starts meanwhile takes another: only those that matter are. */
  #look(matters: (dir: string) => boolean): void {
    this.#adopting = this.#adoptAll(matters).finally(() => {
      this.#adopting = undefined;
    });
  }

  async #adoptAll(matters: (dir: string) => boolean): Promise<void> {
    const { data_dir } = this.#options;
    for (const index of this.#others()) {
      let slot: Slot | undefined;
      try {
        if (!matters(slotDir(data_dir, index))) continue;
        slot = takeSlot(data_dir, index);
        if (slot !== undefined) await adopt(slot, this.#options);
        this.#told.delete(index);
      } catch (error) {
        slot?.release();
        this.#tell(index, error, 'the journal of a stopped gateway could not be replayed');
      }
    }
  }

  /** None where the folder cannot be read, as where the process has no file descriptor left: the next look comes. */
  #others(): number[] {
    try {
      const others = otherSlots(this.#options.data_dir, this.#own.index);
      this.#told.delete('all');
      return others;
    } catch (error) {
      this.#tell('all', error, 'the journals of stopped gateways could not be searched');
      return [];
    }
  }

  #tell(slot: number | 'all', error: unknown, message: string): void {
    if (this.#told.get(slot) === String(error)) return;
    this.#told.set(slot, String(error));
    this.#options.log.error({ err: error, slot }, message);
  }
}

async function adopt(slot: Slot, options: RecorderOptions): Promise<void> {
  if (!isLeftUndone(slot.dir)) {
    // Nobody stays to see them grow old.
    const segments = new Segments(slot.dir, { disk: options.disk, keep: options.journal_keep });
    await segments.sweep({ now: options.clock.now() }, () => Promise.resolve());
    await segments.retention.makeRoom();
    slot.release();
    return;
  }
  options.log.info({ slot: slot.index, node: slot.node }, 'replaying the journal of a process that ended');
  const node = await startNode(slot, options);
  await Promise.race([node.resent, sleep(limits.flush_stop_ms_max, undefined, { ref: false })]);
  await node.stop();
}

/**
 * Takes a free slot of the data directory, replays what its last owner left, and records from then on. Fails with a
 * message where a journal is damaged. The holder of the first slot also replays slots that nobody took.
 */
export async function startRecorder(options: RecorderOptions): Promise<Recorder> {
  const slot = takeFirstSlot(options.data_dir);
  try {
    const recorder = await startNode(slot, options);
    if (slot.index !== 0) return recorder;
    const adopter = new Adopter(slot, options);
    return {
      ...recorder,
      stop: async () => {
        await adopter.stop();
        await recorder.stop();
      },
    };
  } catch (error) {
    slot.release();
    throw error;
  }
}
