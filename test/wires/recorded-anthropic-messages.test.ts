import { describe, expect, test } from 'vitest';
import { anthropicMessages } from '../../src/providers/anthropic-messages/index.ts';
import { type AttemptState, UpstreamError } from '../../src/providers/dialect.ts';
import { createFramer } from '../../src/providers/transport/frames.ts';
import { accumulate } from '../../src/schemas/accumulate.ts';
import type { ChatCompletion } from '../../src/schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../src/schemas/json.ts';
import {
  frameMessages,
  type MessagesReading,
  messagesBytes,
  readMessage,
  readMessageStream,
  SPLICED,
} from '../readings/anthropic-messages.ts';
import { array, atLeast, object, recordingsOf } from '../readings/recordings.ts';

const recordings = recordingsOf('anthropic-messages');
const isThere = recordings.length > 0;
const STATE: AttemptState = { generation_id: 'gen-recorded' };

/** Up to this size an answer is cut at every byte; above it, at this many evenly spread places and once into single bytes. */
const CUT_EVERYWHERE_BYTES_MAX = 6_000;
const CUTS = 400;

describe.runIf(isThere)('recorded answers', () => {
  test('all recordings are there', () => expect(recordings.length).toBeGreaterThanOrEqual(atLeast(69)));

  for (const { name, recording } of recordings) {
    const { response } = recording;
    if (response.status !== 200) {
      test(`${name}: the error is classified`, () => {
        const error = anthropicMessages.decodeError(response.status, {}, JSON.stringify(response.json));
        const recordedError = object(object(response.json)['error']);
        expect([error.message, error.native_code, error.failure, error.status]).toEqual([
          recordedError['message'],
          recordedError['type'],
          'invalid_request',
          response.status,
        ]);
      });
    } else if (response.json !== undefined) {
      test(`${name}: is read like the raw body`, () => {
        const completion = accumulate(anthropicMessages.decodeResponse(response.json!, STATE), 0);
        expect(essence(completion)).toEqual(readMessage(object(response.json)));
      });
      test(`${name}: streamed, the same answer accumulates to the same completion`, () => {
        const whole = accumulate(anthropicMessages.decodeResponse(response.json!, STATE), 0);
        expect(decode(frame(streamOf(object(response.json))), [])).toEqual(whole);
      });
    } else {
      const bytes = messagesBytes(recording);
      if (SPLICED.has(name)) {
        test(`${name}: an answer that breaks off into another is an error`, () => {
          expect(() => decode(bytes, [])).toThrow(UpstreamError);
        });
        continue;
      }
      const raw = readMessageStream(new TextDecoder().decode(bytes));
      test(`${name}: is read like the raw stream, wherever it is cut`, () => {
        expect(essence(decode(bytes, []))).toEqual(raw);
        const whole = JSON.stringify(decode(bytes, []));
        const step = bytes.length <= CUT_EVERYWHERE_BYTES_MAX ? 1 : Math.ceil(bytes.length / CUTS);
        for (let at = 1; at < bytes.length; at += step) {
          if (JSON.stringify(decode(bytes, [at])) !== whole) expect.fail(`differs when cut at byte ${at}`);
        }
        const everywhere = Array.from({ length: bytes.length - 1 }, (_, i) => i + 1);
        expect(JSON.stringify(decode(bytes, everywhere))).toBe(whole);
      });
    }
  }
});

// ---- The parts that the tests compare: text, thinking, calls, finish reason and counts.

