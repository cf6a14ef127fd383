/** Every field, event and block of answers. A name that the official types gain or lose is a type error here. */
import type {
  BetaContentBlock,
  BetaMessage,
  BetaRawContentBlockDelta,
  BetaRawMessageStreamEvent,
  BetaStopReason,
  BetaUsage,
} from '@anthropic-ai/sdk/resources/beta/messages/messages';
import type {
  ContentBlock,
  RawContentBlockDelta,
  StopReason,
  Usage,
} from '@anthropic-ai/sdk/resources/messages/messages';
import type {
  ChatCompletion,
  ChatCompletionChunk,
  ChatCompletionMessage,
} from 'openai/resources/chat/completions/completions';
import type { CompletionUsage } from 'openai/resources/completions';
import type {
  Response,
  ResponseOutputItem,
  ResponseStreamEvent,
  ResponseUsage,
} from 'openai/resources/responses/responses';

/**
 * The origin of a member of an answer. `any`: answers of every wire have it; `own`: only those of upstreams of the
 * API's own wire; `request`: it repeats the request; `never`: no answer has it, or has it filled.
 */
export type AnswerRow = 'any' | 'own' | 'request' | 'never';

export const responseFields = {
  id: 'any',
  object: 'any',
  created_at: 'any',
  completed_at: 'any',
  status: 'any',
  error: 'any',
  incomplete_details: 'any',
  model: 'any',
  output: 'any',
  usage: 'any',
  service_tier: 'any',
  background: 'request',
  instructions: 'request',
  max_output_tokens: 'request',
  max_tool_calls: 'request',
  metadata: 'request',
  parallel_tool_calls: 'request',
  previous_response_id: 'request',
  prompt_cache_key: 'request',
  reasoning: 'request',
  safety_identifier: 'request',
  temperature: 'request',
  text: 'request',
  tool_choice: 'request',
  tools: 'request',
  top_logprobs: 'request',
  top_p: 'request',
  truncation: 'request',
  user: 'request',
  access_programs: 'own',
  conversation: 'own',
  image: 'own',
  moderation: 'own',
  prompt: 'own',
  prompt_cache_diagnostics: 'own',
  prompt_cache_options: 'own',
  prompt_cache_retention: 'own',
  tool_usage: 'own',
  // The official client derives it from the output.
  output_text: 'never',
} satisfies Record<keyof Response, AnswerRow>;

export const responseUsage = {
  input_tokens: 'any',
  input_tokens_details: 'any',
  output_tokens: 'any',
  output_tokens_details: 'any',
  total_tokens: 'any',
} satisfies Record<keyof ResponseUsage, AnswerRow>;

export const responseItems = {
  message: 'any',
  reasoning: 'any',
  function_call: 'any',
  custom_tool_call: 'any',
  image_generation_call: 'any',
  file_search_call: 'own',
  web_search_call: 'own',
  computer_call: 'own',
  code_interpreter_call: 'own',
  local_shell_call: 'own',
  shell_call: 'own',
  shell_call_output: 'own',
  apply_patch_call: 'own',
  apply_patch_call_output: 'own',
  mcp_call: 'own',
  mcp_list_tools: 'own',
  mcp_approval_request: 'own',
  mcp_approval_response: 'own',
  tool_search_call: 'own',
  tool_search_output: 'own',
  additional_tools: 'own',
  compaction: 'own',
  program: 'own',
  program_output: 'own',
  local_shell_call_output: 'own',
  computer_call_output: 'own',
  function_call_output: 'own',
  custom_tool_call_output: 'own',
} satisfies Record<ResponseOutputItem['type'], AnswerRow>;

export const responseEvents = {
  'response.created': 'any',
  'response.in_progress': 'any',
  'response.completed': 'any',
  'response.incomplete': 'any',
  'response.failed': 'any',
  'response.output_item.added': 'any',
  'response.output_item.done': 'any',
  'response.content_part.added': 'any',
  'response.content_part.done': 'any',
  'response.output_text.delta': 'any',
  'response.output_text.done': 'any',
  'response.output_text.annotation.added': 'any',
  'response.refusal.delta': 'any',
  'response.refusal.done': 'any',
  'response.reasoning_text.delta': 'any',
  'response.reasoning_text.done': 'any',
  'response.reasoning_summary_part.added': 'any',
  'response.reasoning_summary_part.done': 'any',
  'response.reasoning_summary_text.delta': 'any',
  'response.reasoning_summary_text.done': 'any',
  'response.function_call_arguments.delta': 'any',
  'response.function_call_arguments.done': 'any',
  'response.custom_tool_call_input.delta': 'any',
  'response.custom_tool_call_input.done': 'any',
  'response.image_generation_call.in_progress': 'any',
  'response.image_generation_call.completed': 'any',
  'response.image_generation_call.generating': 'own',
  'response.image_generation_call.partial_image': 'own',
  'response.code_interpreter_call_code.delta': 'own',
  'response.code_interpreter_call_code.done': 'own',
  'response.code_interpreter_call.completed': 'own',
  'response.code_interpreter_call.in_progress': 'own',
  'response.code_interpreter_call.interpreting': 'own',
  'response.compaction.compacting': 'own',
  'response.file_search_call.completed': 'own',
  'response.file_search_call.in_progress': 'own',
  'response.file_search_call.searching': 'own',
  'response.shell_call_command.added': 'own',
  'response.shell_call_command.delta': 'own',
  'response.shell_call_command.done': 'own',
  'response.shell_call_output_content.delta': 'own',
  'response.shell_call_output_content.done': 'own',
  'response.web_search_call.completed': 'own',
  'response.web_search_call.in_progress': 'own',
  'response.web_search_call.searching': 'own',
  'response.mcp_call_arguments.delta': 'own',
  'response.mcp_call_arguments.done': 'own',
  'response.mcp_call.completed': 'own',
  'response.mcp_call.failed': 'own',
  'response.mcp_call.in_progress': 'own',
  'response.mcp_list_tools.completed': 'own',
  'response.mcp_list_tools.failed': 'own',
  'response.mcp_list_tools.in_progress': 'own',
  // Audio belongs to chat; no request waits in a queue; a stream that began ends with `response.failed`.
  'response.audio.delta': 'never',
  'response.audio.done': 'never',
  'response.audio.transcript.delta': 'never',
  'response.audio.transcript.done': 'never',
  'response.queued': 'never',
  error: 'never',
} satisfies Record<ResponseStreamEvent['type'], AnswerRow>;

