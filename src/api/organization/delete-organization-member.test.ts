import { expect, test } from 'vitest';
import { managementServer } from '../../../test/http/management-server.ts';
import { describeStores } from '../../../test/ledger/store-variants.ts';
import { hashCode } from '../../accounts/authorization-code.ts';
import { ISSUER_CREDENTIAL } from '../../accounts/session.ts';
import { auditStore } from '../../storage/audit.ts';
import { authorizationCodeStore } from '../../storage/authorization-codes.ts';
import { byokStore } from '../../storage/byok.ts';
import { assignmentStore, guardrailStore } from '../../storage/guardrails.ts';
import { identityStore } from '../../storage/identities.ts';
import { keyStore } from '../../storage/keys.ts';
import { memberStore } from '../../storage/members.ts';
import { organizationStore } from '../../storage/organizations.ts';
import { sessionStore } from '../../storage/sessions.ts';
import { exchangeAuthorizationCode } from '../auth/exchange-authorization-code.ts';
import { createKey } from '../keys/create-key.ts';
import { probeKeyHash } from '../keys/keep-probe-key.ts';
import { deleteOrganizationMember } from './delete-organization-member.ts';

const NOW = '2026-11-21T10:00:00.000Z';
const LATER = '2026-11-21T11:00:00.000Z';

