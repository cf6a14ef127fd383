import type { Message, Wire } from '../../schemas/inner.ts';

/** Whether all content of a message is in blocks of other wires, so that nothing of it can be sent on this one. */
export function isForeign({ role, content, tool_calls: toolCalls, refusal, audio, ext }: Message, wire: Wire): boolean {
  if (role === 'tool' || (typeof content === 'string' && (role !== 'assistant' || content !== ''))) return false;
  const parts = Array.isArray(content) ? content : [];
  const areForeign = parts.every((part) => part.type === 'native' && part.wire !== wire);
  if (role !== 'assistant') return parts.length > 0 && areForeign;
  if (!areForeign || toolCalls?.length || refusal || audio?.id) return false;
  return parts.length > 0 || ext?.natives?.some((native) => native.wire !== wire) === true;
}
