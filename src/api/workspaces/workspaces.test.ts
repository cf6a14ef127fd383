import { expect, test } from 'vitest';
import { workspacesServer } from '../../../test/http/workspaces-server.ts';
import { describeStores } from '../../../test/ledger/store-variants.ts';
import { createSecret } from '../../accounts/key.ts';
import { createRateLimit } from '../../http/rate-limit.ts';
import { turnOwner } from '../../inference/reasoning/vault.ts';
import { budgetStore } from '../../storage/budgets.ts';
import { assignmentStore, guardrailStore } from '../../storage/guardrails.ts';
import { findKeyFacts } from '../../storage/key-facts.ts';
import { reasoningStateStore } from '../../storage/reasoning-states.ts';
import { workspaceStore } from '../../storage/workspaces.ts';
import { createAuthenticate } from '../authenticate.ts';

const NOW = '2026-11-21T10:00:00.000Z';

describeStores('workspaces', ({ open }) => {
  const setUp = async (limitManagement?: (caller: string) => void) =>
    workspacesServer(await open(), NOW, limitManagement);

  test('201: name and slug are enough, and the record is complete', async () => {
    const { create, home } = await setUp();
    const { status, data } = await create();
    expect(status).toBe(201);
    expect(data).toEqual({
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      name: 'Research',
      slug: 'research',
      description: null,
      created_at: NOW,
      created_by: home.owner_user_id,
      updated_at: null,
      default_image_model: null,
      default_text_model: null,
      default_provider_sort: null,
      io_logging_api_key_ids: null,
      io_logging_sampling_rate: 1,
      is_data_discount_logging_enabled: false,
      is_observability_broadcast_enabled: false,
      is_observability_io_logging_enabled: false,
      default_guardrail_id: '',
      include_byok_in_budgets: false,
    });
  });

  test('201: every field is stored, logged keys once, the rate to a ten-thousandth', async () => {
    const { create, ask, addKey, home, database } = await setUp();
    const { id } = await addKey(home.default_workspace_id);
    const body = {
      description: 'd',
      default_image_model: 'acme/image',
      default_text_model: 'acme/text',
      default_provider_sort: 'exacto',
      is_data_discount_logging_enabled: true,
      is_observability_broadcast_enabled: true,
      is_observability_io_logging_enabled: true,
    };
    const made = await create({ ...body, io_logging_api_key_ids: [id, id], io_logging_sampling_rate: 0.12344 });
    expect(made.data).toMatchObject({ ...body, io_logging_api_key_ids: [id], io_logging_sampling_rate: 0.1234 });
    expect((await ask('GET', '/workspaces/research')).data).toEqual(made.data);
    expect((await ask('GET', `/workspaces/${made.data['id']}`)).data).toEqual(made.data);
    // A workspace may keep the id of a deleted key, so that its record can be sent back as it was read.
    await database.queries.deleteFrom('api_keys').execute();
    const back = await ask('PATCH', '/workspaces/research', { io_logging_api_key_ids: [id] });
    expect(back.data).toMatchObject({ io_logging_api_key_ids: [id] });
    expect((await create({ slug: 'other', io_logging_api_key_ids: [id] })).status).toBe(400);
    const least = await ask('PATCH', '/workspaces/research', { io_logging_sampling_rate: 0.0001 });
    expect(least.data).toMatchObject({ io_logging_sampling_rate: 0.0001 });
  });

  test.each([
    ['no name', { name: undefined }, /^name is required/],
    ['no slug', { slug: undefined }, /^slug is required/],
    ['an empty name', { name: '' }, /^name must not be empty/],
    ['a long name', { name: 'n'.repeat(101) }, /^name must have at most 100/],
    ['a long slug', { slug: 's'.repeat(51) }, /^slug must have at most 50/],
    ['capital letters', { slug: 'Research' }, /^slug must be lower-case/],
    ['a leading hyphen', { slug: '-a' }, /^slug must be lower-case/],
    ['a trailing hyphen', { slug: 'a-' }, /^slug must be lower-case/],
    ['two hyphens', { slug: 'a--b' }, /^slug must be lower-case/],
    ['an underscore', { slug: 'a_b' }, /^slug must be lower-case/],
    ['a slug like an id', { slug: '6f2c1d1e-3c1b-4b7a-9f43-0c8f5a4c2b11' }, /^slug must not have the form/],
    ['a taken slug', { slug: 'default' }, /^slug default is used/],
    ['a long description', { description: 'd'.repeat(501) }, /^description must have at most 500/],
    ['NUL', { name: 'a\u0000' }, /^name must be text/],
    ['an unknown sort', { default_provider_sort: 'speed' }, /^default_provider_sort must be one of/],
    ['a rate of zero', { io_logging_sampling_rate: 0 }, /^io_logging_sampling_rate must be at least 0.0001/],
    ['a rate above one', { io_logging_sampling_rate: 1.1 }, /^io_logging_sampling_rate must be at most 1/],
    ['an unknown key', { io_logging_api_key_ids: [12345] }, /^io_logging_api_key_ids\[0\] is not the id/],
    ['a fraction as a key id', { io_logging_api_key_ids: [1.5] }, /^io_logging_api_key_ids\[0\] must be an integer/],
    ['an unknown field', { slugg: 'x' }, /^slugg is not a known field/],
    ['a record field', { id: 'x' }, /^id is not a known field/],
  ])('400: %s, on creation and change', async (_reason, body, message) => {
    const { create, ask } = await setUp();
    const made = await create(body);
    expect(made).toMatchObject({ status: 400, message: expect.stringMatching(message) });
    if (Object.values(body).includes(undefined)) return;
    await create({ slug: 'other' });
    const changed = await ask('PATCH', '/workspaces/other', body);
    expect(changed).toMatchObject({ status: 400, message: expect.stringMatching(message) });
  });

  test("400: logging a management key, which makes no calls, or another organization's key", async () => {
    const { create, addKey, home, foreign } = await setUp();
    const management = await addKey(home.default_workspace_id, { is_management: true });
    const { organization_id, default_workspace_id } = foreign;
    const strange = await addKey(default_workspace_id, { organization_id });
    for (const { id } of [management, strange]) {
      expect((await create({ io_logging_api_key_ids: [id] })).status).toBe(400);
    }
  });

  test('PATCH changes the named fields, by id or slug, and a free slug can be used again', async () => {
    const { create, ask } = await setUp();
    const { data } = await create();
    expect((await ask('PATCH', '/workspaces/research', {})).data).toEqual({ ...data, updated_at: NOW });
    const moved = await ask('PATCH', `/workspaces/${data['id']}`, { slug: 'lab', description: 'd' });
    expect(moved.data).toEqual({ ...data, slug: 'lab', description: 'd', updated_at: NOW });
    expect((await ask('GET', '/workspaces/research')).status).toBe(404);
    expect((await create()).status).toBe(201);
    expect((await ask('PATCH', '/workspaces/lab', { description: null })).data).toMatchObject({ description: null });
  });

  test('of 100 concurrent creations with one slug one succeeds, and the others get a 400', async () => {
    const { create } = await setUp();
    const answers = await Promise.all(Array.from({ length: 100 }, () => create()));
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(1);
    expect(answers.filter(({ status }) => status === 400)).toHaveLength(99);
    expect(answers.find(({ status }) => status === 400)?.message).toMatch(/^slug research is used/);
  });

  test('concurrent changes of different fields all succeed, and one with an outdated version is refused', async () => {
    const { create, ask, call } = await setUp();
    await create();
    const changes = [{ name: 'n' }, { description: 'd' }, { default_provider_sort: 'price' }];
    await Promise.all(changes.map((change) => ask('PATCH', '/workspaces/research', change)));
    const read = await call('GET', '/workspaces/research');
    expect(read).toMatchObject({ body: { data: Object.assign({}, ...changes) }, headers: { etag: '"4"' } });
    const stale = { 'if-match': '"3"' };
    expect((await call('PATCH', '/workspaces/research', { name: 'x' }, 'management', stale)).status).toBe(409);
    expect((await call('DELETE', '/workspaces/research', undefined, 'management', stale)).status).toBe(409);
  });

  test('GET /workspaces lists them in pages, with the default one first', async () => {
    const { create, ask } = await setUp();
    await create();
    await create({ slug: 'other' });
    const all = await ask('GET', '/workspaces');
    expect(all).toMatchObject({ total_count: 3, data: [{ slug: 'default' }, { slug: 'research' }, { slug: 'other' }] });
    expect(await ask('GET', '/workspaces?offset=1&limit=1')).toMatchObject({
      total_count: 3,
      data: [{ slug: 'research' }],
    });
    for (const query of ['limit=101', 'limit=0', 'offset=-1']) {
      expect((await ask('GET', `/workspaces?${query}`)).status).toBe(400);
    }
  });

  test('reasoning state is deleted with its workspace, and only with it', async () => {
    const { create, ask, database } = await setUp();
    const id = String((await create()).data['id']);
    const states = reasoningStateStore(database.queries);
    const row = (name: string, workspaceId: string) => {
      return { id: name, owner: turnOwner('secret', workspaceId), sealed: name, expires_at: '9999' };
    };
    await states.insert([row('gone', id), row('stays', 'another')]);
    expect((await ask('DELETE', '/workspaces/research')).status).toBe(200);
    expect(await states.findMany(['gone', 'stays'], NOW)).toEqual([{ id: 'stays', sealed: 'stays' }]);
  });

  test('every change is announced to all nodes, and a request without a change is not', async () => {
    const { create, ask, addUser, addKey, changes, database, home } = await setUp();
    const announced: string[] = [];
    changes.listen((change) => announced.push(change === 'everything' ? change : `${change.topic} ${change.id}`));
    const id = String((await create()).data['id']);
    const userIds = [await addUser('member')];
    announced.length = 0;
    for (const [method, path, body] of [
      ['PATCH', '', { name: 'n' }],
      ['POST', '/members/add', { user_ids: userIds }],
      ['POST', '/members/remove', { user_ids: userIds }],
      ['PUT', '/budgets/daily', { limit_usd: 1 }],
      ['DELETE', '/budgets/daily', undefined],
    ] as const) {
      expect([path, (await ask(method, `/workspaces/research${path}`, body)).status]).toEqual([path, 200]);
      expect([path, announced.splice(0)]).toEqual([path, [`policy ${id}`]]);
    }
    await ask('POST', '/workspaces/research/members/remove', { user_ids: userIds });
    await ask('DELETE', '/workspaces/research/budgets/daily');
    await ask('PATCH', '/workspaces/research', { slug: 'default' });
    expect(announced).toEqual([]);
    const { hash } = await addKey(id, { disabled: true });
    const { id: guardrail } = await guardrailStore(database.queries).insert({
      organization_id: home.organization_id,
      workspace_id: id,
      name: 'g',
      created_at: NOW,
    });
    await ask('DELETE', '/workspaces/research');
    expect(announced).toEqual([`keys ${hash}`, `policy ${guardrail}`, `policy ${id}`, `workspace_gone ${id}`]);
  });

  test('including BYOK in budgets applies immediately to keys of other workspaces with its guardrails', async () => {
    const { create, ask, addKey, changes, database, home } = await setUp();
    const { queries, clock } = database;
    const authenticate = createAuthenticate({
      findKey: (hash) => findKeyFacts(queries, hash),
      findBudgets: budgetStore(queries).findBySubjects,
      findGuardrails: guardrailStore(queries).listHolding,
      findWorkspace: workspaceStore(queries).find,
      findOwner: async () => undefined,
      management_key: undefined,
      home,
      clock: { nowMs: () => Date.parse(NOW) },
      memory: { clock, changes, serve_without_store_ms: 0 },
      isRevokedHere: () => false,
      onPreviousSecret: () => {},
    });
    const { organization_id } = home;
    const { secret, hash } = createSecret();
    const { id } = await addKey(home.default_workspace_id);
    await queries.updateTable('api_keys').set({ hash }).where('id', '=', id).execute();
    const { id: guardrailId } = await guardrailStore(queries).insert({
      organization_id,
      workspace_id: String((await create()).data['id']),
      name: 'g',
      limit_nano: 1,
      created_at: NOW,
    });
    const assigned = { organization_id, guardrail_id: guardrailId, assignees: [hash] };
    await assignmentStore(queries).insertKeys({ ...assigned, assigned_by: null, created_at: NOW });
    const counts = async () => (await authenticate(secret)).budgets.map(({ include_byok }) => Boolean(include_byok));
    expect(await counts()).toEqual([false]);
    expect((await ask('PATCH', '/workspaces/research', { include_byok_in_budgets: true })).status).toBe(200);
    expect(await counts()).toEqual([true]);
  });

  const all = [
    ['GET', '/workspaces', undefined],
    ['POST', '/workspaces', { name: 'n', slug: 's' }],
    ['GET', '/workspaces/ID', undefined],
    ['PATCH', '/workspaces/ID', { name: 'n' }],
    ['DELETE', '/workspaces/ID', undefined],
    ['GET', '/workspaces/ID/members', undefined],
    ['POST', '/workspaces/ID/members/add', { user_ids: ['u'] }],
    ['POST', '/workspaces/ID/members/remove', { user_ids: ['u'] }],
    ['GET', '/workspaces/ID/budgets', undefined],
    ['GET', '/workspaces/ID/budgets/daily', undefined],
    ['PUT', '/workspaces/ID/budgets/daily', { limit_usd: 1 }],
    ['DELETE', '/workspaces/ID/budgets/daily', undefined],
  ] as const;

  test.each(all)('401, 403, 404, 500: %s %s', async (method, path, body) => {
    const { create, call, database } = await setUp();
    const { data } = await create();
    for (const id of [String(data['id']), 'research']) {
      const url = path.replace('ID', id);
      expect((await call(method, url, body, '')).status).toBe(401);
      expect((await call(method, url, body, 'ordinary')).status).toBe(403);
      if (path.includes('ID')) expect((await call(method, url, body, 'foreign')).status).toBe(404);
    }
    if (path.includes('ID')) expect((await call(method, path.replace('ID', '%00'), body)).status).toBe(404);
    await database.queries.schema.alterTable('workspaces').renameTo('gone').execute();
    expect((await call(method, path.replace('ID', 'research'), body)).status).toBe(500);
  });

  test('429: too many requests, in every operation', async () => {
    const { call } = await setUp(createRateLimit(1, { nowMs: () => 0, monotonicMs: () => 0 }));
    expect((await call('GET', '/workspaces')).status).toBe(200);
    for (const [method, path, body] of all) {
      const answer = await call(method, path.replace('ID', 'default'), body);
      expect([method, path, answer.status]).toEqual([method, path, 429]);
      expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0);
    }
  });
});
