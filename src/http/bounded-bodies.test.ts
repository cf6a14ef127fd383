import type { AddressInfo } from 'node:net';
import { createConnection, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { limits } from '../limits.ts';
import { claimOf, REQUEST_BYTES } from './bounded-bodies.ts';
import { createServer } from './create-server.ts';
import { createMemory, type Memory, structureBytes } from './memory.ts';
import type { Principal } from './principal.ts';
import type { Server } from './server.ts';

const MIB = 1024 * 1024;
const { memory_wait_ms_max } = limits;
/** How long a request waits for memory here: long enough for everything that a test sends meanwhile. */
const WAIT_MS = 500;

const ONE = { kind: 'key', key_hash: 'one' } as Principal;

let server: Server;
/** Authentication waits for this promise; undefined: it does not wait. */
let known: PromiseWithResolvers<void> | undefined;
let memory: Memory;
let url: string;
/** The handlers wait for this promise; the number of handled requests. */
let gate: PromiseWithResolvers<void>;
let handled: number;
beforeAll(() => void Object.assign(limits, { memory_wait_ms_max: WAIT_MS }));
afterAll(() => void Object.assign(limits, { memory_wait_ms_max }));
beforeEach(async () => {
  memory = createMemory(16 * MIB);
  gate = Promise.withResolvers();
  handled = 0;
  known = undefined;
  server = createServer({
    authenticate: () => (known === undefined ? ONE : known.promise.then(() => ONE)),
    logger: false,
    body_bytes_max: 8 * MIB,
    memory,
  });
  server.route({
    method: 'POST',
    url: '/echo',
    // Without the bound of operations of one caller, which all requests of these tests have.
    config: { access: 'any', shared: true },
    handler: async (request, reply) => {
      handled += 1;
      const length = JSON.stringify(request.body).length;
      await gate.promise;
      return reply.send({ length });
    },
  });
  server.route({
    method: 'GET',
    url: '/reads',
    config: { access: 'any' },
    handler: async (request) => {
      await claimOf(request)?.take(MIB);
      return { held: memory.held_bytes };
    },
  });
  server.post('/open', { config: { access: 'open' } }, async () => ({}));
  await server.listen({ host: '127.0.0.1', port: 0 });
  url = `http://127.0.0.1:${(server.server.address() as AddressInfo).port}`;
});
afterEach(async () => {
  gate.resolve();
  server.server.closeAllConnections();
  await server.close();
});

const MODEL = '"model":"a/b"';
test.each<[string, string | Buffer, Record<string, string>, string | undefined]>([
  ['the charset UTF-8', `{${MODEL}}`, { 'content-type': 'application/json; charset="UTF-8"' }, undefined],
  [
    'the charset US-ASCII, which is UTF-8',
    `{${MODEL}}`,
    { 'content-type': 'application/json;charset=us-ascii' },
    undefined,
  ],
  ['a byte order mark', `\uFEFF{${MODEL}}`, {}, undefined],
  ['a replacement character that was sent', '{"a":"\uFFFD"}', {}, undefined],
  ['an identity encoding', `{${MODEL}}`, { 'content-encoding': 'identity' }, undefined],
  ['a member "constructor" with a text', '{"constructor":"Bob"}', {}, undefined],
  ['another charset', `{${MODEL}}`, { 'content-type': 'application/json; charset=utf-16' }, 'charset utf-16'],
  ['a compressed body', Buffer.from([0x1f, 0x8b, 8]), { 'content-encoding': 'gzip' }, 'is not valid gzip'],
  ['a byte that is not UTF-8', Buffer.from([0x22, 0xff, 0x22]), {}, 'not valid UTF-8'],
  [
    'half a character, of the length of its replacement',
    Buffer.from([0x22, 0xf0, 0x9f, 0x98, 0x22]),
    {},
    'not valid UTF-8',
  ],
  ['half a body', `{${MODEL}`, {}, 'not valid JSON (at position 14)'],
  ['a list without an end', '[', {}, 'not valid JSON (end of JSON input)'],
  ['a text that is not JSON', 'hello', {}, 'not valid JSON (it cannot be parsed)'],
  ['a prototype', '{"a":[{"__proto__":{}}]}', {}, 'must not have the key "__proto__"'],
  ['a prototype by its constructor', '{"constructor":{"prototype":{}}}', {}, '"constructor" with a "prototype"'],
  ['nothing', '', {}, 'is empty'],
])('a body is accepted, or refused with its reason: %s', async (_name, body, more, reason) => {
  gate.resolve();
  const response = await fetch(`${url}/echo`, { method: 'POST', headers: { ...headers, ...more }, body });
  expect(response.status).toBe(reason === undefined ? 200 : 400);
  const answer = (await response.json()) as { error: { message: string } };
  if (reason !== undefined) expect(answer.error.message).toContain(reason);
  expect(memory.held_bytes).toBe(0);
});

const headers = { 'content-type': 'application/json', authorization: 'Bearer one' };
const textOf = (bytes: number) => JSON.stringify('x'.repeat(bytes - 2));
const post = (body: string, path = 'echo') => fetch(`${url}/${path}`, { method: 'POST', headers, body });

/** Sends a body without a content length. */
const stream = (body: string, path = 'echo') =>
  fetch(`${url}/${path}`, {
    method: 'POST',
    headers,
    body: Readable.toWeb(
      Readable.from([...(body.match(/.{1,65536}/gs) ?? [])].map((part) => Buffer.from(part))),
    ) as ReadableStream,
    duplex: 'half',
  } as RequestInit);

/** Opens a request and sends a part of its body. */
async function begin(length: number, sent: number): Promise<Socket> {
  const socket = createConnection((server.server.address() as AddressInfo).port, '127.0.0.1');
  socket.on('error', () => {});
  socket.write(
    `POST /echo HTTP/1.1\r\nhost: a\r\nauthorization: Bearer one\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\n\r\n`,
  );
  socket.write(textOf(length).slice(0, sent));
  return socket;
}

test('the memory of a small body includes its objects and the cost of each request', async () => {
  const objects = `[${'{},'.repeat(3_000)}{}]`;
  const answer = post(objects);
  await expect.poll(() => handled).toBe(1);
  expect(memory.held_bytes).toBe(REQUEST_BYTES + objects.length * limits.body_copies + structureBytes(objects));
  gate.resolve();
  expect((await answer).status).toBe(200);
  await expect.poll(() => memory.held_bytes).toBe(0);
});

test('small requests without memory are refused with 503', async () => {
  const answers = Promise.all(Array.from({ length: 300 }, () => post(`[${'{},'.repeat(3_000)}{}]`)));
  await expect.poll(() => handled).toBeGreaterThan(10);
  expect(memory.held_bytes).toBeLessThanOrEqual(12 * MIB);
  await sleep(limits.memory_wait_ms_max);
  gate.resolve();
  const statuses = (await answers).map(({ status }) => status);
  expect(new Set(statuses)).toEqual(new Set([200, 503]));
  await expect.poll(() => memory.held_bytes).toBe(0);
});

test.each([
  ['with a declared length', post],
  ['of unknown length', stream],
])('an unauthenticated body %s, or one for an unknown path, takes no memory of others', async (_what, send) => {
  await memory.claim('another').take(12 * MIB);
  await memory.claim('a third').take(MIB);
  const answers = await Promise.all([send(textOf(MIB), 'open'), send(textOf(MIB), 'nowhere')]);
  expect(answers.map(({ status }) => status)).toEqual([413, 404]);
  expect((await post('{}', 'open')).status).toBe(200);
});

test.each([
  ['with a declared length', post],
  ['of unknown length', stream],
])('a large body %s is held until its request is answered', async (_what, send) => {
  const answer = send(textOf(MIB));
  await expect.poll(() => handled).toBe(1);
  expect(memory.held_bytes).toBeGreaterThanOrEqual(MIB * limits.body_copies);
  expect(memory.held_bytes).toBeLessThan(MIB * limits.body_copies + 6 * limits.counted_bytes_step);
  gate.resolve();
  expect(await (await answer).json()).toEqual({ length: MIB });
  await expect.poll(() => memory.held_bytes).toBe(0);
});

test.each([
  ['with a declared length', post],
  ['of unknown length', stream],
])('a body %s without memory is refused with 503, and the others are answered', async (_what, send) => {
  // Of another key, so that the share of one key does not matter.
  await memory.claim('another').take(5 * MIB);
  const first = post(textOf(2 * MIB));
  await expect.poll(() => handled).toBe(1);
  const refused = await send(textOf(2 * MIB));
  expect(refused.status).toBe(503);
  expect(refused.headers.get('retry-after')).toBe('1');
  expect(handled).toBe(1);
  gate.resolve();
  expect((await first).status).toBe(200);
  await expect.poll(() => memory.held_bytes).toBe(5 * MIB);
});

test('a body that waits for memory is read when there is some', async () => {
  const other = memory.claim('another');
  await other.take(12 * MIB);
  const answer = post(textOf(2 * MIB));
  await sleep(100);
  expect(handled).toBe(0);
  other.release();
  gate.resolve();
  expect((await answer).status).toBe(200);
});

test('a body above the bound of one request is a 413 before it is read', async () => {
  const answer = await post(textOf(4 * MIB));
  expect([answer.status, handled]).toEqual([413, 0]);
});

test('a body of many small objects is counted by their number', async () => {
  const answer = await post(`[${'{},'.repeat(100_000)}{}]`);
  expect([answer.status, handled]).toEqual([413, 0]);
  await expect.poll(() => memory.held_bytes).toBe(0);
});

test('a client that disconnects during its body, or while it waits, holds no memory', async () => {
  const socket = await begin(MIB, 100_000);
  await expect.poll(() => memory.held_bytes).toBe(REQUEST_BYTES + MIB * limits.body_copies);
  socket.destroy();
  await expect.poll(() => memory.held_bytes).toBe(0);
});

test('a client that disconnects during authentication holds no memory', async () => {
  known = Promise.withResolvers();
  const sockets = await Promise.all([begin(MIB, 100_000), begin(200, 100)]);
  await sleep(50);
  for (const socket of sockets) socket.destroy();
  await sleep(50);
  known.resolve();
  await sleep(50);
  expect(memory.held_bytes).toBe(0);
});

test('the body of a client that disconnects before its answer is held until the handler ends', async () => {
  const socket = await begin(MIB, MIB);
  await expect.poll(() => handled).toBe(1);
  socket.destroy();
  await sleep(50);
  expect(memory.held_bytes).toBeGreaterThan(MIB);
  gate.resolve();
  await expect.poll(() => memory.held_bytes).toBe(0);
});

test('memory for the answer of a request without a body is released with it', async () => {
  const answer = await (await fetch(`${url}/reads`, { headers })).json();
  expect(answer).toEqual({ held: MIB });
  await expect.poll(() => memory.held_bytes).toBe(0);
});

test('JSON with a prototype member is refused, in a small body and in a large one', async () => {
  gate.resolve();
  for (const padding of [0, MIB / 4]) {
    const answer = await post(`{"__proto__":{"a":1},"b":${textOf(padding + 2)}}`);
    expect(answer.status).toBe(400);
  }
});
