/**
 * What `POST /responses` accepts (specification, section "Responses API"; further fields: the public service's documentation
 * and OpenAI's, https://platform.openai.com/docs/api-reference/responses/create).
 *
 * `null` means "not set" wherever clients are known to send it. Unknown fields are kept, for upstreams with the same API. The kinds of
 * items are a closed list; those of tools are open, since OpenAI adds some.
 */
import Type, { type Static, type TProperties, type TSchema } from 'typebox';
import { limits } from '../limits.ts';
import { ChatCompletionBody, ImageDetail } from './chat.ts';

/** Handles in each list of `x_search_filter` (specification, "Limits"). */
const X_HANDLES_MAX = 10;

const orNull = <T extends TSchema>(schema: T) => Type.Optional(Type.Union([schema, Type.Null()]));
const open = <T extends TProperties>(properties: T, options: object = {}) =>
  Type.Object(properties, { additionalProperties: true, ...options });
const anything = (description: string) => Type.Object({}, { additionalProperties: true, description });

const chat = ChatCompletionBody.properties;

const Breakpoint = orNull(
  open({ mode: orNull(Type.String()) }, { description: 'The prompt is cached up to this point.' }),
);
const InputText = open({
  type: Type.Enum(['input_text', 'output_text', 'text'], {
    description: '`output_text` in messages of the assistant; both are accepted wherever text is allowed.',
  }),
  text: Type.String(),
  annotations: orNull(Type.Array(anything('As in the answer.'))),
  logprobs: orNull(Type.Array(anything('As in the answer.'))),
  prompt_cache_breakpoint: Breakpoint,
});
const InputImage = open({
  type: Type.Literal('input_image'),
  image_url: orNull(Type.String({ description: 'A URL, or a base64 data URL.' })),
  file_id: orNull(Type.String()),
  detail: orNull(ImageDetail),
  prompt_cache_breakpoint: Breakpoint,
});
const InputFile = open({
  type: Type.Literal('input_file'),
  file_data: orNull(Type.String({ description: 'A base64 data URL.' })),
  file_url: orNull(Type.String()),
  file_id: orNull(Type.String()),
  filename: orNull(Type.String()),
  prompt_cache_breakpoint: Breakpoint,
});
const InputAudio = open({
  type: Type.Literal('input_audio'),
  input_audio: open({
    data: Type.String({ description: 'Base64.' }),
    format: Type.String({ description: '`mp3` or `wav`; other formats if a model accepts them.' }),
  }),
});
const InputVideo = open({
  type: Type.Literal('input_video'),
  video_url: Type.String({ minLength: 1, description: 'A URL, or a base64 data URL.' }),
});
const Refusal = open({ type: Type.Literal('refusal'), refusal: Type.String() });

const Part = Type.Union([InputText, InputImage, InputFile, InputAudio, InputVideo, Refusal], {
  title: 'ResponsesContentPart',
});

const parts = <T extends TSchema>(schema: T) => Type.Array(schema, { maxItems: limits.item_parts_max });
const id = orNull(Type.String({ description: 'As in the answer.' }));
const status = orNull(Type.String({ description: '`completed`, `in_progress` or `incomplete`.' }));
const callId = Type.String({ minLength: 1 });

const MessageItem = open({
  type: Type.Optional(Type.Literal('message')),
  role: Type.Enum(['user', 'assistant', 'system', 'developer']),
  content: Type.Union([Type.String(), parts(Part)]),
  id,
  status,
  phase: orNull(Type.String({ description: '`commentary` or `final_answer`; of messages of the assistant.' })),
});
const ReasoningPart = open({ type: Type.Optional(Type.String()), text: Type.String() });
const ReasoningItem = open({
  type: Type.Literal('reasoning'),
  id,
  status,
  summary: orNull(parts(ReasoningPart)),
  content: orNull(parts(ReasoningPart)),
  encrypted_content: orNull(Type.String({ description: 'As in the answer, unchanged.' })),
  signature: orNull(Type.String({ description: 'Of the text in `content`.' })),
  format: orNull(Type.String({ description: 'The vendor whose format it has, such as `anthropic-claude-v1`.' })),
});
const FunctionCallItem = open({
  type: Type.Literal('function_call'),
  id,
  status,
  call_id: callId,
  name: Type.String({ minLength: 1 }),
  arguments: Type.String({ description: 'A JSON string.' }),
  namespace: orNull(Type.String()),
});
const Output = Type.Union([Type.String(), parts(Part)]);
const FunctionCallOutputItem = open({
  type: Type.Literal('function_call_output'),
  id,
  status,
  call_id: orNull(callId),
  name: orNull(Type.String({ description: 'Of the tool, if there is no `call_id`.' })),
  output: Output,
});
const CustomToolCallItem = open({
  type: Type.Literal('custom_tool_call'),
  id,
  status,
  call_id: callId,
  name: Type.String({ minLength: 1 }),
  input: Type.String(),
  namespace: orNull(Type.String()),
});
const CustomToolCallOutputItem = open({
  type: Type.Literal('custom_tool_call_output'),
  id,
  status,
  call_id: callId,
  output: Output,
});
const ImageGenerationItem = open({
  type: Type.Literal('image_generation_call'),
  id,
  status,
  result: orNull(Type.String({ description: 'The picture in base64.' })),
});

