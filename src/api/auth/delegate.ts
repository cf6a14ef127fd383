import type { StoredCode } from '../../accounts/authorization-code.ts';
import { keyRefusal } from '../../accounts/delegation.ts';
import type { StoredKey } from '../../accounts/key.ts';
import { GatewayError } from '../../errors.ts';
import { limits } from '../../limits.ts';
import type { Queries } from '../../storage/database.ts';
import { keyStore } from '../../storage/keys.ts';

/** What is needed to know which keys a new one will descend from. */
export type Delegation = Pick<StoredCode, 'organization_id' | 'asker_key_hash' | 'made_by'>;

/**
 * The keys that a new key will descend from, the parent first, each held against changes until the transaction ends, so that
 * a revocation and the exchange have an order; none where a session approved it. Undefined: one of them is refused by now.
 */
export async function holdLineage(tx: Queries, code: Delegation, now: number): Promise<StoredKey[] | undefined> {
  const { organization_id, asker_key_hash } = code;
  if (asker_key_hash === null) return [];
  const store = keyStore(tx);
  const ancestors = await store.findAncestors(asker_key_hash);
  const lineage: StoredKey[] = [];
  // From the top down, as whoever deletes a key with its descendants takes them.
  for (const hash of [asker_key_hash, ...ancestors.map((key) => key.hash)].reverse()) {
    const key = await store.lock({ organization_id, hash });
    if (key === undefined) return undefined;
    lineage.unshift(key);
  }
  if (keyRefusal(lineage, now) !== undefined) return undefined;
  // A session is its member's, whatever key opened it.
  return code.made_by === 'session' ? [] : lineage;
}

/** Refuses a key that would be too many below another one, or one too many below an ordinary key. */
export async function checkRoom(tx: Queries, lineage: readonly StoredKey[]): Promise<void> {
  if (lineage.length > limits.key_ancestors_max) {
    const most = limits.key_ancestors_max;
    throw new GatewayError(
      403,
      `This API key was made with another API key, which was made with another one, and so on; such a chain may have at most ${most} keys. ` +
        'Use a key of an administrator, or an earlier key of the chain.',
    );
  }
  const root = lineage.findLast(({ is_management }) => !is_management);
  if (root === undefined) return;
  if ((await keyStore(tx).countDescendants(root.hash)) < limits.key_descendants_max) return;
  throw new GatewayError(
    409,
    `${limits.key_descendants_max} keys were made with this API key or with those that it was made with; delete some first`,
  );
}
