/** Reads recorded answers of Cohere's wire without using the gateway's code. */
import type { JsonObject, JsonValue } from '../../src/schemas/json.ts';
import { array, object, type Recording } from './recordings.ts';

export interface CohereReading {
  /** The plan of a turn that calls tools, and its text. */
  text: string;
  thinking: string;
  calls: { id: string; name: string; arguments: string }[];
  /** The provider's own finish reason. */
  finish: string;
  /** The billed tokens, and the cached tokens of the prompt. */
  input: number;
  output: number;
  cached: number;
}

/** The public names of the finish reasons that are recorded. */
export const FINISH: Readonly<Record<string, string>> = { COMPLETE: 'stop', TOOL_CALL: 'tool_calls' };

/** The bytes of a recorded stream, of which only the payloads were kept. */
export function cohereBytes({ response: { text, events } }: Recording): Uint8Array {
  const framed = (events ?? []).map((event) => `event: ${object(event)['type']}\ndata: ${JSON.stringify(event)}\n\n`);
  return new TextEncoder().encode(text ?? framed.join(''));
}

/** The content of a recorded answer, streamed or whole. */
export function readCohere({ response: { json, events } }: Recording): CohereReading {
  return json === undefined ? readEvents(events ?? []) : readWhole(object(json));
}

function readWhole(answer: JsonObject): CohereReading {
  const message = object(answer['message']);
  const content = array(message['content']).map(object);
  const joined = (member: string) => content.map((part) => part[member] ?? '').join('');
  return {
    text: String(message['tool_plan'] ?? '') + joined('text'),
    thinking: joined('thinking'),
    calls: array(message['tool_calls']).map(readCall),
    finish: String(answer['finish_reason']),
    ...readCounts(object(answer['usage'])),
  };
}

function readEvents(events: readonly JsonValue[]): CohereReading {
  const reading: CohereReading = { text: '', thinking: '', calls: [], finish: '', input: 0, output: 0, cached: 0 };
  for (const value of events) {
    const event = object(value);
    const delta = object(event['delta']);
    const message = object(delta['message']);
    const content = object(message['content']);
    reading.text += `${message['tool_plan'] ?? ''}${content['text'] ?? ''}`;
    reading.thinking += `${content['thinking'] ?? ''}`;
    if (event['type'] === 'tool-call-start') reading.calls.push(readCall(message['tool_calls']));
    if (event['type'] === 'tool-call-delta') {
      const piece = object(object(message['tool_calls'])['function'])['arguments'];
      reading.calls.at(Number(event['index']))!.arguments += String(piece);
    }
    if (event['type'] !== 'message-end') continue;
    reading.finish = String(delta['finish_reason']);
    Object.assign(reading, readCounts(object(delta['usage'])));
  }
  return reading;
}

function readCall(value: JsonValue | undefined): CohereReading['calls'][number] {
  const { name, arguments: argumentsText } = object(object(value)['function']);
  return { id: String(object(value)['id']), name: String(name), arguments: String(argumentsText ?? '') };
}

function readCounts(usage: JsonObject): Pick<CohereReading, 'input' | 'output' | 'cached'> {
  const billed = object(usage['billed_units']);
  const input = Number(billed['input_tokens']);
  return {
    input,
    output: Number(billed['output_tokens']),
    // The provider counts its own, unbilled preamble among the cached tokens.
    cached: Math.min(Number(usage['cached_tokens'] ?? 0), input),
  };
}
