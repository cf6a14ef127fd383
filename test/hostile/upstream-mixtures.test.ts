/**
 * Concurrent requests to servers that answer whole, in chunks, truncated, with excess bytes or by closing, while
 * callers read slowly or disconnect: each answer is that of its own request, no truncated one is complete, and no
 * request is received twice.
 */
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { createUpstream, type UpstreamResponse } from '../../src/providers/transport/upstream.ts';
import { Random } from '../simulation/random.ts';
import { inTier } from '../tier.ts';

const REQUESTS = inTier(300, 6_000);
const AT_ONCE = 30;
const ID_CHARS = 8;
const ms = { upstream_connect_ms_max: 60_000, upstream_headers_ms_max: 60_000, upstream_idle_ms_max: 60_000 };
const idOf = (nth: number) => String(nth).padStart(ID_CHARS, '0');

type Choose = (below: number) => number;

/** An answer whose body repeats the id of its request. */
function answerTo(id: string, choose: Choose): { bytes: Buffer; isLast: boolean } {
  const body = id.repeat(1 + choose(choose(10) === 0 ? 10_000 : 500));
  const interim = choose(5) === 0 ? 'HTTP/1.1 103 Early Hints\r\n\r\n' : '';
  const length = `HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n\r\n`;
  const more = choose(10) === 0 ? 'HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\npoison' : '';
  const of = (text: string, isLast = false) => ({ bytes: Buffer.from(interim + text), isLast });
  const kind = choose(12);
  if (kind === 0) return of(`HTTP/1.1 200 OK\r\n\r\n${body}`, true);
  if (kind === 1) return of(length + body.slice(0, choose(body.length)), true);
  if (kind < 6) return of(length + body + more);
  let chunks = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n';
  // More tiny chunks in one read than one turn processes wait while other connections are read.
  const chunkChars = choose(3) === 0 ? 3 : 9_000;
  for (let at = 0; at < body.length; ) {
    const chunk = body.slice(at, at + 1 + choose(chunkChars));
    chunks += `${chunk.length.toString(16)}\r\n${chunk}\r\n`;
    at += chunk.length;
  }
  return of(`${chunks}0\r\n\r\n${more}`);
}

async function writeAnswer(socket: Socket, id: string, choose: Choose, mayFail: Set<string>): Promise<void> {
  const { bytes, isLast } = answerTo(id, choose);
  if (isLast) mayFail.add(id);
  for (let at = 0; at < bytes.length && !socket.destroyed; ) {
    const piece = bytes.subarray(at, at + 1 + choose(choose(3) === 0 ? 10 : 100_000));
    socket.write(piece);
    at += piece.length;
    if (choose(3) === 0) await sleep(choose(3));
  }
  if (!isLast) return;
  if (choose(2) === 0) socket.end();
  else socket.resetAndDestroy();
}

/** The text of an answer, read slowly. */
async function readSlowly(response: UpstreamResponse, choose: Choose): Promise<string> {
  let text = '';
  for (;;) {
    await response.ready();
    const bytes = response.read();
    if (bytes === undefined) return text;
    text += bytes.toString('latin1');
    if (choose(5) === 0) await sleep(choose(4));
  }
}

test.each(['own', 'undici'] as const)('the client %s mixes nothing up', async (http1) => {
  const random = new Random(20_261_123);
  const choose: Choose = (below) => Math.floor(random.next() * below);
  const received = new Map<string, number>();
  /** Requests whose answers break off, or whose callers disconnect. */
  const mayFail = new Set<string>();
  const server = createServer((socket) => {
    let text = '';
    socket.on('error', () => {});
    socket.on('data', (bytes) => {
      text += bytes.toString('latin1');
      const end = text.indexOf('\r\n\r\n');
      if (end === -1 || text.length < end + 4 + ID_CHARS) return;
      const id = text.slice(end + 4);
      text = '';
      received.set(id, (received.get(id) ?? 0) + 1);
      void writeAnswer(socket, id, choose, mayFail);
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const upstream = createUpstream(ms, undefined, http1);
  const counts = { whole: 0, unframed: 0, failed: 0 };
  let sent = 0;
  const caller = async () => {
    while (sent < REQUESTS) {
      sent += 1;
      const id = idOf(sent);
      const exchange = upstream.send({ url, headers: {}, payload: id });
      if (choose(10) === 0) {
        mayFail.add(id);
        setTimeout(() => exchange.abort(new Error('enough')), choose(6));
      }
      try {
        const response = await exchange.response;
        const text = await readSlowly(response, choose);
        const whole = id.repeat(Math.ceil(text.length / ID_CHARS));
        expect(text).toBe(response.complete ? whole : whole.slice(0, text.length));
        counts[response.complete ? 'whole' : 'unframed'] += 1;
      } catch (error) {
        if (!mayFail.has(id)) throw error;
        counts.failed += 1;
      }
      if (choose(4) === 0) await sleep(choose(5));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, caller));
  await upstream.close();
  server.close();
  expect([...received.values()].filter((times) => times > 1)).toEqual([]);
  expect(counts.whole).toBeGreaterThan(REQUESTS / 2);
  expect(Math.min(counts.unframed, counts.failed)).toBeGreaterThan(0);
});
