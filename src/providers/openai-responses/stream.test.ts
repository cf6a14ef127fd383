import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { inTier } from '../../../test/tier.ts';
import { accumulate } from '../../schemas/accumulate.ts';
import type { ChatChunk } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { UpstreamError } from '../dialect.ts';
import { createFramer } from '../transport/frames.ts';
import { openaiResponses } from './index.ts';

const STATE = { generation_id: 'gen-test' };

const message = (text: string, id = 'msg_1') => ({
  id,
  type: 'message',
  status: 'completed',
  role: 'assistant',
  content: [
    {
      type: 'output_text',
      text,
      annotations: [{ type: 'url_citation', url: 'https://a.example/', start_index: 0, end_index: 2 }],
    },
  ],
});
const call = (callId: string, id: string) => ({
  id,
  type: 'function_call',
  status: 'completed',
  call_id: callId,
  name: 'look',
  arguments: '{"at":"🌧"}',
});
const thought = {
  id: 'rs_1',
  type: 'reasoning',
  summary: [{ type: 'summary_text', text: 'Hm.' }],
  encrypted_content: 'gAAAA',
};
const search = { id: 'ws_1', type: 'web_search_call', status: 'completed', action: { type: 'search', query: 'rain' } };
const output: JsonObject[] = [thought, search, message('Rain 🌧.'), call('call_1', 'fc_1'), call('call_2', 'fc_2')];
const usage = { input_tokens: 9, output_tokens: 7, output_tokens_details: { reasoning_tokens: 3 } };
const response = { id: 'resp_1', object: 'response', status: 'completed', output, usage };

/** The members that an item lacks when it is opened. */
const OPENING: Record<string, JsonObject> = {
  message: { content: [] },
  reasoning: { summary: [], encrypted_content: 'short' },
  function_call: { arguments: '' },
};

/** A stream of all items, opened together and closed in this order. */
function eventsOf(closing: readonly number[]): JsonObject[] {
  return [
    { type: 'response.created', response: { id: 'resp_1', status: 'in_progress', output: [] } },
    ...output.map((item, outputIndex) => ({
      type: 'response.output_item.added',
      output_index: outputIndex,
      item: { ...item, status: 'in_progress', ...OPENING[String(item['type'])] },
    })),
    { type: 'response.reasoning_summary_text.delta', output_index: 0, summary_index: 0, delta: 'Hm.' },
    { type: 'response.output_text.delta', output_index: 2, content_index: 0, delta: 'Rain ' },
    { type: 'response.function_call_arguments.delta', output_index: 4, delta: '{"at":' },
    { type: 'response.web_search_call.searching', output_index: 1, item_id: 'ws_1' },
    { type: 'response.output_text.delta', output_index: 2, content_index: 0, delta: '🌧.', obfuscation: 'x' },
    { type: 'response.function_call_arguments.delta', output_index: 4, delta: '"🌧"}' },
    ...closing.map((outputIndex) => ({
      type: 'response.output_item.done',
      output_index: outputIndex,
      item: output[outputIndex]!,
    })),
    { type: 'response.completed', response },
  ];
}

function decode(events: readonly unknown[]): ChatChunk[] {
  const decoder = openaiResponses.createStreamDecoder({ ...STATE });
  const chunks = events.flatMap((event) => decoder.push({ event: undefined, data: JSON.stringify(event) }));
  return [...chunks, ...decoder.end()];
}

