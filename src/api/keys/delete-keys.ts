import { keyState, type StoredKey } from '../../accounts/key.ts';
import { keyStore } from '../../storage/keys.ts';
import type { Work } from '../change.ts';

/** Deletes locked keys and all their descendants. Adds audit entries for each key and each of its guardrail assignments. */
export async function deleteKeys({ tx, actor, audit, announce }: Work, held: readonly StoredKey[]): Promise<void> {
  const { organization_id } = actor;
  const store = keyStore(tx);
  const keys = [...held, ...(await store.findDescendants(held.map(({ hash }) => hash)))];
  const unassigned = await store.delete({ organization_id, keys });
  const left = Map.groupBy(unassigned, ({ key_hash }) => key_hash);
  for (const key of keys) {
    for (const { id, ...before } of left.get(key.hash) ?? []) {
      await audit({
        action: 'unassign',
        resource_type: 'guardrail_assignment',
        resource_id: id,
        before,
        after: null,
      });
    }
    const before = keyState(key);
    await audit({ action: 'delete', resource_type: 'api_key', resource_id: key.hash, before, after: null });
    announce({ topic: 'keys', id: key.hash });
  }
}