function essence({ choices: [choice], ext }: ChatCompletion): MessagesReading {
  const { content } = choice.message;
  const parts = typeof content === 'string' ? [{ type: 'text' as const, text: content }] : (content ?? []);
  const usage = ext.usage ?? {};
  return {
    text: parts.map((part) => (part.type === 'text' ? part.text : '')).join(''),
    thinking: (choice.message.reasoning_details ?? []).map((detail) => {
      if (detail.type === 'reasoning.encrypted') return { data: detail.data };
      return detail.type === 'reasoning.text' ? { text: detail.text ?? '', signature: detail.signature ?? '' } : {};
    }),
    calls: (choice.message.tool_calls ?? []).map(({ id, function: { name, arguments: text } }) => ({
      id,
      name,
      input: JSON.parse(text),
    })),
    finish: choice.finish_reason,
    native_finish: choice.native_finish_reason,
    tokens: {
      input: usage.in_uncached,
      read: usage.in_cache_read,
      written: sum(usage.in_cache_write_5m, usage.in_cache_write_1h),
      output: sum(usage.out_text, usage.out_reasoning),
      thinking: usage.out_reasoning,
      searches: usage.counts?.web_search,
    },
  };
}

function sum(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined && b === undefined ? undefined : (a ?? 0) + (b ?? 0);
}

function decode(bytes: Uint8Array, cuts: number[]): ChatCompletion {
  const framer = createFramer(anthropicMessages.frames);
  const decoder = anthropicMessages.createStreamDecoder({ ...STATE });
  const ends = [...cuts, bytes.length];
  let from = 0;
  const chunks = [];
  for (const to of ends) {
    for (const frame of framer.push(bytes.subarray(from, to))) chunks.push(...decoder.push(frame));
    from = to;
  }
  for (const frame of framer.end()) chunks.push(...decoder.push(frame));
  chunks.push(...decoder.end());
  return accumulate(chunks, 0);
}

function frame(events: JsonValue[]): Uint8Array {
  return new TextEncoder().encode(frameMessages(events));
}

/**
 * A whole answer as the provider would have streamed it: texts in pieces, signatures, citations and inputs as deltas.
 */
function streamOf(message: JsonObject): JsonValue[] {
  const usage = object(message['usage']);
  const { stop_reason, stop_sequence, stop_details, container, context_management, ...start } = message;
  const begun = { ...usage };
  for (const late of ['server_tool_use', 'iterations', 'output_tokens_details']) delete begun[late];
  const events: JsonValue[] = [
    {
      type: 'message_start',
      message: { ...start, content: [], stop_reason: null, usage: { ...begun, output_tokens: 1 } },
    },
    { type: 'ping' },
  ];
  for (const [index, block] of array(message['content']).map(object).entries()) {
    const delta = (fields: JsonObject) => events.push({ type: 'content_block_delta', index, delta: fields });
    const { type, text, thinking, signature, citations, input } = block;
    const contentBlock: JsonObject = { ...block };
    if (type === 'text') Object.assign(contentBlock, { text: '', ...(citations == null ? {} : { citations: [] }) });
    if (type === 'thinking') Object.assign(contentBlock, { thinking: '', signature: '' });
    if (input !== undefined) contentBlock['input'] = {};
    events.push({ type: 'content_block_start', index, content_block: contentBlock });
    for (const citation of array(citations)) delta({ type: 'citations_delta', citation });
    for (const piece of pieces(text)) delta({ type: 'text_delta', text: piece });
    for (const piece of pieces(thinking)) delta({ type: 'thinking_delta', thinking: piece });
    if (signature != null) delta({ type: 'signature_delta', signature });
    if (input !== undefined) {
      delta({ type: 'input_json_delta', partial_json: '' });
      for (const piece of pieces(JSON.stringify(input))) delta({ type: 'input_json_delta', partial_json: piece });
    }
    events.push({ type: 'content_block_stop', index });
  }
  const messageDelta = { stop_reason, stop_sequence, stop_details, container };
  events.push({ type: 'message_delta', delta: messageDelta, context_management, usage } as JsonObject, {
    type: 'message_stop',
  });
  return events;
}

function pieces(value: JsonValue | undefined): string[] {
  return typeof value === 'string' ? (value.match(/[\s\S]{1,5}/g) ?? []) : [];
}
