/** The answer of `POST /responses` (specification, section "Responses API items"; the public service's documentation; OpenAI's). */
import Type, { type TObject, type TProperties, type TSchema } from 'typebox';
import type { ErrorStatus } from '../errors.ts';
import { errors } from './error.ts';

const orNull = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);
const open = <T extends TProperties>(properties: T, options: object = {}) =>
  Type.Object(properties, { additionalProperties: true, ...options });
const anything = open({});
const place = Type.Integer({ minimum: 0 });

const id = Type.String({ description: "The provider's, if it has this API, otherwise made by the gateway." });
const status = Type.Enum(['in_progress', 'completed', 'incomplete']);

const Annotation = open(
  {
    type: Type.String({ description: '`url_citation`, or another type of a provider with this API.' }),
    url: Type.Optional(Type.String()),
    title: Type.Optional(Type.String()),
    start_index: Type.Optional(
      Type.Integer({ description: 'Position in the text of its part, in characters; 0 and 0 if it is not known.' }),
    ),
    end_index: Type.Optional(Type.Integer()),
    content: Type.Optional(Type.String({ description: 'The cited text, if it is known.' })),
    file_id: Type.Optional(Type.String()),
    filename: Type.Optional(Type.String()),
    index: Type.Optional(Type.Integer()),
    container_id: Type.Optional(Type.String()),
  },
  { title: 'ResponsesAnnotation' },
);
const Logprobs = Type.Array(anything, { description: 'Log probabilities of its tokens, if `include` requested them.' });
const OutputText = open({
  type: Type.Literal('output_text'),
  text: Type.String(),
  annotations: Type.Array(Annotation),
  logprobs: Logprobs,
});
const Refusal = open({ type: Type.Literal('refusal'), refusal: Type.String() });
const SummaryText = open({ type: Type.Literal('summary_text'), text: Type.String() });
const ReasoningText = open({ type: Type.Literal('reasoning_text'), text: Type.String() });

const Message = open({
  type: Type.Literal('message'),
  id,
  status,
  role: Type.Literal('assistant'),
  content: Type.Array(Type.Union([OutputText, Refusal])),
  phase: Type.Optional(Type.String({ description: '`commentary` or `final_answer`.' })),
});
const Reasoning = open({
  type: Type.Literal('reasoning'),
  id,
  status: Type.Optional(status),
  summary: Type.Array(SummaryText),
  content: Type.Optional(Type.Array(ReasoningText)),
  encrypted_content: Type.Optional(
    Type.String({
      description: 'Only its provider can read it. Send it back unchanged: the gateway does not keep it.',
    }),
  ),
  format: Type.Optional(Type.String({ description: "The vendor whose format it has, if not OpenAI's." })),
  signature: Type.Optional(
    Type.String({ description: 'Signature of the text in `content`, if its provider signed it.' }),
  ),
});
const call = {
  id,
  status,
  call_id: Type.String({ description: 'The id under which to send back the output of the call.' }),
  name: Type.String(),
  namespace: Type.Optional(Type.String({ description: 'The declared namespace of the tool.' })),
};
const FunctionCall = open({
  type: Type.Literal('function_call'),
  ...call,
  arguments: Type.String({ description: 'A JSON string.' }),
});
const CustomToolCall = open({ type: Type.Literal('custom_tool_call'), ...call, input: Type.String() });
const Picture = open({
  type: Type.Literal('image_generation_call'),
  id,
  status: Type.String(),
  result: orNull(Type.String({ description: 'The picture in base64.' })),
});
const OwnItem = open(
  {
    type: Type.String({
      not: { enum: ['message', 'reasoning', 'function_call', 'custom_tool_call', 'image_generation_call'] },
    }),
    id: Type.String(),
    status: Type.Optional(Type.String()),
  },
  {
    description: 'An item of a tool that a provider with this API runs itself, such as a `web_search_call`, unchanged.',
  },
);
const Item = Type.Union([Message, Reasoning, FunctionCall, CustomToolCall, Picture, OwnItem], {
  title: 'ResponsesOutputItem',
});

const Usage = Type.Object(
  {
    input_tokens: Type.Integer(),
    input_tokens_details: Type.Object({ cached_tokens: Type.Integer(), cache_write_tokens: Type.Integer() }),
    output_tokens: Type.Integer(),
    output_tokens_details: Type.Object({ reasoning_tokens: Type.Integer() }),
    total_tokens: Type.Integer(),
    cost: Type.Optional(Type.Number({ description: 'USD; absent if a price is not known.' })),
    is_byok: Type.Boolean(),
    cost_details: Type.Optional(
      Type.Object({
        upstream_inference_cost: orNull(Type.Number()),
        upstream_inference_input_cost: Type.Number(),
        upstream_inference_output_cost: Type.Number(),
      }),
    ),
    server_tool_use: Type.Optional(Type.Object({ web_search_requests: Type.Integer() })),
  },
  { title: 'ResponsesUsage' },
);

const errorType = Type.String({ description: 'The kind of error, more precise than its code or status.' });

