/** Every field of a Responses request. A name that the official types gain or lose is a type error here. */
import type { ResponseCreateParamsBase, ResponseInputItem, Tool } from 'openai/resources/responses/responses';
import { hashUser } from '../../src/providers/shared/user-hash.ts';
import type { JsonObject } from '../../src/schemas/json.ts';
import type { KindRow, RequestRow } from './row.ts';

const FUNCTION = {
  type: 'function',
  name: 'f',
  description: 'Does it.',
  parameters: { type: 'object', properties: {} },
  strict: false,
};
const CHAT_FUNCTION = {
  type: 'function',
  function: {
    name: 'f',
    description: 'Does it.',
    parameters: { type: 'object', properties: {} },
    strict: false,
  },
};
const SCHEMA = { type: 'object', properties: {}, required: [], additionalProperties: false };

export const responsesFields = {
  model: { value: 'a/b', goes: 'to the gateway', inner: ['model', 'a/b'] },
  input: {
    value: 'Question',
    goes: 'on',
    own: ['input', [{ type: 'message', role: 'user', content: 'Question' }]],
    other: ['messages[0]', { role: 'user', content: 'Question' }],
  },
  instructions: { value: 'Be brief.', goes: 'on', other: ['messages[0].content', 'Be brief.'] },
  max_output_tokens: { value: 100, goes: 'on', other: ['max_completion_tokens', 100] },
  temperature: { value: 0.5, goes: 'on', other: ['temperature', 0.5] },
  top_p: { value: 0.5, goes: 'on', other: ['top_p', 0.5] },
  top_logprobs: {
    value: 2,
    goes: 'on',
    other: ['top_logprobs', 2],
    with: { include: ['message.output_text.logprobs'] },
  },
  include: {
    value: ['message.output_text.logprobs', 'file_search_call.results'],
    goes: 'on',
    own: ['include', ['file_search_call.results', 'reasoning.encrypted_content', 'message.output_text.logprobs']],
    other: ['logprobs', true],
  },
  text: {
    value: { format: { type: 'json_schema', name: 's', schema: SCHEMA, strict: true }, verbosity: 'low' },
    goes: 'on',
    other: ['response_format', { type: 'json_schema', json_schema: { name: 's', schema: SCHEMA, strict: true } }],
  },
  reasoning: { value: { effort: 'high', summary: 'auto' }, goes: 'on', other: ['reasoning_effort', 'high'] },
  tools: { value: [FUNCTION], goes: 'on', other: ['tools', [CHAT_FUNCTION]] },
  tool_choice: {
    value: { type: 'function', name: 'f' },
    with: { tools: [FUNCTION] },
    goes: 'on',
    other: ['tool_choice', { type: 'function', function: { name: 'f' } }],
  },
  parallel_tool_calls: {
    value: false,
    with: { tools: [FUNCTION] },
    goes: 'on',
    other: ['parallel_tool_calls', false],
  },
  service_tier: { value: 'flex', goes: 'on', other: ['service_tier', 'flex'] },
  prompt_cache_key: { value: 'k', goes: 'on', other: ['prompt_cache_key', 'k'] },
  prompt_cache_options: {
    value: { mode: 'explicit' },
    goes: 'on',
    other: ['prompt_cache_options', { mode: 'explicit' }],
  },
  prompt_cache_retention: { value: '24h', goes: 'on', other: ['prompt_cache_retention', '24h'] },
  truncation: { value: 'auto', goes: 'to its own wire' },
  moderation: { value: { model: 'omni-moderation-latest' }, goes: 'to its own wire' },
  context_management: { value: [{ type: 'compaction' }], goes: 'to its own wire' },
  stream_options: { value: { include_obfuscation: false }, goes: 'to the gateway' },
  access_programs: { value: {}, goes: 'to its own wire' },
  image: { value: {}, goes: 'to its own wire' },
  user: { value: 'u', goes: 'on', own: ['safety_identifier', hashUser('u')], other: ['user', hashUser('u')] },
  safety_identifier: {
    value: 'u',
    goes: 'on',
    own: ['safety_identifier', hashUser('u')],
    other: ['user', hashUser('u')],
  },
  metadata: { value: { a: 'b' }, goes: 'to its own wire' },
  max_tool_calls: { value: 3, goes: 'to the gateway', inner: ['max_tool_calls', 3] },
  stream: { value: true, goes: 'on', other: ['stream', true] },
  store: { value: true, goes: 'back', says: /store/ },
  background: { value: true, goes: 'back', says: /background/ },
  conversation: { value: 'conv_1', goes: 'back', says: /conversation/ },
  previous_response_id: { value: 'resp_1', goes: 'back', says: /previous_response_id/ },
  prompt: { value: { id: 'pmpt_1' }, goes: 'back', says: /prompt/ },
} satisfies Record<keyof ResponseCreateParamsBase, RequestRow>;

