import { isCredential } from '../../accounts/byok.ts';
import type { Catalog } from '../../catalog/catalog.ts';
import { GatewayError } from '../../errors.ts';
import type { UpdateByokBody } from '../../schemas/byok.ts';
import { isStorable } from '../../schemas/text.ts';
import type { Queries } from '../../storage/database.ts';
import { keyStore } from '../../storage/keys.ts';
import { organizationStore } from '../../storage/organizations.ts';

/** The settings of a credential as a body gives them, checked; what the body leaves out is absent. */
export type CheckedSettings = Omit<UpdateByokBody, 'key'>;

/** Checks what a body says of a credential: models, keys and users that exist. Models come back as canonical slugs. */
export async function checkSettings(
  body: UpdateByokBody,
  { tx, organization_id, catalog }: { tx: Queries; organization_id: string; catalog: Catalog },
): Promise<CheckedSettings> {
  const { key, ...settings } = body;
  for (const [field, text] of [
    ['key', key],
    ['name', settings.name],
  ] as const) {
    if (!isStorable(text ?? '')) throw new GatewayError(400, `${field} must be text without NUL characters`);
  }
  if (key !== undefined && !isCredential(key)) {
    throw new GatewayError(400, 'key must be JSON text, or visible ASCII characters without spaces or line breaks');
  }
  const { allowed_models, allowed_api_key_hashes, allowed_user_ids } = settings;
  for (const [index, hash] of (allowed_api_key_hashes ?? []).entries()) {
    const found = isStorable(hash) ? await keyStore(tx).findByHash(hash) : undefined;
    if (found?.organization_id !== organization_id || found.is_management) {
      throw new GatewayError(
        400,
        `allowed_api_key_hashes[${index}] is not the hash of an API key of this organization`,
      );
    }
  }
  for (const [index, user_id] of (allowed_user_ids ?? []).entries()) {
    const member = isStorable(user_id) && (await organizationStore(tx).findMember({ organization_id, user_id }));
    if (!member) throw new GatewayError(400, `allowed_user_ids[${index}] is not a member of this organization`);
  }
  return {
    ...settings,
    ...(allowed_models
      ? { allowed_models: [...new Set(allowed_models.map((id, index) => canonicalSlug(catalog, id, index)))] }
      : {}),
    ...(allowed_api_key_hashes ? { allowed_api_key_hashes: [...new Set(allowed_api_key_hashes)] } : {}),
    ...(allowed_user_ids ? { allowed_user_ids: [...new Set(allowed_user_ids)] } : {}),
  };
}

function canonicalSlug(catalog: Catalog, id: string, index: number): string {
  const model = catalog.find(id);
  if (model === undefined) throw new GatewayError(400, `allowed_models[${index}] is not a model that is served here`);
  return model.canonical_slug;
}
