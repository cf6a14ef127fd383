import type { ChatChunk, Delta, Ext } from '../../schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import { countCodePoints } from '../../schemas/text.ts';
import { asText } from '../shared/json-shape.ts';
import { type BlockSlot, createSlot } from '../shared/slot.ts';
import { mintCallId } from '../shared/tool-ids.ts';
import { annotationsOf } from './citations.ts';
import { WIRE } from './wire.ts';

/** The facts of the attempt's request that decoding needs. */
export interface DecoderState {
  generation_id: string;
  /** Name as sent -> name as the client knows it, for the tools that were renamed. */
  tool_names?: Record<string, string>;
  /** The call ids of the conversation so far. */
  call_ids?: readonly string[];
}

/** The block of a turn's plan to call tools: a text of its own, before all content. */
export const PLAN = 'plan';

/** The blocks of one assistant turn while it is decoded. `index` is the wire's key of a block. */
export interface Turn {
  hasCalls(): boolean;
  hasOutput(): boolean;
  /** Adds text or thinking. A piece of another block ends the open one. */
  append(kind: 'text' | 'reasoning', index: JsonValue | undefined, piece: string): ChatChunk[];
  cite(citation: JsonObject): ChatChunk[];
  openCall(index: JsonValue | undefined, call: { id: string; name: string; arguments: string }): ChatChunk[];
  /** Undefined for a piece of a call that is not open. */
  addArguments(index: JsonValue | undefined, piece: string): ChatChunk[] | undefined;
  closeCall(index: JsonValue | undefined): ChatChunk[];
  closeAll(): ChatChunk[];
}

/** The open block of text or thinking; one at a time. */
interface Prose {
  kind: 'text' | 'reasoning';
  index: JsonValue | undefined;
  slot: BlockSlot;
  /** The index of the detail, for reasoning. */
  detail: number;
  citations: JsonValue[];
}

interface Call {
  ordinal: number;
  slot: BlockSlot;
  id: string;
  hasArguments: boolean;
}

/** An empty turn. */
export function createTurn(state: DecoderState): Turn {
  const ids = new Set(state.call_ids);
  const calls = new Map<JsonValue | undefined, Call>();
  /** The start of each text in the joined text, by its content index. */
  const textStarts = new Map<JsonValue | undefined, number>();
  let lastTextStart = 0;
  const counts = { slots: 0 };
  let details = 0;
  let callCount = 0;
  let codePoints = 0;
  let prose: Prose | undefined;

  function closeProse(): ChatChunk[] {
    if (prose === undefined) return [];
    const { slot, citations } = prose;
    prose = undefined;
    return slot.close({}, citations.length === 0 ? {} : { ext: { wire: WIRE, rest: { citations } } });
  }

  function closeCall(index: JsonValue | undefined): ChatChunk[] {
    const call = calls.get(index);
    if (call === undefined) return [];
    calls.delete(index);
    const { slot, ordinal, hasArguments } = call;
    const missing = { tool_calls: [{ index: ordinal, function: { arguments: '{}' } }] };
    return [...(hasArguments ? [] : [slot.emit(missing)]), ...slot.close()];
  }

  function proseDelta(kind: Prose['kind'], detail: number, piece: string): Delta {
    if (kind === 'text') return { content: piece };
    const format = 'unknown';
    return {
      reasoning: piece,
      reasoning_details: [{ type: 'reasoning.text', text: piece, format, id: null, index: detail }],
    };
  }

  return {
    hasCalls: () => callCount > 0,
    hasOutput: () => counts.slots > 0,
    append(kind, index, piece) {
      // An empty block is not opened.
      if (piece === '') return [];
      const isSame = prose?.kind === kind && prose.index === index;
      const chunks = isSame ? [] : closeProse();
      if (prose === undefined) {
        prose = { kind, index, slot: createSlot(counts, { kind }), detail: details, citations: [] };
        if (kind === 'reasoning') details += 1;
        if (kind === 'text' && index !== PLAN) {
          textStarts.set(index, codePoints);
          lastTextStart = codePoints;
        }
      }
      if (kind === 'text') codePoints += countCodePoints(piece);
      chunks.push(prose.slot.emit(proseDelta(kind, prose.detail, piece)));
      return chunks;
    },
    cite(citation) {
      // Citations of the plan and of thinking have no public form (https://docs.cohere.com/reference/chat, `CitationType`).
      const type = citation['type'] ?? 'TEXT_CONTENT';
      const start = textStarts.get(citation['content_index']) ?? lastTextStart;
      const annotations = type === 'TEXT_CONTENT' ? annotationsOf(citation, start) : [];
      const delta: Delta = annotations.length === 0 ? {} : { annotations };
      if (prose === undefined || !isAbout(type, prose)) return annotations.length === 0 ? [] : [{ delta }];
      prose.citations.push(citation);
      return [prose.slot.emit(delta, { raw: { type: 'citation-start', citation } })];
    },
    openCall(index, opening) {
      if (calls.get(index)?.id === opening.id) return [];
      const chunks = [...closeProse(), ...closeCall(index)];
      const ordinal = callCount;
      callCount += 1;
      const isTaken = opening.id === '' || ids.has(opening.id);
      const id = isTaken ? mintCallId(state.generation_id, ordinal) : opening.id;
      ids.add(id);
      const ext: Ext | undefined = isTaken && opening.id !== '' ? { wire: WIRE, rest: { id: opening.id } } : undefined;
      const slot = createSlot(counts, ext === undefined ? { kind: 'call' } : { kind: 'call', ext });
      calls.set(index, { ordinal, slot, id: opening.id, hasArguments: opening.arguments !== '' });
      const call = { name: state.tool_names?.[opening.name] ?? opening.name, arguments: opening.arguments };
      chunks.push(slot.emit({ tool_calls: [{ index: ordinal, id, type: 'function', function: call }] }));
      return chunks;
    },
    addArguments(index, piece) {
      const call = calls.get(index);
      if (call === undefined) return undefined;
      if (piece === '') return [];
      call.hasArguments = true;
      return [call.slot.emit({ tool_calls: [{ index: call.ordinal, function: { arguments: piece } }] })];
    },
    closeCall,
    closeAll: () => [...closeProse(), ...[...calls.keys()].flatMap(closeCall)],
  };
}

/** Whether a citation of this type refers to the open block. */
function isAbout(type: JsonValue, prose: Prose): boolean {
  if (type === 'PLAN' || prose.index === PLAN) return type === 'PLAN' && prose.index === PLAN;
  return (type === 'TEXT_CONTENT') === (prose.kind === 'text');
}

/** The id, name and arguments of a call's opening; empty if missing. */
export function callOf(call: JsonObject | undefined, definition: JsonObject | undefined) {
  return {
    id: asText(call?.['id']),
    name: asText(definition?.['name']),
    arguments: argumentsOf(definition?.['arguments']),
  };
}

/** Arguments as text, also if they are sent as an object. */
export function argumentsOf(value: JsonValue | undefined): string {
  if (value === undefined || value === null) return '';
  return typeof value === 'string' ? value : JSON.stringify(value);
}
