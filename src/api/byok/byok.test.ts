import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { managementServer } from '../../../test/http/management-server.ts';
import { heldTransaction } from '../../../test/ledger/held-transaction.ts';
import { describeStores } from '../../../test/ledger/store-variants.ts';
import { placeOf } from '../../accounts/byok.ts';
import { createVault } from '../../accounts/vault.ts';
import { buildCatalog } from '../../catalog/catalog.ts';
import { limits } from '../../limits.ts';
import { auditStore } from '../../storage/audit.ts';
import { byokStore } from '../../storage/byok.ts';
import { organizationStore } from '../../storage/organizations.ts';
import { createByok } from './create-byok.ts';
import { deleteByok } from './delete-byok.ts';
import { getByok } from './get-byok.ts';
import { listByok } from './list-byok.ts';
import { updateByok } from './update-byok.ts';

const NOW = '2026-11-21T10:00:00.000Z';
const KEY = 'sk-proj-0123456789abcdef';
const vault = createVault('a-secret-of-a-gateway-0123456789abcdef');
const provider = {
  slug: 'acme',
  name: 'Acme AI',
  dialect: 'openai-chat' as const,
  base_url: 'http://127.0.0.1:1/v1',
  credential: undefined,
  parameters: [],
  quirks: {},
  abort_stops_billing: true,
};
const catalog = buildCatalog({
  bundled: { format: 1, models: [] },
  config: {
    bundled_catalog: false,
    models: [
      {
        id: 'acme/fast-1',
        canonical_slug: 'acme/fast-1-2026-01',
        endpoints: [{ provider: 'acme', upstream_model: 'fast-1' }],
      },
    ],
  },
  providers: [provider as never],
  created_default: 0,
});

