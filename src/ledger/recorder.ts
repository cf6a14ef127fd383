import type { TokenClasses } from '../schemas/inner.ts';
import type { Disk } from './journal/disk.ts';
import type { JournalSync } from './journal/journal.ts';
import type { UnknownOutcome } from './journal/replay.ts';
import type { JournalKeep } from './journal/retention.ts';
import type { Hold, HoldRequest, Preview } from './leases/hold.ts';
import type { LedgerClock } from './ledger-clock.ts';
import type { Lookup } from './lookup.ts';
import type { LedgerLog } from './pipe.ts';
import type { GenerationRecord, Metered, OpenRecord } from './records.ts';
import type { LedgerStore } from './settle.ts';

/** What a recorder needs: its folder, its store and its policies. */
export interface RecorderOptions {
  data_dir: string;
  store: LedgerStore;
  journal_sync: JournalSync;
  clock: LedgerClock;
  log: LedgerLog;
  /** The disk of the journal; by default the machine's. */
  disk?: Disk;
  /** How long acknowledged outcomes are kept, in case the store is set back; by default as in `limits`. */
  journal_keep?: JournalKeep;
  /** The charge for an attempt without an outcome. */
  unknown_outcome: UnknownOutcome;
  /** Asks the provider about such an attempt first. */
  lookup?: Lookup | undefined;
  /** Whether the store is known not to answer. If not set, that is never known. */
  isStoreAway?: (() => boolean) | undefined;
}

interface RecorderState {
  node: string;
  epoch: number;
  /** Outcomes that the store has not acknowledged. */
  unflushed: number;
  /** Of these, those that the store refuses while it accepts others. */
  refused: number;
  /** Outcomes that were stored without values that the store refuses, since the start. */
  reduced: number;
  /** Age of the oldest of them in milliseconds; 0 if there is none. */
  oldest_unflushed_ms: number;
  /** See `Recorder.admits`. */
  admitting: boolean;
  /** Why calls are refused, for an operator; undefined while they are admitted. */
  problem: string | undefined;
  /** Whether the last attempt to reach the store failed. */
  store_failing: boolean;
  /** Size of the journal on the disk, archived segments included. */
  journal_bytes: number;
  /** Size of the archived segments that were deleted early because the disk was short of space. */
  journal_discarded_bytes: number;
  /** Free space of the journal's disk. */
  disk_free_bytes: number;
  /** Batches that the store acknowledged. */
  batches: number;
  /** Money reserved for running requests, over all budgets. */
  held_nano: number;
  /** Money that the store has leased to this node, holds included. */
  leased_nano: number;
  /** Requests that wait for money. */
  waiting: number;
}

/** Reserves and settles the money of calls, and records their attempts and outcomes durably. Amounts are nano-USD. */
export interface Recorder {
  /**
   * Reserves money in every budget that the next attempt counts against, in all or in none, on top of what earlier attempts
   * of the same hold may have cost. Synchronous if the leases of this node suffice; otherwise the store is asked. Throws or
   * rejects with a 402 that names the budget, its limit and when it resets, or with a 503 if the store does not answer; the
   * hold is then unchanged.
   */
  reserve(request: HoldRequest, hold?: Hold): Hold | Promise<Hold>;
  /** As `reserve`, for the full amount and without the store. False if this node lacks the money; the hold is then unchanged. */
  reserveNow(request: HoldRequest, hold: Hold): boolean;
  /** What `reserve` would grant a request that has no hold. Reads the store and changes nothing. Rejects with a 503 if the store does not answer. */
  preview(request: HoldRequest): Promise<Preview>;
  /** Enlarges a running attempt's grant to `grantedNano` from this node's leases; false if they do not suffice. Durable when it resolves. */
  extend(hold: Hold, grantedNano: number): Promise<boolean>;
  /** The attempt that was reserved last has ended and may have cost `costNano`: kept reserved when the next one is reserved. */
  keep(hold: Hold, costNano: number, isByok: boolean): void;
  /** Releases a hold whose request has no recorded attempt. */
  release(hold: Hold): void;
  /**
   * Resolves when the attempt is durable: only then may bytes go upstream. Rejects with a 503 for the client if it cannot be
   * written, or if too many outcomes wait for the store and this is the first attempt of its request. `least`: what the
   * attempt is charged if nothing more becomes known of it and no budget reserves money for it.
   */
  attempt(attempt: {
    id: string;
    attempt: number;
    endpoint: string;
    record: OpenRecord;
    hold: Hold;
    least?: Metered | undefined;
  }): Promise<void>;
  /** Notes the usage and cost of a running attempt so far, for the case that its outcome is never recorded. Not durable when it returns. */
  progress(id: string, usage: TokenClasses, costNano: number): void;
  /**
   * Resolves when the outcome is in the journal, before the client sees the end of the answer. It is queued for the store
   * at once, once per id, and visible to `find`. Never rejects: if the journal fails, that is logged and the store still gets
   * the outcome. The hold is dropped and its cost (`cost_nano`, `byok_cost_nano`) counted at once; an invalid cost is handled
   * as in `lose`.
   */
  outcome(record: GenerationRecord, hold: Hold): Promise<void>;
  /**
   * Ends a call whose outcome is not known because of an internal fault: charged as if the gateway had been killed, or
   * released if no attempt was recorded. Never rejects.
   */
  lose(hold: Hold): Promise<void>;
  /** A generation that the store does not have yet. */
  find(id: string): GenerationRecord | undefined;
  /** Resolves when everything recorded so far is in the store. */
  flush(): Promise<void>;
  state(): RecorderState;
  /** Whether first attempts are accepted at the moment. Called for every request: it must cost nothing. */
  admits(): boolean;
  /** Flushes, closes the journal and releases the slot. What the store does not accept stays in the journal. */
  stop(): Promise<void>;
}
