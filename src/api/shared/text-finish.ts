import type { FinishReason } from '../../schemas/inner.ts';

/** The finish reason of an answer that is only text: `stop` instead of `tool_calls`, which the client did not request. */
export function textFinish<T extends FinishReason | null | undefined>(finishReason: T): T | 'stop' {
  return finishReason === 'tool_calls' ? 'stop' : finishReason;
}
