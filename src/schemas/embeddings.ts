/**
 * The public schema of embeddings: what `POST /embeddings` accepts and answers (specification, section "Embeddings"; further
 * fields: the public service's documentation). `null` means "not set" wherever clients are known to send it.
 */
import Type, { type TSchema } from 'typebox';
import { limits } from '../limits.ts';
import { ProviderPreferences } from './chat.ts';
import { RoutingMetadata } from './routing-metadata.ts';

const orNull = <T extends TSchema>(schema: T) => Type.Optional(Type.Union([schema, Type.Null()]));

const Text = Type.String({ minLength: 1 });
const Tokens = Type.Array(Type.Integer({ minimum: 0 }), { minItems: 1 });
const Content = Type.Object({
  content: Type.Array(
    Type.Union([
      Type.Object({ type: Type.Literal('text'), text: Text }),
      Type.Object({
        type: Type.Literal('image_url'),
        image_url: Type.Object({ url: Text }),
      }),
    ]),
    { minItems: 1, maxItems: limits.messages_max, description: 'Parts that together result in one vector.' },
  ),
});
const list = <T extends TSchema>(schema: T) =>
  Type.Array(schema, { minItems: 1, maxItems: limits.embedding_inputs_max });

export const EmbeddingsBody = Type.Object(
  {
    model: Type.String({
      minLength: 1,
      maxLength: limits.model_name_chars_max,
      description: '`author/slug` of an embedding model.',
    }),
    input: Type.Union([Text, list(Text), Tokens, list(Tokens), list(Content)], {
      description: 'A text, texts, a text as tokens, texts as tokens, or objects of content parts.',
    }),
    encoding_format: orNull(Type.Enum(['float', 'base64'])),
    dimensions: orNull(Type.Integer({ minimum: 1, maximum: limits.embedding_dimensions_max })),
    input_type: orNull(
      Type.String({
        minLength: 1,
        maxLength: 100,
        description: 'What the vectors are for: `search_query`, `search_document`, `classification`, `clustering` …',
      }),
    ),
    user: orNull(Type.String({ maxLength: 256 })),
    provider: orNull(ProviderPreferences),
  },
  { additionalProperties: true, title: 'EmbeddingsRequest' },
);

const count = Type.Integer({ minimum: 0 });

export const EmbeddingsAnswer = Type.Object(
  {
    object: Type.Literal('list'),
    id: Type.String(),
    model: Type.String(),
    provider: Type.String(),
    data: Type.Array(
      Type.Object({
        object: Type.Literal('embedding'),
        index: count,
        embedding: Type.Union([Type.Array(Type.Number()), Type.String()], {
          description: 'Numbers, or 32-bit floats, little-endian, as base64.',
        }),
      }),
      { description: 'In the order of the inputs.' },
    ),
    usage: Type.Object(
      {
        prompt_tokens: count,
        total_tokens: count,
        cost: Type.Optional(Type.Number({ description: 'USD.' })),
        is_byok: Type.Boolean(),
        prompt_tokens_details: Type.Object({ text_tokens: count, image_tokens: count }),
      },
      { additionalProperties: true },
    ),
    gateway_metadata: Type.Optional(RoutingMetadata),
    openrouter_metadata: Type.Optional(RoutingMetadata),
  },
  { title: 'EmbeddingsResponse' },
);
