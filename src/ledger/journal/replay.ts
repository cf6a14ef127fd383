import type { FoundAttempt, LostAttempt } from '../lookup.ts';
import type {
  AttemptRecord,
  Charged,
  GenerationRecord,
  HeldLine,
  JournalRecord,
  Metered,
  OpenRecord,
} from '../records.ts';
import { isBefore, type Position, type Settle, toSettle } from '../settle.ts';
import { JOURNAL_FORMAT } from './journal-format.ts';
import { epochOf, type Segment } from './segment.ts';
import type { Segments } from './segments.ts';

/** The unfinished work of the last owner of a journal. */
export interface Replay {
  /** Attempts without an outcome; see `outcomeOfUnfinished`. */
  unknown: Unfinished[];
  /** Outcomes that the store has perhaps not seen, in the order of writing. */
  outcomes: Settle[];
  /**
   * Files that continue a file whose end a power loss took. They are not read: their attempts may have been granted money
   * that lost outcomes had freed, and it would be charged twice.
   */
  lost: Segment[];
}

/** An outcome with its charges. */
export interface Outcome {
  record: GenerationRecord;
  charges: Charged[];
}

/** The charge for an attempt without an outcome: its hold, or, if its budgets are soft, what was metered of it. */
export type UnknownOutcome = 'hold' | 'metered';

/** An attempt without an outcome, as recorded in the journal. */
export interface Unfinished extends LostAttempt {
  hold: readonly HeldLine[];
  grant_nano: number;
  is_soft: boolean;
  /** The least usage and cost that are charged for it if no budget reserves money for it. */
  least: Metered | undefined;
  /** Its last recorded progress. */
  metered: Metered | undefined;
}

/** The assumed cost of an attempt of which only the metered part is known. */
function assumedCost({ hold, grant_nano, is_soft, least, metered }: Unfinished, policy: UnknownOutcome): number {
  const knownNano = metered?.cost_nano;
  // Without a budget nothing is reserved; `least` follows the policy already.
  if (hold.length === 0) return Math.max(knownNano ?? 0, least?.cost_nano ?? 0);
  if (knownNano !== undefined && policy === 'metered' && is_soft) return knownNano;
  return Math.max(grant_nano, knownNano ?? 0);
}

/** The end of a record whose outcome is not known. */
const NO_END: Omit<GenerationRecord, keyof OpenRecord> = {
  upstream_id: null,
  outcome: 'unknown',
  cancelled: false,
  finish_reason: null,
  native_finish_reason: null,
  service_tier: null,
  latency: null,
  generation_time: null,
  usage: null,
  cost_nano: 0,
  upstream_cost_nano: 0,
  cache_discount_nano: null,
};

/** The record of an attempt whose usage the provider reported; its client received no answer. */
function reportedRecord({ record, endpoint, is_byok }: Unfinished, report: FoundAttempt): GenerationRecord {
  const { usage, cost_nano, charges, upstream_id } = report;
  const attempt: AttemptRecord = {
    endpoint_id: endpoint,
    provider_name: record.provider_name ?? '',
    model_permaslug: record.model,
    status: null,
    latency: null,
    is_byok,
    upstream_id,
    failure: 'gateway_gone',
    cost_nano,
    charges,
  };
  const attempts = [...record.attempts, attempt];
  return { ...NO_END, ...record, outcome: 'failed', finish_reason: 'error', upstream_id, usage, attempts };
}

/**
 * The outcome of an attempt whose end is not known: the cost that the provider reports, if it could be asked; otherwise an
 * estimate by `policy`, marked as such and never silently free. Every budget is charged what earlier attempts may have cost
 * it, and the cost of this one.
 */
export function outcomeOfUnfinished(
  unfinished: Unfinished,
  policy: UnknownOutcome,
  report: FoundAttempt | undefined,
): Outcome {
  const { record, hold, is_byok, least, metered = least } = unfinished;
  const costNano = report?.cost_nano ?? assumedCost(unfinished, policy);
  const charges = hold
    .map(([budgetId, windowStart, held, granted]): Charged => {
      const amount = held - granted + (granted > 0 ? costNano : 0);
      return { budget_id: budgetId, window_start: windowStart, amount, cover: Math.min(amount, held) };
    })
    .filter(({ amount }) => amount > 0);
  const fees = (record.fees ?? []).reduce((sum, fee) => sum + fee.cost_nano, 0);
  const paid = record.attempts.reduce((sum, attempt) => sum + (attempt.is_byok ? 0 : attempt.cost_nano), fees);
  const byok = record.attempts.reduce((sum, attempt) => sum + (attempt.is_byok ? attempt.cost_nano : 0), 0);
  return {
    charges,
    record: {
      ...(report
        ? reportedRecord(unfinished, report)
        : { ...NO_END, ...record, outcome: 'unknown', usage: { ...metered?.usage, estimated: true } }),
      is_byok,
      cost_nano: paid + (is_byok ? 0 : costNano),
      upstream_cost_nano: paid + byok + costNano,
      byok_cost_nano: byok + (is_byok ? costNano : 0),
    },
  };
}