describeStores('BYOK credentials', ({ open }) => {
  async function setUp() {
    const database = await open();
    const made = await managementServer(database, NOW);
    const { server, change } = made;
    const byok = byokStore(database.queries);
    const organizations = organizationStore(database.queries);
    const providerSlug = (name: string) => ({ acme: 'acme', 'acme ai': 'acme', other: 'other' })[name.toLowerCase()];
    const shared = { change, byok, organizations, providerSlug, vault, wholeCatalog: () => catalog };
    for (const add of [createByok, deleteByok, getByok, listByok, updateByok]) add(server, shared);
    const create = (over: object = {}) => made.call('POST', '/byok', { provider: 'acme', key: KEY, ...over });
    const idOf = async (over: object = {}) => ((await create(over)).body['data'] as unknown as { id: string }).id;
    const { hash } = await made.addKey();
    return { ...made, database, create, idOf, key_hash: hash };
  }

  test('201: provider and key are enough, and the record does not contain the credential', async () => {
    const { create, home, database } = await setUp();
    const { status, body } = await create({ provider: 'ACME ai' });
    expect(status).toBe(201);
    expect(body['data']).toEqual({
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      provider: 'acme',
      label: 'sk-...def',
      name: null,
      disabled: false,
      is_fallback: false,
      allow_shared_fallback: false,
      is_required: true,
      is_byok_only: false,
      declared_zdr: null,
      declared_region: null,
      sort_order: 0,
      allowed_models: null,
      allowed_api_key_hashes: null,
      allowed_user_ids: null,
      workspace_id: home.default_workspace_id,
      created_at: NOW,
      updated_at: null,
    });
    const [row] = await database.queries.selectFrom('byok_credentials').selectAll().execute();
    if (!row) throw new Error('nothing was stored');
    expect(JSON.stringify(row)).not.toContain(KEY.slice(3, -3));
    expect(vault.open(row.sealed, placeOf(row))).toBe(KEY);
    const events = await database.queries.selectFrom('audit_events').selectAll().execute();
    expect(JSON.stringify(events)).not.toContain(KEY.slice(3, -3));
    expect(JSON.stringify(events)).not.toContain(row.sealed);
  });

  test('is_required is the inverse of allow_shared_fallback, and a contradiction is refused', async () => {
    const { create, call } = await setUp();
    const made = (await create({ is_required: false })).body['data']!;
    expect(made).toMatchObject({ allow_shared_fallback: true, is_required: false });
    const change = (body: object) => call('PATCH', `/byok/${made['id']}`, body);
    expect((await change({ is_required: true })).body['data']).toMatchObject({ allow_shared_fallback: false });
    const fallback = (await change({ is_fallback: true, declared_region: 'europe' })).body['data'];
    expect(fallback).toMatchObject({ is_required: false, declared_region: 'europe' });
    for (const [body, message] of [
      [{ is_required: true }, 'is_required must not be true together with is_fallback'],
      [{ is_byok_only: true }, 'is_byok_only must not be true together with is_fallback'],
      [{ is_required: true, allow_shared_fallback: true, is_fallback: false }, 'must not be the same as'],
      [{ declared_region: 'moon' }, 'declared_region must be'],
    ] as const) {
      const { status, body: answer } = await change(body);
      expect([status, JSON.stringify(answer)]).toEqual([400, expect.stringContaining(message)]);
    }
  });

  test('400: a workspace has no more credentials than the bound', async () => {
    const { create, home, database } = await setUp();
    await create();
    const [row] = await database.queries.selectFrom('byok_credentials').selectAll().execute();
    if (!row) throw new Error('nothing was stored');
    const more = Array.from({ length: limits.byok_credentials_max - 2 }, (_, nth) => ({
      ...row,
      id: `more-${nth}`,
      allowed_models: null,
      allowed_api_key_hashes: null,
      allowed_user_ids: null,
    }));
    await database.queries.insertInto('byok_credentials').values(more).execute();
    expect((await create()).status).toBe(201);
    expect(await create()).toMatchObject({
      status: 400,
      body: {
        error: {
          message: `workspace_id ${home.default_workspace_id} has ${limits.byok_credentials_max} credentials already`,
        },
      },
    });
  });

  test('201: every setting is stored, models as canonical slugs, each entry once, in order of creation', async () => {
    const { create, home, key_hash } = await setUp();
    const scopes = {
      allowed_models: ['acme/fast-1', 'acme/fast-1-2026-01'],
      allowed_api_key_hashes: [key_hash, key_hash],
      allowed_user_ids: [home.owner_user_id],
    };
    const made = await create({
      name: 'team',
      disabled: true,
      is_fallback: true,
      allow_shared_fallback: true,
      sort_order: 7,
      ...scopes,
    });
    expect(made.body['data']).toMatchObject({
      name: 'team',
      disabled: true,
      is_fallback: true,
      allow_shared_fallback: true,
      sort_order: 7,
      allowed_models: ['acme/fast-1-2026-01'],
      allowed_api_key_hashes: [key_hash],
      allowed_user_ids: [home.owner_user_id],
    });
    expect((await create()).body['data']).toMatchObject({ sort_order: 8 });
    expect((await create({ provider: 'other' })).body['data']).toMatchObject({ sort_order: 0 });
  });

  test('the label reveals nothing of a short credential, and only the kind of a JSON one', async () => {
    const { create } = await setUp();
    expect((await create({ key: 'short-secret' })).body['data']).toMatchObject({ label: '***' });
    expect((await create({ key: '{"region":"eu"}' })).body['data']).toMatchObject({ label: 'JSON' });
  });

  test.each([
    ['no key', { key: undefined }, /^key is required/],
    ['an empty key', { key: '' }, /^key must not be empty/],
    ['a key with NUL', { key: 'a\u0000b' }, /^key must be text/],
    ['a key with a line break', { key: `${KEY}\n` }, /^key must be JSON text, or visible/],
    ['JSON text that breaks off', { key: '{"accessKeyId":"AKIA' }, /^key must be JSON text, or visible/],
    ['a key of spaces', { key: '   ' }, /^key must be JSON text, or visible/],
    ['a key with characters beyond ASCII', { key: 'sk-\u00fc0123456789abcdef' }, /^key must be JSON text, or visible/],
    ['an unknown provider', { provider: 'nobody' }, /^provider nobody/],
    ['an unknown model', { allowed_models: ['acme/fast-1', 'acme/none'] }, /^allowed_models\[1\]/],
    ['an empty scope', { allowed_models: [] }, /^allowed_models must have at least 1/],
    ['an unknown key', { allowed_api_key_hashes: ['0'.repeat(64)] }, /^allowed_api_key_hashes\[0\]/],
    ['an unknown user', { allowed_user_ids: ['\u0000'] }, /^allowed_user_ids\[0\]/],
    ['an unknown workspace', { workspace_id: 'nowhere' }, /^workspace_id nowhere/],
    ['an unknown field', { api_key: 'x' }, /^api_key is not a known field/],
  ])('400: %s', async (_reason, over, message) => {
    const { create, database } = await setUp();
    expect(await create(over)).toMatchObject({
      status: 400,
      body: { error: { code: 400, message: expect.stringMatching(message) } },
    });
    expect(await database.queries.selectFrom('byok_credentials').selectAll().execute()).toEqual([]);
  });

  test("400: another organization's workspace, member or key in a body", async () => {
    const { create, foreign, call, key_hash } = await setUp();
    expect((await create({ workspace_id: foreign.default_workspace_id })).status).toBe(400);
    expect((await create({ allowed_user_ids: [foreign.owner_user_id] })).status).toBe(400);
    const body = { provider: 'acme', key: KEY, allowed_api_key_hashes: [key_hash] };
    expect((await call('POST', '/byok', body, 'foreign')).status).toBe(400);
  });

  test('names that a credential already contains are accepted also if they no longer exist, and no others', async () => {
    const { call, idOf, database, home, key_hash } = await setUp();
    const id = await idOf({ allowed_models: ['acme/fast-1'] });
    await database.queries
      .updateTable('byok_credentials')
      .set({
        allowed_models: JSON.stringify(['acme/gone']),
        allowed_api_key_hashes: JSON.stringify(['deleted', key_hash]),
        allowed_user_ids: JSON.stringify(['left']),
      })
      .execute();
    const scopes = {
      allowed_models: ['acme/gone', 'acme/fast-1'],
      allowed_api_key_hashes: ['deleted', key_hash, 'deleted'],
      allowed_user_ids: [home.owner_user_id, 'left'],
    };
    expect(await call('PATCH', `/byok/${id}`, scopes)).toMatchObject({
      status: 200,
      body: {
        data: {
          ...scopes,
          allowed_models: ['acme/gone', 'acme/fast-1-2026-01'],
          allowed_api_key_hashes: ['deleted', key_hash],
        },
      },
    });
    for (const [field, entry] of [
      ['allowed_models', 'other/gone'],
      ['allowed_api_key_hashes', 'left'],
      ['allowed_user_ids', 'deleted'],
    ] as const) {
      const refused = await call('PATCH', `/byok/${id}`, { [field]: [entry] });
      expect(refused).toMatchObject({
        status: 400,
        body: { error: { message: expect.stringMatching(`^${field}\\[0\\] is not`) } },
      });
    }
  });

  test('400: a management key in a scope, since it cannot call models', async () => {
    const { create, key_hash, database } = await setUp();
    await database.queries.updateTable('api_keys').set({ is_management: true }).where('hash', '=', key_hash).execute();
    expect((await create({ allowed_api_key_hashes: [key_hash] })).status).toBe(400);
  });

  test('a creation waits for the lock of its workspace', async () => {
    const { create, database, home } = await setUp();
    const commit = await heldTransaction(database.queries, async (tx) => {
      await organizationStore(tx).lockWorkspace({
        organization_id: home.organization_id,
        id: home.default_workspace_id,
      });
    });
    const creating = create({ workspace_id: home.default_workspace_id });
    expect(await Promise.race([creating.then(() => 'made'), sleep(300, 'waits')])).toBe('waits');
    await commit();
    expect((await creating).status).toBe(201);
  });

  test('a credential of one organization cannot be decrypted for another', async () => {
    const sealed = vault.seal(KEY, placeOf({ organization_id: 'one', id: 'id' }));
    expect(() => vault.open(sealed, placeOf({ organization_id: 'other', id: 'id' }))).toThrow(/another record/);
  });

  test('every change is announced to all nodes, and a refused one is not', async () => {
    const { call, create, idOf, changes, home } = await setUp();
    const announcements: string[] = [];
    changes.listen((change) => announcements.push(change === 'everything' ? change : `${change.topic} ${change.id}`));
    const announced = () => announcements.splice(0);
    const id = await idOf();
    expect(announced()).toEqual([`policy ${home.default_workspace_id}`]);
    await call('PATCH', `/byok/${id}`, { disabled: true });
    expect(announced()).toEqual([`policy ${home.default_workspace_id}`]);
    await call('PATCH', `/byok/${id}`, { allowed_user_ids: ['nobody'] });
    await create({ provider: 'nobody' });
    expect(announced()).toEqual([]);
    await call('DELETE', `/byok/${id}`);
    expect(announced()).toEqual([`policy ${home.default_workspace_id}`]);
  });

  test('PATCH changes the named fields, and a new key is audited as a rotation', async () => {
    const { call, idOf, database } = await setUp();
    const id = await idOf({ name: 'team', allowed_models: ['acme/fast-1'] });
    const patched = await call('PATCH', `/byok/${id}`, { key: 'another-credential-0123', allowed_models: null });
    expect(patched).toMatchObject({
      status: 200,
      body: { data: { id, label: 'ano...123', name: 'team', allowed_models: null, updated_at: NOW } },
      headers: { etag: '"2"' },
    });
    const [row] = await database.queries.selectFrom('byok_credentials').selectAll().execute();
    if (!row) throw new Error('nothing is stored');
    expect(vault.open(row.sealed, placeOf(row))).toBe('another-credential-0123');
    const { data } = await auditStore(database.queries).listBy(
      { organization_id: row.organization_id },
      { offset: 0, limit: 10 },
    );
    expect(data.map(({ action }) => action)).toEqual(['rotate', 'create']);
    expect(data[0]).toMatchObject({ resource_id: id, before: { label: 'sk-...def' }, after: { label: 'ano...123' } });
  });

  test('concurrent changes of different fields both succeed, and an outdated version gets 409', async () => {
    const { call, idOf } = await setUp();
    const id = await idOf();
    await Promise.all([
      call('PATCH', `/byok/${id}`, { name: 'a' }),
      call('PATCH', `/byok/${id}`, { is_fallback: true }),
    ]);
    const read = await call('GET', `/byok/${id}`);
    expect(read).toMatchObject({ body: { data: { name: 'a', is_fallback: true } }, headers: { etag: '"3"' } });
    const stale = { 'if-match': '"2"' };
    expect((await call('PATCH', `/byok/${id}`, { name: 'b' }, 'management', stale)).status).toBe(409);
    expect((await call('DELETE', `/byok/${id}`, undefined, 'management', stale)).status).toBe(409);
    expect((await call('PATCH', `/byok/${id}`, { name: 'b' }, 'management', { 'if-match': '"3"' })).status).toBe(200);
  });

  test('DELETE removes the credential', async () => {
    const { call, idOf } = await setUp();
    const id = await idOf();
    expect(await call('DELETE', `/byok/${id}`)).toMatchObject({ status: 200, body: { deleted: true } });
    const json = { 'content-type': 'application/json' };
    expect((await call('DELETE', `/byok/${id}`, undefined, 'management', json)).status).toBe(404);
    expect((await call('GET', `/byok/${id}`)).status).toBe(404);
  });

  test('GET /byok pages in the order of creation and filters by provider and workspace', async () => {
    const { call, create, home, foreign } = await setUp();
    for (const name of ['a', 'b', 'c']) await create({ name });
    await create({ name: 'd', provider: 'other' });
    const names = async (query: string) => {
      const { body } = await call('GET', `/byok?${query}`);
      return [body['total_count'], (body['data'] as unknown as { name: string }[]).map(({ name }) => name).join('')];
    };
    expect(await names('')).toEqual([4, 'abcd']);
    expect(await names('offset=1&limit=2')).toEqual([4, 'bc']);
    expect(await names('provider=Acme%20AI')).toEqual([3, 'abc']);
    expect(await names(`workspace_id=${home.default_workspace_id}`)).toEqual([4, 'abcd']);
    expect((await call('GET', '/byok?limit=101')).status).toBe(400);
    expect((await call('GET', '/byok?offset=-1')).status).toBe(400);
    expect((await call('GET', '/byok?provider=nobody')).status).toBe(400);
    expect((await call('GET', `/byok?workspace_id=${foreign.default_workspace_id}`)).status).toBe(404);
  });

  test('404: another organization does not see it', async () => {
    const { call, idOf } = await setUp();
    const id = await idOf();
    for (const method of ['GET', 'DELETE'] as const) {
      expect((await call(method, `/byok/${id}`, undefined, 'foreign')).status).toBe(404);
    }
    expect((await call('PATCH', `/byok/${id}`, { name: 'mine' }, 'foreign')).status).toBe(404);
    expect((await call('GET', '/byok', undefined, 'foreign')).body).toEqual({ data: [], total_count: 0 });
    expect((await call('GET', '/byok/%00')).status).toBe(404);
  });

  test.each([
    ['POST', '/byok', { provider: 'acme', key: KEY }],
    ['GET', '/byok', undefined],
    ['GET', '/byok/x', undefined],
    ['PATCH', '/byok/x', {}],
    ['DELETE', '/byok/x', undefined],
  ] as const)('401, 403, 500: %s %s', async (method, url, body) => {
    const { call, database } = await setUp();
    expect((await call(method, url, body, '')).status).toBe(401);
    expect((await call(method, url, body, 'ordinary')).status).toBe(403);
    await database.queries.schema.dropTable('byok_credentials').execute();
    const broken = await call(method, url, body);
    expect(broken).toMatchObject({ status: 500, body: { error: { code: 500, message: 'Internal Server Error' } } });
  });
});
