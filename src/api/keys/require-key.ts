import Type from 'typebox';
import type { StoredKey } from '../../accounts/key.ts';
import { GatewayError } from '../../errors.ts';
import { isStorable } from '../../schemas/text.ts';
import type { KeyId } from '../../storage/keys.ts';

/** The path parameter of operations on one key. */
export const KeyParams = Type.Object({ hash: Type.String({ description: 'The SHA-256 of the secret, in hex.' }) });

/** The ordinary key that a path names. Throws a 404 if there is none; keys of other organizations, management keys, and for `ownUser` keys of others count as missing. */
export async function requireKey(
  which: KeyId,
  find: (which: KeyId) => Promise<StoredKey | undefined>,
  ownUser: string | undefined,
): Promise<StoredKey> {
  const key = isStorable(which.hash) ? await find(which) : undefined;
  if (!key || key.is_management || key.organization_id !== which.organization_id) {
    throw new GatewayError(404, 'API key not found');
  }
  if (ownUser !== undefined && key.creator_user_id !== ownUser) throw new GatewayError(404, 'API key not found');
  return key;
}
