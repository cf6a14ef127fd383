import { append } from '../../schemas/append.ts';
import type { ChatChunk } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { UpstreamError } from '../dialect.ts';
import { asText, remainder } from '../shared/json-shape.ts';
import { type BlockSlot, createSlot } from '../shared/slot.ts';
import { mintCallId } from '../shared/tool-ids.ts';
import type { ItemReader, TurnContext } from './turn-context.ts';
import { extOf, type WireItem } from './wire.ts';

const KNOWN = ['call_id', 'name', 'arguments', 'input'];

/**
 * Reads a call of one of the client's tools. The input of a custom tool is text, not JSON: chat clients get it as the only member of an
 * object, `{"input": …}`; `type` in the remainder records the kind.
 */
export function createCallReader(item: WireItem, context: TurnContext): ItemReader {
  const { counts, ids, state } = context;
  const isCustom = item.type === 'custom_tool_call';
  let slot: BlockSlot | undefined;
  let index = 0;
  let id = '';
  let wireId = '';
  let hasFragments = false;

  function rest(source: WireItem): JsonObject {
    const remembered = remainder(source, isCustom ? KNOWN : [...KNOWN, 'type']);
    return wireId === '' || wireId === id ? remembered : { ...remembered, call_id: wireId };
  }

  /** Opens the call once its name is known. */
  function begin(source: WireItem): ChatChunk[] {
    const wireName = asText(source['name']);
    if (slot !== undefined || wireName === '') return [];
    index = counts.calls;
    counts.calls += 1;
    wireId = asText(source['call_id']);
    // Some servers restart their ids in every answer (translation M2).
    id = wireId === '' || ids.has(wireId) ? mintCallId(state.generation_id, index) : wireId;
    ids.add(id);
    const { status: _unfinished, ...known } = rest(source);
    const ext = extOf(known);
    slot = createSlot(counts, ext === undefined ? { kind: 'call' } : { kind: 'call', ext });
    const name = state.tool_names?.[wireName] ?? wireName;
    return [slot.emit({ tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }] })];
  }

  function emitFragment(fragment: string): ChatChunk[] {
    if (fragment === '' || slot === undefined) return [];
    const text = isCustom ? `${hasFragments ? '' : '{"input":"'}${escaped(fragment)}` : fragment;
    hasFragments = true;
    return [slot.emit({ tool_calls: [{ index, function: { arguments: text } }] })];
  }

  function emitWhole(source: WireItem): ChatChunk[] {
    if (hasFragments || slot === undefined) return [];
    const whole = isCustom ? JSON.stringify({ input: asText(source['input']) }) : argumentsOf(source);
    return [slot.emit({ tool_calls: [{ index, function: { arguments: whole } }] })];
  }

  return {
    begin: () => begin(item),
    add(event) {
      const isFragment =
        event['type'] === 'response.function_call_arguments.delta' ||
        event['type'] === 'response.custom_tool_call_input.delta';
      return isFragment ? emitFragment(asText(event['delta'])) : [];
    },
    end(finished) {
      const chunks = finished === undefined ? [] : begin(finished);
      // A call of no tool cannot be run, and must not be lost in silence.
      if (slot === undefined)
        throw new UpstreamError('invalid_response', 'The provider called a tool without its name.');
      if (isCustom && hasFragments) chunks.push(slot.emit({ tool_calls: [{ index, function: { arguments: '"}' } }] }));
      append(chunks, emitWhole(finished ?? item));
      const ext = finished === undefined ? undefined : extOf(rest(finished));
      append(chunks, slot.close({}, ext === undefined ? {} : { ext }));
      return chunks;
    },
  };
}

/** The arguments of a call as text; `{}` if it has none. */
function argumentsOf(item: WireItem): string {
  const { arguments: value } = item;
  if (typeof value === 'object' && value !== null) return JSON.stringify(value);
  const text = asText(value);
  return text.trim() === '' ? '{}' : text;
}

/** Text escaped for a JSON string; halves of a surrogate pair become escapes that join. */
function escaped(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}
