import type { Static } from 'typebox';
import type { GenerationRecord, RoutingRecord } from '../../ledger/records.ts';
import type { Generation } from '../../schemas/generation.ts';
import { toUsd } from '../../schemas/money.ts';

/** Whether the gateway chose the model instead of the client. */
export function isRouter(routing: RoutingRecord | undefined): boolean {
  return routing?.strategy === 'auto' || routing?.strategy === 'free';
}

/** How a generation was routed, as far as its record states. */
export function describeRouting(record: GenerationRecord): Static<typeof Generation>['routing'] {
  const { routing, model, endpoint_id, is_byok, outcome } = record;
  if (routing === undefined) return null;
  const { strategy, sort, total, plan, excluded, hold_nano, held_in, pipeline } = routing;
  const idOf = (id: string) => (id.includes('|') ? id : `${id}|${model}`);
  const chosen = plan.find(({ id, byok_id }) => idOf(id) === endpoint_id && (byok_id !== undefined) === is_byok);
  return {
    strategy,
    sort: sort ?? null,
    endpoints: {
      total,
      planned: plan.map((entry) => ({
        endpoint_id: idOf(entry.id),
        service_tier: entry.tier ?? null,
        byok_id: entry.byok_id ?? null,
        weight: entry.weight ?? null,
        because: [...(entry.because ?? [])],
        expected_cost: entry.expected_nano === undefined ? null : toUsd(entry.expected_nano),
        selected: outcome === 'completed' && entry === chosen,
      })),
      excluded: Object.entries(excluded ?? {}).flatMap(([step, ids]) =>
        ids.map((id) => ({ endpoint_id: idOf(id), step })),
      ),
    },
    hold: hold_nano === undefined ? null : { amount: toUsd(hold_nano), budgets: held_in ?? [] },
    pipeline: [...(pipeline ?? [])],
  };
}
