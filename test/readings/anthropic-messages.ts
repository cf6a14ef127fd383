/** Reads recorded answers of the Messages wire without using the gateway's code. */
import type { JsonObject, JsonValue } from '../../src/schemas/json.ts';
import { array, object, type Recording } from './recordings.ts';

export interface MessagesReading {
  text: string;
  /** Thinking and redacted thinking, block by block. */
  thinking: JsonValue[];
  calls: { id: JsonValue | undefined; name: JsonValue | undefined; input: JsonValue | undefined }[];
  /** The equivalent public finish reason. */
  finish: string | null;
  native_finish: JsonValue;
  tokens: Record<'input' | 'read' | 'written' | 'output' | 'thinking' | 'searches', number | undefined>;
}

/** A stream in which one answer breaks off and another begins: it must be read as broken, not joined. */
export const SPLICED: ReadonlySet<string> = new Set(['anthropic--events-spliced-message-start.json']);

/** The bytes of a recorded stream. */
export function messagesBytes({ response: { text, events } }: Recording): Uint8Array {
  return new TextEncoder().encode(text ?? frameMessages(events ?? []));
}

/** The events in the framing of this wire. */
export function frameMessages(events: JsonValue[]): string {
  return events.map((event) => `event: ${object(event)['type']}\ndata: ${JSON.stringify(event)}\n\n`).join('');
}

/** The content of a whole message. */
export function readMessage(message: JsonObject): MessagesReading {
  const blocks = array(message['content']).map(object);
  const usage = object(message['usage']);
  const calls = blocks.filter((block) => block['type'] === 'tool_use');
  const number = (value: JsonValue | undefined) => (typeof value === 'number' ? value : undefined);
  return {
    text: blocks
      .filter((block) => block['type'] === 'text')
      .map((block) => block['text'])
      .join(''),
    thinking: blocks.flatMap((block): JsonObject[] => {
      if (block['type'] === 'redacted_thinking') return [{ data: block['data'] }];
      return block['type'] === 'thinking' ? [{ text: block['thinking'], signature: block['signature'] ?? '' }] : [];
    }),
    calls: calls.map(({ id, name, input }) => ({ id, name, input })),
    finish: expectedFinish(String(message['stop_reason']), calls.length),
    native_finish: message['stop_reason'] ?? null,
    tokens: {
      input: number(usage['input_tokens']),
      read: number(usage['cache_read_input_tokens']),
      written: number(usage['cache_creation_input_tokens']),
      output: number(usage['output_tokens']),
      thinking: number(object(usage['output_tokens_details'])['thinking_tokens']),
      searches: number(object(usage['server_tool_use'])['web_search_requests']),
    },
  };
}

function expectedFinish(reason: string, calls: number): string {
  if (reason === 'tool_use') return calls > 0 ? 'tool_calls' : 'stop';
  if (reason === 'max_tokens' || reason === 'model_context_window_exceeded') return 'length';
  if (reason === 'refusal') return 'content_filter';
  return calls > 0 ? 'tool_calls' : 'stop';
}

/** The content of a stream: lines, then blocks by index. */
export function readMessageStream(text: string): MessagesReading {
  const blocks: JsonObject[] = [];
  const inputs: string[] = [];
  let message: JsonObject = {};
  for (const line of text.split(/\r?\n/)) {
    if (!line.startsWith('data:')) continue;
    const event = object(JSON.parse(line.slice(5)));
    const at = Number(event['index']);
    const delta = object(event['delta']);
    // Two recordings contain several consecutive answers: an answer ends with its `message_stop`.
    if (event['type'] === 'message_stop') break;
    if (event['type'] === 'message_start') message = { ...object(event['message']) };
    if (event['type'] === 'content_block_start') {
      blocks[at] = { ...object(event['content_block']) };
      inputs[at] = '';
    }
    if (event['type'] === 'content_block_delta') {
      const block = blocks[at]!;
      if (delta['type'] === 'text_delta') block['text'] = `${block['text']}${delta['text']}`;
      if (delta['type'] === 'thinking_delta') block['thinking'] = `${block['thinking']}${delta['thinking']}`;
      if (delta['type'] === 'signature_delta') block['signature'] = `${block['signature'] ?? ''}${delta['signature']}`;
      if (delta['type'] === 'input_json_delta') inputs[at] = `${inputs[at]}${delta['partial_json']}`;
    }
    if (event['type'] === 'content_block_stop' && inputs[at]) blocks[at]!['input'] = JSON.parse(inputs[at]!);
    if (event['type'] === 'message_delta') {
      const usage = { ...object(message['usage']), ...object(event['usage']) };
      message = { ...message, stop_reason: delta['stop_reason'], usage };
    }
  }
  return readMessage({ ...message, content: blocks });
}
