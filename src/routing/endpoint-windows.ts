import { limits } from '../limits.ts';
import { MINUTE_MS } from '../schemas/rate-limit.ts';
import { type Bucket, type BucketRow, type Counts, type SketchName, zeroCounts } from './endpoint-bucket.ts';
import type { Percentiles, Performance } from './health.ts';
import { Sketch } from './sketch.ts';

/** What a day is counted in, in minutes: single ones would be many, and nobody asks that closely. */
export const QUARTER = 15;
const DAY = 24 * 60;
const LONG = 30;
const SHORT = 5;
/** By so many spans another process's clock may be ahead of ours. */
const AHEAD = 1;

/** What the public record of an endpoint tells of the last half hour, and how it was reached of late. */
export interface Figures {
  latency_last_30m: Percentiles | null;
  throughput_last_30m: Percentiles | null;
  /** How many calls the latency is of. */
  samples_last_30m: number;
  uptime_last_5m: number | null;
  uptime_last_30m: number | null;
  uptime_last_1d: number | null;
}

interface Window {
  counts: Counts;
  sketches: Map<SketchName, Sketch>;
}

/** What is known of one endpoint. */
export interface Book {
  minutes: Map<number, Bucket>;
  quarters: Map<number, Bucket>;
  /** Rows of other processes, by span, start and process. */
  theirs: Map<string, BucketRow>;
  /** What does not change any more, by the length of the window in minutes; dropped when others tell something. */
  windows: Map<number, { from: number; window: Window; has_sketches: boolean }>;
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

function addBucket(into: Window, bucket: Bucket, wantsSketches: boolean): void {
  addCounts(into.counts, bucket.counts);
  if (!wantsSketches) return;
  bucket.eachSketch((name, sketch) => sketchIn(into, name).merge(sketch));
  bucket.eachPacked((name, text) => sketchIn(into, name).mergePacked(text));
}

function addRow(into: Window, row: BucketRow, wantsSketches: boolean): void {
  addCounts(into.counts, row);
  if (!wantsSketches) return;
  for (const [name, text] of Object.entries(row.sketches) as [SketchName, string][]) {
    sketchIn(into, name).mergePacked(text);
  }
}

/** What happened within so many minutes, this one included. A day in quarters of an hour, the one that it begins in left out. */
function windowOf(book: Book, minutes: number, nowMs: number, wantsSketches = true): Window {
  const minute = Math.floor(nowMs / MINUTE_MS);
  const from = minute - minutes + 1;
  const [buckets, span] = minutes > LONG ? [book.quarters, QUARTER] : [book.minutes, 1];
  const current = minute - (minute % span);
  const window = newWindow();
  const past = pastWindow(book, { minutes, from, current, span, wants_sketches: wantsSketches && span === 1 });
  addCounts(window.counts, past.counts);
  if (wantsSketches) for (const [name, sketch] of past.sketches) sketchIn(window, name).merge(sketch);
  const bucket = buckets.get(current);
  if (bucket !== undefined) addBucket(window, bucket, wantsSketches);
  return window;
}

/**
 * The same without what is being counted: what this process counted before, and what others told, whose rows come every few
 * seconds only.
 */
function pastWindow(
  book: Book,
  asked: { minutes: number; from: number; current: number; span: number; wants_sketches: boolean },
): Window {
  const { minutes, from, current, span, wants_sketches: wantsSketches } = asked;
  const known = book.windows.get(minutes);
  if (known?.from === from && (known.has_sketches || !wantsSketches)) return known.window;
  const window = newWindow();
  for (const bucket of (span === 1 ? book.minutes : book.quarters).values()) {
    if (bucket.start >= from && bucket.start < current) addBucket(window, bucket, wantsSketches);
  }
  const until = current + span * AHEAD;
  for (const row of book.theirs.values()) {
    if (row.span === span && row.start >= from && row.start <= until) addRow(window, row, wantsSketches);
  }
  book.windows.set(minutes, { from, window, has_sketches: wantsSketches });
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

/** Of an endpoint that nobody called. */
export const NOTHING: Figures = {
  latency_last_30m: null,
  throughput_last_30m: null,
  samples_last_30m: 0,
  uptime_last_5m: null,
  uptime_last_30m: null,
  uptime_last_1d: null,
};

/**
 * For routing: of the last five minutes, or of the last thirty where these tell too little. What one call tells is better than
 * nothing here: who is only probed would else never be known.
 */
export function performanceOf(book: Book, nowMs: number): Performance {
  const recent = windowOf(book, SHORT, nowMs);
  const isEnough = tells(recent, 'latency') && tells(recent, 'throughput');
  // Adding up sketches is what takes time.
  const halfHour = windowOf(book, LONG, nowMs, !isEnough);
  const day = windowOf(book, DAY, nowMs, false);
  const { tool_calls: toolCalls, tool_calls_valid: toolCallsValid } = day.counts;
  const timed = tells(recent, 'latency') ? recent : halfHour;
  return {
    latency_ms: percentilesOf(timed, 'latency'),
    ...(tells(timed, 'latency') ? {} : { is_latency_thin: true as const }),
    throughput: percentilesOf(tells(recent, 'throughput') ? recent : halfHour, 'throughput'),
    uptime_5m: uptimeOf(recent.counts),
    uptime_30m: uptimeOf(halfHour.counts),
    uptime_1d: uptimeOf(day.counts),
    tool_success: toolCalls < limits.uptime_calls_min ? null : toolCallsValid / toolCalls,
  };
}

/** A few calls may all have been unlucky. */
function tells(window: Window, name: 'latency' | 'throughput'): boolean {
  return (sketchOf(window.sketches, name)?.count ?? 0) >= limits.percentile_calls_min;
}

/** For the listing. How often an endpoint answers few calls do not tell; how fast it is, the first one does. */
export function figuresOf(book: Book, nowMs: number): Figures {
  const halfHour = windowOf(book, LONG, nowMs);
  return {
    latency_last_30m: percentilesOf(halfHour, 'latency'),
    throughput_last_30m: percentilesOf(halfHour, 'throughput'),
    samples_last_30m: sketchOf(halfHour.sketches, 'latency')?.count ?? 0,
    uptime_last_5m: uptimeOf(windowOf(book, SHORT, nowMs, false).counts),
    uptime_last_30m: uptimeOf(halfHour.counts),
    uptime_last_1d: uptimeOf(windowOf(book, DAY, nowMs, false).counts),
  };
}

/** Calls of so many minutes, whatever came of them. */
export function callsOf(book: Book, minutes: number, nowMs: number): number {
  const { successes, errors, rate_limited: rateLimited } = windowOf(book, minutes, nowMs, false).counts;
  return successes + errors + rateLimited;
}

/** Whether a window reaches it, or will soon: what a clock that was wrong put further ahead would be kept until then. */
export function isCurrent({ span, start }: { span: number; start: number }, minute: number): boolean {
  if (start > minute + QUARTER) return false;
  return span === 1 ? start > minute - LONG : start > minute - DAY - QUARTER;
}
