import Type, { type Static, type TSchema } from 'typebox';
import { PipelineStage } from './routing-metadata.ts';

const nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);
const count = nullable(Type.Integer());

const Decimal = (description: string) => Type.String({ description: `USD as an exact decimal: ${description}` });

/** One line of the calculation of a cost. */
const PublicCharge = Type.Object(
  {
    class: Type.String({
      description:
        'A class of tokens (`in_uncached`, `in_cache_read`, `in_cache_write_5m`, `in_cache_write_1h`, `in_audio`, `in_image`, ' +
        '`out_text`, `out_reasoning`, `out_audio`, `out_image`), `audio_second` (of transcribed sound), a fee (`request`, `image`, `web_search`, or a tool or plugin of the gateway), `rounding` (up to a ' +
        'billionth of a USD, once per attempt), `unknown_outcome` (the possible cost of an attempt whose end is not known), or ' +
        '`bound` (the amount above the maximum that an attempt is charged).',
    }),
    model: nullable(
      Type.String({
        description: "Another model that the provider used during the attempt, by the provider's name.",
      }),
    ),
    units: Type.Number(),
    unit_price: Decimal('the list price of one unit when the call was admitted.'),
    discount: Type.Number({ description: 'The discount, as a fraction of the list price.' }),
    amount: Decimal('units × unit_price × (1 − discount).'),
    attempt: Type.Integer({
      description: 'From 1, the place of the attempt in `provider_responses`; 0: a fee outside the attempts.',
    }),
    endpoint_id: Type.String(),
    is_byok: Type.Boolean({
      description: "Billed to the organization's own account at the provider; not part of `total_cost`.",
    }),
  },
  { title: 'Charge' },
);
export type PublicCharge = Static<typeof PublicCharge>;

const cost = nullable(Type.Number({ description: 'Null if a price, and therefore the cost, is not known.' }));

const estimatedCost = nullable(
  Type.Number({
    description:
      'The part of `total_cost` that is an estimate because the end of an attempt is unknown: attempts marked `estimated`, and one that was running when its gateway ended. 0 after an operator has corrected it; null if `total_cost` is null.',
  }),
);

/** How the call was routed. */
const GenerationRouting = Type.Object(
  {
    strategy: Type.String({ description: 'direct, auto, free, latest, alias or fallback.' }),
    sort: nullable(Type.String({ description: 'Null: by a draw, weighted by price.' })),
    endpoints: Type.Object({
      total: Type.Integer({
        description: 'The number of endpoints that were considered. The lists contain the first of them.',
      }),
      planned: Type.Array(
        Type.Object({
          endpoint_id: Type.String(),
          service_tier: nullable(Type.String()),
          byok_id: nullable(Type.String()),
          weight: nullable(Type.Number({ description: 'Its chance of the first place in the draw.' })),
          because: Type.Array(Type.String()),
          expected_cost: nullable(
            Type.Number({
              description: 'The cost of the prompt and of an answer of usual length at its price, with nothing cached.',
            }),
          ),
          selected: Type.Boolean(),
        }),
        { description: 'In the order in which they would be tried.' },
      ),
      excluded: Type.Array(Type.Object({ endpoint_id: Type.String(), step: Type.String() })),
    }),
    hold: nullable(
      Type.Object(
        {
          amount: Type.Number(),
          budgets: Type.Array(Type.String({ description: 'Scope and interval: `key never`.' })),
        },
        { description: 'The money reserved for the last attempt. Null: no budget counted it.' },
      ),
    ),
    pipeline: Type.Array(PipelineStage, {
      description: 'The actions of guardrails and plugins; only those that did something.',
    }),
  },
  {
    title: 'GenerationRouting',
    description: 'Null for records of older versions, and if the gateway ended during the call.',
  },
);

