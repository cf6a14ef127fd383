import { limits } from '../limits.ts';
import { MINUTE_MS } from '../schemas/rate-limit.ts';
import { Bucket, type BucketRow, type Sample } from './endpoint-bucket.ts';
import {
  type Book,
  callsOf,
  type Figures,
  figuresOf,
  isCurrent,
  NOTHING,
  performanceOf,
  QUARTER,
} from './endpoint-windows.ts';
import { NO_PERFORMANCE, type Performance } from './health.ts';

/** How endpoints did, by what this process saw and what others wrote down. Pure: times are given by the caller. */
export interface EndpointStatistics {
  /** Counts one attempt at the gateway's own account. */
  observe(endpoint_id: string, sample: Sample, now_ms: number): void;
  /** For routing: of the last five minutes, or of the last thirty where these tell too little. */
  performance(endpoint_id: string, now_ms: number): Performance;
  /** For the listing. */
  figures(endpoint_id: string, now_ms: number): Figures;
  /** Whether nobody counted anything of it for so many minutes, at most a day. */
  isQuiet(endpoint_id: string, minutes: number, now_ms: number): boolean;
  /** What this process has counted and not yet been told is written, oldest first; not more than so many. */
  unwritten(rows_max: number): BucketRow[];
  /** Those are in the store, as they were then. */
  written(rows: readonly BucketRow[]): void;
  /** What other processes have counted; a later row of the same process and time replaces the earlier one. */
  merge(rows: readonly (BucketRow & { run: string })[]): void;
  /** Forgets what no window reaches any more. */
  sweep(now_ms: number): void;
  /** Endpoints that anything is known of. */
  known(): Iterable<string>;
}

function charsOf({ sketches }: BucketRow): number {
  let chars = 0;
  for (const text of Object.values(sketches)) chars += text.length;
  return chars;
}

/** Keeps the statistics of endpoints: minutes of half an hour, quarter hours of a day. */
export function createEndpointStatistics(): EndpointStatistics {
  const books = new Map<string, Book>();
  const changed = new Set<Bucket>();
  let their_rows = 0;
  let their_chars = 0;

  function bookOf(endpoint_id: string): Book {
    const known = books.get(endpoint_id);
    if (known !== undefined) {
      // A provider that takes any model name makes any number of endpoints: what nobody asks for is forgotten first.
      if (books.size > limits.health_endpoints_max / 2) {
        books.delete(endpoint_id);
        books.set(endpoint_id, known);
      }
      return known;
    }
    if (books.size >= limits.health_endpoints_max) forget(books.keys().next().value ?? '');
    const book: Book = {
      minutes: new Map(),
      quarters: new Map(),
      theirs: new Map(),
      windows: new Map(),
      performance: undefined,
    };
    books.set(endpoint_id, book);
    return book;
  }

  function drop(book: Book, place: string): void {
    const row = book.theirs.get(place);
    if (row === undefined) return;
    book.theirs.delete(place);
    their_rows -= 1;
    their_chars -= charsOf(row);
  }

  function forget(endpoint_id: string): void {
    const book = books.get(endpoint_id);
    if (book === undefined) return;
    for (const place of book.theirs.keys()) drop(book, place);
    for (const bucket of [...book.minutes.values(), ...book.quarters.values()]) changed.delete(bucket);
    books.delete(endpoint_id);
  }

  function bucketOf(buckets: Map<number, Bucket>, endpoint_id: string, span: number, start: number): Bucket {
    const known = buckets.get(start);
    if (known !== undefined) return known;
    const made = new Bucket({ endpoint_id, span, start });
    buckets.set(start, made);
    return made;
  }

  function count(bucket: Bucket, sample: Sample): void {
    bucket.count(sample);
    // What waits longest is written first. Where a store takes nothing for long, it is what is never written.
    changed.add(bucket);
    if (changed.size > limits.statistics_rows_max) changed.delete(changed.values().next().value as Bucket);
  }

  function sweep(now_ms: number): void {
    const minute = Math.floor(now_ms / MINUTE_MS);
    for (const [endpoint_id, book] of books) {
      for (const buckets of [book.minutes, book.quarters]) {
        for (const [start, bucket] of buckets) {
          if (isCurrent(bucket, minute)) {
            if (start < minute) bucket.rest();
            continue;
          }
          buckets.delete(start);
          changed.delete(bucket);
        }
      }
      for (const [place, row] of book.theirs) {
        if (!isCurrent(row, minute)) drop(book, place);
      }
      if (book.minutes.size + book.quarters.size + book.theirs.size === 0) books.delete(endpoint_id);
    }
  }

  return {
    observe(endpoint_id, sample, now_ms) {
      const minute = Math.floor(now_ms / MINUTE_MS);
      const book = bookOf(endpoint_id);
      count(bucketOf(book.minutes, endpoint_id, 1, minute), sample);
      count(bucketOf(book.quarters, endpoint_id, QUARTER, minute - (minute % QUARTER)), sample);
    },

    performance(endpoint_id, now_ms) {
      const book = books.size === 0 ? undefined : books.get(endpoint_id);
      if (book === undefined) return NO_PERFORMANCE;
      const { performance } = book;
      const age_ms = performance === undefined ? Number.POSITIVE_INFINITY : now_ms - performance.at_ms;
      if (performance !== undefined && age_ms >= 0 && age_ms < limits.performance_fresh_ms) return performance.value;
      const value = performanceOf(book, now_ms);
      book.performance = { at_ms: now_ms, value };
      return value;
    },

    figures(endpoint_id, now_ms) {
      const book = books.get(endpoint_id);
      return book === undefined ? NOTHING : figuresOf(book, now_ms);
    },

    isQuiet(endpoint_id, minutes, now_ms) {
      const book = books.get(endpoint_id);
      return book === undefined || callsOf(book, minutes, now_ms) === 0;
    },

    unwritten(rows_max) {
      const rows: BucketRow[] = [];
      for (const bucket of changed) {
        if (rows.length >= rows_max) break;
        rows.push(bucket.row());
      }
      return rows;
    },

    written(rows) {
      for (const { endpoint_id, span, start, version } of rows) {
        const book = books.get(endpoint_id);
        const bucket = (span === 1 ? book?.minutes : book?.quarters)?.get(start);
        if (bucket === undefined) continue;
        changed.delete(bucket);
        // What was counted meanwhile waits behind the others.
        if (bucket.version !== version) changed.add(bucket);
      }
    },

    merge(rows) {
      for (const { run, ...row } of rows) {
        const book = bookOf(row.endpoint_id);
        const place = `${row.span} ${row.start} ${run}`;
        drop(book, place);
        if (their_rows >= limits.statistics_rows_max) continue;
        // Where they take too much, counts are what is left.
        const is_full = their_chars + charsOf(row) > limits.statistics_chars_max;
        const kept = is_full ? { ...row, sketches: {} } : row;
        book.theirs.set(place, kept);
        their_rows += 1;
        their_chars += charsOf(kept);
        book.windows.clear();
      }
    },

    sweep,
    known: () => books.keys(),
  };
}
