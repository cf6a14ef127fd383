import { append } from '../../schemas/append.ts';
import type { ChatChunk, ReasoningDetail, Slot, SlotEvent } from '../../schemas/inner.ts';
import { type JsonObject, type JsonValue, parseJson } from '../../schemas/json.ts';
import { answerLevels, structureBreach } from '../../schemas/json-structure.ts';
import { asArray, asText, remainder } from '../shared/json-shape.ts';
import { countCodePoints, createSlot } from '../shared/slot.ts';
import { annotationsOf } from './citations.ts';
import { mintCallId } from './names.ts';
import { ANTHROPIC_FORMAT, extOf, nativeOf, type WireBlock } from './wire.ts';

/** What decoding must know of the attempt's request. */
export interface DecoderState {
  generation_id: string;
  /** Wire name to the client's name, for the tools that were renamed. */
  tool_names?: Record<string, string>;
  /** The call ids of the conversation so far. */
  call_ids?: readonly string[];
  /** The forced tool whose input is the answer's text. */
  shim?: string;
}

/** The blocks of one assistant turn, as they open, grow and close. `index` is the wire's own name of a block. */
export interface Turn {
  hasCalls(): boolean;
  hasOutput(): boolean;
  /** A whole block is one that is opened with its content and closed. */
  open(index: JsonValue | undefined, content: WireBlock): ChatChunk[];
  /** Undefined for a piece of a call that was never opened: nobody can tell whose arguments it holds. */
  add(index: JsonValue | undefined, delta: JsonObject): ChatChunk[] | undefined;
  close(index: JsonValue | undefined): ChatChunk[];
  closeAll(): ChatChunk[];
}

/** The block that a delta belongs to where none was opened: some servers leave the opening of texts out. */
const IMPLIED: Readonly<Record<string, WireBlock>> = {
  text_delta: { type: 'text', text: '' },
  thinking_delta: { type: 'thinking', thinking: '' },
  signature_delta: { type: 'thinking', thinking: '' },
};

/** Makes an empty turn. */
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

/** What the blocks of a turn count together. */
interface Counts {
  slots: number;
  details: number;
  calls: number;
  /** Of the joined text. */
  codePoints: number;
}

/** One open block: what it says at its start, with a delta, at its end. */
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

/** How a slot opens, with what remains of its block. */
function opening(kind: Slot['kind'], rest: JsonObject): NonNullable<SlotEvent['open']> {
  const ext = extOf(rest);
  return ext === undefined ? { kind } : { kind, ext };
}

function createTextReader(content: WireBlock, counts: Counts): BlockReader {
  const slot = createSlot(counts, opening('text', remainder(content, ['type', 'text', 'citations'])));
  const start = counts.codePoints;
  const citations: JsonValue[] = [];

  const say = (text: string): ChatChunk[] => {
    if (text === '') return [];
    counts.codePoints += countCodePoints(text);
    return [slot.emit({ content: text })];
  };
  /** Citations come before their text, whose length they cover, so the annotation waits for the block's end. */
  const cite = (citation: JsonValue): ChatChunk => {
    citations.push(citation);
    return slot.emit({}, { raw: { type: 'citations_delta', citation } });
  };

  return {
    begin: () => [...asArray(content['citations']).map(cite), ...say(asText(content['text']))],
    add(delta) {
      if (delta['type'] === 'text_delta') return say(asText(delta['text']));
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
  // A block that says nothing is no detail and takes no index.
  let taken: number | undefined;
  const indexOf = (): number => {
    if (taken === undefined) {
      taken = counts.details;
      counts.details += 1;
    }
    return taken;
  };

  const say = (text: string): ChatChunk[] => {
    if (text === '') return [];
    const detail = detailOf({ type: 'reasoning.text', text }, indexOf());
    return [slot.emit({ reasoning_details: [detail], reasoning: text })];
  };
  const sign = (signature: string): ChatChunk[] => {
    if (signature === '') return [];
    // Thinking that is not shown still carries a signature, and its text is the empty one.
    const text = slot.isOpen() ? {} : { text: '' };
    return [slot.emit({ reasoning_details: [detailOf({ type: 'reasoning.text', ...text, signature }, indexOf())] })];
  };

  return {
    begin: () => [...say(asText(content['thinking'])), ...sign(asText(content['signature']))],
    add(delta) {
      if (delta['type'] === 'thinking_delta') return say(asText(delta['thinking']));
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

/** The input of the tool that stands in for JSON output is the answer's text. */
function createShimReader(content: WireBlock, counts: Counts): BlockReader {
  const slot = createSlot(counts, { kind: 'text' });
  const input = createInput(content, (text) => {
    counts.codePoints += countCodePoints(text);
    return slot.emit({ content: text });
  });
  return { begin: () => [], add: input.add, end: () => [...input.end(), ...slot.close()] };
}

/** A tool's input: fragments as they come; without any, what the block began with, which may be nothing. */
function createInput(content: WireBlock, say: (text: string) => ChatChunk) {
  let hasFragments = false;
  return {
    add(delta: JsonObject): ChatChunk[] {
      const fragment = delta['type'] === 'input_json_delta' ? asText(delta['partial_json']) : '';
      if (fragment === '') return [];
      hasFragments = true;
      return [say(fragment)];
    },
    end: (): ChatChunk[] => (hasFragments ? [] : [say(inputText(content['input']))]),
  };
}

/** The input that a block began with. Some servers send the text of it. */
function inputText(input: JsonValue | undefined): string {
  if (typeof input === 'string') return input.trim() === '' ? '{}' : input;
  return JSON.stringify(input ?? {});
}

/** A server tool's call or result, a compaction, or a kind that is still to come. */
function createNativeReader(content: WireBlock, counts: Counts): BlockReader {
  const slot = createSlot(counts, { kind: 'native', native: nativeOf(content) });
  const fragments: string[] = [];
  /** A copy that grows: the one that the block began with is told already. */
  let grown: WireBlock | undefined;
  return {
    begin: () => [slot.emit({})],
    add(delta) {
      const { type: _type, partial_json: partialJson, content: added, ...others } = delta;
      if (typeof partialJson === 'string') fragments.push(partialJson);
      grown ??= { ...content };
      if (typeof added === 'string') grown['content'] = asText(grown['content']) + added;
      Object.assign(grown, others);
      return [slot.emit({}, { raw: delta })];
    },
    end() {
      const told = fragments.join('');
      const block = grown ?? content;
      return slot.close({}, { native: nativeOf(told === '' ? block : { ...block, input: parseInput(told) }) });
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