describe('a stream', () => {
  const whole = accumulate(openaiResponses.decodeResponse(response, STATE), 0);
  /** The decoded blocks, in the order in which they were opened, even if several were open at once. */
  const sorted = ({ choices: [{ message }] }: typeof whole) => [
    message.content,
    message.reasoning_details,
    message.tool_calls,
    message.annotations,
    message.ext?.natives,
  ];

  test('gives the same answer in whatever order its items are closed, and if some are never closed', () => {
    fc.assert(
      fc.property(fc.shuffledSubarray([0, 1, 2, 3, 4]), (closing) => {
        expect(sorted(accumulate(decode(eventsOf(closing)), 0))).toEqual(sorted(whole));
      }),
      { numRuns: inTier(15, 60), seed: 7 },
    );
  });

  test('gives the same answer if every event but deltas is repeated', () => {
    // Repeated deltas are indistinguishable from repeated text, so each is sent once.
    const events = eventsOf([0, 1, 2, 3, 4]).flatMap((event) =>
      String(event['type']).endsWith('.delta') ? [event] : [event, event],
    );
    expect(sorted(accumulate(decode(events), 0))).toEqual(sorted(whole));
  });

  test('ignores events of unknown names, and `keepalive` before its beginning', () => {
    const beside = [
      { type: 'keepalive', sequence_number: 4 },
      { type: 'billing.updated' },
      { type: 'response.brand_new.delta', output_index: 0, delta: 'x' },
    ];
    const events = [beside[0], ...eventsOf([0, 1, 2, 3, 4]).flatMap((event) => [event, ...beside])];
    expect(sorted(accumulate(decode(events), 0))).toEqual(sorted(whole));
    expect(() => decode([{ type: 'message_start', message: {} }])).toThrow('another wire');
  });

  test('repeats nothing if the indexes of events differ from the list of items at the end', () => {
    for (const place of [(index: number) => index + 1, () => undefined]) {
      const events = eventsOf([0]).slice(0, 2);
      const item = message('Rain 🌧.');
      const itemEvents = [
        { type: 'response.output_item.added', output_index: 2, item: { ...item, content: [] } },
        { type: 'response.output_text.delta', output_index: 2, content_index: 0, delta: 'Rain 🌧.' },
        { type: 'response.output_item.done', output_index: 2, item },
      ].map((event) => ({ ...event, output_index: place(event.output_index) }));
      const last = { type: 'response.completed', response: { ...response, output: [item] } };
      expect(accumulate(decode([events[0], ...itemEvents, last]), 0).choices[0].message.content).toBe('Rain 🌧.');
    }
  });

  test('keeps all items if several have one id, and so does a body', () => {
    const many = [message('A', 'x'), call('call_1', 'x'), message('B', 'x'), call('call_2', 'x')];
    const completion = accumulate(openaiResponses.decodeResponse({ ...response, output: many }, STATE), 0);
    expect(completion.choices[0].message).toMatchObject({
      content: [{ text: 'A' }, { text: 'B' }],
      tool_calls: [{ id: 'call_1' }, { id: 'call_2' }],
    });
    const items = many.flatMap((item, outputIndex) => [
      { type: 'response.output_item.added', output_index: outputIndex, item: { ...item, ...OPENING[item.type] } },
      { type: 'response.output_item.done', output_index: outputIndex, item },
    ]);
    const last = { type: 'response.completed', response: { ...response, output: many } };
    expect(sorted(accumulate(decode([eventsOf([])[0], ...items, last]), 0))).toEqual(sorted(completion));
  });

  test('each slot is opened once before its content, and closed once', () => {
    const opened = new Set<number>();
    const closed = new Set<number>();
    for (const { ext } of decode(eventsOf([3, 0, 4]))) {
      const slot = ext?.slot;
      if (slot === undefined) continue;
      if (slot.open !== undefined) expect(opened.has(slot.n)).toBe(false);
      if (slot.open !== undefined) opened.add(slot.n);
      expect(opened.has(slot.n) && !closed.has(slot.n)).toBe(true);
      if (slot.close !== undefined) closed.add(slot.n);
    }
    expect([opened.size, closed.size]).toEqual([5, 5]);
  });

  test('that is cut before its last event is an error, and after it is complete', () => {
    const events = eventsOf([0, 1, 2, 3, 4]);
    for (let length = 0; length < events.length; length += 1) {
      expect(() => decode(events.slice(0, length)), `${length} events`).toThrow(UpstreamError);
    }
    const decoder = openaiResponses.createStreamDecoder({ ...STATE });
    for (const event of events) decoder.push({ event: undefined, data: JSON.stringify(event) });
    expect(decoder.isWhole()).toBe(true);
    expect(decoder.push({ event: undefined, data: 'not JSON' })).toEqual([]);
    expect(decoder.end()).toEqual([]);
  });

  test('a part of an unknown kind is not sent back as an empty text', () => {
    const [text] = message('Rain 🌧.').content;
    const item = { ...message(''), content: [{ type: 'output_audio', data: 'aGk=' }, text!] };
    const last = { type: 'response.completed', response: { ...response, output: [item] } };
    const decoded = accumulate(decode([last]), 0).choices[0].message;
    expect(decoded.content).toBe('Rain 🌧.');
    expect(JSON.stringify(decoded)).not.toContain('aGk=');
  });

  test('uses the finished item if it has more than the events', () => {
    const events = eventsOf([]).filter(({ type }) => !String(type).endsWith('.delta'));
    expect(sorted(accumulate(decode(events), 0))).toEqual(sorted(whole));
  });
});

