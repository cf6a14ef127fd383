import { limits } from '../../limits.ts';
import type { LedgerClock } from '../ledger-clock.ts';
import type { LedgerLog } from '../pipe.ts';
import { carry } from './carry.ts';
import type { Journal } from './journal.ts';
import type { Segments } from './segments.ts';

/** Keeps the journal's files in order, in the background: archives settled segments, frees disk space, carries old open records forward. */
export class JournalUpkeep {
  readonly #journal: Journal;
  readonly #segments: Segments;
  readonly #clock: LedgerClock;
  readonly #log: LedgerLog;
  #running: Promise<void> = Promise.resolve();
  /** The last error that was logged; undefined once a check has succeeded. */
  #loggedError: string | undefined;

  constructor(options: { journal: Journal; segments: Segments; clock: LedgerClock; log: LedgerLog }) {
    this.#journal = options.journal;
    this.#segments = options.segments;
    this.#clock = options.clock;
    this.#log = options.log;
  }

  /** Resolves when the steps that were queued so far have ended. Never rejects. */
  get idle(): Promise<void> {
    return this.#running;
  }

  /** Archives settled segments and deletes those that were kept long enough. */
  sweep(): void {
    this.#running = this.#running
      .then(() => {
        const time = { now: this.#clock.now(), monotonic: this.#clock.monotonic() };
        return this.#segments.sweep(time, () => this.#journal.syncWritten());
      })
      .catch((error: unknown) => this.#log.error({ err: error }, 'settled journal segments could not be archived'));
  }

  /** While the disk is short of space, deletes what the store has acknowledged, the oldest first. */
  makeRoom(): void {
    const { retention } = this.#segments;
    if (retention.lackingBytes() <= 0) return;
    this.sweep();
    this.#running = this.#running.then(() => retention.makeRoom()).catch((error: unknown) => this.#logOnce(error));
  }

  /** Checks that the current file still exists, carries open records out of an old segment, and sweeps. */
  check(): void {
    this.#running = this.#running.then(async () => {
      try {
        this.#journal.checkLinked();
        const old = this.#segments.oldestOpen(this.#clock.now() - limits.journal_carry_ms);
        if (old) await carry(this.#journal, this.#segments, old);
        this.#loggedError = undefined;
      } catch (error) {
        this.#logOnce(error);
      }
    });
    this.sweep();
  }

  #logOnce(error: unknown): void {
    const message = String(error);
    if (message !== this.#loggedError) this.#log.error({ err: error }, 'the journal cannot be written');
    this.#loggedError = message;
  }
}
