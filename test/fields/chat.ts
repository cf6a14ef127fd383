/** Every field of a chat request. A name that the official types gain or lose is a type error here. */
import type { ChatCompletionCreateParamsBase } from 'openai/resources/chat/completions/completions';
import { hashUser } from '../../src/providers/shared/user-hash.ts';
import type { RequestRow } from './row.ts';

const PARAMETERS = { type: 'object', properties: {} };
const TOOL = { type: 'function', function: { name: 'f', description: 'Does it.', parameters: PARAMETERS } };
const MESSAGES_TOOL = { name: 'f', description: 'Does it.', input_schema: PARAMETERS };
const SCHEMA = { type: 'object', properties: {}, required: [], additionalProperties: false };

export const chatFields = {
  model: { value: 'a/b', goes: 'to the gateway', inner: ['model', 'a/b'] },
  messages: {
    value: [{ role: 'user', content: 'Question' }],
    goes: 'on',
    other: ['messages[0].content[0].text', 'Question'],
  },
  max_completion_tokens: { value: 100, goes: 'on', other: ['max_tokens', 100] },
  max_tokens: { value: 100, goes: 'on', other: ['max_tokens', 100] },
  temperature: { value: 0.5, goes: 'on', other: ['temperature', 0.5] },
  top_p: { value: 0.5, goes: 'on', other: ['top_p', 0.5] },
  stop: { value: ['END'], goes: 'on', other: ['stop_sequences', ['END']] },
  tools: { value: [TOOL], goes: 'on', other: ['tools', [MESSAGES_TOOL]] },
  tool_choice: {
    value: { type: 'function', function: { name: 'f' } },
    with: { tools: [TOOL] },
    goes: 'on',
    other: ['tool_choice', { type: 'tool', name: 'f' }],
  },
  parallel_tool_calls: {
    value: false,
    with: { tools: [TOOL] },
    goes: 'on',
    other: ['tool_choice', { type: 'auto', disable_parallel_tool_use: true }],
  },
  functions: { value: [TOOL.function], goes: 'on', own: ['tools', [TOOL]], other: ['tools', [MESSAGES_TOOL]] },
  function_call: {
    value: { name: 'f' },
    with: { functions: [TOOL.function] },
    goes: 'on',
    own: ['tool_choice', { type: 'function', function: { name: 'f' } }],
    other: ['tool_choice', { type: 'tool', name: 'f', disable_parallel_tool_use: true }],
  },
  response_format: {
    value: { type: 'json_schema', json_schema: { name: 's', schema: SCHEMA, strict: true } },
    goes: 'on',
    other: ['output_config.format', { type: 'json_schema', schema: SCHEMA }],
  },
  reasoning_effort: { value: 'low', goes: 'on', other: ['thinking.type', 'enabled'] },
  verbosity: { value: 'low', goes: 'on', other: ['output_config.effort', 'low'] },
  user: { value: 'u', goes: 'on', own: ['user', hashUser('u')], other: ['metadata.user_id', hashUser('u')] },
  safety_identifier: {
    value: 'u',
    goes: 'on',
    other: ['metadata.user_id', hashUser('u')],
  },
  service_tier: { value: 'auto', goes: 'on', other: ['service_tier', 'auto'] },
  web_search_options: { value: { search_context_size: 'low' }, goes: 'to its own wire' },
  audio: { value: { voice: 'alloy', format: 'mp3' }, goes: 'to its own wire' },
  modalities: { value: ['text'], goes: 'to its own wire', means_nothing: true },
  frequency_penalty: { value: 0.5, goes: 'to its own wire' },
  presence_penalty: { value: 0.5, goes: 'to its own wire' },
  logit_bias: { value: { 1: 2 }, goes: 'to its own wire' },
  logprobs: { value: true, goes: 'to its own wire' },
  top_logprobs: { value: 2, with: { logprobs: true }, goes: 'to its own wire' },
  seed: { value: 7, goes: 'to its own wire' },
  prediction: { value: { type: 'content', content: 'x' }, goes: 'to its own wire' },
  metadata: { value: { a: 'b' }, with: { store: true }, goes: 'to its own wire' },
  store: { value: true, goes: 'to its own wire' },
  moderation: { value: { model: 'omni-moderation-latest' }, goes: 'to its own wire' },
  prompt_cache_key: { value: 'k', goes: 'to its own wire' },
  prompt_cache_options: { value: { mode: 'explicit' }, goes: 'to its own wire' },
  prompt_cache_retention: { value: '24h', goes: 'to its own wire' },
  stream: { value: true, goes: 'on', other: ['stream', true] },
  stream_options: { value: { include_usage: true }, goes: 'to the gateway' },
  n: { value: 2, goes: 'to its own wire' },
} satisfies Record<keyof ChatCompletionCreateParamsBase, RequestRow>;

/** Fields that the public service adds. */
export const chatAdditions = {
  prompt: {
    value: 'Question',
    with: { messages: null },
    goes: 'on',
    own: ['messages[0].content', 'Question'],
    other: ['messages[0].content[0].text', 'Question'],
  },
  models: { value: ['a/b', 'c/d'], goes: 'to the gateway', inner: ['models', ['a/b', 'c/d']] },
  route: { value: 'fallback', goes: 'to the gateway', inner: ['route', 'fallback'] },
  provider: { value: { only: ['p'] }, goes: 'to the gateway', inner: ['provider', { only: ['p'] }] },
  plugins: { value: [{ id: 'web' }], goes: 'to the gateway', inner: ['plugins', [{ id: 'web' }]] },
  transforms: { value: ['middle-out'], goes: 'to the gateway', inner: ['transforms', ['middle-out']] },
  max_tool_calls: { value: 3, goes: 'to the gateway', inner: ['max_tool_calls', 3] },
  stop_server_tools_when: {
    value: [{ type: 'step_count_is', step_count: 2 }],
    goes: 'to the gateway',
    inner: ['stop_server_tools_when', [{ type: 'step_count_is', step_count: 2 }]],
  },
  debug: {
    value: { echo_upstream_body: true },
    goes: 'to the gateway',
    inner: ['debug', { echo_upstream_body: true }],
  },
  session_id: { value: 's', goes: 'to the gateway', inner: ['session_id', 's'] },
  include_reasoning: { value: false, goes: 'to the gateway', inner: ['include_reasoning', false] },
  reasoning: {
    value: { effort: 'low' },
    goes: 'on',
    own: ['reasoning_effort', 'low'],
    other: ['thinking.type', 'enabled'],
  },
  top_k: { value: 5, goes: 'on', other: ['top_k', 5] },
  cache_control: {
    value: { type: 'ephemeral' },
    goes: 'to other wires',
    other: ['cache_control', { type: 'ephemeral' }],
  },
  repetition_penalty: { value: 0.5, goes: 'to its own wire' },
  min_p: { value: 0.5, goes: 'to its own wire' },
  top_a: { value: 0.5, goes: 'to its own wire' },
} satisfies Record<string, RequestRow>;
