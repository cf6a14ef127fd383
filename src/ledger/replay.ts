import type { TokenClasses } from '../schemas/inner.ts';
import { JOURNAL_FORMAT } from './journal-format.ts';
import type { GenerationRecord, JournalRecord } from './records.ts';
import { epochOf, type Segment, type Segments } from './segments.ts';
import { isBefore, type Position, type Settle, toSettle } from './settle.ts';

/** What a journal says that its last owner did not finish. */
export interface Replay {
  /** Attempts without an outcome, as the generation each becomes. */
  unknown: GenerationRecord[];
  /** Outcomes that the store has perhaps not seen, in the order of writing. */
  outcomes: Settle[];
}

/**
 * What becomes of an attempt whose end nobody told: marked, with what was metered until then. It is charged nothing
 * itself; what earlier attempts of the call cost was known before it began.
 */
function unknownOutcome(attempted: GenerationRecord, metered: TokenClasses | undefined): GenerationRecord {
  const usage = metered ?? attempted.usage;
  const cost_nano = attempted.attempts.reduce((sum, attempt) => sum + attempt.cost_nano, 0);
  return {
    ...attempted,
    outcome: 'unknown',
    usage: { ...usage, estimated: true },
    cost_nano,
    upstream_cost_nano: cost_nano,
    charges: [],
  };
}

/** Reads what a slot's last owner left, and tells `segments` which files it stands in. */
export function replay(segments: Segments): Replay {
  const attempts = new Map<string, { record: GenerationRecord; metered: TokenClasses | undefined }>();
  const outcomes = new Map<string, GenerationRecord>();
  const take = (record: JournalRecord, segment: Segment) => {
    switch (record.t) {
      case 'S':
        if (record.format <= JOURNAL_FORMAT) return;
        throw new Error(
          `The journal ${segments.path(segment)} was written by a newer version of this program. ` +
            'Start the newer version, or move the file away to start without the requests it records.',
        );
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
  const kept = new Set<string>();
  const all = [...segments.list];
  for (const segment of all) {
    for (const record of await segments.records(segment, ['F'])) {
      if (record.t !== 'F' || isBefore(position, { epoch: epochOf(segment), batch: record.batch })) continue;
      for (const id of record.ids) kept.add(id);
    }
  }
  for (const segment of all) {
    const forgotten: Settle[] = [];
    for (const record of await segments.records(segment, ['O'])) {
      if (record.t !== 'O' || kept.has(record.id)) continue;
      forgotten.push(toSettle(record.record, JSON.stringify(record.record)));
    }
    if (forgotten.length > 0) yield forgotten;
  }
}
