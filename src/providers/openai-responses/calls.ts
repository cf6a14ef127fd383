import { append } from '../../schemas/append.ts';
import type { ChatChunk } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { asText, remainder } from '../shared/json-shape.ts';
import { type BlockSlot, createSlot } from '../shared/slot.ts';
import { mintCallId } from '../shared/tool-ids.ts';
import type { ItemReader, TurnContext } from './turn-context.ts';
import { extOf, type WireItem } from './wire.ts';

const KNOWN = ['call_id', 'name', 'arguments', 'input'];

/**
 * A call of one of the client's tools. The input of a custom tool is a text and no JSON: to a chat client it is the only
 * member of an object, `{"input": …}`, and `type` in the remainder tells the way back which kind it was.
 */
export function createCallReader(item: WireItem, context: TurnContext): ItemReader {
  const { counts, ids, state } = context;
  const isCustom = item.type === 'custom_tool_call';
  let slot: BlockSlot | undefined;
  let index = 0;
  let id = '';
  let wireId = '';
  let hasFragments = false;

  function rest(told: WireItem): JsonObject {
    const remembered = remainder(told, isCustom ? KNOWN : [...KNOWN, 'type']);
    return wireId === '' || wireId === id ? remembered : { ...remembered, call_id: wireId };
  }

  /** A call is told when its name is known. */
  function begin(told: WireItem): ChatChunk[] {
    const wireName = asText(told['name']);
    if (slot !== undefined || wireName === '') return [];
    index = counts.calls;
    counts.calls += 1;
    wireId = asText(told['call_id']);
    // Some servers count anew in every answer (translation M2).
    id = wireId === '' || ids.has(wireId) ? mintCallId(state.generation_id, index) : wireId;
    ids.add(id);
    const { status: _unfinished, ...known } = rest(told);
    const ext = extOf(known);
    slot = createSlot(counts, ext === undefined ? { kind: 'call' } : { kind: 'call', ext });
    const name = state.tool_names?.[wireName] ?? wireName;
    return [slot.emit({ tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }] })];
  }

  function say(fragment: string): ChatChunk[] {
    if (fragment === '' || slot === undefined) return [];
    const text = isCustom ? `${hasFragments ? '' : '{"input":"'}${escaped(fragment)}` : fragment;
    hasFragments = true;
    return [slot.emit({ tool_calls: [{ index, function: { arguments: text } }] })];
  }

  function sayWhole(told: WireItem): ChatChunk[] {
    if (hasFragments || slot === undefined) return [];
    const whole = isCustom ? JSON.stringify({ input: asText(told['input']) }) : argumentsOf(told);
    return [slot.emit({ tool_calls: [{ index, function: { arguments: whole } }] })];
  }

  return {
    begin: () => begin(item),
    add(event) {
      const isFragment =
        event['type'] === 'response.function_call_arguments.delta' ||
        event['type'] === 'response.custom_tool_call_input.delta';
      return isFragment ? say(asText(event['delta'])) : [];
    },
    end(finished) {
      const chunks = finished === undefined ? [] : begin(finished);
      if (slot === undefined) return chunks;
      if (isCustom && hasFragments) chunks.push(slot.emit({ tool_calls: [{ index, function: { arguments: '"}' } }] }));
      append(chunks, sayWhole(finished ?? item));
      const ext = finished === undefined ? undefined : extOf(rest(finished));
      append(chunks, slot.close({}, ext === undefined ? {} : { ext }));
      return chunks;
    },
  };
}

/** A call without arguments has empty ones. */
function argumentsOf(told: WireItem): string {
  const { arguments: value } = told;
  if (typeof value === 'object' && value !== null) return JSON.stringify(value);
  const text = asText(value);
  return text.trim() === '' ? '{}' : text;
}

/** As it stands inside a JSON string; halves of a surrogate pair become escapes that join. */
function escaped(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}
