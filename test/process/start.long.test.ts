import { once } from 'node:events';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { chat, freePort, freshDir, makeKey, run, serve, start, stop } from './gateway-process.ts';

const KEY = /sk-gw-v1-[0-9a-f]{64}/g;
const NO_KEY = { GATEWAY_MANAGEMENT_KEY: '' };

/** The keys that a first start printed, by kind. */
function firstKeys(out: string): { api_key: string; management_key: string } {
  const [apiKey = '', managementKey = ''] = [/API key.*?(sk-gw-\S+)/, /Management key.*?(sk-gw-\S+)/].map(
    (line) => line.exec(out)?.[1],
  );
  return { api_key: apiKey, management_key: managementKey };
}

test('the first start prints two keys that work and a request that a shell runs as printed; the second prints none', async () => {
  const dataDir = join(freshDir(), 'data');
  const environment = { ...NO_KEY, GATEWAY_FIRST_KEY_LIMIT: '2.50' };
  const first = await serve({ data_dir: dataDir, environment });
  const { api_key, management_key } = firstKeys(first.out());
  expect(new Set(first.out().match(KEY))).toEqual(new Set([api_key, management_key]));
  expect(first.err()).toBe('');
  const listed = await first.call('GET', '/keys', { key: management_key });
  expect(((await listed.json()) as { data: unknown }).data).toMatchObject([{ name: 'default', limit: 2.5 }]);
  const block = /^ *curl (?:.*\\\n)*.*$/m.exec(first.out())?.[0] ?? '';
  const pasted = run('sh', ['-c', block]);
  expect(await pasted.ended).toBe(0);
  const answer = JSON.parse(pasted.out()) as { choices: { message: { content: string } }[] };
  expect(answer.choices[0]?.message.content).toContain('kite');
  expect(first.out()).toContain(`listens on ${first.url}`);
  expect(await stop(first)).toBe(0);

  const second = await serve({ data_dir: dataDir, environment });
  expect(second.out()).not.toMatch(KEY);
  const again = await second.call('POST', '/keys', { key: management_key, body: { name: 'second' } });
  expect(again.status).toBe(201);
  await stop(second);
});