/** Items that only providers with this API understand. */
const NATIVE_ITEMS = [
  'additional_tools',
  'apply_patch_call',
  'apply_patch_call_output',
  'code_interpreter_call',
  'compaction',
  'compaction_trigger',
  'computer_call',
  'computer_call_output',
  'configuration_update',
  'file_search_call',
  'item_reference',
  'local_shell_call',
  'local_shell_call_output',
  'mcp_approval_request',
  'mcp_approval_response',
  'mcp_call',
  'mcp_list_tools',
  'program',
  'program_output',
  'shell_call',
  'shell_call_output',
  'tool_search_call',
  'tool_search_output',
  'web_search_call',
];

const InputItem = Type.Union(
  [
    MessageItem,
    ReasoningItem,
    FunctionCallItem,
    FunctionCallOutputItem,
    CustomToolCallItem,
    CustomToolCallOutputItem,
    ImageGenerationItem,
    open({ type: Type.Enum(NATIVE_ITEMS) }, { description: "An item of OpenAI's own, as in the answer." }),
  ],
  { title: 'ResponsesInputItem' },
);

const functionFields = {
  name: Type.String({ minLength: 1, maxLength: 128 }),
  description: orNull(Type.String()),
  parameters: orNull(anything('A JSON Schema.')),
  strict: orNull(
    Type.Boolean({
      description: 'Default: that of the provider. OpenAI makes schemas strict if it can.',
    }),
  ),
};
const FunctionTool = open({
  type: Type.Optional(Type.Literal('function')),
  ...functionFields,
  name: Type.Optional(functionFields.name),
  function: orNull(
    open(functionFields, { description: 'The form of chat completions: accepted instead of flat fields.' }),
  ),
});
const CustomTool = open({
  type: Type.Literal('custom'),
  name: Type.String({ minLength: 1, maxLength: 128 }),
  description: orNull(Type.String()),
  format: orNull(anything('`{type: "text"}`, or `{type: "grammar", syntax, definition}`.')),
});
const NamespaceTool = open({
  type: Type.Literal('namespace'),
  name: Type.String({ minLength: 1, maxLength: 64 }),
  description: orNull(Type.String()),
  tools: Type.Array(Type.Union([open({ type: Type.Literal('function'), ...functionFields }), CustomTool]), {
    maxItems: limits.tools_max,
  }),
});
const OtherTool = open({
  type: Type.String({
    minLength: 1,
    not: { enum: ['function', 'custom', 'namespace', 'native'] },
    description:
      "A tool of OpenAI's, such as `web_search`, `mcp` or `file_search`, or a server tool of the gateway, such as `gateway:web_search`.",
  }),
});
const Tool = Type.Union([FunctionTool, CustomTool, NamespaceTool, OtherTool], { title: 'ResponsesTool' });

const ToolChoice = Type.Union([
  Type.Enum(['none', 'auto', 'required']),
  open({
    type: Type.Literal('function'),
    name: Type.Optional(Type.String({ minLength: 1 })),
    function: orNull(open({ name: Type.String({ minLength: 1 }) })),
  }),
  open({ type: Type.Literal('custom'), name: Type.String({ minLength: 1 }) }),
  open({
    type: Type.Literal('allowed_tools'),
    mode: orNull(Type.Enum(['auto', 'required'])),
    tools: Type.Array(anything('Of those in `tools`, for example `{type: "function", name}`.'), {
      maxItems: limits.tools_max,
    }),
  }),
  open({
    type: Type.String({
      minLength: 1,
      not: { enum: ['function', 'custom', 'allowed_tools', 'native'] },
      description: 'A tool of another kind, such as `web_search_preview` or `mcp`.',
    }),
  }),
]);

const TextFormat = Type.Union([
  open({ type: Type.Literal('text') }),
  open({ type: Type.Literal('json_object') }),
  open({
    type: Type.Literal('json_schema'),
    name: Type.String({ minLength: 1, maxLength: 64 }),
    schema: anything('A JSON Schema.'),
    description: orNull(Type.String()),
    strict: orNull(Type.Boolean()),
  }),
]);

