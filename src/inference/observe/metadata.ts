import { expiryWarnings } from '../../catalog/expiry.ts';
import type { Model } from '../../catalog/model.ts';
import type { RoutingRecord } from '../../ledger/records.ts';
import type { Report } from '../../providers/dialect.ts';
import { type OwnCredential, type ShownCredential, shownCredential } from '../../routing/own-credential.ts';
import { type Candidate, type Plan, tagOf } from '../../routing/plan.ts';
import type { TokenClasses } from '../../schemas/inner.ts';
import { toUsd } from '../../schemas/money.ts';
import { PUBLIC_NAME } from '../../schemas/routing-metadata.ts';
import type { AttemptFacts } from '../attempt/attempt-facts.ts';
import type { Call } from '../call.ts';
import { expectedCost, expectedTokens } from '../plan/expected-cost.ts';
import { reportInClientsWords } from '../prepare/client-fields.ts';

/** One attempt, as the routing metadata shows it. */
export interface ShownAttempt extends Partial<AttemptFacts> {
  provider: string;
  model: string;
  /** 0 when there was no answer at all. */
  status: number;
  is_byok: boolean;
  /** The organization's own credential that was used. */
  byok?: ShownCredential;
}

/** Whose credential an endpoint is called with: what may be shown of it. */
export function shownOwn(own: OwnCredential | undefined): Pick<ShownAttempt, 'is_byok' | 'byok'> {
  return own === undefined ? { is_byok: false } : { is_byok: true, byok: shownCredential(own) };
}

/** What routing metadata is made of. */
export interface RoutingFacts {
  call: Call;
  plan: Plan;
  requested: string;
  attempts: readonly ShownAttempt[];
  selected: Candidate | undefined;
  report: readonly Report[];
  /** What the call's record keeps; absent: it has none yet. */
  routing?: RoutingRecord | undefined;
  usage?: TokenClasses | null;
  /** A guardrail refused the call: nothing of it was to be tried. */
  is_refused?: boolean;
}

function holdOf(routing: RoutingRecord | undefined) {
  if (routing?.hold_nano === undefined) return null;
  return { amount: toUsd(routing.hold_nano), budgets: routing.held_in };
}

/** The models that a plan considered. */
function* modelsOf({ candidates }: Plan): Generator<Model> {
  for (const { model } of candidates) yield model;
}

/**
 * What the routing did, for clients that ask for it (`X-Gateway-Experimental-Metadata: enabled`). Names of the fields:
 * the public service's router metadata. Ours are `sort`, `routing_funnel`, `hold`, `adjusted_parameters`, `warnings`, and of endpoints
 * everything beyond provider, model and `selected`.
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
    warnings: expiryWarnings(modelsOf(plan), call.accepted_ms),
    ...(call.stages.length === 0 ? {} : { pipeline: call.stages }),
    ...(call.wants_public_metadata === true ? { [PUBLIC_NAME]: true } : {}),
  };
}
