import { createHash } from 'node:crypto';
import { keyState, type StoredKey } from '../../accounts/key.ts';
import { isUniqueViolation } from '../../storage/database.ts';
import { keyStore } from '../../storage/keys.ts';
import type { Home } from '../../storage/organizations.ts';
import type { Change } from '../change.ts';

/**
 * The identity of the key that pays for probes, the same on every node. It is not a SHA-256, so no secret corresponds to it, and nobody can
 * call with this key.
 */
export function probeKeyHash(organizationId: string): string {
  return createHash('sha3-256').update(`health probes of ${organizationId}`).digest('hex');
}

/** Makes the key of probes, or updates its limit to the configured one: daily and strict. */
export async function keepProbeKey({
  change,
  home,
  limit_nano,
}: {
  change: Change;
  home: Home;
  limit_nano: number;
}): Promise<void> {
  const { organization_id, default_workspace_id: workspaceId, owner_user_id } = home;
  const hash = probeKeyHash(organization_id);
  const actor = { organization_id, actor: 'environment' as const, key_hash: null, user_id: null, request_id: null };
  const limit = { limit_nano, limit_reset: 'daily', budget_mode: 'strict' } as const;
  const made: Parameters<ReturnType<typeof keyStore>['insert']>[0] = {
    hash,
    label: 'no secret',
    organization_id,
    workspace_id: workspaceId,
    creator_user_id: owner_user_id,
    name: 'Health probes',
    is_management: false,
    disabled: false,
    include_byok_in_limit: false,
    expires_at: null,
    created_at: '',
    updated_at: null,
    ...limit,
  };
  const kept = (before: StoredKey) =>
    before.limit_nano === limit.limit_nano &&
    before.limit_reset === limit.limit_reset &&
    before.budget_mode === limit.budget_mode;
  const keep = () =>
    change(actor, async ({ tx, at, audit, announce }) => {
      const store = keyStore(tx);
      const before = await store.lock({ organization_id, hash });
      if (before !== undefined && kept(before)) return;
      const after =
        before === undefined
          ? await store.insert({ ...made, created_at: at })
          : await store.update({ organization_id, hash }, { ...limit, updated_at: at });
      await audit({
        action: before === undefined ? 'create' : 'update',
        resource_type: 'api_key',
        resource_id: hash,
        before: before === undefined ? null : keyState(before),
        after: keyState(after),
      });
      announce({ topic: 'keys', id: hash });
    });
  try {
    await keep();
  } catch (error) {
    // Another node made it concurrently.
    if (!isUniqueViolation(error)) throw error;
    await keep();
  }
}
