import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { inTier } from '../../../test/tier.ts';
import { accumulate } from '../../schemas/accumulate.ts';
import type { ChatChunk } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { type Frame, UpstreamError } from '../dialect.ts';
import { bedrockConverse } from './index.ts';

const event = (type: string, payload: JsonObject): Frame => ({ event: type, data: JSON.stringify(payload) });
const start = event('messageStart', { role: 'assistant', p: 'a' });
const delta = (contentBlockIndex: number, fields: JsonObject) =>
  event('contentBlockDelta', { contentBlockIndex, delta: fields, p: 'ab' });
const stop = (contentBlockIndex: number) => event('contentBlockStop', { contentBlockIndex });
const call = (contentBlockIndex: number, toolUseId: string) =>
  event('contentBlockStart', { contentBlockIndex, start: { toolUse: { toolUseId, name: 'f' } } });
const end = (stopReason: string) => event('messageStop', { stopReason });
const metadata = event('metadata', { usage: { inputTokens: 1, outputTokens: 2, totalTokens: 3 } });

function decode(frames: readonly Frame[], chunks: ChatChunk[] = []): ChatChunk[] {
  const decoder = bedrockConverse.createStreamDecoder({ generation_id: 'gen-1', is_claude: true });
  for (const frame of frames) chunks.push(...decoder.push(frame));
  chunks.push(...decoder.end());
  return chunks;
}

describe('a stream', () => {
  test('is complete with its stop reason and its usage, in either order, and later events are ignored', () => {
    for (const last of [
      [end('end_turn'), metadata],
      [metadata, end('end_turn')],
    ]) {
      const decoder = bedrockConverse.createStreamDecoder({ generation_id: 'gen-1' });
      const seen = [start, delta(0, { text: 'a' }), last[0]!].map((frame) => {
        decoder.push(frame);
        return decoder.isWhole();
      });
      expect(seen).toEqual([false, false, false]);
      decoder.push(last[1]!);
      expect(decoder.isWhole()).toBe(true);
      expect(decoder.push(delta(0, { text: 'late' }))).toEqual([]);
      expect(decoder.end()).toEqual([]);
    }
  });

  test('numbers its calls independently of its blocks', () => {
    const chunks = decode([
      start,
      delta(0, { text: 'a' }),
      stop(0),
      call(4, 'x'),
      stop(4),
      call(7, 'y'),
      end('tool_use'),
    ]);
    const calls = chunks.flatMap((chunk) => chunk.delta.tool_calls ?? []);
    expect(calls.map(({ index, id }) => [index, id])).toEqual([
      [0, 'x'],
      [0, undefined],
      [1, 'y'],
      [1, undefined],
    ]);
    expect(accumulate(chunks, 0).choices[0].finish_reason).toBe('tool_calls');
  });

  test('gives calls with a missing or repeated id a new id', () => {
    const frames = [start, call(0, ''), stop(0), call(1, 'x'), stop(1), call(2, 'x'), stop(2), end('tool_use')];
    const ids = accumulate(decode(frames), 0).choices[0].message.tool_calls!.map(({ id }) => id);
    expect(new Set(ids).size).toBe(3);
    expect(ids[1]).toBe('x');
    expect(ids).toEqual(accumulate(decode(frames), 0).choices[0].message.tool_calls!.map(({ id }) => id));
  });

  test('an exception is an error of its class, also if it states the status of the model', () => {
    const failed = (type: string, payload: JsonObject) => {
      try {
        decode([start, { event: type, data: JSON.stringify(payload), failure: true }]);
      } catch (error) {
        return error as UpstreamError;
      }
      throw new Error('no error');
    };
    expect(failed('validationException', { message: 'no' })).toMatchObject({ failure: 'invalid_request', status: 400 });
    expect(failed('modelStreamErrorException', { message: 'no', originalStatusCode: 429 })).toMatchObject({
      failure: 'rate_limited',
      native_code: 'ModelStreamErrorException',
    });
    expect(failed('modelTimeoutException', {})).toMatchObject({ failure: 'timeout', status: 408 });
    expect(failed('somethingNewException', {})).toMatchObject({ failure: 'unavailable', status: 500 });
  });

  test('base64 pieces with padding of their own are joined to one value', () => {
    const piece = (text: string) => Buffer.from(text).toString('base64');
    const image = (bytes: string) => delta(1, { image: { source: { bytes } } });
    const opening = event('contentBlockStart', { contentBlockIndex: 1, start: { image: { format: 'png' } } });
    const redacted = (text: string) => delta(0, { reasoningContent: { redactedContent: piece(text) } });
    const frames = [
      start,
      redacted('abcd'),
      redacted('efg'),
      stop(0),
      opening,
      image(piece('wxyz')),
      image(piece('!')),
    ];
    const [{ message }] = accumulate(decode([...frames, stop(1), end('end_turn')]), 0).choices;
    expect(message.reasoning_details).toMatchObject([{ type: 'reasoning.encrypted', data: 'abcdefg' }]);
    expect(message.images).toMatchObject([{ image_url: { url: `data:image/png;base64,${piece('wxyz!')}` } }]);
  });

  test('unknown events and members are ignored', () => {
    const frames = [
      start,
      event('newEvent', { a: 1 }),
      delta(0, { newKind: {} }),
      delta(0, { text: 'a' }),
      end('end_turn'),
    ];
    expect(accumulate(decode(frames), 0).choices[0].message.content).toBe('a');
  });
});