describeStores('DELETE /organization/members/{id}', ({ open }) => {
  async function setUp() {
    const database = await open();
    const { queries } = database;
    const made = await managementServer(database, NOW);
    deleteOrganizationMember(made.server, { change: made.change });
    createKey(made.server, { change: made.change });
    const { organization_id, default_workspace_id: workspaceId } = made.home;
    const add = (name: string, role: 'admin' | 'member' = 'member') =>
      queries
        .transaction()
        .execute((tx) =>
          identityStore(tx).insertMember(
            { name, email: `${name}@example.com`, first_name: null, last_name: null, issuer: null, subject: null },
            { organization_id, role, at: NOW },
          ),
        );
    const remove = (id: string, query = '', credential = 'management') =>
      made.call('DELETE', `/organization/members/${id}${query}`, undefined, credential);
    /** A code that a session of the user approved. */
    const addCode = (userId: string, code: string) =>
      authorizationCodeStore(queries).insert({
        ...{
          code_hash: hashCode(code),
          organization_id,
          workspace_id: workspaceId,
          user_id: userId,
          asker_key_hash: null,
          asker_secret_hash: null,
          app_id: null,
        },
        ...{ callback_url: null, code_challenge: null, code_challenge_method: null, key_label: 'l', limit_nano: null },
        ...{ limit_reset: null, key_expires_at: null, failures: 0, created_at: NOW, expires_at: LATER, used_at: null },
        made_by: 'session',
      });
    exchangeAuthorizationCode(made.server, {
      queries,
      change: made.change,
      limitExchanges: (_request, _reply, done) => done(),
      mayKeysMakeCodes: () => true,
    });
    const keys = async () =>
      (
        await queries.selectFrom('api_keys').select(['name', 'disabled', 'creator_user_id']).orderBy('id').execute()
      ).map(({ name, disabled, creator_user_id }) => [name, disabled, creator_user_id]);
    const isMember = async (userId: string) =>
      (await organizationStore(queries).findMember({ organization_id, user_id: userId })) !== undefined;
    return {
      ...made,
      database,
      queries,
      organization_id,
      workspace_id: workspaceId,
      add,
      addCode,
      remove,
      keys,
      isMember,
    };
  }

  test('200: sessions, codes, memberships and assignments are deleted, keys are disabled, and all is audited', async () => {
    const { add, addCode, remove, addKey, keys, isMember, queries, organization_id, workspace_id } = await setUp();
    const [ada, bob] = [await add('ada'), await add('bob')];
    await addKey({ name: 'one', creator_user_id: ada });
    await addKey({ name: 'management', creator_user_id: ada, is_management: true });
    await addKey({ name: 'off', creator_user_id: ada, disabled: true });
    await addKey({ name: 'probes', creator_user_id: ada, hash: probeKeyHash(organization_id) });
    await addKey({ name: 'of bob', creator_user_id: bob });
    for (const userId of [ada, bob]) {
      const session = { organization_id, user_id: userId, credential: ISSUER_CREDENTIAL, previous_hash: null };
      const times = { created_at: NOW, rotated_at: NOW, expires_at: LATER };
      await sessionStore(queries).insert({ id: `s ${userId}`, token_hash: userId, ...session, ...times });
      await memberStore(queries).insert({ workspace_id, user_id: userId, role: 'member', created_at: NOW });
      await addCode(userId, userId);
    }
    const shared = { organization_id, workspace_id, created_at: NOW };
    const { id: guardrailId } = await guardrailStore(queries).insert({ ...shared, name: 'G', limit_nano: 5 });
    const assigned = { organization_id, guardrail_id: guardrailId, assigned_by: null, created_at: NOW };
    await assignmentStore(queries).insertMembers({ ...assigned, assignees: [ada, bob] });
    await queries
      .insertInto('byok_credentials')
      .values({
        ...{ id: 'byok', seq: 1, version: 1, provider: 'p', label: 'l', sealed: 's', name: null, disabled: false },
        ...{
          is_fallback: false,
          allow_shared_fallback: true,
          is_byok_only: false,
          sort_order: 0,
          allowed_models: null,
        },
        ...{ allowed_api_key_hashes: null, allowed_user_ids: JSON.stringify([ada]), updated_at: null, ...shared },
      })
      .execute();

    const { status, body } = await remove(ada);
    expect([status, body]).toEqual([200, { deleted: true, keys_disabled: 2, keys_handed_over: 0, sessions_ended: 1 }]);
    expect([await isMember(ada), await isMember(bob)]).toEqual([false, true]);
    expect(await keys()).toEqual([
      ['one', true, ada],
      ['management', true, ada],
      ['off', true, ada],
      ['probes', false, ada],
      ['of bob', false, bob],
    ]);
    const left = async (table: 'sessions' | 'workspace_members' | 'authorization_codes') =>
      (await queries.selectFrom(table).select('user_id').execute()).map(({ user_id }) => user_id);
    expect(await left('sessions')).toEqual([bob]);
    expect(await left('authorization_codes')).toEqual([bob]);
    expect(await left('workspace_members')).not.toContain(ada);
    const members = await assignmentStore(queries).listMembers({ organization_id }, { offset: 0, limit: 9 });
    expect(members.data.map(({ user_id }) => user_id)).toEqual([bob]);
    // An empty list means no user, not every user.
    expect((await byokStore(queries).find({ organization_id, id: 'byok' }))?.allowed_user_ids).toEqual([]);
    const audit = await auditStore(queries).listBy({ organization_id }, { offset: 0, limit: 50 });
    const events = audit.data.map(({ action, resource_type }) => `${action} ${resource_type}`).toSorted();
    expect(events).toEqual([
      'delete authorization_code',
      'delete user',
      'delete workspace_member',
      'sign-out session',
      'unassign guardrail_assignment',
      'update api_key',
      'update api_key',
      'update byok_credential',
    ]);
  });

  test('200: another member takes over the ordinary keys, and management keys are disabled', async () => {
    const { add, remove, addKey, keys } = await setUp();
    const [ada, bob] = [await add('ada'), await add('bob')];
    await addKey({ name: 'one', creator_user_id: ada });
    await addKey({ name: 'off', creator_user_id: ada, disabled: true });
    await addKey({ name: 'management', creator_user_id: ada, is_management: true });
    const { body } = await remove(ada, `?hand_keys_to=${bob}`);
    expect(body).toEqual({ deleted: true, keys_disabled: 1, keys_handed_over: 2, sessions_ended: 0 });
    expect(await keys()).toEqual([
      ['one', false, bob],
      ['off', true, bob],
      ['management', true, ada],
    ]);
  });

  test('400: the last administrator, and keys for the removed user or a user who is not a member; nothing changes', async () => {
    const { add, remove, home, isMember, addKey, keys } = await setUp();
    const [owner, ada] = [home.owner_user_id, await add('ada')];
    await addKey({ name: 'one', creator_user_id: ada });
    expect(await remove(owner)).toMatchObject({ status: 400 });
    expect(await remove(ada, `?hand_keys_to=${ada}`)).toMatchObject({ status: 400 });
    expect(await remove(ada, '?hand_keys_to=nobody')).toMatchObject({ status: 400 });
    expect([await isMember(owner), await isMember(ada), await keys()]).toEqual([true, true, [['one', false, ada]]]);
    const second = await add('eve', 'admin');
    expect((await remove(owner)).status).toBe(200);
    expect((await remove(second)).status).toBe(400);
  });

  test('404: an unknown, removed or foreign user; 403: an ordinary key; 401: no key', async () => {
    const { add, remove, foreign, isMember } = await setUp();
    const ada = await add('ada');
    expect((await remove('nobody')).status).toBe(404);
    expect((await remove(foreign.owner_user_id)).status).toBe(404);
    expect((await remove(ada, '', 'foreign')).status).toBe(404);
    expect((await remove(ada, '', 'ordinary')).status).toBe(403);
    expect((await remove(ada, '', '')).status).toBe(401);
    expect(await isMember(ada)).toBe(true);
    expect((await remove(ada)).status).toBe(200);
    expect((await remove(ada)).status).toBe(404);
  });

  test('a key that an application gets during the removal of its member is disabled or refused', async () => {
    const { add, addCode, remove, call, queries, organization_id } = await setUp();
    for (let round = 0; round < 8; round += 1) {
      const userId = await add(`ada-${round}`);
      const codes = Array.from({ length: 4 }, (_, index) => `${userId} ${index}`);
      for (const code of codes) await addCode(userId, code);
      const [, ...exchanged] = await Promise.all([
        remove(userId),
        ...codes.map((code) => call('POST', '/auth/keys', { code }, '')),
      ]);
      for (const { status } of exchanged) expect([200, 403, 409]).toContain(status);
      const enabled = await keyStore(queries).listBy({ organization_id, disabled: false });
      expect(enabled.filter(({ creator_user_id }) => creator_user_id === userId)).toEqual([]);
    }
  });

  test('a key that is created for a member during its removal is disabled or refused', async () => {
    const { add, remove, call, queries, organization_id } = await setUp();
    for (let round = 0; round < 5; round += 1) {
      const userId = await add(`ada-${round}`);
      const make = () => call('POST', '/keys', { name: 'late', creator_user_id: userId });
      const [first, , second] = await Promise.all([make(), remove(userId), make()]);
      expect([201, 400]).toContain(first.status);
      expect([201, 400]).toContain(second.status);
      const held = await keyStore(queries).listBy({ organization_id, disabled: false });
      expect(held.filter(({ creator_user_id }) => creator_user_id === userId)).toEqual([]);
    }
  });
});
