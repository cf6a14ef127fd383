import Type, { type Static, type TSchema } from 'typebox';

const nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);
const text = nullable(Type.String());
const count = nullable(Type.Integer());
const number = (description: string) => nullable(Type.Number({ description }));

/** The fields of one generation in a list, in the order of the columns of CSV. */
export const generationFields = {
  id: Type.String(),
  created_at: Type.String({ description: 'When the call was admitted, ISO 8601 in UTC.' }),
  api_type: text,
  request_id: text,
  api_key_hash: Type.String({ description: 'The key of the call (`/keys/{hash}`).' }),
  user_id: nullable(Type.String({ description: 'The owner of the key.' })),
  workspace_id: Type.String(),
  external_user: nullable(Type.String({ description: '`user` of the request.' })),
  session_id: text,
  app: nullable(Type.String({ description: 'The title of the application, or else its address.' })),
  tags: Type.Array(Type.String(), { description: 'The tags that the caller set.' }),
  requested_model: nullable(Type.String({ description: 'The model as the request named it.' })),
  model: Type.String({ description: 'The model that was served.' }),
  provider_name: text,
  endpoint_id: text,
  outcome: Type.Enum(['completed', 'failed', 'cancelled', 'unknown'] as const),
  status: nullable(Type.Integer({ description: 'The HTTP status of the last attempt; null if it got no answer.' })),
  attempts: Type.Integer({ description: 'The number of attempts, those of tool steps included.' }),
  failures: Type.Array(Type.String(), { description: 'Why attempts failed, in their order.' }),
  guardrails: Type.Array(Type.String(), { description: 'The guardrails and filters that acted.' }),
  finish_reason: text,
  streamed: Type.Boolean(),
  cancelled: Type.Boolean(),
  is_byok: Type.Boolean(),
  tokens_prompt: count,
  tokens_completion: count,
  tokens_cached: nullable(Type.Integer({ description: 'Of the prompt, read from a cache.' })),
  tokens_cache_write: nullable(Type.Integer({ description: 'Of the prompt, written to a cache.' })),
  tokens_reasoning: nullable(Type.Integer({ description: 'Of the completion.' })),
  latency: number('Milliseconds to the first token; to the answer if it is not streamed.'),
  generation_time: number('Milliseconds from the first byte sent to the last received.'),
  tokens_per_second: number('Tokens of the completion per second of `generation_time`.'),
  total_cost: number('USD. Null if a price is not known.'),
  upstream_inference_cost: number("USD charged to the organization's own accounts at providers."),
  cache_discount: number('USD.'),
  service_tier: text,
  estimated: Type.Boolean({ description: 'Tokens or cost were counted or estimated by the gateway.' }),
};

/** A generation in a list: all fields, or those that `fields` names. */
export const GenerationRow = Type.Partial(Type.Object(generationFields), { title: 'GenerationRow' });
/** A generation in a list with all fields. */
export type GenerationRow = Required<Static<typeof GenerationRow>>;
export type GenerationField = keyof GenerationRow;

/** The sums of a filter. */
export const GenerationTotals = Type.Object(
  {
    count: Type.Integer(),
    total_cost: Type.Number({ description: 'USD, on the accounts of the gateway.' }),
    is_complete: Type.Boolean({
      description: 'false: the filter has more generations than are summed; the sums are those of the newest.',
    }),
  },
  { title: 'GenerationTotals' },
);

/** Calls with one `session_id`. */
export const GenerationSession = Type.Object(
  {
    session_id: Type.String(),
    count: Type.Integer({ description: 'The number of its calls.' }),
    failed: Type.Integer({ description: 'Those that were not completed.' }),
    first_at: Type.String(),
    last_at: Type.String(),
    total_cost: Type.Number({ description: 'USD, on the accounts of the gateway.' }),
    models: Type.Array(Type.String(), { description: 'The served models, the most called first.' }),
  },
  { title: 'GenerationSession' },
);

/** The cursor of the next part of a list. */
export const NextCursor = nullable(
  Type.String({
    description:
      '`cursor` of the next page; null at the end. A page may have fewer records than `limit`, or none, and a next page: rare matches are searched in portions.',
  }),
);
