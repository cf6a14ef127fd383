import type { FinishReason } from '../../schemas/inner.ts';

/** How an answer ends that is text alone: one that would end with calls, which nobody asked for, has come to its end. */
export function textFinish<T extends FinishReason | null | undefined>(finishReason: T): T | 'stop' {
  return finishReason === 'tool_calls' ? 'stop' : finishReason;
}
