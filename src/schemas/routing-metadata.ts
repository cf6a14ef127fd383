import Type, { type TSchema } from 'typebox';
import type { BoundGuardrail } from './guardrail.ts';
import type { JsonObject } from './json.ts';

const nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);

/** What a guardrail or a plugin did during a call (public service's router metadata, `pipeline`). */
export interface Stage {
  type: 'guardrail' | 'plugin' | 'server_tools' | 'response_healing' | 'context_compression';
  name: string;
  summary?: string;
  data?: JsonObject;
  cost_usd?: number;
  guardrail_id?: string;
  guardrail_scope?: BoundGuardrail['scope'];
}

/** Documents a stage. */
export const PipelineStage = Type.Object(
  {
    type: Type.Enum(['guardrail', 'plugin', 'server_tools', 'response_healing', 'context_compression'] as const),
    name: Type.String(),
    summary: Type.Optional(Type.String()),
    data: Type.Optional(Type.Object({}, { additionalProperties: true })),
    cost_usd: Type.Optional(Type.Number()),
    guardrail_id: Type.Optional(Type.String()),
    guardrail_scope: Type.Optional(Type.Enum(['api-key', 'member', 'workspace'] as const)),
  },
  { title: 'PipelineStage' },
);

/** A change of the request for an endpoint. */
export const AdjustedParameter = Type.Object({
  kind: Type.Enum(['dropped', 'clamped', 'changed']),
  field: Type.String(),
  reason: Type.String(),
});

/** A model of the request that will be removed soon. */
export const ExpiryWarning = Type.Object({
  type: Type.Enum(['model_expires', 'model_expired']),
  model: Type.String(),
  expiration_date: Type.String(),
  message: Type.String(),
});

/** The endpoint, and the owner of its credential. */
export const RoutedEndpoint = {
  endpoint_id: Type.String(),
  provider: Type.String(),
  model: Type.String(),
  tag: Type.String({ description: 'Its name for `provider.order`, `only` and `ignore`.' }),
  is_byok: Type.Boolean({ description: "Called with a credential of the organization's own." }),
  byok: Type.Optional(Type.Object({ id: Type.String(), label: Type.String(), name: nullable(Type.String()) })),
};

const Attempt = Type.Object({
  provider: Type.String(),
  model: Type.String(),
  endpoint_id: Type.Optional(Type.String()),
  status: Type.Integer({ description: '0: there was no answer, or it broke off or was not valid.' }),
  is_byok: Type.Boolean(),
  byok: RoutedEndpoint.byok,
  wait: Type.Optional(Type.Integer({ description: 'Milliseconds before sending.' })),
  latency: Type.Optional(
    nullable(
      Type.Integer({ description: 'Milliseconds from sending to the first part of the answer, or to the failure.' }),
    ),
  ),
  tokens_prompt: Type.Optional(nullable(Type.Integer())),
  tokens_completion: Type.Optional(nullable(Type.Integer())),
  cost: Type.Optional(nullable(Type.Number({ description: 'USD; null: a price is not known.' }))),
  estimated: Type.Optional(Type.Boolean({ description: 'Tokens or cost were counted or estimated by the gateway.' })),
  failure: Type.Optional(
    nullable(Type.String({ description: 'Why the gateway moved on; null: the endpoint answered.' })),
  ),
  continues: Type.Optional(Type.Boolean({ description: 'It continued the text of the attempt before it.' })),
  hedges: Type.Optional(Type.Boolean({ description: 'It was sent while the attempt before it was still running.' })),
  step: Type.Optional(Type.Integer({ description: 'The step of an answer with tools of the gateway, from 2 on.' })),
});

/** Marks routing metadata that the client requested by the public service's header. Never serialized: JSON has no symbols. */
export const PUBLIC_NAME: unique symbol = Symbol('openrouter_metadata');

/** The members of an answer or error that contain its routing: under the contract's name, and under the public service's if the client used that. */
export function metadataMembers(metadata: Readonly<Record<string | symbol, unknown>> | null | undefined): JsonObject {
  if (metadata == null) return {};
  const shown = metadata as JsonObject;
  return PUBLIC_NAME in metadata
    ? { gateway_metadata: shown, openrouter_metadata: shown }
    : { gateway_metadata: shown };
}

/** The same members as JSON text, each after a comma. */
export function metadataJson(metadata: Parameters<typeof metadataMembers>[0]): string {
  const json = JSON.stringify(metadataMembers(metadata));
  return json === '{}' ? '' : `,${json.slice(1, -1)}`;
}

/** Documents `gateway_metadata`: how a call was routed. */
export const RoutingMetadata = Type.Object(
  {
    requested: Type.String({ description: 'The model or alias that the request names first.' }),
    strategy: Type.Enum(['direct', 'auto', 'free', 'latest', 'alias', 'fallback']),
    region: Type.Null(),
    summary: Type.String(),
    attempt: Type.Integer({ description: 'How many attempts were made.' }),
    is_byok: Type.Boolean(),
    sort: nullable(Type.String({ description: 'Null: by a draw, weighted by price.' })),
    endpoints: Type.Object({
      total: Type.Integer(),
      available: Type.Array(
        Type.Object({
          ...RoutedEndpoint,
          selected: Type.Boolean({ description: 'It answered.' }),
          position: nullable(
            Type.Integer({ description: 'Position in the plan, from 1; null: allowed, but not in the plan.' }),
          ),
          weight: nullable(Type.Number({ description: 'Its chance of the first place in the draw.' })),
          because: Type.Array(Type.String(), { description: 'The reasons for its position.' }),
          expected_cost: nullable(Type.Number({ description: 'USD.' })),
        }),
      ),
      excluded: Type.Array(Type.Object({ ...RoutedEndpoint, step: Type.String(), reason: Type.String() })),
    }),
    routing_funnel: Type.Array(Type.Object({ step: Type.String(), endpoint_count: Type.Integer() })),
    hold: nullable(
      Type.Object(
        {
          amount: Type.Number({ description: 'USD.' }),
          budgets: Type.Array(Type.String({ description: 'Scope and interval: `key never`.' })),
        },
        { description: 'The money reserved for the last attempt. Null: no budget counted it.' },
      ),
    ),
    attempts: Type.Optional(Type.Array(Attempt, { description: 'Absent if a guardrail refused the call.' })),
    adjusted_parameters: Type.Array(AdjustedParameter),
    warnings: Type.Array(ExpiryWarning),
    pipeline: Type.Optional(
      Type.Array(PipelineStage, {
        description: 'The actions of guardrails and plugins; only those that did something.',
      }),
    ),
  },
  {
    title: 'RoutingMetadata',
    additionalProperties: true,
    description:
      'Only with the header `X-Gateway-Experimental-Metadata: enabled`. With `X-OpenRouter-Metadata: enabled` it is also in `openrouter_metadata`.',
  },
);
