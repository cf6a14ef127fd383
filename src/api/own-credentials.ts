import { placeOf, type StoredByok } from '../accounts/byok.ts';
import type { Vault } from '../accounts/vault.ts';
import type { InferenceOptions } from '../inference/answer.ts';
import type { Clock } from '../inference/call.ts';
import { limits } from '../limits.ts';
import type { OwnCredential } from '../routing/own-credential.ts';
import type { ChangeFeed } from '../storage/change-feed.ts';

interface Remembered {
  credentials: readonly OwnCredential[];
  until_ms: number;
}

/** Opens a credential, once. One that cannot be used says why, in words for whoever may see the routing. */
function opened(
  stored: StoredByok,
  { vault, log, takesJson }: Pick<Parameters<typeof createOwnCredentials>[0], 'vault' | 'log' | 'takesJson'>,
): OwnCredential {
  const { id, version, provider, label, name, is_fallback, allow_shared_fallback, sort_order } = stored;
  const { allowed_models, allowed_api_key_hashes, allowed_user_ids } = stored;
  const scope = { allowed_models, allowed_api_key_hashes, allowed_user_ids };
  const shown = { id, version, provider, label, name, is_fallback, allow_shared_fallback, sort_order, ...scope };
  const unusable = (reason: string): OwnCredential => ({
    ...shown,
    unusable: reason,
    secret: () => {
      throw new Error(reason);
    },
  });
  let secret: string;
  try {
    secret = vault.open(stored.sealed, placeOf(stored));
  } catch (err) {
    log.warn({ err, byok_id: id }, 'a stored credential cannot be opened');
    return unusable("the workspace's credential cannot be read by this gateway");
  }
  if (secret.startsWith('{') && !takesJson(provider))
    return unusable("the workspace's credential is JSON text, which this provider does not take");
  return { ...shown, unusable: undefined, secret: () => secret };
}

/**
 * Makes the memory of workspaces' own credentials. It is used only while the feed is sure to tell of changes: once the
 * feed's `heard` has resolved, no call begins with what was changed.
 */
export function createOwnCredentials(options: {
  findEnabled(workspace_id: string): Promise<StoredByok[]>;
  vault: Vault;
  /** Whether a provider's wire takes a credential of several parts, as JSON text. */
  takesJson(provider: string): boolean;
  clock: Clock;
  changes: Pick<ChangeFeed, 'listen' | 'current'>;
  log: InferenceOptions['log'];
}): InferenceOptions['ownCredentials'] {
  const { findEnabled, clock, changes } = options;
  const known = new Map<string, Remembered>();
  /** Workspaces and their credentials. */
  let size = 0;
  /** Rises with every change: an answer of the store that was asked for before may be older. */
  let changed = 0;

  const forget = (workspace_id: string) => {
    size -= sizeOf(known.get(workspace_id));
    known.delete(workspace_id);
  };
  changes.listen((change) => {
    if (change !== 'everything' && change.topic === 'keys') return;
    changed += 1;
    if (change !== 'everything') return forget(change.id);
    known.clear();
    size = 0;
  });

  const lookUp = async (workspace_id: string): Promise<readonly OwnCredential[]> => {
    const changed_before = changed;
    const stored = await findEnabled(workspace_id);
    const credentials = stored.map((one) => opened(one, options));
    if (changed !== changed_before) return credentials;
    forget(workspace_id);
    const remembered = { credentials, until_ms: clock.monotonic_ms() + limits.key_cache_ms_max };
    // The oldest entries leave; a Map keeps the order of insertion.
    for (const oldest of known.keys()) {
      if (size + sizeOf(remembered) <= limits.byok_remembered_max) break;
      forget(oldest);
    }
    known.set(workspace_id, remembered);
    size += sizeOf(remembered);
    return credentials;
  };

  return ({ workspace_id }) => {
    // First: the feed may notice only now that everything must be forgotten.
    const current = changes.current();
    const remembered = known.get(workspace_id);
    if (current && remembered !== undefined && remembered.until_ms > clock.monotonic_ms())
      return remembered.credentials;
    return lookUp(workspace_id);
  };
}

function sizeOf(remembered: Remembered | undefined): number {
  return remembered === undefined ? 0 : 1 + remembered.credentials.length;
}
