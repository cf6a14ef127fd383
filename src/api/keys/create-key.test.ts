import { expect, test } from 'vitest';
import { managementServer } from '../../../test/http/management-server.ts';
import { describeStores } from '../../../test/ledger/store-variants.ts';
import { hashSecret } from '../../accounts/key.ts';
import { limits } from '../../limits.ts';
import { keyStore } from '../../storage/keys.ts';
import { callerOf } from '../authenticate.ts';
import { createKey } from './create-key.ts';

const NOW = '2026-11-21T10:00:00.000Z';

describeStores('POST /keys', ({ open }) => {
  async function setUp() {
    const database = await open();
    const made = await managementServer(database, NOW);
    createKey(made.server, made);
    return { ...made, database };
  }

  test('201: a name is enough, the record is complete and the secret is shown', async () => {
    const { call, home } = await setUp();
    const { status, body } = await call('POST', '/keys', { name: 'ci' });
    expect(status).toBe(201);
    const secret: string = body['key'] ?? '';
    expect(secret).toMatch(/^sk-gw-v1-[0-9a-f]{64}$/);
    expect(body['data']).toEqual({
      hash: hashSecret(secret),
      id: 1,
      name: 'ci',
      label: `${secret.slice(0, 12)}...${secret.slice(-3)}`,
      disabled: false,
      created_at: NOW,
      updated_at: null,
      expires_at: null,
      creator_user_id: home.owner_user_id,
      workspace_id: home.default_workspace_id,
      limit: null,
      limit_remaining: null,
      limit_reset: null,
      include_byok_in_limit: false,
      usage: 0,
      usage_daily: 0,
      usage_weekly: 0,
      usage_monthly: 0,
      byok_usage: 0,
      byok_usage_daily: 0,
      byok_usage_weekly: 0,
      byok_usage_monthly: 0,
      budget_mode: null,
      parent_hash: null,
      rotated_at: null,
      previous_label: null,
      previous_secret_expires_at: null,
      previous_secret_last_used_at: null,
      external_user: null,
      last_used_at: null,
    });
  });

  test('201: rate limits use the name of a key that an administrator chose, and not that of a member', async () => {
    const { call, principals, database, sessionOf } = await setUp();
    principals['admin'] = await sessionOf('admin');
    principals['member'] = await sessionOf('member');
    for (const [who, name] of [
      ['admin', 'batch'],
      ['member', undefined],
    ] as const) {
      const { body } = await call('POST', '/keys', { name: 'batch' }, who);
      const key = await keyStore(database.queries).findByHash(hashSecret(body['key'] ?? ''));
      expect([who, key && callerOf(key).rate_name]).toEqual([who, name]);
    }
  });

  test('409: a member has at most a thousand keys in a workspace, also with concurrent requests', async () => {
    const { call, principals, database, sessionOf, addKey, home } = await setUp();
    const { queries } = database;
    const [member, admin] = [await sessionOf('member'), await sessionOf('admin')];
    Object.assign(principals, { member, admin });
    const creator = { creator_user_id: member.user_id };
    const first = await addKey({ ...creator, hash: 'first', made_by: 'session', disabled: true });
    const rows = Array.from({ length: limits.member_keys_max - 2 }, (_, index) => {
      return { ...first, id: 100 + index, hash: `key ${index}` };
    });
    for (const portion of [rows.slice(0, 500), rows.slice(500)]) {
      await queries.insertInto('api_keys').values(portion).execute();
    }
    // Keys that an administrator created for the member do not count.
    await addKey(creator);
    const make = (who: string) => call('POST', '/keys', { name: 'k' }, who);
    const statuses = (await Promise.all([make('member'), make('member')])).map(({ status }) => status);
    expect(statuses.toSorted()).toEqual([201, 409]);
    const refused = await make('member');
    expect(refused).toMatchObject({ status: 409, body: { error: { message: expect.stringMatching(/delete keys/) } } });
    expect((await make('admin')).status).toBe(201);
    await keyStore(queries).delete({ organization_id: home.organization_id, keys: rows.slice(0, 1) });
    expect((await make('member')).status).toBe(201);
  });

  test('201: every field is stored, and the limit to the nearest nano-USD', async () => {
    const { call, home } = await setUp();
    const { status, body } = await call('POST', '/keys', {
      name: 'n'.repeat(200),
      limit: 0.1234567894,
      limit_reset: 'monthly',
      include_byok_in_limit: true,
      expires_at: '2027-01-31T00:00:00+00:00',
      creator_user_id: home.owner_user_id,
      workspace_id: home.default_workspace_id,
      budget_mode: 'soft',
    });
    expect(status).toBe(201);
    expect(body['data']).toMatchObject({
      budget_mode: 'soft',
      limit: 0.123456789,
      limit_remaining: 0.123456789,
      limit_reset: 'monthly',
      include_byok_in_limit: true,
      expires_at: '2027-01-31T00:00:00.000Z',
    });
  });

  test('201: null means none, and zero is a limit', async () => {
    const { call, home } = await setUp();
    const nulls = { limit: null, limit_reset: null, expires_at: null, creator_user_id: null };
    const made = await call('POST', '/keys', { name: 'a', ...nulls });
    expect(made.body['data']).toMatchObject({ ...nulls, creator_user_id: home.owner_user_id });
    expect((await call('POST', '/keys', { name: 'b', limit: 0 })).body['data']).toMatchObject({ limit: 0 });
  });

  test('the secret is not in the store', async () => {
    const { call, database } = await setUp();
    const { body } = await call('POST', '/keys', { name: 'ci' });
    const rows = await database.queries.selectFrom('api_keys').selectAll().execute();
    expect(rows).toHaveLength(1);
    expect(JSON.stringify(rows)).not.toContain(String(body['key']).slice(12, -3));
  });

  test.each([
    [400, 'no name', {}, /^name is required/],
    [400, 'an empty name', { name: '' }, /^name /],
    [400, 'a name that is too long', { name: 'n'.repeat(201) }, /^name .*200/],
    [400, 'a name that is a number', { name: 5 }, /^name must be a string/],
    [400, 'a limit below zero', { name: 'n', limit: -0.01 }, /^limit /],
    [400, 'a limit above the exact range', { name: 'n', limit: 9_007_199.01 }, /^limit .*9007199/],
    [400, 'a limit as text', { name: 'n', limit: '10' }, /^limit /],
    [400, 'an unknown reset', { name: 'n', limit_reset: 'yearly' }, /^limit_reset .*daily/],
    [400, 'an unknown field', { name: 'n', limits: 10 }, /^limits is not a known field/],
    [400, 'an expiry in another zone', { name: 'n', expires_at: '2027-01-31T00:00:00+01:00' }, /^expires_at .*UTC/],
    [400, 'an expiry in the past', { name: 'n', expires_at: '2026-11-21T09:00:00Z' }, /^expires_at .*future/],
    [400, 'an expiry that is not a time', { name: 'n', expires_at: 'soon' }, /^expires_at /],
    [400, 'an unknown workspace', { name: 'n', workspace_id: 'nowhere' }, /^workspace_id nowhere /],
    [400, 'an unknown creator', { name: 'n', creator_user_id: 'nobody' }, /^creator_user_id nobody /],
    [400, 'a limit that no number can hold', '{"name":"n","limit":1e400}', /^limit /],
    [400, 'a name with NUL', { name: 'a\u0000b' }, /^name .*NUL/],
    [400, 'half a character as name', '{"name":"\\ud800"}', /^name /],
    [400, 'a workspace with NUL', { name: 'n', workspace_id: '\u0000' }, /^workspace_id /],
    [400, 'a creator with NUL', { name: 'n', creator_user_id: '\u0000' }, /^creator_user_id /],
    [400, 'null for a workspace', { name: 'n', workspace_id: null }, /^workspace_id /],
    [400, 'null for a flag', { name: 'n', include_byok_in_limit: null }, /^include_byok_in_limit /],
    [400, 'an expiry now', { name: 'n', expires_at: NOW }, /^expires_at .*future/],
    [400, 'an array', [], /body/],
  ])('%i: %s', async (status, _reason, body, message) => {
    const { call, database } = await setUp();
    const answer = await call('POST', '/keys', body);
    expect(answer).toMatchObject({
      status,
      body: { error: { code: status, message: expect.stringMatching(message) } },
    });
    expect(await database.queries.selectFrom('api_keys').selectAll().execute()).toEqual([]);
  });

  test.each([
    [401, 'no credential', ''],
    [401, 'a wrong credential', 'wrong'],
    [403, 'an ordinary key', 'ordinary'],
  ])('%i: %s', async (status, _reason, credential) => {
    const { call } = await setUp();
    expect((await call('POST', '/keys', { name: 'n' }, credential)).status).toBe(status);
  });
});
