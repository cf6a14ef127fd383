import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { workspacesServer } from '../../../test/http/workspaces-server.ts';
import { heldTransaction } from '../../../test/ledger/held-transaction.ts';
import { describeStores } from '../../../test/ledger/store-variants.ts';
import { auditStore } from '../../storage/audit.ts';
import { assignmentStore, guardrailStore } from '../../storage/guardrails.ts';
import { keyStore } from '../../storage/keys.ts';
import { assignGuardrailKeys } from '../guardrails/assign-guardrail-keys.ts';

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

describeStores('DELETE /workspaces/{id}', ({ open }) => {
  const setUp = async () => workspacesServer(await open(), NOW);

  test('400: the default workspace, and one with an active key, cannot be deleted', async () => {
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

  test('a workspace is deleted with everything in it, each with an audit entry', async () => {
    const { create, ask, addUser, addKey, database, home } = await setUp();
    const { data } = await create();
    const workspaceId = String(data['id']);
    const { organization_id } = home;
    const userId = await addUser('member');
    await ask('POST', '/workspaces/research/members/add', { user_ids: [userId] });
    await ask('PUT', '/workspaces/research/budgets/daily', { limit_usd: 5 });
    const { queries } = database;
    const filed = { id: 'x', seq: 1, version: 1, organization_id, workspace_id: workspaceId, created_at: NOW };
    await queries
      .insertInto('guardrails')
      .values({ ...filed, name: 'g', include_byok_in_budgets: false })
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
        is_byok_only: false,
      })
      .execute();
    const [inside, outside] = [await addKey(workspaceId, { disabled: true }), await addKey(home.default_workspace_id)];
    const assigned = { organization_id, guardrail_id: 'x', assigned_by: null, created_at: NOW };
    await assignmentStore(queries).insertKeys({ ...assigned, assignees: [inside.hash, outside.hash] });
    await assignmentStore(queries).insertMembers({ ...assigned, assignees: [userId] });
    await queries
      .insertInto('authorization_codes')
      .values({
        code_hash: 'c',
        organization_id,
        workspace_id: workspaceId,
        key_label: 'l',
        failures: 0,
        made_by: 'key',
        ...dates,
      })
      .execute();
    await queries.insertInto('usage_days').values(spent(inside.hash)).execute();

    expect((await ask('DELETE', '/workspaces/research')).status).toBe(200);
    const tables = ['workspace_members', 'workspace_budgets', 'guardrails', 'byok_credentials', 'authorization_codes'];
    for (const table of tables as 'guardrails'[]) {
      const rows = await queries.selectFrom(table).selectAll().where('workspace_id', '=', workspaceId).execute();
      expect([table, rows]).toEqual([table, []]);
    }
    const keys = await queries.selectFrom('api_keys').select('hash').execute();
    expect(keys).toEqual([{ hash: outside.hash }]);
    // The spending stays.
    expect(await queries.selectFrom('usage_days').selectAll().execute()).toHaveLength(1);
    const { data: events } = await auditStore(queries).listBy({ organization_id }, { offset: 0, limit: 10 });
    const entries = events.map(({ action, resource_type, after }) => `${action} ${resource_type} ${after}`);
    expect(entries).toEqual([
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

  test('deleting a workspace of many inactive keys needs as many statements as one of few, with ordered audit entries', async () => {
    const database = await open();
    let statements = 0;
    const queries = database.queries.withPlugin({
      transformQuery: ({ node }) => {
        statements += 1;
        return node;
      },
      transformResult: async ({ result }) => result,
    });
    const { create, ask, addKey, changes, home } = await workspacesServer({ ...database, queries }, NOW);
    const { organization_id } = home;
    const announced: string[] = [];
    changes.listen((change) => void (change !== 'everything' && change.topic === 'keys' && announced.push(change.id)));
    const needed: number[] = [];
    for (const count of [2, 40]) {
      const workspaceId = String((await create()).data['id']);
      const guardrail = { organization_id, workspace_id: home.default_workspace_id, name: 'g', created_at: NOW };
      const { id: guardrailId } = await guardrailStore(queries).insert({ ...guardrail, limit_nano: 5 });
      const hashes: string[] = [];
      for (let made = 0; made < count; made += 1) {
        const limit = { limit_nano: 1_000, disabled: made % 2 === 0, expires_at: NOW };
        hashes.push((await addKey(workspaceId, limit)).hash);
      }
      const assigned = { organization_id, guardrail_id: guardrailId, assigned_by: null, created_at: NOW };
      await assignmentStore(queries).insertKeys({ ...assigned, assignees: hashes });
      announced.length = 0;
      statements = 0;
      expect((await ask('DELETE', '/workspaces/research')).status).toBe(200);
      needed.push(statements);
      expect(announced).toEqual(hashes.sort());
      // Before those of its one member and of itself.
      const page = { offset: 2, limit: 2 * count };
      const { data: events } = await auditStore(queries).listBy({ organization_id }, page);
      const entries = events.reverse().map(({ resource_type, resource_id, before }) => {
        return resource_type === 'guardrail_assignment' ? before : { [resource_type]: resource_id };
      });
      expect(entries).toEqual(
        hashes.flatMap((hash) => [{ guardrail_id: guardrailId, key_hash: hash }, { api_key: hash }]),
      );
      const limits = queries.selectFrom('ledger_budgets').select('id').where('limit_nano', 'is not', null);
      expect(await limits.execute()).toEqual([]);
    }
    expect(needed[1]).toBe(needed[0]);
  });

  test('if a key is created while its workspace is deleted, one of the two fails, and no key is left without a workspace', async () => {
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
  });

  test('10 concurrent deletions: one deletes, the others get 404, and there is one audit entry', async () => {
    const { create, ask, database, home } = await setUp();
    await create();
    const answers = await Promise.all(Array.from({ length: 10 }, () => ask('DELETE', '/workspaces/research')));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array.from({ length: 9 }, () => 404)]);
    const filter = { organization_id: home.organization_id, resource_type: 'workspace' } as const;
    const { data } = await auditStore(database.queries).listBy(filter, { offset: 0, limit: 10 });
    expect(data.map(({ action }) => action)).toEqual(['delete', 'create']);
  });

  // An exchange of a code creates a key without a lock of the workspace; the reference in the database locks it.
  test('a workspace that gets a key while it is being deleted stays', async () => {
    const { create, ask, addKey, database } = await setUp();
    const { data } = await create();
    const commit = await heldTransaction(database.queries, async (tx) => {
      await addKey(data['id'], {}, tx);
    });
    const deleting = ask('DELETE', '/workspaces/research');
    // On PostgreSQL it now waits for the reference, on SQLite for the one writer.
    await sleep(300);
    await commit();
    expect(await deleting).toMatchObject({ status: 400, message: expect.stringMatching(/1 active API key/) });
    expect((await ask('GET', '/workspaces/research')).status).toBe(200);
  });

  test('a workspace with a key that is enabled during the deletion stays', async () => {
    const { create, ask, addKey, database } = await setUp();
    const { data } = await create();
    const { hash } = await addKey(data['id'], { disabled: true });
    const commit = await heldTransaction(database.queries, async (tx) => {
      await tx.updateTable('api_keys').set({ disabled: false }).where('hash', '=', hash).execute();
    });
    const deleting = ask('DELETE', '/workspaces/research');
    await sleep(300);
    await commit();
    expect((await deleting).status).toBe(400);
    expect(await keyStore(database.queries).findByHash(hash)).toMatchObject({ disabled: false });
  });

  test('a resource that is removed during the deletion of its workspace has one audit entry', async () => {
    const { create, ask, addKey, database, home } = await setUp();
    const { organization_id, default_workspace_id } = home;
    const workspaceId = String((await create()).data['id']);
    const { hash } = await addKey(default_workspace_id);
    const { queries } = database;
    const guardrail = { organization_id, workspace_id: workspaceId, name: 'g', created_at: NOW };
    const { id: guardrailId } = await guardrailStore(queries).insert(guardrail);
    const assigned = {
      organization_id,
      guardrail_id: guardrailId,
      assignees: [hash],
      assigned_by: null,
      created_at: NOW,
    };
    const ids = await assignmentStore(queries).insertKeys(assigned);
    // The key gets another guardrail: its transaction writes the removed assignment to the audit.
    const commit = await heldTransaction(queries, async (tx) => {
      await assignmentStore(tx).lockKeys(organization_id, [hash]);
      await assignmentStore(tx).deleteKeys(ids);
    });
    const deleting = ask('DELETE', '/workspaces/research');
    await sleep(300);
    await commit();
    expect((await deleting).status).toBe(200);
    const filter = { organization_id, resource_type: 'guardrail_assignment' } as const;
    expect((await auditStore(queries).listBy(filter, { offset: 0, limit: 10 })).data).toEqual([]);
  });

  test('a workspace is deleted while its keys are assigned concurrently, in any order', async () => {
    const { create, ask, addKey, database, home, server, change } = await setUp();
    const { organization_id, default_workspace_id } = home;
    assignGuardrailKeys(server, { change });
    const filed = { organization_id, workspace_id: default_workspace_id, name: 'g', created_at: NOW };
    const guardrails: { id: string }[] = [];
    for (let count = 0; count < 3; count += 1) guardrails.push(await guardrailStore(database.queries).insert(filed));
    const workspaceId = (await create()).data['id'];
    const keyHashes: string[] = [];
    for (let count = 0; count < 20; count += 1) {
      keyHashes.push((await addKey(workspaceId, { disabled: true })).hash);
    }
    const assigning = Array.from({ length: 6 }, async (_, index) => {
      for (let turn = index; ; turn += 1) {
        const { status } = await ask('POST', `/guardrails/${guardrails[turn % 3]?.id}/assignments/keys`, {
          key_hashes: keyHashes.slice(turn % 7),
        });
        if (status !== 200) return status;
      }
    });
    await sleep(300);
    expect((await ask('DELETE', '/workspaces/research')).status).toBe(200);
    expect(await Promise.all(assigning)).toEqual(Array.from({ length: 6 }, () => 404));
  });

  test('a workspace is deleted while its guardrails are assigned concurrently', async () => {
    const { create, ask, addKey, database, home, server, change } = await setUp();
    const { organization_id, default_workspace_id } = home;
    assignGuardrailKeys(server, { change });
    const keyHashes = (await Promise.all([1, 2, 3].map(() => addKey(default_workspace_id)))).map(({ hash }) => hash);
    for (let round = 0; round < 4; round += 1) {
      const workspaceId = String((await create()).data['id']);
      const made = { organization_id, workspace_id: workspaceId, name: 'g', created_at: NOW };
      const guardrails: { id: string }[] = [];
      for (let count = 0; count < 3; count += 1) guardrails.push(await guardrailStore(database.queries).insert(made));
      const assigning = Array.from({ length: 6 }, async (_, index) => {
        for (let turn = index; ; turn += 1) {
          const { status } = await ask('POST', `/guardrails/${guardrails[turn % 3]?.id}/assignments/keys`, {
            key_hashes: keyHashes.slice(turn % 2),
          });
          if (status !== 200) return status;
        }
      });
      await sleep(100);
      expect((await ask('DELETE', '/workspaces/research')).status).toBe(200);
      expect(await Promise.all(assigning)).toEqual(Array.from({ length: 6 }, () => 404));
    }
    const entries = await database.queries
      .selectFrom('audit_events')
      .select('resource_id')
      .where('action', '=', 'unassign')
      .execute();
    expect(new Set(entries.map(({ resource_id }) => resource_id)).size).toBe(entries.length);
  });
});
