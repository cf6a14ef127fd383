import type { JournalRecord } from '../records.ts';
import type { Journal } from './journal.ts';
import { lineOf } from './journal-format.ts';
import type { Segment } from './segment.ts';
import type { Segments } from './segments.ts';

/**
 * Writes the open records of a segment again that has been full for long, so that one call without an end does not keep
 * every later file. Rejects if the journal cannot be written.
 */
export async function carry(journal: Journal, segments: Segments, segment: Segment): Promise<void> {
  const attempts = new Map<string, JournalRecord>();
  const records = await segments.records(segment, ['A', 'O']);
  for (const record of records) if (record.t === 'A') attempts.set(record.id, record);
  // Records that are gathered for a write go before those that are appended here.
  journal.currentSegment();
  const carried = new Map<{ t: 'A' | 'O'; id: string }, Segment>();
  for (const record of records) {
    if ((record.t !== 'A' && record.t !== 'O') || !segments.isOpen(record, segment)) continue;
    if (record.t === 'O') {
      carried.set(record, journal.appendAgain(lineOf(record)));
    } else if (attempts.get(record.id) === record) {
      // If a newer record of the attempt exists, writing the older one again would make it the newest.
      const newest = segments.newestAttempt(record.id) ?? segment;
      const to = newest === segment ? journal.appendAgain(lineOf(record)) : newest;
      // The progress may now precede the attempt, or be in an archived file.
      const progress = segments.progressOf(record.id);
      if (progress !== undefined) journal.appendAgain(progress);
      carried.set(record, to);
    }
  }
  // Nothing is open if the file was deleted.
  if (carried.size === 0) return;
  await journal.sync();
  for (const [record, to] of carried) segments.move(record, to);
}
