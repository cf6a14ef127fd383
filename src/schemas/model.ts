import Type, { type Static } from 'typebox';
import { Parameter, Pricing, PublicEndpoint } from './endpoint.ts';

export const inputModalities = ['text', 'image', 'file', 'audio', 'video'] as const;
export const outputModalities = [
  'text',
  'image',
  'embeddings',
  'audio',
  'video',
  'rerank',
  'speech',
  'transcription',
] as const;
export type InputModality = (typeof inputModalities)[number];
export type OutputModality = (typeof outputModalities)[number];

/** Categories of models: the closed list of the `category` filter (specification, GET /models). */
export const categories = [
  'programming',
  'roleplay',
  'marketing',
  'marketing/seo',
  'technology',
  'science',
  'translation',
  'legal',
  'finance',
  'health',
  'trivia',
  'academia',
] as const;
export type Category = (typeof categories)[number];

/** The public service's tokenizer groups. */
export const tokenizers = [
  'Router',
  'Media',
  'Other',
  'GPT',
  'Claude',
  'Gemini',
  'Gemma',
  'Grok',
  'Cohere',
  'Nova',
  'Qwen',
  'Yi',
  'DeepSeek',
  'Mistral',
  'Llama2',
  'Llama3',
  'Llama4',
  'PaLM',
  'RWKV',
  'Qwen3',
] as const;

const nullable = <S extends Parameters<typeof Type.Union>[0][number]>(schema: S) => Type.Union([schema, Type.Null()]);

const Architecture = Type.Object({
  input_modalities: Type.Array(Type.Enum(inputModalities)),
  output_modalities: Type.Array(Type.Enum(outputModalities)),
  modality: nullable(Type.String({ description: 'For example `text+image->text`.' })),
  instruct_type: nullable(Type.String()),
  tokenizer: Type.Enum(tokenizers),
});

/** A model in the model list (specification, Model record). */
export const PublicModel = Type.Object(
  {
    id: Type.String(),
    canonical_slug: Type.String({ description: 'Never changes, even if `id` later means a newer version.' }),
    name: Type.String(),
    description: Type.Optional(Type.String()),
    created: Type.Integer({ description: 'Unix seconds.' }),
    context_length: nullable(Type.Integer()),
    expiration_date: nullable(Type.String({ description: 'YYYY-MM-DD' })),
    knowledge_cutoff: nullable(Type.String({ description: 'YYYY-MM-DD' })),
    model_hub_id: nullable(Type.String()),
    architecture: Architecture,
    pricing: Pricing,
    top_provider: Type.Object({
      is_moderated: Type.Boolean(),
      context_length: nullable(Type.Integer()),
      max_completion_tokens: nullable(Type.Integer()),
    }),
    // The specification says object; the public service and its SDK also know null, which stands for an unknown limit.
    per_request_limits: nullable(Type.Object({ prompt_tokens: Type.Number(), completion_tokens: Type.Number() })),
    supported_parameters: Type.Array(Parameter),
    default_parameters: Type.Object({
      temperature: nullable(Type.Number()),
      top_p: nullable(Type.Number()),
      top_k: nullable(Type.Integer()),
      frequency_penalty: nullable(Type.Number()),
      presence_penalty: nullable(Type.Number()),
      repetition_penalty: nullable(Type.Number()),
    }),
    supported_voices: nullable(Type.Array(Type.String())),
    links: Type.Object({ details: Type.String({ description: 'Path of the model endpoints resource.' }) }),
  },
  { title: 'Model' },
);
export type PublicModel = Static<typeof PublicModel>;

/** A model with all its endpoints (specification, Model endpoint listing). */
export const ModelEndpoints = Type.Object(
  {
    id: Type.String(),
    name: Type.String(),
    created: Type.Integer(),
    description: Type.String(),
    architecture: Architecture,
    endpoints: Type.Array(PublicEndpoint),
  },
  { title: 'ModelEndpoints' },
);
export type ModelEndpoints = Static<typeof ModelEndpoints>;