export const messageFields = {
  id: 'any',
  type: 'any',
  role: 'any',
  model: 'any',
  content: 'any',
  stop_reason: 'any',
  stop_sequence: 'any',
  stop_details: 'own',
  usage: 'any',
  container: 'own',
  context_management: 'own',
  diagnostics: 'own',
  input_transformations: 'own',
} satisfies Record<keyof BetaMessage, AnswerRow>;

export const messageUsage = {
  input_tokens: 'any',
  output_tokens: 'any',
  output_tokens_details: 'any',
  cache_creation: 'any',
  cache_creation_input_tokens: 'any',
  cache_read_input_tokens: 'any',
  server_tool_use: 'any',
  service_tier: 'any',
  inference_geo: 'own',
  iterations: 'own',
  speed: 'own',
  fallback_credit: 'own',
} satisfies Record<keyof BetaUsage | keyof Usage, AnswerRow>;

export const messageBlocks = {
  text: 'any',
  thinking: 'any',
  redacted_thinking: 'any',
  tool_use: 'any',
  server_tool_use: 'own',
  web_search_tool_result: 'own',
  web_fetch_tool_result: 'own',
  advisor_tool_result: 'own',
  code_execution_tool_result: 'own',
  bash_code_execution_tool_result: 'own',
  text_editor_code_execution_tool_result: 'own',
  tool_search_tool_result: 'own',
  mcp_tool_use: 'own',
  mcp_tool_result: 'own',
  mcp_tool_listing: 'own',
  container_upload: 'own',
  compaction: 'own',
  fallback: 'own',
} satisfies Record<ContentBlock['type'] | BetaContentBlock['type'], AnswerRow>;

export const messageEvents = {
  message_start: 'any',
  content_block_start: 'any',
  content_block_delta: 'any',
  content_block_stop: 'any',
  message_delta: 'any',
  message_stop: 'any',
} satisfies Record<BetaRawMessageStreamEvent['type'], AnswerRow>;

export const messageDeltas = {
  text_delta: 'any',
  input_json_delta: 'any',
  citations_delta: 'any',
  thinking_delta: 'any',
  signature_delta: 'any',
  compaction_delta: 'own',
} satisfies Record<RawContentBlockDelta['type'] | BetaRawContentBlockDelta['type'], AnswerRow>;

export const stopReasons = {
  end_turn: 'any',
  max_tokens: 'any',
  stop_sequence: 'any',
  tool_use: 'any',
  refusal: 'any',
  pause_turn: 'own',
  compaction: 'own',
  model_context_window_exceeded: 'own',
} satisfies Record<StopReason | BetaStopReason, AnswerRow>;

export const chatFields = {
  id: 'any',
  object: 'any',
  created: 'any',
  model: 'any',
  choices: 'any',
  usage: 'any',
  service_tier: 'any',
  system_fingerprint: 'any',
  metadata: 'never',
  moderation: 'never',
} satisfies Record<keyof ChatCompletion, AnswerRow>;

export const chatMessage = {
  role: 'any',
  content: 'any',
  refusal: 'any',
  tool_calls: 'any',
  annotations: 'any',
  audio: 'any',
  // Legacy: answers use tool_calls.
  function_call: 'never',
} satisfies Record<keyof ChatCompletionMessage, AnswerRow>;

export const chatChoice = {
  index: 'any',
  message: 'any',
  finish_reason: 'any',
  logprobs: 'any',
} satisfies Record<keyof ChatCompletion.Choice, AnswerRow>;

export const chatUsage = {
  prompt_tokens: 'any',
  completion_tokens: 'any',
  total_tokens: 'any',
  prompt_tokens_details: 'any',
  completion_tokens_details: 'any',
} satisfies Record<keyof CompletionUsage, AnswerRow>;

export const chatChunk = {
  id: 'any',
  object: 'any',
  created: 'any',
  model: 'any',
  choices: 'any',
  usage: 'any',
  service_tier: 'any',
  system_fingerprint: 'any',
  moderation: 'never',
  // Padding of the upstream: the gateway's own chunks have none.
  obfuscation: 'never',
} satisfies Record<keyof ChatCompletionChunk, AnswerRow>;

export const chatDelta = {
  role: 'any',
  content: 'any',
  refusal: 'any',
  tool_calls: 'any',
  audio: 'any',
  function_call: 'never',
} satisfies Record<keyof ChatCompletionChunk.Choice.Delta, AnswerRow>;
