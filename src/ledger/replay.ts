import type { TokenClasses } from '../schemas/inner.ts';
import type { GenerationRecord, JournalRecord } from './records.ts';
import { epochOf, type Segment, type Segments } from './segments.ts';
import { type Settle, toSettle } from './settle.ts';

/** What a journal says that its last owner did not finish. */
export interface Replay {
  /** Attempts without an outcome, as the generation each becomes. */
  unknown: GenerationRecord[];
  /** Outcomes that the store has perhaps not seen, in the order of writing. */
  outcomes: Settle[];
}

/** What becomes of an attempt whose end nobody told: marked, with what was metered until then, charged nothing. */
function unknownOutcome(attempted: GenerationRecord, metered: TokenClasses | undefined): GenerationRecord {
  const usage = metered ?? attempted.usage;
  return {
    ...attempted,
    outcome: 'unknown',
    usage: { ...usage, estimated: true },
    cost_nano: 0,
    upstream_cost_nano: 0,
    charges: [],
  };
}

/** Reads what a slot's last owner left, and tells `segments` which files it stands in. */
export function replay(segments: Segments): Replay {
  const attempts = new Map<string, { record: GenerationRecord; metered: TokenClasses | undefined }>();
  const outcomes = new Map<string, GenerationRecord>();
  const take = (record: JournalRecord, segment: Segment) => {
    switch (record.t) {
      case 'A':
        if (outcomes.has(record.id)) return;
        segments.attempt(record.id, segment);
        attempts.set(record.id, { record: record.record, metered: undefined });
        return;
      case 'P': {
        const attempt = attempts.get(record.id);
        if (attempt) attempt.metered = record.usage;
        return;
      }
      case 'O':
        segments.outcome(record.id, segment);
        attempts.delete(record.id);
        outcomes.set(record.id, record.record);
        return;
      case 'F':
        segments.flushed(record.ids);
        for (const id of record.ids) outcomes.delete(id);
    }
  };
  for (const segment of segments.list) {
    if (segment.settled) continue;
    for (const record of segments.read(segment)) take(record, segment);
  }
  return {
    unknown: [...attempts.values()].map(({ record, metered }) => unknownOutcome(record, metered)),
    outcomes: [...outcomes.values()].map((record) => toSettle(record, JSON.stringify(record))),
  };
}

/**
 * Every kept outcome that a store may have forgotten: acknowledged in a later batch of this epoch than the store still
 * knows, or in a later epoch. Generation ids make it safe to send too many.
 */
export function forgottenBy(segments: Segments, store: { epoch: number; batch: number }): Settle[] {
  const outcomes = new Map<string, GenerationRecord>();
  const kept = new Set<string>();
  for (const segment of segments.list) {
    const epoch = epochOf(segment);
    for (const record of segments.read(segment)) {
      if (record.t === 'O') outcomes.set(record.id, record.record);
      else if (record.t === 'F') {
        const stillKnown = epoch < store.epoch || (epoch === store.epoch && record.batch <= store.batch);
        if (stillKnown) for (const id of record.ids) kept.add(id);
      }
    }
  }
  return [...outcomes].filter(([id]) => !kept.has(id)).map(([, record]) => toSettle(record, JSON.stringify(record)));
}
