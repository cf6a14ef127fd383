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

/** What a journal says that its last owner did not finish. */
export interface Replay {
  /** Attempts without an outcome; see `outcomeOf`. */
  unknown: Unfinished[];
  /** Outcomes that the store has perhaps not seen, in the order of writing. */
  outcomes: Settle[];
  /**
   * Files behind one of which a power loss took the end. Not read: their attempts may have been given money that the
   * outcomes which are gone had freed, and it would be charged twice.
   */
  lost: Segment[];
}

/** An outcome with what it is charged to. */
export interface Outcome {
  record: GenerationRecord;
  charges: Charged[];
}

/** What an attempt without an outcome costs: what was set aside for it, or, where its budgets are soft, what was metered of it. */
export type UnknownOutcome = 'hold' | 'metered';

/** An attempt as the journal tells of it. */
export interface Unfinished extends LostAttempt {
  hold: readonly HeldLine[];
  grant_nano: number;
  is_soft: boolean;
  /** What it is presumed to cost where nothing is set aside for it. */
  least: Metered | undefined;
  /** What was seen of it. */
  metered: Metered | undefined;
}

/** What an attempt is charged of which nothing is known but what was metered until its gateway was gone. */
function assumedCost({ hold, grant_nano, is_soft, least, metered }: Unfinished, policy: UnknownOutcome): number {
  const known_nano = metered?.cost_nano;
  // Without a budget nothing was set aside; what is presumed then follows the policy already.
  if (hold.length === 0) return Math.max(known_nano ?? 0, least?.cost_nano ?? 0);
  if (known_nano !== undefined && policy === 'metered' && is_soft) return known_nano;
  return Math.max(grant_nano, known_nano ?? 0);
}

/** What a record says of an end that nobody told. */
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

/** An attempt of which the provider could say what it came to; nobody was told its answer. */
function foundRecord({ record, endpoint, is_byok }: Unfinished, found: FoundAttempt): GenerationRecord {
  const { usage, cost_nano, charges, upstream_id } = found;
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
 * What becomes of an attempt whose end nobody told: what the provider says that it cost, where it could be asked; else
 * marked, with what was metered until then, and never silently free. Every budget is charged what earlier attempts may
 * have cost it, and what the last one did or may have.
 */
export function outcomeOf(unfinished: Unfinished, policy: UnknownOutcome, found: FoundAttempt | undefined): Outcome {
  const { record, hold, is_byok, least, metered = least } = unfinished;
  const cost_nano = found?.cost_nano ?? assumedCost(unfinished, policy);
  const charges = hold
    .map(([budget_id, window_start, held, granted]): Charged => {
      const amount = held - granted + (granted > 0 ? cost_nano : 0);
      return { budget_id, window_start, amount, cover: Math.min(amount, held) };
    })
    .filter(({ amount }) => amount > 0);
  const fees = (record.fees ?? []).reduce((sum, fee) => sum + fee.cost_nano, 0);
  const paid = record.attempts.reduce((sum, attempt) => sum + (attempt.is_byok ? 0 : attempt.cost_nano), fees);
  const byok = record.attempts.reduce((sum, attempt) => sum + (attempt.is_byok ? attempt.cost_nano : 0), 0);
  return {
    charges,
    record: {
      ...(found
        ? foundRecord(unfinished, found)
        : { ...NO_END, ...record, outcome: 'unknown', usage: { ...metered?.usage, estimated: true } }),
      is_byok,
      cost_nano: paid + (is_byok ? 0 : cost_nano),
      upstream_cost_nano: paid + byok + cost_nano,
      byok_cost_nano: byok + (is_byok ? cost_nano : 0),
    },
  };
}

/** Reads what a slot's last owner left, and tells `segments` which files it stands in. */
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
        if (segments.attempt(record.id, segment)) segments.repeated([record.id], segment);
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
          // Told again with a larger grant, it is the same attempt.
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
        segments.outcome(record.id, segment);
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

/** The last batch that the journal saw acknowledged. Its epoch alone, where the journal has no batch of it. */
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
 * Every kept outcome that a store may have forgotten which knows nothing after a position, one segment at a time.
 * Generation ids make it safe to send too many.
 */
export async function* forgottenSince(segments: Segments, position: Position): AsyncGenerator<Settle[]> {
  // The last acknowledgement counts: a store that was set back before had perhaps forgotten the first.
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
