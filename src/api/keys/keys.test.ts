import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { managementServer } from '../../../test/http/management-server.ts';
import { spendingNode } from '../../../test/ledger/spending.ts';
import { describeStores } from '../../../test/ledger/store-variants.ts';
import { createRateLimit } from '../../http/rate-limit.ts';
import { auditStore } from '../../storage/audit.ts';
import type { Announcement } from '../../storage/change-feed.ts';
import { keyStore } from '../../storage/keys.ts';
import { organizationStore } from '../../storage/organizations.ts';
import { deleteKey } from './delete-key.ts';
import { getKey } from './get-key.ts';
import { listKeys } from './list-keys.ts';
import { updateKey } from './update-key.ts';

const NOW = '2026-11-21T10:00:00.000Z';
type Data = Record<string, unknown>;

describeStores('API keys', ({ open }) => {
  async function setUp(limitManagement?: (caller: string) => void) {
    const database = await open();
    const made = await managementServer(database, NOW, limitManagement);
    const announced: Announcement[] = [];
    made.changes.listen((change) => void (change !== 'everything' && announced.push(change)));
    const shared = {
      change: made.change,
      keys: keyStore(database.queries),
      organizations: organizationStore(database.queries),
      recorder: { flush: async () => {} },
      now: made.now,
    };
    for (const serve of [deleteKey, getKey, listKeys, updateKey]) serve(made.server, shared);
    const addKey = (over: Parameters<typeof made.addKey>[0] = {}) =>
      made.addKey({
        creator_user_id: made.home.owner_user_id,
        name: 'ci',
        limit_nano: 10_000_000_000,
        limit_reset: 'weekly',
        ...over,
      });
    let settle: Awaited<ReturnType<typeof spendingNode>> | undefined;
    const spend = async (
      keyHash: string,
      payment: { cost_nano?: number; byok_cost_nano?: number; created_at?: string },
    ) => {
      settle ??= await spendingNode(database);
      const { organization_id, default_workspace_id: workspaceId } = made.home;
      await settle({ id: randomUUID(), organization_id, workspace_id: workspaceId, key_hash: keyHash, ...payment });
    };
    const events = async () => {
      const filter = { organization_id: made.home.organization_id };
      const { data } = await auditStore(database.queries).listBy(filter, { offset: 0, limit: 10 });
      return data;
    };
    return { ...made, database, addKey, spend, events, announced };
  }

  test('PATCH changes the named fields alone, and usage stays, also if the limit or its window changes', async () => {
    const { call, addKey, spend, events, announced } = await setUp();
    const { hash } = await addKey();
    await spend(hash, { cost_nano: 4_000_000_000 });
    await spend(hash, { cost_nano: 1_000_000_000, created_at: '2026-11-01T00:00:00.000Z' });
    await spend(hash, { byok_cost_nano: 14 });
    const before = (await call('GET', `/keys/${hash}`)).body['data'] as unknown as Data;
    const patch = async (body: object) => {
      const answer = await call('PATCH', `/keys/${hash}`, body);
      expect(answer.status).toBe(200);
      return answer.body['data'] as unknown as Data;
    };
    expect(await patch({})).toEqual({ ...before, updated_at: NOW });
    expect(await patch({ name: 'laptop' })).toEqual({ ...before, name: 'laptop', updated_at: NOW });
    expect(await patch({ limit: 2.5 })).toMatchObject({ limit: 2.5, limit_remaining: 0, usage: 5, usage_weekly: 4 });
    expect(await patch({ limit: 20, limit_reset: 'monthly' })).toMatchObject({ limit: 20, limit_remaining: 15 });
    expect(await patch({ include_byok_in_limit: true })).toMatchObject({ limit_remaining: 14.999999986 });
    expect(await patch({ limit_reset: null })).toMatchObject({ limit_reset: null, limit: 20 });
    expect(await patch({ limit: null })).toMatchObject({ limit: null, limit_remaining: null, usage: 5 });
    expect(await patch({ budget_mode: 'soft' })).toMatchObject({ budget_mode: 'soft', limit: null });
    expect(await patch({ budget_mode: null })).toMatchObject({ budget_mode: null });
    expect(await patch({ disabled: true })).toMatchObject({ disabled: true, name: 'laptop' });
    const [last] = await events();
    expect(last).toMatchObject({
      action: 'update',
      resource_type: 'api_key',
      resource_id: hash,
      before: { disabled: false, name: 'laptop', limit: null },
      after: { disabled: true, name: 'laptop', limit: null },
    });
    expect(announced.at(-1)).toEqual({ topic: 'keys', id: hash });
  });

  test.each([
    ['an empty name', { name: '' }, /^name must not be empty/],
    ['a long name', { name: 'n'.repeat(201) }, /^name must have at most 200/],
    ['NUL', { name: '\u0000' }, /^name must be text/],
    ['an unpaired surrogate', { name: 'a\ud83d' }, /^name must be text without NUL characters or lone surrogates/],
    ['null for a name', { name: null }, /^name /],
    ['null for a flag', { disabled: null }, /^disabled /],
    ['a limit below zero', { limit: -1 }, /^limit must be at least 0/],
    ['a limit above the exact range', { limit: 9_007_200 }, /^limit must be at most/],
    ['a limit as text', { limit: '5' }, /^limit /],
    ['an unknown reset', { limit_reset: 'yearly' }, /^limit_reset must be one of/],
    ['an unknown mode', { budget_mode: 'lax' }, /^budget_mode /],
    ['an unchangeable field', { expires_at: null }, /^expires_at is not a known field/],
    ['another workspace', { workspace_id: 'w' }, /^workspace_id is not a known field/],
    ['an unknown field', { limits: 5 }, /^limits is not a known field/],
  ])('400: PATCH with %s', async (_reason, body, message) => {
    const { call, addKey, events } = await setUp();
    const { hash } = await addKey();
    expect(await call('PATCH', `/keys/${hash}`, body)).toMatchObject({
      status: 400,
      body: { error: { message: expect.stringMatching(message) } },
    });
    expect(await events()).toEqual([]);
  });

  test('concurrent changes of different fields all succeed, and one with an outdated version is refused', async () => {
    const { call, addKey } = await setUp();
    const { hash } = await addKey();
    const changes = [{ name: 'n' }, { disabled: true }, { limit: 3 }, { include_byok_in_limit: true }];
    await Promise.all(changes.map((change) => call('PATCH', `/keys/${hash}`, change)));
    const read = await call('GET', `/keys/${hash}`);
    expect(read).toMatchObject({ body: { data: Object.assign({}, ...changes) }, headers: { etag: '"5"' } });
    const stale = { 'if-match': '"4"' };
    expect((await call('PATCH', `/keys/${hash}`, { name: 'x' }, 'management', stale)).status).toBe(409);
    expect((await call('DELETE', `/keys/${hash}`, undefined, 'management', stale)).status).toBe(409);
    expect((await call('PATCH', `/keys/${hash}`, { name: 'x' }, 'management', { 'if-match': '"5"' })).status).toBe(200);
  });

  test('DELETE removes the key and its guardrail assignment', async () => {
    const { call, addKey, events, announced, database, home } = await setUp();
    const { hash } = await addKey();
    const owned = { organization_id: home.organization_id, created_at: NOW, seq: 1 };
    await database.queries
      .insertInto('guardrails')
      .values({
        ...owned,
        id: 'g',
        version: 1,
        workspace_id: home.default_workspace_id,
        name: 'g',
        include_byok_in_budgets: false,
      })
      .execute();
    await database.queries
      .insertInto('guardrail_key_assignments')
      .values({ ...owned, id: 'a', guardrail_id: 'g', key_hash: hash })
      .execute();
    expect(await call('DELETE', `/keys/${hash}`)).toMatchObject({ status: 200, body: { deleted: true } });
    expect((await call('GET', `/keys/${hash}`)).status).toBe(404);
    expect((await call('DELETE', `/keys/${hash}`)).status).toBe(404);
    expect((await events()).map(({ action, resource_id }) => `${action} ${resource_id}`)).toEqual([
      `delete ${hash}`,
      'unassign a',
    ]);
    expect(announced).toEqual([{ topic: 'keys', id: hash }]);
  });

  test('GET /keys lists the ordinary keys of the default workspace in order of creation, with their usage', async () => {
    const { call, addKey, spend, home, foreign } = await setUp();
    const one = await addKey({ name: 'a' });
    const two = await addKey({ name: 'b' });
    await addKey({ name: 'c', disabled: true });
    await addKey({ name: 'm', is_management: true });
    await spend(two.hash, { cost_nano: 1_000_000_000 });
    const names = async (query: string) =>
      ((await call('GET', `/keys?${query}`)).body['data'] as unknown as Data[]).map(({ name }) => name).join('');
    const listed = (await call('GET', '/keys')).body['data'] as unknown as Data[];
    expect(listed).toMatchObject([
      { hash: one.hash, usage: 0, limit_remaining: 10 },
      { hash: two.hash, usage: 1, limit_remaining: 9 },
    ]);
    expect(listed[0]).toEqual((await call('GET', `/keys/${one.hash}`)).body['data']);
    for (const query of ['include_disabled=true', 'include_disabled=1', 'include_disabled=yes']) {
      expect(await names(query)).toBe('abc');
    }
    for (const query of ['include_disabled=false', 'include_disabled=', 'include_disabled=0']) {
      expect(await names(query)).toBe('ab');
    }
    expect(await names('offset=1')).toBe('b');
    expect(await names('limit=1')).toBe('a');
    expect(await names('offset=9')).toBe('');
    expect(await names(`workspace_id=${home.default_workspace_id}`)).toBe('ab');
    expect((await call('GET', `/keys?workspace_id=${foreign.default_workspace_id}`)).status).toBe(404);
    expect((await call('GET', '/keys?workspace_id=%00')).status).toBe(404);
    for (const query of ['limit=101', 'limit=0', 'offset=-1', 'offset=x']) {
      expect((await call('GET', `/keys?${query}`)).status).toBe(400);
    }
  });

  test('management keys are a 404 for PATCH, DELETE and GET', async () => {
    const { call, addKey } = await setUp();
    const { hash } = await addKey({ is_management: true });
    expect((await call('GET', `/keys/${hash}`)).status).toBe(404);
    expect((await call('PATCH', `/keys/${hash}`, { disabled: true })).status).toBe(404);
    expect((await call('DELETE', `/keys/${hash}`)).status).toBe(404);
  });

  const all = [
    ['GET', '/keys', undefined],
    ['GET', '/keys/HASH', undefined],
    ['PATCH', '/keys/HASH', { name: 'n' }],
    ['DELETE', '/keys/HASH', undefined],
  ] as const;

  test.each(all)('401, 403, 404, 500: %s %s', async (method, path, body) => {
    const { call, addKey, database } = await setUp();
    const { hash } = await addKey();
    const url = path.replace('HASH', hash);
    expect((await call(method, url, body, '')).status).toBe(401);
    expect((await call(method, url, body, 'ordinary')).status).toBe(403);
    if (path === '/keys') expect((await call(method, url, body, 'foreign')).body).toEqual({ data: [] });
    else {
      expect((await call(method, url, body, 'foreign')).status).toBe(404);
      expect((await call(method, '/keys/%00', body)).status).toBe(404);
      expect((await call(method, `/keys/${'0'.repeat(64)}`, body)).status).toBe(404);
    }
    await database.queries.schema.alterTable('api_keys').renameTo('gone').execute();
    expect((await call(method, url, body)).status).toBe(500);
  });

  test('429: a management request above the limit, with the time to wait', async () => {
    let nowMs = 0;
    const { call } = await setUp(createRateLimit(2, { nowMs: () => nowMs, monotonicMs: () => nowMs }));
    expect((await call('GET', '/keys')).status).toBe(200);
    expect((await call('GET', '/keys')).status).toBe(200);
    expect(await call('GET', '/keys')).toMatchObject({ status: 429, headers: { 'retry-after': '30' } });
    nowMs = 30_000;
    expect((await call('GET', '/keys')).status).toBe(200);
  });
});
