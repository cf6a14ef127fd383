/** Every field of a Messages request. A name that the official types gain or lose is a type error here. */
import type {
  BetaContentBlockParam,
  MessageCreateParamsBase as BetaParams,
  BetaToolUnion,
} from '@anthropic-ai/sdk/resources/beta/messages/messages';
import type {
  ContentBlockParam,
  MessageCreateParamsBase,
  ToolUnion,
} from '@anthropic-ai/sdk/resources/messages/messages';
import { hashUser } from '../../src/providers/shared/user-hash.ts';
import type { JsonObject } from '../../src/schemas/json.ts';
import type { KindRow, RequestRow } from './row.ts';

const TOOL = { name: 'f', description: 'Does it.', input_schema: { type: 'object', properties: {} } };
const SCHEMA = { type: 'object', properties: {}, required: [], additionalProperties: false };

export const messagesFields = {
  model: { value: 'a/b', goes: 'to the gateway', inner: ['model', 'a/b'] },
  messages: {
    value: [{ role: 'user', content: 'Question' }],
    goes: 'on',
    other: ['messages[0]', { role: 'user', content: 'Question' }],
  },
  system: {
    value: 'Be brief.',
    goes: 'on',
    other: ['messages[0]', { role: 'system', content: 'Be brief.' }],
  },
  max_tokens: { value: 100, goes: 'on', other: ['max_tokens', 100] },
  stop_sequences: { value: ['END'], goes: 'on', other: ['stop', ['END']] },
  tools: {
    value: [TOOL],
    goes: 'on',
    other: ['tools[0].function', { name: 'f', description: 'Does it.', parameters: TOOL.input_schema }],
  },
  tool_choice: {
    value: { type: 'tool', name: 'f', disable_parallel_tool_use: true },
    with: { tools: [TOOL] },
    goes: 'on',
    other: ['tool_choice', { type: 'function', function: { name: 'f' } }],
  },
  thinking: {
    value: { type: 'enabled', budget_tokens: 2048 },
    with: { max_tokens: 8000 },
    goes: 'on',
    other: ['reasoning_effort', 'low'],
  },
  output_config: {
    value: { effort: 'low', format: { type: 'json_schema', schema: SCHEMA } },
    goes: 'on',
    other: ['response_format.json_schema.schema', SCHEMA],
  },
  output_format: {
    value: { type: 'json_schema', schema: SCHEMA },
    goes: 'on',
    other: ['response_format.json_schema.schema', SCHEMA],
  },
  metadata: {
    value: { user_id: 'u' },
    goes: 'on',
    own: ['metadata.user_id', hashUser('u')],
    other: ['user', hashUser('u')],
  },
  cache_control: { value: { type: 'ephemeral' }, goes: 'to its own wire' },
  service_tier: { value: 'standard_only', goes: 'on', other: ['service_tier', 'default'] },
  container: { value: 'container_1', goes: 'to its own wire' },
  context_management: { value: { edits: [{ type: 'clear_tool_uses_20250919' }] }, goes: 'to its own wire' },
  mcp_servers: { value: [{ type: 'url', name: 'm', url: 'https://mcp.example' }], goes: 'to its own wire' },
  inference_geo: { value: 'us', goes: 'back', says: /inference_geo/ },

  speed: { value: 'fast', goes: 'nowhere' },
  diagnostics: { value: {}, goes: 'to its own wire' },
  user_profile_id: { value: 'up_1', goes: 'to its own wire' },
  workspace_id: { value: 'w_1', goes: 'to its own wire' },
  fallbacks: { value: [{ model: 'c/d' }], goes: 'to the gateway', inner: ['models', ['c/d']] },
  fallback_credit_token: { value: 't', goes: 'nowhere' },
  billing_policy: { value: {}, goes: 'nowhere' },
  compaction: { value: {}, goes: 'to its own wire' },
  thread: { value: {}, goes: 'back', says: /thread/ },
  stream: { value: true, goes: 'on', other: ['stream', true] },
  betas: { value: ['x'], goes: 'to the gateway' },
} satisfies Record<keyof MessageCreateParamsBase | keyof BetaParams, RequestRow>;

