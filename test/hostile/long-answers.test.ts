/**
 * A long answer is counted, divided and refused in bounded parts, one a turn of the event loop. Work, pieces and turns
 * are counted, never timed.
 */
import { describe, expect, test } from 'vitest';
import { createItems } from '../../src/api/responses/items.ts';
import { joinParts } from '../../src/api/shared/json-parts.ts';
import { readSlices, UnreadableJson } from '../../src/http/sliced-json.ts';
import { atOnce } from '../../src/http/turn-work.ts';
import { AnswerBounds, cutParts } from '../../src/inference/attempt/answer-bounds.ts';
import { charsOf, dividedChunks, sliceEnd } from '../../src/inference/attempt/chunk-slices.ts';
import { createEnvelopes, ENVELOPE_CHARS_MAX } from '../../src/inference/reasoning/envelope.ts';
import { limits } from '../../src/limits.ts';
import { dialects } from '../../src/providers/dialects.ts';
import { accumulate } from '../../src/schemas/accumulate.ts';
import type { ChatChunk, Wire } from '../../src/schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../src/schemas/json.ts';
import { countCodePoints } from '../../src/schemas/text.ts';
import { withLimits } from '../changed-limits.ts';
import { floods } from './floods.ts';

const times = <T>(count: number, make: (at: number) => T) => Array.from({ length: count }, (_, at) => make(at));

describe('the code points of a text', () => {
  test.each([
    ['of one byte each', 'a'.repeat(100_000), 100_000],
    ['of two bytes each', '彼'.repeat(100_000), 100_000],
    ['of surrogate pairs only', 'a🙂'.repeat(50_000), 100_000],
    ['with one surrogate pair at its end', `${'彼'.repeat(100_000)}🙂`, 100_001],
    ['of a few characters', '🙂a', 2],
  ])('are counted for one %s', (_name, text, points) => {
    expect(countCodePoints(text)).toBe(points);
    expect([...text].length).toBe(points);
  });

  test('count a surrogate pair once if it is split over two texts', () => {
    const text = `${'a'.repeat(80)}🙂${'b'.repeat(80)}`;
    expect(countCodePoints(text.slice(0, 81)) + countCodePoints(text.slice(81))).toBe(161);
  });
});

describe('reasoning and refusals of a long answer', () => {
  const text = 'She said "yes" 🙂. '.repeat(60_000);
  const detail = { type: 'reasoning.text' as const, text, signature: 's', format: 'unknown', id: 'r', index: 1 };
  const slot = { n: 0, open: { kind: 'reasoning' as const }, close: {} };
  const long: ChatChunk[] = [
    { delta: { reasoning: 'First.', reasoning_details: [{ type: 'reasoning.text', text: 'First.', index: 0 }] } },
    { delta: { reasoning: `\n\n${text}`, reasoning_details: [detail] }, ext: { slot } },
    { delta: { refusal: text } },
  ];

  test('are divided as a stream would have sent them, and add up to the same answer', () => {
    const chunks = dividedChunks(long);
    for (const { delta } of chunks) expect(charsOf(delta)).toBeLessThanOrEqual(limits.stream_chunk_chars_max + 1);
    expect(accumulate(chunks, 0)).toEqual(accumulate(long, 0));
    const signed = chunks.filter(({ delta }) => delta.reasoning_details?.some((one) => 'signature' in one));
    expect(signed).toHaveLength(1);
    expect(signed[0]!.ext?.slot?.close).toBeDefined();
    expect(chunks.map(({ delta }) => delta.reasoning ?? '').join('')).toBe(`First.\n\n${text}`);
    const plain = [{ delta: { reasoning: text } }];
    expect(accumulate(dividedChunks(plain), 0)).toEqual(accumulate(plain, 0));
    const summary = [
      { delta: { reasoning_details: [{ type: 'reasoning.summary' as const, summary: text }], reasoning: text } },
    ];
    expect(dividedChunks(summary).length).toBeGreaterThan(5);
    expect(accumulate(dividedChunks(summary), 0)).toEqual(accumulate(summary, 0));
  });

  test('are counted in bounded parts, one a turn', () => {
    const chunks = times(40, () => ({ delta: { reasoning: 'a'.repeat(100_000) } }));
    for (let at = 0; at < chunks.length; at = sliceEnd(chunks, at))
      expect(sliceEnd(chunks, at) - at).toBeLessThanOrEqual(6);
  });

  test('are not packed into an envelope if they are longer than it may be', () => {
    const envelope = createEnvelopes('a secret of some length')('org');
    let read = 0;
    const toJSON = () => {
      read += 1;
      return detail;
    };
    const counted = { ...detail, toJSON };
    expect(envelope.wrap([{ ...counted, text: 'a'.repeat(ENVELOPE_CHARS_MAX + 1) }])).toBeUndefined();
    expect(read).toBe(0);
    const short = { ...detail, text: 'a' };
    expect(envelope.unwrap(envelope.wrap([short])!)).toEqual([short]);
  });
});

