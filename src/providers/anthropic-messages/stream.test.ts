import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { inTier } from '../../../test/tier.ts';
import { accumulate } from '../../schemas/accumulate.ts';
import type { ChatChunk, Slot } from '../../schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import { type Frame, UpstreamError } from '../dialect.ts';
import { decodeResponse } from './response.ts';
import { createStreamDecoder } from './stream.ts';

const STATE = { generation_id: 'gen-1' };

function run(events: JsonObject[], state: { generation_id: string } & Record<string, unknown> = STATE): ChatChunk[] {
  const decoder = createStreamDecoder(state);
  const frames = events.map((event): Frame => ({ event: String(event['type']), data: JSON.stringify(event) }));
  return [...frames.flatMap((frame) => decoder.push(frame)), ...decoder.end()];
}

const start: JsonObject = {
  type: 'message_start',
  message: { id: 'msg_1', model: 'claude', usage: { input_tokens: 3 } },
};
const stop: JsonObject = { type: 'message_stop' };
const finish = (stopReason: string): JsonObject => ({
  type: 'message_delta',
  delta: { stop_reason: stopReason },
  usage: { output_tokens: 2 },
});
const block = (index: number, contentBlock: JsonObject): JsonObject => ({
  type: 'content_block_start',
  index,
  content_block: contentBlock,
});
const delta = (index: number, fields: JsonObject): JsonObject => ({
  type: 'content_block_delta',
  index,
  delta: fields,
});
const end = (index: number): JsonObject => ({ type: 'content_block_stop', index });

/** Any event of the wire, with indexes, kinds and values that need not fit together. */
const anyEvent: fc.Arbitrary<JsonObject> = fc.oneof(
  fc.constant(start),
  fc.constant({ type: 'message_start' }),
  fc.constant({ type: 'message_start', message: { id: 'msg_2' } }),
  fc.constant(stop),
  fc.constant({ type: 'ping' }),
  fc.constantFrom('end_turn', 'tool_use', 'refusal', 'novel').map(finish),
  fc
    .tuple(
      fc.nat(3),
      fc.constantFrom<JsonObject>(
        { type: 'text', text: '' },
        { type: 'text', text: 'a', citations: [null, 'x', { url: 'https://a.example' }] },
        { type: 'thinking', thinking: '' },
        { type: 'redacted_thinking', data: 'd' },
        { type: 'tool_use', id: 'toolu_1', name: 'f', input: {} },
        { type: 'tool_use' },
        { type: 'server_tool_use', id: 's', name: 'w', input: {} },
        { type: 'compaction', content: null },
        { type: 'novel' },
      ),
    )
    .map(([index, content]) => block(index, content)),
  fc
    .tuple(
      fc.nat(3),
      fc.constantFrom<JsonObject>(
        { type: 'text_delta', text: 'é' },
        { type: 'text_delta' },
        { type: 'thinking_delta', thinking: 't' },
        { type: 'signature_delta', signature: 's' },
        { type: 'input_json_delta', partial_json: '{"a":' },
        { type: 'citations_delta', citation: { url: 'https://b.example' } },
        { type: 'novel_delta' },
      ),
    )
    .map(([index, fields]) => delta(index, fields)),
  fc.nat(3).map(end),
  fc.object({ maxDepth: 2 }).map((value) => JSON.parse(JSON.stringify(value))),
);

