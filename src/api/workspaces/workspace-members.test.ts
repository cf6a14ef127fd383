import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { workspacesServer } from '../../../test/http/workspaces-server.ts';
import { heldTransaction } from '../../../test/ledger/held-transaction.ts';
import { describeStores } from '../../../test/ledger/store-variants.ts';
import { memberStore } from '../../storage/members.ts';

const NOW = '2026-11-21T10:00:00.000Z';
type Data = Record<string, unknown>;

describeStores('members of workspaces', ({ open }) => {
  const setUp = async () => workspacesServer(await open(), NOW);

  test('members get their role in the organization, and only created or updated memberships count', async () => {
    const { create, ask, addUser, home, database } = await setUp();
    const { data } = await create();
    const [admin, member] = [await addUser('admin'), await addUser('member')];
    const add = (...userIds: string[]) => ask('POST', '/workspaces/research/members/add', { user_ids: userIds });
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

  test('every member of the organization is in the default workspace and cannot be removed from it', async () => {
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
    const userIds = { user_ids: [member] };
    expect(await ask('POST', '/workspaces/default/members/add', userIds)).toMatchObject({
      added_count: 0,
      data: [{ user_id: member, role: 'member' }],
    });
    expect((await ask('POST', '/workspaces/default/members/remove', userIds)).status).toBe(400);
  });

  test('members are added all or none: 404 names the user who is not in the organization', async () => {
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
    for (const userIds of [[], over, [5], [''], undefined]) {
      expect((await ask('POST', '/workspaces/research/members/add', { user_ids: userIds })).status).toBe(400);
    }
  });

  test('an owner of active keys in a workspace cannot be removed from it, and others can', async () => {
    const { create, ask, addUser, addKey, database } = await setUp();
    const { data } = await create();
    const [owner, other] = [await addUser('member'), await addUser('member')];
    await ask('POST', '/workspaces/research/members/add', { user_ids: [owner, other] });
    const key = await addKey(data['id'], { creator_user_id: owner });
    const remove = (...userIds: string[]) => ask('POST', '/workspaces/research/members/remove', { user_ids: userIds });
    expect(await remove(other, owner)).toMatchObject({
      status: 400,
      message: 'user_ids[1] owns active API keys in this workspace',
    });
    expect(await remove(other, other)).toMatchObject({ status: 200, removed_count: 1 });
    expect(await remove(other)).toMatchObject({ removed_count: 0 });
    await database.queries.updateTable('api_keys').set({ disabled: true }).where('hash', '=', key.hash).execute();
    expect(await remove(owner)).toMatchObject({ removed_count: 1 });
  });

  test('400: a member whose key is enabled during the removal stays', async () => {
    const { create, ask, addUser, addKey, database } = await setUp();
    const { data } = await create();
    const owner = await addUser('member');
    await ask('POST', '/workspaces/research/members/add', { user_ids: [owner] });
    const { hash } = await addKey(data['id'], { creator_user_id: owner, disabled: true });
    const commit = await heldTransaction(database.queries, async (tx) => {
      await tx.updateTable('api_keys').set({ disabled: false }).where('hash', '=', hash).execute();
    });
    const removing = ask('POST', '/workspaces/research/members/remove', { user_ids: [owner] });
    await sleep(300);
    await commit();
    expect((await removing).status).toBe(400);
  });

  test('a user whose role changes during the addition has the new role in the workspace', async () => {
    const { create, ask, addUser, database, home } = await setUp();
    await create();
    const userId = await addUser('member');
    const commit = await heldTransaction(database.queries, async (tx) => {
      await memberStore(tx).setRole({ organization_id: home.organization_id, user_id: userId, role: 'admin' });
    });
    const adding = ask('POST', '/workspaces/research/members/add', { user_ids: [userId] });
    await sleep(300);
    await commit();
    expect(await adding).toMatchObject({ status: 200, data: [{ user_id: userId, role: 'admin' }] });
  });

  test('a member with an expired key can be removed', async () => {
    const { create, ask, addUser, addKey } = await setUp();
    const { data } = await create();
    const owner = await addUser('member');
    await ask('POST', '/workspaces/research/members/add', { user_ids: [owner] });
    await addKey(data['id'], { creator_user_id: owner, expires_at: '2026-11-21T09:59:59.999Z' });
    const removed = await ask('POST', '/workspaces/research/members/remove', { user_ids: [owner] });
    expect(removed).toMatchObject({ status: 200, removed_count: 1 });
  });

  test('100 concurrent additions of overlapping users make no duplicates, and the counts are correct', async () => {
    const { create, ask, addUser } = await setUp();
    await create();
    const users = await Promise.all(Array.from({ length: 10 }, () => addUser('member')));
    const answers = await Promise.all(
      Array.from({ length: 100 }, (_, index) => {
        const part = users.slice(index % 8, (index % 8) + 3);
        const userIds = index % 2 === 0 ? part : part.reverse();
        return ask('POST', '/workspaces/research/members/add', { user_ids: userIds });
      }),
    );
    expect(answers.map(({ status }) => status).filter((status) => status !== 200)).toEqual([]);
    const added = answers.reduce((sum, answer) => sum + Number(answer['added_count']), 0);
    expect(added).toBe(10);
    expect(await ask('GET', '/workspaces/research/members')).toMatchObject({ total_count: 11 });
  });
});
