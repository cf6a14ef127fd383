import type { ByokCredential, DeclaredRegion } from '../schemas/byok.ts';

/** A credential of the organization's own account at a provider, as it is stored. */
export interface StoredByok {
  id: string;
  seq: number;
  version: number;
  organization_id: string;
  workspace_id: string;
  provider: string;
  label: string;
  /** The credential itself, encrypted. */
  sealed: string;
  name: string | null;
  disabled: boolean;
  is_fallback: boolean;
  /** Whether a call that it could not serve may go on to the gateway's own accounts. */
  allow_shared_fallback: boolean;
  sort_order: number;
  allowed_models: string[] | null;
  allowed_api_key_hashes: string[] | null;
  allowed_user_ids: string[] | null;
  /** Whether the account keeps nothing, as its owner says; null: as is known of its provider. */
  declared_zdr: boolean | null;
  /** Told, and nothing else. */
  declared_region: string | null;
  /** No model goes to the gateway's own account at this provider. */
  is_byok_only: boolean;
  created_at: string;
  updated_at: string | null;
}

/** Of a credential shorter than this, nothing is shown: what is left would be too little to guess. */
const SHOWN_CHARS_MIN = 16;

/** What may be shown of a credential: its first three and last three characters, of a JSON text only that it is one. */
export function labelOfCredential(credential: string): string {
  if (credential.startsWith('{')) return 'JSON';
  if (credential.length < SHOWN_CHARS_MIN) return '***';
  return `${credential.slice(0, 3)}...${credential.slice(-3)}`;
}

/** Whether a text can be a credential: JSON, or what the value of a header can carry (RFC 9110, section 5.5; no spaces: they come from copying). */
export function isCredential(text: string): boolean {
  if (!text.startsWith('{')) return /^[\x21-\x7e]+$/.test(text);
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** Where a credential is sealed to: a row that was copied over another does not open. */
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
    // The column's CHECK names the values that TypeScript cannot know.
    declared_region: stored.declared_region as DeclaredRegion | null,
    workspace_id: stored.workspace_id,
    created_at: stored.created_at,
    updated_at: stored.updated_at,
  };
}
