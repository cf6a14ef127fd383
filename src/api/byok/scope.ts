import { isCredential, type StoredByok } from '../../accounts/byok.ts';
import type { Catalog } from '../../catalog/catalog.ts';
import { invalidField } from '../../errors.ts';
import type { UpdateByokBody } from '../../schemas/byok.ts';
import { resolveEntries } from '../../schemas/entries.ts';
import { checkStorable, isStorable } from '../../schemas/text.ts';
import type { Queries } from '../../storage/database.ts';
import { keyStore } from '../../storage/keys.ts';
import { organizationStore } from '../../storage/organizations.ts';

/** The checked settings of a credential. Fields that the body omits are not set. */
export type CheckedSettings = Omit<UpdateByokBody, 'key' | 'is_required'>;

type ListField = 'allowed_models' | 'allowed_api_key_hashes' | 'allowed_user_ids';

/** The data by which names are resolved, and the credential that the body changes. */
interface Known {
  tx: Queries;
  organization_id: string;
  catalog: Catalog;
  before?: Pick<StoredByok, ListField | 'is_fallback' | 'is_byok_only'>;
}

/** Checks the settings in a body: models, keys and users must exist, or be in the record already. Models are returned as canonical slugs. */
export async function checkSettings(
  body: UpdateByokBody,
  { tx, organization_id, catalog, before }: Known,
): Promise<CheckedSettings> {
  const { key, is_required, ...settings } = body;
  checkStorable({ key, name: settings.name });
  if (key !== undefined && !isCredential(key)) {
    throw invalidField('key', 'must be JSON text, or visible ASCII characters without spaces or line breaks');
  }
  const keys = new Set<string>();
  for (const hash of settings.allowed_api_key_hashes ?? []) {
    const key = isStorable(hash) ? await keyStore(tx).findByHash(hash) : undefined;
    if (key?.organization_id === organization_id && !key.is_management) keys.add(hash);
  }
  const users = new Set<string>();
  for (const userId of settings.allowed_user_ids ?? []) {
    const member = isStorable(userId) && (await organizationStore(tx).lockMember({ organization_id, user_id: userId }));
    if (member) users.add(userId);
  }
  const checked = (field: ListField, resolve: (entry: string) => string | undefined, what: string) => {
    const entries = settings[field];
    return entries ? { [field]: resolveEntries({ field, entries, stored: before?.[field], resolve, what }) } : {};
  };
  const among = (known: ReadonlySet<string>) => (entry: string) => (known.has(entry) ? entry : undefined);
  return {
    ...settings,
    ...sharedFallback({ ...before, ...body }, body),
    ...checked('allowed_api_key_hashes', among(keys), 'the hash of an API key of this organization'),
    ...checked('allowed_user_ids', among(users), 'a member of this organization'),
    ...checked('allowed_models', (id) => catalog.find(id)?.canonical_slug, 'a model of this gateway'),
  };
}

/** Whether calls may use the gateway's own accounts, by either of two fields; a 400 if they contradict each other. */
function sharedFallback(
  { is_fallback, is_byok_only }: Pick<UpdateByokBody, 'is_fallback' | 'is_byok_only'>,
  { is_required, allow_shared_fallback }: Pick<UpdateByokBody, 'is_required' | 'allow_shared_fallback'>,
): Pick<UpdateByokBody, 'allow_shared_fallback'> {
  if (is_byok_only === true && is_fallback === true) {
    throw invalidField(
      'is_byok_only',
      'must not be true together with is_fallback: nothing would be used before the credential',
    );
  }
  if (is_required === undefined) return {};
  if (is_required && is_fallback === true) {
    throw invalidField('is_required', 'must not be true together with is_fallback: shared endpoints are used first');
  }
  if (is_required === allow_shared_fallback) {
    throw invalidField(
      'is_required',
      'must not be the same as allow_shared_fallback: each is the opposite of the other',
    );
  }
  return { allow_shared_fallback: !is_required };
}
