import { expiryWarnings } from '../../catalog/expiry.ts';
import type { RoutingRecord } from '../../ledger/records.ts';
import type { Report } from '../../providers/dialect.ts';
import { type OwnCredential, type ShownCredential, shownCredential } from '../../routing/own-credential.ts';
import { type Candidate, type Plan, tagOf } from '../../routing/plan.ts';
import type { TokenClasses } from '../../schemas/inner.ts';
import { toUsd } from '../../schemas/money.ts';
import { PUBLIC_NAME } from '../../schemas/routing-metadata.ts';
import type { AttemptFacts } from '../attempt/attempt-facts.ts';
import type { Call } from '../call.ts';
import { expectedCost, expectedTokens } from '../money/generation.ts';
import { reportInClientsWords } from '../prepare/client-fields.ts';

/** An attempt in routing metadata. */
export interface ShownAttempt extends Partial<AttemptFacts> {
  provider: string;
  model: string;
  /** 0 if there was no answer. */
  status: number;
  is_byok: boolean;
  /** The organization's own credential that was used. */
  byok?: ShownCredential;
}

/** The public facts of the credential that an endpoint is called with. */
export function shownOwn(own: OwnCredential | undefined): Pick<ShownAttempt, 'is_byok' | 'byok'> {
  return own === undefined ? { is_byok: false } : { is_byok: true, byok: shownCredential(own) };
}

/** The facts that routing metadata shows. */
export interface RoutingFacts {
  call: Call;
  plan: Plan;
  requested: string;
  attempts: readonly ShownAttempt[];
  selected: Candidate | undefined;
  report: readonly Report[];
  /** The routing of the call's record; undefined if it has none yet. */
  routing?: RoutingRecord | undefined;
  usage?: TokenClasses | null;
  /** A guardrail refused the call: it has no attempts. */
  is_refused?: boolean;
}

function holdOf(routing: RoutingRecord | undefined) {
  if (routing?.hold_nano === undefined) return null;
  return { amount: toUsd(routing.hold_nano), budgets: routing.held_in };
}

/**
 * How a call was routed, for clients with `X-Gateway-Experimental-Metadata: enabled`. The names of the fields are those of the public
 * service's router metadata. The gateway adds `sort`, `routing_funnel`, `hold`, `adjusted_parameters`, `warnings`, and the fields of
 * endpoints beyond provider, model and `selected`.
 */
export function routingMetadata(facts: RoutingFacts): Record<string, unknown> {
  const { call, plan, selected, attempts } = facts;
  const expected = expectedTokens(call, facts.usage ?? null);
  const planned = plan.attempts.filter(({ excluded }) => excluded === undefined);
  const available = new Set([...planned, ...plan.candidates.filter(({ excluded }) => excluded === undefined)]);
  const shown = (candidate: Candidate) => ({
    provider: candidate.provider.name,
    model: candidate.model.id,
    endpoint_id: candidate.endpoint.id,
    tag: tagOf(candidate),
    ...shownOwn(candidate.own),
  });
  const costOf = (candidate: Candidate) => {
    const nano = expected && expectedCost(candidate, expected, call.request.service_tier);
    return nano === undefined ? null : toUsd(nano);
  };
  return {
    requested: facts.requested,
    strategy: plan.strategy,
    region: null,
    summary: `available=${available.size}${selected ? `, selected=${selected.provider.name}` : ''}`,
    attempt: attempts.length,
    is_byok: selected === undefined ? attempts.at(-1)?.is_byok === true : selected.own !== undefined,
    sort: plan.sort ?? null,
    endpoints: {
      total: plan.candidates.length,
      available: [...available].map((candidate, at) => ({
        ...shown(candidate),
        selected: candidate === selected,
        position: at < planned.length ? at + 1 : null,
        weight: candidate.weight ?? null,
        because: candidate.because ?? [],
        expected_cost: costOf(candidate),
      })),
      excluded: plan.candidates.flatMap((candidate) =>
        candidate.excluded ? [{ ...shown(candidate), ...candidate.excluded }] : [],
      ),
    },
    routing_funnel: plan.funnel,
    hold: holdOf(facts.routing),
    ...(facts.is_refused === true ? {} : { attempts }),
    adjusted_parameters: reportInClientsWords(facts.report, call),
    warnings: expiryWarnings(new Set(plan.candidates.map(({ model }) => model)), call.accepted_ms),
    ...(call.stages.length === 0 ? {} : { pipeline: call.stages }),
    ...(call.wants_public_metadata === true ? { [PUBLIC_NAME]: true } : {}),
  };
}
