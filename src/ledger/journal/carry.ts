import type { JournalRecord } from '../records.ts';
import type { Journal } from './journal.ts';
import { lineOf } from './journal-format.ts';
import type { Segment } from './segment.ts';
import type { Segments } from './segments.ts';

/**
 * Writes again what is still open of a segment that has been full for long, so that one call without an end does not
 * keep every file behind it.
 */
export async function carry(journal: Journal, segments: Segments, segment: Segment): Promise<void> {
  const attempts = new Map<string, JournalRecord>();
  const records = await segments.records(segment, ['A', 'O']);
  for (const record of records) if (record.t === 'A') attempts.set(record.id, record);
  // What is gathered is in its place before anything is put behind it.
  journal.written();
  const carried = new Map<{ t: 'A' | 'O'; id: string }, Segment>();
  for (const record of records) {
    if ((record.t !== 'A' && record.t !== 'O') || !segments.isOpen(record, segment)) continue;
    if (record.t === 'O') {
      carried.set(record, journal.appendAgain(lineOf(record)));
    } else if (attempts.get(record.id) === record) {
      // Behind a newer one, an older one would be taken for the newest.
      const newest = segments.newestAttempt(record.id) ?? segment;
      const to = newest === segment ? journal.appendAgain(lineOf(record)) : newest;
      // It may stand in front of the attempt now, or in a file that is put away.
      const progress = segments.progressOf(record.id);
      if (progress !== undefined) journal.appendAgain(progress);
      carried.set(record, to);
    }
  }
  // Its file may be gone.
  if (carried.size === 0) return;
  await journal.sync();
  for (const [record, to] of carried) segments.move(record, to);
}
