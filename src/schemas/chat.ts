/**
 * The public chat-completion schema: what `POST /chat/completions` accepts and answers (specification, sections
 * "Chat completion message and response" and "Chat completions"; further fields: the public service's documentation).
 *
 * `null` means "not set" wherever clients are known to send it. Unknown fields are kept, for upstreams with the same schema.
 */
import Type, { type TProperties, type TSchema } from 'typebox';
import { limits } from '../limits.ts';
import { RoutingMetadata } from './routing-metadata.ts';
import { StopCondition } from './server-tools.ts';

/** The name of a function in the chat API. Other APIs accept longer names. */
const FUNCTION_NAME_CHARS_MAX = 64;
/** Pairs of `metadata`, and the characters of each side. */
const METADATA_PAIRS_MAX = 16;
const METADATA_KEY_CHARS_MAX = 64;
const METADATA_VALUE_CHARS_MAX = 512;
/** Conditions in `stop_server_tools_when`. */
const STOP_CONDITIONS_MAX = 16;

const orNull = <T extends TSchema>(schema: T) => Type.Optional(Type.Union([schema, Type.Null()]));
const open = <T extends TProperties>(properties: T, options: object = {}) =>
  Type.Object(properties, { additionalProperties: true, ...options });
/** An object without unknown fields, for restrictions: a misspelt field must not become no restriction. */
const closed = <T extends TProperties>(properties: T, options: object = {}) =>
  Type.Object(properties, { additionalProperties: false, ...options });

const CacheControl = open({
  type: Type.Literal('ephemeral'),
  ttl: orNull(Type.Union([Type.Literal('5m'), Type.Literal('1h')])),
});

/** The detail with which a model looks at an image. */
export const ImageDetail = Type.Enum(['auto', 'low', 'high', 'original']);

const TextPart = open({ type: Type.Literal('text'), text: Type.String(), cache_control: orNull(CacheControl) });
const ImagePart = open({
  type: Type.Literal('image_url'),
  image_url: Type.Union([
    open({ url: Type.String({ minLength: 1 }), detail: orNull(ImageDetail) }),
    Type.String({ minLength: 1, description: "Mistral's short form of the URL." }),
  ]),
  cache_control: orNull(CacheControl),
});
const FilePart = open({
  type: Type.Literal('file'),
  file: open({
    file_data: orNull(Type.String({ description: 'A base64 data URL, or a URL.' })),
    file_id: orNull(Type.String({ description: 'One of `file_data` and `file_id` is required.' })),
    filename: orNull(Type.String()),
  }),
  cache_control: orNull(CacheControl),
});
const AudioPart = open({
  type: Type.Literal('input_audio'),
  input_audio: open({
    data: Type.String({ description: 'Base64.' }),
    format: Type.String({ description: 'For example wav, mp3, flac, m4a, ogg, aiff, aac, pcm16, pcm24.' }),
  }),
  cache_control: orNull(CacheControl),
});
const VideoPart = open({
  type: Type.Union([Type.Literal('video_url'), Type.Literal('input_video')], {
    description: '`input_video` is the deprecated name.',
  }),
  video_url: open({ url: Type.String({ minLength: 1 }) }),
  cache_control: orNull(CacheControl),
});
const DocumentPart = open({
  type: Type.Literal('document_url', { description: "Mistral's word for a file by URL." }),
  document_url: Type.String({ minLength: 1 }),
  document_name: orNull(Type.String()),
});
const ThinkingPart = open({
  type: Type.Literal('thinking', { description: "Mistral's place of reasoning." }),
  thinking: Type.Union([
    Type.String(),
    Type.Array(open({ type: Type.Optional(Type.String()), text: orNull(Type.String()) })),
  ]),
});
const RefusalPart = open({ type: Type.Literal('refusal'), refusal: Type.String() });

const ContentPart = Type.Union([TextPart, ImagePart, FilePart, AudioPart, VideoPart, DocumentPart]);
const Content = Type.Union([
  Type.String(),
  Type.Array(ContentPart, { description: 'An empty list means the same as an empty text.' }),
]);

