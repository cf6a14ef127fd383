import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { inTier } from '../../../test/tier.ts';
import { accumulate } from '../../schemas/accumulate.ts';
import type { ChatChunk, ChatCompletion } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { UpstreamError } from '../dialect.ts';
import { createFramer } from '../transport/frames.ts';
import { cohereChat } from './index.ts';

const STATE = { generation_id: 'gen-1' };
const SEED = 20_261_121;

/** Feeds the bytes in these parts; what the decoder throws is thrown. */
function decode(parts: Uint8Array[], received: ChatChunk[] = []): ChatCompletion {
  const framer = createFramer(cohereChat.frames);
  const decoder = cohereChat.createStreamDecoder({ ...STATE });
  for (const part of parts) for (const frame of framer.push(part)) received.push(...decoder.push(frame));
  for (const frame of framer.end()) received.push(...decoder.push(frame));
  received.push(...decoder.end());
  return accumulate(received, 0);
}

const bytesOf = (events: JsonObject[]) =>
  new TextEncoder().encode(
    events.map((event) => `event: ${event['type']}\ndata: ${JSON.stringify(event)}\n\n`).join(''),
  );

// ---- Whole answers, and the streams with the same content.

const words = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 12 });
const source = fc.oneof(
  fc.record({
    type: fc.constant('document'),
    id: fc.constant('doc:0'),
    document: fc.record({ url: fc.webUrl(), title: words }),
  }),
  fc.record({ type: fc.constant('tool'), id: fc.constant('a:0'), tool_output: fc.record({ text: words }) }),
);
const answers = fc.record({
  tool_plan: fc.option(words, { nil: undefined }),
  thinking: fc.option(words, { nil: undefined }),
  text: fc.option(words, { nil: undefined }),
  calls: fc.array(fc.record({ name: fc.constantFrom('a', 'b'), arguments: fc.constantFrom('', '{}', '{"c":"é🌍"}') }), {
    maxLength: 3,
  }),
  citations: fc.array(fc.record({ start: fc.nat(9), end: fc.nat(9), sources: fc.array(source, { maxLength: 2 }) }), {
    maxLength: 2,
  }),
  finish_reason: fc.constantFrom('COMPLETE', 'TOOL_CALL', 'MAX_TOKENS', 'STOP_SEQUENCE', 'NEW_REASON'),
  cut: fc.integer({ min: 1, max: 5 }),
});
type TestAnswer = typeof answers extends fc.Arbitrary<infer T> ? T : never;

const usage = { billed_units: { input_tokens: 3, output_tokens: 4 }, tokens: { input_tokens: 500, output_tokens: 5 } };
const call = (i: number, name: string, args: string) => ({
  id: `${name}_${i}`,
  type: 'function',
  function: { name, arguments: args },
});

function wholeOf({
  tool_plan: toolPlan,
  thinking,
  text,
  calls,
  citations,
  finish_reason: finishReason,
}: TestAnswer): JsonObject {
  const content = [
    ...(thinking === undefined ? [] : [{ type: 'thinking', thinking }]),
    ...(text === undefined ? [] : [{ type: 'text', text }]),
  ];
  const cited =
    text === undefined
      ? []
      : citations.map((one) => ({ ...one, type: 'TEXT_CONTENT', content_index: content.length - 1 }));
  const message = {
    role: 'assistant',
    ...(toolPlan === undefined ? {} : { tool_plan: toolPlan }),
    content,
    tool_calls: calls.map((one, i) => call(i, one.name, one.arguments)),
    citations: cited,
  };
  return JSON.parse(JSON.stringify({ id: 'answer', finish_reason: finishReason, message, usage }));
}

function streamOf(answer: TestAnswer): JsonObject[] {
  const { message, finish_reason: finishReason } = wholeOf(answer) as { message: JsonObject; finish_reason: string };
  const {
    content,
    tool_calls: toolCalls,
    citations,
    tool_plan: toolPlan,
  } = message as {
    content: JsonObject[];
    tool_calls: JsonObject[];
    citations: JsonObject[];
    tool_plan?: string;
  };
  const pieces = (text: string) => text.match(new RegExp(`[\\s\\S]{1,${answer.cut}}`, 'gu')) ?? [];
  const event = (type: string, delta: JsonObject, index?: number) => ({
    type,
    ...(index === undefined ? {} : { index }),
    delta: { message: delta },
  });
  return [
    { ...event('message-start', { role: 'assistant', content: [], tool_calls: [] }), id: 'answer' },
    ...pieces(toolPlan ?? '').map((piece) => event('tool-plan-delta', { tool_plan: piece })),
    ...content.flatMap((block, index) => {
      const kind = String(block['type']);
      return [
        event('content-start', { content: { type: kind, [kind]: '' } }, index),
        ...pieces(String(block[kind])).map((piece) => event('content-delta', { content: { [kind]: piece } }, index)),
        ...(kind === 'text'
          ? citations.flatMap((one, i) => [
              event('citation-start', { citations: one }, i),
              { type: 'citation-end', index: i },
            ])
          : []),
        { type: 'content-end', index },
      ];
    }),
    ...toolCalls.flatMap((toolCall, index) => {
      const { name, arguments: text } = toolCall['function'] as { name: string; arguments: string };
      return [
        event('tool-call-start', { tool_calls: { ...toolCall, function: { name, arguments: '' } } }, index),
        ...pieces(text).map((piece) =>
          event('tool-call-delta', { tool_calls: { function: { arguments: piece } } }, index),
        ),
        { type: 'tool-call-end', index },
      ];
    }),
    { type: 'message-end', delta: { finish_reason: finishReason, usage } },
  ];
}

