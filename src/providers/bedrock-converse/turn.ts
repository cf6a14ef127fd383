import { append } from '../../schemas/append.ts';
import type { ChatChunk, ReasoningDetail, Slot, SlotEvent } from '../../schemas/inner.ts';
import { type JsonObject, type JsonValue, parseJson } from '../../schemas/json.ts';
import { answerLevels, structureBreach } from '../../schemas/json-structure.ts';
import { countCodePoints } from '../../schemas/text.ts';
import { asArray, asObject, asText, remainder } from '../shared/json-shape.ts';
import { type BlockSlot, createSlot } from '../shared/slot.ts';
import { mintCallId } from '../shared/tool-ids.ts';
import { annotationsOf } from './citations.ts';
import { extOf, nativeOf, type WireBlock } from './wire.ts';

/** The facts of the attempt's request that decoding needs. */
export interface DecoderState {
  generation_id: string;
  /** Whether the model is a Claude, whose reasoning state other upstreams of Claude accept as well. */
  is_claude?: boolean;
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
  open(index: JsonValue | undefined, start: JsonObject): ChatChunk[];
  /** Undefined for a piece of a call that was never opened. */
  add(index: JsonValue | undefined, delta: JsonObject): ChatChunk[] | undefined;
  close(index: JsonValue | undefined): ChatChunk[];
  closeAll(): ChatChunk[];
}

/** An empty turn. */
export function createTurn(state: DecoderState): Turn {
  const open = new Map<JsonValue | undefined, BlockReader>();
  const counts: Counts = { slots: 0, details: 0, calls: 0, images: 0, codePoints: 0 };
  const ids = new Set(state.call_ids);

  function close(index: JsonValue | undefined): ChatChunk[] {
    const reader = open.get(index);
    open.delete(index);
    return reader?.end() ?? [];
  }

  function begin(index: JsonValue | undefined, reader: BlockReader): ChatChunk[] {
    const chunks = close(index);
    open.set(index, reader);
    append(chunks, reader.begin());
    return chunks;
  }

  /** Text and reasoning have no opening event: the first piece shows the kind of the block. */
  function implied(delta: JsonObject): BlockReader | undefined {
    if (delta['text'] != null || delta['citation'] != null) return createTextReader(counts);
    if (delta['reasoningContent'] != null) return createReasoningReader(counts, state);
    if (delta['image'] != null) return createImageReader({}, counts);
    return undefined;
  }

  return {
    hasCalls: () => counts.calls > 0,
    hasOutput: () => counts.slots > 0,
    open(index, start) {
      const call = asObject(start['toolUse']);
      if (call !== undefined) {
        if (isServerCall(call)) return begin(index, createNativeReader('toolUse', call, counts));
        const isShim = state.shim !== undefined && call['name'] === state.shim;
        return begin(index, isShim ? createShimReader(counts) : createCallReader(call, counts, state, ids));
      }
      const image = asObject(start['image']);
      if (image !== undefined) return begin(index, createImageReader(image, counts));
      // Some servers open texts with an empty object.
      for (const [kind, value] of Object.entries(start)) {
        const content = asObject(value);
        if (content !== undefined) return begin(index, createNativeReader(kind, content, counts));
      }
      return [];
    },
    add(index, delta) {
      const reader = open.get(index);
      if (reader !== undefined) return reader.add(delta);
      if (delta['toolUse'] != null) return undefined;
      const implicit = implied(delta);
      return implicit === undefined ? [] : [...begin(index, implicit), ...implicit.add(delta)];
    },
    close,
    closeAll: () => [...open.keys()].flatMap(close),
  };
}

/** Whether the provider itself runs a call: its type is `server_tool_use`; the client's own have `tool_use` or none. */
function isServerCall({ type }: JsonObject): boolean {
  return typeof type === 'string' && type !== 'tool_use';
}

/** The counters that the blocks of a turn share. */
interface Counts {
  slots: number;
  details: number;
  calls: number;
  images: number;
  /** Of the joined text. */
  codePoints: number;
}

/** One open block: its chunks at the start, for a delta, and at the end. */
interface BlockReader {
  begin(): ChatChunk[];
  add(delta: JsonObject): ChatChunk[];
  end(): ChatChunk[];
}

/** The opening of a slot, with the remaining fields of its block. */
function opening(kind: Slot['kind'], rest: JsonObject): NonNullable<SlotEvent['open']> {
  const ext = extOf(rest);
  return ext === undefined ? { kind } : { kind, ext };
}

function createTextReader(counts: Counts): BlockReader {
  const slot = createSlot(counts, { kind: 'text' });
  const start = counts.codePoints;
  const citations: JsonValue[] = [];
  return {
    begin: () => [],
    add(delta) {
      const text = asText(delta['text']);
      const chunks: ChatChunk[] = [];
      if (text !== '') {
        counts.codePoints += countCodePoints(text);
        chunks.push(slot.emit({ content: text }));
      }
      // A citation covers its block, whose length is known only at the end.
      if (delta['citation'] != null) {
        citations.push(delta['citation']);
        chunks.push(slot.emit({}, { raw: { citation: delta['citation'] } }));
      }
      return chunks;
    },
    end() {
      if (citations.length === 0) return slot.close();
      const annotations = annotationsOf(citations, start, counts.codePoints);
      return slot.close(annotations.length === 0 ? {} : { annotations }, { ext: extOf({ citations })! });
    },
  };
}

