/** A credential of an organization's own account at a provider, for use by requests. Printing it shows only id, label and name. */
export interface OwnCredential {
  id: string;
  /** Rises with every change, so that recorded failures do not apply to a new secret. */
  version: number;
  /** Slug of the provider. */
  provider: string;
  /** The credential, masked. */
  label: string;
  name: string | null;
  /** Whether it is used after the shared endpoints, not before them. */
  is_fallback: boolean;
  /** Whether a call that it could not serve may use endpoints at the gateway's own accounts. */
  allow_shared_fallback: boolean;
  sort_order: number;
  /** Canonical slugs; null for all. */
  allowed_models: readonly string[] | null;
  allowed_api_key_hashes: readonly string[] | null;
  allowed_user_ids: readonly string[] | null;
  /** Whether the account retains no data, as its owner declares; null for the provider's policy. */
  declared_zdr: boolean | null;
  /** Whether no model may use the gateway's own account at this provider. */
  is_byok_only: boolean;
  /** Why it cannot be used; undefined if it can. */
  unusable: string | undefined;
  /** The credential itself. A function, so that printing or copying the record does not include it. */
  secret(): string;
}

/** The parts of a credential that may be shown. */
export interface ShownCredential {
  id: string;
  label: string;
  name: string | null;
}

/** The parts of a credential that may be shown. */
export function shownCredential({ id, label, name }: OwnCredential): ShownCredential {
  return { id, label, name };
}

/** The caller, for credentials that are limited to some. */
export interface CredentialUser {
  key_hash: string | null;
  user_id: string | null;
  /** The keys from which its key was derived: their permissions apply to it. */
  parents?: readonly { key_hash: string }[];
}

function allows(list: readonly string[] | null, value: string | null): boolean {
  return list === null || (value !== null && list.includes(value));
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
