/**
 * Long answers with filters, with probabilities of tokens, and requests with many addresses: the work for each turn of
 * the event loop is bounded.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { AnswerBounds } from '../../src/inference/attempt/answer-bounds.ts';
import { dividedChunks, sliceEnd, tokensOf } from '../../src/inference/attempt/chunk-slices.ts';
import { EVENT_LOGPROBS_BOUNDS } from '../../src/inference/attempt/open-answer.ts';
import type { Call } from '../../src/inference/call.ts';
import { createCallMedia } from '../../src/inference/prepare/media.ts';
import { transformInTurns } from '../../src/inference/transform.ts';
import { limits } from '../../src/limits.ts';
import { leftAddressSteps } from '../../src/providers/shared/media-addresses.ts';
import type { ChatChunk, ChatCompletion } from '../../src/schemas/inner.ts';
import { structureBreach } from '../../src/schemas/json-structure.ts';

const text = 'ada@example.com, '.repeat(50_000);
const completion = {
  id: 'c',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  ext: { wire: 'openai-chat', rest: {} },
  choices: [{ index: 0, message: { role: 'assistant', content: text }, finish_reason: 'stop' }],
} as unknown as ChatCompletion;

test('a long whole answer is filtered in pieces of bounded length, each in a turn of its own', async () => {
  const taken: number[] = [];
  let turns = 0;
  const shout = (chunk: ChatChunk): ChatChunk =>
    chunk.delta.content ? { ...chunk, delta: { ...chunk.delta, content: chunk.delta.content.toUpperCase() } } : chunk;
  const transforming = transformInTurns(completion, {
    take(chunks) {
      taken.push(chunks.reduce((sum, { delta }) => sum + (delta.content?.length ?? 0), 0));
      return chunks.map(shout);
    },
    end: () => [],
    hasChanged: () => true,
  });
  let isDone = false;
  const watching = (async () => {
    for (; !isDone; turns += 1) await nextTurn();
  })();
  const transformed = await transforming;
  isDone = true;
  await watching;
  expect(Math.max(...taken)).toBeLessThanOrEqual(limits.stream_chunk_chars_max);
  expect(turns).toBeGreaterThanOrEqual(taken.length - 1);
  expect(transformed.choices[0].message.content).toBe(text.toUpperCase());
  // A short answer needs no turn of its own.
  const short = {
    ...completion,
    choices: [{ ...completion.choices[0], message: { role: 'assistant', content: 'a' } }],
  };
  const same = { take: (chunks: ChatChunk[]) => chunks, end: () => [], hasChanged: () => false };
  expect(transformInTurns(short as ChatCompletion, same)).toBe(short);
});

const token = (at: number) => ({ token: `${at} `, logprob: -1, bytes: null, top_logprobs: [] });
const probable = (tokens: number): ChatChunk => ({
  delta: { content: Array.from({ length: tokens }, (_, at) => `${at} `).join('') },
  logprobs: { content: Array.from({ length: tokens }, (_, at) => token(at)) },
  finish_reason: 'stop',
});

test('a chunk with the probabilities of many tokens is divided, and a slice has those of a few thousand', () => {
  const whole = probable(20_000);
  const pieces = dividedChunks([whole]);
  expect(pieces.map(({ delta }) => delta.content).join('')).toBe(whole.delta.content);
  expect(pieces.flatMap(({ logprobs }) => tokensOf(logprobs))).toEqual(tokensOf(whole.logprobs));
  expect(Math.max(...pieces.map(({ logprobs }) => tokensOf(logprobs).length))).toBeLessThanOrEqual(500);
  expect(pieces.map(({ finish_reason }) => finish_reason).filter(Boolean)).toEqual(['stop']);
  expect(pieces.at(-1)?.finish_reason).toBe('stop');
  const inSlice = pieces.slice(0, sliceEnd(pieces, 0)).flatMap(({ logprobs }) => tokensOf(logprobs));
  expect(inSlice.length).toBeLessThan(3_000);
  // As a provider streams them: one token for each chunk.
  expect(dividedChunks([probable(1)])).toEqual([probable(1)]);
});

test('probabilities of a streamed answer are bounded in each event and in all', () => {
  const event = (values: number) => `[${Array.from({ length: values }, () => 1).join()}]`;
  expect(structureBreach(event(limits.event_logprob_values_max - 10), EVENT_LOGPROBS_BOUNDS)).toBeUndefined();
  expect(structureBreach(event(limits.event_logprob_values_max + 10), EVENT_LOGPROBS_BOUNDS)).toBeDefined();
  const bounds = new AnswerBounds();
  const one: ChatChunk = {
    delta: { content: 'a' },
    logprobs: {
      content: [{ ...token(0), top_logprobs: Array.from({ length: 19 }, () => ({ token: 'a', logprob: -1 })) }],
    },
  };
  const most = limits.answer_logprobs_max / 20;
  expect(bounds.add(Array.from({ length: most }, () => one))).toBe(most);
  expect(bounds.failure).toBeUndefined();
  expect(bounds.add([one])).toBe(0);
  expect(bounds.failure?.message).toContain('probabilities');
});

test('the characters of tokens with probabilities, and of anything that a server adds to them, are bounded as well', () => {
  const { answer_logprobs_chars_max } = limits;
  Object.assign(limits, { answer_logprobs_chars_max: 10_000 });
  try {
    const text = 'a'.repeat(1_000);
    const entries = [
      { ...token(0), token: text },
      { ...token(0), bytes: Array.from({ length: 1_250 }, () => 1) },
      { ...token(0), added: text },
      { ...token(0), added: [text.repeat(5)] },
      { ...token(0), added: { a: text.repeat(5) } },
      { ...token(0), top_logprobs: [{ token: text, logprob: -1 }] },
    ];
    for (const entry of entries) {
      const chunk: ChatChunk = { delta: { content: 'a' }, logprobs: { content: [entry] } };
      const bounds = new AnswerBounds();
      expect(bounds.add([chunk])).toBe(1);
      expect(bounds.add([chunk, chunk])).toBeLessThan(2);
      expect(bounds.failure?.message).toContain('characters of probabilities');
    }
  } finally {
    Object.assign(limits, { answer_logprobs_chars_max });
  }
});

test('addresses to fetch are counted before they are compared with each other', async () => {
  let reads = 0;
  const needs = Array.from({ length: limits.addresses_max }, (_, at) => ({
    kind: 'image' as const,
    get url() {
      reads += 1;
      return `https://a.example/${at}`;
    },
  }));
  const call = {
    principal: { key_hash: 'k' },
    request: { messages: [] },
    cancellation: { onCancel: () => () => {} },
  } as unknown as Call;
  const media = createCallMedia(call, { fetch: () => Promise.reject(new Error('fetched')) } as never);
  await expect(media.gather(needs)).rejects.toMatchObject({ status: 400 });
  expect(reads).toBeLessThanOrEqual(4 * limits.addresses_max);
});

test('a long body for an upstream is searched for addresses in steps', () => {
  const body = { tools: Array.from({ length: 100_000 }, () => ({ a: 1 })), image_url: 'https://a.example' };
  const looking = leftAddressSteps(body);
  let steps = 0;
  for (;;) {
    const { done, value } = looking.next();
    if (done === true) {
      expect(value).toEqual({ address: 'https://a.example', field: 'image_url' });
      break;
    }
    steps += 1;
  }
  expect(steps).toBeGreaterThanOrEqual(5);
});
