import Type, { type Static, type TSchema } from 'typebox';
import { limits } from '../limits.ts';
import type { Prices } from './prices.ts';

/** The parameters that a model or an endpoint can list as supported (specification, Model record, Parameter enumeration). */
export const parameters = [
  'temperature',
  'top_p',
  'top_k',
  'min_p',
  'top_a',
  'frequency_penalty',
  'presence_penalty',
  'repetition_penalty',
  'max_tokens',
  'max_completion_tokens',
  'logit_bias',
  'logprobs',
  'top_logprobs',
  'seed',
  'response_format',
  'structured_outputs',
  'stop',
  'tools',
  'tool_choice',
  'parallel_tool_calls',
  'include_reasoning',
  'reasoning',
  'reasoning_effort',
  'web_search_options',
  'verbosity',
] as const;
export const Parameter = Type.Enum(parameters);
export type Parameter = (typeof parameters)[number];

/** The parameters that an endpoint can accept; `prediction` is not part of the public enumeration. */
export const endpointParameters = [...parameters, 'prediction'] as const;
export type EndpointParameter = (typeof endpointParameters)[number];

/** Parameters that control how the next token is sampled. A model accepts all of them or none. */
export const samplingParameters = [
  'temperature',
  'top_p',
  'top_k',
  'min_p',
  'top_a',
  'frequency_penalty',
  'presence_penalty',
  'repetition_penalty',
  'logit_bias',
  'logprobs',
  'top_logprobs',
] as const satisfies readonly Parameter[];

export const quantizations = ['int4', 'int8', 'fp4', 'fp6', 'fp8', 'fp16', 'bf16', 'fp32', 'unknown'] as const;
export const Quantization = Type.Enum(quantizations);
export type Quantization = (typeof quantizations)[number];

const Price = Type.String({ description: 'USD per single unit, as a plain decimal.' });

/** Prices of an endpoint: USD per token, image, request, search or second of transcribed audio, as decimal strings. */
export const Pricing = Type.Object(
  {
    prompt: Price,
    completion: Price,
    request: Type.Optional(Price),
    image: Type.Optional(Price),
    image_token: Type.Optional(Price),
    image_output: Type.Optional(Price),
    audio: Type.Optional(Price),
    audio_output: Type.Optional(Price),
    input_audio_cache: Type.Optional(Price),
    input_cache_read: Type.Optional(Price),
    input_cache_write: Type.Optional(Price),
    input_cache_write_1h: Type.Optional(Price),
    internal_reasoning: Type.Optional(Price),
    web_search: Type.Optional(Price),
    audio_second: Type.Optional(Price),
    discount: Type.Optional(Type.Number({ minimum: 0, maximum: 1 })),
  } satisfies Record<keyof Prices, TSchema>,
  { title: 'Pricing' },
);
export type Pricing = Static<typeof Pricing>;

const percentiles = (description: string) =>
  Type.Union(
    [Type.Object({ p50: Type.Number(), p75: Type.Number(), p90: Type.Number(), p99: Type.Number() }), Type.Null()],
    { description },
  );
const uptime = (span: string) =>
  Type.Union([Type.Number(), Type.Null()], {
    description: `Percent of the calls of the last ${span} that were answered, without rate limits; null if there are too few calls.`,
  });
const Count = Type.Union([Type.Integer(), Type.Null()]);

/** One model at one provider, as clients see it (specification, Public endpoint record). */
export const PublicEndpoint = Type.Object(
  {
    name: Type.String({ description: 'Provider and model: `<provider> | <model id>`.' }),
    model_id: Type.String({ description: 'The permaslug of the model.' }),
    model_name: Type.String(),
    context_length: Type.Integer({
      description: `Tokens. If it is not known of the endpoint, the model's; if neither is known, ${limits.context_tokens_assumed}.`,
    }),
    pricing: Pricing,
    provider_name: Type.String(),
    tag: Type.String({ description: 'Provider slug with an optional variant after a slash.' }),
    quantization: Quantization,
    max_completion_tokens: Count,
    max_prompt_tokens: Count,
    supported_parameters: Type.Array(Parameter),
    supports_implicit_caching: Type.Boolean(),
    supports_tool_choice: Type.Object(
      { auto: Type.Boolean(), none: Type.Boolean(), required: Type.Boolean(), function: Type.Boolean() },
      { description: 'The supported values of `tool_choice`: all of them, or none.' },
    ),
    native_tools: Type.Record(Type.String(), Type.Object({ type: Type.String() }), {
      description: 'Server tools that the provider runs itself, by name; `type` is the vendor whose form it has.',
    }),
    service_tier: Type.Union([Type.String(), Type.Null()], {
      description: 'The service tier of this record; null: the default tier.',
    }),
    supports_diarization: Type.Boolean({ description: 'Always false: speakers are not distinguished.' }),
    supports_voice_cloning: Type.Boolean({ description: 'Always false.' }),
    status: Type.Optional(
      Type.Union([Type.Enum(['0', '-1', '-2', '-3', '-5', '-10']), Type.Integer()], {
        description:
          "0: no problem is known. -1: it is rate-limited. -2: fewer than 95 percent of the calls are answered. -3: the last call failed, and none was tried since. -5: fewer than 80 percent are answered. -10: the gateway's credential or account is refused there. A text, or with `compatibility.endpoint_status: integer` in the configuration a number.",
      }),
    ),
    latency_last_30m: percentiles(
      'Milliseconds to the first token: this percentage of the calls is at least this fast. Null without a credential.',
    ),
    throughput_last_30m: percentiles(
      'Tokens per second: this percentage of the calls is at least this fast. Null without a credential.',
    ),
    samples_last_30m: Type.Union([Type.Integer(), Type.Null()], {
      description:
        'The number of calls behind the latency: percentiles of few calls mean little. Null without a credential.',
    }),
    uptime_last_5m: uptime('five minutes'),
    uptime_last_30m: uptime('thirty minutes'),
    uptime_last_1d: uptime('day'),
  },
  { title: 'PublicEndpoint' },
);
export type PublicEndpoint = Static<typeof PublicEndpoint>;
