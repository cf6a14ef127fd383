import { limits } from '../limits.ts';
import { Bucket, type BucketRow, type Counts, type Sample, type SketchName, zeroCounts } from './endpoint-bucket.ts';
import type { Percentiles, Performance } from './health.ts';
import { Sketch } from './sketch.ts';

const MINUTE_MS = 60_000;
/** What a day is counted in: minutes would be many, and nobody asks that closely. */
const QUARTER = 15;
const DAY = 24 * 60;
const LONG = 30;
const SHORT = 5;

/** What the public record of an endpoint tells of the last half hour, and how it was reached of late. */
export interface Figures {
  latency_last_30m: Percentiles | null;
  throughput_last_30m: Percentiles | null;
  uptime_last_5m: number | null;
  uptime_last_30m: number | null;
  uptime_last_1d: number | null;
}

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

interface Window {
  counts: Counts;
  sketches: Map<SketchName, Sketch>;
}

/** What is known of one endpoint. */
interface Book {
  minutes: Map<number, Bucket>;
  quarters: Map<number, Bucket>;
  /** Rows of other processes, by span, start and process. */
  theirs: Map<string, BucketRow>;
  /** What does not change any more, by the length of the window in minutes; dropped when others tell something. */
  windows: Map<number, { from: number; window: Window }>;
  performance: { at_ms: number; value: Performance } | undefined;
}

function newWindow(): Window {
  return { counts: zeroCounts(), sketches: new Map() };
}

function addCounts(into: Counts, from: Counts): void {
  into.successes += from.successes;
  into.errors += from.errors;
  into.rate_limited += from.rate_limited;
  into.tool_calls += from.tool_calls;
  into.tool_calls_valid += from.tool_calls_valid;
}

function sketchIn({ sketches }: Window, name: SketchName): Sketch {
  const known = sketches.get(name);
  if (known !== undefined) return known;
  const made = new Sketch();
  sketches.set(name, made);
  return made;
}

function addBucket(into: Window, bucket: Bucket, wants_sketches: boolean): void {
  addCounts(into.counts, bucket.counts);
  if (!wants_sketches) return;
  bucket.eachSketch((name, sketch) => sketchIn(into, name).merge(sketch));
  bucket.eachPacked((name, text) => sketchIn(into, name).mergePacked(text));
}

function addRow(into: Window, row: BucketRow): void {
  addCounts(into.counts, row);
  for (const [name, text] of Object.entries(row.sketches) as [SketchName, string][]) {
    sketchIn(into, name).mergePacked(text);
  }
}

/** What happened within so many minutes, this one included. A day in quarters of an hour, the one that it begins in left out. */
function windowOf(book: Book, minutes: number, now_ms: number, wants_sketches = true): Window {
  const minute = Math.floor(now_ms / MINUTE_MS);
  const from = minute - minutes + 1;
  const [buckets, span] = minutes > LONG ? [book.quarters, QUARTER] : [book.minutes, 1];
  const current = minute - (minute % span);
  const window = newWindow();
  const past = pastWindow(book, { minutes, from, current, span });
  addCounts(window.counts, past.counts);
  if (wants_sketches) for (const [name, sketch] of past.sketches) sketchIn(window, name).merge(sketch);
  const bucket = buckets.get(current);
  if (bucket !== undefined) addBucket(window, bucket, wants_sketches);
  return window;
}

/**
 * The same without what is being counted: what this process counted before, and what others told, whose rows come every few
 * seconds only.
 */
function pastWindow(
  book: Book,
  { minutes, from, current, span }: { minutes: number; from: number; current: number; span: number },
): Window {
  const known = book.windows.get(minutes);
  if (known?.from === from) return known.window;
  const window = newWindow();
  for (const bucket of (span === 1 ? book.minutes : book.quarters).values()) {
    if (bucket.start >= from && bucket.start !== current) addBucket(window, bucket, span === 1);
  }
  for (const row of book.theirs.values()) if (row.span === span && row.start >= from) addRow(window, row);
  book.windows.set(minutes, { from, window });
  return window;
}

function uptimeOf({ successes, errors }: Counts): number | null {
  const calls = successes + errors;
  return calls < limits.uptime_calls_min ? null : (successes / calls) * 100;
}

/** What was streamed tells it; where nothing was, whole answers give a bound: they come later than their first token would. */
function sketchOf(sketches: Window['sketches'], name: 'latency' | 'throughput'): Sketch | undefined {
  return sketches.get(name) ?? sketches.get(`whole_${name}`);
}

