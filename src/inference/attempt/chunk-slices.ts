import { limits } from '../../limits.ts';
import type { ChatChunk, Delta, SlotEvent, ToolCallDelta } from '../../schemas/inner.ts';
import { pieceEnd } from '../../schemas/json-pieces.ts';

function charsOf({ content, tool_calls }: Delta): number {
  let chars = content?.length ?? 0;
  if (tool_calls !== undefined) for (const call of tool_calls) chars += call.function.arguments?.length ?? 0;
  return chars;
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
    const { content, tool_calls } = delta;
    const [call] = tool_calls ?? [];
    if (call === undefined) return divided(chunk, content ?? '', (piece) => ({ content: piece }));
    if (content || tool_calls?.length !== 1) return [chunk];
    const { index, function: called, ...named } = call;
    return divided(chunk, called.arguments ?? '', (piece, isFirst) => ({
      tool_calls: [callOf(index, piece, isFirst ? { ...named, function: called } : undefined)],
    }));
  });
}

function callOf(index: number, piece: string, first: Omit<ToolCallDelta, 'index'> | undefined): ToolCallDelta {
  return { ...first, index, function: { ...first?.function, arguments: piece } };
}

/** The first piece has everything of the chunk but its end, which the last piece has. */
function divided(chunk: ChatChunk, text: string, deltaOf: (piece: string, isFirst: boolean) => Delta): ChatChunk[] {
  const { delta, finish_reason, native_finish_reason, error, ext, ...begin } = chunk;
  const { annotations, ...rest } = delta;
  const of = chunk.choice === undefined ? {} : { choice: chunk.choice };
  const pieces: ChatChunk[] = [];
  for (let at = 0; at < text.length; ) {
    const end = pieceEnd(text, at + limits.stream_chunk_chars_max);
    const piece = text.slice(at, end);
    const made: ChatChunk =
      at === 0 ? { ...begin, delta: { ...rest, ...deltaOf(piece, true) } } : { ...of, delta: deltaOf(piece, false) };
    const slot = slotOf(ext?.slot, at === 0, end === text.length);
    if (slot !== undefined) made.ext = { slot };
    pieces.push(made);
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
