import { limits } from '../../limits.ts';
import { joinReasoning } from '../../schemas/accumulate.ts';
import type { ChatChunk, Delta, ReasoningDetail, SlotEvent, ToolCallDelta } from '../../schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import { jsonChars, pieceEnd } from '../../schemas/json-pieces.ts';

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

/** Tokens whose probabilities are handed on in one chunk, and the characters that each counts as in a slice. */
const CHUNK_TOKENS_MAX = 500;
const TOKEN_CHARS = 256;
/** Parts of reasoning that are handed on in one chunk, and the characters that each counts as in a slice: an item of several events. */
const CHUNK_DETAILS_MAX = 100;
const DETAIL_CHARS = 512;

/** The tokens with probabilities of a chunk. */
export function tokensOf(logprobs: ChatChunk['logprobs']): JsonValue[] {
  const content = (logprobs as { content?: unknown } | null | undefined)?.content;
  return Array.isArray(content) ? content : [];
}

/** Characters of JSON for one character of a token, with its bytes as some client APIs write them; and for one reported byte. */
const TEXT_CHARS = 5;
const BYTE_CHARS = 4;

/** The probabilities of a token and its alternatives, and their characters as JSON without the numbers. */
export function probabilitiesOf(token: JsonValue): { count: number; chars: number } {
  let count = 1;
  let chars = 0;
  if (typeof token !== 'object' || token === null) return { count, chars: jsonChars(token) };
  for (const name in token) {
    const value = (token as JsonObject)[name];
    if (typeof value === 'string') chars += value.length * TEXT_CHARS;
    else if (typeof value !== 'object' || value === null) continue;
    else if (!Array.isArray(value)) chars += jsonChars(value);
    else if (name === 'top_logprobs') {
      for (const alternative of value) {
        const other = probabilitiesOf(alternative);
        count += other.count;
        chars += other.chars;
      }
    } else chars += name === 'bytes' ? value.length * BYTE_CHARS : jsonChars(value);
  }
  return { count, chars };
}

/** The end of the chunks that are passed on in one turn of the event loop. */
export function sliceEnd(
  chunks: readonly ChatChunk[],
  from: number,
  charsMax: number = limits.stream_slice_chars,
): number {
  const last = Math.min(chunks.length, from + limits.stream_slice_chunks);
  let chars = 0;
  let at = from;
  while (at < last && chars < charsMax) {
    const { delta, logprobs } = chunks[at]!;
    chars += charsOf(delta);
    if (delta.reasoning_details !== undefined) chars += delta.reasoning_details.length * DETAIL_CHARS;
    if (logprobs !== undefined) chars += tokensOf(logprobs).length * TOKEN_CHARS;
    at += 1;
  }
  return at;
}

/** Divides chunks with a long text, many parts of reasoning, long arguments of one call, or probabilities of many tokens, as a stream would have sent them. */
export function dividedChunks(chunks: readonly ChatChunk[]): ChatChunk[] {
  return chunks.flatMap((chunk) => {
    const { delta, ext } = chunk;
    const tokens = chunk.logprobs === undefined ? 0 : tokensOf(chunk.logprobs).length;
    const { content, tool_calls, refusal, reasoning, reasoning_details: details = [] } = delta;
    const isLong =
      charsOf(delta) > limits.stream_chunk_chars_max || tokens > CHUNK_TOKENS_MAX || details.length > CHUNK_DETAILS_MAX;
    if (ext?.slot?.raw !== undefined || !isLong) return [chunk];
    const [call] = tool_calls ?? [];
    if (call !== undefined) {
      if (content || tool_calls?.length !== 1) return [chunk];
      const { index, function: called, ...named } = call;
      return divided(chunk, called.arguments ?? '', (piece, isFirst) => ({
        tool_calls: [callOf(index, piece, isFirst ? { ...named, function: called } : undefined)],
      }));
    }
    if (content) {
      const pieces = divided(chunk, content, (piece) => ({ content: piece }), tokens);
      if (tokens > 0) divideTokens(chunk.logprobs!, pieces);
      return pieces;
    }
    if (refusal) return divided(chunk, refusal, (piece) => ({ refusal: piece }));
    if (details.length > 1) return dividedDetails(chunk, details);
    return reasoning ? dividedReasoning(chunk, reasoning) : [chunk];
  });
}

