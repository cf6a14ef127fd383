import { hash, timingSafeEqual } from 'node:crypto';
import { isUsable, type StoredKey } from '../accounts/key.ts';
import { GatewayError } from '../errors.ts';
import type { Authenticate, Principal } from '../http/principal.ts';
import type { Clock } from '../inference/call.ts';
import { limits } from '../limits.ts';
import type { ChangeFeed } from '../storage/change-feed.ts';

export interface AuthenticateOptions {
  findByHash(hash: string): Promise<StoredKey | undefined>;
  /** A management key of the environment, valid beside stored ones. */
  management_key: string | undefined;
  /** Who the environment's management key acts for. */
  home: { organization_id: string; default_workspace_id: string; owner_user_id: string };
  clock: Clock;
  /** Tells of keys that changed, and whether it would have. */
  changes: Pick<ChangeFeed, 'listen' | 'current'>;
}

interface Remembered {
  key: StoredKey;
  principal: Principal;
  until_ms: number;
}

function principalOf(key: StoredKey): Principal {
  return {
    kind: key.is_management ? 'management' : 'key',
    key_hash: key.hash,
    key_id: key.id,
    organization_id: key.organization_id,
    workspace_id: key.workspace_id,
    user_id: key.creator_user_id,
    budgets: [],
    budget_mode: key.budget_mode,
  };
}

/**
 * Makes the check of secrets. A secret is looked up by its SHA-256, so comparing it takes the same time whatever it is.
 * Keys seen in the last seconds are answered from memory, while the feed is sure to tell of changes; an expiry is
 * checked every time. A key that was disabled, deleted or changed is never accepted as it was once the feed's `heard`
 * has resolved.
 */
export function createAuthenticate(options: AuthenticateOptions): Authenticate {
  const { changes, clock, home } = options;
  const known = new Map<string, Remembered>();
  /** Rises with every change of a key: an answer of the store that was asked for before may be older. */
  let changed = 0;
  changes.listen((change) => {
    if (change !== 'everything' && change.topic !== 'keys') return;
    changed += 1;
    if (change === 'everything') known.clear();
    else known.delete(change.id);
  });
  const management =
    options.management_key === undefined ? undefined : Buffer.from(hash('sha256', options.management_key));
  const environment: Principal = {
    kind: 'management',
    key_hash: null,
    key_id: null,
    organization_id: home.organization_id,
    workspace_id: home.default_workspace_id,
    user_id: home.owner_user_id,
    budgets: [],
    budget_mode: null,
  };

  const accept = ({ key, principal }: Remembered): Principal => {
    if (!isUsable(key, clock.now_ms())) {
      throw new GatewayError(401, key.disabled ? 'This API key is disabled' : 'This API key has expired');
    }
    return principal;
  };

  const lookUp = async (hashed: string): Promise<Principal> => {
    const changed_before = changed;
    const key = await options.findByHash(hashed);
    if (key === undefined) {
      known.delete(hashed);
      throw new GatewayError(401, 'Invalid API key');
    }
    const remembered = { key, principal: principalOf(key), until_ms: clock.monotonic_ms() + limits.key_cache_ms_max };
    if (changed !== changed_before) return accept(remembered);
    // The oldest entry leaves; a Map keeps the order of insertion.
    known.delete(hashed);
    if (known.size >= limits.key_cache_entries_max) known.delete(known.keys().next().value ?? '');
    known.set(hashed, remembered);
    return accept(remembered);
  };

  return (secret) => {
    const hashed = hash('sha256', secret);
    // First: the feed may notice only now that everything must be forgotten.
    const current = changes.current();
    const remembered = known.get(hashed);
    if (current && remembered !== undefined && remembered.until_ms > clock.monotonic_ms()) return accept(remembered);
    if (management !== undefined && timingSafeEqual(Buffer.from(hashed), management)) return environment;
    return lookUp(hashed);
  };
}