describe('any events', () => {
  test('give chunks or an UpstreamError, never anything else', () => {
    fc.assert(
      fc.property(fc.array(anyEvent, { maxLength: 30 }), fc.boolean(), (events, isBegun) => {
        try {
          accumulate(run(isBegun ? [start, ...events] : events), 0);
        } catch (error) {
          expect(error).toBeInstanceOf(UpstreamError);
        }
      }),
      { numRuns: inTier(300, 3_000) },
    );
  });

  test('visit every part of the answer once, in order, and end in one usage', () => {
    fc.assert(
      fc.property(fc.array(anyEvent, { maxLength: 30 }), (events) => {
        let chunks: ChatChunk[];
        try {
          chunks = run([start, ...events, finish('end_turn'), stop]);
        } catch {
          return;
        }
        const opened = chunks.flatMap(({ ext }) => (ext?.slot?.open === undefined ? [] : [ext.slot.n]));
        expect(opened).toEqual(opened.map((_, i) => i));
        const closed = chunks.flatMap(({ ext }) => (ext?.slot?.close === undefined ? [] : [ext.slot.n]));
        expect([...closed].sort((a, b) => a - b)).toEqual(opened);
        expect(chunks.filter(({ finish_reason: finishReason }) => finishReason != null)).toHaveLength(1);
        expect(chunks.at(-1)?.ext?.response?.usage).toBeDefined();
        const { message } = accumulate(chunks, 0).choices[0];
        for (const kind of ['reasoning', 'text', 'call', 'native'] satisfies Slot['kind'][]) {
          const visited = (message.ext?.order ?? []).filter((slot) => slot.kind === kind).map((slot) => slot.at);
          expect(visited).toEqual(visited.map((_, i) => i));
        }
      }),
      { numRuns: inTier(200, 2_000) },
    );
  });

  test('random bytes as an event are refused as no answer of this wire', () => {
    fc.assert(
      fc.property(fc.string(), fc.option(fc.string(), { nil: undefined }), (data, event) => {
        const decoder = createStreamDecoder(STATE);
        try {
          decoder.push({ event, data });
          decoder.end();
        } catch (error) {
          expect(error).toBeInstanceOf(UpstreamError);
          return;
        }
        expect.fail('an answer was made of nothing');
      }),
    );
  });

  test('any body results in an answer or an UpstreamError', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.array(fc.jsonValue()), (body, content) => {
        for (const malformed of [body, { content, stop_reason: body, usage: body }]) {
          try {
            accumulate(decodeResponse(JSON.parse(JSON.stringify(malformed)), STATE), 0);
          } catch (error) {
            expect(error).toBeInstanceOf(UpstreamError);
          }
        }
      }),
    );
  });
});

describe('the stream', () => {
  test('a repeated message_start of the same answer is ignored', () => {
    const chunks = run([start, start, block(0, { type: 'text', text: 'Hi' }), start, end(0), finish('end_turn'), stop]);
    expect(accumulate(chunks, 0).choices[0].message.content).toBe('Hi');
  });

  test('another answer inside an unfinished one is an error, not one longer answer', () => {
    const other = { type: 'message_start', message: { id: 'msg_2' } };
    expect(() => run([start, block(0, { type: 'text', text: 'Hi' }), other])).toThrow(
      expect.objectContaining({ failure: 'unavailable' }),
    );
  });

  test('tool calls take precedence over the stated finish reason', () => {
    const call = block(0, { type: 'tool_use', id: 'toolu_1', name: 'f', input: {} });
    const reasonOf = (events: JsonObject[]) => accumulate(run(events), 0).choices[0].finish_reason;
    expect(reasonOf([start, call, end(0), finish('end_turn'), stop])).toBe('tool_calls');
    expect(reasonOf([start, finish('tool_use'), stop])).toBe('stop');
    expect(reasonOf([start, call, end(0), finish('max_tokens'), stop])).toBe('length');
    expect(reasonOf([start, call, end(0), stop])).toBe('tool_calls');
    expect(reasonOf([start, finish('novel'), stop])).toBe('error');
    expect(reasonOf([start, block(0, { type: 'text', text: 'Hi' }), end(0), finish('novel'), stop])).toBe('stop');
  });

  test('a stop reason without a stop event completes an answer; without both the stream is broken', () => {
    expect(accumulate(run([start, finish('end_turn')]), 0).choices[0].finish_reason).toBe('stop');
    expect(() => run([start, block(0, { type: 'text', text: 'Hi' }), end(0)])).toThrow(
      expect.objectContaining({ failure: 'unavailable' }),
    );
  });

  test('the index of a call counts calls, not blocks', () => {
    const chunks = run([
      start,
      block(0, { type: 'text', text: 'a' }),
      end(0),
      block(1, { type: 'server_tool_use', id: 's', name: 'w', input: {} }),
      end(1),
      block(2, { type: 'tool_use', id: 'toolu_1', name: 'f', input: {} }),
      end(2),
      finish('tool_use'),
      stop,
    ]);
    expect(chunks.flatMap(({ delta }) => delta.tool_calls ?? []).map(({ index }) => index)).toEqual([0, 0]);
  });

  test('a call id that occurs in the history is replaced', () => {
    const call = block(0, { type: 'tool_use', id: 'call_0', name: 'f', input: {} });
    const chunks = run([start, call, end(0), finish('tool_use'), stop], { ...STATE, call_ids: ['call_0'] });
    const [made] = accumulate(chunks, 0).choices[0].message.tool_calls ?? [];
    expect(made?.id).toMatch(/^call_[0-9A-Za-z]{24}$/);
    expect(made?.ext?.rest).toEqual({ id: 'call_0' });
    const again = run([start, call, end(0), finish('tool_use'), stop], { ...STATE, call_ids: ['call_0'] });
    expect(again).toEqual(chunks);
  });

  test('a renamed tool has its original name in the answer', () => {
    const call = block(0, { type: 'tool_use', id: 'toolu_1', name: 'a_b_c0ffee', input: {} });
    const chunks = run([start, call, finish('tool_use'), stop], { ...STATE, tool_names: { a_b_c0ffee: 'a b' } });
    expect(accumulate(chunks, 0).choices[0].message.tool_calls?.[0]?.function.name).toBe('a b');
  });
});

