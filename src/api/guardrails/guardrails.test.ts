import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { guardrailsServer } from '../../../test/filters/guardrails-server.ts';
import { heldTransaction } from '../../../test/ledger/held-transaction.ts';
import { describeStores } from '../../../test/ledger/store-variants.ts';
import { organizationStore } from '../../storage/organizations.ts';

const NOW = '2026-11-21T10:00:00.000Z';
type Data = Record<string, unknown>;

describeStores('guardrails', ({ open }) => {
  const setUp = async () => guardrailsServer(await open(), NOW);

  test('201: a name is enough, and the record is complete', async () => {
    const { create, home } = await setUp();
    const { status, data } = await create();
    expect(status).toBe(201);
    const zdr = ['vendor_a', 'vendor_b', 'vendor_c', 'anthropic', 'openai', 'google', 'other', 'xai'];
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
      include_byok_in_budgets: false,
      enforce_zdr: null,
      ...Object.fromEntries(zdr.map((vendor) => [`enforce_zdr_${vendor}`, null])),
      content_filter_builtins: null,
      content_filter_output: null,
      content_filter_reversible: null,
      content_filters: null,
    });
  });

  test('201: every field is stored, models as canonical slugs, providers as slugs, each once', async () => {
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
  test('every builtin accepts redact and block, and only prompt injection accepts flag', async () => {
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
    ['a limit above the exact range', { limit_usd: 9_007_200 }, /^limit_usd must be at most 9007199/],
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
      /^content_filter_builtins\[1\]\.slug contains email twice/,
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
      'two names of one setting with different values',
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

  test('400: patterns whose total length is above the bound', async () => {
    const { create } = await setUp();
    const filters = (count: number) =>
      Array.from({ length: count }, () => ({ pattern: `${'(?s)'.repeat(24_999)}a`, action: 'block' }));
    expect((await create({ content_filters: filters(2) })).status).toBe(201);
    expect(await create({ content_filters: filters(3) })).toMatchObject({
      status: 400,
      error: { message: expect.stringMatching(/^content_filters must have at most 200000 characters of patterns/) },
    });
  });

  test('a refused pattern has a machine-readable reason', async () => {
    const { create } = await setUp();
    const { error } = await create({ content_filters: [{ pattern: '(', action: 'block' }] });
    expect(error['metadata']).toEqual({ reason: 'invalid_regex_pattern' });
  });

  test('names and addresses are detected in requests only, and refused for guardrails on answers', async () => {
    const { create, patch } = await setUp();
    const email = { slug: 'email', action: 'redact' };
    for (const slug of ['person-name', 'address']) {
      const builtins = { content_filter_builtins: [email, { slug, action: 'redact' }] };
      const refused = await create({ ...builtins, content_filter_output: true });
      expect(refused.status).toBe(400);
      expect(refused.error['message']).toContain(`content_filter_builtins[1]: ${slug} applies to requests only`);
      const { data } = await create({ ...builtins, content_filter_output: false });
      expect((await patch(data['id'], { content_filter_output: true })).status).toBe(400);
      const other = await create({ content_filter_builtins: [email], content_filter_output: true });
      expect((await patch(other.data['id'], builtins)).status).toBe(400);
      expect((await patch(other.data['id'], { ...builtins, content_filter_output: null })).status).toBe(200);
    }
  });

  test('enforce_zdr is copied into every field that the request omits, also null', async () => {
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

  test('names that a guardrail already contains are accepted also if they no longer exist, and no others', async () => {
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
      error: { message: 'ignored_models[0] is not a model of this gateway' },
    });
  });

  test('PATCH changes the named fields, null removes filters and lists, and lists are replaced whole', async () => {
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

  test('filters may be an empty list, which the answer repeats', async () => {
    const { create, patch } = await setUp();
    const none = { content_filter_builtins: [], content_filters: [] };
    const made = await create({ content_filters: [{ pattern: 'x', action: 'block' }] });
    const changed = await patch(made.data['id'], none);
    expect([changed.status, changed.data]).toMatchObject([200, none]);
    expect((await create(none)).data).toMatchObject(none);
  });

  test('concurrent changes of different fields all succeed, and one with an outdated version is refused', async () => {
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

  test('GET /guardrails lists the default workspace by default, in stable pages', async () => {
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

  test('every change is announced to all nodes, and a request without a change is not', async () => {
    const { call, create, patch, addKey, changes, home } = await setUp();
    const announcements: string[] = [];
    changes.listen((change) => announcements.push(change === 'everything' ? change : `${change.topic} ${change.id}`));
    const announced = () => announcements.splice(0);
    const id = (await create()).data['id'];
    expect(announced()).toEqual([`policy ${id}`]);
    await patch(id, { limit_usd: 1 });
    expect(announced()).toEqual([`policy ${id}`]);
    const keys = { key_hashes: [(await addKey()).hash] };
    const members = { member_user_ids: [home.owner_user_id] };
    for (const [kind, body, assignee] of [
      ['keys', keys, `keys ${keys.key_hashes[0]}`],
      ['members', members, `policy ${home.owner_user_id}`],
    ] as const) {
      for (const path of [`${kind}`, `${kind}/remove`]) {
        await call('POST', `/guardrails/${id}/assignments/${path}`, body);
        const assigned = path === kind ? [assignee] : [];
        expect([path, announced()]).toEqual([path, [...assigned, `policy ${id}`]]);
        await call('POST', `/guardrails/${id}/assignments/${path}`, body);
        expect([path, announced()]).toEqual([path, []]);
      }
    }
    await patch(id, { allowed_models: ['nobody/none'] });
    expect(announced()).toEqual([]);
    await call('DELETE', `/guardrails/${id}`);
    expect(announced()).toEqual([`policy ${id}`]);
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
