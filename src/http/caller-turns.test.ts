import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { afterEach, expect, test } from 'vitest';
import { GatewayError } from '../errors.ts';
import { limits } from '../limits.ts';
import { inCallerTurn } from './caller-turns.ts';
import { createServer } from './create-server.ts';
import type { Principal } from './principal.ts';
import type { Server } from './server.ts';

const REQUESTS = 12;
const TURNS = limits.caller_operations_max;

let server: Server | undefined;
afterEach(() => server?.close());

/** A server with one operation, whose callers are named by their credential. */
function serve(handler: (request: FastifyRequest, reply: FastifyReply) => unknown): void {
  server = createServer({
    logger: false,
    body_bytes_max: 1000,
    authenticate: (secret) => ({ kind: 'management', key_hash: secret, budgets: [] }) as unknown as Principal,
  });
  server.route({ method: 'GET', url: '/', config: { access: 'management' }, handler: handler as never });
}
const get = (caller: string) => server!.inject({ url: '/', headers: { authorization: `Bearer ${caller}` } });
const turn = () => new Promise((resolve) => setImmediate(resolve));

test('operations of one caller wait for each other beyond a few; those of others do not wait for them', async () => {
  const ends: (() => void)[] = [];
  const begun: string[] = [];
  serve(async ({ principal }) => {
    begun.push(principal!.key_hash!);
    await new Promise<void>((resolve) => void ends.push(resolve));
    return {};
  });
  const answers = Array.from({ length: REQUESTS }, () => get('one'));
  for (let turns = 0; turns < 5; turns += 1) await turn();
  expect(begun).toEqual(Array(TURNS).fill('one'));
  answers.push(get('other'));
  for (let turns = 0; turns < 5; turns += 1) await turn();
  expect(begun.slice(TURNS)).toEqual(['other']);
  for (let ended = 0; ended <= REQUESTS; ended += 1) {
    ends[ended]!();
    for (let turns = 0; turns < 3; turns += 1) await turn();
  }
  expect((await Promise.all(answers)).map(({ statusCode }) => statusCode)).toEqual(Array(REQUESTS + 1).fill(200));
});

test('short operations that arrive together take several turns of the event loop', async () => {
  let now = 0;
  const perTurn = new Map<number, number>();
  serve(() => {
    perTurn.set(now, (perTurn.get(now) ?? 0) + 1);
    return Promise.resolve({});
  });
  const answers = Promise.all(Array.from({ length: REQUESTS }, () => get('one')));
  let isAnswered = false;
  void answers.then(() => {
    isAnswered = true;
  });
  for (; !isAnswered; now += 1) await turn();
  expect(Math.max(...perTurn.values())).toBeLessThanOrEqual(TURNS);
});

test('an unread answer, or a failure, does not keep the next operation waiting', async () => {
  let count = 0;
  serve((_request, reply) => {
    count += 1;
    if (count > TURNS * 2) return reply.send({});
    if (count > TURNS) throw new Error('fails');
    return reply.send(new Readable({ read() {} }));
  });
  for (let unread = 0; unread < TURNS; unread += 1) void get('one').catch(() => undefined);
  await turn();
  for (let failed = 0; failed < TURNS; failed += 1) expect((await get('one')).statusCode).toBe(500);
  expect((await get('one')).statusCode).toBe(200);
});

/** Longer than a caller counts as just found. */
const LATER_MS = 300;

test('an operation that waited is not begun for a caller that has ended meanwhile, and later ones are', async () => {
  const ends: (() => void)[] = [];
  let isRevoked = false;
  server = createServer({
    logger: false,
    body_bytes_max: 1000,
    authenticate: (secret) => {
      if (isRevoked) throw new GatewayError(401, 'Revoked');
      return { kind: 'management', key_hash: secret, budgets: [] } as unknown as Principal;
    },
  });
  server.route({
    method: 'GET',
    url: '/',
    config: { access: 'management' },
    handler: (async () => {
      await new Promise<void>((resolve) => void ends.push(resolve));
      return {};
    }) as never,
  });
  const answers = Array.from({ length: TURNS + 2 }, () => get('one'));
  await sleep(LATER_MS);
  isRevoked = true;
  for (const end of ends) end();
  const statuses = (await Promise.all(answers)).map(({ statusCode }) => statusCode);
  expect(statuses).toEqual([...Array(TURNS).fill(200), 401, 401]);
  isRevoked = false;
  const next = get('one');
  await sleep(10);
  ends.at(-1)!();
  expect((await next).statusCode).toBe(200);
});

test('an answer in portions ends as cut when its caller ends', async () => {
  let isRevoked = false;
  server = createServer({
    logger: false,
    body_bytes_max: 1000,
    authenticate: (secret) => {
      if (isRevoked) throw new GatewayError(401, 'Revoked');
      return { kind: 'management', key_hash: secret, budgets: [] } as unknown as Principal;
    },
  });
  const made: number[] = [];
  async function* portions(request: FastifyRequest) {
    for (let at = 0; at < 3; at += 1) {
      yield await inCallerTurn(request, async () => {
        made.push(at);
        return `${at}`;
      });
      isRevoked = true;
      await sleep(LATER_MS);
    }
  }
  const handler = (request: FastifyRequest, reply: FastifyReply) => reply.send(Readable.from(portions(request)));
  server.route({ method: 'GET', url: '/', config: { access: 'management' }, handler: handler as never });
  await expect(get('one')).rejects.toThrow();
  expect(made).toEqual([0]);
});

test('an answer in portions ends as cut when its person is no administrator any more, though the operation is for members too', async () => {
  let role: 'admin' | 'member' = 'admin';
  const person = () => ({ kind: 'management', key_hash: null, budgets: [], session: { id: 's', role } }) as never;
  server = createServer({
    logger: false,
    body_bytes_max: 1000,
    authenticate: () => person(),
    authenticateSession: () => Promise.resolve(person()),
    confirmSession: () => Promise.resolve(person()),
  });
  const made: number[] = [];
  async function* portions(request: FastifyRequest) {
    for (let at = 0; at < 3; at += 1) {
      yield await inCallerTurn(request, async () => {
        made.push(at);
        return `${at}`;
      });
      role = 'member';
      await sleep(LATER_MS);
    }
  }
  const handler = (request: FastifyRequest, reply: FastifyReply) => reply.send(Readable.from(portions(request)));
  const config = { access: 'management', forMembers: true } as const;
  server.route({ method: 'GET', url: '/', config, handler: handler as never });
  await expect(server.inject({ method: 'GET', url: '/', headers: { cookie: 'session=x' } })).rejects.toThrow();
  expect(made).toEqual([0]);
});
