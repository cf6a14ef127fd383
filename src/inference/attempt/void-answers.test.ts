import { describe, expect, test } from 'vitest';
import { type AttemptState, type Frame, UpstreamError } from '../../providers/dialect.ts';
import { dialects } from '../../providers/dialects.ts';
import type { Wire } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { AnswerMeter, type Meter } from '../money/meter.ts';

/** An answer without a finish reason, as a body and as the events of a stream: empty, or with this text. */
interface Unreasoned {
  body(text: string): JsonObject;
  /** Undefined if a stream without a finish reason counts as broken off. */
  events: ((text: string) => [event: string, data: JsonObject | '[DONE]'][]) | undefined;
}

const counted = (text: string) => (text === '' ? 0 : 3);
const WIRES: Record<Wire, Unreasoned> = {
  'openai-chat': {
    body: (content) => ({
      id: 'x',
      choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: null }],
      usage: { prompt_tokens: 11, completion_tokens: counted(content) },
    }),
    events: (content) => [
      ['', { id: 'x', choices: [{ index: 0, delta: { role: 'assistant', content }, finish_reason: null }] }],
      ['', { id: 'x', choices: [], usage: { prompt_tokens: 11, completion_tokens: counted(content) } }],
      ['', '[DONE]'],
    ],
  },
  'anthropic-messages': {
    body: (text) => ({
      id: 'x',
      type: 'message',
      role: 'assistant',
      content: text === '' ? [] : [{ type: 'text', text }],
      stop_reason: null,
      usage: { input_tokens: 11, output_tokens: counted(text) },
    }),
    events: (text) => [
      ['message_start', { type: 'message_start', message: { id: 'x', content: [], usage: { input_tokens: 11 } } }],
      ['content_block_start', { type: 'content_block_start', index: 0, content_block: { type: 'text', text } }],
      ['content_block_stop', { type: 'content_block_stop', index: 0 }],
      ['message_delta', { type: 'message_delta', delta: {}, usage: { output_tokens: counted(text) } }],
      ['message_stop', { type: 'message_stop' }],
    ],
  },
  'openai-responses': {
    body: (text) => ({
      id: 'x',
      object: 'response',
      output:
        text === '' ? [] : [{ type: 'message', id: 'm', role: 'assistant', content: [{ type: 'output_text', text }] }],
      usage: { input_tokens: 11, output_tokens: counted(text), total_tokens: 11 + counted(text) },
    }),
    events: (text) => [
      ['', { type: 'response.created', response: { id: 'x' } }],
      ['', { type: 'response.completed', response: WIRES['openai-responses'].body(text) }],
    ],
  },
  'gemini-generate-content': {
    body: (text) => ({
      candidates: [{ content: { role: 'model', parts: text === '' ? [] : [{ text }] } }],
      usageMetadata: { promptTokenCount: 11, candidatesTokenCount: counted(text) },
    }),
    events: undefined,
  },
  'bedrock-converse': {
    body: (text) => ({
      output: { message: { role: 'assistant', content: text === '' ? [] : [{ text }] } },
      usage: { inputTokens: 11, outputTokens: counted(text) },
    }),
    events: (text) => [
      ['messageStart', { role: 'assistant' }],
      ['contentBlockDelta', { contentBlockIndex: 0, delta: { text } }],
      ['messageStop', {}],
      ['metadata', { usage: { inputTokens: 11, outputTokens: counted(text) } }],
    ],
  },
  'cohere-chat': {
    body: (text) => ({
      id: 'x',
      message: { role: 'assistant', content: text === '' ? [] : [{ type: 'text', text }] },
      usage: { tokens: { input_tokens: 11, output_tokens: counted(text) } },
    }),
    events: (text) => [
      ['', { type: 'message-start', id: 'x', delta: { message: { role: 'assistant' } } }],
      ['', { type: 'content-start', index: 0, delta: { message: { content: { type: 'text', text } } } }],
      ['', { type: 'content-end', index: 0 }],
      ['', { type: 'message-end', delta: { usage: { tokens: { input_tokens: 11, output_tokens: counted(text) } } } }],
    ],
  },
};

const state: AttemptState = { generation_id: 'gen-1' };

function meteredBody(wire: Wire, text: string): Meter {
  const meter = new AnswerMeter();
  for (const chunk of dialects.get(wire)!.decodeResponse(WIRES[wire].body(text), state)) meter.chunk(chunk);
  return meter;
}

function meteredStream(wire: Wire, text: string): Meter {
  const meter = new AnswerMeter();
  const decoder = dialects.get(wire)!.createStreamDecoder(state);
  for (const [event, data] of WIRES[wire].events?.(text) ?? []) {
    const frame: Frame = { event: event || undefined, data: data === '[DONE]' ? data : JSON.stringify(data) };
    for (const chunk of decoder.push(frame)) meter.chunk(chunk);
  }
  for (const chunk of decoder.end()) meter.chunk(chunk);
  return meter;
}

describe.each(Object.keys(WIRES) as Wire[])('an answer of %s without a finish reason', (wire) => {
  const ways: [string, (wire: Wire, text: string) => Meter][] = [['whole', meteredBody]];
  if (WIRES[wire].events !== undefined) ways.push(['streamed', meteredStream]);

  test.each(ways)('is void if it is empty: %s', (_name, metered) => {
    const { is_void, ...meter } = failedOr(() => metered(wire, ''));
    expect(is_void).toBe(true);
    expect(meter.usage?.({ messages: [] }) ?? null).toBeNull();
  });

  test.each(ways)('is an answer if it has text: %s', (_name, metered) => {
    const meter = metered(wire, 'Hello there friend');
    expect(meter).toMatchObject({ is_void: false, finish_reason: 'stop' });
    expect(meter.usage({ messages: [] })).toMatchObject({ in_uncached: 11, out_text: 3 });
  });
});

/** A dialect may refuse it as an error. */
function failedOr(read: () => Meter): { is_void: boolean; usage?: Meter['usage'] } {
  try {
    const meter = read();
    return { is_void: meter.is_void, usage: (request) => meter.usage(request) };
  } catch (error) {
    if (error instanceof UpstreamError) return { is_void: true };
    throw error;
  }
}