/** Fields that the public service adds. */
export const responsesAdditions = {
  models: { value: ['a/b', 'c/d'], goes: 'to the gateway', inner: ['models', ['a/b', 'c/d']] },
  provider: { value: { only: ['p'] }, goes: 'to the gateway', inner: ['provider', { only: ['p'] }] },
  plugins: { value: [{ id: 'web' }], goes: 'to the gateway', inner: ['plugins', [{ id: 'web' }]] },
  route: { value: 'fallback', goes: 'to the gateway', inner: ['route', 'fallback'] },
  session_id: { value: 's', goes: 'to the gateway', inner: ['session_id', 's'] },
  trace: { value: { a: 'b' }, goes: 'to the gateway', inner: ['trace', { a: 'b' }] },
  debug: {
    value: { echo_upstream_body: true },
    goes: 'to the gateway',
    inner: ['debug', { echo_upstream_body: true }],
  },
  stop_server_tools_when: {
    value: [{ type: 'step_count_is', step_count: 2 }],
    goes: 'to the gateway',
    inner: ['stop_server_tools_when', [{ type: 'step_count_is', step_count: 2 }]],
  },
  top_k: { value: 5, goes: 'to other wires', other: ['top_k', 5] },
  frequency_penalty: { value: 0.5, goes: 'to other wires', other: ['frequency_penalty', 0.5] },
  presence_penalty: { value: 0.5, goes: 'to other wires', other: ['presence_penalty', 0.5] },
  modalities: { value: ['text'], goes: 'to other wires', other: ['modalities', ['text']] },
  image_config: {
    value: { aspect_ratio: '1:1' },
    goes: 'to other wires',
    other: ['image_config', { aspect_ratio: '1:1' }],
  },
  cache_control: {
    value: { type: 'ephemeral' },
    goes: 'to other wires',
    of: 'anthropic-messages',
    other: ['cache_control', { type: 'ephemeral' }],
  },
  x_search_filter: {
    value: { from_date: '2026-01-01' },
    goes: 'to the gateway',
    inner: ['x_search_filter', { from_date: '2026-01-01' }],
  },
} satisfies Record<string, RequestRow>;

const CALL = { type: 'function_call', call_id: 'call_1', name: 'f', arguments: '{"a":1}' };
const OUTPUT = { type: 'function_call_output', call_id: 'call_1', output: 'Result' };
const CUSTOM_CALL = { type: 'custom_tool_call', call_id: 'call_1', name: 'f', input: 'Input' };
const CUSTOM_OUTPUT = { type: 'custom_tool_call_output', call_id: 'call_1', output: 'Result' };

