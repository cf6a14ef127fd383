import type { Catalog } from '../../catalog/catalog.ts';
import { GatewayError } from '../../errors.ts';
import type { Names, StoredGuardrail } from '../../guardrails/policy/guardrail.ts';
import type { GuardrailId } from '../../storage/guardrails.ts';

/** The guardrail that `find` returns for an id of the caller's organization. Throws a 404 if there is none. */
export async function requireGuardrail(
  which: GuardrailId,
  find: (which: GuardrailId) => Promise<StoredGuardrail | undefined>,
): Promise<StoredGuardrail> {
  const stored = await find(which);
  if (stored === undefined) throw new GatewayError(404, 'Guardrail not found');
  return stored;
}

/** The data by which guardrails resolve names. */
export interface NameSources {
  /** Includes models of providers that are enabled only for callers with their own credential, since guardrails apply to these too. */
  wholeCatalog: () => Catalog;
  providerSlug: (slugOrName: string) => string | undefined;
}

/** Resolves models and providers by the current catalog. Stored names stay when a model leaves it. */
export function namesOf({ wholeCatalog, providerSlug }: NameSources): Names {
  return { model: (name) => wholeCatalog().find(name)?.canonical_slug, provider: providerSlug };
}
