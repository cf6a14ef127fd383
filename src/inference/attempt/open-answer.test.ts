import { expect, test } from 'vitest';
import { limits } from '../../limits.ts';
import type { ChatDialect } from '../../providers/dialect.ts';
import { geminiGenerateContent } from '../../providers/gemini-generate-content/index.ts';
import { openaiChat } from '../../providers/openai-chat/index.ts';
import type { Upstream, UpstreamResponse } from '../../providers/transport/upstream.ts';
import { CallCancellation } from '../call.ts';
import { AnswerMeter } from '../money/meter.ts';
import { STREAM_SLICE_FRAMES } from './answer-reader.ts';
import { type OpenAnswer, openAnswer } from './open-answer.ts';
import type { PreparedAttempt } from './prepare-attempt.ts';
import type { AttemptContext } from './upstream-call.ts';

const contentEvent = (content: string) =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content } }] })}\n\n`;
const BROKEN = 'data: {"error":{"message":"broken"}}\n\n';
const FINISH = `data: ${JSON.stringify({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })}\n\n`;

/** Opens a stream of these reads, each of which is available at once. `take` is called for memory for large answers. */
async function streamOf(
  reads: readonly string[],
  take?: () => Promise<void> | undefined,
  dialect: ChatDialect = openaiChat,
): Promise<OpenAnswer> {
  const left = reads.map((read) => Buffer.from(read));
  const response: UpstreamResponse = {
    status: 200,
    headers: { 'content-type': 'text/event-stream' },
    complete: true,
    ready: () => undefined,
    read: () => left.shift(),
  };
  const exchange = { response: Promise.resolve(response), ended: true, abort() {} };
  const upstream = { send: () => exchange } as unknown as Upstream;
  const call = {
    generation_id: 'gen-1',
    accepted_ms: 0,
    cancellation: new CallCancellation(),
    request: { stream: true, messages: [] },
    attribution: {},
    ...(take === undefined ? {} : { room: { take } }),
  };
  const provider = { credential: 'x', base_url: 'http://upstream.example', headers: {}, abort_stops_billing: true };
  const prepared = {
    candidate: { provider, endpoint: { quirks: {} } },
    dialect,
    encoded: { path: '/chat/completions', headers: {}, body: {}, state: {} },
    payload: '{}',
  } as unknown as PreparedAttempt;
  const times = { first_token_ms_max: 1_000, total_ms_max: 1_000 };
  const context = { upstream, call, attempt: 1, ...times } as unknown as AttemptContext;
  return openAnswer(prepared, context, { meter: new AnswerMeter(), used: null });
}

/** The contents after the first chunks, and the failure of the stream. */
async function laterOf({ later }: OpenAnswer): Promise<string[]> {
  const words: string[] = [];
  try {
    while (!later.ended) {
      const coming = later.ready();
      if (coming !== undefined) {
        words.push('waits');
        await coming;
      }
      for (const { delta } of later.read() ?? []) if (delta.content) words.push(delta.content);
    }
  } catch (error) {
    words.push(`failed: ${(error as Error).message}`);
  }
  return words;
}

const LARGE = 'x'.repeat(3_000_000);

test('events that arrive in one read with a failure are delivered before the failure', async () => {
  expect(await laterOf(await streamOf([contentEvent('a'), contentEvent('b') + contentEvent('c') + BROKEN]))).toEqual([
    'b',
    'c',
    'failed: broken',
  ]);
  const later = await laterOf(await streamOf([contentEvent('a'), contentEvent('b') + BROKEN], () => Promise.resolve()));
  expect(later).toEqual(['b', 'failed: broken']);
});

test('content that waits for memory is delivered in order, and a failure after it', async () => {
  const reads = [contentEvent('a'), contentEvent(LARGE) + contentEvent('b') + BROKEN];
  const later = await laterOf(await streamOf(reads, () => Promise.resolve()));
  expect(later[0]).toBe('waits');
  // A long text is delivered in several chunks, with a turn of the loop between some of them.
  expect(later.filter((word) => word !== 'waits').join('')).toBe(`${LARGE}bfailed: broken`);
  const whole = await laterOf(
    await streamOf([contentEvent('a'), contentEvent(LARGE), contentEvent('b'), FINISH], () => Promise.resolve()),
  );
  expect(whole[0]).toBe('waits');
  expect(whole.filter((word) => word !== 'waits').join('')).toBe(`${LARGE}b`);
});

test('an error at the end of a stream keeps the wait that the provider requests', async () => {
  const error = {
    code: 429,
    status: 'RESOURCE_EXHAUSTED',
    message: 'Quota.',
    details: [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '7s' }],
  };
  const opened = streamOf([`data: ${JSON.stringify({ error })}`], undefined, geminiGenerateContent);
  await expect(opened).rejects.toMatchObject({ failure: 'rate_limited', has_ended: true, retry_after_ms: 7_000 });
});

test('content that gets no memory is not delivered and ends the stream', async () => {
  const later = await laterOf(
    await streamOf([contentEvent('a'), contentEvent(LARGE), contentEvent('never')], () =>
      Promise.reject(new Error('no room')),
    ),
  );
  expect(later[0]).toBe('waits');
  expect(later.filter((word) => word !== 'waits')).toEqual(['failed: no room']);
});

test('events of one read are delivered in slices, with a turn of the loop between two slices', async () => {
  const words = Array.from({ length: 3 * STREAM_SLICE_FRAMES }, (_, nth) => `w${nth}`);
  const later = await laterOf(await streamOf([contentEvent('a'), words.map(contentEvent).join('') + FINISH]));
  expect(later.filter((word) => word !== 'waits')).toEqual(words);
  expect(later.filter((word) => word === 'waits')).toHaveLength(3);
});

test('the chunks of one large event are delivered in slices as well', async () => {
  const images = Array.from({ length: limits.answer_images_max }, (_, nth) => ({ image_url: { url: `data:,${nth}` } }));
  const parts = images.map((image) => ({ type: 'image_url', ...image }));
  const event = `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: parts } }] })}\n\n`;
  const later = await laterOf(await streamOf([contentEvent('a'), event + FINISH]));
  expect(later).toEqual(['waits', 'waits']);
});
