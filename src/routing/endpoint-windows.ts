import { MINUTE_MS } from '../schemas/rate-limit.ts';
import { type Bucket, type BucketRow, type Counts, type SketchName, zeroCounts } from './endpoint-bucket.ts';
import type { Percentiles, Performance } from './health.ts';
import { Sketch } from './sketch.ts';

/** The fewest calls for a share. If the last five minutes have fewer, those of the last thirty are added. */
export const UPTIME_CALLS_MIN = 10;
export const PERCENTILE_CALLS_MIN = 10;

/** The span of the buckets of a day, in minutes. */
export const QUARTER = 15;
const DAY = 24 * 60;
const LONG = 30;
const SHORT = 5;
/** The number of spans that another process's clock may be ahead of ours. */
const AHEAD = 1;

/** The public statistics of an endpoint: the last half hour, and recent uptimes. */
export interface Figures {
  latency_last_30m: Percentiles | null;
  throughput_last_30m: Percentiles | null;
  /** The number of calls behind the latency. */
  samples_last_30m: number;
  uptime_last_5m: number | null;
  uptime_last_30m: number | null;
  uptime_last_1d: number | null;
}

interface Window {
  counts: Counts;
  sketches: Map<SketchName, Sketch>;
}

/** All rows of one endpoint. */
export interface EndpointRows {
  minutes: Map<number, Bucket>;
  quarters: Map<number, Bucket>;
  /** Rows of other processes, by span, start and process. */
  merged: Map<string, BucketRow>;
  /** Cached parts of windows that do not change, by the window's length in minutes; cleared when rows of others are merged. */
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

function addBucket(into: Window, bucket: Bucket, withSketches: boolean): void {
  addCounts(into.counts, bucket.counts);
  if (!withSketches) return;
  bucket.eachSketch((name, sketch) => sketchIn(into, name).merge(sketch));
  bucket.eachPacked((name, text) => sketchIn(into, name).mergePacked(text));
}

function addRow(into: Window, row: BucketRow, withSketches: boolean): void {
  addCounts(into.counts, row);
  if (!withSketches) return;
  for (const [name, text] of Object.entries(row.sketches) as [SketchName, string][]) {
    sketchIn(into, name).mergePacked(text);
  }
}

/** The counts of the last minutes, including this one. A day is counted in quarter hours, without the one that it begins in. */
function windowOf(book: EndpointRows, minutes: number, nowMs: number, withSketches = true): Window {
  const minute = Math.floor(nowMs / MINUTE_MS);
  const from = minute - minutes + 1;
  const [buckets, span] = minutes > LONG ? [book.quarters, QUARTER] : [book.minutes, 1];
  const current = minute - (minute % span);
  const window = newWindow();
  const past = pastWindow(book, { minutes, from, current, span, wants_sketches: withSketches && span === 1 });
  addCounts(window.counts, past.counts);
  if (withSketches) for (const [name, sketch] of past.sketches) sketchIn(window, name).merge(sketch);
  const bucket = buckets.get(current);
  if (bucket !== undefined) addBucket(window, bucket, withSketches);
  return window;
}

/**
 * The window without the current bucket: earlier buckets of this process, and rows of others, which are merged only every few
 * seconds.
 */
function pastWindow(
  book: EndpointRows,
  range: { minutes: number; from: number; current: number; span: number; wants_sketches: boolean },
): Window {
  const { minutes, from, current, span, wants_sketches: withSketches } = range;
  const known = book.windows.get(minutes);
  if (known?.from === from && (known.has_sketches || !withSketches)) return known.window;
  const window = newWindow();
  for (const bucket of (span === 1 ? book.minutes : book.quarters).values()) {
    if (bucket.start >= from && bucket.start < current) addBucket(window, bucket, withSketches);
  }
  const until = current + span * AHEAD;
  for (const row of book.merged.values()) {
    if (row.span === span && row.start >= from && row.start <= until) addRow(window, row, withSketches);
  }
  book.windows.set(minutes, { from, window, has_sketches: withSketches });
  return window;
}

function uptimeOf({ successes, errors }: Counts): number | null {
  const calls = successes + errors;
  return calls < UPTIME_CALLS_MIN ? null : (successes / calls) * 100;
}

/** Times of streamed answers; without any, those of whole answers, which are an upper bound of the time to the first token. */
function sketchOf(sketches: Window['sketches'], name: 'latency' | 'throughput'): Sketch | undefined {
  return sketches.get(name) ?? sketches.get(`whole_${name}`);
}

/**
 * The value that this percentage of calls reaches or exceeds. For throughput, where more is better, nine of ten calls reach the p90:
 * this is the meaning of `provider.preferred_min_throughput` (public service, "Performance Thresholds").
 */
function percentilesOf({ sketches }: Window, name: 'latency' | 'throughput'): Percentiles | null {
  const sketch = sketchOf(sketches, name);
  if (sketch === undefined || sketch.count === 0) return null;
  const at = (share: number) => round(sketch.quantile(name === 'throughput' ? 1 - share : share));
  return { p50: at(0.5), p75: at(0.75), p90: at(0.9), p99: at(0.99) };
}

/** Rounds to three digits, the accuracy of the sketches. */
function round(value: number): number {
  return Number(value.toPrecision(3));
}

/** The figures of an endpoint without calls. */
export const NO_FIGURES: Figures = {
  latency_last_30m: null,
  throughput_last_30m: null,
  samples_last_30m: 0,
  uptime_last_5m: null,
  uptime_last_30m: null,
  uptime_last_1d: null,
};

/**
 * For routing: of the last five minutes, or of the last thirty if these have too few samples. Even a single call counts here: endpoints
 * that are only probed would otherwise never have a latency.
 */
export function performanceOf(book: EndpointRows, nowMs: number): Performance {
  const recent = windowOf(book, SHORT, nowMs);
  const isEnough = hasEnough(recent, 'latency') && hasEnough(recent, 'throughput');
  // Merging sketches is expensive, so it is done only if needed.
  const halfHour = windowOf(book, LONG, nowMs, !isEnough);
  const day = windowOf(book, DAY, nowMs, false);
  const { tool_calls: toolCalls, tool_calls_valid: toolCallsValid } = day.counts;
  const timed = hasEnough(recent, 'latency') ? recent : halfHour;
  return {
    latency_ms: percentilesOf(timed, 'latency'),
    ...(hasEnough(timed, 'latency') ? {} : { is_latency_thin: true as const }),
    throughput: percentilesOf(hasEnough(recent, 'throughput') ? recent : halfHour, 'throughput'),
    uptime_5m: uptimeOf(recent.counts),
    uptime_30m: uptimeOf(halfHour.counts),
    uptime_1d: uptimeOf(day.counts),
    tool_success: toolCalls < UPTIME_CALLS_MIN ? null : toolCallsValid / toolCalls,
  };
}

/** Whether a window has enough calls for a percentile. */
function hasEnough(window: Window, name: 'latency' | 'throughput'): boolean {
  return (sketchOf(window.sketches, name)?.count ?? 0) >= PERCENTILE_CALLS_MIN;
}

/** For the public record. Uptimes need several calls; latency and throughput are shown from the first call on. */
export function figuresOf(book: EndpointRows, nowMs: number): Figures {
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

/** The counts of the last minutes, at most a day. */
export function countsOf(book: EndpointRows, minutes: number, nowMs: number): Counts {
  return windowOf(book, minutes, nowMs, false).counts;
}

/** Whether a row is in a window, or will be soon: rows further ahead, of a wrong clock, are not kept. */
export function isCurrent({ span, start }: { span: number; start: number }, minute: number): boolean {
  if (start > minute + QUARTER) return false;
  return span === 1 ? start > minute - LONG : start > minute - DAY - QUARTER;
}
