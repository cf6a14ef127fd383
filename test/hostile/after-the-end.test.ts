/**
 * An upstream that continues to send after the end of its answer occupies its call for a bounded number of bytes and a
 * bounded time.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, test } from 'vitest';
import { openAnswer } from '../../src/inference/attempt/open-answer.ts';
import type { PreparedAttempt } from '../../src/inference/attempt/prepare-attempt.ts';
import type { AttemptContext } from '../../src/inference/attempt/upstream-call.ts';
import { CallCancellation } from '../../src/inference/call.ts';
import { AnswerMeter } from '../../src/inference/money/meter.ts';
import { limits } from '../../src/limits.ts';
import { dialects } from '../../src/providers/dialects.ts';
import type { Upstream, UpstreamResponse } from '../../src/providers/transport/upstream.ts';
import type { Wire } from '../../src/schemas/inner.ts';

const sse = (events: readonly object[]) =>
  events.map((event) => `event: ${(event as { type?: string }).type}\ndata: ${JSON.stringify(event)}\n\n`).join('');
const chat = (choices: object[], more: object = {}) =>
  `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'x', choices, ...more })}\n\n`;
const usage = { input_tokens: 3, output_tokens: 2 };
const item = {
  id: 'm',
  type: 'message',
  role: 'assistant',
  status: 'completed',
  content: [{ type: 'output_text', text: 'Hi', annotations: [] }],
};
const response = { id: 'r', object: 'response', created_at: 1, model: 'x', status: 'completed', output: [item], usage };

/** A whole answer of each event-stream wire. */
const ANSWERS: Record<string, string> = {
  'openai-chat':
    chat([{ index: 0, delta: { role: 'assistant', content: 'Hi' }, finish_reason: null }]) +
    chat([{ index: 0, delta: {}, finish_reason: 'stop' }]) +
    'data: [DONE]\n\n',
  'anthropic-messages': sse([
    {
      type: 'message_start',
      message: { id: 'm', type: 'message', role: 'assistant', model: 'x', content: [], stop_reason: null, usage },
    },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hi' } },
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage },
    { type: 'message_stop' },
  ]),
  'openai-responses': sse([
    { type: 'response.created', response: { ...response, status: 'in_progress', output: [] } },
    { type: 'response.output_item.added', output_index: 0, item: { ...item, content: [] } },
    { type: 'response.output_text.delta', item_id: 'm', output_index: 0, content_index: 0, delta: 'Hi' },
    { type: 'response.output_item.done', output_index: 0, item },
    { type: 'response.completed', response },
  ]),
  'gemini-generate-content': `data: ${JSON.stringify({
    candidates: [{ content: { role: 'model', parts: [{ text: 'Hi' }] }, finishReason: 'STOP' }],
    usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 2, totalTokenCount: 5 },
  })}\n\n`,
  'cohere-chat': sse([
    { type: 'message-start', id: 'm', delta: { message: { role: 'assistant', content: [] } } },
    { type: 'content-start', index: 0, delta: { message: { content: { type: 'text', text: '' } } } },
    { type: 'content-delta', index: 0, delta: { message: { content: { text: 'Hi' } } } },
    { type: 'content-end', index: 0 },
    { type: 'message-end', delta: { finish_reason: 'COMPLETE', usage: { tokens: usage } } },
  ]),
};
const WIRES = Object.keys(ANSWERS);

const READ_BYTES = 16 * 1024;
const JUNK: [what: string, read: string][] = [
  ['comments', `:${'x'.repeat(READ_BYTES)}\n\n`],
  ['an endless line', 'x'.repeat(READ_BYTES)],
  ['an endless event', `data: ${'x'.repeat(READ_BYTES)}\n`],
];
/** The number of times that the upstream would continue. */
const READS_MAX = 1_000;

const tail = { upstream_tail_ms_max: limits.upstream_tail_ms_max };
afterEach(() => void Object.assign(limits, tail));

/**
 * Reads a stream whose upstream sends these reads, then nothing, and leaves the connection open. Returns its text, and
 * how much was read.
 */