/** Fields that the public service adds. */
export const messagesAdditions = {
  temperature: { value: 0.5, goes: 'on', other: ['temperature', 0.5] },
  top_p: { value: 0.5, goes: 'on', other: ['top_p', 0.5] },
  top_k: { value: 5, goes: 'on', other: ['top_k', 5] },
  models: { value: ['a/b', 'c/d'], goes: 'to the gateway', inner: ['models', ['a/b', 'c/d']] },
  provider: { value: { only: ['p'] }, goes: 'to the gateway', inner: ['provider', { only: ['p'] }] },
  plugins: { value: [{ id: 'web' }], goes: 'to the gateway', inner: ['plugins', [{ id: 'web' }]] },
  debug: {
    value: { echo_upstream_body: true },
    goes: 'to the gateway',
    inner: ['debug', { echo_upstream_body: true }],
  },
  route: { value: 'fallback', goes: 'to the gateway', inner: ['route', 'fallback'] },
  session_id: { value: 's', goes: 'to the gateway', inner: ['session_id', 's'] },
  trace: { value: { a: 'b' }, goes: 'to the gateway', inner: ['trace', { a: 'b' }] },
  user: { value: 'u', goes: 'on', own: ['metadata.user_id', hashUser('u')], other: ['user', hashUser('u')] },
  max_tool_calls: { value: 3, goes: 'to the gateway', inner: ['max_tool_calls', 3] },
  stop_server_tools_when: {
    value: [{ type: 'step_count_is', step_count: 2 }],
    goes: 'to the gateway',
    inner: ['stop_server_tools_when', [{ type: 'step_count_is', step_count: 2 }]],
  },
} satisfies Record<string, RequestRow>;

const USE = { type: 'tool_use', id: 'toolu_1', name: 'f', input: { a: 1 } };
const RESULT = { type: 'tool_result', tool_use_id: 'toolu_1', content: [{ type: 'text', text: 'Result' }] };
const HINT = { type: 'ephemeral', ttl: '1h' };

