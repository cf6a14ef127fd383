import type { FinishReason } from '../../schemas/inner.ts';
import { lookupTable } from '../../schemas/lookup-table.ts';

const REASONS: Readonly<Record<string, FinishReason>> = lookupTable({
  end_turn: 'stop',
  stop_sequence: 'stop',
  pause_turn: 'stop',
  compaction: 'stop',
  tool_use: 'tool_calls',
  max_tokens: 'length',
  model_context_window_exceeded: 'length',
  refusal: 'content_filter',
});

/**
 * The public finish reason (https://platform.claude.com/docs/en/build-with-claude/handling-stop-reasons). Between `stop` and
 * `tool_calls` the calls decide, whatever the wire says.
 */
export function finishReason(
  stopReason: string | null,
  turn: { hasCalls(): boolean; hasOutput(): boolean },
): FinishReason {
  const reason = stopReason === null ? 'stop' : REASONS[stopReason];
  if (reason === undefined && !turn.hasOutput()) return 'error';
  if (reason !== undefined && reason !== 'stop' && reason !== 'tool_calls') return reason;
  return turn.hasCalls() ? 'tool_calls' : 'stop';
}
