import type { Model } from '../../catalog/model.ts';
import { type RestrictedEndpoint, restricted } from '../../guardrails/policy/restrictions.ts';
import { keepsNothing } from '../../routing/candidate.ts';
import type { Candidate } from '../../routing/plan.ts';
import type { Call } from '../call.ts';
import type { ModelSource } from './requested-models.ts';

type EndpointFacts = Pick<Candidate, 'model' | 'provider' | 'endpoint' | 'own'>;

/** Returns the reason why the guardrails of a caller exclude an endpoint. Undefined if they exclude none. */
export function restrictionOf({
  guardrails,
}: Call['principal']): ((candidate: EndpointFacts) => string | undefined) | undefined {
  if (guardrails.length === 0) return undefined;
  return (candidate) => {
    const restriction = restricted(guardrails, restrictedFacts(candidate));
    return restriction && `a guardrail excludes it (${restriction.reason})`;
  };
}

/** Whether the caller's guardrails allow an endpoint of the model; undefined if they exclude none. */
export function allowedBy(call: Call, catalog: ModelSource): ((model: Model) => boolean) | undefined {
  const restricts = restrictionOf(call.principal);
  if (restricts === undefined) return undefined;
  return (model) =>
    model.endpoints.some((endpoint) => {
      const provider = catalog.provider(endpoint.provider);
      return provider !== undefined && restricts({ model, provider, endpoint }) === undefined;
    });
}

/** The facts of an endpoint that guardrails restrict. */
export function restrictedFacts(candidate: EndpointFacts): RestrictedEndpoint {
  return {
    canonical_slug: candidate.model.canonical_slug,
    provider_slug: candidate.provider.slug,
    keeps_nothing: keepsNothing(candidate),
  };
}
