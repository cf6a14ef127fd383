import { isShared } from '../../accounts/budget.ts';
import { expiryWarnings } from '../../catalog/expiry.ts';
import type { GatewayError } from '../../errors.ts';
import { shownOwn } from '../../inference/observe/metadata.ts';
import type { ExplainedAttempt, ExplainedHold, Explanation } from '../../inference/plan/explain.ts';
import { type Candidate, tagOf } from '../../routing/plan.ts';
import { toUsd } from '../../schemas/money.ts';
import type { RouteExplanation } from '../../schemas/route-explanation.ts';

type Planned = RouteExplanation['endpoints']['planned'][number];

function isoOf(atMs: number | undefined): string | null {
  return atMs === undefined ? null : new Date(atMs).toISOString();
}

function usdOf(nano: number | undefined): number | null {
  return nano === undefined ? null : toUsd(nano);
}

function describeEndpoint(candidate: Candidate) {
  const { endpoint, provider, model, own } = candidate;
  return {
    endpoint_id: endpoint.id,
    provider: provider.name,
    model: model.id,
    tag: tagOf(candidate),
    ...shownOwn(own),
  };
}

function describeRefusal(error: GatewayError | undefined): RouteExplanation['error'] {
  if (error === undefined) return null;
  return { code: error.status, message: error.message, metadata: error.metadata ?? null };
}

function describeHold(hold: ExplainedHold | undefined): RouteExplanation['hold'] {
  if (hold === undefined) return null;
  const { granted_nano, full_nano, least_nano, lines } = hold;
  return {
    amount: toUsd(granted_nano),
    wanted: toUsd(full_nano),
    least: toUsd(least_nano),
    lowers_output: granted_nano > 0 && granted_nano < full_nano,
    budgets: lines.map(describeBudget),
  };
}

/** Hides the amounts of shared budgets from callers who do not manage them, as `GET /credits` and workspace budgets do. */
function describeBudget({ budget, spent_nano, available_nano, resets_at }: ExplainedHold['lines'][number]) {
  const { scope, label, limit_nano } = budget;
  const isOwn = !isShared(budget);
  return {
    scope,
    label,
    limit: isOwn ? toUsd(limit_nano) : null,
    spent: isOwn ? toUsd(spent_nano) : null,
    available: isOwn ? toUsd(available_nano) : null,
    resets_at: isoOf(resets_at),
  };
}

function describeAttempt(attempt: ExplainedAttempt, index: number): Planned {
  const { candidate, health } = attempt;
  const { performance: known } = health;
  return {
    position: index + 1,
    ...describeEndpoint(candidate),
    weight: candidate.weight ?? null,
    because: [...(candidate.because ?? [])],
    service_tier: candidate.tier ?? null,
    refusal: describeRefusal(attempt.refusal),
    is_reached: attempt.is_reached,
    output_tokens: attempt.output_tokens ?? null,
    adjusted_parameters: [...attempt.report],
    worst_case_cost: usdOf(attempt.worst_case_nano),
    expected_cost: usdOf(attempt.expected_nano),
    unfetched_media: attempt.unfetched,
    hold: describeHold(attempt.hold),
    health: {
      cooling_down_until: health.cooling_until_ms === 0 ? null : isoOf(health.cooling_until_ms),
      had_recent_outage: health.had_outage,
      latency: known.latency_ms,
      throughput: known.throughput,
      uptime_last_5m: known.uptime_5m,
      uptime_last_30m: known.uptime_30m,
      uptime_last_1d: known.uptime_1d,
      tool_success: known.tool_success,
    },
  };
}

/** The public form of an explanation. */
export function describeExplanation(
  { requested, names, plan, report, expected, attempts, error }: Explanation,
  nowMs: number,
): RouteExplanation {
  const planned = new Set(attempts.map(({ candidate }) => candidate));
  const others = plan.candidates.filter((candidate) => !planned.has(candidate));
  const first = attempts.find(({ refusal, is_reached }) => is_reached && refusal === undefined) ?? attempts[0];
  return {
    requested,
    models: [...new Set(plan.candidates.map(({ model }) => model.id))],
    names: (names ?? []).map(({ name, models }) => ({ name, models: models.map(({ id }) => id) })),
    strategy: plan.strategy,
    sort: plan.sort ?? null,
    expected_prompt_tokens: expected?.prompt ?? 0,
    expected_completion_tokens: expected?.completion ?? 0,
    endpoints: {
      total: plan.candidates.length,
      planned: attempts.map(describeAttempt),
      unplanned: others.filter(({ excluded }) => excluded === undefined).map(describeEndpoint),
      excluded: others.flatMap((candidate) =>
        candidate.excluded === undefined ? [] : [{ ...describeEndpoint(candidate), ...candidate.excluded }],
      ),
    },
    routing_funnel: plan.funnel,
    adjusted_parameters: [...report],
    warnings: expiryWarnings(
      plan.candidates.map(({ model }) => model),
      nowMs,
    ),
    hold: describeHold(first?.hold),
    error: describeRefusal(error),
  };
}
