import { restOf } from '../../providers/openai-responses/wire.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { type CustomInput, createCustomInput } from './custom-input.ts';
import { announce, type ItemContext, type ItemWriter, type Place } from './item.ts';
import { TextPieces } from './text-pieces.ts';

/** Writes a call of one of the client's tools: a function, or a tool whose input is a text. */
export function createCall(context: ItemContext): ItemWriter {
  const { events, tools } = context;
  let rest: JsonObject = {};
  let place: Place | undefined;
  let known: JsonObject = {};
  let received = '';
  /** The same as the content of a JSON string, if events are used: encoded once, and sent several times. */
  const json = new TextPieces();
  let input: CustomInput | undefined;

  function begin(callId: string, name: string): Place {
    const { type, id: wireId, status: _status, call_id: _renamed, ...further } = rest;
    const isOwn = wireId !== undefined || type !== undefined;
    const isCustom = type === 'custom_tool_call' || (!isOwn && tools.isCustom(name));
    if (isCustom) input = createCustomInput();
    const id = context.idOf(isCustom ? 'ctc' : 'fc', wireId);
    known = {
      ...further,
      id,
      type: isCustom ? 'custom_tool_call' : 'function_call',
      call_id: callId,
      name,
      ...(isOwn ? {} : tools.inNamespace(name)),
    };
    return announce(context, id, { ...known, status: 'in_progress', [isCustom ? 'input' : 'arguments']: '' });
  }

  function addText(text: string): void {
    if (text === '' || place === undefined) return;
    received += text;
    if (!events.are_read) return;
    const type =
      input === undefined ? 'response.function_call_arguments.delta' : 'response.custom_tool_call_input.delta';
    const encoded = JSON.stringify(text);
    json.add(encoded.slice(1, -1));
    events.send(type, `${place.json},"delta":${encoded}`);
  }

  return {
    takes: () => false,
    open: ({ ext }) => {
      rest = restOf(ext);
    },
    write({ delta }) {
      for (const { id, function: called } of delta.tool_calls ?? []) {
        if (place === undefined && called.name !== undefined) place = begin(id ?? '', called.name);
        const fragment = called.arguments ?? '';
        addText(input === undefined ? fragment : input.add(fragment));
      }
    },
    close: ({ ext }) => {
      rest = { ...rest, ...restOf(ext) };
    },
    finish(status) {
      if (place === undefined) return undefined;
      const { type: _type, id: _id, call_id: _renamed, status: wireStatus, ...further } = rest;
      if (input !== undefined) {
        addText(input.end());
        if (events.are_read) {
          events.send('response.custom_tool_call_input.done', [`${place.json},"input":"`, ...json.all(), '"']);
        }
        return { ...further, ...known, status: wireStatus ?? status, input: received };
      }
      if (events.are_read) {
        const name = JSON.stringify(known['name']);
        events.send('response.function_call_arguments.done', [
          `${place.json},"name":${name},"arguments":"`,
          ...json.all(),
          '"',
        ]);
      }
      return { ...further, ...known, status: wireStatus ?? status, arguments: received };
    },
    partsOf(finished) {
      if (!events.are_read) return undefined;
      const name = input === undefined ? 'arguments' : 'input';
      const { [name]: _, ...others } = finished;
      return [`${JSON.stringify(others).slice(0, -1)},"${name}":"`, ...json.all(), '"}'];
    },
  };
}
