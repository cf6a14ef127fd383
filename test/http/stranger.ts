import { randomUUID } from 'node:crypto';
import { createSecret } from '../../src/accounts/key.ts';
import { openDatabase } from '../../src/storage/database.ts';
import { keyStore } from '../../src/storage/keys.ts';
import { workspaceStore } from '../../src/storage/workspaces.ts';

/** Another organization in the store of a running gateway, with an administrator, a management key and an ordinary one. */
export async function makeStranger(store: Parameters<typeof openDatabase>[0]) {
  const database = await openDatabase(store);
  // The oldest organization is the one that runs the gateway.
  const at = new Date().toISOString();
  try {
    const { queries } = database;
    const [organizationId, userId] = [randomUUID(), randomUUID()];
    await queries
      .insertInto('organizations')
      .values({ id: organizationId, name: 'Strangers', created_at: at })
      .execute();
    await queries.insertInto('users').values({ id: userId, name: 'Stranger', created_at: at }).execute();
    const member = {
      id: randomUUID(),
      organization_id: organizationId,
      user_id: userId,
      role: 'admin',
      created_at: at,
      seq: 1_000,
    };
    await queries.insertInto('organization_members').values(member).execute();
    const names = {
      organization_id: organizationId,
      name: 'Default',
      slug: 'default',
      created_by: userId,
      created_at: at,
    };
    const { id: workspaceId } = await workspaceStore(queries).insert(names);
    await queries.updateTable('workspaces').set({ is_default: true }).where('id', '=', workspaceId).execute();
    const secretOf = async (isManagement: boolean) => {
      const { secret, hash, label } = createSecret();
      await keyStore(queries).insert({
        hash,
        label,
        organization_id: organizationId,
        workspace_id: workspaceId,
        creator_user_id: userId,
        name: 'k',
        is_management: isManagement,
        disabled: false,
        limit_nano: null,
        limit_reset: null,
        include_byok_in_limit: false,
        expires_at: null,
        created_at: at,
        updated_at: null,
      });
      return { secret, hash };
    };
    const management = await secretOf(true);
    const ordinary = await secretOf(false);
    return {
      management: management.secret,
      ordinary: ordinary.secret,
      key_hash: ordinary.hash,
      user_id: userId,
      workspace_id: workspaceId,
    };
  } finally {
    await database.close();
  }
}
