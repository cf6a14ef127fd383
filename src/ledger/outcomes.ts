import { brokenRule } from '../errors.ts';
import { limits } from '../limits.ts';
import type { Journal } from './journal/journal.ts';
import { outcomeLine } from './journal/journal-format.ts';
import { recordOf } from './journal/record-values.ts';
import { outcomeOfUnfinished, type UnknownOutcome } from './journal/replay.ts';
import type { Hold, HoldLine } from './leases/hold.ts';
import type { LeaseBook } from './leases/lease-book.ts';
import type { LedgerLog, Pipe } from './pipe.ts';
import type { Charged, GenerationRecord, HeldLine } from './records.ts';
import { isCountable, type Settle, toSettle } from './settle.ts';

interface OutcomesOptions {
  journal: Journal;
  pipe: Pipe;
  book: LeaseBook;
  unknownOutcome: UnknownOutcome;
  log: LedgerLog;
}

/** The lines of a hold as the journal records them. */
export function heldLines({ lines }: Hold): HeldLine[] {
  return lines.map(({ budget, window_start, share, granted }) => [budget.id, window_start, share + granted, granted]);
}

/** Settles calls: the hold becomes a charge, the outcome goes to the journal and then to the store. Holds what the store has not acknowledged. */
export class Outcomes {
  readonly #options: OutcomesOptions;
  readonly #unflushed = new Map<string, Settle>();

  constructor(options: OutcomesOptions) {
    this.#options = options;
  }

  /** Whether calls may be admitted: few enough outcomes wait for the store. */
  get hasRoom(): boolean {
    return this.#unflushed.size < limits.journal_unflushed_records_max;
  }

  /** How many outcomes the store has not acknowledged. */
  get unflushed(): number {
    return this.#unflushed.size;
  }

  has(id: string): boolean {
    return this.#unflushed.has(id);
  }

  /** The journal's line of an outcome that the store has not acknowledged, in parts. */
  lineOf(id: string): readonly string[] | undefined {
    const settle = this.#unflushed.get(id);
    return settle && outcomeLine(settle.charged, settle.record);
  }

  /** See `Recorder.find`. */
  find(id: string): GenerationRecord | undefined {
    const settle = this.#unflushed.get(id);
    return settle && recordOf(settle.record);
  }

  /** See `Recorder.outcome`. */
  settle(generation: GenerationRecord, hold: Hold): Promise<void> {
    const { cost_nano, byok_cost_nano = 0, id } = generation;
    if (!isCountable(generation)) {
      this.#options.log.error(
        { generation: id, cost_nano, byok_cost_nano },
        'the cost of an outcome is not a valid amount',
      );
      return this.settleUnknown(hold);
    }
    return this.#end(generation, hold, ({ budget }) => cost_nano + (budget.include_byok ? byok_cost_nano : 0));
  }

  /** See `Recorder.lose`. */
  async settleUnknown(hold: Hold): Promise<void> {
    if (hold.attempt === undefined) return this.release(hold);
    const { attempt: number, endpoint, record, least } = hold.attempt;
    const { id, mode, granted_nano: grantNano } = hold;
    const attempt = { id, number, endpoint, record, is_byok: record.is_byok, least, metered: undefined };
    const unfinished = { ...attempt, hold: heldLines(hold), grant_nano: grantNano, is_soft: mode === 'soft' };
    const unknown = outcomeOfUnfinished(unfinished, this.#options.unknownOutcome, undefined);
    const isOf =
      ({ budget, window_start }: HoldLine) =>
      (charge: Charged) =>
        charge.budget_id === budget.id && charge.window_start === window_start;
    await this.#end(unknown.record, hold, (line) => unknown.charges.find(isOf(line))?.amount ?? 0);
  }

  /** See `Recorder.release`. */
  release(hold: Hold): void {
    this.#options.book.settle(hold, () => 0);
  }

  /** The hold becomes pending cost in one synchronous step: no other request can take its money in between. */
  #end(generation: GenerationRecord, hold: Hold, amountOf: (line: HoldLine) => number): Promise<void> {
    if (hold.is_settled) {
      brokenRule('settled_once', { generation: generation.id, cost_nano: generation.cost_nano });
      return Promise.resolve();
    }
    hold.is_settled = true;
    try {
      return this.#write(generation, this.#options.book.settle(hold, amountOf));
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** Records an outcome that a replay has determined; its charges are pending. */
  record(generation: GenerationRecord, charges: readonly Charged[]): Promise<void> {
    this.#options.book.addPending(charges);
    return this.#write(generation, charges);
  }

  /** Queues an outcome that the journal has already; its charges are pending. */
  requeue(settle: Settle): void {
    this.#options.book.addPending(settle.charges);
    this.#queue(settle);
  }

  /** The store has acknowledged these. */
  acknowledge(ids: readonly string[]): void {
    for (const id of ids) this.#unflushed.delete(id);
  }

  /** The outcome is queued for the store even if the journal cannot be written; its attempt stays open until one of the two has it. */
  #write(generation: GenerationRecord, charges: readonly Charged[]): Promise<void> {
    const { id } = generation;
    if (this.#unflushed.has(id)) return Promise.resolve();
    try {
      const settle = toSettle(generation, charges);
      const written = this.#options.journal.outcome(id, outcomeLine(settle.charged, settle.record));
      this.#queue(settle);
      return written.catch((error: unknown) => this.#notWritten(id, error));
    } catch (error) {
      this.#notWritten(id, error);
      return Promise.resolve();
    }
  }

  #notWritten(id: string, error: unknown): void {
    this.#options.log.error({ err: error, generation: id }, 'an outcome could not be written to the journal');
  }

  #queue(settle: Settle): void {
    this.#unflushed.set(settle.id, settle);
    this.#options.pipe.push(settle);
  }
}
