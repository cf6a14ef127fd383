import { expect, test } from 'vitest';
import { managementServer } from '../../../test/http/management-server.ts';
import { spendingNode } from '../../../test/ledger/spending.ts';
import { describeStores } from '../../../test/ledger/store-variants.ts';
import { keyStore } from '../../storage/keys.ts';
import { organizationStore } from '../../storage/organizations.ts';
import { createKey } from './create-key.ts';
import { getKey } from './get-key.ts';

const NOW = '2026-11-21T10:00:00.000Z';

describeStores('GET /keys/{hash}', ({ open }) => {
  async function setUp(flush = async () => {}) {
    const database = await open();
    const made = await managementServer(database, NOW);
    const now = () => Date.parse(NOW);
    const keys = keyStore(database.queries);
    createKey(made.server, made);
    getKey(made.server, { keys, organizations: organizationStore(database.queries), recorder: { flush }, now });
    const { body } = await made.call('POST', '/keys', { name: 'ci', limit: 10, limit_reset: 'weekly' });
    const key = body['data'] as unknown as { hash: string };
    return { ...made, database, key };
  }

  test('200: the record of the creation', async () => {
    const { call, key } = await setUp();
    expect(await call('GET', `/keys/${key.hash}`)).toMatchObject({ status: 200, body: { data: key } });
  });

  test('200: usage includes unflushed outcomes', async () => {
    let raise = async () => {};
    const { call, key, database, home } = await setUp(() => raise());
    const settle = await spendingNode(database);
    const { organization_id, default_workspace_id: workspaceId } = home;
    const payer = { organization_id, workspace_id: workspaceId, key_hash: key.hash };
    const cost = { cost_nano: 1_500_000_000, byok_cost_nano: 1 };
    raise = async () => {
      await settle(
        { id: 'a', ...payer, ...cost },
        { id: 'b', ...payer, ...cost, created_at: '2026-11-15T23:59:59.999Z' },
      );
    };
    expect((await call('GET', `/keys/${key.hash}`)).body['data']).toMatchObject({
      usage: 3,
      usage_daily: 1.5,
      usage_weekly: 1.5,
      usage_monthly: 3,
      byok_usage: 2e-9,
      limit_remaining: 8.5,
    });
  });

  test('200: outcomes that do not reach the store do not delay the answer', async () => {
    const { call, key } = await setUp(() => new Promise(() => {}));
    expect((await call('GET', `/keys/${key.hash}`)).status).toBe(200);
  });

  test('404: an unknown hash, a management key, a key of another organization', async () => {
    const { call, database, addKey } = await setUp();
    const other = { id: 'other', name: 'Other', created_at: NOW };
    await database.queries.insertInto('organizations').values(other).execute();
    const insert = async (over: Parameters<typeof addKey>[0]) => (await addKey(over)).hash;
    const hashes = [
      '0'.repeat(64),
      '%00',
      '%F0%9F%98%80',
      await insert({ is_management: true }),
      await insert({ organization_id: 'other' }),
    ];
    for (const hash of hashes) {
      expect(await call('GET', `/keys/${hash}`)).toMatchObject({ status: 404, body: { error: { code: 404 } } });
    }
  });

  test.each([
    [401, 'no credential', ''],
    [403, 'an ordinary key', 'ordinary'],
  ])('%i: %s', async (status, _reason, credential) => {
    const { call, key } = await setUp();
    expect((await call('GET', `/keys/${key.hash}`, undefined, credential)).status).toBe(status);
  });
});
