import type { Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { limits } from '../../src/limits.ts';
import { startGateway, type TestGateway } from '../harness.ts';
import { inTier } from '../tier.ts';
import { routesOf, type WatchedServer, watchServer } from './watched-server.ts';

/** Longer than a busy machine needs. */
const WAIT = { timeout: 60_000 };

let gateway: TestGateway;
let watched: WatchedServer;
beforeAll(async () => {
  gateway = await startGateway();
  watched = watchServer(gateway);
});
afterAll(async () => {
  watched.stop();
  await gateway.stop();
});

/** Bodies that operations for models answer. */
const BODIES: Record<string, object> = {
  '/api/v1/chat/completions': { model: 'sandbox/echo', messages: [{ role: 'user', content: 'x' }], stream: true },
  '/api/v1/completions': { model: 'sandbox/echo', prompt: 'x', stream: true },
  '/api/v1/messages': {
    model: 'sandbox/echo',
    max_tokens: 9,
    messages: [{ role: 'user', content: 'x' }],
    stream: true,
  },
  '/api/v1/responses': { model: 'sandbox/echo', input: 'x', stream: true },
  '/api/v1/embeddings': { model: 'sandbox/embed', input: 'x' },
};

interface TriedRequest {
  method: string;
  path: string;
  credential?: string | undefined;
  more?: string;
}

/** A request as bytes; its answer repeats its id. */
function bytesOf({ method, path, credential, more = '' }: TriedRequest, id: string): string {
  const hasBody = !['GET', 'HEAD', 'DELETE'].includes(method);
  const body = hasBody ? JSON.stringify(BODIES[path] ?? {}) : '';
  const content = hasBody ? `content-type: application/json\r\ncontent-length: ${body.length}\r\n` : '';
  const authorization = credential === undefined ? '' : `authorization: Bearer ${credential}\r\n`;
  return `${method} ${path} HTTP/1.1\r\nhost: x\r\nx-request-id: ${id}\r\n${authorization}${content}${more}\r\n${body}`;
}

/** Waits until a connection is closed, or nothing happens on it any more. */
async function atRest(server: Socket): Promise<void> {
  let last = '';
  for (let still = 0; !server.destroyed && still < 10; still += 1) {
    const now = `${server.bytesRead} ${server.bytesWritten} ${watched.costOf(server).parsed}`;
    if (now !== last) still = 0;
    last = now;
    await sleep(2);
  }
}

/** Every route, and a path without a route. */
const requests = (): TriedRequest[] => [
  ...routesOf(gateway),
  { method: 'GET', path: '/nowhere' },
  { method: 'DELETE', path: '/metrics' },
  { method: 'GET', path: '/v1/models' },
  { method: 'GET', path: '/%zz' },
  { method: 'OPTIONS', path: '/api/v1/models', more: 'origin: https://x\r\naccess-control-request-method: GET\r\n' },
  { method: 'GET', path: '/api/v1/keys', more: 'expect: 100-continue\r\n' },
  { method: 'POST', path: '/api/v1/keys', more: 'expect: 100-continue\r\n' },
  { method: 'GET', path: '/api/v1/keys', more: 'expect: something\r\n' },
];

const credentials = () => [gateway.key, gateway.management_key, 'unknown', undefined];

test('on every route, a client that sends a hundred requests at once and reads nothing is answered one by one, or disconnected', async () => {
  const wrong: string[] = [];
  let cutOff = 0;
  // The bound does not depend on the route; the first tier takes every fourth.
  for (const one of requests().filter((_, at) => at % inTier(10, 1) === 0)) {
    const { client, server } = await watched.open();
    client.write(bytesOf({ ...one, credential: gateway.management_key }, 'r').repeat(100));
    // If the first read contains few of them, they are answered one by one until the system's buffers are full.
    await atRest(server);
    const { under_way, unread_bytes } = watched.worstOf(server);
    if (under_way > 1 || unread_bytes > 1024 * 1024) {
      wrong.push(`${one.method} ${one.path}: ${under_way} under way, ${unread_bytes} bytes`);
    }
    if (server.destroyed) cutOff += 1;
    client.destroy();
  }
  expect(wrong).toEqual([]);
  expect(cutOff).toBeGreaterThan(inTier(5, 50));
});

test('on every route, a few pipelined requests are answered one after the other, in their order', async () => {
  for (const one of requests()) {
    const { client, server } = await watched.open();
    // A refused request whose body is withheld ends its connection; with the right key none is refused.
    const isWithheld = one.method === 'POST' && one.more?.includes('100-continue') === true;
    const requests = credentials().map((credential, index) =>
      bytesOf({ ...one, credential: isWithheld ? gateway.management_key : credential }, `r-${index}`),
    );
    const last = `GET /health/live HTTP/1.1\r\nhost: x\r\nx-request-id: last\r\nconnection: close\r\n\r\n`;
    client.write([...requests, last].join(''));
    const answers = await text(client);
    const ids = [...answers.matchAll(/^x-request-id: (\S+)\r$/gim)].map(([, id]) => id);
    expect(ids, `${one.method} ${one.path}`).toEqual(['r-0', 'r-1', 'r-2', 'r-3', 'last']);
    expect(watched.worstOf(server).under_way, `${one.method} ${one.path}`).toBe(1);
  }
});

test('a refused request whose body is withheld closes the connection, and nothing behind it is answered', async () => {
  const { client } = await watched.open();
  const withheld = { method: 'POST', path: '/api/v1/keys', more: 'expect: 100-continue\r\n' };
  const live = { method: 'GET', path: '/health/live' };
  const management = { ...withheld, credential: gateway.management_key };
  client.write(bytesOf(management, 'r-0') + bytesOf(withheld, 'r-1') + bytesOf(live, 'r-2') + bytesOf(live, 'r-3'));
  const answers = await text(client);
  expect([...answers.matchAll(/^x-request-id: (\S+)\r$/gim)].map(([, id]) => id)).toEqual(['r-0', 'r-1']);
  expect(answers.match(/^connection: close\r$/gim)).toHaveLength(1);
});

test('during a request at most one read is taken, and the rest is answered after it', async () => {
  const { client, server } = await watched.open();
  const slow = { model: 'sandbox/story', messages: [{ role: 'user', content: 'x' }], sandbox: { delay_ms: 700 } };
  const body = JSON.stringify(slow);
  client.write(
    `POST /api/v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${gateway.key}\r\n` +
      `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  );
  await vi.waitFor(() => expect(watched.costOf(server).parsed).toBe(1), WAIT);
  const large = `x-filler: ${'x'.repeat(8_000)}\r\n`;
  const count = 500;
  for (let index = 0; index < count; index += 1) {
    client.write(bytesOf({ method: 'GET', path: '/health/live', more: large }, `r-${index}`));
  }
  client.write('GET /health/live HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n');
  await vi.waitFor(() => expect(server.bytesRead).toBeGreaterThan(8_000), WAIT);
  let readMax = 0;
  while (watched.costOf(server).under_way === 0 && watched.costOf(server).parsed > 0) {
    readMax = Math.max(readMax, server.bytesRead);
    await new Promise(setImmediate);
  }
  // A read takes 64 KiB; one more may have begun before the first waiting request was known.
  expect(readMax).toBeLessThan(4 * 64 * 1024);
  const ids = [...(await text(client)).matchAll(/^x-request-id: r-(\d+)\r$/gim)].map(([, id]) => Number(id));
  expect(ids).toEqual(Array.from({ length: count }, (_, index) => index));
  expect(watched.worstOf(server).parsed).toBeLessThanOrEqual(limits.pipelined_requests_max + 1);
});

test('a client that reads nothing and sends more requests costs one answer, whatever it requests', async () => {
  const paths = ['/api/v1/openapi.json', '/docs/static/swagger-ui-bundle.js', '/metrics', '/api/v1/models'];
  for (const path of paths) {
    const { client, server } = await watched.open();
    const whole = Number((await fetch(`${gateway.url}${path}`, { method: 'HEAD' })).headers.get('content-length'));
    for (let sent = 0; sent < 400; sent += 20) {
      client.write(bytesOf({ method: 'GET', path }, 'r').repeat(20));
      await sleep(2);
      if (server.destroyed || watched.costOf(server).parsed > 20) break;
    }
    const { under_way, unread_bytes, parsed } = watched.worstOf(server);
    expect(under_way, path).toBe(1);
    expect(parsed, path).toBeLessThanOrEqual(1 + limits.pipelined_requests_max + 20);
    expect(unread_bytes, path).toBeLessThan((Number.isNaN(whole) ? 0 : whole) + 128 * 1024);
    client.destroy();
  }
});

test('many clients that read nothing share the bytes of one answer', async () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const path = '/api/v1/openapi.json';
  const whole = (await (await fetch(`${gateway.url}${path}`)).arrayBuffer()).byteLength;
  expect(whole).toBeGreaterThan(200_000);
  collect();
  const before = process.memoryUsage();
  const clients = 40;
  const opened = await Promise.all(Array.from({ length: clients }, () => watched.open()));
  // The system buffers some megabytes of each; then an answer waits here unread.
  for (const { client } of opened) client.write(bytesOf({ method: 'GET', path }, 'r').repeat(30));
  await vi.waitFor(
    () => expect(opened.filter(({ server }) => watched.costOf(server).unread_bytes > 0).length).toBe(clients),
    WAIT,
  );
  collect();
  const after = process.memoryUsage();
  const grown = after.heapUsed + after.external - before.heapUsed - before.external;
  expect(grown).toBeLessThan((clients * whole) / 2);
  for (const { client } of opened) client.destroy();
});

test('bytes that are not a request do not appear in the answer before them', async () => {
  const { client } = await watched.open();
  const body = JSON.stringify(BODIES['/api/v1/chat/completions']);
  client.write(
    `POST /api/v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${gateway.key}\r\n` +
      `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}this is no request\r\n\r\n`,
  );
  const answer = await text(client);
  expect(answer).not.toContain('The request is not valid HTTP');
});
