import Type from 'typebox';
import type { StoredKey } from '../../accounts/key.ts';
import { GatewayError } from '../../errors.ts';
import type { Principal } from '../../http/principal.ts';
import { isStorable } from '../../schemas/text.ts';
import type { KeyId } from '../../storage/keys.ts';
import type { OrganizationStore } from '../../storage/organizations.ts';
import { ownUserOf } from '../change.ts';
import { mayUse } from '../workspaces/require-workspace.ts';

/** The path parameter of operations on one key. */
export const KeyParams = Type.Object({
  hash: Type.String({ description: 'The `hash` of the key, which it keeps when it is rotated.' }),
});

/**
 * The ordinary key that a path names. Throws a 404 if there is none. Keys of other organizations and management keys count as missing; for
 * a member also keys of others, and keys in workspaces that the member has left.
 */
export async function requireKey(caller: Principal, hash: string, { find, organizations }: Finder): Promise<StoredKey> {
  const { organization_id } = caller;
  const key = isStorable(hash) ? await find({ organization_id, hash }) : undefined;
  if (
    !key ||
    key.is_management ||
    key.organization_id !== organization_id ||
    !(await isSeen(caller, key, organizations))
  ) {
    throw new GatewayError(404, 'API key not found');
  }
  return key;
}

interface Finder {
  find: (which: KeyId) => Promise<StoredKey | undefined>;
  organizations: Pick<OrganizationStore, 'isWorkspaceMember'>;
}

async function isSeen(caller: Principal, key: StoredKey, organizations: Finder['organizations']): Promise<boolean> {
  const ownUser = ownUserOf(caller);
  if (ownUser === undefined) return true;
  // The workspace of a session is the default one.
  const workspace = { id: key.workspace_id, is_default: key.workspace_id === caller.workspace_id };
  return key.creator_user_id === ownUser && (await mayUse(organizations, caller, workspace));
}
