import { placeOf, type StoredByok } from '../accounts/byok.ts';
import type { Vault } from '../accounts/vault.ts';
import type { InferenceOptions } from '../inference/create-inference.ts';
import type { OwnCredential } from '../routing/own-credential.ts';
import { StoreMemory, type StoreMemoryOptions } from './store-memory.ts';

/** Workspaces and credentials, together, that a process remembers. */
export const BYOK_REMEMBERED_MAX = 10_000;

/** Decrypts a credential. One that cannot be used states the reason, for callers that may see the routing. */
function decrypted(
  stored: StoredByok,
  { vault, log, takesJson }: Pick<Parameters<typeof createOwnCredentials>[0], 'vault' | 'log' | 'takesJson'>,
): OwnCredential {
  const { id, version, provider, label, name, is_fallback, allow_shared_fallback, sort_order } = stored;
  const { allowed_models, allowed_api_key_hashes, allowed_user_ids } = stored;
  const { declared_zdr, is_byok_only } = stored;
  const scope = { allowed_models, allowed_api_key_hashes, allowed_user_ids, declared_zdr, is_byok_only };
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
    return unusable("the workspace's credential is JSON text, which this provider does not accept");
  return { ...shown, unusable: undefined, secret: () => secret };
}

/** Makes the cache of the workspaces' own credentials. */
export function createOwnCredentials(options: {
  findEnabled(workspaceId: string): Promise<StoredByok[]>;
  vault: Vault;
  /** Whether the wire of a provider accepts a credential of several parts, as JSON text. */
  takesJson(provider: string): boolean;
  memory: StoreMemoryOptions;
  log: InferenceOptions['log'];
}): InferenceOptions['ownCredentials'] {
  const known = new StoreMemory<readonly OwnCredential[]>(options.memory, {
    size_max: BYOK_REMEMBERED_MAX,
    sizeOf: (credentials) => 1 + credentials.length,
    nameOf: ({ topic, id }) => (topic === 'policy' || topic === 'workspace_gone' ? id : undefined),
  });

  const load = async (workspaceId: string): Promise<readonly OwnCredential[]> => {
    const stored = await options.findEnabled(workspaceId);
    return stored.map((credential) => decrypted(credential, options));
  };

  return ({ workspace_id }, storeWait) => {
    const credentials = known.find(workspace_id, () => load(workspace_id), storeWait);
    return credentials instanceof Promise ? credentials.then(({ value = [] }) => value) : credentials;
  };
}
