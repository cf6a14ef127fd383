import type { Message, ReasoningDetail, Slot } from '../../schemas/inner.ts';

/** The reasoning of a turn. `reasoning_details` takes precedence, even if empty; a plain reasoning string has no signature. */
export function detailsOf(message: Message): readonly ReasoningDetail[] {
  if (message.reasoning_details != null) return message.reasoning_details;
  const alias = (message as { reasoning_content?: unknown }).reasoning_content;
  const text = message.reasoning ?? (typeof alias === 'string' ? alias : undefined);
  return text ? [{ type: 'reasoning.text', text, format: 'unknown' }] : [];
}

/** The number of entries of each kind in a message. */
export type Counts = { reasoning: number; text: number; call: number; native: number };

/**
 * The slots to walk, one entry each: the remembered order, then all entries that it does not visit (a client may have
 * changed the message), in canonical order. Without a remembered order, all are in canonical order.
 */
export function orderOf(message: Message, counts: Counts): Slot[] {
  const order: Slot[] = [];
  /** The visited entries of each kind: turns may have tens of thousands, so no key is made for one. */
  const visited: { [kind in Slot['kind']]?: Set<number> } = {};
  const visit = (kind: Slot['kind'], at: number, ext?: Slot['ext']) => {
    visited[kind] ??= new Set();
    const known = visited[kind];
    if (known.has(at)) return;
    known.add(at);
    order.push(ext === undefined ? { kind, at } : { kind, at, ext });
  };
  for (const { kind, at, span = 1, ext } of message.ext?.order ?? []) {
    if (kind === 'image' || kind === 'audio' || kind === 'refusal') {
      visit(kind, at, ext);
      continue;
    }
    for (let i = at; i < Math.min(at + span, counts[kind]); i += 1) visit(kind, i, ext);
  }
  for (let i = 0; i < counts.reasoning; i += 1) visit('reasoning', i);
  for (let i = 0; i < counts.text; i += 1) visit('text', i);
  if (message.refusal) visit('refusal', 0);
  if (message.images != null && message.images.length > 0) visit('image', 0);
  if (message.audio != null) visit('audio', 0);
  for (let i = 0; i < counts.call; i += 1) visit('call', i);
  for (let i = 0; i < counts.native; i += 1) visit('native', i);
  return order;
}
