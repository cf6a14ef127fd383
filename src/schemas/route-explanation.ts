import Type, { type Static, type TSchema } from 'typebox';
import { AdjustedParameter, ExpiryWarning, RoutedEndpoint } from './routing-metadata.ts';

const nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);

const Usd = (description: string) =>
  nullable(Type.Number({ description: `USD, exact to a billionth. ${description}` }));

const Refusal = Type.Object({
  code: Type.Integer(),
  message: Type.String(),
  metadata: nullable(Type.Object({}, { additionalProperties: true })),
});

const Budget = Type.Object(
  {
    scope: Type.Enum(['key', 'guardrail', 'workspace', 'organization']),
    label: Type.String(),
    limit: nullable(Type.Number()),
    spent: nullable(Type.Number({ description: 'In the current window.' })),
    available: nullable(Type.Number({ description: 'Neither spent nor reserved for other requests.' })),
    resets_at: nullable(Type.String()),
  },
  { description: 'The amounts of a workspace and of the organization are null: their keys may not read them.' },
);

const Hold = Type.Object(
  {
    amount: Type.Number({ description: 'The money that would be reserved; 0 if the request would be refused.' }),
    wanted: Type.Number({
      description: 'With the whole output bound, or with its first slice if `ledger.hold` is `sliced`.',
    }),
    least: Type.Number({ description: 'With the smallest output bound that is sent; below it: 402.' }),
    lowers_output: Type.Boolean({
      description: 'The budgets pay for less than the worst case, so that the output bound is lowered.',
    }),
    budgets: Type.Array(Budget, { description: 'Each of them must have this amount.' }),
  },
  { title: 'Hold' },
);

const Percentiles = nullable(
  Type.Object({ p50: Type.Number(), p75: Type.Number(), p90: Type.Number(), p99: Type.Number() }),
);
const percent = nullable(Type.Number());

const Health = Type.Object({
  cooling_down_until: nullable(Type.String()),
  had_recent_outage: Type.Boolean(),
  latency: Percentiles,
  throughput: Percentiles,
  uptime_last_5m: percent,
  uptime_last_30m: percent,
  uptime_last_1d: percent,
  tool_success: percent,
});

const ExplainedEndpoint = Type.Object(
  {
    position: Type.Integer({ description: 'From 1, in the order in which they would be tried.' }),
    ...RoutedEndpoint,
    weight: nullable(
      Type.Number({
        description: 'The chance of the first place among equal endpoints; null: nothing was drawn.',
      }),
    ),
    because: Type.Array(Type.String(), { description: 'The reasons for its position.' }),
    service_tier: nullable(Type.String()),
    refusal: nullable(Refusal),
    is_reached: Type.Boolean({ description: 'False: an endpoint before it would end the request.' }),
    output_tokens: nullable(Type.Integer({ description: 'The output bound that would be sent.' })),
    adjusted_parameters: Type.Array(AdjustedParameter),
    worst_case_cost: Usd(
      'Null: a price or the longest answer is not known, media would have to be fetched first, or the request is too long to encode it for every endpoint.',
    ),
    expected_cost: Usd(
      "The prompt by the gateway's count and an answer of `expected_completion_tokens`, nothing cached.",
    ),
    unfetched_media: Type.Integer({ description: 'The number of addresses that would be fetched for it.' }),
    hold: nullable(Hold),
    health: Health,
  },
  { title: 'ExplainedEndpoint' },
);

/** How a request would be routed, and why. */
export const RouteExplanation = Type.Object(
  {
    requested: Type.String({ description: 'The model or alias that the request names first.' }),
    models: Type.Array(Type.String(), { description: 'The models that the name stands for, in order.' }),
    names: Type.Array(Type.Object({ name: Type.String(), models: Type.Array(Type.String()) }), {
      description: 'What each name of the request stands for: variants, aliases and router models. Empty with a 404.',
    }),
    strategy: Type.Enum(['direct', 'auto', 'free', 'latest', 'alias', 'fallback']),
    sort: nullable(Type.String({ description: 'Null: by a draw, weighted by price.' })),
    expected_prompt_tokens: Type.Integer(),
    expected_completion_tokens: Type.Integer(),
    endpoints: Type.Object({
      total: Type.Integer(),
      planned: Type.Array(ExplainedEndpoint),
      unplanned: Type.Array(Type.Object(RoutedEndpoint), {
        description: 'Allowed, but not in the plan: too many, or fallbacks are not allowed.',
      }),
      excluded: Type.Array(Type.Object({ ...RoutedEndpoint, step: Type.String(), reason: Type.String() })),
    }),
    routing_funnel: Type.Array(Type.Object({ step: Type.String(), endpoint_count: Type.Integer() })),
    adjusted_parameters: Type.Array(AdjustedParameter, { description: 'Changes that are made for every endpoint.' }),
    warnings: Type.Array(ExpiryWarning, { description: 'Warnings about models that may be removed.' }),
    hold: nullable(Hold),
    error: nullable(Refusal),
  },
  { title: 'RouteExplanation' },
);
export type RouteExplanation = Static<typeof RouteExplanation>;