const ReasoningDetail = Type.Union([
  open({
    type: Type.Literal('reasoning.text'),
    text: orNull(Type.String()),
    signature: orNull(Type.String()),
    format: orNull(Type.String()),
    id: orNull(Type.String()),
    index: orNull(Type.Integer()),
  }),
  open({
    type: Type.Literal('reasoning.summary'),
    summary: Type.String(),
    format: orNull(Type.String()),
    id: orNull(Type.String()),
    index: orNull(Type.Integer()),
  }),
  open({
    type: Type.Literal('reasoning.encrypted'),
    data: Type.String(),
    format: orNull(Type.String()),
    id: orNull(Type.String()),
    index: orNull(Type.Integer()),
  }),
]);

/** A reasoning detail as clients send it back. */
const RequestedDetail = Type.Union([
  ...ReasoningDetail.anyOf,
  open(
    { type: Type.Literal('reasoning.server_tool_call') },
    { description: "The public service's note of a tool that it ran: left out." },
  ),
]);

const ToolCall = open({
  id: Type.String(),
  type: Type.Optional(Type.Literal('function')),
  function: open({
    name: Type.String({ minLength: 1 }),
    arguments: Type.String({ description: 'A JSON string.' }),
  }),
});

/** A tool call as clients send it back. */
export const RequestedCall = Type.Union([
  open({
    id: Type.String(),
    type: Type.Optional(Type.Literal('function')),
    function: open({
      name: Type.String({ minLength: 1 }),
      arguments: Type.Union(
        [
          Type.String(),
          Type.Object({}, { additionalProperties: true, description: 'The form that Mistral accepts.' }),
          Type.Null(),
        ],
        { description: 'A JSON string.' },
      ),
    }),
  }),
  open({
    id: Type.String(),
    type: Type.Literal('custom'),
    custom: open({ name: Type.String({ minLength: 1 }), input: Type.String() }),
  }),
]);

const optionalContent = Type.Union([Content, Type.Null()]);
const instruction = (role: 'system' | 'developer') =>
  open({ role: Type.Literal(role), content: optionalContent, name: orNull(Type.String()) });

const ChatMessage = Type.Union(
  [
    instruction('system'),
    instruction('developer'),
    open({ role: Type.Literal('user'), content: optionalContent, name: orNull(Type.String()) }),
    open({
      role: Type.Literal('assistant'),
      content: orNull(Type.Union([Type.String(), Type.Array(Type.Union([ContentPart, RefusalPart, ThinkingPart]))])),
      name: orNull(Type.String()),
      tool_calls: orNull(Type.Array(RequestedCall)),
      refusal: orNull(Type.String()),
      reasoning: orNull(Type.String()),
      reasoning_details: orNull(Type.Array(RequestedDetail)),
      images: orNull(Type.Array(open({ image_url: open({ url: Type.String() }) }))),
      function_call: orNull(open({ name: Type.String(), arguments: Type.String() })),
    }),
    open({
      role: Type.Literal('tool'),
      content: optionalContent,
      tool_call_id: Type.String(),
      name: orNull(Type.String()),
    }),
    open({ role: Type.Literal('function'), content: Type.Union([Type.String(), Type.Null()]), name: Type.String() }),
  ],
  { title: 'ChatMessage' },
);

const FunctionDefinition = open({
  name: Type.String({ minLength: 1, maxLength: FUNCTION_NAME_CHARS_MAX }),
  description: orNull(Type.String()),
  parameters: orNull(Type.Object({}, { additionalProperties: true, description: 'A JSON Schema.' })),
  strict: orNull(Type.Boolean()),
});
/** A tool type other than those with a schema of their own. */
const otherKind = (description: string) =>
  Type.String({ minLength: 1, not: { enum: ['function', 'native'] }, description });