describe('the same answer', () => {
  test('whole and streamed is the same completion, wherever the stream is cut', () => {
    const property = fc.property(answers, fc.array(fc.nat(), { maxLength: 4 }), (answer, cuts) => {
      const bytes = bytesOf(streamOf(answer));
      const places = [...new Set(cuts.map((cut) => cut % bytes.length))].sort((a, b) => a - b);
      const parts = [0, ...places].map((from, i) => bytes.subarray(from, places[i] ?? bytes.length));
      expect(decode(parts)).toEqual(accumulate(cohereChat.decodeResponse(wholeOf(answer), STATE), 0));
    });
    fc.assert(property, { seed: SEED, numRuns: inTier(75, 300) });
  });
});

describe('a broken stream', () => {
  /** A stream is broken if it has no end or contains anything that is not of this wire: an error, and nothing else thrown. */
  function outcome(parts: Uint8Array[]): 'answer' | UpstreamError {
    const received: ChatChunk[] = [];
    try {
      decode(parts, received);
      return 'answer';
    } catch (error) {
      if (!(error instanceof UpstreamError)) throw error;
      return error;
    }
  }

  test('cut off anywhere before its end is an error', () => {
    fc.assert(
      fc.property(answers, fc.nat(), (answer, at) => {
        const events = streamOf(answer);
        const whole = bytesOf(events);
        const end = whole.length - bytesOf(events.slice(-1)).length;
        expect(outcome([whole.subarray(0, at % end)])).toBeInstanceOf(UpstreamError);
      }),
      { seed: SEED, numRuns: inTier(75, 300) },
    );
  });

  test('of random bytes is an error', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 2_000 }), (bytes) => {
        expect(outcome([bytes])).toBeInstanceOf(UpstreamError);
      }),
      { seed: SEED, numRuns: inTier(125, 500) },
    );
  });

  test('with events reordered or doubled, or with members of any kind, throws nothing but an UpstreamError', () => {
    const reordered = fc.property(answers, fc.infiniteStream(fc.nat()), (answer, numbers) => {
      const events = streamOf(answer);
      const shuffled = events.map((_, i) => events[numbers.next().value! % (i % 2 === 0 ? events.length : i + 1)]!);
      outcome([bytesOf(shuffled)]);
    });
    fc.assert(reordered, { seed: SEED, numRuns: inTier(75, 300) });
    const types = [
      'message-start',
      'content-start',
      'content-delta',
      'tool-plan-delta',
      'tool-call-start',
      'tool-call-delta',
      'tool-call-end',
      'citation-start',
      'message-end',
      'debug',
    ];
    const member = fc.jsonValue({ maxDepth: 2 });
    const message = fc.record(
      { content: member, tool_calls: member, citations: member, tool_plan: member },
      { requiredKeys: [] },
    );
    const delta = fc.oneof(
      member,
      fc.record(
        { message: fc.oneof(member, message), finish_reason: member, usage: member, error: member },
        { requiredKeys: [] },
      ),
    );
    const event = fc.record(
      { type: fc.constantFrom(...types), index: member, delta, logprobs: member },
      { requiredKeys: ['type'] },
    );
    const strange = fc.property(fc.array(event, { maxLength: 12 }), (events) => {
      outcome([bytesOf([{ type: 'message-start', id: 'a' }, ...events] as JsonObject[])]);
    });
    fc.assert(strange, { seed: SEED, numRuns: inTier(100, 1_000) });
  });

  test('of a body that is not an answer is an error', () => {
    const property = fc.property(fc.jsonValue({ maxDepth: 3 }), (body) => {
      try {
        accumulate(cohereChat.decodeResponse(body as JsonObject, STATE), 0);
      } catch (error) {
        if (!(error instanceof UpstreamError)) throw error;
        return;
      }
      expect.fail('an answer was made of it');
    });
    fc.assert(property, { seed: SEED, numRuns: inTier(125, 500) });
  });
});
