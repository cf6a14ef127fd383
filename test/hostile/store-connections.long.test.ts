/** A PostgreSQL with few connections for many nodes, directly and behind a pooler with transaction pooling. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { Client } from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { limits } from '../../src/limits.ts';
import { openDatabase } from '../../src/storage/database.ts';
import { verifyLedger } from '../../src/storage/verify-ledger.ts';
import { startGateway, type TestGateway } from '../harness.ts';
import { freePort, noOwnPostgres, type OwnPostgres, startOwnPostgres } from '../own-postgres.ts';

const PGBOUNCER = ['/usr/sbin/pgbouncer', '/usr/bin/pgbouncer'].find((path) => existsSync(path));
const noPgBouncer = PGBOUNCER === undefined ? 'PgBouncer is not installed' : noOwnPostgres;
const SERVER_CONNECTIONS = 16;
const { store_read_ms_max, feed_silence_ms_max } = limits;

describe.skipIf(noOwnPostgres !== undefined)(`few connections ${noOwnPostgres ?? ''} (postgres)`, () => {
  const cleanups: (() => Promise<unknown> | unknown)[] = [];
  let own: OwnPostgres;
  let databases = 0;

  beforeAll(async () => {
    // A request is refused for want of a connection, and not because the machine is slow.
    Object.assign(limits, { store_read_ms_max: 60_000 });
    // A slow machine must not make a used key unknown either.
    Object.assign(limits, { feed_silence_ms_max: 60_000 });
    own = await startOwnPostgres({
      max_connections: SERVER_CONNECTIONS,
      superuser_reserved_connections: 0,
      log_statement: 'all',
    });
  });
  afterAll(() => {
    Object.assign(limits, { store_read_ms_max, feed_silence_ms_max });
    own?.remove();
  });
  afterEach(async () => {
    for (const cleanUp of cleanups.splice(0).reverse()) await cleanUp();
  });

  async function ask<Row>(text: string, url = own.url): Promise<Row[]> {
    const client = new Client({ connectionString: url });
    await client.connect();
    try {
      return (await client.query(text)).rows as Row[];
    } finally {
      await client.end();
    }
  }

  async function freshDatabase(): Promise<{ name: string; url: string }> {
    databases += 1;
    const name = `gateway_${databases}`;
    await ask(`CREATE DATABASE ${name}`);
    return { name, url: Object.assign(new URL(own.url), { pathname: `/${name}` }).href };
  }

  async function nodes(count: number, environment: Record<string, string>, yaml = '{}'): Promise<TestGateway[]> {
    const made: TestGateway[] = [];
    while (made.length < count) {
      const secret = { GATEWAY_SECRET: 'a-secret-that-all-nodes-share-long-enough' };
      const gateway = await startGateway({ yaml, environment: { ...environment, ...secret } });
      cleanups.push(() => gateway.stop());
      made.push(gateway);
    }
    return made;
  }

  async function makeKey(gateway: TestGateway, body: object = {}) {
    const authorization = `Bearer ${gateway.management_key}`;
    const made = await gateway.call('POST', '/keys', { name: 'k', ...body }, { authorization });
    expect(made.status).toBe(201);
    const { key, data } = (await made.json()) as { key: string; data: { hash: string } };
    return { key, hash: data.hash };
  }

  async function chat(gateway: TestGateway, key: string): Promise<number> {
    const body = { model: 'sandbox/echo', max_tokens: 20, messages: [{ role: 'user', content: 'hello there' }] };
    const answer = await gateway.call('POST', '/chat/completions', body, { authorization: `Bearer ${key}` });
    await answer.text();
    return answer.status;
  }

  /** The number of answers of each status. */
  function tally(statuses: readonly number[]): Record<number, number> {
    const counts: Record<number, number> = {};
    for (const status of statuses) counts[status] = (counts[status] ?? 0) + 1;
    return counts;
  }

  /** Every key is new to every node, so that each of its calls reads the store; some calls run concurrently. */
  async function load(gateways: readonly TestGateway[], keysCount = 60): Promise<Record<number, number>> {
    const [first] = gateways;
    const keys: string[] = [];
    while (keys.length < keysCount && first) keys.push((await makeKey(first, { limit: 1 })).key);
    const calls = keys.flatMap((key) => gateways.map((gateway) => ({ key, gateway })));
    const statuses: number[] = [];
    const client = async () => {
      for (let call = calls.shift(); call !== undefined; call = calls.shift()) {
        statuses.push(await chat(call.gateway, call.key));
      }
    };
    await Promise.all(Array.from({ length: 24 }, client));
    return tally(statuses);
  }

  test('four nodes on a server with sixteen connections refuse no call for lack of a connection', async () => {
    const { url } = await freshDatabase();
    const gateways = await nodes(4, { DATABASE_URL: url });
    // Another program uses some of the remaining connections.
    const others = Array.from({ length: 4 }, () => new Client({ connectionString: own.url }));
    for (const other of others) {
      // Ignored if the nodes already have all connections.
      await other.connect().then(
        () => cleanups.push(() => other.end()),
        () => undefined,
      );
    }
    expect(await load(gateways)).toEqual({ 200: 240 });
  });

  test('a node opens as many connections as configured, and one for notifications', async () => {
    const { name, url } = await freshDatabase();
    const gateways = await nodes(2, { DATABASE_URL: url }, 'database: { connections: 2 }');
    let most = 0;
    let done = false;
    const watch = async () => {
      while (!done) {
        const query = `SELECT count(*)::int AS open FROM pg_stat_activity WHERE datname = '${name}' AND application_name LIKE 'model-gateway%'`;
        const [row] = await ask<{ open: number }>(query);
        most = Math.max(most, row?.open ?? 0);
      }
    };
    const watching = watch();
    const statuses = await load(gateways, 40);
    done = true;
    await watching;
    expect(statuses).toEqual({ 200: 80 });
    expect(most).toBe(2 * (2 + 1));
  });

  describe.skipIf(noPgBouncer !== undefined)(`behind PgBouncer with transaction pooling ${noPgBouncer ?? ''}`, () => {
    async function startPgBouncer(): Promise<number> {
      const port = await freePort();
      const file = join(own.folder, 'pgbouncer.ini');
      const lines = [
        '[databases]',
        `* = host=127.0.0.1 port=${own.port} user=postgres`,
        '[pgbouncer]',
        'listen_addr = 127.0.0.1',
        `listen_port = ${port}`,
        `unix_socket_dir = ${own.folder}`,
        'auth_type = any',
        'pool_mode = transaction',
        'default_pool_size = 3',
        'max_client_conn = 100',
      ];
      writeFileSync(file, lines.join('\n'));
      // Gateways in this process give nobody else access to their files.
      chmodSync(file, 0o644);
      const isRoot = process.getuid?.() === 0;
      const command = [PGBOUNCER ?? '', '-q', file];
      const [program = '', ...args] = isRoot ? ['setpriv', '--reuid=postgres', '--clear-groups', ...command] : command;
      const child = spawn(program, args, { cwd: own.folder, stdio: 'ignore' });
      cleanups.push(async () => {
        if (child.exitCode !== null) return;
        child.kill('SIGKILL');
        await once(child, 'exit');
      });
      await expect
        .poll(
          () =>
            new Promise<boolean>((resolve) => {
              const socket = connect(port, '127.0.0.1', () => resolve(true)).on('error', () => resolve(false));
              socket.on('connect', () => socket.destroy());
            }),
        )
        .toBe(true);
      return port;
    }

    test('calls, limits, rates and changes work, and cached keys do not read the store', async () => {
      const { name, url } = await freshDatabase();
      const port = await startPgBouncer();
      const pooled = Object.assign(new URL(url), { port: String(port) }).href;
      const yaml = 'rate_limits: { per_key: { requests_per_minute: 100000 } }';
      const [one, other] = await nodes(2, { DATABASE_URL: pooled, DATABASE_LISTEN_URL: url }, yaml);
      if (one === undefined || other === undefined) throw new Error('two nodes');
      expect(await load([one, other], 30)).toEqual({ 200: 60 });
      const { key, hash } = await makeKey(one, { limit: 1 });
      for (const gateway of [one, other]) expect(await chat(gateway, key)).toBe(200);
      // Not from the server's statistics, which are up to ten seconds old.
      const logged = () => readFileSync(join(own.folder, 'log'), 'utf8');
      const from = logged().length;
      const known = await Promise.all(Array.from({ length: 60 }, (_, at) => chat(at % 2 === 0 ? one : other, key)));
      expect(tally(known)).toEqual({ 200: 60 });
      const statements = logged().slice(from).split('\n');
      expect(statements.length).toBeGreaterThan(10);
      expect(statements.filter((line) => line.includes('"api_keys"'))).toEqual([]);
      const authorization = `Bearer ${one.management_key}`;
      const disabled = await one.call('PATCH', `/keys/${hash}`, { disabled: true }, { authorization });
      expect(disabled.status).toBe(200);
      expect(await chat(other, key)).toBe(401);
      // Only the pooler's own connections and those of two nodes for notifications.
      const query = `SELECT count(*)::int AS open FROM pg_stat_activity WHERE datname = '${name}'`;
      expect((await ask<{ open: number }>(query))[0]?.open).toBeLessThanOrEqual(3 + 2);
      for (const gateway of [one, other]) await gateway.gateway.stop();
      const database = await openDatabase({ database_url: url });
      expect((await verifyLedger(database.queries)).differences).toEqual([]);
      await database.close();
    });

    test('a direct address that leads to another database is refused at the start', async () => {
      const { url } = await freshDatabase();
      const { url: elsewhere } = await freshDatabase();
      const port = await startPgBouncer();
      const pooled = Object.assign(new URL(url), { port: String(port) }).href;
      const starting = startGateway({ environment: { DATABASE_URL: pooled, DATABASE_LISTEN_URL: elsewhere } });
      await expect(starting).rejects.toThrow(/DATABASE_LISTEN_URL/);
    });
  });
});
