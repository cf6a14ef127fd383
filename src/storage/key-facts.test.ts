import { expect, test } from 'vitest';
import { describeStores } from '../../test/ledger/store-variants.ts';
import { createSecret } from '../accounts/key.ts';
import { budgetStore } from './budgets.ts';
import type { Database } from './database.ts';
import { assignmentStore, guardrailStore } from './guardrails.ts';
import { findKeyFacts } from './key-facts.ts';
import { keyStore, type NewKey } from './keys.ts';
import { organizationStore } from './organizations.ts';
import { workspaceStore } from './workspaces.ts';

const AT = '2026-11-21T10:00:00.000Z';

/** The queries of a database, with a count of the statements that they run. */
function counting({ queries }: Database) {
  const counted = { statements: 0, queries };
  counted.queries = queries.withPlugin({
    transformQuery: ({ node }) => {
      counted.statements += 1;
      return node;
    },
    transformResult: async ({ result }) => result,
  });
  return counted;
}

describeStores('the facts of a key', ({ open }) => {
  async function setUp() {
    const database = await open();
    const { queries } = database;
    const home = await organizationStore(queries).insertFirst({ at: AT });
    const { organization_id, default_workspace_id: workspaceId, owner_user_id: userId } = home;
    const makeKey = (over: Partial<NewKey> = {}) => {
      const { hash, label } = createSecret();
      const unset = { limit_nano: null, limit_reset: null, expires_at: null, updated_at: null };
      return keyStore(queries).insert({
        ...{
          hash,
          label,
          organization_id,
          workspace_id: workspaceId,
          creator_user_id: userId,
          name: 'k',
          created_at: AT,
        },
        ...{ ...unset, is_management: false, disabled: false, include_byok_in_limit: false },
        ...over,
      });
    };
    return { database, queries, makeKey, organization_id, workspaceId, userId };
  }

  test('are read in one statement, and equal the results of the single lookups', async () => {
    const { database, queries, makeKey, organization_id, workspaceId, userId } = await setUp();
    const guardrail = (name: string) =>
      guardrailStore(queries).insert({
        ...{ organization_id, workspace_id: workspaceId, name, limit_nano: 5, created_at: AT },
        ...{ enforce_zdr: true, allowed_models: ['a/b'], content_filter_output: false },
      });
    const [ofKey, ofMember, ofWorkspace, ofRoot] = [
      await guardrail('key'),
      await guardrail('member'),
      await guardrail('workspace'),
      await guardrail('root'),
    ];
    const root = await makeKey({ is_management: true, limit_nano: 1 });
    const parent = await makeKey({
      parent_hash: root.hash,
      made_by: 'key',
      limit_nano: 20,
      include_byok_in_limit: true,
    });
    const child = await makeKey({ parent_hash: parent.hash, made_by: 'key', limit_nano: 10, budget_mode: 'soft' });
    await makeKey({ parent_hash: child.hash, made_by: 'key', limit_nano: 3 });
    const assigned = { organization_id, assigned_by: null, created_at: AT };
    const assignments = assignmentStore(queries);
    await assignments.insertKeys({ ...assigned, guardrail_id: ofKey.id, assignees: [parent.hash] });
    await assignments.insertKeys({ ...assigned, guardrail_id: ofRoot.id, assignees: [root.hash] });
    await assignments.insertMembers({ ...assigned, guardrail_id: ofMember.id, assignees: [userId] });
    const workspaces = workspaceStore(queries);
    await workspaces.update(workspaceId, {
      ...{ default_guardrail_id: ofWorkspace.id, io_logging_api_key_ids: [1, 2], updated_at: AT },
      is_observability_io_logging_enabled: true,
    });
    await budgetStore(queries).keepCredits(organization_id, 99, AT);

    const counted = counting(database);
    const facts = await findKeyFacts(counted.queries, child.hash);
    expect(counted.statements).toBe(1);
    expect(facts?.lineage).toEqual([child, parent, root]);
    expect(facts?.workspace).toEqual(await workspaces.find({ organization_id, id_or_slug: workspaceId }));
    const holder = { organization_id, workspace_id: workspaceId, key_hash: child.hash, user_id: userId };
    const held = await guardrailStore(queries).listHolding({ ...holder, parents: [{ key_hash: parent.hash }] });
    const byName = <T extends { id: string }>(rows: readonly T[] = []) =>
      [...rows].sort((a, b) => (a.id < b.id ? -1 : 1));
    expect(held).toHaveLength(3);
    expect(byName(facts?.guardrails)).toEqual(byName(held));
    const subjects = [`key:${child.hash}`, `key:${parent.hash}`, `user:${organization_id}:${userId}`];
    subjects.push(`workspace:${workspaceId}`, `organization:${organization_id}`);
    const budgets = await budgetStore(queries).findBySubjects(subjects);
    expect(budgets).toHaveLength(6);
    expect(facts?.budgets.map(({ subject, ...budget }) => budget)).toEqual(byName(budgets));
    const ofParent = facts?.budgets.filter(({ subject, scope }) => scope === 'key' && subject === subjects[1]);
    expect(ofParent).toMatchObject([{ include_byok: true, limit_nano: 20 }]);
  });

  test('are found by each valid secret of a key, in one statement, and not by its earlier secrets', async () => {
    const { database, queries, makeKey, organization_id } = await setUp();
    const parent = await makeKey({ limit_nano: 20 });
    const key = await makeKey({ parent_hash: parent.hash, made_by: 'key', limit_nano: 10 });
    const [second, third, fourth] = [createSecret(), createSecret(), createSecret()];
    const rotate = (secretHash: string, previousHash: string) =>
      keyStore(queries).update(
        { organization_id, hash: key.hash },
        {
          secret_hash: secretHash,
          previous_secret_hash: previousHash,
          previous_label: 'l',
          rotated_at: AT,
          updated_at: AT,
        },
      );
    await rotate(second.hash, key.hash);
    await rotate(third.hash, second.hash);
    const counted = counting(database);
    const byHash = await findKeyFacts(counted.queries, key.hash);
    expect(byHash?.lineage.map(({ hash }) => hash)).toEqual([key.hash, parent.hash]);
    expect(byHash?.budgets).toHaveLength(2);
    expect(await findKeyFacts(counted.queries, third.hash)).toEqual(byHash);
    expect(await findKeyFacts(counted.queries, second.hash)).toEqual(byHash);
    expect(counted.statements).toBe(3);
    await rotate(fourth.hash, third.hash);
    expect(await findKeyFacts(queries, second.hash)).toBeUndefined();
    expect(byHash?.lineage[0]).toMatchObject({ secret_hash: third.hash, previous_secret_hash: second.hash });
  });

  test('are undefined for an unknown key, and are the key and its workspace for a key alone', async () => {
    const { queries, makeKey, workspaceId } = await setUp();
    const key = await makeKey({ creator_user_id: null });
    expect(await findKeyFacts(queries, createSecret().hash)).toBeUndefined();
    const facts = await findKeyFacts(queries, key.hash);
    expect(facts).toMatchObject({ lineage: [key], budgets: [], guardrails: [], workspace: { id: workspaceId } });
  });
});