/** The type of a function tool; the clients of Mistral and Hugging Face omit it. */
const functionType = Type.Optional(Type.Literal('function'));
const Tool = Type.Union([
  open({ type: functionType, function: FunctionDefinition, cache_control: orNull(CacheControl) }),
  open({
    type: otherKind(
      'A server tool: `gateway:web_search`, `gateway:web_fetch` or `gateway:datetime`, with its options in `parameters`.',
    ),
  }),
]);
const ToolChoice = Type.Union([
  Type.Literal('none'),
  Type.Literal('auto'),
  Type.Literal('required'),
  Type.Literal('any', { description: "Mistral's word for `required`." }),
  open({ type: functionType, function: open({ name: Type.String({ minLength: 1 }) }) }),
  open({ type: otherKind('A tool of another kind.') }),
]);

const ResponseFormat = Type.Union([
  open({ type: Type.Literal('text') }),
  open({ type: Type.Literal('json_object') }),
  open({
    type: Type.Literal('json_schema'),
    json_schema: open({
      name: Type.String({ minLength: 1, maxLength: 64 }),
      description: orNull(Type.String()),
      strict: orNull(Type.Boolean()),
      schema: orNull(Type.Object({}, { additionalProperties: true })),
    }),
  }),
  open({ type: Type.Literal('grammar'), grammar: Type.String() }),
  open({ type: Type.Literal('python') }),
]);

const names = Type.Array(Type.String({ minLength: 1 }), { maxItems: 100 });
const Price = Type.Union([
  Type.Number({ minimum: 0 }),
  Type.String({
    pattern: '^([0-9]+(\\.[0-9]*)?|\\.[0-9]+)([eE][+-]?[0-9]+)?$',
    maxLength: 40,
    description: 'A decimal number.',
  }),
]);

/** A performance threshold per percentile; a plain number means the p50. */
const cutoff = (description: string) => {
  const value = Type.Number({ minimum: 0 });
  const percentile = orNull(value);
  return Type.Union([value, open({ p50: percentile, p75: percentile, p90: percentile, p99: percentile })], {
    description: `${description} A plain number is the p50. Endpoints that miss it come last.`,
  });
};

export const ProviderPreferences = closed(
  {
    order: orNull(names),
    only: orNull(names),
    ignore: orNull(names),
    allow_fallbacks: orNull(Type.Boolean()),
    require_parameters: orNull(Type.Boolean()),
    data_collection: orNull(Type.Union([Type.Literal('allow'), Type.Literal('deny')])),
    zdr: orNull(Type.Boolean()),
    enforce_distillable_text: orNull(Type.Boolean()),
    quantizations: orNull(names),
    sort: orNull(
      Type.Union([
        Type.Enum(['price', 'throughput', 'latency', 'exacto']),
        open({
          by: orNull(Type.Enum(['price', 'throughput', 'latency', 'exacto'])),
          partition: orNull(Type.Enum(['model', 'none'])),
        }),
      ]),
    ),
    max_price: orNull(
      closed({
        prompt: orNull(Price),
        completion: orNull(Price),
        request: orNull(Price),
        image: orNull(Price),
        audio: orNull(Price),
      }),
    ),
    continuation: orNull(
      Type.Boolean({
        description:
          'If a stream breaks off in the middle of its text, the next endpoint that can continues it. Default: the setting `routing.continuation`.',
      }),
    ),
    preferred_min_throughput: orNull(cutoff('Tokens per second that an endpoint should reach.')),
    preferred_max_latency: orNull(cutoff('Seconds to the first token that an endpoint should stay below.')),
    hedge: orNull(
      Type.Boolean({
        description:
          'If a stream has not started within the time in which 95 % of the streams of its endpoint start, the request is also sent to the next endpoint, and the first to start answers. Default: the setting `routing.hedge`.',
      }),
    ),
    options: orNull(Type.Record(Type.String(), Type.Object({}, { additionalProperties: true }))),
  },
  { title: 'ProviderPreferences', description: 'Prices of `max_price` are USD per million tokens, or per unit.' },
);

const Effort = Type.Enum(['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max']);
const penalty = Type.Number({ minimum: -2, maximum: 2 });
const fraction = Type.Number({ minimum: 0, maximum: 1 });
const bound = Type.Integer({ minimum: 1 });

