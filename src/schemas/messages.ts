/**
 * What `POST /messages` and `POST /messages/count_tokens` accept: the Messages API of Anthropic
 * (https://platform.claude.com/docs/en/api/messages; its official types), and fields of the gateway.
 *
 * The kinds of blocks that a client writes are a closed list; their fields are open, and unknown ones are sent to upstreams of the same
 * wire. A turn of the model may contain blocks of any kind, since upstreams add kinds and clients send them back.
 */
import Type, { type TProperties, type TSchema } from 'typebox';
import { limits } from '../limits.ts';
import { ChatCompletionBody } from './chat.ts';

const orNull = <T extends TSchema>(schema: T) => Type.Optional(Type.Union([schema, Type.Null()]));
const open = <T extends TProperties>(properties: T, options: object = {}) =>
  Type.Object(properties, { additionalProperties: true, ...options });
const anything = Type.Object({}, { additionalProperties: true });

const CacheControl = open({
  type: Type.Literal('ephemeral'),
  ttl: orNull(Type.Union([Type.Literal('5m'), Type.Literal('1h')])),
});
const cached = { cache_control: orNull(CacheControl) };

const UrlSource = open({ type: Type.Literal('url'), url: Type.String({ minLength: 1 }) });
const FileSource = open({ type: Type.Literal('file'), file_id: Type.String({ minLength: 1 }) });
const Base64Source = open({ type: Type.Literal('base64'), media_type: Type.String(), data: Type.String() });

const TextBlock = open({
  type: Type.Literal('text'),
  text: Type.String(),
  citations: orNull(Type.Array(anything)),
  ...cached,
});
const ImageBlock = open({
  type: Type.Literal('image'),
  source: Type.Union([Base64Source, UrlSource, FileSource]),
  ...cached,
});
const DocumentBlock = open({
  type: Type.Literal('document'),
  source: Type.Union([
    Base64Source,
    UrlSource,
    FileSource,
    open({ type: Type.Literal('text'), media_type: Type.Optional(Type.String()), data: Type.String() }),
    open({
      type: Type.Literal('content'),
      content: Type.Union([Type.String(), Type.Array(Type.Union([TextBlock, ImageBlock]))]),
    }),
  ]),
  title: orNull(Type.String()),
  context: orNull(Type.String()),
  citations: orNull(anything),
  ...cached,
});
const SearchResultBlock = open({
  type: Type.Literal('search_result'),
  source: Type.String(),
  title: Type.String(),
  content: Type.Array(TextBlock),
  citations: orNull(anything),
  ...cached,
});
const ToolResultBlock = open({
  type: Type.Literal('tool_result'),
  tool_use_id: Type.String(),
  content: orNull(
    Type.Union([
      Type.String(),
      Type.Array(
        Type.Union([
          TextBlock,
          ImageBlock,
          DocumentBlock,
          SearchResultBlock,
          open({ type: Type.Enum(['tool_reference', 'browser_state']) }),
        ]),
      ),
    ]),
  ),
  is_error: orNull(Type.Boolean()),
  ...cached,
});

/** Blocks that only upstreams of this wire know: results of their own tools, and changes of the conversation. */
const SERVER_BLOCKS = [
  'server_tool_use',
  'web_search_tool_result',
  'web_fetch_tool_result',
  'code_execution_tool_result',
  'bash_code_execution_tool_result',
  'text_editor_code_execution_tool_result',
  'tool_search_tool_result',
  'advisor_tool_result',
  'mcp_tool_use',
  'mcp_tool_result',
  'mcp_tool_listing',
  'container_upload',
  'compaction',
  'fallback',
  'tool_addition',
  'tool_removal',
];

const shapedBlocks = [
  TextBlock,
  ImageBlock,
  DocumentBlock,
  SearchResultBlock,
  ToolResultBlock,
  open({
    type: Type.Literal('tool_use'),
    id: Type.String(),
    name: Type.String({ minLength: 1 }),
    input: Type.Unknown(),
    ...cached,
  }),
  open({ type: Type.Literal('thinking'), thinking: Type.String(), signature: orNull(Type.String()) }),
  open({ type: Type.Literal('redacted_thinking'), data: Type.String() }),
];
const ServerBlock = open(
  { type: Type.Enum(SERVER_BLOCKS) },
  { description: 'Only for providers of this API; not sent to others.' },
);
const Content = Type.Union([Type.String(), Type.Array(Type.Union([...shapedBlocks, ServerBlock]))]);
/** A block of an unknown kind. Known kinds must match their own schema. */
const NewBlock = open(
  {
    type: Type.String({
      minLength: 1,
      not: { enum: [...shapedBlocks.map(({ properties }) => properties.type.const), ...SERVER_BLOCKS, 'native'] },
    }),
  },
  { description: 'Made by a provider of this API; not sent to others.' },
);
const ModelContent = Type.Union([Type.String(), Type.Array(Type.Union([...shapedBlocks, ServerBlock, NewBlock]))]);

