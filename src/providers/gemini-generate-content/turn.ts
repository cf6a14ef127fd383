import { append } from '../../schemas/append.ts';
import type { ChatChunk, Delta, ReasoningDetail } from '../../schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import { asArray, asObject, asText, remainder } from '../shared/json-shape.ts';
import { type BlockSlot, createSlot } from '../shared/slot.ts';
import { mintCallId } from '../shared/tool-ids.ts';
import { createPartialArguments, type PartialArguments } from './partial-arguments.ts';
import { createPcm } from './pcm.ts';
import { extOf, GEMINI_FORMAT, nativeOf } from './wire.ts';

/** The facts of the attempt's request that decoding needs. */
export interface DecoderState {
  generation_id: string;
  /** Wire name to the client's name, for the functions that were renamed. */
  tool_names?: Record<string, string>;
  /** The call ids of the conversation so far. */
  call_ids?: readonly string[];
  /** The function whose arguments are the answer's text. */
  shim?: string;
  /** The model's generation: 2.5, 3 … */
  generation?: number;
}

/** The parts of one answer while it is decoded: text and thoughts in pieces, everything else whole. */
export interface Turn {
  hasCalls(): boolean;
  hasOutput(): boolean;
  /** The text so far, which offsets of citations refer to. */
  text(): string;
  /** `undefined` for a part that cannot be read. */
  take(part: JsonObject): ChatChunk[] | undefined;
  /** Closes all blocks. The signature of the last text is not emitted yet: its citations precede it. */
  closeAll(): ChatChunk[];
  /** The signature of the last text, if it has one. */
  endSignature(): ChatChunk[];
}

/** The counters that the parts of a turn share. */
interface Counts {
  slots: number;
  details: number;
  calls: number;
}

/** The open text or thought. Another kind of part, or its signature, ends it. */
interface Prose {
  kind: 'text' | 'reasoning';
  slot: BlockSlot;
  /** The index of the thoughts' detail. */
  index: number;
}

/** A call whose arguments are streamed. */
interface OpenCall {
  finish(): ChatChunk[];
  args: PartialArguments;
}

