import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { startGateway } from '../../test/harness.ts';
import { describeStores } from '../../test/store-variants.ts';

const MAIN = join(import.meta.dirname, '..', 'main.ts');

describeStores('model-gateway users', ({ freshUrl }) => {
  async function setUp() {
    const url = await freshUrl();
    const environment: Record<string, string> = url === undefined ? {} : { DATABASE_URL: url };
    const gateway = await startGateway({ environment });
    const run = async (...args: string[]) => {
      const env = { ...process.env, ...environment, GATEWAY_DATA_DIR: gateway.data_dir };
      try {
        const done = await promisify(execFile)(process.execPath, [MAIN, 'users', ...args], {
          env,
          cwd: gateway.data_dir,
        });
        return { code: 0, ...done };
      } catch (error) {
        return error as { code: number; stdout: string; stderr: string };
      }
    };
    const authorization = `Bearer ${gateway.management_key}`;
    const read = async (path: string) => {
      const answer = await gateway.call('GET', path, undefined, { authorization });
      return (await answer.json()) as { data: Record<string, unknown>[]; total_count: number };
    };
    return { gateway, run, read };
  }

  test('adds members to a running gateway, who are there at once, and leaves who did it', async () => {
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
      const again = await run('add', '--email', 'ada@example.com');
      expect(again).toMatchObject({ code: 1, stderr: expect.stringMatching(/^There is a user with the address/) });
    } finally {
      await gateway.stop();
    }
  }, 60_000);

  test('says what is wrong with its options, and changes nothing', async () => {
    const { gateway, run, read } = await setUp();
    try {
      for (const [args, message] of [
        [['add'], /--email must be/],
        [['add', '--email', 'nobody'], /--email must be/],
        [['add', '--email', 'a@b.c', '--role', 'king'], /--role must be/],
        [['add', '--email', 'a@b.c', '--name', ' '], /--name must be/],
        [['drop'], /Usage: model-gateway users/],
        [[], /Usage: model-gateway users/],
      ] as const) {
        expect(await run(...args)).toMatchObject({ code: 2, stderr: expect.stringMatching(message) });
      }
      expect((await read('/organization/members')).total_count).toBe(1);
    } finally {
      await gateway.stop();
    }
  }, 60_000);
});
