import { randomUUID } from 'node:crypto';
import { keyStore } from './keys.ts';
import type { Queries } from './queries.ts';
import { nextNumber } from './sequence.ts';

/** The organization, owner and workspace of a fresh installation. */
export interface Home {
  organization_id: string;
  owner_user_id: string;
  default_workspace_id: string;
}

/** Counters that exist until an organization has its first management key, and its first ordinary one. */
const MANAGEMENT_KEY_DUE = 'first_management_key';
const API_KEY_DUE = 'first_api_key';

/** The stored part of a key that a first start creates. */
interface FirstKey {
  hash: string;
  label: string;
}

/** The keys that a start offers to store; undefined: none of this kind. */
export interface OfferedKeys {
  management: FirstKey | undefined;
  ordinary: (FirstKey & { limit_nano: number | null }) | undefined;
}

/** Which of the offered keys were stored. */
export interface StoredKeys {
  management: boolean;
  ordinary: boolean;
}

/** Stored organizations, with their members and workspaces. */
export function organizationStore(queries: Queries) {
  return {
    /**
     * Creates the one organization with its owner and its default workspace, unless it exists. If several processes start
     * together, one of them creates it and all get the same result.
     */
    insertFirst: ({ at }: { at: string }) =>
      queries.transaction().execute(async (tx): Promise<Home> => {
        // This row is the lock: on PostgreSQL a second process waits here until the first has committed.
        const gate = await tx
          .insertInto('counters')
          .values({ name: 'organizations', value: 1 })
          .onConflict((conflict) => conflict.column('name').doNothing())
          .returning('value')
          .executeTakeFirst();
        if (gate) {
          await insertHome(tx, at);
          const due = [MANAGEMENT_KEY_DUE, API_KEY_DUE].map((name) => ({ name, value: 1 }));
          await tx.insertInto('counters').values(due).execute();
        }
        return findHome(tx);
      }),

    /**
     * Stores the first keys of an organization that has none yet: the management key, and the ordinary one unless any key
     * exists. If several processes offer keys, one of them stores its keys. `keep` runs before the commit; if it throws, none
     * are stored.
     */
    insertFirstKeys: (
      { at, home, offered }: { at: string; home: Home; offered: OfferedKeys },
      keep: (stored: StoredKeys) => void,
    ) =>
      queries.transaction().execute(async (tx): Promise<StoredKeys> => {
        const { management, ordinary } = offered;
        const stored = {
          management: management !== undefined && (await takeDue(tx, MANAGEMENT_KEY_DUE)),
          ordinary: ordinary !== undefined && (await takeDue(tx, API_KEY_DUE)) && !(await hasKeys(tx)),
        };
        if (management && stored.management) {
          await insertKey(tx, { ...management, limit_nano: null }, { at, home, is_management: true });
        }
        if (ordinary && stored.ordinary) await insertKey(tx, ordinary, { at, home, is_management: false });
        if (stored.management || stored.ordinary) keep(stored);
        return stored;
      }),

    findDefaultWorkspace: (organizationId: string) =>
      queries
        .selectFrom('workspaces')
        .selectAll()
        .where('organization_id', '=', organizationId)
        .where('is_default', '=', true)
        .executeTakeFirst(),

    /** A workspace of this organization by id; undefined for those of others. */
    findWorkspace: ({ organization_id, id }: { organization_id: string; id: string }) =>
      queries
        .selectFrom('workspaces')
        .selectAll()
        .where('organization_id', '=', organization_id)
        .where('id', '=', id)
        .executeTakeFirst(),

    /** A workspace, locked against deletion and every other change until the transaction ends. */
    lockWorkspace: ({ organization_id, id }: { organization_id: string; id: string }) =>
      queries
        .updateTable('workspaces')
        .set(({ ref }) => ({ version: ref('version') }))
        .where('organization_id', '=', organization_id)
        .where('id', '=', id)
        .returningAll()
        .executeTakeFirst(),

    /** The user that the environment's management key acts for: the administrator since the longest time. */
    findOwner: async (organizationId: string): Promise<string | undefined> => {
      const owner = await queries
        .selectFrom('organization_members')
        .select('user_id')
        .where('organization_id', '=', organizationId)
        .where('role', '=', 'admin')
        .orderBy('created_at')
        .orderBy('id')
        .limit(1)
        .executeTakeFirst();
      return owner?.user_id;
    },

    isWorkspaceMember: async ({
      workspace_id,
      user_id,
    }: {
      workspace_id: string;
      user_id: string;
    }): Promise<boolean> => {
      const row = await queries
        .selectFrom('workspace_members')
        .select('id')
        .where('workspace_id', '=', workspace_id)
        .where('user_id', '=', user_id)
        .executeTakeFirst();
      return row !== undefined;
    },

    findMember: ({ organization_id, user_id }: { organization_id: string; user_id: string }) =>
      queries
        .selectFrom('organization_members')
        .selectAll()
        .where('organization_id', '=', organization_id)
        .where('user_id', '=', user_id)
        .executeTakeFirst(),

    /** The membership, locked until the transaction ends. */
    lockMember: ({ organization_id, user_id }: { organization_id: string; user_id: string }) =>
      queries
        .updateTable('organization_members')
        .set(({ ref }) => ({ seq: ref('seq') }))
        .where('organization_id', '=', organization_id)
        .where('user_id', '=', user_id)
        .returningAll()
        .executeTakeFirst(),
  };
}