describe('an answer above the gateway’s bounds', () => {
  test('fails if it has too many characters of any kind, whole and streamed', () => {
    const piece = 'a'.repeat(limits.answer_chars_max / 4);
    for (const delta of [
      { content: piece },
      { reasoning: piece },
      { refusal: piece },
      { tool_calls: [{ index: 0, function: { arguments: piece } }] },
      { reasoning_details: [{ type: 'reasoning.encrypted' as const, data: piece }] },
    ]) {
      const bounds = new AnswerBounds();
      for (let at = 0; at < 4; at += 1) expect(bounds.add([{ delta }])).toBe(1);
      expect(bounds.add([{ delta: { content: 'a' } }])).toBe(0);
      expect(bounds.failure?.message).toContain(`${limits.answer_chars_max} characters`);
    }
  });

  describe('by the characters of its citations', () => {
    const state = { generation_id: 'gen-1', tool_names: {}, call_ids: [], generation: 3 };
    const wholeOf = (wire: Wire, body: JsonObject) => dialects.get(wire)!.decodeResponse(body, state);
    withLimits({ answer_citations_chars_max: 10_000 });

    function failureOf(chunks: readonly ChatChunk[]): string | undefined {
      const bounds = new AnswerBounds();
      const within = bounds.add(chunks);
      expect(within < chunks.length).toBe(bounds.failure !== undefined);
      return bounds.failure?.message;
    }

    test.each([...dialects.keys()])('fails on %s, whole and streamed', (wire) => {
      const cited = floods.filter((one) => one.wire === wire && /cit|annotations|grounds/.test(one.parts));
      expect(cited.some(({ whole }) => whole !== undefined)).toBe(true);
      expect(cited.some(({ stream }) => stream !== undefined)).toBe(true);
      for (const { whole, stream } of cited) {
        const streamed = (n: number) => {
          const decoder = dialects.get(wire)!.createStreamDecoder(state);
          return [...stream!(n).flatMap((frame) => decoder.push(frame)), ...decoder.end()];
        };
        for (const chunksOf of [whole && ((n: number) => wholeOf(wire, whole(n))), stream && streamed]) {
          if (chunksOf === undefined) continue;
          expect(failureOf(chunksOf(5))).toBeUndefined();
          expect(failureOf(chunksOf(500))).toMatch(/characters of citations/);
        }
      }
    });

    const long = 'a'.repeat(10_000);
    const shared = { uri: 'https://a.example', title: 'a'.repeat(1_000) };
    const grounds = times(20, () => ({ segment: { text: 'a' }, groundingChunkIndices: [0] }));
    const hidden: [string, Wire, JsonObject][] = [
      [
        'of a document, without an address',
        'anthropic-messages',
        { content: [{ type: 'text', text: 'a', citations: [{ type: 'char_location', cited_text: long }] }] },
      ],
      [
        'of a document, without an address',
        'bedrock-converse',
        {
          output: {
            message: {
              content: [
                { citationsContent: { content: [{ text: 'a' }], citations: [{ sourceContent: [{ text: long }] }] } },
              ],
            },
          },
        },
      ],
      [
        'of a document, without an address',
        'cohere-chat',
        {
          message: {
            content: [{ type: 'text', text: 'a' }],
            citations: [{ start: 0, end: 1, sources: [{ document: { text: long } }] }],
          },
        },
      ],
      [
        'of a file',
        'openai-responses',
        {
          output: [
            {
              type: 'message',
              content: [{ type: 'output_text', text: 'a', annotations: [{ type: 'file_citation', filename: long }] }],
            },
          ],
        },
      ],
      [
        'that repeat one title',
        'gemini-generate-content',
        {
          candidates: [
            {
              content: { parts: [{ text: 'a' }] },
              groundingMetadata: { groundingChunks: [{ web: shared }], groundingSupports: grounds },
            },
          ],
        },
      ],
    ];
    test.each(hidden)('also %s, on %s', (_what, wire, body) => {
      expect(failureOf(wholeOf(wire, body))).toMatch(/characters of citations/);
    });
  });

  const answers: [Wire, number, (list: JsonValue[]) => JsonValue][] = [
    ['openai-chat', limits.answer_calls_max, (list) => ({ choices: [{ message: { tool_calls: list } }] })],
    ['openai-responses', limits.answer_blocks_max, (list) => ({ output: [{ type: 'message', content: list }] })],
    ['anthropic-messages', limits.answer_blocks_max, (list) => ({ content: list })],
    ['gemini-generate-content', limits.answer_blocks_max, (list) => ({ candidates: [{ content: { parts: list } }] })],
    ['bedrock-converse', limits.answer_blocks_max, (list) => ({ output: { message: { content: list } } })],
    ['cohere-chat', limits.answer_calls_max, (list) => ({ message: { tool_calls: list } })],
  ];

  test.each(answers)('fails if it has too many parts, and is cut before %s decodes it', (_wire, most, bodyOf) => {
    const legal: JsonValue[] = times(most, () => ({ type: 'text' }));
    expect(cutParts(bodyOf(legal))).toBeUndefined();
    expect(legal).toHaveLength(most);
    const large: JsonValue[] = times(100 * most, () => ({ type: 'text' }));
    expect(cutParts(bodyOf(large))?.message).toMatch(/more than \d+ entries in its list/);
    expect(large).toHaveLength(most);
  });

  test('is cut to a bounded number of parts over all lists', () => {
    const body = { output: times(4_000, () => ({ content: times(100, () => ({})) })) };
    expect(cutParts(body)).toBeDefined();
    const left = body.output.reduce((sum, { content }) => sum + content.length, body.output.length);
    expect(left).toBeLessThanOrEqual(3 * limits.answer_annotations_max);
  });

  test('is refused by the memory that one string would need, before the string is joined', () => {
    const read = (text: string, most: number) =>
      atOnce(readSlices(Buffer.from(JSON.stringify([text])), JSON.parse, most));
    const chars = 400_000;
    for (const [text, bytes] of [
      ['a'.repeat(chars), chars],
      ['"'.repeat(chars), chars],
      [`${'a'.repeat(chars - 1)}彼`, 2 * chars],
    ] as const) {
      expect(read(text, bytes)).toEqual([text]);
      expect(() => read(text, bytes - 1)).toThrow(UnreadableJson);
      expect(() => read(text, bytes - 1)).toThrow(/must not have a string of more than \d+ bytes/);
    }
  });
});

test('the reasoning of a Response is encoded once, however often its events repeat it', () => {
  const sent: string[] = [];
  const events = {
    are_read: true,
    send: (type: string, fields: string | readonly string[]) =>
      void sent.push(`{"type":"${type}"${[fields].flat().join('')}}`),
    take: () => '',
  };
  const items = createItems({
    events,
    generation_id: 'gen-1',
    hide_reasoning: false,
    wants_summary: false,
    shows_logprobs: false,
    tools: new Map() as never,
    envelope: { wrap: () => undefined, unwrap: () => undefined },
  } as never);
  const pieces = ['She said "yes",', '\nand walked on.'];
  for (const text of pieces) items.take({ delta: { reasoning: text } });
  items.end('completed');
  const done = sent.map((one) => JSON.parse(one)).filter(({ type }) => type === 'response.output_item.done');
  expect(done).toHaveLength(1);
  expect(done[0].item).toEqual(JSON.parse(joinParts(items.output[0]!)));
  expect(done[0].item.content).toEqual([{ type: 'reasoning_text', text: pieces.join('') }]);
});
