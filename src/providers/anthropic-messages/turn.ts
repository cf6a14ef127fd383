import { append } from '../../schemas/append.ts';
import type { ChatChunk, ReasoningDetail, Slot, SlotEvent } from '../../schemas/inner.ts';
import { type JsonObject, type JsonValue, parseJson } from '../../schemas/json.ts';
import { answerLevels, structureBreach } from '../../schemas/json-structure.ts';
import { lookupTable } from '../../schemas/lookup-table.ts';
import { countCodePoints } from '../../schemas/text.ts';
import { asArray, asText, remainder } from '../shared/json-shape.ts';
import { createSlot } from '../shared/slot.ts';
import { annotationsOf } from './citations.ts';
import { mintCallId } from './names.ts';
import { ANTHROPIC_FORMAT, extOf, nativeOf, type WireBlock } from './wire.ts';

/** The facts of the attempt's request that decoding needs. */
export interface DecoderState {
  generation_id: string;
  /** Wire name to the client's name, for the tools that were renamed. */
  tool_names?: Record<string, string>;
  /** The call ids of the conversation so far. */
  call_ids?: readonly string[];
  /** The forced tool whose input is the answer's text. */
  shim?: string;
}

/** The blocks of one assistant turn while they are decoded. `index` is the wire's key of a block. */
export interface Turn {
  hasCalls(): boolean;
  hasOutput(): boolean;
  /** Opens a block. A whole block is opened with its content and then closed. */
  open(index: JsonValue | undefined, content: WireBlock): ChatChunk[];
  /** Undefined for a piece of a call that was never opened. */
  add(index: JsonValue | undefined, delta: JsonObject): ChatChunk[] | undefined;
  close(index: JsonValue | undefined): ChatChunk[];
  closeAll(): ChatChunk[];
}

/** The block of a delta that no event opened: some servers omit the opening of texts. */
const IMPLIED: Readonly<Record<string, WireBlock>> = lookupTable({
  text_delta: { type: 'text', text: '' },
  thinking_delta: { type: 'thinking', thinking: '' },
  signature_delta: { type: 'thinking', thinking: '' },
});

/** An empty turn. */
export function createTurn(state: DecoderState): Turn {
  const open = new Map<JsonValue | undefined, BlockReader>();
  const counts: Counts = { slots: 0, details: 0, calls: 0, codePoints: 0 };
  const ids = new Set(state.call_ids);

  function close(index: JsonValue | undefined): ChatChunk[] {
    const reader = open.get(index);
    open.delete(index);
    return reader?.end() ?? [];
  }

  function begin(index: JsonValue | undefined, content: WireBlock): ChatChunk[] {
    const chunks = close(index);
    const reader = createReader(content, counts, state, ids);
    open.set(index, reader);
    append(chunks, reader.begin());
    return chunks;
  }

  return {
    hasCalls: () => counts.calls > 0,
    hasOutput: () => counts.slots > 0,
    open: begin,
    add(index, delta) {
      const reader = open.get(index);
      if (reader !== undefined) return reader.add(delta);
      if (delta['type'] === 'input_json_delta') return undefined;
      const content = IMPLIED[asText(delta['type'])];
      return content === undefined ? [] : [...begin(index, content), ...open.get(index)!.add(delta)];
    },
    close,
    closeAll: () => [...open.keys()].flatMap(close),
  };
}

/** The counters that the blocks of a turn share. */
interface Counts {
  slots: number;
  details: number;
  calls: number;
  /** Of the joined text. */
  codePoints: number;
}

/** One open block: its chunks at the start, for a delta, and at the end. */
interface BlockReader {
  begin(): ChatChunk[];
  add(delta: JsonObject): ChatChunk[];
  end(): ChatChunk[];
}

function createReader(content: WireBlock, counts: Counts, state: DecoderState, ids: Set<string>): BlockReader {
  switch (content.type) {
    case 'text':
      return createTextReader(content, counts);
    case 'thinking':
      return createThinkingReader(content, counts);
    case 'redacted_thinking':
      return createRedactedReader(content, counts);
    case 'tool_use':
      return state.shim !== undefined && content['name'] === state.shim
        ? createShimReader(content, counts)
        : createCallReader(content, counts, state, ids);
    default:
      return createNativeReader(content, counts);
  }
}

/** The opening of a slot, with the remaining fields of its block. */
function opening(kind: Slot['kind'], rest: JsonObject): NonNullable<SlotEvent['open']> {
  const ext = extOf(rest);
  return ext === undefined ? { kind } : { kind, ext };
}

function createTextReader(content: WireBlock, counts: Counts): BlockReader {
  const slot = createSlot(counts, opening('text', remainder(content, ['type', 'text', 'citations'])));
  const start = counts.codePoints;
  const citations: JsonValue[] = [];

  const emitText = (text: string): ChatChunk[] => {
    if (text === '') return [];
    counts.codePoints += countCodePoints(text);
    return [slot.emit({ content: text })];
  };
  /** Citations precede their text, whose length they cover, so the annotation is emitted at the block's end. */
  const cite = (citation: JsonValue): ChatChunk => {
    citations.push(citation);
    return slot.emit({}, { raw: { type: 'citations_delta', citation } });
  };

  return {
    begin: () => [...asArray(content['citations']).map(cite), ...emitText(asText(content['text']))],
    add(delta) {
      if (delta['type'] === 'text_delta') return emitText(asText(delta['text']));
      if (delta['type'] !== 'citations_delta' || delta['citation'] === undefined) return [];
      return [cite(delta['citation'])];
    },
    end() {
      if (citations.length === 0) return slot.close();
      const annotations = annotationsOf(citations, start, counts.codePoints);
      return slot.close(annotations.length === 0 ? {} : { annotations }, { ext: extOf({ citations })! });
    },
  };
}