test('with GATEWAY_PRINT_KEYS=off the keys are in a file for this user only, and the printed request reads it', async () => {
  const gateway = await serve({ environment: { ...NO_KEY, GATEWAY_PRINT_KEYS: 'off' } });
  const file = join(gateway.data_dir, 'first-keys.env');
  expect(gateway.out()).not.toMatch(KEY);
  expect(gateway.out()).toContain(file);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(readFileSync(file, 'utf8')).toMatch(/^#.*\nMANAGEMENT_KEY=sk-gw-v1-\w+\nGATEWAY_KEY=sk-gw-v1-\w+\n$/);
  const block = /^ *\. '.*\n *curl (?:.*\\\n)*.*$/m.exec(gateway.out())?.[0] ?? '';
  const pasted = run('sh', ['-c', block]);
  expect(await pasted.ended).toBe(0);
  expect(pasted.out()).toContain('kite');
  await stop(gateway);
});

test('GATEWAY_FIRST_KEY=off creates no ordinary key; on creates one in addition to a management key of the environment', async () => {
  const without = await serve({ environment: { ...NO_KEY, GATEWAY_FIRST_KEY: 'off' } });
  expect(without.out().match(KEY)).toHaveLength(1);
  const { management_key } = firstKeys(without.out());
  const listed = await without.call('GET', '/keys', { key: management_key });
  expect(((await listed.json()) as { data: unknown[] }).data).toEqual([]);
  await stop(without);
  const beside = await serve({ environment: { GATEWAY_FIRST_KEY: 'on' } });
  const { api_key } = firstKeys(beside.out());
  expect(new Set(beside.out().match(KEY))).toEqual(new Set([api_key]));
  expect((await beside.call('POST', '/chat/completions', { key: api_key, body: chat('sandbox/echo') })).status).toBe(
    200,
  );
  await stop(beside);
});

test('an invalid first key limit stops the start with a message', async () => {
  const gateway = await start({ environment: { GATEWAY_FIRST_KEY_LIMIT: 'five' } });
  expect(await gateway.ended).toBe(1);
  expect(gateway.err()).toBe('GATEWAY_FIRST_KEY_LIMIT must be an amount of USD such as 5 or 0.50, not "five"\n');
});

test('a management key of the environment is used and never printed', async () => {
  const managementKey = 'an-operators-own-key-0123456789abcdef';
  const gateway = await serve({ environment: { GATEWAY_MANAGEMENT_KEY: managementKey } });
  const answer = await gateway.call('POST', '/keys', { key: managementKey, body: { name: 'first' } });
  expect(answer.status).toBe(201);
  const { key } = (await answer.json()) as { key: string };
  await stop(gateway);
  const output = gateway.out() + gateway.err();
  expect(output).not.toContain(managementKey);
  expect(output).not.toContain(key);
  expect(output).not.toMatch(KEY);
});

test('an invalid gateway.yaml stops the start with one message that names file, place and expected value', async () => {
  const gateway = await start({ yaml: 'timeouts:\n  heartbeat_ms: soon\n' });
  expect(await gateway.ended).toBe(1);
  expect(gateway.err()).toMatch(/gateway\.yaml.*timeouts\.heartbeat_ms.*must be a whole number of milliseconds/s);
  expect(gateway.err()).not.toMatch(/^\s+at /m);
  expect(gateway.out()).toBe('');
  expect(existsSync(gateway.data_dir)).toBe(false);
});

test.each([[1], [2]])('a port in use ends the start of %i workers with a message', async (workers) => {
  const other = createServer().listen(0, '127.0.0.1');
  await once(other, 'listening');
  const address = other.address();
  const port = address !== null && typeof address === 'object' ? address.port : 0;
  const dataDir = join(freshDir(), 'data');
  try {
    const gateway = await start({ port, data_dir: dataDir, environment: NO_KEY, args: ['--workers', String(workers)] });
    expect(await gateway.ended).toBe(1);
    expect(gateway.err()).toMatch(/^The address is in use by another process \(.*EADDRINUSE.*\)\. Set GATEWAY_PORT/);
    expect(gateway.err()).not.toMatch(/^\s+at /m);
    expect(gateway.out()).not.toMatch(KEY);
    const next = await serve({ data_dir: dataDir, environment: NO_KEY, args: ['--workers', String(workers)] });
    const { management_key } = firstKeys(next.out());
    expect((await next.call('POST', '/keys', { key: management_key, body: { name: 'first' } })).status).toBe(201);
    await stop(next);
  } finally {
    other.close();
  }
});

test.each(['the port of the metrics is in use', 'the journal cannot be made'])(
  'a start that fails because %s shows no management key; the next one that serves does',
  async (fault) => {
    const dataDir = join(freshDir(), 'data');
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    const address = other.address();
    const port = address !== null && typeof address === 'object' ? address.port : 0;
    const ofMetrics = fault.includes('metrics');
    const slots = join(dataDir, 'slots');
    if (!ofMetrics) {
      mkdirSync(dataDir);
      writeFileSync(slots, '');
    }
    const yaml = ofMetrics ? `metrics: { port: ${port} }` : '{}';
    const failed = await start({ data_dir: dataDir, environment: NO_KEY, yaml });
    expect(await failed.ended).toBe(1);
    expect(failed.out() + failed.err()).not.toMatch(KEY);
    other.close();
    if (!ofMetrics) rmSync(slots);
    const next = await serve({ data_dir: dataDir, environment: NO_KEY, yaml });
    const { management_key } = firstKeys(next.out());
    expect((await next.call('POST', '/keys', { key: management_key, body: { name: 'first' } })).status).toBe(201);
    await stop(next);
  },
);

test('a data directory that cannot be written ends the start with a message', async () => {
  const home = freshDir();
  // Root may write anywhere, but nobody can create a folder below a file.
  const file = join(home, 'file');
  writeFileSync(file, '');
  const underFile = await start({ data_dir: join(file, 'data') });
  expect(await underFile.ended).toBe(1);
  expect(underFile.err()).toMatch(/file\/data cannot be used as a folder \(ENOTDIR\)\. Set GATEWAY_DATA_DIR/);
  expect(underFile.err()).not.toMatch(/^\s+at /m);

  if (process.getuid?.() === 0) return;
  const closed = join(home, 'closed');
  mkdirSync(closed);
  chmodSync(closed, 0o500);
  const unwritable = await start({ data_dir: join(closed, 'data') });
  expect(await unwritable.ended).toBe(1);
  expect(unwritable.err()).toMatch(/may not write .*closed\/data.*GATEWAY_DATA_DIR/);
});

test.each([
  [
    'an address that no interface has',
    { GATEWAY_HOST: '999.1.1.1' },
    /^The address cannot be found.*Set GATEWAY_HOST/m,
  ],
  [
    'a data directory that cannot be created',
    { GATEWAY_DATA_DIR: '/proc/x' },
    /^\/proc\/x cannot be created.*GATEWAY_DATA_DIR/m,
  ],
])('%s ends the start with a message', async (_, environment, message) => {
  const gateway = await start({ environment });
  expect(await gateway.ended).toBe(1);
  expect(gateway.err()).toMatch(message);
  expect(gateway.err()).not.toMatch(/^\s+at /m);
});

test('a data directory of a newer version is refused with a message, and not changed', async () => {
  const gateway = await serve();
  await stop(gateway);
  const database = new DatabaseSync(join(gateway.data_dir, 'gateway.db'));
  database.exec("INSERT INTO schema_migrations VALUES ('9999_future.sql', 'x', '2099-01-01T00:00:00.000Z')");
  database.close();
  const refused = await start({ data_dir: gateway.data_dir });
  expect(await refused.ended).toBe(1);
  expect(refused.err()).toMatch(/^The store was written by a newer version of this program.*9999_future\.sql/);
  expect(refused.err()).not.toMatch(/^\s+at /m);
});

test('a data directory of an older version is migrated, and its contents still work', async () => {
  const tree = freshDir();
  const root = join(import.meta.dirname, '../..');
  for (const name of ['bin', 'src', 'sandbox', 'catalog', 'package.json', 'openapi.json']) {
    cpSync(join(root, name), join(tree, name), { recursive: true });
  }
  symlinkSync(join(root, 'node_modules'), join(tree, 'node_modules'));
  const old = await serve();
  const { key } = await makeKey(old);
  await stop(old);
  const folder = join(tree, 'src/storage/migrations');
  const names = readdirSync(folder).sort();
  writeFileSync(join(folder, '9998_more.sql'), 'ALTER TABLE api_keys ADD COLUMN more TEXT;\n');
  const newer = await serve({ data_dir: old.data_dir, launcher: join(tree, 'bin/model-gateway.cjs') });
  const answer = await newer.call('POST', '/chat/completions', { key, body: chat('sandbox/echo') });
  expect(answer.status).toBe(200);
  await stop(newer);
  const database = new DatabaseSync(join(old.data_dir, 'gateway.db'), { readOnly: true });
  const applied = database.prepare('SELECT name FROM schema_migrations ORDER BY name').all();
  database.close();
  expect(applied.map(({ name }) => name)).toEqual([...names, '9998_more.sql']);
});

test('unknown commands and options are reported with the usage, and end with 1 or 2', async () => {
  const bin = join(import.meta.dirname, '../../bin/model-gateway.cjs');
  for (const [args, code, message] of [
    [['fly'], 2, /There is no command 'fly'/],
    [['serve', '--workes', '2'], 2, /^There is no option --workes; did you mean "--workers"\?$/m],
    [['serve', '--port', 'http'], 2, /--port takes a number from 0 to 65535, not 'http'/],
    [['serve', '--port'], 2, /--port needs a value/],
    [['keys', 'create', '--name', '--limit', '5'], 2, /--name needs a value/],
    [['doctor', 'all'], 2, /'all' is not expected here/],
    [['--workers', '0'], 2, /--workers takes a number from 1/],
    [['serve', '--config', '/nowhere/gateway.yaml'], 1, /\/nowhere\/gateway\.yaml cannot be read \(ENOENT\)/],
    [['backup', '/tmp/x.db'], 1, /There is no embedded store/],
  ] as const) {
    const ran = run(process.execPath, [bin, ...args], {
      env: { GATEWAY_DATA_DIR: '/nowhere', GATEWAY_PORT: String(await freePort()) },
    });
    expect(await ran.ended, ran.err()).toBe(code);
    expect(ran.err()).toMatch(message);
    expect(ran.err()).not.toMatch(/^\s+at /m);
  }
  const help = run(process.execPath, [bin, '--help']);
  expect(await help.ended).toBe(0);
  expect(help.out()).toMatch(/^Usage: model-gateway COMMAND/);
  expect(readFileSync(bin, 'utf8')).toMatch(/^#!/);
});