function createReasoningReader(counts: Counts, state: DecoderState): BlockReader {
  const slot = createSlot(counts, { kind: 'reasoning' });
  const indexes: Partial<Record<'text' | 'redacted', number>> = {};
  const indexOf = (kind: 'text' | 'redacted'): number => {
    indexes[kind] ??= counts.details++;
    return indexes[kind];
  };
  const format = state.is_claude === true ? 'anthropic-claude-v1' : 'unknown';
  const redacted = createBytes();
  const emitDetail = (detail: ReasoningDetail, index: number, reasoning?: string): ChatChunk => {
    const reasoningDetails = [{ ...detail, format, id: null, index }];
    return slot.emit(
      reasoning === undefined
        ? { reasoning_details: reasoningDetails }
        : { reasoning_details: reasoningDetails, reasoning },
    );
  };
  return {
    begin: () => [],
    add(delta) {
      const content = asObject(delta['reasoningContent']) ?? {};
      const chunks: ChatChunk[] = [];
      const text = asText(content['text']);
      if (text !== '') chunks.push(emitDetail({ type: 'reasoning.text', text }, indexOf('text'), text));
      const signature = asText(content['signature']);
      if (signature !== '') {
        // Hidden thinking still has a signature; its text is empty.
        const hidden = slot.isOpen() ? {} : { text: '' };
        chunks.push(emitDetail({ type: 'reasoning.text', ...hidden, signature }, indexOf('text')));
      }
      redacted.add(asText(content['redactedContent']));
      return chunks;
    },
    end() {
      const base64 = redacted.base64();
      if (base64 === '') return slot.close();
      // For Claude the bytes are the text of its own base64, which other upstreams of Claude expect.
      const data = state.is_claude === true ? Buffer.from(base64, 'base64').toString('utf8') : base64;
      const chunk = emitDetail({ type: 'reasoning.encrypted', data }, indexOf('redacted'));
      return [chunk, ...slot.close()];
    },
  };
}

function createCallReader(start: JsonObject, counts: Counts, state: DecoderState, ids: Set<string>): BlockReader {
  const index = counts.calls;
  counts.calls += 1;
  const wireId = asText(start['toolUseId']);
  const isTaken = wireId === '' || ids.has(wireId);
  const id = isTaken ? mintCallId(state.generation_id, index) : wireId;
  const rest = remainder(start, ['toolUseId', 'name', 'type', 'input']);
  if (isTaken && wireId !== '') rest['toolUseId'] = wireId;
  ids.add(id);
  const slot = createSlot(counts, opening('call', rest));
  const wireName = asText(start['name']);
  const name = state.tool_names?.[wireName] ?? wireName;
  const input = createInput((text) => slot.emit({ tool_calls: [{ index, function: { arguments: text } }] }));
  return {
    begin: () => [slot.emit({ tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }] })],
    add: input.add,
    end: () => [...input.end(), ...slot.close()],
  };
}

/** The input of the tool that replaces JSON output is the answer's text. */
function createShimReader(counts: Counts): BlockReader {
  const slot = createSlot(counts, { kind: 'text' });
  const input = createInput((text) => {
    counts.codePoints += countCodePoints(text);
    return slot.emit({ content: text });
  });
  return { begin: () => [], add: input.add, end: () => [...input.end(), ...slot.close()] };
}

/** Reads a tool's input fragment by fragment; `{}` if there are none. */
function createInput(emit: (text: string) => ChatChunk) {
  let hasFragments = false;
  return {
    add(delta: JsonObject): ChatChunk[] {
      const fragment = asText(asObject(delta['toolUse'])?.['input']);
      if (fragment === '') return [];
      hasFragments = true;
      return [emit(fragment)];
    },
    end: (): ChatChunk[] => (hasFragments ? [] : [emit('{}')]),
  };
}

function createImageReader(start: JsonObject, counts: Counts): BlockReader {
  const slot = createSlot(counts, opening('image', remainder(start, ['format', 'source'])));
  const index = counts.images;
  counts.images += 1;
  const bytes = createBytes();
  return {
    begin: () => [],
    add(delta) {
      bytes.add(asText(asObject(asObject(delta['image'])?.['source'])?.['bytes']));
      return [];
    },
    end() {
      const base64 = bytes.base64();
      if (base64 === '') return [];
      const url = `data:image/${asText(start['format']) || 'png'};base64,${base64}`;
      return [slot.emit({ images: [{ type: 'image_url', image_url: { url }, index }] }), ...slot.close()];
    },
  };
}

/** Joins pieces of base64, each with its own padding, which cannot be concatenated as text. */
function createBytes() {
  const pieces: string[] = [];
  return {
    add(piece: string): void {
      if (piece !== '') pieces.push(piece);
    },
    base64(): string {
      if (pieces.length < 2) return pieces[0] ?? '';
      return Buffer.concat(pieces.map((piece) => Buffer.from(piece, 'base64'))).toString('base64');
    },
  };
}

/** A server tool's call or result, or an unknown kind: collected and kept as a whole. */
function createNativeReader(kind: string, start: JsonObject, counts: Counts): BlockReader {
  const slot: BlockSlot = createSlot(counts, { kind: 'native', native: nativeOf({ [kind]: start }) });
  let input = '';
  const content: JsonValue[] = [];
  return {
    begin: () => [slot.emit({})],
    add(delta) {
      input += asText(asObject(delta['toolUse'])?.['input']);
      append(content, asArray(delta[kind]));
      return [slot.emit({}, { raw: delta })];
    },
    end: () => slot.close({}, { native: nativeOf({ [kind]: whole(start, input, content) }) }),
  };
}

function whole(start: JsonObject, input: string, content: JsonValue[]): WireBlock {
  const block: WireBlock = { ...start };
  if (input !== '') block['input'] = parse(input);
  if (content.length > 0) block['content'] = content;
  return block;
}

function parse(text: string): JsonValue {
  if (structureBreach(text, answerLevels) !== undefined) return { _raw: text };
  try {
    return parseJson(text);
  } catch {
    return { _raw: text };
  }
}