async function readOf(wire: string, reads: Iterable<string>, { slowly = false } = {}) {
  const left = reads[Symbol.iterator]();
  let next = left.next();
  let taken = 0;
  const upstream = {
    send: () => ({ response: Promise.resolve(answer), ended: false, abort() {} }),
  } as unknown as Upstream;
  const answer: UpstreamResponse = {
    status: 200,
    headers: { 'content-type': 'text/event-stream' },
    complete: false,
    ready: () => (next.done ? new Promise(() => {}) : undefined),
    read() {
      if (next.done) return undefined;
      const bytes = Buffer.from(next.value);
      taken += 1;
      next = left.next();
      return bytes;
    },
  };
  const call = {
    generation_id: 'gen-1',
    accepted_ms: 0,
    cancellation: new CallCancellation(),
    request: { stream: true, messages: [] },
    attribution: {},
  };
  const provider = { credential: 'x', base_url: 'http://upstream.example', headers: {}, abort_stops_billing: true };
  const dialect = dialects.get(wire as Wire);
  const encoded = { path: '/', headers: {}, body: {}, state: {} };
  const prepared = { candidate: { provider, endpoint: { quirks: {} } }, dialect, encoded, payload: '{}' };
  const context = { upstream, call, attempt: 1, first_token_ms_max: 60_000, total_ms_max: 60_000 };
  const account = { meter: new AnswerMeter(), used: null };
  const opened = await openAnswer(
    prepared as unknown as PreparedAttempt,
    context as unknown as AttemptContext,
    account,
  );
  let text = opened.first.map(({ delta }) => delta.content ?? '').join('');
  while (!opened.later.ended) {
    // A client that reads its answer slowly: writes to it wait.
    if (slowly) await sleep(3 * limits.upstream_tail_ms_max);
    const coming = opened.later.ready();
    if (coming !== undefined) await coming;
    for (const chunk of opened.later.read() ?? []) {
      account.meter.chunk(chunk);
      text += chunk.delta.content ?? '';
    }
  }
  opened.close();
  return { text, taken, finish_reason: account.meter.finish_reason, usage: account.meter.reported };
}

function* endless(answer: string, junk: string): Generator<string> {
  yield answer;
  for (let nth = 0; nth < READS_MAX; nth += 1) yield junk;
}

describe.each(WIRES)('%s', (wire) => {
  test.each(JUNK)(
    '%s after the end are read up to a bound of bytes, and the answer is complete',
    async (_what, junk) => {
      const read = await readOf(wire, endless(ANSWERS[wire] ?? '', junk));
      expect(read).toMatchObject({ text: 'Hi', finish_reason: 'stop' });
      expect(read.taken).toBeLessThanOrEqual(limits.upstream_tail_bytes_max / READ_BYTES + 3);
    },
  );

  test('endless small comments are read up to a bound of time', async () => {
    Object.assign(limits, { upstream_tail_ms_max: 0 });
    const read = await readOf(wire, endless(ANSWERS[wire] ?? '', ':\n\n'));
    expect(read).toMatchObject({ text: 'Hi', finish_reason: 'stop' });
    expect(read.taken).toBeLessThanOrEqual(2);
  });
});

test('usage that arrives after the end is read', async () => {
  const late = chat([], { usage: { prompt_tokens: 3, completion_tokens: 9, total_tokens: 12 } });
  const read = await readOf('openai-chat', [ANSWERS['openai-chat'] ?? '', ':\n\n', late]);
  expect(read.usage).toMatchObject({ out_text: 9 });
});

test('an answer that continues after a stated end, as some servers do in each event, is read completely', async () => {
  Object.assign(limits, { upstream_tail_bytes_max: 64 });
  try {
    const event = (text: string) =>
      `data: ${JSON.stringify({ candidates: [{ content: { parts: [{ text }] }, finishReason: 'STOP' }] })}\n\n`;
    const words = Array.from({ length: 50 }, (_, nth) => `w${nth} `);
    expect((await readOf('gemini-generate-content', words.map(event))).text).toBe(words.join(''));
  } finally {
    Object.assign(limits, { upstream_tail_bytes_max: 64 * 1024 });
  }
});

test('usage that arrives while the reader waits for its client is read, for any wait', async () => {
  Object.assign(limits, { upstream_tail_ms_max: 20 });
  const late = chat([], { usage: { prompt_tokens: 3, completion_tokens: 9, total_tokens: 12 } });
  const read = await readOf('openai-chat', [ANSWERS['openai-chat'] ?? '', late], { slowly: true });
  expect(read.usage).toMatchObject({ out_text: 9 });
});
