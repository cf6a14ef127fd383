import type { ChatRequest } from '../../schemas/inner.ts';

/** Whether the client wants no reasoning shown; it is billed all the same. */
export function hidesReasoning({ reasoning, include_reasoning }: ChatRequest): boolean {
  return reasoning?.exclude === true || (include_reasoning === false && !reasoning);
}
