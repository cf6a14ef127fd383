import type { BoundGuardrail } from '../../schemas/guardrail.ts';
import type { ProviderPreferences } from '../../schemas/inner.ts';
import type { Stage } from '../../schemas/routing-metadata.ts';

/** The part of a guardrail that restricts models and endpoints. */
export type Restriction = Pick<
  BoundGuardrail,
  | 'id'
  | 'allowed_models'
  | 'ignored_models'
  | 'allowed_providers'
  | 'ignored_providers'
  | 'enforce_zdr'
  | 'enforce_zdr_anthropic'
  | 'enforce_zdr_openai'
  | 'enforce_zdr_google'
  | 'enforce_zdr_other'
  | 'enforce_zdr_xai'
>;

/** The facts of an endpoint that restrictions check. */
export interface RestrictedEndpoint {
  /** The canonical slug of its model: `author/slug`. */
  canonical_slug: string;
  provider_slug: string;
  /** Whether its provider is known to keep no data. */
  keeps_nothing: boolean;
}

/** Reasons of exclusion: those of the public API, and others in the same form. */
export const restrictionReasons = [
  'model-not-allowed-by-guardrail',
  'model-ignored-by-guardrail',
  'provider-not-allowed-by-guardrail',
  'provider-ignored-by-guardrail',
  'zdr-violation-by-guardrail',
] as const;

export interface Restricted {
  reason: (typeof restrictionReasons)[number];
  guardrail_id: string;
}

/**
 * Why guardrails exclude an endpoint. Undefined if they do not. Each guardrail must allow it: allow lists are
 * intersected, ignore lists and demands for zero retention are united. Pure.
 */
export function restricted(
  guardrails: readonly Restriction[],
  { canonical_slug, provider_slug, keeps_nothing }: RestrictedEndpoint,
): Restricted | undefined {
  for (const guardrail of guardrails) {
    const leftOut = (reason: Restricted['reason']) => ({ reason, guardrail_id: guardrail.id });
    if (guardrail.allowed_models?.includes(canonical_slug) === false) return leftOut('model-not-allowed-by-guardrail');
    if (guardrail.ignored_models?.includes(canonical_slug)) return leftOut('model-ignored-by-guardrail');
    if (guardrail.allowed_providers?.includes(provider_slug) === false) {
      return leftOut('provider-not-allowed-by-guardrail');
    }
    if (guardrail.ignored_providers?.includes(provider_slug)) return leftOut('provider-ignored-by-guardrail');
    if (!keeps_nothing && demandsZdr(guardrail, canonical_slug)) return leftOut('zdr-violation-by-guardrail');
  }
  return undefined;
}

/**
 * The exclusions of endpoints as pipeline stages: one for each guardrail, with the number
 * of endpoints and the reasons. Pure.
 */
export function restrictionStages(
  guardrails: readonly (Restriction & Pick<BoundGuardrail, 'scope'>)[],
  endpoints: Iterable<RestrictedEndpoint>,
): Stage[] {
  const counts = new Map<string, Map<string, number>>();
  for (const endpoint of endpoints) {
    const exclusion = restricted(guardrails, endpoint);
    if (exclusion === undefined) continue;
    const reasons = counts.get(exclusion.guardrail_id) ?? new Map<string, number>();
    counts.set(exclusion.guardrail_id, reasons.set(exclusion.reason, (reasons.get(exclusion.reason) ?? 0) + 1));
  }
  return guardrails.flatMap(({ id, scope }): Stage[] => {
    const reasons = counts.get(id);
    // A guardrail may apply in several ways. It is listed once.
    if (reasons === undefined || !counts.delete(id)) return [];
    const leftOut = [...reasons.values()].reduce((sum, count) => sum + count, 0);
    return [
      {
        type: 'guardrail',
        name: 'restrictions',
        guardrail_id: id,
        guardrail_scope: scope,
        summary: `Blocked: ${leftOut} ${leftOut === 1 ? 'endpoint' : 'endpoints'} excluded (${[...reasons.keys()].join(', ')})`,
        data: { action: 'blocked', counts: Object.fromEntries(reasons) },
      },
    ];
  });
}

/** Whether a guardrail demands zero retention for models of this author. `enforce_zdr` applies if the vendor's field is not set. */
export function demandsZdr(guardrail: Restriction, canonicalSlug: string): boolean {
  const fields: Readonly<Record<string, boolean | null>> = {
    anthropic: guardrail.enforce_zdr_anthropic,
    openai: guardrail.enforce_zdr_openai,
    google: guardrail.enforce_zdr_google,
    'x-ai': guardrail.enforce_zdr_xai ?? guardrail.enforce_zdr_other,
  };
  const author = canonicalSlug.slice(0, canonicalSlug.indexOf('/'));
  const field = Object.hasOwn(fields, author) ? fields[author] : guardrail.enforce_zdr_other;
  return field ?? guardrail.enforce_zdr ?? false;
}

/** The setting that forbids keeping a client's request and answer. Undefined if keeping is allowed. */
export function zeroRetention(
  preferences: Pick<ProviderPreferences, 'zdr' | 'data_collection'> | null | undefined,
  guardrails: readonly Restriction[],
): string | undefined {
  if (preferences?.zdr === true) return 'provider.zdr';
  if (preferences?.data_collection === 'deny') return 'provider.data_collection: deny';
  return enforcedZeroRetention(guardrails);
}

/** The same for logging of the workspace: only its administrators' guardrails decide, not the request. */
export function enforcedZeroRetention(guardrails: readonly Restriction[]): string | undefined {
  const isEnforced = guardrails.some((one) =>
    [
      one.enforce_zdr,
      one.enforce_zdr_anthropic,
      one.enforce_zdr_openai,
      one.enforce_zdr_google,
      one.enforce_zdr_other,
      one.enforce_zdr_xai,
    ].includes(true),
  );
  return isEnforced ? 'a guardrail of this key that enforces zero data retention' : undefined;
}
