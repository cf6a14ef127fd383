import { limits } from '../limits.ts';
import { isDiskFull } from './journal/disk.ts';
import type { Journal } from './journal/journal.ts';
import { forgottenSince } from './journal/replay.ts';
import type { Segments } from './journal/segments.ts';
import type { LedgerClock } from './ledger-clock.ts';
import type { Outcomes } from './outcomes.ts';
import type { LedgerLog, Pipe } from './pipe.ts';
import type { Position } from './settle.ts';

interface ResendOptions {
  node: string;
  segments: Segments;
  journal: Journal;
  pipe: Pipe;
  outcomes: Outcomes;
  clock: LedgerClock;
  log: LedgerLog;
  /** Deletes acknowledged segments if the disk is short of space. */
  makeRoom: () => void;
  isStopped: () => boolean;
}

/** Sends a store that was set back what it forgot, a segment at a time, while the node serves. A new run supersedes the one before it. */
export class Resend {
  readonly #options: ResendOptions;
  #run = 0;
  #done: Promise<void> = Promise.resolve();

  constructor(options: ResendOptions) {
    this.#options = options;
  }

  /** Resolves when the current run has ended. Never rejects. */
  get done(): Promise<void> {
    return this.#done;
  }

  /** Sends every outcome after `position` again. */
  start(position: Position): void {
    const { node, log } = this.#options;
    const run = ++this.#run;
    log.warn({ node, position }, 'the store is older than the journal; sending the missing outcomes');
    this.#done = this.#send(run, position).catch((error: unknown) =>
      log.error({ err: error }, 'the missing outcomes could not all be sent; the next start tries again'),
    );
  }

  async #send(run: number, position: Position): Promise<void> {
    const { node, segments, pipe, outcomes, log } = this.#options;
    for await (const forgotten of forgottenSince(segments, position)) {
      if (run !== this.#run) return;
      for (const settle of forgotten) if (!outcomes.has(settle.id)) outcomes.requeue(settle);
      await pipe.flush();
    }
    if (run !== this.#run || pipe.state().aside > 0) return;
    // If the store is set back again, the journal must show that it acknowledged these again.
    await this.#sync(run);
    if (run !== this.#run) return;
    segments.clearOwed();
    log.info({ node }, 'the store has received all outcomes that it was missing');
  }

  /** If the disk is full, the segments that were just sent again are deleted to make room for the acknowledgements. */
  async #sync(run: number): Promise<void> {
    const { journal, segments, clock, makeRoom, isStopped } = this.#options;
    for (;;) {
      try {
        return await journal.sync();
      } catch (error) {
        if (!isDiskFull(error) || isStopped() || run !== this.#run) throw error;
      }
      segments.markResent();
      makeRoom();
      await new Promise<void>((resolve) => clock.setTimeout(resolve, limits.journal_retry_ms, true));
    }
  }
}
