import { limits } from '../../limits.ts';
import type { ChatChunk, Delta, ReasoningDetail, SlotEvent, ToolCallDelta } from '../../schemas/inner.ts';
import { pieceEnd } from '../../schemas/json-pieces.ts';

/** The characters that a client receives, and that are counted if the provider does not report usage. */
export function charsOf({ content, tool_calls, reasoning, reasoning_details, refusal }: Delta): number {
  let chars = (content?.length ?? 0) + (refusal?.length ?? 0);
  if (reasoning_details !== undefined) for (const detail of reasoning_details) chars += detailChars(detail);
  else chars += reasoning?.length ?? 0;
  if (tool_calls !== undefined) for (const call of tool_calls) chars += call.function.arguments?.length ?? 0;
  return chars;
}

function detailChars(detail: ReasoningDetail): number {
  switch (detail.type) {
    case 'reasoning.text':
      return detail.text?.length ?? 0;
    case 'reasoning.summary':
      return detail.summary.length;
    case 'reasoning.encrypted':
      return detail.data.length;
  }
}

/** Where the chunks end that are handed on in one turn of the loop. */
export function sliceEnd(chunks: readonly ChatChunk[], from: number): number {
  const last = Math.min(chunks.length, from + limits.stream_slice_chunks);
  let chars = 0;
  let at = from;
  while (at < last && chars < limits.stream_slice_chars) {
    chars += charsOf(chunks[at]!.delta);
    at += 1;
  }
  return at;
}

/** Divides chunks with a long text, or with long arguments of one call, as a stream would have sent them. */
export function dividedChunks(chunks: readonly ChatChunk[]): ChatChunk[] {
  return chunks.flatMap((chunk) => {
    const { delta, ext } = chunk;
    if (ext?.slot?.raw !== undefined || charsOf(delta) <= limits.stream_chunk_chars_max) return [chunk];
    const { content, tool_calls, refusal, reasoning } = delta;
    const [call] = tool_calls ?? [];
    if (call !== undefined) {
      if (content || tool_calls?.length !== 1) return [chunk];
      const { index, function: called, ...named } = call;
      return divided(chunk, called.arguments ?? '', (piece, isFirst) => ({
        tool_calls: [callOf(index, piece, isFirst ? { ...named, function: called } : undefined)],
      }));
    }
    if (content) return divided(chunk, content, (piece) => ({ content: piece }));
    if (refusal) return divided(chunk, refusal, (piece) => ({ refusal: piece }));
    return reasoning ? dividedReasoning(chunk, reasoning) : [chunk];
  });
}

function callOf(index: number, piece: string, first: Omit<ToolCallDelta, 'index'> | undefined): ToolCallDelta {
  return { ...first, index, function: { ...first?.function, arguments: piece } };
}

/** The blank line between two details, with which the reasoning of the second begins. */
const BETWEEN_DETAILS = '\n\n';

/** Reasoning is divided together with its detail. Only the last piece has the signature. */
function dividedReasoning(chunk: ChatChunk, reasoning: string): ChatChunk[] {
  const [detail, ...others] = chunk.delta.reasoning_details ?? [];
  if (detail === undefined) return divided(chunk, reasoning, (piece) => ({ reasoning: piece }));
  if (others.length > 0 || detail.type === 'reasoning.encrypted') return [chunk];
  const text = (detail.type === 'reasoning.text' ? detail.text : detail.summary) ?? '';
  const before = reasoning.length === text.length ? '' : BETWEEN_DETAILS;
  if (before.length + text.length !== reasoning.length) return [chunk];
  return divided(chunk, text, (piece, isFirst, isLast) => ({
    reasoning: isFirst ? before + piece : piece,
    reasoning_details: [pieceOf(detail, piece, isFirst, isLast)],
  }));
}

function pieceOf(detail: ReasoningDetail, piece: string, isFirst: boolean, isLast: boolean): ReasoningDetail {
  const { type, index } = detail;
  const named = isFirst ? detail : { type, ...(index === undefined ? {} : { index }) };
  if (type === 'reasoning.summary') return { ...named, summary: piece } as ReasoningDetail;
  const { signature: _last, ...begun } = { signature: undefined, ...named };
  const isSigned = isLast && type === 'reasoning.text' && detail.signature !== undefined;
  return { ...begun, text: piece, ...(isSigned ? { signature: detail.signature } : {}) } as ReasoningDetail;
}

/** The first piece has everything of the chunk but its end, which the last piece has. */
function divided(
  chunk: ChatChunk,
  text: string,
  deltaOf: (piece: string, isFirst: boolean, isLast: boolean) => Delta,
): ChatChunk[] {
  const { delta, finish_reason, native_finish_reason, error, ext, ...begin } = chunk;
  const { annotations, ...rest } = delta;
  const of = chunk.choice === undefined ? {} : { choice: chunk.choice };
  const pieces: ChatChunk[] = [];
  for (let at = 0; at < text.length; ) {
    const end = pieceEnd(text, at + limits.stream_chunk_chars_max);
    const made = deltaOf(text.slice(at, end), at === 0, end === text.length);
    const piece: ChatChunk = at === 0 ? { ...begin, delta: { ...rest, ...made } } : { ...of, delta: made };
    const slot = slotOf(ext?.slot, at === 0, end === text.length);
    if (slot !== undefined) piece.ext = { slot };
    pieces.push(piece);
    at = end;
  }
  const last = pieces.at(-1)!;
  if (annotations !== undefined) last.delta.annotations = annotations;
  if (ext?.response !== undefined) last.ext = { ...last.ext, response: ext.response };
  if (finish_reason !== undefined) last.finish_reason = finish_reason;
  if (native_finish_reason !== undefined) last.native_finish_reason = native_finish_reason;
  if (error !== undefined) last.error = error;
  return pieces;
}

function slotOf(slot: SlotEvent | undefined, isFirst: boolean, isLast: boolean): SlotEvent | undefined {
  if (slot === undefined) return undefined;
  const { n, open, close } = slot;
  return {
    n,
    ...(isFirst && open !== undefined ? { open } : {}),
    ...(isLast && close !== undefined ? { close } : {}),
  };
}
