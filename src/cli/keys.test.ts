import { expect, test } from 'vitest';
import { gatewayWithCommands } from '../../test/command-line.ts';
import { describeStores } from '../../test/ledger/store-variants.ts';
import { openDatabase } from '../storage/database.ts';

interface Rotated {
  key: string;
  data: { hash: string; label: string };
}

describeStores('model-gateway keys', ({ freshUrl }) => {
  async function setUp() {
    const { gateway, run: runAny, url } = await gatewayWithCommands({ freshUrl });
    const run = (...args: string[]) => runAny('keys', ...args);
    const ask = (key: string, path: string) => gateway.call('GET', path, undefined, { authorization: `Bearer ${key}` });
    return { gateway, run, ask, url };
  }

  test('creates keys of both kinds, which a running gateway accepts at once, and disabling ends that at once', async () => {
    const { gateway, run, ask } = await setUp();
    try {
      const secrets = [await run('create', '--management'), await run('create', '--name', 'batch')];
      for (const made of secrets)
        expect(made).toMatchObject({ code: 0, stdout: expect.stringMatching(/^sk-gw-v1-[0-9a-f]{64}\n$/) });
      const [management = '', ordinary = ''] = secrets.map(({ stdout }) => stdout.trim());
      expect((await ask(management, '/keys')).status).toBe(200);
      expect((await ask(ordinary, '/keys')).status).toBe(403);
      expect((await ask(ordinary, '/key')).status).toBe(200);
      const { stdout } = await run('list');
      expect(stdout).toMatch(/ {2}management {2}enabled {3}sk-gw-v1-\S+ {2}Management key\n/);
      expect(stdout).toMatch(/ {2}key {9}enabled {3}sk-gw-v1-\S+ {2}batch\n/);
      for (const secret of [management, ordinary]) expect(stdout).not.toContain(secret.slice(12, -3));
      const hash =
        stdout
          .split('\n')
          .find((line) => line.endsWith('  batch'))
          ?.split(' ')[0] ?? '';
      expect(await run('disable', hash)).toMatchObject({ code: 0 });
      expect((await ask(ordinary, '/key')).status).toBe(401);
      const audit = (await (await ask(management, `/audit?resource_id=${hash}`)).json()) as { data: unknown[] };
      expect(audit.data).toMatchObject([
        { actor: 'command', action: 'update', after: { disabled: true } },
        { actor: 'command', action: 'create', after: { name: 'batch', is_management: false } },
      ]);
    } finally {
      await gateway.stop();
    }
  });

  test('rotates keys of both kinds, which a running gateway follows at once, and ends previous secrets', async () => {
    const { gateway, run, ask } = await setUp();
    try {
      const json = async (...args: string[]) => JSON.parse((await run(...args, '--json')).stdout) as Rotated;
      for (const options of [['--management'], ['--name', 'batch']]) {
        const made = await json('create', ...options);
        const { hash, label } = made.data;
        const rotated = await run('rotate', label);
        expect(rotated).toMatchObject({ code: 0, stdout: expect.stringMatching(/^sk-gw-v1-[0-9a-f]{64}\n$/) });
        const next = rotated.stdout.trim();
        const statuses = async () => [(await ask(made.key, '/key')).status, (await ask(next, '/key')).status];
        expect(await statuses()).toEqual([200, 200]);
        expect(await run('rotate', hash)).toMatchObject({ code: 1, stderr: expect.stringContaining('keep "current"') });
        expect(await run('end-previous-secret', label)).toMatchObject({ code: 0, stdout: '' });
        expect(await statuses()).toEqual([401, 200]);
        const last = await json('rotate', hash, '--grace-seconds', '0');
        expect(last.data).toMatchObject({ hash, rotated_at: expect.any(String), previous_secret_expires_at: null });
        expect(await statuses()).toEqual([401, 401]);
        expect((await ask(last.key, '/key')).status).toBe(200);
        const audit = await ask(gateway.management_key, `/audit?resource_id=${hash}`);
        const { data } = (await audit.json()) as { data: unknown[] };
        expect(data).toMatchObject(
          ['rotate', 'update', 'rotate', 'create'].map((action) => ({ actor: 'command', action })),
        );
      }
    } finally {
      await gateway.stop();
    }
  });

  test('lists each key on one line, whatever characters its name has', async () => {
    const { gateway, run } = await setUp();
    try {
      const name = 'a\u001b[2J\u009b2J\u202eb\n0000  management  enabled  👩\u200d🚀';
      expect(await run('create', '--name', name)).toMatchObject({ code: 0 });
      const lines = (await run('list')).stdout.trim().split('\n');
      expect(lines).toHaveLength(2);
      expect(lines[1]).toContain('  a\\u{1b}[2J\\u{9b}2J\\u{202e}b\\u{a}0000  management  enabled  👩\u200d🚀');
    } finally {
      await gateway.stop();
    }
  });

  test('reports wrong options, and creates nothing', async () => {
    const { gateway, run } = await setUp();
    try {
      for (const [args, code, message] of [
        [['create'], 2, /--name must be/],
        [['create', '--name', ' '], 2, /--name must be/],
        [['create', 'batch'], 2, /Usage: model-gateway keys/],
        [['disable'], 2, /Usage: model-gateway keys/],
        [['rotate'], 2, /Usage: model-gateway keys/],
        [['constructor', 'batch'], 2, /Usage: model-gateway keys/],
        [['rotate', 'batch', '--grace-seconds', '1.5'], 2, /--grace-seconds must be an integer from 0 to 2592000/],
        [['rotate', 'batch', '--grace-seconds', '2592001'], 2, /--grace-seconds must be/],
        [['rotate', 'batch', '--keep', 'both'], 2, /--keep must be current or previous/],
        [['rotate', '0'.repeat(64)], 1, /No key has this hash or label/],
        [['disable', '0'.repeat(64)], 1, /No key has this hash or label/],
        [[], 2, /Usage: model-gateway keys/],
      ] as const) {
        expect(await run(...args)).toMatchObject({ code, stderr: expect.stringMatching(message) });
      }
      expect((await run('list')).stdout.split('\n')).toHaveLength(2);
    } finally {
      await gateway.stop();
    }
  });

  test('lists the keys of applications with their granting key, unknown if it was not recorded', async () => {
    const { gateway, run, url } = await setUp();
    const database = await openDatabase({ data_dir: gateway.data_dir, database_url: url });
    try {
      for (const keyLabel of ['new app', 'old app']) {
        const body = { callback_url: 'https://app.example/cb', key_label: keyLabel };
        const { data } = (await (await gateway.call('POST', '/auth/keys/code', body)).json()) as {
          data: { id: string };
        };
        expect((await gateway.call('POST', '/auth/keys', { code: data.id })).status).toBe(200);
      }
      const before = { parent_hash: null, made_by: 'unknown' };
      await database.queries.updateTable('api_keys').set(before).where('name', '=', 'old app').execute();
      const lines = (await run('list', '--made-by-applications')).stdout.trim().split('\n');
      expect(lines.map((line) => line.split('  ').slice(-2))).toEqual([
        [gateway.key_hash, 'new app'],
        ['unknown', 'old app'],
      ]);
    } finally {
      await database.close();
      await gateway.stop();
    }
  });
});