/** Bytes of a faulty upstream: a stream that is cut, shuffled, repeated, and with bytes changed. */
const mangled = fc
  .record({
    order: fc.array(fc.nat({ max: 18 }), { maxLength: 40 }),
    cut: fc.double({ min: 0, max: 1, noNaN: true }),
    changes: fc.array(fc.tuple(fc.double({ min: 0, max: 1, noNaN: true }), fc.nat({ max: 255 })), { maxLength: 6 }),
  })
  .map(({ order, cut, changes }) => {
    const events = eventsOf([0, 1, 2, 3, 4]);
    const text = order.map((at) => `data: ${JSON.stringify(events[at % events.length])}\n\n`).join('');
    const bytes = Buffer.from(text).subarray(0, Math.floor(Buffer.byteLength(text) * (0.5 + cut / 2)));
    for (const [at, value] of changes) if (bytes.length > 0) bytes[Math.floor(at * (bytes.length - 1))] = value;
    return bytes;
  });

/** Objects that resemble events and are not. */
const strange = fc
  .array(
    fc.record({
      type: fc.constantFrom(
        ...eventsOf([0]).map(({ type }) => String(type)),
        'response.incomplete',
        'response.new',
        'error',
        '',
      ),
      output_index: fc.oneof(fc.nat({ max: 3 }), fc.constant(null), fc.string()),
      content_index: fc.oneof(fc.nat({ max: 2 }), fc.constant(undefined)),
      delta: fc.oneof(fc.string(), fc.constant(null), fc.integer()),
      item: fc.oneof(fc.constantFrom(...output), fc.jsonValue()),
      response: fc.oneof(
        fc.constant(response),
        fc.record({ output: fc.jsonValue(), usage: fc.jsonValue(), status: fc.jsonValue() }),
      ),
      annotation: fc.jsonValue(),
      logprobs: fc.jsonValue(),
    }),
    { maxLength: 30 },
  )
  .map((events) => Buffer.from(events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('')));

describe('arbitrary input', () => {
  test.each([
    ['random bytes', fc.uint8Array({ maxLength: 2_000 }).map((bytes) => Buffer.from(bytes))],
    ['a mangled stream', mangled],
    ['strange events', strange],
  ])('%s: an answer or an error, of bounded size', (_name, bytes) => {
    fc.assert(
      fc.property(bytes, (sent) => {
        const framer = createFramer(openaiResponses.frames);
        const decoder = openaiResponses.createStreamDecoder({ ...STATE });
        const chunks: ChatChunk[] = [];
        let failure: unknown;
        try {
          for (let at = 0; at < sent.length; at += 13) {
            for (const frame of framer.push(sent.subarray(at, at + 13))) chunks.push(...decoder.push(frame));
          }
          for (const frame of framer.end()) chunks.push(...decoder.push(frame));
          chunks.push(...decoder.end());
        } catch (error) {
          failure = error;
        }
        if (failure !== undefined) expect(failure).toBeInstanceOf(UpstreamError);
        else expect(accumulate(chunks, 0).choices[0].finish_reason).not.toBeNull();
        expect(chunks.length).toBeLessThan(sent.length + 10);
        expect(JSON.stringify(chunks).length).toBeLessThan(40 * sent.length + 2_000);
      }),
      { numRuns: inTier(100, 400), seed: 11 },
    );
  });

  test('a body of any shape is a completion or an error', () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.jsonValue(), fc.record({ output: fc.jsonValue(), status: fc.jsonValue(), error: fc.jsonValue() })),
        (body) => {
          try {
            expect(accumulate(openaiResponses.decodeResponse(body as JsonObject, STATE), 0).choices).toHaveLength(1);
          } catch (error) {
            expect(error).toBeInstanceOf(UpstreamError);
          }
        },
      ),
      { numRuns: inTier(125, 500), seed: 3 },
    );
  });
});
