/**
 * Answers of hostile and broken provider servers, for both clients of HTTP/1.1: an answer that two parsers could read
 * differently is refused, a truncated one is never complete, and a connection that carried unexpected bytes is never
 * reused.
 */
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { UpstreamError } from '../../src/providers/dialect.ts';
import { createUpstream, readText, type Upstream } from '../../src/providers/transport/upstream.ts';

const OK = 'HTTP/1.1 200 OK\r\n';
const header = (line: string, body = '') => `${OK}${line}\r\n\r\n${body}`;
const chunks = (text: string) => header('transfer-encoding: chunked', text);
const length = (bytes: number) => `content-length: ${bytes}`;

/** How the server continues after its bytes. */
type Ending = 'stays' | 'ends' | 'resets';
/**
 * The result of a client: a whole answer with or without reuse of the connection, an answer that only its connection
 * ended, or a failure.
 */
type Outcome = 'reused' | 'closed' | 'unframed' | 'broken' | 'timeout';
type Row = [what: string, sent: string, own: Outcome, undici?: Outcome, ending?: Ending];

/** The outcome for undici if it differs from that of the gateway's own client. */
const ROWS: Row[] = [
  ['an ordinary answer', header(length(2), 'ab'), 'reused'],
  ['chunks and trailers', chunks('2;a=b\r\nab\r\n0\r\nx-sum: 1\r\n\r\n'), 'reused'],
  ['close', header(`connection: close\r\n${length(2)}`, 'ab'), 'closed'],
  ['a short keep-alive', header(`keep-alive: timeout=1\r\n${length(2)}`, 'ab'), 'closed'],
  ['HTTP/1.0', `HTTP/1.0 200 OK\r\n${length(2)}\r\n\r\nab`, 'closed'],
  ['HTTP/1.0 that stays', `HTTP/1.0 200 OK\r\nconnection: keep-alive\r\n${length(2)}\r\n\r\nab`, 'reused'],
  ['an interim answer', `HTTP/1.1 103 x\r\n\r\n${header(length(2), 'ab')}`, 'reused'],
  [
    'an interim answer 100 that nobody asked for',
    `HTTP/1.1 100 x\r\n\r\n${header(length(2), 'ab')}`,
    'reused',
    'broken',
  ],
  ['a length and a coding', header(`${length(1)}\r\ntransfer-encoding: chunked`, '1\r\na\r\n0\r\n\r\n'), 'broken'],
  ['two lengths', header(`${length(1)}\r\n${length(2)}`, 'ab'), 'broken'],
  ['a list of lengths', header('content-length: 1, 1', 'a'), 'broken'],
  ['a signed length', header('content-length: +1', 'a'), 'broken'],
  ['a hexadecimal length', header('content-length: 0x1', 'a'), 'broken'],
  ['a folded header', header(`a: b\r\n c\r\n${length(2)}`, 'ab'), 'broken'],
  ['NUL in a header', header(`a: b\0c\r\n${length(2)}`, 'ab'), 'broken'],
  ['a carriage return in a header', header(`a: b\rc: d\r\n${length(2)}`, 'ab'), 'broken'],
  ['line feeds alone', `HTTP/1.1 200 OK\n${length(2)}\n\nab`, 'broken'],
  ['a space before a colon', header('content-length : 2', 'ab'), 'broken'],
  ['very many headers', header(`${'a: b\r\n'.repeat(10_000)}${length(2)}`, 'ab'), 'broken'],
  ['long headers', header(`${`a: ${'b'.repeat(4_000)}\r\n`.repeat(5)}${length(2)}`, 'ab'), 'broken'],
  ['a header without an end', `${OK}a: ${'b'.repeat(40_000)}`, 'broken'],
  ['two codings', header('transfer-encoding: gzip, chunked', '0\r\n\r\n'), 'broken', 'reused'],
  ['an unknown coding', header('transfer-encoding: xchunked', '0\r\n\r\n'), 'broken', 'timeout'],
  ['an empty chunk size', chunks('\r\nab\r\n0\r\n\r\n'), 'broken'],
  ['a chunk size that is none', chunks('0x2\r\nab\r\n0\r\n\r\n'), 'broken'],
  ['a chunk size beyond all bounds', chunks(`${'f'.repeat(17)}\r\nab`), 'broken'],
  ['a long extension', chunks(`2;${'a'.repeat(20_000)}\r\nab\r\n0\r\n\r\n`), 'broken', 'reused'],
  ['a chunk longer than its size', chunks('1\r\nab\r\n0\r\n\r\n'), 'broken'],
  ['101', 'HTTP/1.1 101 x\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n', 'broken'],
  ['status 600', `HTTP/1.1 600 x\r\n${length(0)}\r\n\r\n`, 'broken', 'reused'],
  ['status 99', `HTTP/1.1 99 x\r\n${length(0)}\r\n\r\n`, 'broken'],
  ['another protocol', 'SSH-2.0-OpenSSH_9.6\r\n', 'broken'],
  ['HTTP/2.0', `HTTP/2.0 200 OK\r\n${length(2)}\r\n\r\nab`, 'broken', 'closed'],
  ['bytes after a length', header(length(2), 'abc'), 'closed'],
  ['an answer after the answer', header(length(2), `ab${header(length(6), 'poison')}`), 'closed'],
  ['an answer after the last chunk', chunks(`2\r\nab\r\n0\r\n\r\n${header(length(6), 'poison')}`), 'closed'],
  ['204 with a body', `HTTP/1.1 204 x\r\n${length(6)}\r\n\r\npoison`, 'closed'],
  ['204', 'HTTP/1.1 204 x\r\n\r\n', 'reused'],
  ['nothing, and the end', '', 'broken', 'broken', 'ends'],
  ['nothing, and a reset', '', 'broken', 'broken', 'resets'],
  ['a head that breaks off', `${OK}a: b\r\n`, 'broken', 'broken', 'ends'],
  ['a body that breaks off', header(length(5), 'ab'), 'broken', 'broken', 'ends'],
  ['a last body that breaks off', header(`connection: close\r\n${length(5)}`, 'ab'), 'broken', 'broken', 'ends'],
  ['chunks that break off', chunks('5\r\nab'), 'broken', 'broken', 'ends'],
  ['chunks without the last one', chunks('2\r\nab\r\n'), 'broken', 'broken', 'ends'],
  ['trailers that break off', chunks('2\r\nab\r\n0\r\na: b\r\n'), 'broken', 'broken', 'ends'],
  ['a body that is reset', header(length(5), 'ab'), 'broken', 'broken', 'resets'],
  ['chunks that are reset', chunks('5\r\nab'), 'broken', 'broken', 'resets'],
  ['a body until the end of its connection', header('a: b', 'ab'), 'unframed', 'unframed', 'ends'],
  ['a body until the end, that is reset', header('a: b', 'ab'), 'broken', 'unframed', 'resets'],
  ['a whole answer, and the end', header(length(2), 'ab'), 'closed', 'closed', 'ends'],
  ['nothing', '', 'timeout'],
  ['a part of a head', `${OK}a: b`, 'timeout'],
  ['a part of a body', header(length(5), 'ab'), 'timeout'],
  ['a part of chunks', chunks('5\r\nab'), 'timeout'],
];

