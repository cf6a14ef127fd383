import type { FinishReason } from '../../schemas/inner.ts';
import { lookupTable } from '../../schemas/lookup-table.ts';

/**
 * The reasons of `ChatFinishReason` (https://docs.cohere.com/reference/chat); `ERROR_LIMIT` and `ERROR_TOXIC` are those of
 * older models. `ERROR` and `TIMEOUT` do not end an answer normally: see `stream.ts`.
 */
const REASONS: Readonly<Record<string, FinishReason>> = lookupTable({
  COMPLETE: 'stop',
  STOP_SEQUENCE: 'stop',
  TOOL_CALL: 'tool_calls',
  MAX_TOKENS: 'length',
  ERROR_LIMIT: 'length',
  ERROR_TOXIC: 'content_filter',
});

/** The public finish reason. Between `stop` and `tool_calls` the calls decide, whatever the wire says. */
export function finishReason(
  native: string | undefined,
  turn: { hasCalls(): boolean; hasOutput(): boolean },
): FinishReason {
  const reason = native === undefined ? 'stop' : REASONS[native];
  if (reason === undefined && !turn.hasOutput()) return 'error';
  if (reason !== undefined && reason !== 'stop' && reason !== 'tool_calls') return reason;
  return turn.hasCalls() ? 'tool_calls' : 'stop';
}