/**
 * What so many of a hundred calls do at least as well as. For throughput, where more is better, the p90 is what nine of ten
 * calls reach: so `provider.preferred_min_throughput` means it (public service, "Performance Thresholds").
 */
function percentilesOf({ sketches }: Window, name: 'latency' | 'throughput'): Percentiles | null {
  const sketch = sketchOf(sketches, name);
  if (sketch === undefined || sketch.count === 0) return null;
  const at = (share: number) => round(sketch.quantile(name === 'throughput' ? 1 - share : share));
  return { p50: at(0.5), p75: at(0.75), p90: at(0.9), p99: at(0.99) };
}

/** To three digits: more are not known. */
function round(value: number): number {
  return Number(value.toPrecision(3));
}

const NOTHING: Figures = {
  latency_last_30m: null,
  throughput_last_30m: null,
  uptime_last_5m: null,
  uptime_last_30m: null,
  uptime_last_1d: null,
};

const NO_PERFORMANCE: Performance = {
  latency_ms: null,
  throughput: null,
  uptime_5m: null,
  uptime_30m: null,
  uptime_1d: null,
  tool_success: null,
};

function performanceOf(book: Book, now_ms: number): Performance {
  const recent = windowOf(book, SHORT, now_ms);
  const is_enough = tells(recent, 'latency') && tells(recent, 'throughput');
  const half_hour = windowOf(book, LONG, now_ms, !is_enough);
  const day = windowOf(book, DAY, now_ms, false);
  const { tool_calls, tool_calls_valid } = day.counts;
  return {
    latency_ms: percentilesOf(tells(recent, 'latency') ? recent : half_hour, 'latency'),
    throughput: percentilesOf(tells(recent, 'throughput') ? recent : half_hour, 'throughput'),
    uptime_5m: uptimeOf(recent.counts),
    uptime_30m: uptimeOf(half_hour.counts),
    uptime_1d: uptimeOf(day.counts),
    tool_success: tool_calls < limits.uptime_calls_min ? null : tool_calls_valid / tool_calls,
  };
}

/** A few calls may all have been unlucky. */
function tells(window: Window, name: 'latency' | 'throughput'): boolean {
  return (sketchOf(window.sketches, name)?.count ?? 0) >= limits.percentile_calls_min;
}

function charsOf({ sketches }: BucketRow): number {
  let chars = 0;
  for (const text of Object.values(sketches)) chars += text.length;
  return chars;
}

function isCurrent({ span, start }: { span: number; start: number }, minute: number): boolean {
  return span === 1 ? start > minute - LONG : start > minute - DAY - QUARTER;
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

  function count(
    buckets: Map<number, Bucket>,
    { endpoint_id, span, start }: Bucket['place'],
    sample: Sample,
    now_ms: number,
  ): void {
    let bucket = buckets.get(start);
    if (bucket === undefined) {
      bucket = new Bucket({ endpoint_id, span, start });
      buckets.set(start, bucket);
    }
    bucket.count(sample);
    // Anew at the end: what waits longest is written first, but for what changes all the time.
    if (!changed.has(bucket)) changed.add(bucket);
    if (changed.size > limits.statistics_rows_max) sweep(now_ms);
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
      count(book.minutes, { endpoint_id, span: 1, start: minute }, sample, now_ms);
      count(book.quarters, { endpoint_id, span: QUARTER, start: minute - (minute % QUARTER) }, sample, now_ms);
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
      if (book === undefined) return NOTHING;
      const half_hour = windowOf(book, LONG, now_ms);
      return {
        latency_last_30m: percentilesOf(half_hour, 'latency'),
        throughput_last_30m: percentilesOf(half_hour, 'throughput'),
        uptime_last_5m: uptimeOf(windowOf(book, SHORT, now_ms, false).counts),
        uptime_last_30m: uptimeOf(half_hour.counts),
        uptime_last_1d: uptimeOf(windowOf(book, DAY, now_ms, false).counts),
      };
    },

    isQuiet(endpoint_id, minutes, now_ms) {
      const book = books.get(endpoint_id);
      if (book === undefined) return true;
      const { successes, errors, rate_limited } = windowOf(book, minutes, now_ms, false).counts;
      return successes + errors + rate_limited === 0;
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
