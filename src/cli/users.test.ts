import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { gatewayWithCommands, runProgram } from '../../test/command-line.ts';
import { consoleClient, followLink, signInLink } from '../../test/http/console-client.ts';
import { describeStores } from '../../test/ledger/store-variants.ts';
import { openDatabase } from '../storage/database.ts';

describeStores('model-gateway users', ({ freshUrl }) => {
  async function setUp() {
    const { gateway, run: runAny, url } = await gatewayWithCommands({ freshUrl });
    const run = (...args: string[]) => runAny('users', ...args);
    const authorization = `Bearer ${gateway.management_key}`;
    const read = async (path: string) => {
      const answer = await gateway.call('GET', path, undefined, { authorization });
      return (await answer.json()) as { data: Record<string, unknown>[]; total_count: number };
    };
    return { gateway, run, read, url };
  }

  test('adds members to a running gateway immediately, with audit entries', async () => {
    const { gateway, run, read } = await setUp();
    try {
      const added = await run('add', '--email', 'ada@example.com', '--name', 'Ada Lovelace', '--role', 'admin');
      expect(added).toMatchObject({ code: 0, stdout: expect.stringMatching(/^[0-9a-f-]{36}\n$/) });
      const id = added.stdout.trim();
      expect((await read('/organization/members')).data[1]).toEqual({
        id,
        email: 'ada@example.com',
        first_name: 'Ada',
        last_name: 'Lovelace',
        role: 'org:admin',
      });
      expect((await read(`/audit?resource_type=user&resource_id=${id}`)).data).toMatchObject([
        { actor: 'command', action: 'create', after: { email: 'ada@example.com', role: 'admin' } },
      ]);
      expect((await run('list')).stdout).toContain(`${id}  admin   ada@example.com  Ada Lovelace\n`);
      const again = await run('add', '--email', 'ADA@example.com');
      expect(again).toMatchObject({ code: 1, stderr: expect.stringMatching(/^A user with the address/) });
      // KELVIN SIGN, whose lower case is k: another address.
      await run('add', '--email', 'kim@example.com');
      const other = await run('add', '--email', '\u212aim@example.com');
      expect(other.code).toBe(0);
      const { stdout } = await run('set', '\u212aim@example.com', '--name', 'Other');
      expect(stdout).toBe(other.stdout);
    } finally {
      await gateway.stop();
    }
  });

  test('changes the address, name and role of a member, also the role in every workspace', async () => {
    const { gateway, run, read } = await setUp();
    try {
      const id = (await run('add', '--email', 'Ada@Example.com')).stdout.trim();
      const authorization = `Bearer ${gateway.management_key}`;
      await gateway.call('POST', '/workspaces', { name: 'Lab', slug: 'lab' }, { authorization });
      await gateway.call('POST', '/workspaces/lab/members/add', { user_ids: [id] }, { authorization });
      const [owner] = (await read('/organization/members')).data;

      const set = await run('set', 'ADA@example.com', '--name', 'Ada King', '--role', 'admin');
      expect(set).toMatchObject({ code: 0, stdout: `${id}\n` });
      expect((await read('/organization/members')).data[1]).toEqual({
        id,
        email: 'ada@example.com',
        first_name: 'Ada',
        last_name: 'King',
        role: 'org:admin',
      });
      expect((await read('/workspaces/lab/members')).data[1]).toMatchObject({ user_id: id, role: 'admin' });
      expect((await read(`/audit?resource_type=user&resource_id=${id}`)).data[0]).toMatchObject({
        action: 'update',
        before: { email: 'ada@example.com', name: 'ada@example.com', role: 'member' },
        after: { email: 'ada@example.com', name: 'Ada King', role: 'admin' },
      });

      // The owner of a fresh installation has no address until one is set.
      const ownerId = String(owner?.['id']);
      expect((await run('list')).stdout).toContain(`${ownerId}  admin   -  Owner\n`);
      expect(await run('set', ownerId, '--email', 'ADA@example.com')).toMatchObject({
        code: 1,
        stderr: 'A user with the address ada@example.com exists already.\n',
      });
      expect((await run('set', ownerId, '--email', 'boss@example.com', '--role', 'member')).code).toBe(0);
      expect((await read('/organization/members')).data[0]).toMatchObject({
        email: 'boss@example.com',
        role: 'org:member',
      });
      expect(await run('set', id, '--role', 'member')).toMatchObject({
        code: 1,
        stderr: 'The last administrator must keep this role; make another member an administrator first.\n',
      });
      expect(await run('set', 'nobody@example.com', '--role', 'member')).toMatchObject({ code: 1 });
    } finally {
      await gateway.stop();
    }
  });

  test('the audit entry of a change has the values before it, also after a concurrent change', async () => {
    const { gateway, run, read, url } = await setUp();
    const database = await openDatabase({ data_dir: gateway.data_dir, database_url: url });
    try {
      const id = (await run('add', '--email', 'ada@example.com')).stdout.trim();
      const users = database.queries;
      const other = users.transaction().execute(async (tx) => {
        await tx.updateTable('organization_members').set({ role: 'member' }).where('user_id', '=', id).execute();
        await tx.updateTable('users').set({ email: 'lovelace@example.com' }).where('id', '=', id).execute();
        // The command is in its own transaction by then.
        await sleep(3_000);
      });
      expect(await run('set', id, '--name', 'Ada')).toMatchObject({ code: 0 });
      await other;
      expect((await read(`/audit?resource_type=user&resource_id=${id}`)).data[0]).toMatchObject({
        before: { email: 'lovelace@example.com' },
        after: { email: 'lovelace@example.com', name: 'Ada' },
      });
    } finally {
      await database.close();
      await gateway.stop();
    }
  });

  test('works on a store without a gateway, and creates no management key', async () => {
    const home = mkdtempSync(join(tmpdir(), 'gateway-users-'));
    const url = await freshUrl();
    const store: Record<string, string> = url === undefined ? {} : { DATABASE_URL: url };
    try {
      const env = { ...store, GATEWAY_DATA_DIR: join(home, 'data') };
      const added = await runProgram(['users', 'add', '--email', 'ada@example.com'], { env, cwd: home });
      expect(added.stdout).toMatch(/^[0-9a-f-]{36}\n$/);
      expect(added.stderr).not.toMatch(/sk-gw-v1-/);
      expect((await runProgram(['users', 'set', 'nobody', '--name', 'x'], { env, cwd: home })).code).toBe(1);
      expect((await runProgram(['keys', 'list'], { env, cwd: home })).stdout).toBe('');
    } finally {
      rmSync(home, { recursive: true });
    }
  });

  test('reports wrong options, and changes nothing', async () => {
    const { gateway, run, read } = await setUp();
    try {
      for (const [args, message] of [
        [['add'], /Usage: model-gateway users/],
        [['add', '--email', 'nobody'], /--email must be/],
        [['add', '--email', 'a@b.c', '--role', 'king'], /--role must be/],
        [['add', '--email', 'a@b.c', '--name', ' '], /--name must be/],
        [['set'], /Usage: model-gateway users/],
        [['set', 'a@b.c'], /Usage: model-gateway users/],
        [['add', '--email', `${'a'.repeat(320)}@b.c`], /--email must be/],
        [['add', '--email', 'a@b.c', '--name', 'n'.repeat(201)], /--name must be/],
        [['remove'], /Usage: model-gateway users/],
        [['sign-out'], /Usage: model-gateway users/],
        [['sign-out', 'a@b.c', '--role', 'member'], /Usage: model-gateway users/],
        [['list', '--hand-keys-to', 'a@b.c'], /Usage: model-gateway users/],
        [['drop'], /Usage: model-gateway users/],
        [[], /Usage: model-gateway users/],
      ] as const) {
        expect(await run(...args)).toMatchObject({ code: 2, stderr: expect.stringMatching(message) });
      }
      expect((await read('/organization/members')).total_count).toBe(1);
    } finally {
      await gateway.stop();
    }
  });

  test('signs a member out of all browsers and invalidates its links; keys, membership and others stay', async () => {
    const { gateway, run, read } = await setUp();
    try {
      const who = { email: 'ada@example.com', role: 'admin' } as const;
      const [here, there, other] = [
        await consoleClient(gateway, who),
        await consoleClient(gateway, who),
        await consoleClient(gateway),
      ];
      const made = await here.call('POST', '/keys', { name: 'of ada' });
      const { path } = await signInLink(gateway, who);
      expect(await run('sign-out', 'ADA@example.com')).toMatchObject({
        code: 0,
        stdout: 'signed out: 3 sessions ended\n',
      });
      const status = async ({ call }: typeof here) => (await call('GET', '/session')).status;
      expect([await status(here), await status(there), await status(other)]).toEqual([401, 401, 200]);
      expect((await followLink(gateway, path)).status).toBe(403);
      const authorization = `Bearer ${made.body['key']}`;
      expect((await gateway.call('GET', '/key', undefined, { authorization })).status).toBe(200);
      const { data } = await read('/audit?resource_type=session&limit=3');
      const signOut = { actor: 'command', action: 'sign-out', before: { user_id: here.user_id } };
      expect(data).toMatchObject([signOut, signOut, signOut]);
      expect((await (await consoleClient(gateway, who)).call('GET', '/session')).status).toBe(200);
      expect(await run('sign-out', 'nobody')).toMatchObject({ code: 1, stderr: expect.stringMatching(/^There is no/) });
    } finally {
      await gateway.stop();
    }
  });

  test('removes a member, hands over its keys, and adds it again without its former data', async () => {
    const { gateway, run, read } = await setUp();
    try {
      const [ada, bob] = [
        (await run('add', '--email', 'ada@example.com')).stdout.trim(),
        (await run('add', '--email', 'bob@example.com')).stdout.trim(),
      ];
      const authorization = `Bearer ${gateway.management_key}`;
      const make = async (creatorUserId: string) => {
        const made = await gateway.call(
          'POST',
          '/keys',
          { name: 'k', creator_user_id: creatorUserId },
          { authorization },
        );
        return ((await made.json()) as { key: string }).key;
      };
      const status = async (key: string) =>
        (await gateway.call('GET', '/key', undefined, { authorization: `Bearer ${key}` })).status;
      const [ofAda, ofBob] = [await make(ada), await make(bob)];
      expect(await run('remove', 'ada@example.com', '--hand-keys-to', 'bob@example.com')).toMatchObject({
        code: 0,
        stdout: 'removed: 0 keys disabled, 1 handed over, 0 sessions ended\n',
      });
      expect([await status(ofAda), await status(ofBob)]).toEqual([200, 200]);
      expect(await run('remove', bob)).toMatchObject({
        code: 0,
        stdout: 'removed: 2 keys disabled, 0 handed over, 0 sessions ended\n',
      });
      expect([await status(ofAda), await status(ofBob)]).toEqual([401, 401]);
      expect((await read('/organization/members')).total_count).toBe(1);
      expect(await run('remove', bob)).toMatchObject({ code: 1, stderr: expect.stringMatching(/^There is no member/) });
      const [owner] = (await read('/organization/members')).data;
      expect(await run('remove', String(owner?.['id']))).toMatchObject({
        code: 1,
        stderr: expect.stringMatching(/^The last administrator/),
      });
      expect((await run('add', '--email', 'BOB@example.com', '--name', 'Bob')).stdout.trim()).toBe(bob);
      expect((await read('/organization/members')).data[1]).toMatchObject({ id: bob, first_name: 'Bob' });
      expect(await status(ofBob)).toBe(401);
      expect((await read(`/audit?resource_type=user&resource_id=${bob}`)).data).toMatchObject([
        { actor: 'command', action: 'create', after: { role: 'member' } },
        { actor: 'command', action: 'delete', before: { role: 'member' }, after: { keys_disabled: 2 } },
        { action: 'create' },
      ]);
    } finally {
      await gateway.stop();
    }
  });
});
