import type { Hold } from '../../ledger/leases/hold.ts';
import type { RecordedEndpoint, RoutingRecord } from '../../ledger/records.ts';
import { limits } from '../../limits.ts';
import type { Candidate, Plan } from '../../routing/plan.ts';
import type { TokenClasses } from '../../schemas/inner.ts';
import type { Call } from '../call.ts';
import { type ExpectedTokens, expectedCost, expectedTokens } from '../plan/expected-cost.ts';

/** An endpoint's id without the model, where that is the one that the record names anyway. */
function shortId({ endpoint }: Candidate, model: string): string {
  return endpoint.model === model ? endpoint.tag : endpoint.id;
}

function recorded(candidate: Candidate, call: Call, model: string, expected: ExpectedTokens | undefined) {
  const { weight, because, own, tier } = candidate;
  const told: RecordedEndpoint = { id: shortId(candidate, model) };
  if (tier !== undefined) told.tier = tier;
  if (own !== undefined) told.byok_id = own.id;
  if (weight !== undefined) told.weight = Math.round(weight * 1000) / 1000;
  if (because !== undefined && because.length > 0) told.because = because;
  const cost_nano = expected && expectedCost(candidate, expected, call.request.service_tier);
  if (cost_nano !== undefined) told.expected_nano = cost_nano;
  return told;
}

/** Who was left out at which step, as far as a record has room. */
function exclusions(candidates: readonly Candidate[], model: string): RoutingRecord['excluded'] {
  let excluded: Record<string, string[]> | undefined;
  let room: number = limits.routing_recorded_max;
  for (const candidate of candidates) {
    if (candidate.excluded === undefined) continue;
    if (room === 0) break;
    room -= 1;
    excluded ??= {};
    excluded[candidate.excluded.step] ??= [];
    excluded[candidate.excluded.step]?.push(shortId(candidate, model));
  }
  return excluded;
}

/** How a call was routed, as short as its generation's record keeps it. */
export function routingRecord(
  { call, plan, hold }: { call: Call; plan: Plan; hold: Hold },
  model: string,
  usage: TokenClasses | null,
): RoutingRecord {
  const expected = expectedTokens(call, usage);
  const planned: RecordedEndpoint[] = [];
  for (const candidate of plan.attempts) {
    if (planned.length === limits.routing_recorded_max) break;
    if (candidate.excluded === undefined) planned.push(recorded(candidate, call, model, expected));
  }
  const told: RoutingRecord = { strategy: plan.strategy, total: plan.candidates.length, plan: planned };
  if (plan.sort !== undefined) told.sort = plan.sort;
  const excluded = exclusions(plan.candidates, model);
  if (excluded !== undefined) told.excluded = excluded;
  for (const { budget, granted } of hold.lines) {
    if (granted <= 0) continue;
    told.hold_nano = hold.granted_nano;
    const counted = `${budget.scope} ${budget.reset_interval}`;
    if (told.held_in === undefined) told.held_in = [counted];
    else told.held_in.push(counted);
  }
  if (call.stages.length > 0) told.pipeline = call.stages;
  return told;
}