/** Reads what a slot's last owner left, and registers in `segments` which file has which open record. Throws on damage or a newer format. */
export function replay(segments: Segments): Replay {
  const attempts = new Map<string, Unfinished>();
  const outcomes = new Map<string, Outcome>();
  const take = (record: JournalRecord, segment: Segment) => {
    switch (record.t) {
      case 'S':
        if (record.format <= JOURNAL_FORMAT) return;
        throw new Error(
          `The journal ${segments.path(segment)} was written by a newer version of this program. ` +
            'Start the newer version, or move the file away to start without the requests it records.',
        );
      case 'A': {
        if (outcomes.has(record.id)) return;
        if (segments.recorded('A', record.id, segment)) segments.repeated([record.id], segment);
        const known = attempts.get(record.id);
        attempts.set(record.id, {
          id: record.id,
          number: record.attempt,
          endpoint: record.endpoint,
          record: record.record,
          hold: record.hold ?? [],
          grant_nano: record.grant_nano ?? 0,
          is_soft: record.mode === 'soft',
          is_byok: record.is_byok ?? false,
          // A repeated record with a larger grant is the same attempt.
          least: record.least,
          metered: known?.number === record.attempt ? known.metered : undefined,
        });
        return;
      }
      case 'P': {
        const attempt = attempts.get(record.id);
        if (attempt) attempt.metered = { usage: record.usage, cost_nano: record.cost_nano ?? 0 };
        return;
      }
      case 'O':
        segments.recorded('O', record.id, segment);
        segments.written([record.id]);
        attempts.delete(record.id);
        outcomes.set(record.id, { record: record.record, charges: [...(record.charges ?? [])] });
        return;
      case 'F':
        segments.flushed(record.ids);
        for (const id of record.ids) outcomes.delete(id);
        return;
      case 'C':
    }
  };
  const lost = new Set<string>();
  const reached = new Map<string, number>();
  for (const segment of segments.list) {
    if (segment.settled) continue;
    const records = segments.read(segment);
    const after = records.find((record) => record.t === 'S')?.after;
    if (after !== undefined && (lost.has(after[0]) || (reached.get(after[0]) ?? after[1]) < after[1])) {
      lost.add(segment.name);
      continue;
    }
    reached.set(segment.name, segment.bytes);
    for (const record of records) take(record, segment);
  }
  return {
    unknown: [...attempts.values()],
    outcomes: [...outcomes.values()].map(({ record, charges }) => toSettle(record, charges)),
    lost: segments.list.filter(({ name }) => lost.has(name)),
  };
}

/** The last batch whose acknowledgement is in the journal; batch 0 of its epoch if there is none. */
export async function lastAcknowledged(segments: Segments): Promise<Position> {
  for (const segment of segments.list.toReversed()) {
    if (epochOf(segment) < segments.epoch) break;
    const batches = await segments.records(segment, ['F']);
    const last = batches.findLast((record) => record.t === 'F');
    if (last) return { epoch: segments.epoch, batch: last.batch };
  }
  return { epoch: segments.epoch, batch: 0 };
}

/**
 * Every kept outcome that a store may have forgotten if it knows nothing after `position`, one segment at a time. The store
 * drops those that it has, by generation id.
 */
export async function* forgottenSince(segments: Segments, position: Position): AsyncGenerator<Settle[]> {
  // The last acknowledgement counts: a store that was set back before may have forgotten the first.
  const acknowledged = new Map<string, Position>();
  const all = [...segments.list];
  for (const segment of all) {
    for (const record of await segments.records(segment, ['F'])) {
      if (record.t !== 'F') continue;
      const at = { epoch: epochOf(segment), batch: record.batch };
      for (const id of record.ids) acknowledged.set(id, at);
    }
  }
  const isKept = (id: string) => {
    const at = acknowledged.get(id);
    return at !== undefined && !isBefore(position, at);
  };
  for (const segment of all) {
    const forgotten: Settle[] = [];
    for (const record of await segments.records(segment, ['O'])) {
      if (record.t !== 'O' || isKept(record.id)) continue;
      forgotten.push(toSettle(record.record, record.charges ?? []));
    }
    if (forgotten.length > 0) yield forgotten;
  }
}
