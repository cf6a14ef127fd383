import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { managementServer } from '../../../test/management-server.ts';
import { describeStores } from '../../../test/store-variants.ts';
import { createSecret } from '../../accounts/key.ts';
import { buildCatalog } from '../../catalog/catalog.ts';
import { auditStore } from '../../storage/audit.ts';
import { assignmentStore, guardrailStore } from '../../storage/guardrails.ts';
import { keyStore } from '../../storage/keys.ts';
import { organizationStore } from '../../storage/organizations.ts';
import { assignGuardrailKeys } from './assign-guardrail-keys.ts';
import { assignGuardrailMembers } from './assign-guardrail-members.ts';
import { createGuardrail } from './create-guardrail.ts';
import { deleteGuardrail } from './delete-guardrail.ts';
import { getGuardrail } from './get-guardrail.ts';
import { listGuardrailKeys } from './list-guardrail-keys.ts';
import { listGuardrailMembers } from './list-guardrail-members.ts';
import { listGuardrails } from './list-guardrails.ts';
import { listKeyAssignments } from './list-key-assignments.ts';
import { listMemberAssignments } from './list-member-assignments.ts';
import { unassignGuardrailKeys } from './unassign-guardrail-keys.ts';
import { unassignGuardrailMembers } from './unassign-guardrail-members.ts';
import { updateGuardrail } from './update-guardrail.ts';

const NOW = '2026-11-21T10:00:00.000Z';
const operations = [
  assignGuardrailKeys,
  assignGuardrailMembers,
  createGuardrail,
  deleteGuardrail,
  getGuardrail,
  listGuardrailKeys,
  listGuardrailMembers,
  listGuardrails,
  listKeyAssignments,
  listMemberAssignments,
  unassignGuardrailKeys,
  unassignGuardrailMembers,
  updateGuardrail,
];
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
  providers: [{ slug: 'acme', name: 'Acme AI', dialect: 'openai-chat', parameters: [], quirks: {} } as never],
  created_default: 0,
});

type Data = Record<string, unknown>;