/** Ids of plugins: those of the specification, and those that clients of the public service send. The last three are accepted only if they are disabled: the gateway does not implement them. */
const PLUGINS = [
  'web',
  'file-parser',
  'response-healing',
  'context-compression',
  'web-fetch',
  'auto-router',
  'pareto-router',
  'moderation',
  'fusion',
];

export const ChatCompletionBody = open(
  {
    messages: orNull(Type.Array(ChatMessage, { minItems: 1, maxItems: limits.messages_max })),
    prompt: orNull(Type.String({ minLength: 1, description: 'Alternative to `messages`.' })),
    model: orNull(Type.String({ minLength: 1, maxLength: 256, description: '`author/slug`.' })),
    models: orNull(Type.Array(Type.String({ minLength: 1, maxLength: 256 }), { maxItems: limits.models_max })),
    route: orNull(Type.Enum(['fallback', 'sort'])),
    provider: orNull(ProviderPreferences),
    response_format: orNull(ResponseFormat),
    stop: orNull(
      Type.Union([Type.String(), Type.Array(Type.String(), { maxItems: limits.stop_sequences_max })], {
        description: 'If an endpoint accepts fewer (OpenAI: four), only the first ones are sent.',
      }),
    ),
    transforms: orNull(
      Type.Array(Type.Enum(['middle-out']), {
        description: 'The older form of the plugin `context-compression`; an empty list switches it off.',
      }),
    ),
    stream: orNull(Type.Boolean()),
    stream_options: orNull(open({ include_usage: orNull(Type.Boolean()) })),
    plugins: orNull(
      Type.Array(
        open(
          { id: Type.Enum(PLUGINS), enabled: orNull(Type.Boolean()) },
          {
            description:
              'Beside `id`: `engine` (`native`, `exa`, `firecrawl`, `parallel`, `searxng`; default: the configured one), `max_results` (1 to 25, default 5), `include_domains`, `exclude_domains` and `search_prompt` of `web`; `max_uses`, `max_content_tokens`, `allowed_domains` and `blocked_domains` of `web-fetch`; `allowed_models`, `excluded_models`, `cost_tier`, `cost_quality_tradeoff` and `pin_model` of `auto-router`; `pdf.engine` of `file-parser` (`native`, `pdf-text`, `cloudflare-ai`, `mistral-ocr`), `engine` of `context-compression` (`middle-out`). `enabled: false` switches off what is on by itself.',
          },
        ),
      ),
    ),
    max_tokens: orNull(bound),
    max_completion_tokens: orNull(bound),
    temperature: orNull(Type.Number({ minimum: 0, maximum: 2 })),
    tools: orNull(Type.Array(Tool, { maxItems: limits.tools_max })),
    tool_choice: orNull(ToolChoice),
    parallel_tool_calls: orNull(Type.Boolean()),
    max_tool_calls: orNull(
      Type.Integer({
        minimum: 1,
        description: `Calls of the gateway's own tools; at most ${limits.server_tool_calls_max}.`,
      }),
    ),
    stop_server_tools_when: orNull(
      Type.Array(StopCondition, {
        maxItems: STOP_CONDITIONS_MAX,
        description:
          "When the loop of the gateway's tools ends, instead of `max_tool_calls`: waiting calls are run, and the last turn has no tools.",
      }),
    ),
    functions: orNull(Type.Array(FunctionDefinition, { maxItems: limits.tools_max })),
    function_call: orNull(Type.Union([Type.Literal('none'), Type.Literal('auto'), open({ name: Type.String() })])),
    seed: orNull(Type.Integer({ description: 'A number above 2^53 is rounded to 53 bits, always in the same way.' })),
    top_p: orNull(Type.Number({ exclusiveMinimum: 0, maximum: 1 })),
    top_k: orNull(Type.Number({ minimum: 1 })),
    frequency_penalty: orNull(penalty),
    presence_penalty: orNull(penalty),
    repetition_penalty: orNull(Type.Number({ exclusiveMinimum: 0, maximum: 2 })),
    logit_bias: orNull(
      Type.Record(Type.String({ pattern: '^-?[0-9]+$' }), Type.Number(), { additionalProperties: false }),
    ),
    logprobs: orNull(Type.Boolean()),
    top_logprobs: orNull(Type.Integer({ minimum: 0, maximum: 20 })),
    min_p: orNull(fraction),
    top_a: orNull(fraction),
    n: orNull(
      Type.Integer({
        minimum: 1,
        maximum: limits.choices_max,
        description: 'The number of answers, if an endpoint can return several to one request.',
      }),
    ),
    prediction: orNull(open({ type: Type.Literal('content'), content: Content })),
    user: orNull(Type.String({ maxLength: limits.attribution_chars_max })),
    cache_control: orNull(CacheControl),
    debug: orNull(open({ echo_upstream_body: orNull(Type.Boolean()) })),
    reasoning: orNull(
      open({
        effort: orNull(Effort),
        max_tokens: orNull(Type.Integer({ minimum: 0 })),
        exclude: orNull(Type.Boolean()),
        enabled: orNull(Type.Boolean()),
        summary: orNull(Type.String()),
      }),
    ),
    reasoning_effort: orNull(Effort),
    include_reasoning: orNull(Type.Boolean()),
    verbosity: orNull(Type.Enum(['low', 'medium', 'high', 'xhigh', 'max'])),
    modalities: orNull(Type.Array(Type.Enum(['text', 'image', 'audio']))),
    service_tier: orNull(Type.String({ maxLength: 40 })),
    session_id: orNull(Type.String({ maxLength: limits.session_id_chars_max })),
    prompt_cache_key: orNull(Type.String()),
    metadata: orNull(
      Type.Record(Type.String(), Type.String({ maxLength: METADATA_VALUE_CHARS_MAX }), {
        maxProperties: METADATA_PAIRS_MAX,
        propertyNames: { maxLength: METADATA_KEY_CHARS_MAX },
      }),
    ),
  },
  {
    title: 'ChatCompletionRequest',
    description: 'Either `messages` or `prompt` is required.',
    examples: [{ model: 'sandbox/echo', messages: [{ role: 'user', content: 'Hello' }] }],
  },
);

const nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);
/** `function_call` replaces `tool_calls` if the request has `functions`. */
const FinishReason = nullable(Type.Enum(['tool_calls', 'stop', 'length', 'content_filter', 'error', 'function_call']));
const ChoiceError = open({
  code: Type.Number(),
  message: Type.String(),
  metadata: Type.Optional(Type.Object({}, { additionalProperties: true })),
});

const Usage = open(
  {
    prompt_tokens: Type.Number(),
    completion_tokens: Type.Number(),
    total_tokens: Type.Number(),
    prompt_tokens_details: Type.Optional(
      open({
        cached_tokens: Type.Number(),
        cache_write_tokens: Type.Number(),
        audio_tokens: Type.Number(),
        video_tokens: Type.Number(),
      }),
    ),
    completion_tokens_details: Type.Optional(
      open({ reasoning_tokens: Type.Number(), audio_tokens: Type.Number(), image_tokens: Type.Number() }),
    ),
    cost: Type.Optional(Type.Number({ description: 'USD.' })),
    is_byok: Type.Optional(Type.Boolean()),
    cost_details: Type.Optional(
      open({
        upstream_inference_cost: nullable(Type.Number()),
        upstream_inference_prompt_cost: Type.Number(),
        upstream_inference_completions_cost: Type.Number(),
      }),
    ),
    server_tool_use: Type.Optional(open({ web_search_requests: Type.Number() })),
    server_tool_use_details: Type.Optional(
      open({
        web_search_requests: Type.Integer(),
        tool_calls_requested: Type.Integer({ description: "Calls of the gateway's own tools." }),
        tool_calls_executed: Type.Integer(),
      }),
    ),
  },
  { title: 'Usage' },
);

