import type { AddressInfo } from 'node:net';
import { createServer, type Socket } from 'node:net';
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises';

/** One step of the scripted upstream with a request's socket. */
export type Step =
  | string
  | Uint8Array
  /** Waits this number of milliseconds; 0 is one turn of the event loop, in which a reader in this process reads. */
  | { wait: number }
  /** Waits until the test releases it. */
  | { until: Promise<unknown> }
  /** Runs at its turn, and waits for its result. */
  | { run: () => unknown }
  /** Writes bytes repeatedly while the socket accepts them, up to this number of times; counts in `written`. */
  | { repeat: string; times: number }
  | 'END'
  | 'DESTROY'
  | 'RESET';

/** One received request. */
export interface Exchange {
  method: string;
  path: string;
  headers: Record<string, string>;
  body: string;
  /** Bytes that the kernel accepted for this exchange. */
  written: number;
  /** `performance.now()` when the request was complete. */
  received_at: number;
  /** `performance.now()` when the socket ended, by either side. */
  closed_at: number | undefined;
  closed: Promise<void>;
}

export interface WireServer {
  /** For a provider's `base_url`. */
  url: string;
  exchanges: Exchange[];
  /** Resolves with the nth exchange, from 0, once its request is complete. */
  exchange(nth: number): Promise<Exchange>;
  stop(): Promise<void>;
}

const headEnd = '\r\n\r\n';

/** The head of an answer without a length: its body ends with the connection. */
export function responseHead(status: number, contentType: string, extra: Record<string, string> = {}): string {
  const headers = { 'content-type': contentType, connection: 'close', ...extra };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} Status\r\n${lines.join('')}\r\n`;
}

/** Bytes framed as one HTTP/1.1 chunk of a keep-alive stream. The last one is `''`. */
export function httpChunk(payload: string | Uint8Array): Uint8Array {
  const bytes = Buffer.from(payload);
  return Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')]);
}

/** Cuts bytes into slices of a size, each a step of its own with a turn of the event loop between. */
export function slices(payload: string | Uint8Array, size: number): Step[] {
  const bytes = Buffer.from(payload);
  const steps: Step[] = [];
  for (let at = 0; at < bytes.length; at += size) steps.push(bytes.subarray(at, at + size), { wait: 0 });
  return steps;
}

function takeRequest(
  bytes: Buffer,
): { exchange: Omit<Exchange, 'closed' | 'closed_at' | 'received_at' | 'written'>; rest: Buffer } | undefined {
  const at = bytes.indexOf(headEnd);
  if (at < 0) return undefined;
  const [first = '', ...lines] = bytes.subarray(0, at).toString('latin1').split('\r\n');
  const headers = Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]),
  );
  const length = Number(headers['content-length'] ?? 0);
  const from = at + headEnd.length;
  if (bytes.length < from + length) return undefined;
  const [method = '', path = ''] = first.split(' ');
  const body = bytes.subarray(from, from + length).toString();
  return { exchange: { method, path, headers, body }, rest: bytes.subarray(from + length) };
}

async function writeStep(socket: Socket, exchange: Exchange, payload: string | Uint8Array): Promise<void> {
  const bytes = Buffer.from(payload);
  await new Promise<void>((resolve) => {
    socket.once('close', resolve);
    socket.write(bytes, () => {
      socket.off('close', resolve);
      exchange.written += bytes.length;
      resolve();
    });
  });
}

async function play(socket: Socket, exchange: Exchange, steps: Step[]): Promise<void> {
  for (const step of steps) {
    if (socket.destroyed) return;
    if (step === 'END') socket.end();
    else if (step === 'DESTROY') socket.destroy();
    else if (step === 'RESET') socket.resetAndDestroy();
    else if (typeof step === 'string' || step instanceof Uint8Array) await writeStep(socket, exchange, step);
    else if ('wait' in step) await (step.wait === 0 ? turn() : sleep(step.wait));
    else if ('until' in step) await step.until;
    else if ('run' in step) await step.run();
    else
      for (let nth = 0; nth < step.times && !socket.destroyed; nth += 1) await writeStep(socket, exchange, step.repeat);
  }
}

/**
 * Starts an upstream that follows its script byte for byte: `script(exchange, nth)` returns the steps for each request.
 * A request must state its length.
 */
export async function startWireServer(script: (exchange: Exchange, nth: number) => Step[]): Promise<WireServer> {
  const exchanges: Exchange[] = [];
  const sockets = new Set<Socket>();
  const waiting: { nth: number; resolve: (exchange: Exchange) => void }[] = [];

  const server = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket);
    let received: Buffer = Buffer.alloc(0);
    const own: Exchange[] = [];
    const closed = new Promise<void>((resolve) => {
      socket.once('close', () => {
        sockets.delete(socket);
        for (const exchange of own) exchange.closed_at = performance.now();
        resolve();
      });
    });
    // Some tests wait for a reset by the client.
    socket.on('error', () => undefined);
    socket.on('data', (bytes: Buffer) => {
      received = Buffer.concat([received, bytes]);
      for (let taken = takeRequest(received); taken !== undefined; taken = takeRequest(received)) {
        received = taken.rest;
        const exchange: Exchange = {
          ...taken.exchange,
          written: 0,
          received_at: performance.now(),
          closed_at: undefined,
          closed,
        };
        const nth = exchanges.push(exchange) - 1;
        own.push(exchange);
        for (const one of waiting) if (one.nth === nth) one.resolve(exchange);
        void play(socket, exchange, script(exchange, nth));
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    exchanges,
    exchange: (nth) =>
      exchanges[nth] === undefined
        ? new Promise((resolve) => waiting.push({ nth, resolve }))
        : Promise.resolve(exchanges[nth]),
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}