function createThinkingReader(content: WireBlock, counts: Counts): BlockReader {
  const slot = createSlot(counts, opening('reasoning', remainder(content, ['type', 'thinking', 'signature'])));
  // An empty block is not a detail and gets no index.
  let index: number | undefined;
  const indexOf = (): number => {
    if (index === undefined) {
      index = counts.details;
      counts.details += 1;
    }
    return index;
  };

  const emitThinking = (text: string): ChatChunk[] => {
    if (text === '') return [];
    const detail = detailOf({ type: 'reasoning.text', text }, indexOf());
    return [slot.emit({ reasoning_details: [detail], reasoning: text })];
  };
  const sign = (signature: string): ChatChunk[] => {
    if (signature === '') return [];
    // Hidden thinking still has a signature; its text is empty.
    const text = slot.isOpen() ? {} : { text: '' };
    return [slot.emit({ reasoning_details: [detailOf({ type: 'reasoning.text', ...text, signature }, indexOf())] })];
  };

  return {
    begin: () => [...emitThinking(asText(content['thinking'])), ...sign(asText(content['signature']))],
    add(delta) {
      if (delta['type'] === 'thinking_delta') return emitThinking(asText(delta['thinking']));
      return delta['type'] === 'signature_delta' ? sign(asText(delta['signature'])) : [];
    },
    end: () => slot.close(),
  };
}

function createRedactedReader(content: WireBlock, counts: Counts): BlockReader {
  const slot = createSlot(counts, opening('reasoning', remainder(content, ['type', 'data'])));
  const detail = detailOf({ type: 'reasoning.encrypted', data: asText(content['data']) }, counts.details);
  counts.details += 1;
  return {
    begin: () => [slot.emit({ reasoning_details: [detail] })],
    add: () => [],
    end: () => slot.close(),
  };
}

function createCallReader(content: WireBlock, counts: Counts, state: DecoderState, ids: Set<string>): BlockReader {
  const index = counts.calls;
  counts.calls += 1;
  const rest = remainder(content, ['type', 'id', 'name', 'input']);
  const wireId = asText(content['id']);
  const isTaken = wireId === '' || ids.has(wireId);
  const id = isTaken ? mintCallId(state.generation_id, index) : wireId;
  if (isTaken && wireId !== '') rest['id'] = wireId;
  ids.add(id);
  const slot = createSlot(counts, opening('call', rest));
  const wireName = asText(content['name']);
  const name = state.tool_names?.[wireName] ?? wireName;
  const input = createInput(content, (text) => slot.emit({ tool_calls: [{ index, function: { arguments: text } }] }));
  return {
    begin: () => [slot.emit({ tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }] })],
    add: input.add,
    end: () => [...input.end(), ...slot.close()],
  };
}

/** The input of the tool that replaces JSON output is the answer's text. */
function createShimReader(content: WireBlock, counts: Counts): BlockReader {
  const slot = createSlot(counts, { kind: 'text' });
  const input = createInput(content, (text) => {
    counts.codePoints += countCodePoints(text);
    return slot.emit({ content: text });
  });
  return { begin: () => [], add: input.add, end: () => [...input.end(), ...slot.close()] };
}

/** Reads a tool's input: its fragments or, without any, the input that the block was opened with, which may be empty. */
function createInput(content: WireBlock, emit: (text: string) => ChatChunk) {
  let hasFragments = false;
  return {
    add(delta: JsonObject): ChatChunk[] {
      const fragment = delta['type'] === 'input_json_delta' ? asText(delta['partial_json']) : '';
      if (fragment === '') return [];
      hasFragments = true;
      return [emit(fragment)];
    },
    end: (): ChatChunk[] => (hasFragments ? [] : [emit(inputText(content['input']))]),
  };
}

/** The input that a block was opened with. Some servers send it as text. */
function inputText(input: JsonValue | undefined): string {
  if (typeof input === 'string') return input.trim() === '' ? '{}' : input;
  return JSON.stringify(input ?? {});
}

/** A server tool's call or result, a compaction, or an unknown kind. */
function createNativeReader(content: WireBlock, counts: Counts): BlockReader {
  const slot = createSlot(counts, { kind: 'native', native: nativeOf(content) });
  const fragments: string[] = [];
  /** A copy that is extended: the original was already emitted. */
  let extended: WireBlock | undefined;
  return {
    begin: () => [slot.emit({})],
    add(delta) {
      const { type: _type, partial_json: partialJson, content: added, ...others } = delta;
      if (typeof partialJson === 'string') fragments.push(partialJson);
      extended ??= { ...content };
      if (typeof added === 'string') extended['content'] = asText(extended['content']) + added;
      Object.assign(extended, others);
      return [slot.emit({}, { raw: delta })];
    },
    end() {
      const inputJson = fragments.join('');
      const block = extended ?? content;
      return slot.close(
        {},
        { native: nativeOf(inputJson === '' ? block : { ...block, input: parseInput(inputJson) }) },
      );
    },
  };
}

function parseInput(text: string): JsonValue {
  if (structureBreach(text, answerLevels) !== undefined) return { _raw: text };
  try {
    return parseJson(text);
  } catch {
    return { _raw: text };
  }
}

type DetailBody =
  | { type: 'reasoning.text'; text?: string; signature?: string }
  | { type: 'reasoning.encrypted'; data: string };

function detailOf(body: DetailBody, index: number): ReasoningDetail {
  return { ...body, format: ANTHROPIC_FORMAT, id: null, index };
}