describeStores('guardrails', ({ open }) => {
  async function setUp() {
    const database = await open();
    const made = await managementServer(database, NOW);
    const shared = {
      change: made.change,
      guardrails: guardrailStore(database.queries),
      assignments: assignmentStore(database.queries),
      organizations: organizationStore(database.queries),
      catalog: () => catalog,
      providerSlug: (name: string) => ({ acme: 'acme', 'acme ai': 'acme' })[name.toLowerCase()],
    };
    for (const add of operations) add(made.server, shared);
    const create = async (body: object = {}) => {
      const { status, body: answer } = await made.call('POST', '/guardrails', { name: 'g', ...body });
      return { status, data: answer['data'] as unknown as Data, error: answer['error'] as unknown as Data };
    };
    const patch = async (id: unknown, body: object) => {
      const { status, body: answer } = await made.call('PATCH', `/guardrails/${id}`, body);
      return { status, data: answer['data'] as unknown as Data, error: answer['error'] as unknown as Data };
    };
    const makeKey = async (over: { is_management?: boolean; organization_id?: string } = {}) => {
      const { hash, label } = createSecret();
      const key = await keyStore(database.queries).insert({
        hash,
        label,
        organization_id: made.home.organization_id,
        workspace_id: made.home.default_workspace_id,
        creator_user_id: null,
        name: 'a key',
        is_management: false,
        disabled: false,
        limit_nano: null,
        limit_reset: null,
        include_byok_in_limit: false,
        expires_at: null,
        created_at: NOW,
        updated_at: null,
        ...over,
      });
      return key;
    };
    return { ...made, database, create, patch, makeKey };
  }

  test('201: a name is enough; the record is complete', async () => {
    const { create, home } = await setUp();
    const { status, data } = await create();
    expect(status).toBe(201);
    const zdr = ['vendor_a', 'vendor_b', 'vendor_c', 'anthropic', 'openai', 'google', 'other'];
    expect(data).toEqual({
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      name: 'g',
      workspace_id: home.default_workspace_id,
      created_at: NOW,
      updated_at: null,
      description: null,
      allowed_models: null,
      ignored_models: null,
      allowed_providers: null,
      ignored_providers: null,
      limit_usd: null,
      enforce_zdr: null,
      ...Object.fromEntries(zdr.map((vendor) => [`enforce_zdr_${vendor}`, null])),
      content_filter_builtins: null,
      content_filters: null,
    });
  });

  test('201: every field is kept; models as canonical slugs, providers as slugs, each once', async () => {
    const { create } = await setUp();
    const body = {
      description: 'd',
      limit_usd: 12.5,
      reset_interval: 'weekly',
      content_filter_builtins: [
        { slug: 'email', action: 'redact', label: 'MAIL' },
        { slug: 'regex-prompt-injection', action: 'flag' },
      ],
      content_filters: [{ pattern: '(?i)secret', action: 'block', label: null }],
    };
    const names = {
      allowed_models: ['acme/fast-1', 'acme/fast-1-2026-01'],
      ignored_models: ['acme/fast-1'],
      allowed_providers: ['ACME AI', 'acme'],
      ignored_providers: ['acme'],
    };
    expect((await create({ ...body, ...names })).data).toMatchObject({
      ...body,
      allowed_models: ['acme/fast-1-2026-01'],
      ignored_models: ['acme/fast-1-2026-01'],
      allowed_providers: ['acme'],
      ignored_providers: ['acme'],
    });
  });

  const piiSlugs = ['email', 'phone', 'ssn', 'credit-card', 'ip-address', 'person-name', 'address'];
  test('every builtin takes redact and block; flag is for prompt injection alone', async () => {
    const { create } = await setUp();
    for (const slug of [...piiSlugs, 'regex-prompt-injection']) {
      for (const action of ['redact', 'block', 'flag']) {
        const { status, error } = await create({ content_filter_builtins: [{ slug, action }] });
        const taken = action !== 'flag' || slug === 'regex-prompt-injection';
        expect([slug, action, status]).toEqual([slug, action, taken ? 201 : 400]);
        if (!taken)
          expect(error['message']).toMatch(/^content_filter_builtins\[0\]\.action flag is supported only for/);
      }
    }
  });

  test.each([
    ['no name', { name: undefined }, /^name is required/],
    ['an empty name', { name: '' }, /^name must not be empty/],
    ['a long name', { name: 'n'.repeat(201) }, /^name must have at most 200/],
    ['a long description', { description: 'd'.repeat(1001) }, /^description must have at most 1000/],
    ['NUL', { description: '\u0000' }, /^description must be text/],
    ['an unknown workspace', { workspace_id: 'nowhere' }, /^workspace_id nowhere/],
    ['an unknown model', { allowed_models: ['acme/fast-1', 'acme/none'] }, /^allowed_models\[1\] is not a model/],
    ['an unknown ignored model', { ignored_models: ['none'] }, /^ignored_models\[0\] is not a model/],
    ['an unknown provider', { allowed_providers: ['nobody'] }, /^allowed_providers\[0\] is not a provider/],
    ['an unknown ignored provider', { ignored_providers: ['nobody'] }, /^ignored_providers\[0\] is not a provider/],
    ['an empty list', { allowed_models: [] }, /^allowed_models must have at least 1 item/],
    ['a negative limit', { limit_usd: -1 }, /^limit_usd must be at least 0/],
    ['a limit above what is exact', { limit_usd: 9_007_200 }, /^limit_usd must be at most 9007199/],
    ['an unknown interval', { reset_interval: 'yearly' }, /^reset_interval must be one of/],
    ['an unknown builtin', { content_filter_builtins: [{ slug: 'iban', action: 'block' }] }, /builtins\[0\]\.slug/],
    ['an unknown action', { content_filter_builtins: [{ slug: 'email', action: 'drop' }] }, /builtins\[0\]\.action/],
    [
      'a builtin twice',
      {
        content_filter_builtins: [
          { slug: 'email', action: 'block' },
          { slug: 'email', action: 'redact' },
        ],
      },
      /^content_filter_builtins\[1\]\.slug names email a second time/,
    ],
    [
      'a long label',
      { content_filter_builtins: [{ slug: 'email', action: 'block', label: 'l'.repeat(101) }] },
      /builtins\[0\]\.label must have at most 100/,
    ],
    ['an empty pattern', { content_filters: [{ pattern: '', action: 'block' }] }, /filters\[0\]\.pattern must not be/],
    [
      'a flagged pattern',
      { content_filters: [{ pattern: 'a', action: 'flag' }] },
      /filters\[0\]\.action must be one of/,
    ],
    [
      'lookahead',
      { content_filters: [{ pattern: '(?=a)', action: 'block' }] },
      /filters\[0\]\.pattern is not a regular/,
    ],
    [
      'a backreference',
      {
        content_filters: [
          { pattern: 'a', action: 'block' },
          { pattern: '(a)\\1', action: 'block' },
        ],
      },
      /^content_filters\[1\]\.pattern is not a regular expression in RE2 syntax/,
    ],
    ['an unknown field', { enforce_zdrs: true }, /^enforce_zdrs is not a known field/],
    [
      'two names of one setting that differ',
      { enforce_zdr_vendor_a: true, enforce_zdr_anthropic: false },
      /^enforce_zdr_vendor_a and enforce_zdr_anthropic are the same setting/,
    ],
  ])('400: %s, on creation and change', async (_reason, body, message) => {
    const { create, patch } = await setUp();
    const made = await create(body);
    expect([made.status, made.error?.['message']]).toEqual([400, expect.stringMatching(message)]);
    if ('workspace_id' in body || 'name' in body) return;
    const { data } = await create();
    const changed = await patch(data['id'], body);
    expect([changed.status, changed.error['message']]).toEqual([400, expect.stringMatching(message)]);
  });

  test('400: more characters of patterns than all of them together may have, each alone small enough', async () => {
    const { create } = await setUp();
    const filters = (count: number) =>
      Array.from({ length: count }, () => ({ pattern: `${'(?s)'.repeat(24_999)}a`, action: 'block' }));
    expect((await create({ content_filters: filters(2) })).status).toBe(201);
    expect(await create({ content_filters: filters(3) })).toMatchObject({
      status: 400,
      error: { message: expect.stringMatching(/^content_filters must have at most 200000 characters of patterns/) },
    });
  });

  test('a pattern that is refused says so for programs too', async () => {
    const { create } = await setUp();
    const { error } = await create({ content_filters: [{ pattern: '(', action: 'block' }] });
    expect(error['metadata']).toEqual({ reason: 'invalid_regex_pattern' });
  });

  test('enforce_zdr is copied into every field that the request does not give, null included', async () => {
    const { create, patch } = await setUp();
    const { data } = await create({ enforce_zdr: true, enforce_zdr_vendor_b: false, enforce_zdr_google: null });
    const copied = {
      enforce_zdr: true,
      enforce_zdr_vendor_a: true,
      enforce_zdr_anthropic: true,
      enforce_zdr_vendor_b: false,
      enforce_zdr_openai: false,
      enforce_zdr_vendor_c: null,
      enforce_zdr_google: null,
      enforce_zdr_other: true,
    };
    expect(data).toMatchObject(copied);
    expect((await patch(data['id'], { enforce_zdr_other: false })).data).toMatchObject({
      ...copied,
      enforce_zdr_other: false,
    });
    const all = Object.fromEntries(Object.keys(copied).map((field) => [field, false]));
    expect((await patch(data['id'], { enforce_zdr: false })).data).toMatchObject(all);
    const none = Object.fromEntries(Object.keys(copied).map((field) => [field, null]));
    expect((await patch(data['id'], { enforce_zdr: null })).data).toMatchObject(none);
  });

  test('what a guardrail names already is taken back as it is, whatever became of it; nothing else is', async () => {
    const { create, patch, database } = await setUp();
    const { data } = await create({ allowed_models: ['acme/fast-1'], ignored_providers: ['acme'] });
    await database.queries
      .updateTable('guardrails')
      .set({
        allowed_models: JSON.stringify(['acme/gone', 'acme/fast-1-2026-01']),
        ignored_providers: JSON.stringify(['left']),
      })
      .execute();
    const back = await patch(data['id'], { allowed_models: ['acme/gone', 'acme/fast-1'], ignored_providers: ['left'] });
    expect(back).toMatchObject({
      status: 200,
      data: { allowed_models: ['acme/gone', 'acme/fast-1-2026-01'], ignored_providers: ['left'] },
    });
    expect(await patch(data['id'], { ignored_models: ['acme/gone'] })).toMatchObject({
      status: 400,
      error: { message: 'ignored_models[0] is not a model that is served here' },
    });
  });

  test('PATCH changes what it names; null removes filters and lists; lists are replaced whole', async () => {
    const { create, patch } = await setUp();
    const { data } = await create({
      description: 'd',
      limit_usd: 5,
      reset_interval: 'daily',
      allowed_models: ['acme/fast-1'],
      content_filter_builtins: [{ slug: 'email', action: 'block' }],
      content_filters: [{ pattern: 'a', action: 'block' }],
    });
    const renamed = await patch(data['id'], { name: 'other' });
    expect(renamed.data).toEqual({ ...data, name: 'other', updated_at: NOW });
    const replaced = await patch(data['id'], { content_filter_builtins: [{ slug: 'ssn', action: 'redact' }] });
    expect(replaced.data).toMatchObject({ content_filter_builtins: [{ slug: 'ssn', action: 'redact' }] });
    const removed = await patch(data['id'], {
      content_filter_builtins: null,
      content_filters: null,
      allowed_models: null,
      limit_usd: null,
      reset_interval: null,
      description: null,
    });
    expect(removed.data).toMatchObject({
      content_filter_builtins: null,
      content_filters: null,
      allowed_models: null,
      limit_usd: null,
      description: null,
    });
    expect(removed.data).not.toHaveProperty('reset_interval');
  });

  test('changes of different fields at once all survive; one that has not seen the last is refused', async () => {
    const { create, patch, call } = await setUp();
    const { data } = await create();
    const changes = [{ name: 'n' }, { description: 'd' }, { limit_usd: 1 }, { enforce_zdr_other: true }];
    await Promise.all(changes.map((change) => patch(data['id'], change)));
    const read = await call('GET', `/guardrails/${data['id']}`);
    expect(read).toMatchObject({ body: { data: Object.assign({}, ...changes) }, headers: { etag: '"5"' } });
    const stale = { 'if-match': '"4"' };
    expect((await call('PATCH', `/guardrails/${data['id']}`, { name: 'x' }, 'management', stale)).status).toBe(409);
    expect((await call('DELETE', `/guardrails/${data['id']}`, undefined, 'management', stale)).status).toBe(409);
  });

  test('GET /guardrails: the default workspace where none is named, in pages that do not move', async () => {
    const { create, call, home, foreign } = await setUp();
    for (const name of ['a', 'b', 'c']) await create({ name });
    const names = async (query: string) => {
      const { body } = await call('GET', `/guardrails?${query}`);
      return [body['total_count'], (body['data'] as unknown as Data[]).map((one) => one['name']).join('')];
    };
    expect(await names('')).toEqual([3, 'abc']);
    expect(await names(`workspace_id=${home.default_workspace_id}&offset=1&limit=1`)).toEqual([3, 'b']);
    await create({ name: 'd' });
    expect(await names('offset=2&limit=100')).toEqual([4, 'cd']);
    for (const query of ['limit=101', 'limit=0', 'offset=-1', 'limit=x']) {
      expect((await call('GET', `/guardrails?${query}`)).status).toBe(400);
    }
    expect((await call('GET', `/guardrails?workspace_id=${foreign.default_workspace_id}`)).status).toBe(404);
  });

  test('a key holds one guardrail at most: assigning again moves it, counts what changed, and leaves an audit', async () => {
    const { create, call, makeKey, home, database } = await setUp();
    const [one, two] = [(await create()).data['id'], (await create()).data['id']];
    const keys = [await makeKey(), await makeKey()];
    const key_hashes = keys.map(({ hash }) => hash);
    const assign = (id: unknown, hashes: string[], what = '') =>
      call('POST', `/guardrails/${id}/assignments/keys${what}`, { key_hashes: hashes });
    expect((await assign(one, [...key_hashes, ...key_hashes])).body).toEqual({ assigned_count: 2 });
    expect((await assign(one, key_hashes)).body).toEqual({ assigned_count: 0 });
    expect((await assign(two, key_hashes.slice(0, 1))).body).toEqual({ assigned_count: 1 });
    expect((await call('GET', `/guardrails/${two}/assignments/keys`)).body).toEqual({
      total_count: 1,
      data: [
        {
          id: expect.stringMatching(/^[0-9a-f-]{36}$/),
          guardrail_id: two,
          key_hash: key_hashes[0],
          key_name: 'a key',
          key_label: keys[0]?.label,
          assigned_by: home.owner_user_id,
          created_at: NOW,
        },
      ],
    });
    const listed = (await call('GET', '/guardrails/assignments/keys')).body;
    expect(listed).toMatchObject({ total_count: 2, data: [{ guardrail_id: one }, { guardrail_id: two }] });
    expect((await assign(one, key_hashes, '/remove')).body).toEqual({ unassigned_count: 1 });
    expect((await call('GET', '/guardrails/assignments/keys')).body).toMatchObject({ total_count: 1 });
    const { data } = await auditStore(database.queries).listBy(
      { organization_id: home.organization_id, resource_type: 'guardrail_assignment' },
      { offset: 0, limit: 100 },
    );
    expect(data.map(({ action }) => action)).toEqual(['unassign', 'assign', 'unassign', 'assign', 'assign']);
  });

  test('the same holds for members', async () => {
    const { create, call, home } = await setUp();
    const [one, two] = [(await create()).data['id'], (await create()).data['id']];
    const user_id = home.owner_user_id;
    const assign = (id: unknown, what = '') =>
      call('POST', `/guardrails/${id}/assignments/members${what}`, { member_user_ids: [user_id, user_id] });
    expect((await assign(one)).body).toEqual({ assigned_count: 1 });
    expect((await assign(two)).body).toEqual({ assigned_count: 1 });
    expect((await call('GET', `/guardrails/${one}/assignments/members`)).body).toEqual({ data: [], total_count: 0 });
    const record = {
      id: expect.any(String),
      guardrail_id: two,
      organization_id: home.organization_id,
      user_id,
      assigned_by: user_id,
      created_at: NOW,
    };
    for (const path of [`/guardrails/${two}/assignments/members`, '/guardrails/assignments/members']) {
      expect((await call('GET', path)).body).toEqual({ data: [record], total_count: 1 });
    }
    expect((await assign(one, '/remove')).body).toEqual({ unassigned_count: 0 });
    expect((await assign(two, '/remove')).body).toEqual({ unassigned_count: 1 });
  });

  test("all are assigned or none: 404 names who is not there, another organization's and management keys included", async () => {
    const { create, call, makeKey, foreign } = await setUp();
    const { data } = await create();
    const key = await makeKey();
    const strangers = [
      '0'.repeat(64),
      '\u0000',
      (await makeKey({ is_management: true })).hash,
      (await makeKey({ organization_id: foreign.organization_id })).hash,
    ];
    for (const stranger of strangers) {
      const body = { key_hashes: [key.hash, stranger] };
      expect(await call('POST', `/guardrails/${data['id']}/assignments/keys`, body)).toMatchObject({
        status: 404,
        body: { error: { message: expect.stringMatching(/^key_hashes\[1\] was not found/) } },
      });
    }
    const body = { member_user_ids: [foreign.owner_user_id] };
    expect(await call('POST', `/guardrails/${data['id']}/assignments/members`, body)).toMatchObject({
      status: 404,
      body: { error: { message: expect.stringMatching(/^member_user_ids\[0\] was not found/) } },
    });
    expect((await call('GET', '/guardrails/assignments/keys')).body).toEqual({ data: [], total_count: 0 });
    for (const hashes of [[], Array.from({ length: 101 }, () => key.hash), [5], ['']]) {
      const wrong = await call('POST', `/guardrails/${data['id']}/assignments/keys`, { key_hashes: hashes });
      expect(wrong.status).toBe(400);
    }
  });

  test('100 assignments at once of the same keys to different guardrails: each key ends with exactly one', async () => {
    const { create, call, makeKey } = await setUp();
    const guardrails = await Promise.all(Array.from({ length: 10 }, () => create()));
    const keys = await Promise.all(Array.from({ length: 5 }, () => makeKey()));
    const hashes = keys.map(({ hash }) => hash);
    const answers = await Promise.all(
      Array.from({ length: 100 }, (_, index) => {
        const key_hashes = index % 2 === 0 ? hashes : [...hashes].reverse();
        const id = guardrails[index % 10]?.data['id'];
        return call('POST', `/guardrails/${id}/assignments/keys`, { key_hashes });
      }),
    );
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    const { body } = await call('GET', '/guardrails/assignments/keys');
    expect(body['total_count']).toBe(5);
    expect(new Set((body['data'] as unknown as Data[]).map((one) => one['key_hash']))).toEqual(new Set(hashes));
    const counts = await Promise.all(
      guardrails.map(async ({ data }) => {
        const one = await call('GET', `/guardrails/${data['id']}/assignments/keys`);
        return Number(one.body['total_count']);
      }),
    );
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(5);
  }, 60_000);

  test('DELETE takes the assignments with it, each told to the audit; the key can be given another', async () => {
    const { create, call, makeKey, home, database } = await setUp();
    const [one, two] = [(await create()).data['id'], (await create()).data['id']];
    const { hash } = await makeKey();
    const body = { key_hashes: [hash] };
    await call('POST', `/guardrails/${one}/assignments/keys`, body);
    const members = { member_user_ids: [home.owner_user_id] };
    await call('POST', `/guardrails/${one}/assignments/members`, members);
    const assigned = await database.queries.selectFrom('guardrail_key_assignments').select('id').execute();
    expect(await call('DELETE', `/guardrails/${one}`)).toMatchObject({ status: 200, body: { deleted: true } });
    const { data } = await auditStore(database.queries).listBy(
      { organization_id: home.organization_id },
      { offset: 0, limit: 3 },
    );
    expect(data).toMatchObject([
      { action: 'delete', resource_type: 'guardrail', resource_id: one },
      { action: 'unassign', before: { guardrail_id: one, user_id: home.owner_user_id }, after: null },
      { action: 'unassign', resource_id: assigned[0]?.id, before: { guardrail_id: one, key_hash: hash }, after: null },
    ]);
    expect((await call('GET', `/guardrails/${one}`)).status).toBe(404);
    expect((await call('DELETE', `/guardrails/${one}`)).status).toBe(404);
    expect((await call('GET', '/guardrails/assignments/keys')).body).toEqual({ data: [], total_count: 0 });
    expect((await call('GET', '/guardrails/assignments/members')).body).toEqual({ data: [], total_count: 0 });
    expect((await call('POST', `/guardrails/${two}/assignments/keys`, body)).body).toEqual({ assigned_count: 1 });
  });

  test('what a key leaves while that guardrail is being deleted is told to the audit once', async () => {
    const { create, call, makeKey, database, home } = await setUp();
    const [one, two] = [String((await create()).data['id']), (await create()).data['id']];
    const body = { key_hashes: [(await makeKey()).hash] };
    await call('POST', `/guardrails/${one}/assignments/keys`, body);
    const { promise: mayCommit, resolve: commit } = Promise.withResolvers<void>();
    const { promise: changed, resolve: change } = Promise.withResolvers<void>();
    const { organization_id } = home;
    const deleting = database.queries.transaction().execute(async (tx) => {
      await guardrailStore(tx).lock({ organization_id, id: one });
      await assignmentStore(tx).deleteAllKeys(one);
      await guardrailStore(tx).delete(one);
      change();
      await mayCommit;
    });
    await changed;
    const moving = call('POST', `/guardrails/${two}/assignments/keys`, body);
    await sleep(300);
    commit();
    await deleting;
    expect((await moving).body).toEqual({ assigned_count: 1 });
    const filter = { organization_id, resource_type: 'guardrail_assignment' } as const;
    const { data } = await auditStore(database.queries).listBy(filter, { offset: 0, limit: 10 });
    expect(data.map(({ action }) => action)).toEqual(['assign', 'assign']);
  });

  test('every change is announced to all nodes; what changes nothing is not', async () => {
    const { call, create, patch, makeKey, changes, home } = await setUp();
    const heard: string[] = [];
    changes.listen((change) => heard.push(change === 'everything' ? change : `${change.topic} ${change.id}`));
    const told = () => heard.splice(0);
    const id = (await create()).data['id'];
    expect(told()).toEqual([`policy ${id}`]);
    await patch(id, { limit_usd: 1 });
    expect(told()).toEqual([`policy ${id}`]);
    const keys = { key_hashes: [(await makeKey()).hash] };
    const members = { member_user_ids: [home.owner_user_id] };
    for (const [kind, body] of [
      ['keys', keys],
      ['members', members],
    ] as const) {
      for (const path of [`${kind}`, `${kind}/remove`]) {
        await call('POST', `/guardrails/${id}/assignments/${path}`, body);
        expect([path, told()]).toEqual([path, [`policy ${id}`]]);
        await call('POST', `/guardrails/${id}/assignments/${path}`, body);
        expect([path, told()]).toEqual([path, []]);
      }
    }
    await patch(id, { allowed_models: ['nobody/none'] });
    expect(told()).toEqual([]);
    await call('DELETE', `/guardrails/${id}`);
    expect(told()).toEqual([`policy ${id}`]);
  });

  test('a creation waits for whoever holds its workspace, so that a deletion is not kept from its end', async () => {
    const { create, database, home } = await setUp();
    const { promise: mayCommit, resolve: commit } = Promise.withResolvers<void>();
    const { promise: held, resolve: hold } = Promise.withResolvers<void>();
    const holding = database.queries.transaction().execute(async (tx) => {
      await organizationStore(tx).lockWorkspace({
        organization_id: home.organization_id,
        id: home.default_workspace_id,
      });
      hold();
      await mayCommit;
    });
    await held;
    const creating = create({ workspace_id: home.default_workspace_id });
    expect(await Promise.race([creating.then(() => 'made'), sleep(300, 'waits')])).toBe('waits');
    commit();
    await holding;
    expect((await creating).status).toBe(201);
  });

  const all = [
    ['GET', '/guardrails', undefined],
    ['POST', '/guardrails', { name: 'n' }],
    ['GET', '/guardrails/ID', undefined],
    ['PATCH', '/guardrails/ID', { name: 'n' }],
    ['DELETE', '/guardrails/ID', undefined],
    ['GET', '/guardrails/ID/assignments/keys', undefined],
    ['GET', '/guardrails/ID/assignments/members', undefined],
    ['POST', '/guardrails/ID/assignments/keys', { key_hashes: ['h'] }],
    ['POST', '/guardrails/ID/assignments/members', { member_user_ids: ['u'] }],
    ['POST', '/guardrails/ID/assignments/keys/remove', { key_hashes: ['h'] }],
    ['POST', '/guardrails/ID/assignments/members/remove', { member_user_ids: ['u'] }],
    ['GET', '/guardrails/assignments/keys', undefined],
    ['GET', '/guardrails/assignments/members', undefined],
  ] as const;

  test.each(all)('401, 403, 404, 500: %s %s', async (method, path, body) => {
    const { create, call, database } = await setUp();
    const { data } = await create();
    const url = path.replace('ID', String(data['id']));
    expect((await call(method, url, body, '')).status).toBe(401);
    expect((await call(method, url, body, 'ordinary')).status).toBe(403);
    if (path.includes('ID')) {
      expect((await call(method, url, body, 'foreign')).status).toBe(404);
      expect((await call(method, path.replace('ID', '%00'), body)).status).toBe(404);
    } else if (method === 'GET') {
      expect((await call(method, url, body, 'foreign')).body).toEqual({ data: [], total_count: 0 });
    }
    await database.queries.schema.dropTable('guardrail_key_assignments').execute();
    await database.queries.schema.dropTable('guardrail_member_assignments').execute();
    await database.queries.schema.dropTable('guardrails').execute();
    expect((await call(method, url, body)).status).toBe(500);
  });
});