const envelope = {
  id: Type.String(),
  created: Type.Integer({ description: 'Unix seconds.' }),
  model: Type.String(),
  provider: Type.Optional(Type.String({ description: 'Display name of the provider that answered.' })),
  system_fingerprint: Type.Optional(nullable(Type.String())),
  service_tier: Type.Optional(nullable(Type.String())),
  gateway_metadata: Type.Optional(RoutingMetadata),
  openrouter_metadata: Type.Optional(RoutingMetadata),
};

const Logprobs = nullable(
  Type.Object({}, { additionalProperties: true, description: "`content` and `refusal`, as OpenAI's API has them." }),
);
const anything = Type.Object({}, { additionalProperties: true });

const CalledFunction = open(
  { name: Type.Optional(Type.String()), arguments: Type.Optional(Type.String()) },
  { description: 'Instead of `tool_calls` if the request had `functions`.' },
);

/** Output of models besides text, in messages and in the deltas of streams. */
const besideText = {
  reasoning_details: Type.Optional(Type.Array(ReasoningDetail)),
  images: Type.Optional(Type.Array(anything)),
  audio: Type.Optional(anything),
  annotations: Type.Optional(Type.Array(anything)),
};

/** Documents the answer, which the encoder writes without this schema. */
export const ChatCompletionAnswer = open(
  {
    ...envelope,
    object: Type.Literal('chat.completion'),
    choices: Type.Array(
      open({
        index: Type.Integer(),
        finish_reason: FinishReason,
        native_finish_reason: nullable(Type.String()),
        logprobs: Logprobs,
        message: Type.Optional(
          open({
            role: Type.Literal('assistant'),
            content: nullable(Type.String()),
            refusal: nullable(Type.String()),
            reasoning: nullable(Type.String()),
            ...besideText,
            tool_calls: Type.Optional(
              Type.Array(
                open({
                  ...ToolCall.properties,
                  index: Type.Integer({ description: 'The value in the chunks of a stream.' }),
                }),
              ),
            ),
            function_call: Type.Optional(CalledFunction),
          }),
        ),
        text: Type.Optional(Type.String({ description: 'Instead of `message` if the request had `prompt`.' })),
        reasoning: Type.Optional(Type.String({ description: 'Beside `text`.' })),
        error: Type.Optional(ChoiceError),
      }),
    ),
    usage: Usage,
  },
  { title: 'ChatCompletion' },
);

const ToolCallDelta = open({
  index: Type.Integer({ description: 'The call to which this chunk belongs.' }),
  id: Type.Optional(Type.String()),
  type: Type.Optional(Type.Literal('function')),
  function: open({ name: Type.Optional(Type.String()), arguments: Type.Optional(Type.String()) }),
});

/** Documents each event of a stream, which the encoder writes without this schema. */
export const ChatCompletionChunk = open(
  {
    ...envelope,
    object: Type.Literal('chat.completion.chunk'),
    choices: Type.Array(
      open({
        index: Type.Integer(),
        finish_reason: FinishReason,
        native_finish_reason: nullable(Type.String()),
        logprobs: Logprobs,
        delta: Type.Optional(
          open({
            role: Type.Optional(Type.Literal('assistant', { description: 'Only in the first delta.' })),
            content: Type.String(),
            reasoning: Type.Optional(nullable(Type.String())),
            refusal: Type.Optional(Type.String()),
            ...besideText,
            tool_calls: Type.Optional(Type.Array(ToolCallDelta)),
            function_call: Type.Optional(CalledFunction),
          }),
        ),
        text: Type.Optional(Type.String({ description: 'Instead of `delta` if the request had `prompt`.' })),
        reasoning: Type.Optional(Type.String({ description: 'Beside `text`.' })),
        error: Type.Optional(ChoiceError),
      }),
      { description: 'Empty in the last event, which has the usage.' },
    ),
    usage: Type.Optional(Usage),
    error: Type.Optional(ChoiceError),
    debug: Type.Optional(anything),
  },
  { title: 'ChatCompletionChunk' },
);
