import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { managementServer } from '../../../test/management-server.ts';
import { describeStores } from '../../../test/store-variants.ts';
import { createSecret } from '../../accounts/key.ts';
import { createRateLimit } from '../../http/rate-limit.ts';
import { auditStore } from '../../storage/audit.ts';
import { assignmentStore, guardrailStore } from '../../storage/guardrails.ts';
import { keyStore } from '../../storage/keys.ts';
import { memberStore } from '../../storage/members.ts';
import { nextNumber } from '../../storage/sequence.ts';
import { workspaceStore } from '../../storage/workspaces.ts';
import { assignGuardrailKeys } from '../guardrails/assign-guardrail-keys.ts';
import { createKey } from '../keys/create-key.ts';
import { addWorkspaceMembers } from './add-workspace-members.ts';
import { createWorkspace } from './create-workspace.ts';
import { deleteWorkspace } from './delete-workspace.ts';
import { deleteWorkspaceBudget } from './delete-workspace-budget.ts';
import { getWorkspace } from './get-workspace.ts';
import { getWorkspaceBudget } from './get-workspace-budget.ts';
import { listWorkspaceBudgets } from './list-workspace-budgets.ts';
import { listWorkspaceMembers } from './list-workspace-members.ts';
import { listWorkspaces } from './list-workspaces.ts';
import { putWorkspaceBudget } from './put-workspace-budget.ts';
import { removeWorkspaceMembers } from './remove-workspace-members.ts';
import { updateWorkspace } from './update-workspace.ts';

const NOW = '2026-11-21T10:00:00.000Z';
const dates = { created_at: NOW, expires_at: NOW };
const spent = (hash: string) => ({
  scope: 'key',
  scope_id: hash,
  day: '2026-11-21',
  usage_nano: 5,
  byok_usage_nano: 0,
  requests: 1,
});
type Data = Record<string, unknown>;

