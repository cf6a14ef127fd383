import { setTimeout as sleep } from 'node:timers/promises';
import type { Candidate } from './candidates.ts';
import { requestBytes } from './connection.ts';
import { ClosedLoop, type Load, OpenLoop, Streams } from './load.ts';
import { coreBusy_ms } from './process.ts';
import { ANSWER_MODEL, requestBody, STREAMS, type StreamShape, streamModel } from './workload.ts';

const RAMP_MS = 500;
/** Between the beginnings of long streams. */
const SPREAD_MS = 1;

/** What one window on one candidate gave; times are the whole window's. */
export interface Window {
  elapsed_ms: number;
  /** CPU time of the candidate's processes in the window. */
  cpu_ms: number;
  /** What others took of the candidate's core meanwhile; undefined where nothing is pinned. */
  foreign_cpu_ms: number | undefined;
  completed: number;
  failed: number;
  chunks: number;
  p50_ms: number;
  p99_ms: number;
  samples: number;
  generator_lag_ms: number;
}

/** The value below which the given share of the sorted samples lies; NaN where there are none. */
function percentile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

/** A window in which others took more of the server's core than this is measured again, so many times at most; the quietest counts. */
const FOREIGN_SHARE_MAX = 0.1;
const REPEATS_MAX = 2;

async function observe(candidate: Candidate, begin: () => Load, ramp_ms: number, window_ms: number): Promise<Window> {
  let quietest = await observeOnce(candidate, begin(), ramp_ms, window_ms);
  for (let repeat = 0; repeat < REPEATS_MAX && foreignShare(quietest) > FOREIGN_SHARE_MAX; repeat += 1) {
    const next = await observeOnce(candidate, begin(), ramp_ms, window_ms);
    if (foreignShare(next) < foreignShare(quietest)) quietest = next;
  }
  return quietest;
}

/** What part of the server's core others took in a window; 0 where it is not known. */
export function foreignShare(window: Window): number {
  return (window.foreign_cpu_ms ?? 0) / window.elapsed_ms;
}

async function observeOnce(candidate: Candidate, load: Load, ramp_ms: number, window_ms: number): Promise<Window> {
  try {
    await sleep(ramp_ms);
    const cpu_before_ms = candidate.program.usage().cpu_ms;
    // The upstream shares its core with the load by design.
    const core = candidate.name === 'direct' ? undefined : candidate.program.core;
    const busy_before_ms = coreBusy_ms(core);
    load.begin();
    const began_ms = performance.now();
    await sleep(window_ms);
    const elapsed_ms = performance.now() - began_ms;
    const tally = { ...load.tally };
    const cpu_ms = candidate.program.usage().cpu_ms - cpu_before_ms;
    const busy_after_ms = coreBusy_ms(core);
    const sorted = tally.samples_ms.toSorted((a, b) => a - b);
    return {
      elapsed_ms,
      cpu_ms,
      foreign_cpu_ms:
        busy_before_ms === undefined || busy_after_ms === undefined
          ? undefined
          : Math.max(0, busy_after_ms - busy_before_ms - cpu_ms),
      completed: tally.completed,
      failed: tally.failed,
      chunks: tally.chunks,
      p50_ms: percentile(sorted, 0.5),
      p99_ms: percentile(sorted, 0.99),
      samples: sorted.length,
      generator_lag_ms: tally.generator_lag_ms,
    };
  } finally {
    load.stop();
    await candidate.program.settle();
  }
}

const wholeRequest = (candidate: Candidate) => requestBytes(candidate.target, requestBody(ANSWER_MODEL, false));
const streamRequest = (candidate: Candidate, shape: StreamShape) =>
  requestBytes(candidate.target, requestBody(streamModel(shape), true));

/** As many whole answers as the candidate can give to so many connections. */
export function throughput(candidate: Candidate, connections: number, window_ms: number): Promise<Window> {
  const begin = () => new ClosedLoop(candidate.target.port, wholeRequest(candidate), connections);
  return observe(candidate, begin, RAMP_MS, window_ms);
}

/** The time of whole answers at a fixed rate. */
export function latency(candidate: Candidate, rate_per_second: number, window_ms: number): Promise<Window> {
  const begin = () => new OpenLoop(candidate.target.port, wholeRequest(candidate), rate_per_second);
  return observe(candidate, begin, RAMP_MS, window_ms);
}

/**
 * The time to the first text while so many streams run, each of a second at fifty chunks a second. They begin evenly over
 * that second and so go on evenly: begun together they would end together, and each second would be a burst and a lull.
 */
export function firstToken(candidate: Candidate, streams: number, window_ms: number): Promise<Window> {
  const { chunks, interval_ms } = STREAMS.first_token;
  const spread_ms = chunks * interval_ms;
  const request = streamRequest(candidate, STREAMS.first_token);
  const begin = () => new Streams(candidate.target.port, request, streams, spread_ms);
  return observe(candidate, begin, spread_ms + RAMP_MS, window_ms);
}

/** The CPU time of streamed chunks, a hundred a second on each of so many streams. */
export function chunkCpu(candidate: Candidate, streams: number, window_ms: number): Promise<Window> {
  const request = streamRequest(candidate, STREAMS.chunk_cpu);
  const begin = () => new Streams(candidate.target.port, request, streams, streams * SPREAD_MS);
  return observe(candidate, begin, streams * SPREAD_MS + RAMP_MS, window_ms);
}

/** Makes a fresh candidate's code hot, streamed and not. */
export async function warm(candidate: Candidate, window_ms: number): Promise<void> {
  await throughput(candidate, 32, window_ms);
  await firstToken(candidate, 50, window_ms);
}

export interface Memory {
  before_bytes: number;
  open_bytes: number;
  per_stream_bytes: number;
  streams: number;
}

/** Streams that are open before the first reading: the code has run, its heap has taken its first steps. */
const MEMORY_BASE_STREAMS = 20;
const MEMORY_BASE_MS = 2_000;

/**
 * What so many open streams weigh: resident memory before they open and while they are open. The process must be fresh:
 * a heap that was grown by earlier load would take them in unseen.
 */
export async function memory(candidate: Candidate, streams: number, hold_ms: number): Promise<Memory> {
  const request = streamRequest(candidate, STREAMS.memory);
  const base = new Streams(candidate.target.port, request, MEMORY_BASE_STREAMS, MEMORY_BASE_STREAMS * SPREAD_MS);
  let load: Load | undefined;
  try {
    await sleep(MEMORY_BASE_MS);
    const before_bytes = candidate.program.usage().rss_bytes;
    load = new Streams(candidate.target.port, request, streams, streams * SPREAD_MS);
    await sleep(streams * SPREAD_MS + hold_ms);
    const open_bytes = candidate.program.usage().rss_bytes;
    const open = load.tally.samples_ms.length;
    if (open !== streams || load.tally.failed > 0) throw new Error(`Only ${open} of ${streams} streams were open.`);
    return { before_bytes, open_bytes, per_stream_bytes: (open_bytes - before_bytes) / streams, streams };
  } finally {
    base.stop();
    load?.stop();
  }
}