export const ResponseAnswer = open(
  {
    id: Type.String({ description: 'The id of the generation.' }),
    object: Type.Literal('response'),
    created_at: Type.Integer({ description: 'Unix seconds.' }),
    completed_at: orNull(Type.Integer()),
    status: Type.Enum(['completed', 'incomplete', 'failed', 'in_progress']),
    model: Type.String(),
    output: Type.Array(Item),
    error: orNull(
      Type.Object({
        code: Type.Enum(['server_error', 'rate_limit_exceeded', 'invalid_prompt', 'image_content_policy_violation']),
        message: Type.String(),
      }),
    ),
    error_type: Type.Optional(errorType),
    incomplete_details: orNull(Type.Object({ reason: Type.Enum(['max_output_tokens', 'content_filter']) })),
    usage: orNull(Usage),
    service_tier: orNull(Type.String()),
    background: Type.Boolean(),
    frequency_penalty: Type.Number(),
    instructions: orNull(Type.String()),
    max_output_tokens: orNull(Type.Integer()),
    max_tool_calls: orNull(Type.Integer()),
    metadata: anything,
    parallel_tool_calls: Type.Boolean(),
    presence_penalty: Type.Number(),
    previous_response_id: orNull(Type.String()),
    prompt_cache_key: orNull(Type.String()),
    reasoning: anything,
    safety_identifier: orNull(Type.String()),
    store: Type.Boolean(),
    temperature: Type.Number(),
    text: anything,
    tool_choice: Type.Union([Type.String(), anything]),
    tools: Type.Array(anything),
    top_logprobs: Type.Integer(),
    top_p: Type.Number(),
    truncation: Type.String(),
    user: orNull(Type.String()),
    gateway_metadata: Type.Optional(open({}, { description: 'As in `RoutingMetadata`, if it was requested.' })),
    openrouter_metadata: Type.Optional(
      open({}, { description: 'The same, if it was requested with `X-OpenRouter-Metadata`.' }),
    ),
    ...Object.fromEntries(
      [
        'billing',
        'content_filters',
        'moderation',
        'prompt_cache_diagnostics',
        'prompt_cache_retention',
        'tool_usage',
      ].map((name) => [name, Type.Optional(Type.Unknown({ description: 'Of a provider with this API, unchanged.' }))]),
    ),
  },
  { title: 'Response', description: 'Fields that the request leaves out have their defaults here.' },
);

const event = <T extends TProperties>(types: string[], fields: T) =>
  open({ type: Type.Enum(types.map((type) => `response.${type}`)), sequence_number: place, ...fields });
const ofItem = { output_index: place, item_id: Type.String() };
const ofPart = { ...ofItem, content_index: place };
const ofSummary = { ...ofItem, summary_index: place };
const delta = Type.String();
const text = Type.String();

export const ResponseEvent = Type.Union(
  [
    event(['created', 'in_progress', 'completed', 'incomplete', 'failed'], { response: ResponseAnswer }),
    event(['output_item.added', 'output_item.done'], { output_index: place, item: Item }),
    event(['content_part.added', 'content_part.done'], {
      ...ofPart,
      part: Type.Union([OutputText, Refusal, ReasoningText]),
    }),
    event(['output_text.delta'], { ...ofPart, delta, logprobs: Logprobs }),
    event(['output_text.done'], { ...ofPart, text, logprobs: Logprobs }),
    event(['output_text.annotation.added'], { ...ofPart, annotation_index: place, annotation: Annotation }),
    event(['refusal.delta', 'reasoning_text.delta'], { ...ofPart, delta }),
    event(['refusal.done'], { ...ofPart, refusal: Type.String() }),
    event(['reasoning_text.done'], { ...ofPart, text }),
    event(['reasoning_summary_part.added', 'reasoning_summary_part.done'], { ...ofSummary, part: SummaryText }),
    event(['reasoning_summary_text.delta'], { ...ofSummary, delta }),
    event(['reasoning_summary_text.done'], { ...ofSummary, text }),
    event(['function_call_arguments.delta', 'custom_tool_call_input.delta'], { ...ofItem, delta }),
    event(['function_call_arguments.done'], { ...ofItem, name: Type.String(), arguments: Type.String() }),
    event(['custom_tool_call_input.done'], { ...ofItem, input: Type.String() }),
    event(['image_generation_call.in_progress', 'image_generation_call.completed'], ofItem),
    event(['debug'], { debug: Type.Object({ echo_upstream_body: anything }) }),
    open(
      { type: Type.String(), sequence_number: place, ...ofItem },
      { description: "An event of a provider's own item, such as `response.web_search_call.searching`, unchanged." },
    ),
  ],
  {
    title: 'ResponseEvent',
    description:
      'Numbered from 0 without gaps. `created` and `in_progress` are the first; each item is closed before the next opens; `completed`, `incomplete` or `failed` is the last before `[DONE]`.',
  },
);

const ErrorBody = errors(400)[400]!;
const ResponsesError = Type.Object(
  {
    ...ErrorBody.properties,
    error: Type.Object({
      ...(ErrorBody.properties['error'] as TObject).properties,
      type: Type.String({ description: "As OpenAI's clients know it, such as `invalid_request_error`." }),
      param: orNull(Type.String({ description: 'The wrong field, if there is one.' })),
    }),
    error_type: errorType,
  },
  { title: 'ResponsesError' },
);

/** Declares the error statuses of an operation of the Responses API in its response schema. */
export function responsesErrors(...statuses: ErrorStatus[]): Record<number, TObject> {
  return Object.fromEntries(Object.keys(errors(...statuses)).map((code) => [code, ResponsesError]));
}
