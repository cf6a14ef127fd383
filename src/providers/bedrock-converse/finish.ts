import type { ChoiceError, FinishReason } from '../../schemas/inner.ts';
import { lookupTable } from '../../schemas/lookup-table.ts';

const REASONS: Readonly<Record<string, FinishReason>> = lookupTable({
  end_turn: 'stop',
  stop_sequence: 'stop',
  tool_use: 'tool_calls',
  max_tokens: 'length',
  model_context_window_exceeded: 'length',
  content_filtered: 'content_filter',
  guardrail_intervened: 'content_filter',
  malformed_model_output: 'error',
  malformed_tool_use: 'error',
});

/** Messages for clients if the model's output is malformed. */
const MALFORMED: Readonly<Record<string, string>> = lookupTable({
  malformed_model_output: "The model's output is malformed.",
  malformed_tool_use: 'The model wrote a malformed tool call.',
});

/**
 * The public finish reason (https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_MessageStopEvent.html). Between
 * `stop` and `tool_calls` the calls decide, whatever the wire says.
 */
export function finishOf(
  stopReason: string | null,
  turn: { hasCalls(): boolean; hasOutput(): boolean },
): { finish_reason: FinishReason; error?: ChoiceError } {
  const known = stopReason === null ? undefined : REASONS[stopReason];
  const reason = known ?? (turn.hasOutput() ? 'stop' : 'error');
  if (reason === 'error') {
    const message = MALFORMED[stopReason ?? ''] ?? 'The model ended its answer for an unknown reason.';
    return { finish_reason: 'error', error: { code: 502, message } };
  }
  if (reason !== 'stop' && reason !== 'tool_calls') return { finish_reason: reason };
  return { finish_reason: turn.hasCalls() ? 'tool_calls' : 'stop' };
}
