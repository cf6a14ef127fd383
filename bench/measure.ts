import { setTimeout as sleep } from 'node:timers/promises';
import type { Candidate } from './candidates.ts';
import { requestBytes } from './connection.ts';
import { ClosedLoop, type Load, OpenLoop, Streams } from './load.ts';
import { ANSWER_MODEL, requestBody, STREAMS, type StreamShape, streamModel } from './workload.ts';

const RAMP_MS = 500;

/** What one window on one candidate gave; times are the whole window's. */
export interface Window {
  elapsed_ms: number;
  /** CPU time of the candidate's processes in the window. */
  cpu_ms: number;
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

async function observe(candidate: Candidate, load: Load, ramp_ms: number, window_ms: number): Promise<Window> {
  try {
    await sleep(ramp_ms);
    const cpu_before_ms = candidate.program.usage().cpu_ms;
    load.begin();
    const began_ms = performance.now();
    await sleep(window_ms);
    const elapsed_ms = performance.now() - began_ms;
    const tally = { ...load.tally };
    const cpu_ms = candidate.program.usage().cpu_ms - cpu_before_ms;
    const sorted = tally.samples_ms.toSorted((a, b) => a - b);
    return {
      elapsed_ms,
      cpu_ms,
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
  const load = new ClosedLoop(candidate.target.port, wholeRequest(candidate), connections);
  return observe(candidate, load, RAMP_MS, window_ms);
}

/** The time of whole answers at a fixed rate. */
export function latency(candidate: Candidate, rate_per_second: number, window_ms: number): Promise<Window> {
  const load = new OpenLoop(candidate.target.port, wholeRequest(candidate), rate_per_second);
  return observe(candidate, load, RAMP_MS, window_ms);
}

/** The time to the first text while so many streams run, each of a second at fifty chunks a second. */
export function firstToken(candidate: Candidate, streams: number, window_ms: number): Promise<Window> {
  const load = new Streams(candidate.target.port, streamRequest(candidate, STREAMS.first_token), streams);
  return observe(candidate, load, streams + RAMP_MS, window_ms);
}

/** The CPU time of streamed chunks, a hundred a second on each of so many streams. */
export function chunkCpu(candidate: Candidate, streams: number, window_ms: number): Promise<Window> {
  const load = new Streams(candidate.target.port, streamRequest(candidate, STREAMS.chunk_cpu), streams);
  return observe(candidate, load, streams + RAMP_MS, window_ms);
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

/** What so many open streams weigh: resident memory before them and while they are open, on a process that is fresh and lightly warmed. */
export async function memory(candidate: Candidate, streams: number, hold_ms: number): Promise<Memory> {
  await warm(candidate, 500);
  await sleep(500);
  const before_bytes = candidate.program.usage().rss_bytes;
  const load = new Streams(candidate.target.port, streamRequest(candidate, STREAMS.memory), streams);
  try {
    await sleep(streams + hold_ms);
    const open_bytes = candidate.program.usage().rss_bytes;
    const open = load.tally.samples_ms.length;
    if (open !== streams || load.tally.failed > 0) throw new Error(`Only ${open} of ${streams} streams were open.`);
    return { before_bytes, open_bytes, per_stream_bytes: (open_bytes - before_bytes) / streams, streams };
  } finally {
    load.stop();
  }
}
