import { copyFileSync, existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { Client } from 'pg';
import { describe, expect, test } from 'vitest';
import { checkChatStream } from '../grammar/chat.ts';
import { chat, freshDir, MANAGEMENT_KEY, makeKey, run, serve, start, stop, until } from './gateway-process.ts';

const TEST_DATABASE_URL = process.env['TEST_DATABASE_URL'];

test('a store that cannot be written: management is a 503 with one sentence, the cause is in the log, requests are served, nothing is lost', {
  timeout: 180_000,
}, async () => {
  const gateway = await serve();
  const { key } = await makeKey(gateway);
  const locker = new DatabaseSync(join(gateway.data_dir, 'gateway.db'));
  locker.exec('BEGIN EXCLUSIVE');
  const refused = await gateway.call('POST', '/keys', { body: { name: 'x' } });
  expect(refused.status).toBe(503);
  expect(refused.headers.get('retry-after')).toBe('1');
  expect(await refused.json()).toMatchObject({
    error: { code: 503, message: 'The store does not answer at the moment; try again soon', metadata: null },
  });
  const answer = await gateway.call('POST', '/chat/completions', { key, body: chat('sandbox/echo') });
  expect(answer.status).toBe(200);
  const { id } = (await answer.json()) as { id: string };
  expect((await gateway.call('GET', `/generation?id=${id}`, { key })).status).toBe(200);
  locker.exec('ROLLBACK');
  locker.close();
  await makeKey(gateway);
  expect(await stop(gateway)).toBe(0);
  const requestId = refused.headers.get('x-request-id');
  const logged = gateway.log().filter((line) => line['request_id'] === requestId && line['level'] === 'error');
  const cause = expect.stringContaining('database is locked');
  expect(logged).toMatchObject([{ msg: 'request failed', status: 503, err: { message: cause } }]);
  const next = await serve({ data_dir: gateway.data_dir });
  expect((await next.call('GET', `/generation?id=${id}`, { key })).status).toBe(200);
  await stop(next);
});

test('a store whose thread dies: running streams finish, the process ends as failed with the reason, and nothing is lost', {
  timeout: 180_000,
}, async () => {
  const killer = `--import=${pathToFileURL(join(import.meta.dirname, 'thread-killer.ts')).href}`;
  const gateway = await serve({ environment: { NODE_OPTIONS: killer } });
  const { key } = await makeKey(gateway);
  const body = chat('sandbox/story', { stream: true, sandbox: { tokens: 100, chunk_delay_ms: 10 } });
  const answer = await gateway.call('POST', '/chat/completions', { key, body });
  gateway.child.kill('SIGUSR2');
  const text = await answer.text();
  expect(text).toContain('"finish_reason":"stop"');
  checkChatStream(text);
  expect(await gateway.ended).toBe(1);
  const fatal = gateway.log().filter(({ level }) => level === 'fatal');
  expect(fatal).toMatchObject([{ msg: expect.stringContaining('store is lost; draining') }]);
  const next = await serve({ data_dir: gateway.data_dir });
  const id = answer.headers.get('x-generation-id') ?? '';
  const response = await next.call('GET', `/generation?id=${id}`, { key });
  expect(response.status).toBe(200);
  expect(await response.json()).toMatchObject({ data: { outcome: 'completed' } });
  await stop(next);
});

describe.skipIf(TEST_DATABASE_URL === undefined)('a server that stops (postgres)', () => {
  test('readiness turns 503 and recovers, answers in between are kept, the process continues', {
    timeout: 180_000,
  }, async () => {
    const name = `test_gone_${process.pid}`;
    const admin = new Client({ connectionString: TEST_DATABASE_URL });
    await admin.connect();
    await admin.query(`CREATE DATABASE ${name}`);
    const url = new URL(TEST_DATABASE_URL ?? '');
    url.pathname = `/${name}`;
    try {
      const gateway = await serve({ environment: { DATABASE_URL: url.href } });
      const { key } = await makeKey(gateway);
      const ask = async () => {
        const answer = await gateway.call('POST', '/chat/completions', { key, body: chat('sandbox/echo') });
        return { status: answer.status, body: (await answer.json()) as { id: string; error?: { message: string } } };
      };
      expect((await ask()).status).toBe(200);
      const body = chat('sandbox/story', { stream: true, sandbox: { tokens: 600, chunk_delay_ms: 10 } });
      const stream = await gateway.call('POST', '/chat/completions', { key, body });
      await admin.query(`ALTER DATABASE ${name} ALLOW_CONNECTIONS false`);
      await admin.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${name}'`);
      await until('not ready', async () => (await fetch(`${gateway.url}/health/ready`)).status === 503);
      expect((await fetch(`${gateway.url}/health/live`)).status).toBe(200);
      // It cannot be known whether its key was revoked meanwhile.
      await until('keys are no longer taken from memory', async () => (await ask()).status === 503);
      expect(await ask()).toMatchObject({ status: 503, body: { error: { code: 503 } } });
      const text = await stream.text();
      expect(text).toContain('"finish_reason":"stop"');
      checkChatStream(text);
      expect((await fetch(`${gateway.url}/health/ready`)).status).toBe(503);
      const refused = await gateway.call('POST', '/keys', { body: { name: 'x' } });
      expect(refused.status).toBe(503);
      expect(await refused.json()).toMatchObject({
        error: { code: 503, message: 'The store does not answer at the moment; try again soon', metadata: null },
      });
      expect(gateway.child.exitCode).toBeNull();
      await admin.query(`ALTER DATABASE ${name} ALLOW_CONNECTIONS true`);
      await gateway.ready();
      const { hash } = await makeKey(gateway);
      expect((await gateway.call('GET', `/keys/${hash}`)).status).toBe(200);
      expect(await stop(gateway)).toBe(0);
      expect(gateway.err()).toBe('');
      const stored = new Client({ connectionString: url.href });
      await stored.connect();
      const { rows } = await stored.query('SELECT id FROM ledger_generations WHERE id = $1', [
        stream.headers.get('x-generation-id'),
      ]);
      await stored.end();
      expect(rows).toHaveLength(1);
    } finally {
      await admin.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
      await admin.end();
    }
  });

  test('one that does not answer at the start ends it with a message without its password', async () => {
    const gateway = await start({ environment: { DATABASE_URL: 'postgres://me:hidden-word@127.0.0.1:9/none' } });
    expect(await gateway.ended).toBe(1);
    expect(gateway.err()).toMatch(/^PostgreSQL at 127\.0\.0\.1:9\/none does not answer\n$/);
    expect(gateway.out() + gateway.err()).not.toContain('hidden-word');
  });
});

test('`backup` copies the store of a gateway under load as of one moment, and never overwrites a file', {
  timeout: 180_000,
}, async () => {
  const gateway = await serve();
  const { key, hash } = await makeKey(gateway);
  let stopped = false;
  let answered = 0;
  const clients = Array.from({ length: 8 }, async () => {
    while (!stopped) {
      const answer = await gateway.call('POST', '/chat/completions', { key, body: chat('sandbox/echo') });
      await answer.text();
      answered += 1;
    }
  });
  await until('load', () => answered > 100);
  const bin = join(import.meta.dirname, '../../bin/model-gateway.cjs');
  const env = { GATEWAY_DATA_DIR: gateway.data_dir, GATEWAY_MANAGEMENT_KEY: MANAGEMENT_KEY };
  const folder = freshDir();
  for (const file of ['one.db', 'two.db', 'three.db'].map((name) => join(folder, name))) {
    const backup = run(process.execPath, [bin, 'backup', file], { env });
    expect(await backup.ended, backup.err()).toBe(0);
    expect(backup.out()).toBe(`${file}\n`);
    const copy = new DatabaseSync(file, { readOnly: true });
    expect(copy.prepare('PRAGMA integrity_check').all()).toEqual([{ integrity_check: 'ok' }]);
    const own = copy
      .prepare('SELECT COUNT(*) AS n, SUM(cost) AS cost FROM ledger_generations WHERE key_hash = ?')
      .get(hash);
    const day = copy
      .prepare(
        "SELECT SUM(requests) AS n, SUM(usage_nano) AS cost FROM usage_days WHERE scope = 'key' AND scope_id = ?",
      )
      .get(hash);
    copy.close();
    expect(own).toEqual(day);
    expect(Number(own?.['n'])).toBeGreaterThan(0);
  }
  const first = join(folder, 'one.db');
  const before = statSync(first);
  const again = run(process.execPath, [bin, 'backup', first], { env });
  expect(await again.ended).toBe(1);
  expect(again.err()).toMatch(/one\.db exists; a backup never overwrites a file\n$/);
  expect(again.err()).not.toMatch(/^\s+at /m);
  expect(statSync(first).mtimeMs).toBe(before.mtimeMs);
  stopped = true;
  await Promise.all(clients);
  expect(await stop(gateway)).toBe(0);

  const restored = freshDir();
  copyFileSync(join(folder, 'three.db'), join(restored, 'gateway.db'));
  const other = await serve({ data_dir: restored });
  expect((await other.call('GET', `/keys/${hash}`)).status).toBe(200);
  expect(existsSync(join(folder, 'three.db-wal'))).toBe(false);
  await stop(other);
});