export type OrganizationStore = ReturnType<typeof organizationStore>;

async function findHome(tx: Queries): Promise<Home> {
  return tx
    .selectFrom('workspaces')
    .innerJoin('organization_members', 'organization_members.organization_id', 'workspaces.organization_id')
    .select([
      'workspaces.organization_id as organization_id',
      'workspaces.id as default_workspace_id',
      'organization_members.user_id as owner_user_id',
    ])
    .where('workspaces.is_default', '=', true)
    .where('organization_members.role', '=', 'admin')
    .orderBy('organization_members.created_at')
    .orderBy('organization_members.id')
    .limit(1)
    .executeTakeFirstOrThrow();
}

async function insertHome(tx: Queries, at: string): Promise<void> {
  const organizationId = randomUUID();
  const userId = randomUUID();
  const workspaceId = randomUUID();
  await tx.insertInto('organizations').values({ id: organizationId, name: 'Default', created_at: at }).execute();
  await tx
    .insertInto('users')
    .values({
      id: userId,
      name: 'Owner',
      email: null,
      created_at: at,
      first_name: null,
      last_name: null,
      issuer: null,
      subject: null,
    })
    .execute();
  await tx
    .insertInto('organization_members')
    .values({
      id: randomUUID(),
      organization_id: organizationId,
      user_id: userId,
      role: 'admin',
      created_at: at,
      seq: await nextNumber(tx, 'organization_members'),
    })
    .execute();
  await tx
    .insertInto('workspaces')
    .values({
      id: workspaceId,
      organization_id: organizationId,
      is_default: true,
      name: 'Default',
      slug: 'default',
      description: null,
      created_at: at,
      created_by: userId,
      updated_at: null,
      default_image_model: null,
      default_text_model: null,
      default_provider_sort: null,
      io_logging_api_key_ids: null,
      io_logging_sampling_rate_bp: 10_000,
      is_data_discount_logging_enabled: false,
      is_observability_broadcast_enabled: false,
      is_observability_io_logging_enabled: false,
      seq: await nextNumber(tx, 'workspaces'),
      version: 1,
      include_byok_in_budgets: false,
    })
    .execute();
  await tx
    .insertInto('workspace_members')
    .values({
      id: randomUUID(),
      workspace_id: workspaceId,
      user_id: userId,
      role: 'admin',
      created_at: at,
      seq: await nextNumber(tx, 'workspace_members'),
    })
    .execute();
}

/** Whether this transaction may create such a key: on PostgreSQL others wait here until it has ended. */
async function takeDue(tx: Queries, name: string): Promise<boolean> {
  const due = await tx.deleteFrom('counters').where('name', '=', name).returning('name').executeTakeFirst();
  return due !== undefined;
}

async function hasKeys(tx: Queries): Promise<boolean> {
  return (await tx.selectFrom('api_keys').select('hash').limit(1).executeTakeFirst()) !== undefined;
}

async function insertKey(
  tx: Queries,
  { hash, label, limit_nano }: FirstKey & { limit_nano: number | null },
  { at, home, is_management }: { at: string; home: Home; is_management: boolean },
): Promise<void> {
  await keyStore(tx).insert({
    // Named fields only: the object of a new key has its secret as well.
    hash,
    label,
    organization_id: home.organization_id,
    workspace_id: home.default_workspace_id,
    creator_user_id: home.owner_user_id,
    name: is_management ? 'Management key' : 'default',
    is_management,
    disabled: false,
    limit_nano,
    limit_reset: null,
    include_byok_in_limit: false,
    expires_at: null,
    created_at: at,
    updated_at: null,
  });
}