const handles = orNull(Type.Array(Type.String({ minLength: 1 }), { maxItems: X_HANDLES_MAX }));
const date = (description: string) =>
  orNull(Type.String({ maxLength: limits.date_chars_max, description: `${description} An ISO 8601 date.` }));
const XSearchFilter = open(
  {
    allowed_x_handles: handles,
    excluded_x_handles: handles,
    from_date: date('The earliest day.'),
    to_date: date('The last day.'),
    enable_image_understanding: orNull(Type.Boolean()),
    enable_video_understanding: orNull(Type.Boolean()),
  },
  {
    description:
      'The posts that xAI models search. `allowed_x_handles` and `excluded_x_handles` exclude each other. For other models it is removed, which `gateway_metadata` shows.',
  },
);

const domains = orNull(Type.Array(Type.String({ minLength: 1 })));
const OtherPlugin = chat.plugins.anyOf[0].items;
const Plugin = Type.Union([
  open(
    {
      id: Type.Literal('web'),
      enabled: orNull(Type.Boolean()),
      engine: orNull(Type.String()),
      max_results: orNull(Type.Integer({ minimum: 1, maximum: 25, description: 'Default: 5.' })),
      include_domains: domains,
      exclude_domains: domains,
    },
    { description: 'Deprecated: use the server tool `gateway:web_search`.' },
  ),
  OtherPlugin,
]);

const alwaysNull = (description: string) => orNull(Type.Unknown({ description }));

export const ResponsesBody = open(
  {
    input: Type.Union([Type.String(), Type.Array(InputItem, { minItems: 1, maxItems: limits.messages_max })], {
      description: 'A text of the user, or a conversation.',
    }),
    instructions: orNull(Type.String({ description: 'Instructions before the conversation.' })),
    model: chat.model,
    models: chat.models,
    route: chat.route,
    provider: chat.provider,
    plugins: orNull(Type.Array(Plugin)),
    stream: chat.stream,
    max_output_tokens: orNull(Type.Integer({ minimum: 1 })),
    max_tool_calls: chat.max_tool_calls,
    tools: orNull(Type.Array(Tool, { maxItems: limits.tools_max })),
    tool_choice: orNull(ToolChoice),
    parallel_tool_calls: chat.parallel_tool_calls,
    text: orNull(open({ format: orNull(TextFormat), verbosity: chat.verbosity })),
    reasoning: orNull(
      open({
        ...chat.reasoning.anyOf[0].properties,
        generate_summary: orNull(Type.String({ description: 'The older name of `summary`.' })),
        context: orNull(Type.String({ description: 'Which reasoning of earlier turns the model sees (OpenAI).' })),
      }),
    ),
    include: orNull(
      Type.Array(Type.String(), {
        description: 'Additional content of the answer, such as `reasoning.encrypted_content`.',
      }),
    ),
    temperature: chat.temperature,
    top_p: chat.top_p,
    top_k: chat.top_k,
    top_logprobs: chat.top_logprobs,
    frequency_penalty: chat.frequency_penalty,
    presence_penalty: chat.presence_penalty,
    truncation: orNull(Type.Enum(['auto', 'disabled'])),
    service_tier: chat.service_tier,
    user: chat.user,
    safety_identifier: orNull(Type.String({ maxLength: limits.attribution_chars_max })),
    metadata: chat.metadata,
    session_id: chat.session_id,
    trace: orNull(anything('For observability.')),
    cache_control: chat.cache_control,
    prompt_cache_key: orNull(Type.String()),
    modalities: chat.modalities,
    image_config: orNull(anything('For models that make pictures, such as `aspect_ratio`.')),
    x_search_filter: orNull(XSearchFilter),
    stop_server_tools_when: chat.stop_server_tools_when,
    debug: chat.debug,
    store: orNull(Type.Boolean({ description: 'Only `false`, unless the operator enabled stored responses.' })),
    previous_response_id: orNull(Type.String({ description: 'Only if responses are stored.' })),
    background: orNull(Type.Boolean({ description: 'Only `false`.' })),
    conversation: alwaysNull('Only `null`: no conversations are kept.'),
    prompt: alwaysNull('Only `null`: no prompts are kept.'),
  },
  {
    title: 'ResponsesRequest',
    examples: [{ model: 'sandbox/echo', input: 'Hello' }],
  },
);

/** A request body that matches the schema. */
export type ResponsesRequestBody = Static<typeof ResponsesBody>;
