import type { BoundGuardrail } from '../../schemas/guardrail.ts';
import type { ProviderPreferences } from '../../schemas/inner.ts';
import type { Stage } from '../../schemas/routing-metadata.ts';

/** What of a guardrail says which models and endpoints may be used. */
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

/** What restrictions look at of an endpoint. */
export interface RestrictedEndpoint {
  /** Of its model: `author/slug`. */
  canonical_slug: string;
  provider_slug: string;
  /** Whether its provider is known to keep no data. */
  keeps_nothing: boolean;
}

/** The reasons that the public service tells, and those that follow from them. */
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
 * Why guardrails that hold together leave an endpoint out; undefined: they do not. Each must allow it: what they allow is
 * intersected, what they ignore and where they demand zero retention is united. Pure.
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
    if (!keeps_nothing && wantsZdr(guardrail, canonical_slug)) return leftOut('zdr-violation-by-guardrail');
  }
  return undefined;
}

/**
 * What guardrails did that leave out every one of these endpoints, as stages of the pipeline: one for each guardrail, with how many
 * endpoints it left out and why. Pure.
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
    // A guardrail may hold in several ways; it is named once.
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

/** Whether a guardrail demands zero retention for models of this author; what a vendor's field leaves open, `enforce_zdr` says. */
function wantsZdr(guardrail: Restriction, canonicalSlug: string): boolean {
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

/** Why nothing may be kept for a client of its request or answer; undefined: it may be. */
export function zeroRetention(
  preferences: Pick<ProviderPreferences, 'zdr' | 'data_collection'> | null | undefined,
  guardrails: readonly Restriction[],
): string | undefined {
  if (preferences?.zdr === true) return 'provider.zdr';
  if (preferences?.data_collection === 'deny') return 'provider.data_collection: deny';
  return enforcedZeroRetention(guardrails);
}

/** The same for what the workspace wants kept: its administrators' guardrails decide, and no request does. */
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
