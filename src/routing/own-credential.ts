/** A credential of an organization's own account at a provider, as a request may use it. Shows id, label and name to whoever prints it. */
export interface OwnCredential {
  id: string;
  /** Rises with every change: another secret is another credential to whoever remembers failures. */
  version: number;
  /** Slug of the provider. */
  provider: string;
  /** The credential, masked. */
  label: string;
  name: string | null;
  /** Used after the shared endpoints, not before them. */
  is_fallback: boolean;
  /** Whether a call that it could not serve may go on to endpoints at the gateway's own accounts. */
  allow_shared_fallback: boolean;
  sort_order: number;
  /** Canonical slugs; null: all. */
  allowed_models: readonly string[] | null;
  allowed_api_key_hashes: readonly string[] | null;
  allowed_user_ids: readonly string[] | null;
  /** Whether the account keeps nothing, as its owner says; null: as is known of its provider. */
  declared_zdr: boolean | null;
  /** No model goes to the gateway's own account at this provider. */
  is_byok_only: boolean;
  /** Why nothing can be sent with it; undefined: it can. */
  unusable: string | undefined;
  /** The credential itself. A function, so that nothing that prints or copies the record has it. */
  secret(): string;
}

/** What of a credential may be shown. */
export interface ShownCredential {
  id: string;
  label: string;
  name: string | null;
}

export function shownCredential({ id, label, name }: OwnCredential): ShownCredential {
  return { id, label, name };
}

/** Who asks, as far as credentials are limited to somebody. */
export interface CredentialUser {
  key_hash: string | null;
  user_id: string | null;
  /** The keys that its key was made with: what they may use, it may. */
  parents?: readonly { key_hash: string }[];
}

function allows(list: readonly string[] | null, wanted: string | null): boolean {
  return list === null || (wanted !== null && list.includes(wanted));
}

/** The credentials that a caller may use for a model, in the order in which they are tried at one provider. */
export function credentialsFor(
  credentials: readonly OwnCredential[],
  { key_hash: keyHash, user_id: userId, parents = [] }: CredentialUser,
  canonicalSlug: string,
): OwnCredential[] {
  return credentials
    .filter(
      ({
        allowed_models: allowedModels,
        allowed_api_key_hashes: allowedApiKeyHashes,
        allowed_user_ids: allowedUserIds,
      }) =>
        allows(allowedModels, canonicalSlug) &&
        (allows(allowedApiKeyHashes, keyHash) ||
          parents.some((parent) => allows(allowedApiKeyHashes, parent.key_hash))) &&
        allows(allowedUserIds, userId),
    )
    .sort((a, b) => a.sort_order - b.sort_order);
}
