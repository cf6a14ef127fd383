import type { Hold } from '../../ledger/leases/hold.ts';
import type { RecordedEndpoint, RoutingRecord } from '../../ledger/records.ts';
import type { Plan } from '../../routing/plan.ts';
import type { TokenClasses } from '../../schemas/inner.ts';
import type { Call } from '../call.ts';
import { expectedCost, expectedTokens } from '../plan/expected-cost.ts';

/** Of a plan, and of what was left out of it, so many endpoints are kept in a generation's record. */
export const ROUTING_RECORDED_MAX = 8;

/** How a call was routed, in the short form of its generation's record. Endpoints of `model` are named by their tag alone. */
export function routingRecord(
  { call, plan, hold }: { call: Call; plan: Plan; hold: Hold },
  model: string,
  usage: TokenClasses | null,
): RoutingRecord {
  const expected = expectedTokens(call, usage);
  const planned: RecordedEndpoint[] = [];
  for (const candidate of plan.attempts) {
    if (planned.length === ROUTING_RECORDED_MAX) break;
    if (candidate.excluded !== undefined) continue;
    const { endpoint, weight, because, own, tier } = candidate;
    const entry: RecordedEndpoint = { id: endpoint.model === model ? endpoint.tag : endpoint.id };
    if (tier !== undefined) entry.tier = tier;
    if (own !== undefined) entry.byok_id = own.id;
    if (weight !== undefined) entry.weight = Math.round(weight * 1000) / 1000;
    if (because !== undefined && because.length > 0) entry.because = because;
    const costNano = expected && expectedCost(candidate, expected, call.request.service_tier);
    if (costNano !== undefined) entry.expected_nano = costNano;
    planned.push(entry);
  }
  const record: RoutingRecord = { strategy: plan.strategy, total: plan.candidates.length, plan: planned };
  if (plan.sort !== undefined) record.sort = plan.sort;
  let excludedCount = 0;
  for (const { excluded, endpoint } of plan.candidates) {
    if (excluded === undefined) continue;
    if (excludedCount === ROUTING_RECORDED_MAX) break;
    excludedCount += 1;
    record.excluded ??= {};
    record.excluded[excluded.step] ??= [];
    record.excluded[excluded.step]?.push(endpoint.model === model ? endpoint.tag : endpoint.id);
  }
  for (const { budget, granted } of hold.lines) {
    if (granted <= 0) continue;
    record.hold_nano = hold.granted_nano;
    const counted = `${budget.scope} ${budget.reset_interval}`;
    if (record.held_in === undefined) record.held_in = [counted];
    else record.held_in.push(counted);
  }
  if (call.stages.length > 0) record.pipeline = call.stages;
  return record;
}
