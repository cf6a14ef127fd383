/** Reads recorded answers of the Responses wire without using the gateway's code. */
import type { JsonObject, JsonValue } from '../../src/schemas/json.ts';
import { array, object, type Recording } from './recordings.ts';

export interface ResponsesReading {
  text: string;
  refusal: string;
  /** Summaries and plain reasoning, then encrypted data, item by item. */
  reasoning: string[];
  encrypted: string[];
  calls: { id: string; name: string; arguments: JsonValue }[];
  /** The cited addresses. */
  cited: string[];
  /** The equivalent public finish reason. */
  finish: string;
  native_finish: string;
  tokens: Record<'input' | 'cached' | 'written' | 'output' | 'thinking', number>;
}

/** Recordings without an answer, and what a client gets instead. */
export const NO_ANSWER: Readonly<Record<string, { status: number; failure: string; why: string }>> = {
  'openai--events-openai-error-1.json': {
    status: 502,
    failure: 'payment',
    why: 'the stream ends in an error: the operator’s account has no credit, which is not shown to clients',
  },
  'openai--test-openai-responses-test-background-mode-reasoning-vcr-0.json': {
    status: 502,
    failure: 'invalid_response',
    why: 'a response that waits in the background is not an answer; the gateway never requests one',
  },
};

/**
 * Recordings whose last event has another answer than the events before it: the text was cut by hand, encrypted content
 * is encrypted again each time, a call's arguments are in another order. The events count.
 */
export const RETOLD: ReadonlySet<string> = new Set([
  'openai--events-openai-reasoning-encrypted-content-1.json',
  'openai--events-openai-shell-container-1.json',
  'openai--test-openai-responses-test-openai-responses-model-mcp-server-tool-stream-0.json',
]);

/** The bytes of a recorded stream. */
export function responsesBytes({ response: { text, events } }: Recording): Uint8Array {
  return new TextEncoder().encode(text ?? frameResponses(eventsOf(events ?? [])));
}

/** The events in the framing of this wire. */
export function frameResponses(events: readonly JsonObject[]): string {
  return events.map((event) => `event: ${event['type']}\ndata: ${JSON.stringify(event)}\n\n`).join('');
}

/** The events of a stream, up to the first that ends an answer: one recording contains several consecutive answers. */
export function responsesEvents(recording: Recording): JsonObject[] {
  const { text, events } = recording.response;
  const all =
    text === undefined
      ? eventsOf(events ?? [])
      : text
          .split(/\r?\n/)
          .filter((line) => line.startsWith('data:') && line.includes('{'))
          .map((line) => object(JSON.parse(line.slice(5))));
  const end = all.findIndex(({ type }) => type === 'response.completed' || type === 'response.incomplete');
  return end === -1 ? all : all.slice(0, end + 1);
}

function eventsOf(events: readonly JsonValue[]): JsonObject[] {
  return events.map((event) => object(typeof event === 'string' ? JSON.parse(event) : event));
}

/** The content of a recorded answer, streamed or whole. */
export function readResponses(recording: Recording): ResponsesReading {
  const { json } = recording.response;
  if (json !== undefined) return readWhole(object(json), array(object(json)['output']).map(object));
  const events = responsesEvents(recording);
  const done = events.filter(({ type }) => type === 'response.output_item.done').map(({ item }) => object(item));
  const reading = readWhole(object(events.at(-1)?.['response']), done);
  const deltas = (type: string) => events.filter((event) => event['type'] === type).map(({ delta }) => String(delta));
  reading.text = deltas('response.output_text.delta').join('');
  return reading;
}

function readWhole(response: JsonObject, items: JsonObject[]): ResponsesReading {
  const parts = items.filter(({ type }) => type === 'message').flatMap(({ content }) => array(content).map(object));
  const thoughts = items.filter(({ type }) => type === 'reasoning');
  const calls = items.filter(({ type }) => type === 'function_call' || type === 'custom_tool_call');
  const usage = object(response['usage']);
  const count = (value: JsonValue | undefined) => (typeof value === 'number' ? value : 0);
  const status = String(response['status']);
  return {
    text: parts.map(({ text }) => text ?? '').join(''),
    refusal: parts.map(({ refusal }) => refusal ?? '').join(''),
    reasoning: thoughts.flatMap(({ summary, content }) =>
      [...array(summary), ...array(content)].map((part) => String(object(part)['text'])),
    ),
    encrypted: thoughts.flatMap((item) =>
      typeof item['encrypted_content'] === 'string' ? [item['encrypted_content']] : [],
    ),
    calls: calls.map((item) => ({
      id: String(item['call_id']),
      name: String(item['name']),
      arguments: item['type'] === 'function_call' ? JSON.parse(String(item['arguments'])) : { input: item['input'] },
    })),
    cited: parts
      .flatMap(({ annotations }) => array(annotations).map(object))
      .filter(({ type }) => type === 'url_citation')
      .map(({ url }) => String(url)),
    finish: status === 'completed' ? (calls.length > 0 ? 'tool_calls' : 'stop') : 'length',
    native_finish: status,
    tokens: {
      input: count(usage['input_tokens']),
      cached: count(object(usage['input_tokens_details'])['cached_tokens']),
      written: count(object(usage['input_tokens_details'])['cache_write_tokens']),
      output: count(usage['output_tokens']),
      thinking: count(object(usage['output_tokens_details'])['reasoning_tokens']),
    },
  };
}
