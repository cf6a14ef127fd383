import { expect, test } from 'vitest';
import { managementServer } from '../../../test/http/management-server.ts';
import { describeStores } from '../../../test/ledger/store-variants.ts';
import { memberStore } from '../../storage/members.ts';
import { listOrganizationMembers } from './list-organization-members.ts';

const NOW = '2026-11-21T10:00:00.000Z';

describeStores('GET /organization/members', ({ open }) => {
  async function setUp() {
    const database = await open();
    const made = await managementServer(database, NOW);
    listOrganizationMembers(made.server, { members: memberStore(database.queries) });
    return { ...made, database };
  }

  test('200: the members in the order in which they joined, in pages, and not those of another organization', async () => {
    const { call, database, home, foreign } = await setUp();
    for (const [index, role] of ['member', 'admin'].entries()) {
      const names = { first_name: 'Ada', last_name: 'L.', issuer: null, subject: null };
      const user = { id: `u${index}`, name: 'Ada L.', email: `u${index}@example.com`, created_at: NOW, ...names };
      await database.queries.insertInto('users').values(user).execute();
      const member = { organization_id: home.organization_id, user_id: user.id, role, created_at: NOW };
      await database.queries
        .insertInto('organization_members')
        .values({ id: `m${index}`, seq: 10 - index, ...member })
        .execute();
    }
    const owner = { id: home.owner_user_id, email: '', first_name: null, last_name: null, role: 'org:admin' };
    const named = { first_name: 'Ada', last_name: 'L.' };
    expect((await call('GET', '/organization/members')).body).toEqual({
      total_count: 3,
      data: [
        owner,
        { id: 'u1', email: 'u1@example.com', role: 'org:admin', ...named },
        { id: 'u0', email: 'u0@example.com', role: 'org:member', ...named },
      ],
    });
    expect((await call('GET', '/organization/members?offset=1&limit=1')).body).toMatchObject({
      total_count: 3,
      data: [{ id: 'u1' }],
    });
    expect((await call('GET', '/organization/members', undefined, 'foreign')).body).toMatchObject({
      total_count: 1,
      data: [{ id: foreign.owner_user_id }],
    });
  });

  test('400, 401, 403, 500', async () => {
    const { call, database } = await setUp();
    expect((await call('GET', '/organization/members?limit=101')).status).toBe(400);
    expect((await call('GET', '/organization/members', undefined, '')).status).toBe(401);
    expect((await call('GET', '/organization/members', undefined, 'ordinary')).status).toBe(403);
    await database.queries.schema.alterTable('organization_members').renameTo('gone').execute();
    expect((await call('GET', '/organization/members')).status).toBe(500);
  });
});