const Message = Type.Union(
  [
    open({ role: Type.Literal('user'), content: Content }),
    open({ role: Type.Literal('assistant'), content: ModelContent }),
    open({ role: Type.Literal('system'), content: orNull(Content) }),
  ],
  { title: 'MessagesMessage' },
);

/** A tool type other than those with a schema of their own. */
const providersTool = Type.String({
  minLength: 1,
  not: { enum: ['custom', 'function', 'native'] },
  description: 'A tool of the provider, such as `bash_20250124`, or one of the gateway, such as `gateway:web_search`.',
});
const Tool = Type.Union([
  open({
    type: Type.Optional(Type.Unsafe<'custom' | null>({ enum: ['custom', null] })),
    name: Type.String({ minLength: 1, maxLength: 128 }),
    description: orNull(Type.String()),
    input_schema: Type.Object({}, { additionalProperties: true, description: 'A JSON Schema.' }),
    strict: orNull(Type.Boolean()),
    ...cached,
  }),
  open({ type: providersTool, ...cached }),
]);
const ToolChoice = Type.Union([
  open({ type: Type.Enum(['auto', 'any', 'none']), disable_parallel_tool_use: orNull(Type.Boolean()) }),
  open({
    type: Type.Literal('tool'),
    name: Type.String({ minLength: 1 }),
    disable_parallel_tool_use: orNull(Type.Boolean()),
  }),
]);

const display = { display: orNull(Type.String()) };
const Thinking = Type.Union([
  open({ type: Type.Literal('enabled'), budget_tokens: Type.Integer({ minimum: 1 }), ...display }),
  open({ type: Type.Literal('adaptive'), ...display }),
  open({ type: Type.Literal('disabled') }),
  open({ type: Type.Literal('between_tools') }),
]);
const JsonFormat = open({ type: Type.Literal('json_schema'), schema: Type.Object({}, { additionalProperties: true }) });
const OutputConfig = open({
  effort: orNull(Type.Enum(['low', 'medium', 'high', 'xhigh', 'max'])),
  format: orNull(JsonFormat),
  task_budget: orNull(anything),
});

const { provider, models, route, plugins, session_id, user, debug, model, max_tool_calls, stop_server_tools_when } =
  ChatCompletionBody.properties;

/** The fields that make the prompt, which both operations read. */
const prompt = {
  model,
  messages: Type.Array(Message, { minItems: 1, maxItems: limits.messages_max }),
  system: orNull(Type.Union([Type.String(), Type.Array(TextBlock)])),
  tools: orNull(Type.Array(Tool, { maxItems: limits.tools_max })),
  tool_choice: orNull(ToolChoice),
  thinking: orNull(Thinking),
  output_config: orNull(OutputConfig),
  output_format: orNull(JsonFormat),
  cache_control: orNull(CacheControl),
  context_management: orNull(anything),
  mcp_servers: orNull(Type.Array(anything)),
  speed: orNull(Type.Enum(['standard', 'fast'])),
  models,
  provider,
  plugins,
  route,
  session_id,
  trace: orNull(anything),
  user,
  debug,
  max_tool_calls,
  stop_server_tools_when,
};
const EXAMPLE = { model: 'sandbox/echo', max_tokens: 100, messages: [{ role: 'user', content: 'Hello' }] };

export const MessagesBody = open(
  {
    ...prompt,
    max_tokens: orNull(
      Type.Integer({
        minimum: 0,
        description:
          'Default: the maximum of the endpoint. 0 fills the prompt cache without an answer, at endpoints with this API.',
      }),
    ),
    stop_sequences: orNull(Type.Array(Type.String(), { maxItems: limits.stop_sequences_max })),
    stream: orNull(Type.Boolean()),
    temperature: orNull(Type.Number({ minimum: 0, maximum: 2 })),
    top_p: orNull(Type.Number({ minimum: 0, maximum: 1 })),
    top_k: orNull(Type.Number({ minimum: 0 })),
    metadata: orNull(open({ user_id: orNull(Type.String({ maxLength: limits.attribution_chars_max })) })),
    service_tier: orNull(Type.String({ maxLength: 40 })),
    container: orNull(Type.Union([Type.String(), anything])),
    inference_geo: orNull(Type.String({ maxLength: 40 })),
    fallbacks: orNull(
      Type.Union([
        Type.Array(open({ model: Type.String({ minLength: 1, maxLength: 256 }) }), { maxItems: limits.models_max }),
        Type.Literal('default'),
      ]),
    ),
  },
  { title: 'MessagesRequest', examples: [EXAMPLE] },
);

export const CountTokensBody = open(prompt, {
  title: 'CountTokensRequest',
  examples: [{ model: EXAMPLE.model, messages: EXAMPLE.messages }],
});

export const TokenCount = Type.Object(
  {
    input_tokens: Type.Integer({ minimum: 0 }),
    estimated: Type.Optional(Type.Literal(true, { description: 'Counted by the gateway, not by the provider.' })),
  },
  { title: 'MessagesTokenCount', additionalProperties: true },
);