/** Every kind of item that a request may have. */
export const responsesItems = {
  message: {
    value: { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Said' }] },
    other: '"content":[{"type":"text","text":"Said"}]',
  },
  function_call: {
    value: { ...CALL, id: 'fc_1', status: 'completed' },
    after: [OUTPUT],
    other: '"function":{"name":"f","arguments":"{\\"a\\":1}"}',
  },
  function_call_output: { before: [CALL], value: { ...OUTPUT, id: 'fco_1', status: 'completed' }, other: '"Result"' },
  custom_tool_call: {
    value: { ...CUSTOM_CALL, id: 'ctc_1' },
    after: [CUSTOM_OUTPUT],
    other: '"function":{"name":"f","arguments":"{\\"input\\":\\"Input\\"}"}',
  },
  custom_tool_call_output: { before: [CUSTOM_CALL], value: { ...CUSTOM_OUTPUT, id: 'ctco_1' }, other: '"Result"' },
  reasoning: {
    value: {
      type: 'reasoning',
      id: 'rs_1',
      summary: [{ type: 'summary_text', text: 'Thought' }],
      encrypted_content: 'ZW5j',
    },
    after: [{ type: 'message', role: 'assistant', id: 'msg_1', content: [{ type: 'output_text', text: 'A' }] }],
    other: null,
  },
  image_generation_call: {
    value: { type: 'image_generation_call', id: 'ig_1', status: 'completed', result: 'AA==' },
    other: '{"role":"assistant","content":""}',
  },
  ...natives({
    file_search_call: { id: 'fs_1', status: 'completed', queries: ['q'], results: null },

    web_search_call: { id: 'ws_1', status: 'completed', action: { type: 'search', query: 'q' } },
    code_interpreter_call: { id: 'ci_1', status: 'completed', code: '1', container_id: 'c', outputs: null },
    computer_call: { id: 'cu_1', call_id: 'x', status: 'completed', pending_safety_checks: [] },
    computer_call_output: { call_id: 'x', output: { type: 'computer_screenshot', file_id: 'f' } },
    local_shell_call: {
      id: 'lsh_1',
      call_id: 'x',
      status: 'completed',
      action: { type: 'exec', command: [], env: {} },
    },
    local_shell_call_output: { id: 'x', output: '{}' },
    shell_call: { id: 'sh_1', call_id: 'x', action: { commands: ['ls'] } },
    shell_call_output: { call_id: 'x', output: [] },
    apply_patch_call: { id: 'ap_1', call_id: 'x', status: 'completed', operation: { type: 'delete_file', path: 'p' } },
    apply_patch_call_output: { call_id: 'x', status: 'completed' },
    mcp_list_tools: { id: 'mcpl_1', server_label: 's', tools: [] },
    mcp_approval_request: { id: 'mcpr_1', server_label: 's', name: 't', arguments: '{}' },
    mcp_approval_response: { approval_request_id: 'mcpr_1', approve: true },
    mcp_call: { id: 'mcp_1', server_label: 's', name: 't', arguments: '{}', output: 'o' },
    tool_search_call: { id: 'ts_1', execution: 'server', call_id: null, arguments: {}, status: 'completed' },
    tool_search_output: { id: 'tso_1', execution: 'server', call_id: null, tools: [], status: 'completed' },
    additional_tools: { role: 'developer', tools: [] },
    configuration_update: {},
    compaction: { id: 'cmp_1', encrypted_content: 'ZW5j' },
    compaction_trigger: {},
    program: { id: 'prog_1', call_id: 'x', code: '1', fingerprint: 'f' },
    program_output: { id: 'progo_1', call_id: 'x', result: '1', status: 'completed' },
  }),
  item_reference: { value: { type: 'item_reference', id: 'msg_1' }, other: null, refused: /item_reference/ },
} satisfies Record<NonNullable<ResponseInputItem['type']>, KindRow>;

/** Items of the provider's own: unchanged on their wire, omitted elsewhere. */
function natives<const Kinds extends Record<string, JsonObject>>(kinds: Kinds): Record<keyof Kinds & string, KindRow> {
  const rows = Object.entries(kinds).map(([type, fields]) => [type, { value: { type, ...fields }, other: null }]);
  return Object.fromEntries(rows) as Record<keyof Kinds & string, KindRow>;
}

/** Every kind of tool that a request may declare. */
export const responsesTools = {
  function: { value: FUNCTION, other: '"name":"f"' },
  custom: { value: { type: 'custom', name: 'f', description: 'Free text.' }, other: '"name":"f"' },
  namespace: {
    value: { type: 'namespace', name: 'ns', description: 'Some.', tools: [FUNCTION] },
    other: '"name":"ns__f"',
  },
  ...natives({
    web_search: {},
    web_search_2025_08_26: {},
    web_search_preview: {},
    web_search_preview_2025_03_11: {},
    computer: {},
    computer_use_preview: { display_width: 1, display_height: 1, environment: 'linux' },
    mcp: { server_label: 's', server_url: 'https://mcp.example' },
    local_shell: {},
    shell: {},
    apply_patch: {},
    tool_search: {},
    programmatic_tool_calling: {},
  }),
  // Their work is billed by units whose price is not known.
  file_search: { value: { type: 'file_search', vector_store_ids: ['v'] }, own: null, other: null },
  code_interpreter: { value: { type: 'code_interpreter', container: { type: 'auto' } }, own: null, other: null },
  image_generation: { value: { type: 'image_generation' }, own: null, other: null },
} satisfies Record<Tool['type'], KindRow>;