/** The statistics of a finished call. Durations are in milliseconds, amounts in USD. */
export const Generation = Type.Object(
  {
    id: Type.String(),
    request_id: nullable(Type.String()),
    upstream_id: nullable(Type.String()),
    api_type: nullable(Type.String()),
    created_at: Type.String(),
    model: Type.String(),
    requested_model: nullable(Type.String({ description: 'The model as the request named it.' })),
    api_key_hash: Type.Optional(
      Type.String({ description: 'The key of the call; only for management keys and sessions.' }),
    ),
    user_id: Type.Optional(
      nullable(Type.String({ description: 'The owner of the key; only for management keys and sessions.' })),
    ),
    provider_name: nullable(Type.String()),
    app_id: nullable(Type.Integer()),
    external_user: nullable(Type.String()),
    workspace_id: Type.String(),
    preset_id: Type.Null({ description: 'Always null: this gateway has no presets.' }),
    data_region: Type.Literal('global', { description: 'Always the same: this gateway has no regions.' }),
    session_id: nullable(Type.String()),
    http_referer: nullable(Type.String()),
    title: nullable(Type.String()),
    categories: Type.Array(Type.String()),
    tags: Type.Array(Type.String(), {
      description: 'The tags that the caller set in `metadata.tags` or in the header `x-gateway-tags`.',
    }),
    user_agent: nullable(Type.String()),
    origin: Type.String(),
    router: nullable(Type.String()),
    streamed: nullable(Type.Boolean()),
    cancelled: nullable(Type.Boolean()),
    is_byok: Type.Boolean(),
    finish_reason: nullable(Type.String()),
    native_finish_reason: nullable(Type.String()),
    latency: nullable(Type.Number({ description: 'To the first token; to the answer when it is not streamed.' })),
    generation_time: nullable(Type.Number()),
    moderation_latency: nullable(Type.Number()),
    tokens_prompt: count,
    tokens_completion: count,
    native_tokens_prompt: count,
    native_tokens_completion: count,
    native_tokens_reasoning: count,
    native_tokens_cached: count,
    token_classes: nullable(
      Type.Object(
        {},
        {
          additionalProperties: Type.Integer(),
          description: 'The tokens by class, as `charges` names them. The classes are disjoint.',
        },
      ),
    ),
    native_tokens_completion_images: count,
    num_media_prompt: count,
    num_media_completion: count,
    num_input_audio_prompt: count,
    num_search_results: count,
    num_fetches: count,
    usage: cost,
    total_cost: cost,
    upstream_inference_cost: nullable(
      Type.Number({
        description: "The charge to the organization's own account at the provider, by the list price.",
      }),
    ),
    cache_discount: nullable(Type.Number()),
    service_tier: nullable(Type.String()),
    web_search_engine: nullable(Type.String()),
    response_cache_source_id: nullable(Type.String()),
    outcome: Type.String({
      description: 'completed, failed, cancelled, or unknown after a crash in the middle of the call.',
    }),
    estimated: Type.Boolean({
      description:
        'Some of its tokens or its cost were counted or estimated by the gateway, because the provider did not report them.',
    }),
    estimated_cost: estimatedCost,
    charges: Type.Array(PublicCharge, {
      description: 'The arithmetic of the cost: amounts that are not `is_byok` add up to `total_cost` exactly.',
    }),
    routing: nullable(GenerationRouting),
    provider_responses: Type.Array(
      Type.Object({
        id: Type.Optional(Type.String({ description: "The provider's id of the answer; absent if it has none." })),
        endpoint_id: Type.String(),
        model_permaslug: Type.String(),
        provider_name: Type.String(),
        status: nullable(Type.Number()),
        latency: Type.Optional(Type.Number({ description: 'Absent if no answer was received.' })),
        is_byok: Type.Boolean(),
        byok_id: nullable(
          Type.String({ description: 'The credential of the organization that was used (`/byok/{id}`).' }),
        ),
        failure: nullable(
          Type.String({
            description: 'Why the gateway moved on, or what ended the answer; null if the answer is complete.',
          }),
        ),
        wait: Type.Number({
          description: 'Milliseconds before sending: for the reservation of money, media and the journal.',
        }),
        tokens_prompt: count,
        tokens_completion: count,
        cost: nullable(
          Type.Number({
            description: "USD; with `is_byok` charged to the organization's own account at the provider.",
          }),
        ),
        estimated: Type.Boolean({ description: 'Its tokens or its cost were counted or estimated by the gateway.' }),
        continues: Type.Boolean({ description: 'It continued the text of the attempt before it.' }),
        hedges: Type.Boolean({ description: 'It was sent while the attempt before it was still running.' }),
        step: Type.Optional(
          Type.Integer({
            description: 'The step of an answer with tools of the gateway, from 2 on.',
          }),
        ),
      }),
    ),
  },
  { title: 'Generation' },
);
