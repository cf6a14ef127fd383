import type { ChatRequest } from '../../schemas/inner.ts';

/** Whether the client wants no reasoning in the answer. It is billed nevertheless. */
export function hidesReasoning({ reasoning, include_reasoning }: ChatRequest): boolean {
  return reasoning?.exclude === true || (include_reasoning === false && !reasoning);
}
