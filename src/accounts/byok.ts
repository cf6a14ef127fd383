import type { ByokCredential, DeclaredRegion } from '../schemas/byok.ts';

/** A stored credential of the organization's own account at a provider. */
export interface StoredByok {
  id: string;
  seq: number;
  version: number;
  organization_id: string;
  workspace_id: string;
  provider: string;
  label: string;
  /** The encrypted credential. */
  sealed: string;
  name: string | null;
  disabled: boolean;
  is_fallback: boolean;
  /** Whether a call that it could not serve may fall back to the gateway's own accounts. */
  allow_shared_fallback: boolean;
  sort_order: number;
  allowed_models: string[] | null;
  allowed_api_key_hashes: string[] | null;
  allowed_user_ids: string[] | null;
  /** Whether the account keeps no data, as declared by its owner; null: as is known of its provider. */
  declared_zdr: boolean | null;
  /** Shown only; has no effect. */
  declared_region: string | null;
  /** No model may use the gateway's own account at this provider. */
  is_byok_only: boolean;
  created_at: string;
  updated_at: string | null;
}

/** A credential shorter than this is not shown at all: the hidden part would be short enough to guess. */
const SHOWN_CHARS_MIN = 16;

/** The displayable part of a credential: its first three and last three characters; of JSON, only that it is JSON. */
export function labelOfCredential(credential: string): string {
  if (credential.startsWith('{')) return 'JSON';
  if (credential.length < SHOWN_CHARS_MIN) return '***';
  return `${credential.slice(0, 3)}...${credential.slice(-3)}`;
}

/** Whether a text can be a credential: JSON, or a header value (RFC 9110, section 5.5) without spaces, which come from copying. */
export function isCredential(text: string): boolean {
  if (!text.startsWith('{')) return /^[\x21-\x7e]+$/.test(text);
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** The place that a credential is sealed for: copied into another row, it does not open. */
export function placeOf({ organization_id, id }: Pick<StoredByok, 'organization_id' | 'id'>): string {
  return `byok ${organization_id} ${id}`;
}

/** The public record: everything but the credential. */
export function describeByok(stored: StoredByok): ByokCredential {
  return {
    id: stored.id,
    provider: stored.provider,
    label: stored.label,
    name: stored.name,
    disabled: stored.disabled,
    is_fallback: stored.is_fallback,
    allow_shared_fallback: stored.allow_shared_fallback,
    is_required: !stored.is_fallback && !stored.allow_shared_fallback,
    is_byok_only: stored.is_byok_only,
    sort_order: stored.sort_order,
    allowed_models: stored.allowed_models,
    allowed_api_key_hashes: stored.allowed_api_key_hashes,
    allowed_user_ids: stored.allowed_user_ids,
    declared_zdr: stored.declared_zdr,
    // The column's CHECK allows only the values of the cast.
    declared_region: stored.declared_region as DeclaredRegion | null,
    workspace_id: stored.workspace_id,
    created_at: stored.created_at,
    updated_at: stored.updated_at,
  };
}
