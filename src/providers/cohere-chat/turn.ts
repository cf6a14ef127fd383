import type { ChatChunk, Delta, Ext } from '../../schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import { asText } from '../shared/json-shape.ts';
import { type BlockSlot, countCodePoints, createSlot } from '../shared/slot.ts';
import { mintCallId } from '../shared/tool-ids.ts';
import { annotationsOf } from './citations.ts';
import { WIRE } from './wire.ts';

/** What decoding must know of the attempt's request. */
export interface DecoderState {
  generation_id: string;
  /** Name as sent -> name as the client knows it, for the tools that were renamed. */
  tool_names?: Record<string, string>;
  /** The call ids of the conversation so far. */
  call_ids?: readonly string[];
}

/** Where the plan of a turn that calls tools stands: a text of its own, before all content. */
export const PLAN = 'plan';

/** The blocks of one assistant turn, as they grow. `index` is the wire's own name of a block. */
export interface Turn {
  hasCalls(): boolean;
  hasOutput(): boolean;
  /** Text and thoughts: a piece of another block ends the one before it. */
  say(kind: 'text' | 'reasoning', index: JsonValue | undefined, piece: string): ChatChunk[];
  cite(citation: JsonObject): ChatChunk[];
  openCall(index: JsonValue | undefined, call: { id: string; name: string; arguments: string }): ChatChunk[];
  /** Undefined for a piece of a call that is not open: nobody can tell whose arguments it holds. */
  addArguments(index: JsonValue | undefined, piece: string): ChatChunk[] | undefined;
  closeCall(index: JsonValue | undefined): ChatChunk[];
  closeAll(): ChatChunk[];
}

/** The open block of prose: one at a time. */
interface Prose {
  kind: 'text' | 'reasoning';
  index: JsonValue | undefined;
  slot: BlockSlot;
  /** Of the detail, for reasoning. */
  detail: number;
  citations: JsonValue[];
}

interface Call {
  ordinal: number;
  slot: BlockSlot;
  id: string;
  hasArguments: boolean;
}

/** Makes an empty turn. */
export function createTurn(state: DecoderState): Turn {
  const ids = new Set(state.call_ids);
  const calls = new Map<JsonValue | undefined, Call>();
  /** Where each text begins in the joined text, by its content index. */
  const textStarts = new Map<JsonValue | undefined, number>();
  let lastTextStart = 0;
  const counts = { slots: 0 };
  let details = 0;
  let made = 0;
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
    hasCalls: () => made > 0,
    hasOutput: () => counts.slots > 0,
    say(kind, index, piece) {
      // A block that says nothing is no block.
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
      // Those of the plan and of thoughts have no public form (https://docs.cohere.com/reference/chat, `CitationType`).
      const type = citation['type'] ?? 'TEXT_CONTENT';
      const start = textStarts.get(citation['content_index']) ?? lastTextStart;
      const annotations = type === 'TEXT_CONTENT' ? annotationsOf(citation, start) : [];
      const delta: Delta = annotations.length === 0 ? {} : { annotations };
      if (prose === undefined || !isAbout(type, prose)) return annotations.length === 0 ? [] : [{ delta }];
      prose.citations.push(citation);
      return [prose.slot.emit(delta, { raw: { type: 'citation-start', citation } })];
    },
    openCall(index, told) {
      if (calls.get(index)?.id === told.id) return [];
      const chunks = [...closeProse(), ...closeCall(index)];
      const ordinal = made;
      made += 1;
      const isTaken = told.id === '' || ids.has(told.id);
      const id = isTaken ? mintCallId(state.generation_id, ordinal) : told.id;
      ids.add(id);
      const ext: Ext | undefined = isTaken && told.id !== '' ? { wire: WIRE, rest: { id: told.id } } : undefined;
      const slot = createSlot(counts, ext === undefined ? { kind: 'call' } : { kind: 'call', ext });
      calls.set(index, { ordinal, slot, id: told.id, hasArguments: told.arguments !== '' });
      const call = { name: state.tool_names?.[told.name] ?? told.name, arguments: told.arguments };
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

/** Whether a citation of this type stands for what the open block says. */
function isAbout(type: JsonValue, prose: Prose): boolean {
  if (type === 'PLAN' || prose.index === PLAN) return type === 'PLAN' && prose.index === PLAN;
  return (type === 'TEXT_CONTENT') === (prose.kind === 'text');
}

/** What a call's opening says, whichever members it leaves out. */
export function callOf(told: JsonObject | undefined, definition: JsonObject | undefined) {
  return {
    id: asText(told?.['id']),
    name: asText(definition?.['name']),
    arguments: argumentsOf(definition?.['arguments']),
  };
}

/** The text of arguments, also of those that come as an object. */
export function argumentsOf(value: JsonValue | undefined): string {
  if (value === undefined || value === null) return '';
  return typeof value === 'string' ? value : JSON.stringify(value);
}