describeStores('workspaces', ({ open }) => {
  async function setUp(limitManagement?: (caller: string) => void) {
    const database = await open();
    const made = await managementServer(database, NOW, limitManagement);
    const shared = {
      change: made.change,
      workspaces: workspaceStore(database.queries),
      members: memberStore(database.queries),
    };
    const operations = [
      addWorkspaceMembers,
      createKey,
      createWorkspace,
      deleteWorkspace,
      deleteWorkspaceBudget,
      getWorkspace,
      getWorkspaceBudget,
      listWorkspaceBudgets,
      listWorkspaceMembers,
      listWorkspaces,
      putWorkspaceBudget,
      removeWorkspaceMembers,
      updateWorkspace,
    ];
    for (const add of operations) add(made.server, shared);
    const ask = async (method: Parameters<typeof made.call>[0], url: string, body?: unknown) => {
      const { status, body: answer } = await made.call(method, url, body);
      const { data, error, ...rest } = answer as unknown as { data: Data; error: { message: string } } & Data;
      return { status, data, message: error?.message, ...(rest as Data) } as { status: number; data: Data } & Data;
    };
    const create = (over: object = {}) => ask('POST', '/workspaces', { name: 'Research', slug: 'research', ...over });
    const addUser = async (role: 'admin' | 'member', organization_id = made.home.organization_id) => {
      const user = { first_name: null, last_name: null, issuer: null, subject: null, email: null };
      const id = randomUUID();
      await database.queries
        .insertInto('users')
        .values({ id, name: 'u', created_at: NOW, ...user })
        .execute();
      const seq = await nextNumber(database.queries, 'organization_members');
      const member = { id: randomUUID(), organization_id, user_id: id, role, created_at: NOW, seq };
      await database.queries.insertInto('organization_members').values(member).execute();
      return id;
    };
    const addKey = async (workspace_id: unknown, over: object = {}, queries = database.queries) => {
      const { hash, label } = createSecret();
      return keyStore(queries).insert({
        hash,
        label,
        organization_id: made.home.organization_id,
        workspace_id: String(workspace_id),
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
    };
    return { ...made, database, ask, create, addUser, addKey };
  }

  test('201: name and slug are enough; the record is complete', async () => {
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
    });
  });

  test('201: every field is kept; logged keys once, the rate to a ten-thousandth', async () => {
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
    // What was logged stays so when the key is gone, and the record can be sent back as it was read.
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
    ['a taken slug', { slug: 'default' }, /^slug default is taken/],
    ['a long description', { description: 'd'.repeat(501) }, /^description must have at most 500/],
    ['NUL', { name: 'a\u0000' }, /^name must be text/],
    ['an unknown sort', { default_provider_sort: 'speed' }, /^default_provider_sort must be one of/],
    ['a rate of nothing', { io_logging_sampling_rate: 0 }, /^io_logging_sampling_rate must be at least 0.0001/],
    ['a rate above all', { io_logging_sampling_rate: 1.1 }, /^io_logging_sampling_rate must be at most 1/],
    ['an unknown key', { io_logging_api_key_ids: [12345] }, /^io_logging_api_key_ids\[0\] is not the id/],
    ['half a key', { io_logging_api_key_ids: [1.5] }, /^io_logging_api_key_ids\[0\] must be an integer/],
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

  test("400: logging the requests of a management key, which makes none, or of another organization's key", async () => {
    const { create, addKey, home, foreign } = await setUp();
    const management = await addKey(home.default_workspace_id, { is_management: true });
    const { organization_id, default_workspace_id } = foreign;
    const strange = await addKey(default_workspace_id, { organization_id });
    for (const { id } of [management, strange]) {
      expect((await create({ io_logging_api_key_ids: [id] })).status).toBe(400);
    }
  });

  test('PATCH changes what it names, by id or slug; a slug that becomes free can be taken', async () => {
    const { create, ask } = await setUp();
    const { data } = await create();
    expect((await ask('PATCH', '/workspaces/research', {})).data).toEqual({ ...data, updated_at: NOW });
    const moved = await ask('PATCH', `/workspaces/${data['id']}`, { slug: 'lab', description: 'd' });
    expect(moved.data).toEqual({ ...data, slug: 'lab', description: 'd', updated_at: NOW });
    expect((await ask('GET', '/workspaces/research')).status).toBe(404);
    expect((await create()).status).toBe(201);
    expect((await ask('PATCH', '/workspaces/lab', { description: null })).data).toMatchObject({ description: null });
  });

  test('100 creations of one slug at once: one workspace, and a clear refusal for the others', async () => {
    const { create } = await setUp();
    const answers = await Promise.all(Array.from({ length: 100 }, () => create()));
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(1);
    expect(answers.filter(({ status }) => status === 400)).toHaveLength(99);
    expect(answers.find(({ status }) => status === 400)?.message).toMatch(/^slug research is taken/);
  }, 60_000);

  test('changes of different fields at once all survive; one that has not seen the last is refused', async () => {
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

  test('GET /workspaces: in pages, the default one first', async () => {
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

  test('the default workspace cannot be deleted, nor one with a key that opens the door', async () => {
    const { create, ask, addKey, database, home } = await setUp();
    expect(await ask('DELETE', '/workspaces/default')).toMatchObject({
      status: 400,
      message: 'The default workspace cannot be deleted',
    });
    const { data } = await create();
    const key = await addKey(data['id']);
    await addKey(data['id'], { expires_at: '2026-11-21T09:59:59.999Z' });
    expect(await ask('DELETE', '/workspaces/research')).toMatchObject({
      status: 400,
      message: expect.stringMatching(/^The workspace has 1 active API key/),
    });
    await database.queries.updateTable('api_keys').set({ disabled: true }).where('hash', '=', key.hash).execute();
    expect(await ask('DELETE', '/workspaces/research')).toMatchObject({ status: 200, deleted: true });
    expect(await database.queries.selectFrom('api_keys').selectAll().execute()).toEqual([]);
    const { data: events } = await auditStore(database.queries).listBy(
      { organization_id: home.organization_id },
      { offset: 0, limit: 4 },
    );
    expect(events.map(({ action, resource_type }) => `${action} ${resource_type}`)).toEqual([
      'delete workspace',
      'delete workspace_member',
      'delete api_key',
      'delete api_key',
    ]);
    expect((await ask('GET', '/workspaces/research')).status).toBe(404);
    expect((await create()).status).toBe(201);
  });

  test('a workspace goes with all that is filed under it, each thing told to the audit', async () => {
    const { create, ask, addUser, addKey, database, home } = await setUp();
    const { data } = await create();
    const workspace_id = String(data['id']);
    const { organization_id } = home;
    const user_id = await addUser('member');
    await ask('POST', '/workspaces/research/members/add', { user_ids: [user_id] });
    await ask('PUT', '/workspaces/research/budgets/daily', { limit_usd: 5 });
    const { queries } = database;
    const filed = { id: 'x', seq: 1, version: 1, organization_id, workspace_id, created_at: NOW };
    await queries
      .insertInto('guardrails')
      .values({ ...filed, name: 'g' })
      .execute();
    await queries
      .insertInto('byok_credentials')
      .values({
        ...filed,
        provider: 'p',
        label: 'l',
        sealed: 's',
        disabled: false,
        is_fallback: false,
        allow_shared_fallback: false,
        sort_order: 0,
      })
      .execute();
    const [inside, outside] = [await addKey(workspace_id, { disabled: true }), await addKey(home.default_workspace_id)];
    const assigned = { organization_id, guardrail_id: 'x', assigned_by: null, created_at: NOW };
    await assignmentStore(queries).insertKeys({ ...assigned, assignees: [inside.hash, outside.hash] });
    await assignmentStore(queries).insertMembers({ ...assigned, assignees: [user_id] });
    await queries
      .insertInto('authorization_codes')
      .values({ code_hash: 'c', organization_id, workspace_id, key_label: 'l', failures: 0, ...dates })
      .execute();
    await queries.insertInto('usage_days').values(spent(inside.hash)).execute();

    expect((await ask('DELETE', '/workspaces/research')).status).toBe(200);
    const tables = ['workspace_members', 'workspace_budgets', 'guardrails', 'byok_credentials', 'authorization_codes'];
    for (const table of tables as 'guardrails'[]) {
      const rows = await queries.selectFrom(table).selectAll().where('workspace_id', '=', workspace_id).execute();
      expect([table, rows]).toEqual([table, []]);
    }
    const keys = await queries.selectFrom('api_keys').select('hash').execute();
    expect(keys).toEqual([{ hash: outside.hash }]);
    // What was spent stays.
    expect(await queries.selectFrom('usage_days').selectAll().execute()).toHaveLength(1);
    const { data: events } = await auditStore(queries).listBy({ organization_id }, { offset: 0, limit: 10 });
    const told = events.map(({ action, resource_type, after }) => `${action} ${resource_type} ${after}`);
    expect(told).toEqual([
      'delete workspace null',
      'delete workspace_member null',
      'delete workspace_member null',
      'delete workspace_budget null',
      'delete byok_credential null',
      'delete guardrail null',
      'unassign guardrail_assignment null',
      'unassign guardrail_assignment null',
      'delete api_key null',
      'unassign guardrail_assignment null',
    ]);
    expect(JSON.stringify(events)).not.toContain('sealed');
  });

  test('a key made while its workspace is deleted: one of the two wins, and no key is left without a workspace', async () => {
    const { create, ask, database } = await setUp();
    for (let round = 0; round < 10; round += 1) {
      const { data } = await create({ slug: `w${round}` });
      const [made, deleted] = await Promise.all([
        ask('POST', '/keys', { name: 'k', workspace_id: data['id'] }),
        ask('DELETE', `/workspaces/w${round}`),
      ]);
      expect([`${made.status} ${deleted.status}`]).toEqual([expect.stringMatching(/^(201 400|400 200)$/)]);
    }
    const orphans = await database.queries
      .selectFrom('api_keys')
      .leftJoin('workspaces', 'workspaces.id', 'api_keys.workspace_id')
      .where('workspaces.id', 'is', null)
      .select('hash')
      .execute();
    expect(orphans).toEqual([]);
  }, 60_000);

  test('10 deletions at once: one deletes, the others find nothing, and the audit is told once', async () => {
    const { create, ask, database, home } = await setUp();
    await create();
    const answers = await Promise.all(Array.from({ length: 10 }, () => ask('DELETE', '/workspaces/research')));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array.from({ length: 9 }, () => 404)]);
    const filter = { organization_id: home.organization_id, resource_type: 'workspace' } as const;
    const { data } = await auditStore(database.queries).listBy(filter, { offset: 0, limit: 10 });
    expect(data.map(({ action }) => action)).toEqual(['delete', 'create']);
  });

  // An exchange of a code makes a key without holding the workspace; the store's own reference holds it.
  test('a workspace that gets a key while it is being deleted stays', async () => {
    const { create, ask, addKey, database } = await setUp();
    const { data } = await create();
    const { promise: mayCommit, resolve: commit } = Promise.withResolvers<void>();
    const { promise: inserted, resolve: insert } = Promise.withResolvers<void>();
    const making = database.queries.transaction().execute(async (tx) => {
      await addKey(data['id'], {}, tx);
      insert();
      await mayCommit;
    });
    await inserted;
    const deleting = ask('DELETE', '/workspaces/research');
    // On PostgreSQL it now waits for the reference, on SQLite for the one writer.
    await sleep(300);
    commit();
    await making;
    expect(await deleting).toMatchObject({ status: 400, message: expect.stringMatching(/1 active API key/) });
    expect((await ask('GET', '/workspaces/research')).status).toBe(200);
  });

  test('a key that is enabled while its workspace is being deleted keeps it', async () => {
    const { create, ask, addKey, database } = await setUp();
    const { data } = await create();
    const { hash } = await addKey(data['id'], { disabled: true });
    const { promise: mayCommit, resolve: commit } = Promise.withResolvers<void>();
    const { promise: changed, resolve: change } = Promise.withResolvers<void>();
    const enabling = database.queries.transaction().execute(async (tx) => {
      await tx.updateTable('api_keys').set({ disabled: false }).where('hash', '=', hash).execute();
      change();
      await mayCommit;
    });
    await changed;
    const deleting = ask('DELETE', '/workspaces/research');
    await sleep(300);
    commit();
    await enabling;
    expect((await deleting).status).toBe(400);
    expect(await keyStore(database.queries).findByHash(hash)).toMatchObject({ disabled: false });
  });

  test('what leaves a workspace while that is being deleted is told to the audit by one of the two alone', async () => {
    const { create, ask, addKey, database, home } = await setUp();
    const { organization_id, default_workspace_id } = home;
    const workspace_id = String((await create()).data['id']);
    const { hash } = await addKey(default_workspace_id);
    const { queries } = database;
    const guardrail = { organization_id, workspace_id, name: 'g', created_at: NOW };
    const { id: guardrail_id } = await guardrailStore(queries).insert(guardrail);
    const assigned = { organization_id, guardrail_id, assignees: [hash], assigned_by: null, created_at: NOW };
    const ids = await assignmentStore(queries).insertKeys(assigned);
    const { promise: mayCommit, resolve: commit } = Promise.withResolvers<void>();
    const { promise: changed, resolve: change } = Promise.withResolvers<void>();
    // The key gets another guardrail: its transaction tells the audit what it left.
    const moving = queries.transaction().execute(async (tx) => {
      await assignmentStore(tx).lockKeys(organization_id, [hash]);
      await assignmentStore(tx).deleteKeys(ids);
      change();
      await mayCommit;
    });
    await changed;
    const deleting = ask('DELETE', '/workspaces/research');
    await sleep(300);
    commit();
    await moving;
    expect((await deleting).status).toBe(200);
    const filter = { organization_id, resource_type: 'guardrail_assignment' } as const;
    expect((await auditStore(queries).listBy(filter, { offset: 0, limit: 10 })).data).toEqual([]);
  });

  test('a workspace is deleted though its guardrails are being assigned all the time', async () => {
    const { create, ask, addKey, database, home, server, change } = await setUp();
    const { organization_id, default_workspace_id } = home;
    assignGuardrailKeys(server, { change });
    const key_hashes = (await Promise.all([1, 2, 3].map(() => addKey(default_workspace_id)))).map(({ hash }) => hash);
    for (let round = 0; round < 4; round += 1) {
      const workspace_id = String((await create()).data['id']);
      const made = { organization_id, workspace_id, name: 'g', created_at: NOW };
      const guardrails: { id: string }[] = [];
      for (let count = 0; count < 3; count += 1) guardrails.push(await guardrailStore(database.queries).insert(made));
      const assigning = Array.from({ length: 6 }, async (_, index) => {
        for (let turn = index; ; turn += 1) {
          const { status } = await ask('POST', `/guardrails/${guardrails[turn % 3]?.id}/assignments/keys`, {
            key_hashes: key_hashes.slice(turn % 2),
          });
          if (status !== 200) return status;
        }
      });
      await sleep(100);
      expect((await ask('DELETE', '/workspaces/research')).status).toBe(200);
      expect(await Promise.all(assigning)).toEqual(Array.from({ length: 6 }, () => 404));
    }
    const told = await database.queries
      .selectFrom('audit_events')
      .select('resource_id')
      .where('action', '=', 'unassign')
      .execute();
    expect(new Set(told.map(({ resource_id }) => resource_id)).size).toBe(told.length);
  }, 60_000);

  test('members get the role of the organization; only memberships created or updated count', async () => {
    const { create, ask, addUser, home, database } = await setUp();
    const { data } = await create();
    const [admin, member] = [await addUser('admin'), await addUser('member')];
    const add = (...user_ids: string[]) => ask('POST', '/workspaces/research/members/add', { user_ids });
    const added = await add(member, admin, member);
    expect(added).toMatchObject({ status: 200, added_count: 2 });
    const membership = { workspace_id: data['id'], created_at: NOW, id: expect.stringMatching(/^[0-9a-f-]{36}$/) };
    expect(added.data).toEqual([
      { ...membership, user_id: member, role: 'member' },
      { ...membership, user_id: admin, role: 'admin' },
    ]);
    expect(await add(admin, member)).toMatchObject({ added_count: 0, data: [{ role: 'admin' }, { role: 'member' }] });
    const roles = database.queries.updateTable('organization_members').set({ role: 'admin' });
    await roles.where('user_id', '=', member).execute();
    expect(await add(admin, member)).toMatchObject({ added_count: 1, data: [{ role: 'admin' }, { role: 'admin' }] });
    const listed = await ask('GET', '/workspaces/research/members');
    expect((listed.data as unknown as Data[]).map(({ user_id }) => user_id)).toEqual([
      home.owner_user_id,
      member,
      admin,
    ]);
    expect(listed['total_count']).toBe(3);
  });

  test('every member of the organization is in the default workspace, and stays there', async () => {
    const { ask, addUser, home } = await setUp();
    const member = await addUser('member');
    const listed = await ask('GET', '/workspaces/default/members');
    expect(listed).toMatchObject({
      total_count: 2,
      data: [
        { user_id: home.owner_user_id, role: 'admin', workspace_id: home.default_workspace_id },
        { user_id: member, role: 'member' },
      ],
    });
    const user_ids = { user_ids: [member] };
    expect(await ask('POST', '/workspaces/default/members/add', user_ids)).toMatchObject({
      added_count: 0,
      data: [{ user_id: member, role: 'member' }],
    });
    expect((await ask('POST', '/workspaces/default/members/remove', user_ids)).status).toBe(400);
  });

  test('members are taken all or none: 404 names the one who is not in the organization', async () => {
    const { create, ask, addUser, foreign } = await setUp();
    await create();
    const member = await addUser('member');
    for (const stranger of [foreign.owner_user_id, 'nobody', '\u0000']) {
      for (const what of ['add', 'remove']) {
        const body = { user_ids: [member, stranger] };
        expect(await ask('POST', `/workspaces/research/members/${what}`, body)).toMatchObject({
          status: 404,
          message: expect.stringMatching(/^user_ids\[1\] is not a member of this organization/),
        });
      }
    }
    expect(await ask('GET', '/workspaces/research/members')).toMatchObject({ total_count: 1 });
    const over = Array.from({ length: 101 }, () => member);
    for (const user_ids of [[], over, [5], [''], undefined]) {
      expect((await ask('POST', '/workspaces/research/members/add', { user_ids })).status).toBe(400);
    }
  });

  test('who owns active keys in a workspace cannot be removed from it; others can', async () => {
    const { create, ask, addUser, addKey, database } = await setUp();
    const { data } = await create();
    const [owner, other] = [await addUser('member'), await addUser('member')];
    await ask('POST', '/workspaces/research/members/add', { user_ids: [owner, other] });
    const key = await addKey(data['id'], { creator_user_id: owner });
    const remove = (...user_ids: string[]) => ask('POST', '/workspaces/research/members/remove', { user_ids });
    expect(await remove(other, owner)).toMatchObject({
      status: 400,
      message: 'user_ids[1] owns active API keys in this workspace',
    });
    expect(await remove(other, other)).toMatchObject({ status: 200, removed_count: 1 });
    expect(await remove(other)).toMatchObject({ removed_count: 0 });
    await database.queries.updateTable('api_keys').set({ disabled: true }).where('hash', '=', key.hash).execute();
    expect(await remove(owner)).toMatchObject({ removed_count: 1 });
  });

  test('who gets a key enabled while being removed from its workspace stays', async () => {
    const { create, ask, addUser, addKey, database } = await setUp();
    const { data } = await create();
    const owner = await addUser('member');
    await ask('POST', '/workspaces/research/members/add', { user_ids: [owner] });
    const { hash } = await addKey(data['id'], { creator_user_id: owner, disabled: true });
    const { promise: mayCommit, resolve: commit } = Promise.withResolvers<void>();
    const { promise: changed, resolve: change } = Promise.withResolvers<void>();
    const enabling = database.queries.transaction().execute(async (tx) => {
      await tx.updateTable('api_keys').set({ disabled: false }).where('hash', '=', hash).execute();
      change();
      await mayCommit;
    });
    await changed;
    const removing = ask('POST', '/workspaces/research/members/remove', { user_ids: [owner] });
    await sleep(300);
    commit();
    await enabling;
    expect((await removing).status).toBe(400);
  });

  test('who gets another role while being added has that one in the workspace', async () => {
    const { create, ask, addUser, database, home } = await setUp();
    await create();
    const user_id = await addUser('member');
    const { promise: mayCommit, resolve: commit } = Promise.withResolvers<void>();
    const { promise: changed, resolve: change } = Promise.withResolvers<void>();
    const raising = database.queries.transaction().execute(async (tx) => {
      await memberStore(tx).setRole({ organization_id: home.organization_id, user_id, role: 'admin' });
      change();
      await mayCommit;
    });
    await changed;
    const adding = ask('POST', '/workspaces/research/members/add', { user_ids: [user_id] });
    await sleep(300);
    commit();
    await raising;
    expect(await adding).toMatchObject({ status: 200, data: [{ user_id, role: 'admin' }] });
  });

  test('an expired key keeps nobody in a workspace', async () => {
    const { create, ask, addUser, addKey } = await setUp();
    const { data } = await create();
    const owner = await addUser('member');
    await ask('POST', '/workspaces/research/members/add', { user_ids: [owner] });
    await addKey(data['id'], { creator_user_id: owner, expires_at: '2026-11-21T09:59:59.999Z' });
    const removed = await ask('POST', '/workspaces/research/members/remove', { user_ids: [owner] });
    expect(removed).toMatchObject({ status: 200, removed_count: 1 });
  });

  test('every change is announced to all nodes; what changes nothing is not', async () => {
    const { create, ask, addUser, addKey, changes, database, home } = await setUp();
    const heard: string[] = [];
    changes.listen((change) => heard.push(change === 'everything' ? change : `${change.topic} ${change.id}`));
    const id = String((await create()).data['id']);
    const user_ids = [await addUser('member')];
    heard.length = 0;
    for (const [method, path, body] of [
      ['PATCH', '', { name: 'n' }],
      ['POST', '/members/add', { user_ids }],
      ['POST', '/members/remove', { user_ids }],
      ['PUT', '/budgets/daily', { limit_usd: 1 }],
      ['DELETE', '/budgets/daily', undefined],
    ] as const) {
      expect([path, (await ask(method, `/workspaces/research${path}`, body)).status]).toEqual([path, 200]);
      expect([path, heard.splice(0)]).toEqual([path, [`policy ${id}`]]);
    }
    await ask('POST', '/workspaces/research/members/remove', { user_ids });
    await ask('DELETE', '/workspaces/research/budgets/daily');
    await ask('PATCH', '/workspaces/research', { slug: 'default' });
    expect(heard).toEqual([]);
    const { hash } = await addKey(id, { disabled: true });
    const { id: guardrail } = await guardrailStore(database.queries).insert({
      organization_id: home.organization_id,
      workspace_id: id,
      name: 'g',
      created_at: NOW,
    });
    await ask('DELETE', '/workspaces/research');
    expect(heard).toEqual([`keys ${hash}`, `policy ${guardrail}`, `policy ${id}`]);
  });

  test('100 additions at once of overlapping users: nobody is in twice, and the counts add up', async () => {
    const { create, ask, addUser } = await setUp();
    await create();
    const users = await Promise.all(Array.from({ length: 10 }, () => addUser('member')));
    const answers = await Promise.all(
      Array.from({ length: 100 }, (_, index) => {
        const part = users.slice(index % 8, (index % 8) + 3);
        const user_ids = index % 2 === 0 ? part : part.reverse();
        return ask('POST', '/workspaces/research/members/add', { user_ids });
      }),
    );
    expect(answers.map(({ status }) => status).filter((status) => status !== 200)).toEqual([]);
    const added = answers.reduce((sum, answer) => sum + Number(answer['added_count']), 0);
    expect(added).toBe(10);
    expect(await ask('GET', '/workspaces/research/members')).toMatchObject({ total_count: 11 });
  }, 60_000);

  test('budgets fall strictly as the interval narrows; a violation names both', async () => {
    const { create, ask } = await setUp();
    await create();
    const put = (interval: string, limit_usd: number) =>
      ask('PUT', `/workspaces/research/budgets/${interval}`, { limit_usd });
    const { status, data } = await put('monthly', 500);
    expect([status, data]).toEqual([
      200,
      {
        id: expect.stringMatching(/^[0-9a-f-]{36}$/),
        workspace_id: expect.any(String),
        limit_usd: 500,
        reset_interval: 'monthly',
        created_at: NOW,
        updated_at: null,
      },
    ]);
    expect(await put('daily', 500)).toMatchObject({
      status: 400,
      message: 'limit_usd: the daily budget ($500) must be less than the monthly budget ($500)',
    });
    expect(await put('lifetime', 400)).toMatchObject({
      status: 400,
      message: 'limit_usd: the lifetime budget ($400) must be more than the monthly budget ($500)',
    });
    expect((await put('daily', 50)).status).toBe(200);
    expect((await put('weekly', 50)).status).toBe(400);
    expect((await put('weekly', 100)).status).toBe(200);
    expect((await put('lifetime', 5000)).data).toMatchObject({ reset_interval: null });
    expect((await put('monthly', 600)).data).toMatchObject({ id: data['id'], limit_usd: 600, updated_at: NOW });
    const listed = await ask('GET', '/workspaces/research/budgets');
    expect((listed.data as unknown as Data[]).map((budget) => budget['limit_usd'])).toEqual([5000, 600, 100, 50]);
    for (const limit_usd of [0, -1, 9_007_200, 1e-10, '5', null]) {
      expect((await ask('PUT', '/workspaces/research/budgets/daily', { limit_usd })).status).toBe(400);
    }
    expect((await put('yearly', 5)).status).toBe(400);
  });

  test('two budgets set at once that do not fit together: one of them is refused', async () => {
    const { create, ask } = await setUp();
    for (let round = 0; round < 10; round += 1) {
      await create({ slug: `w${round}` });
      const answers = await Promise.all([
        ask('PUT', `/workspaces/w${round}/budgets/monthly`, { limit_usd: 10 }),
        ask('PUT', `/workspaces/w${round}/budgets/daily`, { limit_usd: 20 }),
      ]);
      expect(answers.map(({ status }) => status).sort()).toEqual([200, 400]);
    }
  });

  test('whether own accounts count is told with every budget; deleting is idempotent', async () => {
    const { create, ask } = await setUp();
    await create();
    expect(await ask('GET', '/workspaces/research/budgets')).toMatchObject({
      data: [],
      include_byok_in_budgets: false,
    });
    const body = { limit_usd: 5, include_byok_in_budgets: true };
    expect(await ask('PUT', '/workspaces/research/budgets/daily', body)).toMatchObject({
      include_byok_in_budgets: true,
    });
    expect(await ask('PUT', '/workspaces/research/budgets/weekly', { limit_usd: 9 })).toMatchObject({
      include_byok_in_budgets: true,
    });
    expect(await ask('GET', '/workspaces/research/budgets/daily')).toMatchObject({
      data: { limit_usd: 5 },
      include_byok_in_budgets: true,
    });
    for (let times = 0; times < 2; times += 1) {
      expect(await ask('DELETE', '/workspaces/research/budgets/daily')).toMatchObject({ status: 200, deleted: true });
    }
    expect((await ask('GET', '/workspaces/research/budgets/daily')).status).toBe(404);
    expect((await ask('GET', '/workspaces/research/budgets/yearly')).status).toBe(400);
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

  test('429: whoever asks too much, in every operation', async () => {
    const { call } = await setUp(createRateLimit(1, () => 0));
    expect((await call('GET', '/workspaces')).status).toBe(200);
    for (const [method, path, body] of all) {
      const answer = await call(method, path.replace('ID', 'default'), body);
      expect([method, path, answer.status]).toEqual([method, path, 429]);
      expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0);
    }
  });
});
