/** What `POST /responses` answers (specification, section "Responses API items"; the public service's documentation; OpenAI's). */
import Type from 'typebox';

const orNull = <T extends Parameters<typeof Type.Optional>[0]>(schema: T) => Type.Union([schema, Type.Null()]);

const Item = Type.Object(
  {
    type: Type.String({
      description:
        '`message`, `reasoning`, `function_call`, `custom_tool_call`, `image_generation_call`, or a kind of an item that the provider made for itself, such as `web_search_call`.',
    }),
    id: Type.String(),
    status: Type.Optional(Type.String({ description: '`in_progress`, `completed` or `incomplete`.' })),
  },
  { title: 'ResponsesOutputItem', additionalProperties: true },
);

const Usage = Type.Object(
  {
    input_tokens: Type.Integer(),
    input_tokens_details: Type.Object({ cached_tokens: Type.Integer(), cache_write_tokens: Type.Integer() }),
    output_tokens: Type.Integer(),
    output_tokens_details: Type.Object({ reasoning_tokens: Type.Integer() }),
    total_tokens: Type.Integer(),
    cost: Type.Optional(Type.Number({ description: 'USD; absent where a price is not known.' })),
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

const anything = Type.Object({}, { additionalProperties: true });

export const ResponseAnswer = Type.Object(
  {
    id: Type.String({ description: 'The id of the generation.' }),
    object: Type.Literal('response'),
    created_at: Type.Integer({ description: 'Unix seconds.' }),
    completed_at: orNull(Type.Integer()),
    status: Type.Enum(['completed', 'incomplete', 'failed', 'in_progress']),
    model: Type.String(),
    output: Type.Array(Item),
    error: orNull(Type.Object({ code: Type.String(), message: Type.String() })),
    error_type: Type.Optional(Type.String({ description: 'The kind of error, more finely than its code.' })),
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
    gateway_metadata: Type.Optional(
      Type.Object(
        {},
        { additionalProperties: true, description: 'As `RoutingMetadata` has it; when it was asked for.' },
      ),
    ),
  },
  {
    title: 'Response',
    additionalProperties: true,
    description: 'What the request leaves out stands here with its default.',
  },
);

export const ResponseEvent = Type.Object(
  {
    type: Type.String({ description: 'Such as `response.output_text.delta` or `response.completed`.' }),
    sequence_number: Type.Integer({ minimum: 0, description: 'From 0, without gaps.' }),
    output_index: Type.Optional(Type.Integer({ minimum: 0 })),
    item_id: Type.Optional(Type.String()),
    content_index: Type.Optional(Type.Integer({ minimum: 0 })),
    summary_index: Type.Optional(Type.Integer({ minimum: 0 })),
    delta: Type.Optional(Type.String()),
    item: Type.Optional(Item),
    response: Type.Optional(ResponseAnswer),
  },
  { title: 'ResponseEvent', additionalProperties: true },
);
