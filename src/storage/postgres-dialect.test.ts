import { connect, createServer, type Server, type Socket } from 'node:net';
import { Kysely, sql } from 'kysely';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { openPool, parseInteger, postgresDialect } from './postgres-dialect.ts';
import { isUnavailable } from './unavailable.ts';

const TEST_DATABASE_URL = process.env['TEST_DATABASE_URL'];

test('integers of PostgreSQL are numbers while they are exact', () => {
  expect(parseInteger('-42')).toBe(-42);
  expect(parseInteger('9007199254740991')).toBe(9_007_199_254_740_991);
  expect(() => parseInteger('9007199254740992')).toThrow(RangeError);
});

describe.skipIf(TEST_DATABASE_URL === undefined)('broken connections to the server (postgres)', () => {
  let proxy: Server;
  let pairs: Socket[][];
  let silent: Set<Socket>;
  let queries: Kysely<unknown>;

  beforeEach(async () => {
    const { hostname, port } = new URL(TEST_DATABASE_URL ?? '');
    pairs = [];
    silent = new Set();
    proxy = createServer((client) => {
      const server = connect(Number(port || 5432), hostname);
      pairs.push([client, server]);
      client.on('data', (bytes) => silent.has(client) || server.write(bytes));
      server.on('data', (bytes) => silent.has(client) || client.write(bytes));
      for (const socket of [client, server]) socket.on('error', () => {});
      client.on('close', () => server.destroy());
      server.on('close', () => client.destroy());
    });
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
    const address = proxy.address();
    const url = new URL(TEST_DATABASE_URL ?? '');
    url.hostname = '127.0.0.1';
    url.port = String(address !== null && typeof address === 'object' ? address.port : 0);
    const callbacks = { onConnectionLost: () => {}, onAnswer: () => {} };
    const pool = openPool(url.href, { statement_ms_max: 200, connections_max: 10, is_pooled: false, ...callbacks });
    queries = new Kysely({ dialect: postgresDialect(pool) });
  });
  afterEach(async () => {
    await queries.destroy();
    for (const socket of pairs.flat()) socket.destroy();
    await new Promise((resolve) => proxy.close(resolve));
  });

  const one = (over = queries) => sql<{ one: number }>`SELECT 1 AS one`.execute(over).then(({ rows }) => rows[0]?.one);

  test('a connection that is cut in a transaction fails this transaction alone', async () => {
    const broken = queries.transaction().execute(async (tx) => {
      await one(tx);
      const sleeping = sql`SELECT pg_sleep(5)`.execute(tx);
      setTimeout(() => pairs.flat().map((socket) => socket.destroy()), 20);
      await sleeping;
    });
    await expect(broken).rejects.toThrow();
    expect(await one()).toBe(1);
  });

  test('a connection that is cut between two statements of a transaction fails this transaction alone', async () => {
    const broken = queries.transaction().execute(async (tx) => {
      await one(tx);
      for (const socket of pairs.flat()) socket.destroy();
      await new Promise((resolve) => setTimeout(resolve, 20));
      await one(tx);
    });
    await expect(broken).rejects.toThrow();
    expect(await one()).toBe(1);
  });

  test('a silent connection is closed after one timeout and not reused', async () => {
    expect(await one()).toBe(1);
    for (const [client] of pairs) if (client) silent.add(client);
    await expect(queries.transaction().execute((tx) => one(tx))).rejects.toThrow(/timeout/);
    expect(await one()).toBe(1);
    expect(pairs).toHaveLength(2);
  });

  test.each(['alone', 'in a transaction'])(
    'a connection to a read-only server is closed after a write that failed %s',
    async (where) => {
      const make = (over = queries) => sql`CREATE TEMPORARY TABLE made (id int)`.execute(over);
      await sql`SET default_transaction_read_only = on`.execute(queries);
      const written = where === 'alone' ? make() : queries.transaction().execute((tx) => make(tx));
      const error = await written.catch((reason: unknown) => reason);
      expect(error).toMatchObject({ message: 'cannot execute CREATE TABLE in a read-only transaction' });
      expect(isUnavailable(error)).toBe(true);
      await make();
      expect(pairs).toHaveLength(2);
    },
  );
});
