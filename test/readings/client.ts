/** Reads the answer of a client of the gateway, whole or streamed, by the public contract alone. */

import type { JsonObject, JsonValue } from '../../src/schemas/json.ts';
import { checkChatStream } from '../grammar/chat.ts';
import { array, object } from './recordings.ts';

export { leaksOf } from './leaks.ts';

export interface ClientReading {
  text: string;
  /** The readable string. */
  reasoning: string;
  /** `reasoning_details`, deltas of one detail joined. */
  details: JsonObject[];
  refusal: string;
  calls: { id: string; name: string; arguments: string }[];
  finish: string | null;
  native_finish: string | null;
  usage: JsonObject;
  /** The error of an answer that failed late. */
  error: JsonObject | undefined;
}

/** The content of a whole answer. */
export function readAnswer(answer: JsonObject): ClientReading {
  const choices = array(answer['choices']);
  const choice = object(choices[0]);
  const message = object(choice['message']);
  if (choices.length !== 1) throw new Error(`${choices.length} choices`);
  return {
    text: text(message['content']),
    reasoning: text(message['reasoning']),
    details: array(message['reasoning_details']).map(object).filter(isOfProvider),
    refusal: text(message['refusal']),
    calls: array(message['tool_calls']).map((call) => {
      const { name, arguments: argumentsText } = object(object(call)['function']);
      return { id: text(object(call)['id']), name: text(name), arguments: text(argumentsText) };
    }),
    finish: textOrNull(choice['finish_reason']),
    native_finish: textOrNull(choice['native_finish_reason']),
    usage: object(answer['usage']),
    error: choice['error'] === undefined ? undefined : object(choice['error']),
  };
}

/** The content of a stream, accumulated chunk by chunk. */
export function readStream(body: string): ClientReading {
  const reading: ClientReading = {
    text: '',
    reasoning: '',
    details: [],
    refusal: '',
    calls: [],
    finish: null,
    native_finish: null,
    usage: {},
    error: undefined,
  };
  const details = new Map<JsonValue | undefined, JsonObject>();
  for (const chunk of checkChatStream(body)) {
    if (chunk['usage'] !== undefined) reading.usage = object(chunk['usage']);
    if (chunk['error'] !== undefined) reading.error = object(chunk['error']);
    for (const choice of array(chunk['choices']).map(object)) {
      if (reading.finish !== null) throw new Error('content follows the finish reason');
      const delta = object(choice['delta']);
      reading.text += text(delta['content']);
      reading.reasoning += text(delta['reasoning']);
      reading.refusal += text(delta['refusal']);
      for (const detail of array(delta['reasoning_details']).map(object)) addDetail(details, detail);
      for (const call of array(delta['tool_calls']).map(object)) addCall(reading.calls, call);
      reading.finish = textOrNull(choice['finish_reason']);
      reading.native_finish = textOrNull(choice['native_finish_reason']);
    }
  }
  reading.details = [...details.values()].filter(isOfProvider);
  return reading;
}

/** The gateway's own detail has no content of the answer; test/wires/sealed-turns.test.ts reads it. */
function isOfProvider({ id }: JsonObject): boolean {
  return !(typeof id === 'string' && id.startsWith('seal_'));
}

function addDetail(details: Map<JsonValue | undefined, JsonObject>, delta: JsonObject): void {
  const former = details.get(delta['index']);
  if (former === undefined) {
    details.set(delta['index'], { ...delta });
    return;
  }
  if (former['type'] !== delta['type']) throw new Error('a reasoning detail changes its type');
  for (const [name, value] of Object.entries(delta)) {
    if (name === 'text' || name === 'summary') former[name] = text(former[name]) + text(value);
    else if (value !== null) former[name] = value;
  }
}

function addCall(calls: ClientReading['calls'], delta: JsonObject): void {
  const at = Number(delta['index']);
  const { name, arguments: argumentsText } = object(delta['function']);
  const former = calls[at];
  if (former === undefined) {
    if (at !== calls.length) throw new Error(`call ${at} opens before call ${calls.length}`);
    if (text(delta['id']) === '' || text(name) === '') throw new Error('a call opens without an id or a name');
    calls.push({ id: text(delta['id']), name: text(name), arguments: text(argumentsText) });
    return;
  }
  if (delta['id'] !== undefined || name !== undefined) throw new Error('a call repeats its id or name');
  former.arguments += text(argumentsText);
}

function text(value: JsonValue | undefined): string {
  return typeof value === 'string' ? value : '';
}

function textOrNull(value: JsonValue | undefined): string | null {
  return typeof value === 'string' ? value : null;
}
