import type { FinishReason } from '../../schemas/inner.ts';

/** Reasons in lower case, as the providers of this wire document them; `eos` is Together's, `model_length` Mistral's. */
const REASONS: Readonly<Record<string, FinishReason>> = {
  stop: 'stop',
  eos: 'stop',
  end_turn: 'stop',
  stop_sequence: 'stop',
  tool_calls: 'tool_calls',
  function_call: 'tool_calls',
  tool_use: 'tool_calls',
  length: 'length',
  max_tokens: 'length',
  model_length: 'length',
  model_context_window_exceeded: 'length',
  content_filter: 'content_filter',
  safety: 'content_filter',
  // Google's compatible endpoint passes its own words on (https://ai.google.dev/api/generate-content#FinishReason).
  recitation: 'content_filter',
  blocklist: 'content_filter',
  prohibited_content: 'content_filter',
  spii: 'content_filter',
  language: 'content_filter',
  image_safety: 'content_filter',
  image_prohibited_content: 'content_filter',
  image_recitation: 'content_filter',
  model_armor: 'content_filter',
  function_call_filter: 'error',
  malformed_function_call: 'error',
  unexpected_tool_call: 'error',
  too_many_tool_calls: 'error',
  // Z.AI (https://docs.z.ai/api-reference/llm/chat-completion).
  sensitive: 'content_filter',
  network_error: 'error',
  error: 'error',
  // vLLM, when the server gives up on a request.
  abort: 'error',
  // DeepSeek (https://api-docs.deepseek.com/api/create-chat-completion).
  insufficient_system_resource: 'error',
};

/**
 * The public finish reason. `native` is undefined if a complete answer has none (Snowflake). Between `stop` and `tool_calls` the calls
 * decide, whatever the upstream says. An unknown reason is an error only if the answer is empty.
 */
export function finishReason(
  native: string | undefined,
  answer: { has_calls: boolean; is_empty: boolean },
): FinishReason {
  const word = native?.toLowerCase() ?? 'stop';
  // Google's compatible endpoint also sends `content_filter: PROHIBITED_CONTENT`: the first word suffices.
  const known = REASONS[word] ?? REASONS[word.split(':', 1)[0]!];
  const reason = known ?? (answer.is_empty ? 'error' : 'stop');
  if (reason === 'stop' || reason === 'tool_calls') return answer.has_calls ? 'tool_calls' : 'stop';
  return reason;
}