/**
 * A server that answers the first request as the row of its path says, and others with `next`. Its answers carry the id
 * of their connection.
 */
const server: Server = createServer((socket) => {
  socket.on('error', () => {});
  connections += 1;
  const nth = connections;
  socket.on('data', (bytes) => {
    const path = /^POST \/(\d+) /.exec(bytes.toString())?.[1];
    if (path === undefined) return void socket.write(header(`x-connection: ${nth}\r\n${length(4)}`, 'next'));
    const [, sent, , , ending = 'stays'] = ROWS[Number(path)]!;
    used.set(Number(path), nth);
    socket.write(Buffer.from(sent, 'latin1'), () => end(socket, ending));
  });
});
let connections = 0;
/** The connections of the rows. */
const used = new Map<number, number>();

function end(socket: Socket, ending: Ending): void {
  if (ending === 'ends') socket.end();
  // The written bytes arrive first.
  if (ending === 'resets') setTimeout(() => socket.resetAndDestroy(), 50);
}

let address: string;
beforeAll(async () => {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => server.close());

/** Short if the server stays silent, long otherwise. */
const timeouts = (ms: number) => ({
  upstream_connect_ms_max: 60_000,
  upstream_headers_ms_max: ms,
  upstream_idle_ms_max: ms,
});

async function outcomeOf(upstream: Upstream, row: number): Promise<Outcome> {
  const send = (path: string) => upstream.send({ url: `${address}/${path}`, headers: {}, payload: 'x' }).response;
  try {
    const response = await send(String(row));
    const text = await readText(response, { bytes_max: 1_000, cut: false });
    expect(['ab', '']).toContain(text);
    if (!response.complete && response.status !== 204) return 'unframed';
  } catch (error) {
    const { failure, never_sent } = error as UpstreamError;
    expect([ROWS[row]![0], never_sent]).toEqual([ROWS[row]![0], false]);
    return failure === 'unavailable' ? 'broken' : (failure as Outcome);
  }
  // A connection becomes free some turns after its answer; its end or further bytes arrive meanwhile.
  await new Promise((resolve) => setTimeout(resolve, 50));
  const next = await send('next');
  expect(await readText(next, { bytes_max: 1_000, cut: false })).toBe('next');
  return Number(next.headers['x-connection']) === used.get(row) ? 'reused' : 'closed';
}

describe.each(['own', 'undici'] as const)('the client %s', (client) => {
  test('handles each answer as the table says', async () => {
    const expected = ROWS.map(([what, , own, undici = own]) => [what, client === 'own' ? own : undici] as const);
    const outcomes = await Promise.all(
      expected.map(async ([what, outcome], row) => {
        const upstream = createUpstream(timeouts(outcome === 'timeout' ? 500 : 60_000), undefined, client);
        try {
          return [what, await outcomeOf(upstream, row)];
        } finally {
          await upstream.close();
        }
      }),
    );
    expect(outcomes).toEqual(expected);
  });

  test('never uses bytes that arrived before its request as an answer', async () => {
    const sockets: Socket[] = [];
    let requests = 0;
    const poisoning = createServer((socket) => {
      sockets.push(socket.on('error', () => {}));
      socket.on('data', () => {
        requests += 1;
        socket.write(header(length(2), 'ab'));
      });
    }).listen(0, '127.0.0.1');
    await once(poisoning, 'listening');
    const url = `http://127.0.0.1:${(poisoning.address() as AddressInfo).port}/`;
    const upstream = createUpstream(timeouts(60_000), undefined, client);
    const texts: string[] = [];
    for (let nth = 0; nth < 3; nth += 1) {
      // The bytes have arrived and are unread when the next request is sent.
      for (const socket of sockets) socket.write(header(length(6), 'poison'));
      const response = await upstream.send({ url, headers: {}, payload: 'x' }).response;
      texts.push(await readText(response, { bytes_max: 100, cut: false }));
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    await upstream.close();
    poisoning.close();
    expect([texts, requests, sockets.length]).toEqual([['ab', 'ab', 'ab'], 3, 3]);
  });
});
