import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { accumulate } from '../../schemas/accumulate.ts';
import type { ChatChunk, Slot } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
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
const finish = (stop_reason: string): JsonObject => ({
  type: 'message_delta',
  delta: { stop_reason },
  usage: { output_tokens: 2 },
});
const block = (index: number, content_block: JsonObject): JsonObject => ({
  type: 'content_block_start',
  index,
  content_block,
});
const delta = (index: number, told: JsonObject): JsonObject => ({ type: 'content_block_delta', index, delta: told });
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
    .map(([index, told]) => delta(index, told)),
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
      { numRuns: 3_000 },
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
        expect(chunks.filter(({ finish_reason }) => finish_reason != null)).toHaveLength(1);
        expect(chunks.at(-1)?.ext?.response?.usage).toBeDefined();
        const { message } = accumulate(chunks, 0).choices[0];
        for (const kind of ['reasoning', 'text', 'call', 'native'] satisfies Slot['kind'][]) {
          const visited = (message.ext?.order ?? []).filter((slot) => slot.kind === kind).map((slot) => slot.at);
          expect(visited).toEqual(visited.map((_, i) => i));
        }
      }),
      { numRuns: 2_000 },
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

  test('any body gives an answer or an UpstreamError', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.array(fc.jsonValue()), (body, content) => {
        for (const told of [body, { content, stop_reason: body, usage: body }]) {
          try {
            decodeResponse(JSON.parse(JSON.stringify(told)), STATE, 0);
          } catch (error) {
            expect(error).toBeInstanceOf(UpstreamError);
          }
        }
      }),
    );
  });
});

describe('the stream', () => {
  test('a repeated beginning of the same answer is passed over', () => {
    const chunks = run([start, start, block(0, { type: 'text', text: 'Hi' }), start, end(0), finish('end_turn'), stop]);
    expect(accumulate(chunks, 0).choices[0].message.content).toBe('Hi');
  });

  test('another answer inside an unfinished one is an error, not one longer answer', () => {
    const other = { type: 'message_start', message: { id: 'msg_2' } };
    expect(() => run([start, block(0, { type: 'text', text: 'Hi' }), other])).toThrow(
      expect.objectContaining({ failure: 'unavailable' }),
    );
  });

  test('calls that were made outweigh the reason told', () => {
    const call = block(0, { type: 'tool_use', id: 'toolu_1', name: 'f', input: {} });
    const reasonOf = (events: JsonObject[]) => accumulate(run(events), 0).choices[0].finish_reason;
    expect(reasonOf([start, call, end(0), finish('end_turn'), stop])).toBe('tool_calls');
    expect(reasonOf([start, finish('tool_use'), stop])).toBe('stop');
    expect(reasonOf([start, call, end(0), finish('max_tokens'), stop])).toBe('length');
    expect(reasonOf([start, call, end(0), stop])).toBe('tool_calls');
    expect(reasonOf([start, finish('novel'), stop])).toBe('error');
    expect(reasonOf([start, block(0, { type: 'text', text: 'Hi' }), end(0), finish('novel'), stop])).toBe('stop');
  });

  test('a reason without a stop event is a whole answer, neither is a broken one', () => {
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

  test('a call id of the history is not given again', () => {
    const call = block(0, { type: 'tool_use', id: 'call_0', name: 'f', input: {} });
    const chunks = run([start, call, end(0), finish('tool_use'), stop], { ...STATE, call_ids: ['call_0'] });
    const [made] = accumulate(chunks, 0).choices[0].message.tool_calls ?? [];
    expect(made?.id).toMatch(/^call_[0-9A-Za-z]{24}$/);
    expect(made?.ext?.rest).toEqual({ id: 'call_0' });
    const again = run([start, call, end(0), finish('tool_use'), stop], { ...STATE, call_ids: ['call_0'] });
    expect(again).toEqual(chunks);
  });

  test('a renamed tool gets its name back', () => {
    const call = block(0, { type: 'tool_use', id: 'toolu_1', name: 'a_b_c0ffee', input: {} });
    const chunks = run([start, call, finish('tool_use'), stop], { ...STATE, tool_names: { a_b_c0ffee: 'a b' } });
    expect(accumulate(chunks, 0).choices[0].message.tool_calls?.[0]?.function.name).toBe('a b');
  });
});
