import type { Message, Wire } from '../../schemas/inner.ts';

/** Whether a message says nothing but in blocks of other wires: nothing of it is left for this one. */
export function isForeign({ role, content, tool_calls, refusal, audio, ext }: Message, wire: Wire): boolean {
  if (role === 'tool' || (typeof content === 'string' && (role !== 'assistant' || content !== ''))) return false;
  const parts = Array.isArray(content) ? content : [];
  const are_foreign = parts.every((part) => part.type === 'native' && part.wire !== wire);
  if (role !== 'assistant') return parts.length > 0 && are_foreign;
  if (!are_foreign || tool_calls?.length || refusal || audio?.id) return false;
  return parts.length > 0 || ext?.natives?.some((native) => native.wire !== wire) === true;
}
