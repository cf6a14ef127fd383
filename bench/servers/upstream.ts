import { readFileSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { createServer as createSecureServer } from 'node:tls';
import { HttpReader } from '../http-reader.ts';
import { ANSWER_BODY, STREAM_EVENTS, type StreamShape, streamShape } from '../workload.ts';

/**
 * The provider of the benchmark: chat completions over HTTP/1.1 on plain sockets or TLS, so that it costs a fraction of any
 * server under test. A paced stream makes one write for each chunk, as providers do.
 */

const chunked = (text: string) => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;

const ANSWER = Buffer.from(
  `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(ANSWER_BODY)}\r\n\r\n${ANSWER_BODY}`,
);
const STREAM_HEAD = Buffer.from(
  'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n' +
    chunked(STREAM_EVENTS.role),
);
const CONTENT = Buffer.from(chunked(STREAM_EVENTS.content));
const streamTail = (chunks: number) =>
  `${[STREAM_EVENTS.finish, STREAM_EVENTS.usage(chunks), STREAM_EVENTS.done].map(chunked).join('')}0\r\n\r\n`;

interface OpenStream {
  socket: Socket;
  shape: StreamShape;
  left: number;
}

/**
 * A wheel of one-millisecond slots; one timer serves every open stream. Its clock catches up at most this much in one
 * turn: on an overloaded machine it runs slow, because catching up would leave no time to read or to accept.
 */
const SLOTS = 2_048;
const CATCH_UP_MS_MAX = 20;
const UNREAD_BYTES_MAX = 1024 * 1024;
const wheel: OpenStream[][] = Array.from({ length: SLOTS }, () => []);
let open = 0;
let started = 0;
let clockMs = 0;
let turnedAtMs = 0;

function nowMs(): number {
  return Math.floor(performance.now());
}

function turn(): void {
  const now = nowMs();
  const until = clockMs + Math.min(now - turnedAtMs, CATCH_UP_MS_MAX);
  turnedAtMs = now;
  while (clockMs < until) {
    clockMs += 1;
    const due = wheel[clockMs % SLOTS]!;
    if (due.length === 0) continue;
    wheel[clockMs % SLOTS] = [];
    for (const stream of due) advance(stream);
  }
  if (open > 0) setTimeout(turn, 1);
}

function schedule(stream: OpenStream, inMs: number): void {
  wheel[(clockMs + Math.max(inMs, 1)) % SLOTS]!.push(stream);
}

function advance(stream: OpenStream): void {
  if (stream.socket.destroyed) {
    open -= 1;
    return;
  }
  if (stream.left === 0) {
    stream.socket.write(streamTail(stream.shape.chunks));
    open -= 1;
    return;
  }
  // A reader that is far behind gets no more until it reads, because its memory is measured there and not here.
  if (stream.socket.writableLength < UNREAD_BYTES_MAX) {
    stream.socket.write(CONTENT);
    stream.left -= 1;
  }
  schedule(stream, stream.shape.interval_ms);
}

function startStream(socket: Socket, shape: StreamShape): void {
  socket.write(STREAM_HEAD);
  if (shape.interval_ms === 0) {
    socket.write(Buffer.concat(new Array<Buffer>(shape.chunks).fill(CONTENT)));
    socket.write(streamTail(shape.chunks));
    return;
  }
  socket.write(CONTENT);
  started += 1;
  if (open === 0) {
    turnedAtMs = nowMs();
    setTimeout(turn, 1);
  }
  open += 1;
  // Streams that were opened together would send their chunks together; multiples of the golden ratio spread them
  // evenly over the interval.
  const phaseMs = Math.ceil(((started * 0.618_034) % 1) * shape.interval_ms);
  schedule({ socket, shape, left: shape.chunks - 1 }, phaseMs);
}

function answer(socket: Socket, head: string, body: string): void {
  if (!head.startsWith('POST ')) {
    socket.write('HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n');
    return;
  }
  const request = JSON.parse(body) as { model: string; stream?: boolean };
  if (request.stream === true) startStream(socket, streamShape(request.model));
  else socket.write(ANSWER);
}

function accept(socket: Socket): void {
  let head = '';
  let body = '';
  const reader = new HttpReader({
    onHead: (text) => {
      head = text;
      body = '';
    },
    onBody: (bytes, start, end) => {
      body += bytes.toString('latin1', start, end);
    },
    onEnd: () => answer(socket, head, body),
  });
  socket.on('data', (bytes) => reader.push(bytes));
  socket.on('error', () => socket.destroy());
}

/** The port; for TLS also the files of the key and of the certificate. */
const [port = '0', key, cert] = process.argv.slice(2);
const server =
  key === undefined || cert === undefined
    ? createServer({ noDelay: true }, accept)
    : createSecureServer({ key: readFileSync(key), cert: readFileSync(cert), noDelay: true }, accept);
server.listen({ host: '127.0.0.1', port: Number(port), backlog: 4_096 }, () => {
  const address = server.address();
  if (address !== null && typeof address === 'object') process.stdout.write(`listening ${address.port}\n`);
});
process.on('SIGTERM', () => process.exit(0));
