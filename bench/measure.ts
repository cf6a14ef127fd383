import { setTimeout as sleep } from 'node:timers/promises';
import type { Candidate } from './candidates.ts';
import { requestBytes } from './connection.ts';
import { ClosedLoop, type Load, OpenLoop, Streams } from './load.ts';
import { coreBusyMs } from './process.ts';
import { ANSWER_MODEL, requestBody, STREAMS, type StreamShape, streamModel } from './workload.ts';

const RAMP_MS = 500;
/** The interval between the starts of long streams. */
const SPREAD_MS = 1;

/** The result of one window on one candidate. Times are those of the whole window. */
export interface Window {
  elapsed_ms: number;
  /** CPU time of the candidate's processes in the window. */
  cpu_ms: number;
  /** CPU time that other processes took from the candidate's core meanwhile; undefined without pinning. */
  foreign_cpu_ms: number | undefined;
  completed: number;
  failed: number;
  chunks: number;
  p50_ms: number;
  p99_ms: number;
  samples: number;
  generator_lag_ms: number;
}

/** The quantile of sorted samples. NaN if there are none. */
function percentile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

/**
 * A window in which other processes took more of the server's core than this is measured again, at most this often; the
 * quietest window counts.
 */
const FOREIGN_SHARE_MAX = 0.1;
const REPEATS_MAX = 2;

async function observe(candidate: Candidate, begin: () => Load, rampMs: number, windowMs: number): Promise<Window> {
  let quietest = await observeOnce(candidate, begin(), rampMs, windowMs);
  for (let repeat = 0; repeat < REPEATS_MAX && foreignShare(quietest) > FOREIGN_SHARE_MAX; repeat += 1) {
    const next = await observeOnce(candidate, begin(), rampMs, windowMs);
    if (foreignShare(next) < foreignShare(quietest)) quietest = next;
  }
  return quietest;
}

/** The part of the server's core that other processes took in a window; 0 if it is unknown. */
export function foreignShare(window: Window): number {
  return (window.foreign_cpu_ms ?? 0) / window.elapsed_ms;
}

async function observeOnce(candidate: Candidate, load: Load, rampMs: number, windowMs: number): Promise<Window> {
  try {
    await sleep(rampMs);
    const cpuBeforeMs = candidate.program.usage().cpu_ms;
    // The upstream shares its core with the load by design.
    const core = candidate.name === 'direct' ? undefined : candidate.program.core;
    const busyBeforeMs = coreBusyMs(core);
    load.begin();
    const beganMs = performance.now();
    await sleep(windowMs);
    const elapsedMs = performance.now() - beganMs;
    const tally = { ...load.tally };
    const cpuMs = candidate.program.usage().cpu_ms - cpuBeforeMs;
    const busyAfterMs = coreBusyMs(core);
    const sorted = tally.samples_ms.toSorted((a, b) => a - b);
    return {
      elapsed_ms: elapsedMs,
      cpu_ms: cpuMs,
      foreign_cpu_ms:
        busyBeforeMs === undefined || busyAfterMs === undefined
          ? undefined
          : Math.max(0, busyAfterMs - busyBeforeMs - cpuMs),
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

/** The highest rate of whole answers with this number of connections. */
export function throughput(candidate: Candidate, connections: number, windowMs: number): Promise<Window> {
  const begin = () => new ClosedLoop(candidate.target.port, wholeRequest(candidate), connections);
  return observe(candidate, begin, RAMP_MS, windowMs);
}

/** The time of whole answers at a fixed rate. */
export function latency(candidate: Candidate, ratePerSecond: number, windowMs: number): Promise<Window> {
  const begin = () => new OpenLoop(candidate.target.port, wholeRequest(candidate), ratePerSecond);
  return observe(candidate, begin, RAMP_MS, windowMs);
}

/**
 * The time to the first text while this number of streams run, each of one second at fifty chunks a second. Their
 * starts are spread evenly over that second: streams that begin together would also end together, and each second would
 * be a burst and a lull.
 */
export function firstToken(candidate: Candidate, streams: number, windowMs: number): Promise<Window> {
  const { chunks, interval_ms } = STREAMS.first_token;
  const spreadMs = chunks * interval_ms;
  const request = streamRequest(candidate, STREAMS.first_token);
  const begin = () => new Streams(candidate.target.port, request, streams, spreadMs);
  return observe(candidate, begin, spreadMs + RAMP_MS, windowMs);
}

/** The CPU time of streamed chunks, a hundred a second on each of this number of streams. */
export function chunkCpu(candidate: Candidate, streams: number, windowMs: number): Promise<Window> {
  const request = streamRequest(candidate, STREAMS.chunk_cpu);
  const begin = () => new Streams(candidate.target.port, request, streams, streams * SPREAD_MS);
  return observe(candidate, begin, streams * SPREAD_MS + RAMP_MS, windowMs);
}

/** Warms up the code of a fresh candidate, streamed and whole. */
export async function warm(candidate: Candidate, windowMs: number): Promise<void> {
  await throughput(candidate, 32, windowMs);
  await firstToken(candidate, 50, windowMs);
}

export interface Memory {
  before_bytes: number;
  open_bytes: number;
  per_stream_bytes: number;
  streams: number;
}

/** Streams that are open before the first reading, when the code has run and the heap has made its first growth. */
const MEMORY_BASE_STREAMS = 20;
const MEMORY_BASE_MS = 2_000;

/**
 * The memory of this number of open streams: resident memory before they open and while they are open. The process must
 * be fresh: a heap that earlier load has grown would absorb them.
 */
export async function memory(candidate: Candidate, streams: number, holdMs: number): Promise<Memory> {
  const request = streamRequest(candidate, STREAMS.memory);
  const base = new Streams(candidate.target.port, request, MEMORY_BASE_STREAMS, MEMORY_BASE_STREAMS * SPREAD_MS);
  let load: Load | undefined;
  try {
    await sleep(MEMORY_BASE_MS);
    const beforeBytes = candidate.program.usage().rss_bytes;
    load = new Streams(candidate.target.port, request, streams, streams * SPREAD_MS);
    await sleep(streams * SPREAD_MS + holdMs);
    const openBytes = candidate.program.usage().rss_bytes;
    const open = load.tally.samples_ms.length;
    if (open !== streams || load.tally.failed > 0) throw new Error(`Only ${open} of ${streams} streams were open.`);
    return {
      before_bytes: beforeBytes,
      open_bytes: openBytes,
      per_stream_bytes: (openBytes - beforeBytes) / streams,
      streams,
    };
  } finally {
    base.stop();
    load?.stop();
  }
}
