import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import type { Faults } from './faults.ts';

/** Chunks are collected up to this size if they need no separate writes, which saves system calls. */
const write_chars = 16 * 1024;

async function write(response: ServerResponse, text: string, { faults, signal, binary_type }: Course): Promise<void> {
  const encoding = binary_type === undefined ? 'utf8' : 'latin1';
  if (text === '' || response.destroyed) return;
  if (faults.split_bytes === 0) {
    if (!response.write(text, encoding)) await once(response, 'drain', { signal });
    return;
  }
  const bytes = Buffer.from(text, encoding);
  for (let at = 0; at < bytes.length; at += faults.split_bytes) {
    if (!response.write(bytes.subarray(at, at + faults.split_bytes))) await once(response, 'drain', { signal });
    // A turn of the event loop between two writes keeps them apart for the reader.
    await nextTurn(undefined, { signal });
  }
}

/** How an answer is sent. */
export interface Course {
  headers: Record<string, string>;
  faults: Faults;
  /** Aborted when the client leaves. */
  signal: AbortSignal;
  /** Called before a planned break of the connection. */
  onBreak(): void;
  /** The media type of a binary stream. Its strings are Latin-1. */
  binary_type?: string | undefined;
}

/** Breaks the connection after what was written. Node passes a written chunk to the socket in the next turn. */
async function breakOff(response: ServerResponse, course: Course): Promise<void> {
  await nextTurn(undefined, { signal: course.signal });
  course.onBreak();
  response.socket?.destroySoon();
}

/** Sends a whole answer, or as much of it as the faults allow. */
export async function sendBody(response: ServerResponse, text: string, course: Course): Promise<void> {
  const { faults, headers } = course;
  const bytes = Buffer.from(text);
  const half = bytes.subarray(0, bytes.length >> 1);
  const json = { 'content-type': 'application/json', ...headers };
  if (faults.truncate_after_chunks > 0) {
    response.writeHead(200, json).end(half);
    return;
  }
  response.writeHead(200, { ...json, 'content-length': bytes.length });
  if (faults.die_after_chunks > 0 || faults.stall_after > 0) {
    response.write(half);
    if (faults.die_after_chunks > 0) await breakOff(response, course);
    return;
  }
  await write(response, text, { ...course, binary_type: undefined });
  response.end();
}

/** A stream to be sent. */
export interface StreamPlan extends Course {
  events: Iterable<string>;
  /** Replaces an event if the faults demand it. */
  error_event: string;
  onChunks(sent: number): void;
}

/** Sends a stream as fast as its client reads, or as much of it as the faults allow. Rejects if the client leaves. */
export async function sendStream(response: ServerResponse, plan: StreamPlan): Promise<void> {
  const { faults, signal, binary_type } = plan;
  const one_by_one = faults.chunk_delay_ms > 0 || faults.flush || faults.split_bytes > 0;
  response.writeHead(200, {
    'content-type': binary_type ?? 'text/event-stream; charset=utf-8',
    'cache-control': 'no-cache',
    ...plan.headers,
  });
  let waiting = '';
  let sent = 0;
  let reported = 0;
  const flush = async () => {
    const text = faults.crlf && binary_type === undefined ? waiting.replaceAll('\n', '\r\n') : waiting;
    waiting = '';
    plan.onChunks(sent - reported);
    reported = sent;
    await write(response, text, plan);
  };
  for (const event of plan.events) {
    if (faults.error_in_stream === sent + 1) {
      waiting += plan.error_event;
      break;
    }
    if (faults.comments && binary_type === undefined) waiting += ': sandbox\n\n';
    waiting += event;
    sent += 1;
    const last_one = [faults.die_after_chunks, faults.stall_after, faults.truncate_after_chunks].includes(sent);
    if (!last_one && !one_by_one && waiting.length < write_chars) continue;
    await flush();
    if (faults.chunk_delay_ms > 0) await sleep(faults.chunk_delay_ms, undefined, { signal });
    if (faults.die_after_chunks === sent) return breakOff(response, plan);
    if (faults.stall_after === sent) return;
    if (faults.truncate_after_chunks === sent) break;
  }
  await flush();
  response.end();
}