/** An empty turn. */
export function createTurn(state: DecoderState): Turn {
  const counts: Counts = { slots: 0, details: 0, calls: 0 };
  const ids = new Set(state.call_ids);
  const texts: string[] = [];
  const pcm = createPcm();
  let prose: Prose | undefined;
  let call: OpenCall | undefined;
  /** The signature of a text, until the text is known to be complete. */
  let textSignature: ReasoningDetail | undefined;

  function nextDetail(detail: ReasoningDetail): ReasoningDetail {
    const index = counts.details;
    counts.details += 1;
    return { ...detail, format: GEMINI_FORMAT, id: detail.id ?? null, index };
  }

  function closeProse(): ChatChunk[] {
    const chunks = prose?.slot.close() ?? [];
    prose = undefined;
    return chunks;
  }

  function closeCall(): ChatChunk[] {
    const chunks = call?.finish() ?? [];
    call = undefined;
    return chunks;
  }

  /** Emits a detail in a slot of its own. */
  function emitDetail(detail: ReasoningDetail): ChatChunk[] {
    const slot = createSlot(counts, { kind: 'reasoning' });
    return [slot.emit({ reasoning_details: [nextDetail(detail)] }), ...slot.close()];
  }

  function openProse(kind: Prose['kind'], rest: JsonObject): { prose: Prose; chunks: ChatChunk[] } {
    if (prose?.kind === kind) return { prose, chunks: [] };
    const chunks = closeProse();
    const ext = extOf(rest);
    prose = { kind, slot: createSlot(counts, ext === undefined ? { kind } : { kind, ext }), index: counts.details };
    if (kind === 'reasoning') counts.details += 1;
    return { prose, chunks };
  }

  function takeThought(part: JsonObject): ChatChunk[] {
    const text = asText(part['text']);
    const signature = asText(part['thoughtSignature']);
    if (text === '' && signature === '') return [];
    const { prose: open, chunks } = openProse('reasoning', remainder(part, ['text', 'thought', 'thoughtSignature']));
    const detail = (fields: { text?: string; signature?: string }): ReasoningDetail => ({
      type: 'reasoning.text',
      ...fields,
      format: GEMINI_FORMAT,
      id: null,
      index: open.index,
    });
    if (text !== '') chunks.push(open.slot.emit({ reasoning: text, reasoning_details: [detail({ text })] }));
    if (signature !== '') chunks.push(open.slot.emit({ reasoning_details: [detail({ signature })] }), ...closeProse());
    return chunks;
  }

  /** Clients get the signature of a text as a detail without text; the text's slot records where it was. */
  function takeText(part: JsonObject): ChatChunk[] {
    const text = asText(part['text']);
    const signature = asText(part['thoughtSignature']);
    if (text === '' && signature === '') return [];
    const chunks: ChatChunk[] = [];
    // A signature without text is a part of its own, and is sent back as one.
    if (text === '') append(chunks, closeProse());
    const { prose: open, chunks: closed } = openProse('text', remainder(part, ['text', 'thoughtSignature']));
    append(chunks, closed);
    if (text !== '') {
      texts.push(text);
      chunks.push(open.slot.emit({ content: text }));
    }
    if (signature === '') return chunks;
    chunks.push(open.slot.emit({}, { close: { ext: extOf({ thoughtSignature: signature })! } }));
    prose = undefined;
    textSignature = { type: 'reasoning.text', signature };
    return chunks;
  }

  function endSignature(): ChatChunk[] {
    const detail = textSignature;
    textSignature = undefined;
    return detail === undefined ? [] : emitDetail(detail);
  }

  function takeCall(part: JsonObject): ChatChunk[] | undefined {
    const callFields = asObject(part['functionCall']) ?? {};
    const name = asText(callFields['name']);
    const isContinued = callFields['willContinue'] === true;
    if (name === '') return continueCall(callFields, isContinued);
    const chunks = [...closeProse(), ...closeCall()];
    if (name === state.shim) return [...chunks, ...takeShim(callFields)];
    const index = counts.calls;
    counts.calls += 1;
    const wireId = asText(callFields['id']);
    const isTaken = wireId === '' || ids.has(wireId);
    const id = isTaken ? mintCallId(state.generation_id, index) : wireId;
    ids.add(id);
    const signature = asText(part['thoughtSignature']);
    if (signature !== '') append(chunks, emitDetail({ type: 'reasoning.encrypted', data: signature, id }));
    const ext = extOf(remainder(part, ['functionCall', 'thoughtSignature']));
    const slot = createSlot(counts, ext === undefined ? { kind: 'call' } : { kind: 'call', ext });
    const own = state.tool_names?.[name] ?? name;
    const emitArguments = (text: string): ChatChunk =>
      slot.emit({ tool_calls: [{ index, function: { arguments: text } }] });
    const opening: Delta = { tool_calls: [{ index, id, type: 'function', function: { name: own, arguments: '' } }] };
    chunks.push(slot.emit(opening));
    if (isContinued || callFields['partialArgs'] !== undefined) {
      const args = createPartialArguments();
      call = { args, finish: () => [emitArguments(args.text()), ...slot.close()] };
      if (!args.add(callFields['partialArgs'])) return undefined;
      return isContinued ? chunks : [...chunks, ...closeCall()];
    }
    chunks.push(emitArguments(JSON.stringify(callFields['args'] ?? {})), ...slot.close());
    return chunks;
  }

  function continueCall(callFields: JsonObject, isContinued: boolean): ChatChunk[] | undefined {
    // An end without a start has no content; pieces without a start are invalid.
    if (call === undefined)
      return callFields['partialArgs'] === undefined && callFields['args'] === undefined ? [] : undefined;
    if (!call.args.add(callFields['partialArgs'])) return undefined;
    return isContinued ? [] : closeCall();
  }

  function takeShim(callFields: JsonObject): ChatChunk[] {
    const slot = createSlot(counts, { kind: 'text' });
    const text = JSON.stringify(callFields['args'] ?? {});
    texts.push(text);
    return [slot.emit({ content: text }), ...slot.close()];
  }

  function takeBlob(part: JsonObject, mime: string, data: string): ChatChunk[] {
    const chunks = [...closeProse(), ...closeCall()];
    const rest = remainder(part, ['inlineData']);
    if (part['thought'] !== true && mime.startsWith('image/')) {
      const ext = extOf(rest);
      const slot = createSlot(counts, ext === undefined ? { kind: 'image' } : { kind: 'image', ext });
      const url = `data:${mime};base64,${data}`;
      return [...chunks, slot.emit({ images: [{ type: 'image_url', image_url: { url } }] }), ...slot.close()];
    }
    if (part['thought'] !== true && mime.startsWith('audio/')) {
      chunks.push({ delta: { audio: { data: pcm.add(data) } } });
      return chunks;
    }
    return [...chunks, ...takeNative(part)];
  }

  /** Code, its result, Google's own search, or an unknown kind. */
  function takeNative(part: JsonObject): ChatChunk[] {
    const chunks = [...closeProse(), ...closeCall()];
    const native = nativeOf(part);
    const slot = createSlot(counts, { kind: 'native', native });
    return [...chunks, slot.emit({}), ...slot.close({}, { native })];
  }

  function takePart(part: JsonObject): ChatChunk[] | undefined {
    if (part['functionCall'] !== undefined) return takeCall(part);
    if (part['text'] !== undefined) {
      const chunks = closeCall();
      append(chunks, part['thought'] === true ? takeThought(part) : takeText(part));
      return chunks;
    }
    const blob = asObject(part['inlineData']);
    if (blob !== undefined) return takeBlob(part, asText(blob['mimeType']), asText(blob['data']));
    return Object.keys(part).length === 0 ? [] : takeNative(part);
  }

  return {
    hasCalls: () => counts.calls > 0,
    hasOutput: () => counts.slots > 0 || pcm.hasAny(),
    text: () => texts.join(''),
    take(part) {
      // An empty part does not end a text.
      if (part['text'] === '' && part['thoughtSignature'] === undefined && part['functionCall'] === undefined)
        return [];
      const signatureChunks = endSignature();
      const chunks = takePart(part);
      return chunks === undefined || signatureChunks.length === 0 ? chunks : [...signatureChunks, ...chunks];
    },
    closeAll() {
      const chunks = [...closeProse(), ...closeCall()];
      const rest = pcm.end();
      if (rest !== '') chunks.push({ delta: { audio: { data: rest } } });
      return chunks;
    },
    endSignature,
  };
}

/** Log probabilities in the public format (https://ai.google.dev/api/generate-content#LogprobsResult). */
export function logprobsOf(value: JsonValue | undefined): JsonObject | undefined {
  const result = asObject(value);
  if (result === undefined) return undefined;
  const tops = asArray(result['topCandidates']).map((top) => asArray(asObject(top)?.['candidates']).map(tokenOf));
  const content = asArray(result['chosenCandidates']).map((chosen, i) => ({
    ...tokenOf(chosen),
    top_logprobs: tops[i] ?? [],
  }));
  return content.length === 0 ? undefined : { content };
}

function tokenOf(value: JsonValue): JsonObject {
  const { token, logProbability } = asObject(value) ?? {};
  const text = asText(token);
  return {
    token: text,
    logprob: typeof logProbability === 'number' ? logProbability : 0,
    bytes: [...Buffer.from(text)],
  };
}
