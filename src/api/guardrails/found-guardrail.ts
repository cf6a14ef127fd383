import type { Catalog } from '../../catalog/catalog.ts';
import { GatewayError } from '../../errors.ts';
import type { Names, StoredGuardrail } from '../../guardrails/policy/guardrail.ts';
import type { GuardrailId } from '../../storage/guardrails.ts';

/** What `ask` finds under an id of the caller's organization, or 404. */
export async function foundGuardrail(
  which: GuardrailId,
  ask: (which: GuardrailId) => Promise<StoredGuardrail | undefined>,
): Promise<StoredGuardrail> {
  const stored = await ask(which);
  if (stored === undefined) throw new GatewayError(404, 'Guardrail not found');
  return stored;
}

/** Where guardrails look names up. */
export interface NameSources {
  /** With the models of providers that are on for those alone who bring a credential: guardrails hold for these as well. */
  wholeCatalog: () => Catalog;
  providerSlug: (slugOrName: string) => string | undefined;
}

/** Models as the catalog knows them now. Names that were stored stay when a model leaves it. */
export function namesOf({ wholeCatalog, providerSlug }: NameSources): Names {
  return { model: (name) => wholeCatalog().find(name)?.canonical_slug, provider: providerSlug };
}
