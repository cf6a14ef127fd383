import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { guardrailsServer } from '../../../test/filters/guardrails-server.ts';
import { heldTransaction } from '../../../test/ledger/held-transaction.ts';
import { describeStores } from '../../../test/ledger/store-variants.ts';
import { auditStore } from '../../storage/audit.ts';
import { assignmentStore, guardrailStore } from '../../storage/guardrails.ts';

const NOW = '2026-11-21T10:00:00.000Z';
type Data = Record<string, unknown>;

describeStores('assignments of guardrails', ({ open }) => {
  const setUp = async () => guardrailsServer(await open(), NOW);

  test('a key has at most one guardrail: assigning another moves it, with counts and audit entries', async () => {
    const { create, call, addKey, home, database } = await setUp();
    const [one, two] = [(await create()).data['id'], (await create()).data['id']];
    const keys = [await addKey(), await addKey()];
    const keyHashes = keys.map(({ hash }) => hash);
    const assign = (id: unknown, hashes: string[], what = '') =>
      call('POST', `/guardrails/${id}/assignments/keys${what}`, { key_hashes: hashes });
    expect((await assign(one, [...keyHashes, ...keyHashes])).body).toEqual({ assigned_count: 2 });
    expect((await assign(one, keyHashes)).body).toEqual({ assigned_count: 0 });
    expect((await assign(two, keyHashes.slice(0, 1))).body).toEqual({ assigned_count: 1 });
    expect((await call('GET', `/guardrails/${two}/assignments/keys`)).body).toEqual({
      total_count: 1,
      data: [
        {
          id: expect.stringMatching(/^[0-9a-f-]{36}$/),
          guardrail_id: two,
          key_hash: keyHashes[0],
          key_name: 'a key',
          key_label: keys[0]?.label,
          assigned_by: home.owner_user_id,
          created_at: NOW,
        },
      ],
    });
    const listed = (await call('GET', '/guardrails/assignments/keys')).body;
    expect(listed).toMatchObject({ total_count: 2, data: [{ guardrail_id: one }, { guardrail_id: two }] });
    expect((await assign(one, keyHashes, '/remove')).body).toEqual({ unassigned_count: 1 });
    expect((await call('GET', '/guardrails/assignments/keys')).body).toMatchObject({ total_count: 1 });
    const { data } = await auditStore(database.queries).listBy(
      { organization_id: home.organization_id, resource_type: 'guardrail_assignment' },
      { offset: 0, limit: 100 },
    );
    expect(data.map(({ action }) => action)).toEqual(['unassign', 'assign', 'unassign', 'assign', 'assign']);
  });

  test('a member also has at most one guardrail: assigning another moves it', async () => {
    const { create, call, home } = await setUp();
    const [one, two] = [(await create()).data['id'], (await create()).data['id']];
    const userId = home.owner_user_id;
    const assign = (id: unknown, what = '') =>
      call('POST', `/guardrails/${id}/assignments/members${what}`, { member_user_ids: [userId, userId] });
    expect((await assign(one)).body).toEqual({ assigned_count: 1 });
    expect((await assign(two)).body).toEqual({ assigned_count: 1 });
    expect((await call('GET', `/guardrails/${one}/assignments/members`)).body).toEqual({ data: [], total_count: 0 });
    const record = {
      id: expect.any(String),
      guardrail_id: two,
      organization_id: home.organization_id,
      user_id: userId,
      assigned_by: userId,
      created_at: NOW,
    };
    for (const path of [`/guardrails/${two}/assignments/members`, '/guardrails/assignments/members']) {
      expect((await call('GET', path)).body).toEqual({ data: [record], total_count: 1 });
    }
    expect((await assign(one, '/remove')).body).toEqual({ unassigned_count: 0 });
    expect((await assign(two, '/remove')).body).toEqual({ unassigned_count: 1 });
  });

  test('assigns all or none: 404 names the missing one, also for keys of other organizations and management keys', async () => {
    const { create, call, addKey, foreign } = await setUp();
    const { data } = await create();
    const key = await addKey();
    const strangers = [
      '0'.repeat(64),
      '\u0000',
      (await addKey({ is_management: true })).hash,
      (await addKey({ organization_id: foreign.organization_id })).hash,
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

  test('after 50 concurrent assignments of the same keys, each key has exactly one guardrail', async () => {
    const { create, call, addKey } = await setUp();
    const guardrails = await Promise.all(Array.from({ length: 10 }, () => create()));
    const keys = await Promise.all(Array.from({ length: 5 }, () => addKey()));
    const hashes = keys.map(({ hash }) => hash);
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, index) => {
        const keyHashes = index % 2 === 0 ? hashes : [...hashes].reverse();
        const id = guardrails[index % 10]?.data['id'];
        return call('POST', `/guardrails/${id}/assignments/keys`, { key_hashes: keyHashes });
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
  });

  test('DELETE removes the assignments, each with an audit entry, and the key can get another', async () => {
    const { create, call, addKey, home, database } = await setUp();
    const [one, two] = [(await create()).data['id'], (await create()).data['id']];
    const { hash } = await addKey();
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

  test('an assignment that is removed while its guardrail is deleted has one audit entry', async () => {
    const { create, call, addKey, database, home } = await setUp();
    const [one, two] = [String((await create()).data['id']), (await create()).data['id']];
    const body = { key_hashes: [(await addKey()).hash] };
    await call('POST', `/guardrails/${one}/assignments/keys`, body);
    const { organization_id } = home;
    const commit = await heldTransaction(database.queries, async (tx) => {
      await guardrailStore(tx).lock({ organization_id, id: one });
      await assignmentStore(tx).deleteAllKeys(one);
      await guardrailStore(tx).delete(one);
    });
    const moving = call('POST', `/guardrails/${two}/assignments/keys`, body);
    await sleep(300);
    await commit();
    expect((await moving).body).toEqual({ assigned_count: 1 });
    const filter = { organization_id, resource_type: 'guardrail_assignment' } as const;
    const { data } = await auditStore(database.queries).listBy(filter, { offset: 0, limit: 10 });
    expect(data.map(({ action }) => action)).toEqual(['assign', 'assign']);
  });
});
