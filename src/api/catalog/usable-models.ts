import type { Catalog } from '../../catalog/catalog.ts';
import type { Endpoint, Model } from '../../catalog/model.ts';
import { type Restriction, restricted, restrictionReasons } from '../../guardrails/policy/restrictions.ts';
import { type Candidate, keepsNothing } from '../../routing/candidate.ts';
import { createHealth } from '../../routing/health.ts';
import type { CredentialUser, OwnCredential } from '../../routing/own-credential.ts';
import { NoEndpoint, plan } from '../../routing/plan.ts';

export const exclusionReasons = [
  ...restrictionReasons,
  /** The gateway has no credential for it, and neither has the workspace. */
  'own-credential-required',
  /** Excluded by routing; the detail states the reason. */
  'no-endpoint',
] as const;

/** A reason why endpoints of a model may not be used. */
export interface Exclusion {
  reason: (typeof exclusionReasons)[number];
  detail: string;
  guardrail_id: string | null;
  /** Tags of the endpoints. */
  endpoints: string[];
}

/** The caller, and the rules that apply. */
export interface Caller {
  guardrails: readonly Restriction[];
  own: readonly OwnCredential[];
  user: CredentialUser;
  allow_unpriced: boolean;
}

/** The endpoints of a model that a caller may use, and why not the others. */
export interface Usable {
  model: Model;
  endpoints: readonly Endpoint[];
  excluded: readonly Exclusion[];
}

/** Nothing is sent, so nothing fails. */
const health = createHealth();

/** The plainest request: what its plan excludes, every plan excludes. */
const request = { messages: [{ role: 'user' as const, content: '' }] };

/** The endpoints of a model that a caller may use, determined by planning a request to it. Pure. */
export function usable(model: Model, catalog: Catalog, { guardrails, own, user, allow_unpriced }: Caller): Usable {
  const refused = new Map<Candidate, Omit<Exclusion, 'endpoints'>>();
  const refuses = (candidate: Candidate) => {
    const restriction = restricted(guardrails, {
      canonical_slug: model.canonical_slug,
      provider_slug: candidate.provider.slug,
      keeps_nothing: keepsNothing(candidate),
    });
    if (restriction === undefined) return undefined;
    const detail = `a guardrail excludes it (${restriction.reason})`;
    refused.set(candidate, { ...restriction, detail });
    return detail;
  };
  const considered = candidatesOf(model, { catalog, own, user, allow_unpriced, refuses });
  const open = new Set(considered.flatMap(({ endpoint, excluded }) => (isOpen(excluded) ? [endpoint] : [])));
  const reasons = model.endpoints
    .filter((endpoint) => !open.has(endpoint))
    .flatMap((endpoint) => {
      const candidates = considered.filter((candidate) => candidate.endpoint === endpoint);
      if (candidates.length === 0) return [{ ...NO_CREDENTIAL, endpoints: [endpoint.tag] }];
      return candidates.map((candidate) => ({
        ...(refused.get(candidate) ?? { ...NO_ENDPOINT, detail: candidate.excluded?.reason ?? '' }),
        endpoints: [endpoint.tag],
      }));
    });
  return {
    model,
    endpoints: model.endpoints.filter((endpoint) => open.has(endpoint)),
    excluded: together(reasons),
  };
}

const NO_ENDPOINT = { reason: 'no-endpoint', guardrail_id: null } as const;
const NO_CREDENTIAL = {
  reason: 'own-credential-required',
  detail: 'the gateway has no credential for its provider, and the workspace has none that this key may use',
  guardrail_id: null,
} as const;

/** Whether a candidate is usable, also if it is only not tried because others precede it. */
function isOpen(excluded: Candidate['excluded']): boolean {
  return excluded === undefined || excluded.step === 'Limit Attempts';
}

function candidatesOf(
  model: Model,
  {
    catalog,
    own,
    user,
    allow_unpriced,
    refuses,
  }: Omit<Caller, 'guardrails'> & {
    catalog: Catalog;
    refuses(candidate: Candidate): string | undefined;
  },
): readonly Candidate[] {
  try {
    return plan(request, {
      models: [model],
      provider: (slug) => catalog.provider(slug),
      health,
      now_ms: 0,
      draw: 0,
      allow_unpriced,
      own,
      caller: user,
      refuses,
    }).candidates;
  } catch (error) {
    if (error instanceof NoEndpoint) return error.plan.candidates;
    throw error;
  }
}

/** One entry for each reason, with all its endpoints. */
function together(exclusions: readonly Exclusion[]): Exclusion[] {
  const groups = Map.groupBy(exclusions, ({ reason, detail, guardrail_id }) => `${reason} ${guardrail_id} ${detail}`);
  return [...groups.values()].flatMap(([first, ...others]) =>
    first === undefined
      ? []
      : { ...first, endpoints: [...new Set([first, ...others].flatMap(({ endpoints }) => endpoints))] },
  );
}
