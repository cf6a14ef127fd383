import type { StoredCode } from '../../accounts/authorization-code.ts';
import { keyRefusal } from '../../accounts/delegation.ts';
import type { StoredKey } from '../../accounts/key.ts';
import { isSecretValid } from '../../accounts/key-secrets.ts';
import { GatewayError } from '../../errors.ts';
import { limits } from '../../limits.ts';
import type { Queries } from '../../storage/database.ts';
import { keyStore } from '../../storage/keys.ts';

/** The facts that determine the ancestors of a new key. */
export type Delegation = Pick<StoredCode, 'organization_id' | 'asker_key_hash' | 'asker_secret_hash' | 'made_by'>;

/**
 * The ancestors of a new key, the parent first, each locked until the transaction ends, so that a revocation and the exchange are ordered;
 * none if a session approved the code. Undefined if one of them, or the secret that requested the code, is not valid any more.
 */
export async function holdLineage(tx: Queries, code: Delegation, now: number): Promise<StoredKey[] | undefined> {
  const { organization_id, asker_key_hash, asker_secret_hash } = code;
  if (asker_key_hash === null) return [];
  const store = keyStore(tx);
  const ancestors = await store.findAncestors(asker_key_hash);
  const lineage: StoredKey[] = [];
  // From the oldest ancestor down, in the order in which deletions lock them.
  for (const hash of [asker_key_hash, ...ancestors.map((key) => key.hash)].reverse()) {
    const key = await store.lock({ organization_id, hash });
    if (key === undefined) return undefined;
    lineage.unshift(key);
  }
  if (keyRefusal(lineage, now) !== undefined) return undefined;
  const [asker] = lineage;
  if (asker !== undefined && asker_secret_hash !== null && !isSecretValid(asker, asker_secret_hash, now))
    return undefined;
  // A session belongs to its member, whatever key opened it.
  return code.made_by === 'session' ? [] : lineage;
}

/** Throws if the chain of ancestors would become too long, or an ordinary key would have too many descendants. */
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