function callOf(index: number, piece: string, first: Omit<ToolCallDelta, 'index'> | undefined): ToolCallDelta {
  return { ...first, index, function: { ...first?.function, arguments: piece } };
}

/** The blank line between two details, with which the reasoning of the second begins. */
const BETWEEN_DETAILS = '\n\n';

/** A chunk with several parts of reasoning, as chunks with some of them each. */
function dividedDetails(chunk: ChatChunk, details: readonly ReasoningDetail[]): ChatChunk[] {
  const groups: ReasoningDetail[][] = [];
  let chars = 0;
  for (const detail of details) {
    const open = groups.at(-1);
    chars += detailChars(detail);
    if (open !== undefined && open.length < CHUNK_DETAILS_MAX && chars <= limits.stream_chunk_chars_max) {
      open.push(detail);
      continue;
    }
    groups.push([detail]);
    chars = detailChars(detail);
  }
  const texts = groups.map(joinReasoning);
  const { reasoning, reasoning_details: _, ...others } = chunk.delta;
  // The first text has a blank line before it if it continues earlier reasoning.
  const joined = texts.filter((text) => text !== null).join(BETWEEN_DETAILS);
  const before = reasoning?.slice(0, Math.max(0, reasoning.length - joined.length)) ?? '';
  if (before + joined !== (reasoning ?? '') || (before !== '' && before !== BETWEEN_DETAILS)) return [chunk];
  let next = before;
  const pieces = groups.map((group, at): Delta => {
    const text = texts[at];
    if (text == null) return { reasoning_details: group };
    const piece = { reasoning: next + text, reasoning_details: group };
    next = BETWEEN_DETAILS;
    return piece;
  });
  return dividedInto({ ...chunk, delta: others }, pieces).flatMap((piece) => {
    const { reasoning: text, reasoning_details: group } = piece.delta;
    return text && group?.length === 1 && text.length > limits.stream_chunk_chars_max
      ? dividedReasoning(piece, text)
      : [piece];
  });
}

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

/** A chunk with a long text as chunks with a piece of it each. */
function divided(
  chunk: ChatChunk,
  text: string,
  deltaOf: (piece: string, isFirst: boolean, isLast: boolean) => Delta,
  tokens = 0,
): ChatChunk[] {
  const deltas: Delta[] = [];
  const ofTokens = tokens === 0 ? text.length : Math.ceil((text.length * CHUNK_TOKENS_MAX) / tokens);
  const step = Math.min(limits.stream_chunk_chars_max, ofTokens);
  for (let at = 0; at < text.length; ) {
    const end = pieceEnd(text, at + step);
    deltas.push(deltaOf(text.slice(at, end), at === 0, end === text.length));
    at = end;
  }
  return dividedInto(chunk, deltas);
}

/** Chunks with these deltas. The first has everything else of the chunk but its end, which the last one has. */
function dividedInto(chunk: ChatChunk, deltas: readonly Delta[]): ChatChunk[] {
  const { delta, finish_reason, native_finish_reason, error, ext, ...begin } = chunk;
  const { annotations, ...rest } = delta;
  const of = chunk.choice === undefined ? {} : { choice: chunk.choice };
  const pieces = deltas.map((made, at): ChatChunk => {
    const piece: ChatChunk = at === 0 ? { ...begin, delta: { ...rest, ...made } } : { ...of, delta: made };
    const slot = slotOf(ext?.slot, at === 0, at === deltas.length - 1);
    if (slot !== undefined) piece.ext = { slot };
    return piece;
  });
  const last = pieces.at(-1)!;
  if (annotations !== undefined) last.delta.annotations = annotations;
  if (ext?.response !== undefined) last.ext = { ...last.ext, response: ext.response };
  if (finish_reason !== undefined) last.finish_reason = finish_reason;
  if (native_finish_reason !== undefined) last.native_finish_reason = native_finish_reason;
  if (error !== undefined) last.error = error;
  return pieces;
}

/** Gives each piece of a chunk an equal share of its tokens. */
function divideTokens(logprobs: JsonValue, pieces: readonly ChatChunk[]): void {
  const tokens = tokensOf(logprobs);
  const share = Math.ceil(tokens.length / pieces.length);
  for (const [at, piece] of pieces.entries()) {
    const own = { content: tokens.slice(at * share, (at + 1) * share) };
    piece.logprobs = at === 0 ? { ...(logprobs as JsonObject), ...own } : own;
  }
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