/** Every kind of block that a conversation may have. */
export const messagesBlocks = {
  text: { value: { type: 'text', text: 'Said', cache_control: HINT }, other: '"Said"' },
  image: {
    value: { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AA==' } },
    other: '"image_url":{"url":"data:image/png;base64,AA=="}',
  },
  document: {
    value: {
      type: 'document',
      source: { type: 'base64', media_type: 'application/pdf', data: 'AA==' },
      title: 't.pdf',
      context: 'c',
      citations: { enabled: true },
    },
    other: '"file_data":"data:application/pdf;base64,AA=="',
  },
  search_result: {
    value: { type: 'search_result', source: 's', title: 't', content: [{ type: 'text', text: 'Found' }] },
    other: 'Found',
  },
  thinking: {
    role: 'assistant',
    value: { type: 'thinking', thinking: 'Thought', signature: 'c2ln' },
    after: [{ type: 'text', text: 'A' }],
    other: null,
  },
  redacted_thinking: {
    role: 'assistant',
    value: { type: 'redacted_thinking', data: 'ZGF0YQ==' },
    after: [{ type: 'text', text: 'A' }],
    other: null,
  },
  tool_use: {
    role: 'assistant',
    value: { ...USE, cache_control: HINT, caller: { type: 'direct' } },
    other: '"function":{"name":"f","arguments":"{\\"a\\":1}"}',
  },
  tool_result: {
    value: { ...RESULT, is_error: true, cache_control: HINT },
    before: [USE],
    other: '"Result"',
  },
  ...natives({
    server_tool_use: { id: 'srvtoolu_1', name: 'web_search', input: { query: 'q' } },
    web_search_tool_result: { tool_use_id: 'srvtoolu_1', content: [] },
    web_fetch_tool_result: { tool_use_id: 'srvtoolu_1', content: {} },
    code_execution_tool_result: { tool_use_id: 'srvtoolu_1', content: {} },
    bash_code_execution_tool_result: { tool_use_id: 'srvtoolu_1', content: {} },
    text_editor_code_execution_tool_result: { tool_use_id: 'srvtoolu_1', content: {} },
    tool_search_tool_result: { tool_use_id: 'srvtoolu_1', content: {} },
    advisor_tool_result: { tool_use_id: 'srvtoolu_1', content: {} },
    mcp_tool_use: { id: 'mcptoolu_1', name: 't', server_name: 's', input: {} },
    mcp_tool_result: { tool_use_id: 'mcptoolu_1', content: [], is_error: false },
    mcp_tool_listing: { server_name: 's', tools: [] },
    container_upload: { file_id: 'file_1' },
    compaction: { content: 'Summary' },
    fallback: { from: { model: 'a' }, to: { model: 'b' } },
  }),
  tool_addition: { role: 'system', value: { type: 'tool_addition', name: 'f' }, other: null },
  tool_removal: { role: 'system', value: { type: 'tool_removal', name: 'f' }, other: null },
} satisfies Record<ContentBlockParam['type'] | BetaContentBlockParam['type'], KindRow>;

/** Blocks of the provider's own: unchanged on their wire, omitted elsewhere. */
function natives<const Kinds extends Record<string, JsonObject>>(kinds: Kinds): Record<keyof Kinds & string, KindRow> {
  const rows = Object.entries(kinds).map(([type, fields]): [string, KindRow] => [
    type,
    { role: 'assistant', value: { type, ...fields }, other: null },
  ]);
  return Object.fromEntries(rows) as Record<keyof Kinds & string, KindRow>;
}

/** Every kind of tool that a request may declare. */
export const messagesTools = {
  custom: {
    value: {
      type: 'custom',
      ...TOOL,
      strict: true,
      cache_control: HINT,
      defer_loading: false,
      input_examples: [{}],
      eager_input_streaming: true,
      allowed_callers: ['direct'],
    },
    other: '"name":"f"',
  },
  ...natives({
    bash_20241022: { name: 'bash' },
    bash_20250124: { name: 'bash' },
    text_editor_20241022: { name: 'str_replace_editor' },
    text_editor_20250124: { name: 'str_replace_editor' },
    text_editor_20250429: { name: 'str_replace_based_edit_tool' },
    text_editor_20250728: { name: 'str_replace_based_edit_tool' },
    code_execution_20250522: { name: 'code_execution' },
    code_execution_20250825: { name: 'code_execution' },
    code_execution_20260120: { name: 'code_execution' },
    code_execution_20260521: { name: 'code_execution' },
    computer_20241022: { name: 'computer', display_width_px: 1, display_height_px: 1 },
    computer_20250124: { name: 'computer', display_width_px: 1, display_height_px: 1 },
    computer_20251124: { name: 'computer', display_width_px: 1, display_height_px: 1 },
    computer_toolset_20260801: { name: 'computer' },
    browser_toolset_20260801: { name: 'browser' },
    memory_20250818: { name: 'memory' },
    web_search_20250305: { name: 'web_search', max_uses: 1 },
    web_search_20260209: { name: 'web_search', max_uses: 1 },
    web_search_20260318: { name: 'web_search', max_uses: 1 },
    web_fetch_20250910: { name: 'web_fetch', max_uses: 1 },
    web_fetch_20260209: { name: 'web_fetch', max_uses: 1 },
    web_fetch_20260309: { name: 'web_fetch', max_uses: 1 },
    web_fetch_20260318: { name: 'web_fetch', max_uses: 1 },
    advisor_20260301: { name: 'advisor', model: 'claude-x' },
    tool_search_tool_bm25_20251119: { name: 'tool_search_tool_bm25' },
    tool_search_tool_bm25: { name: 'tool_search_tool_bm25' },
    tool_search_tool_regex_20251119: { name: 'tool_search_tool_regex' },
    tool_search_tool_regex: { name: 'tool_search_tool_regex' },
    mcp_toolset: { mcp_server_name: 's' },
  }),
} satisfies Record<NonNullable<(ToolUnion | BetaToolUnion)['type']>, KindRow>;