test('any events, in any order and number, end in an answer or an UpstreamError', () => {
  const payload = fc.oneof(
    fc.constantFrom<JsonObject>(
      { text: 'a' },
      { text: 1 },
      { toolUse: { input: '{"a":' } },
      { toolUse: { input: 5 } },
      { toolUse: null },
      { toolResult: [{ json: {} }] },
      { toolResult: 'x' },
      { reasoningContent: { text: 'b' } },
      { reasoningContent: { signature: 'c' } },
      { reasoningContent: { redactedContent: '*' } },
      { reasoningContent: [] },
      { citation: {} },
      { citation: 'x' },
      { image: { source: { bytes: 'AA==' } } },
      {},
    ),
    fc.jsonValue().map((value) => ({ text: value }) as JsonObject),
  );
  const index = fc.constantFrom<unknown>(0, 1, 2, undefined, 'x', null, {});
  const frame = fc.oneof(
    fc.constantFrom(start, metadata, end('end_turn'), end('tool_use'), end('nonsense'), event('messageStop', {})),
    fc.tuple(index, payload).map(([i, fields]) => delta(i as number, fields)),
    index.map((i) => stop(i as number)),
    fc
      .tuple(
        index,
        fc.constantFrom(
          { toolUse: { toolUseId: 'x', name: 'f' } },
          { toolUse: { type: 'server_tool_use' } },
          { image: {} },
          { text: {} },
          { toolResult: {} },
          {},
        ),
      )
      .map(([i, fields]) => event('contentBlockStart', { contentBlockIndex: i, start: fields } as JsonObject)),
    fc.constantFrom<Frame>(
      { event: 'metadata', data: '[]' },
      { event: 'contentBlockDelta', data: '{' },
      { event: undefined, data: '' },
      { event: 'throttlingException', data: 'x', failure: true },
    ),
    fc.tuple(fc.string(), fc.json()).map(([type, data]): Frame => ({ event: type, data })),
  );
  fc.assert(
    fc.property(fc.array(frame, { maxLength: 14 }), (frames) => {
      const chunks: ChatChunk[] = [];
      try {
        decode(frames, chunks);
        expect(accumulate(chunks, 0).choices[0].finish_reason).not.toBeNull();
      } catch (error) {
        expect(error).toBeInstanceOf(UpstreamError);
      }
      // The part before the cut is a valid answer, with each of its blocks once and in order.
      const { message } = accumulate(chunks, 0).choices[0];
      const order = message.ext?.order ?? [];
      expect(new Set(order.map(({ kind, at }) => `${kind} ${at}`)).size).toBe(order.length);
    }),
    { numRuns: inTier(300, 3_000), seed: 11 },
  );
});

test('any body results in an answer or an UpstreamError', () => {
  const block = fc.oneof(
    fc.constantFrom<unknown>(
      { text: 'a' },
      { toolUse: { toolUseId: 'x', name: 'f', input: {} } },
      { image: {} },
      null,
      5,
      [],
      {},
    ),
    fc.dictionary(
      fc.constantFrom('text', 'toolUse', 'reasoningContent', 'citationsContent', 'image', 'new'),
      fc.jsonValue(),
    ),
  );
  const body = fc.oneof(
    fc.jsonValue(),
    fc.record({
      output: fc.record({
        message: fc.record({ content: fc.oneof(fc.array(block, { maxLength: 4 }), fc.jsonValue()) }),
      }),
      stopReason: fc.jsonValue(),
      usage: fc.jsonValue(),
    }),
  );
  fc.assert(
    fc.property(body, (value) => {
      try {
        const { choices } = accumulate(
          bedrockConverse.decodeResponse(value as JsonObject, { generation_id: 'gen-1' }),
          0,
        );
        expect(choices[0].finish_reason).not.toBeNull();
      } catch (error) {
        expect(error).toBeInstanceOf(UpstreamError);
      }
    }),
    { numRuns: inTier(200, 2_000), seed: 5 },
  );
});
