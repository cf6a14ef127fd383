import { limits } from '../limits.ts';
import { MINUTE_MS } from '../schemas/rate-limit.ts';
import { Bucket, type BucketRow, type Counts, type Sample, zeroCounts } from './endpoint-bucket.ts';
import {
  countsOf,
  type EndpointRows,
  type Figures,
  figuresOf,
  isCurrent,
  NO_FIGURES,
  performanceOf,
  QUARTER,
} from './endpoint-windows.ts';
import { NO_PERFORMANCE, type Performance } from './health.ts';

/** Statistics of endpoints, from this process and from rows of others. Pure: the caller passes the time. */
export interface EndpointStatistics {
  /** Counts one attempt at the gateway's own account. */
  observe(endpointId: string, sample: Sample, nowMs: number): void;
  /** For routing: of the last five minutes, or of the last thirty if these have too few samples. */
  performance(endpointId: string, nowMs: number): Performance;
  /** For the public record. */
  figures(endpointId: string, nowMs: number): Figures;
  /** The calls of the last minutes, at most a day, on all nodes. */
  counts(endpointId: string, minutes: number, nowMs: number): Counts;
  /** Whether no process counted a call to it in the last `minutes`, at most a day. */
  isQuiet(endpointId: string, minutes: number, nowMs: number): boolean;
  /** Rows of this process that are not stored yet, oldest first, at most `rowsMax`. */
  unwritten(rowsMax: number): BucketRow[];
  /** Marks rows as stored, in the version that was passed. */
  written(rows: readonly BucketRow[]): void;
  /** Adds rows of other processes; a later row of the same process and time replaces the earlier one. */
  merge(rows: readonly (BucketRow & { run: string })[]): void;
  /** Removes rows that no window needs any more. */
  sweep(nowMs: number): void;
  /** The endpoints with statistics. */
  known(): Iterable<string>;
}

function charsOf({ sketches }: BucketRow): number {
  let chars = 0;
  for (const text of Object.values(sketches)) chars += text.length;
  return chars;
}

/** Keeps the statistics of endpoints: minutes of half an hour, quarter hours of a day. */
export function createEndpointStatistics(): EndpointStatistics {
  const books = new Map<string, EndpointRows>();
  const changed = new Set<Bucket>();
  let mergedRows = 0;
  let mergedChars = 0;

  function bookOf(endpointId: string): EndpointRows {
    const known = books.get(endpointId);
    if (known !== undefined) {
      // A provider that accepts any model name has any number of endpoints: the least recently used are removed first.
      if (books.size > limits.health_endpoints_max / 2) {
        books.delete(endpointId);
        books.set(endpointId, known);
      }
      return known;
    }
    if (books.size >= limits.health_endpoints_max) forget(books.keys().next().value ?? '');
    const book: EndpointRows = {
      minutes: new Map(),
      quarters: new Map(),
      merged: new Map(),
      windows: new Map(),
      performance: undefined,
    };
    books.set(endpointId, book);
    return book;
  }

  function drop(book: EndpointRows, place: string): void {
    const row = book.merged.get(place);
    if (row === undefined) return;
    book.merged.delete(place);
    mergedRows -= 1;
    mergedChars -= charsOf(row);
  }

  function forget(endpointId: string): void {
    const book = books.get(endpointId);
    if (book === undefined) return;
    for (const place of book.merged.keys()) drop(book, place);
    for (const bucket of [...book.minutes.values(), ...book.quarters.values()]) changed.delete(bucket);
    books.delete(endpointId);
  }

  function count(buckets: Map<number, Bucket>, place: Bucket['place'], sample: Sample): void {
    let bucket = buckets.get(place.start);
    if (bucket === undefined) {
      bucket = new Bucket(place);
      buckets.set(place.start, bucket);
    }
    bucket.count(sample);
    // The oldest unwritten rows are written first. If the store is down for long, they are dropped.
    changed.add(bucket);
    if (changed.size > limits.statistics_rows_max) changed.delete(changed.values().next().value as Bucket);
  }

  function sweep(nowMs: number): void {
    const minute = Math.floor(nowMs / MINUTE_MS);
    for (const [endpointId, book] of books) {
      for (const buckets of [book.minutes, book.quarters]) {
        for (const [start, bucket] of buckets) {
          if (isCurrent(bucket, minute)) {
            if (start < minute) bucket.compact();
            continue;
          }
          buckets.delete(start);
          changed.delete(bucket);
        }
      }
      for (const [place, row] of book.merged) {
        if (!isCurrent(row, minute)) drop(book, place);
      }
      if (book.minutes.size + book.quarters.size + book.merged.size === 0) books.delete(endpointId);
    }
  }

  return {
    observe(endpointId, sample, nowMs) {
      const minute = Math.floor(nowMs / MINUTE_MS);
      const book = bookOf(endpointId);
      const quarter = minute - (minute % QUARTER);
      count(book.minutes, { endpoint_id: endpointId, span: 1, start: minute }, sample);
      count(book.quarters, { endpoint_id: endpointId, span: QUARTER, start: quarter }, sample);
    },

    performance(endpointId, nowMs) {
      const book = books.size === 0 ? undefined : books.get(endpointId);
      if (book === undefined) return NO_PERFORMANCE;
      const { performance } = book;
      const ageMs = performance === undefined ? Number.POSITIVE_INFINITY : nowMs - performance.at_ms;
      if (performance !== undefined && ageMs >= 0 && ageMs < limits.performance_fresh_ms) return performance.value;
      const value = performanceOf(book, nowMs);
      book.performance = { at_ms: nowMs, value };
      return value;
    },

    figures(endpointId, nowMs) {
      const book = books.get(endpointId);
      return book === undefined ? NO_FIGURES : figuresOf(book, nowMs);
    },

    counts(endpointId, minutes, nowMs) {
      const book = books.get(endpointId);
      return book === undefined ? zeroCounts() : countsOf(book, minutes, nowMs);
    },

    isQuiet(endpointId, minutes, nowMs) {
      const book = books.get(endpointId);
      if (book === undefined) return true;
      const { successes, errors, rate_limited: rateLimited } = countsOf(book, minutes, nowMs);
      return successes + errors + rateLimited === 0;
    },

    unwritten(rowsMax) {
      const rows: BucketRow[] = [];
      for (const bucket of changed) {
        if (rows.length >= rowsMax) break;
        rows.push(bucket.row());
      }
      return rows;
    },

    written(rows) {
      for (const { endpoint_id: endpointId, span, start, version } of rows) {
        const book = books.get(endpointId);
        const bucket = (span === 1 ? book?.minutes : book?.quarters)?.get(start);
        if (bucket === undefined) continue;
        changed.delete(bucket);
        // Rows with newer samples move to the end of the queue.
        if (bucket.version !== version) changed.add(bucket);
      }
    },

    merge(rows) {
      for (const { run, ...row } of rows) {
        const book = bookOf(row.endpoint_id);
        const place = `${row.span} ${row.start} ${run}`;
        drop(book, place);
        if (mergedRows >= limits.statistics_rows_max) continue;
        // If rows of others take too much memory, only their counts are kept.
        const isFull = mergedChars + charsOf(row) > limits.statistics_chars_max;
        const kept = isFull ? { ...row, sketches: {} } : row;
        book.merged.set(place, kept);
        mergedRows += 1;
        mergedChars += charsOf(kept);
        book.windows.clear();
      }
    },

    sweep,
    known: () => books.keys(),
  };
}