describe('fields that servers of this wire omit or send elsewhere', () => {
  const text = block(0, { type: 'text', text: '' });
  const hi = delta(0, { type: 'text_delta', text: 'Hi' });
  const messageOf = (events: JsonObject[]) => accumulate(run(events), 0).choices[0].message;

  test('a call in the first event is decoded', () => {
    const call = { type: 'tool_use', id: 'toolu_1', name: 'roll', input: { sides: 6 }, caller: { type: 'code' } };
    const content = [call];
    const usage = { input_tokens: 3, output_tokens: 9 };
    const begun = { type: 'message_start', message: { id: 'msg_1', content, stop_reason: 'tool_use', usage } };
    const answer = accumulate(run([begun, stop]), 0);
    expect(answer.choices[0].message.tool_calls).toMatchObject([
      { id: 'toolu_1', function: { name: 'roll', arguments: '{"sides":6}' }, ext: { rest: { caller: call.caller } } },
    ]);
    expect(answer.choices[0]).toMatchObject({ finish_reason: 'tool_calls', native_finish_reason: 'tool_use' });
    expect(answer.ext.usage).toEqual({ in_uncached: 3, out_text: 9 });
    const later = accumulate(run([begun, text, hi, end(0), finish('end_turn'), stop]), 0);
    expect(later.choices[0]).toMatchObject({ message: { content: 'Hi' }, native_finish_reason: 'end_turn' });
    expect(later.ext.usage?.out_text).toBe(2);
  });

  test('a whole message in place of a stream is decoded as a whole message', () => {
    const message = {
      type: 'message',
      id: 'msg_1',
      content: [
        { type: 'text', text: 'Hi' },
        { type: 'tool_use', id: 'toolu_1', name: 'f', input: {} },
      ],
      stop_reason: 'tool_use',
      usage: { input_tokens: 3, output_tokens: 9 },
    };
    expect(accumulate(run([message]), 0)).toEqual(accumulate(decodeResponse(message, STATE), 0));
  });

  test('the output count of the first event is not used as the final count', () => {
    const begun = { type: 'message_start', message: { id: 'msg_1', usage: { input_tokens: 3, output_tokens: 1 } } };
    const reason = { type: 'message_delta', delta: { stop_reason: 'end_turn' } };
    const usageOf = (events: JsonObject[]) => accumulate(run(events), 0).ext.usage;
    expect(usageOf([begun, text, hi, end(0), reason, stop])).toEqual({ in_uncached: 3 });
    expect(usageOf([begun, text, hi, end(0), { ...reason, usage: null }, stop])).toEqual({ in_uncached: 3 });
    const nulls = { input_tokens: null, cache_read_input_tokens: null, output_tokens: 4 };
    expect(usageOf([begun, text, hi, end(0), { ...reason, usage: nulls }, stop])).toEqual({
      in_uncached: 3,
      out_text: 4,
    });
  });

  test('usage in the event of the stop reason is kept if an error follows', () => {
    const decoder = createStreamDecoder(STATE);
    const push = (event: JsonObject) => decoder.push({ event: String(event['type']), data: JSON.stringify(event) });
    const chunks = [start, text, hi, end(0), finish('end_turn')].flatMap(push);
    expect(chunks.at(-1)?.ext?.response?.usage).toEqual({ in_uncached: 3, out_text: 2 });
    expect(() => push({ type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } })).toThrow(
      UpstreamError,
    );
  });

  test('text and thinking without the start of their block are decoded', () => {
    expect(messageOf([start, hi, finish('end_turn'), stop]).content).toBe('Hi');
    const thoughts = [
      delta(0, { type: 'thinking_delta', thinking: 'Hm' }),
      delta(0, { type: 'signature_delta', signature: 's' }),
    ];
    expect(messageOf([start, ...thoughts, end(0), delta(1, { type: 'text_delta', text: 'Hi' }), stop])).toMatchObject({
      content: 'Hi',
      reasoning_details: [{ text: 'Hm', signature: 's', index: 0 }],
    });
    // It is unknown to which call these arguments belong.
    const orphan = delta(0, { type: 'input_json_delta', partial_json: '{}' });
    expect(() => run([start, orphan])).toThrow(expect.objectContaining({ failure: 'invalid_response' }));
    expect(messageOf([start, delta(7, { type: 'novel_delta' }), text, hi, end(0), stop]).content).toBe('Hi');
  });

  test('empty thinking gets no index', () => {
    const events = [
      start,
      block(0, { type: 'thinking', thinking: '', signature: '' }),
      end(0),
      block(1, { type: 'thinking', thinking: 'Hm', signature: 's' }),
      end(1),
      stop,
    ];
    expect(messageOf(events).reasoning_details?.map(({ index }) => index)).toEqual([0]);
  });

  test('an input that is not an object is kept unchanged', () => {
    const argumentsOf = (input: JsonValue) =>
      messageOf([start, block(0, { type: 'tool_use', id: 'toolu_1', name: 'f', input }), end(0), stop]).tool_calls?.[0]
        ?.function.arguments;
    expect([{}, null, '', ' ', '{"a":1}', [1], { a: 1 }].map(argumentsOf)).toEqual([
      '{}',
      '{}',
      '{}',
      '{}',
      '{"a":1}',
      '[1]',
      '{"a":1}',
    ]);
  });

  test('events after the answer are ignored, even an error', () => {
    const decoder = createStreamDecoder(STATE);
    const events = [start, text, hi, end(0), finish('end_turn'), stop];
    const chunks = events.flatMap((event) => decoder.push({ event: undefined, data: JSON.stringify(event) }));
    for (const data of ['{"type":"error","error":{"type":"overloaded_error","message":"m"}}', 'junk', '[DONE]']) {
      expect(decoder.push({ event: 'error', data })).toEqual([]);
    }
    expect(decoder.end()).toEqual([]);
    expect(accumulate(chunks, 0).choices[0].message.content).toBe('Hi');
  });

  test('another answer after the stop reason does not change the first', () => {
    const other = { type: 'message_start', message: { id: 'msg_2' } };
    const chunks = run([start, text, hi, end(0), finish('end_turn'), other, text, hi, finish('max_tokens'), stop]);
    expect(accumulate(chunks, 0).choices[0]).toMatchObject({ message: { content: 'Hi' }, finish_reason: 'stop' });
  });

  test('events of unknown kinds may precede the answer, and the kind may be in the event field only', () => {
    const decoder = createStreamDecoder(STATE);
    const events = [{ type: 'queued' }, start, text, hi, end(0), finish('end_turn'), stop];
    const chunks = events.flatMap(({ type, ...event }) =>
      decoder.push({ event: String(type), data: JSON.stringify(event) }),
    );
    expect(accumulate(chunks, 0).choices[0].message.content).toBe('Hi');
  });

  test('an error member that is null is no error', () => {
    const message = { type: 'message', content: [], error: null, stop_reason: 'end_turn' };
    expect(accumulate(decodeResponse(message, STATE), 0).choices[0].finish_reason).toBe('stop');
    expect(messageOf([{ ...start, error: null }, text, hi, end(0), stop]).content).toBe('Hi');
  });

  test('content may be one text, or null if the answer was refused before it', () => {
    const contentOf = (content: JsonValue) =>
      accumulate(decodeResponse({ content, stop_reason: 'refusal' }, STATE), 0).choices[0].message.content;
    expect([contentOf('Hi'), contentOf(null)]).toEqual(['Hi', null]);
    expect(() => accumulate(decodeResponse({ content: null }, STATE), 0)).toThrow(UpstreamError);
  });

  test.each([
    [{ error: { message: 'm', code: 429 } }, 'rate_limited', 429],
    [{ error: { message: 'm', code: '503', type: 'server_error' } }, 'unavailable', 503],
    [{ error: { message: 'm', status_code: 401 } }, 'credential', 401],
    [{ type: 'error', error: { type: 'rate_limit_error', message: 'm', code: 1302 } }, 'rate_limited', 429],
    [{ type: 'error', error: { type: 'novel_error', message: 'm' } }, 'unavailable', 500],
    [{ type: 'error', error: { type: 'timeout_error', message: 'm' } }, 'timeout', 504],
  ] as const)('the error %o inside an answer is %s, %i', (event, failure, status) => {
    expect(() => run([start, event as JsonObject])).toThrow(expect.objectContaining({ failure, status }));
  });
});
