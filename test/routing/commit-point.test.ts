/**
 * The commit point of a stream: until when it can continue at the next endpoint, and what commits the gateway to an
 * answer.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { httpChunk, responseHead, type Step } from '../wires/wire-server.ts';
import { type FailoverSite, startFailoverSite, wire } from './failover-site.ts';

let site: FailoverSite;
beforeAll(async () => {
  site = await startFailoverSite({});
  site.scripts['b'] = () => [wire.head, wire.text('From', ' b'), wire.end(2), 'END'];
});
afterAll(() => site.stop());

const breaksAfter = (...steps: Step[]) => {
  site.scripts['a'] = () => [wire.head, ...steps, { wait: 5 }, 'RESET'];
};

/** The same for a body of known length, where this is a failure of the connection. */
const breaksWithin = (...frames: string[]) => {
  const head = responseHead(200, 'text/event-stream', { 'transfer-encoding': 'chunked', connection: 'keep-alive' });
  site.scripts['a'] = () => [head, ...frames.map((frame) => httpChunk(frame)), { wait: 5 }, 'RESET'];
};

const usage = wire.event([], { usage: { prompt_tokens: 10, completion_tokens: 2, total_tokens: 12 } });
const stop = wire.event([{ index: 0, delta: {}, finish_reason: 'stop' }]);

test.each<[string, string]>([
  ['the role alone', wire.delta({ role: 'assistant' })],
  ['the role with an empty text', wire.delta({ role: 'assistant', content: '' })],
  ['nulls', wire.delta({ content: null, reasoning: null, refusal: null, tool_calls: null })],
  ['an empty delta', wire.delta({})],
  ['an empty list of calls', wire.delta({ tool_calls: [] })],
  ['empty reasoning', wire.delta({ reasoning: '', reasoning_details: [] })],
  ['the opening of a detail of reasoning', wire.delta({ reasoning_details: [{ type: 'reasoning.text', text: '' }] })],
  ['an empty refusal', wire.delta({ refusal: '' })],
  ['empty lists of images and citations', wire.delta({ images: [], annotations: [] })],
  ['no choices', wire.event([])],
  ['comments', 'comments'],
  ['an event without data', 'event: ping\n\n'],
  ['usage without anything else', usage],
  ['a finish reason without anything else', stop],
  ['a finish reason with usage', stop + usage],
])('%s does not commit: the next endpoint answers', async (_what, frame) => {
  breaksWithin(frame);
  const seen = await site.stream({});
  expect([seen.text, seen.finishes, seen.is_done]).toEqual(['From b', ['stop'], true]);
  expect(seen.chunks.every(({ provider }) => provider === 'B')).toBe(true);
  expect(seen.last.gateway_metadata!.attempts).toMatchObject([
    { provider: 'A', failure: 'unavailable' },
    { provider: 'B', failure: null },
  ]);
});

const call = { index: 0, id: 'call_1', type: 'function', function: { name: 'look', arguments: '' } };
test.each<[string, object]>([
  ['text', { content: 'x' }],
  ['a blank', { content: ' ' }],
  ['reasoning', { reasoning: 'Hm' }],
  ['reasoning under its other name', { reasoning_content: 'Hm' }],
  ['a detail of reasoning', { reasoning_details: [{ type: 'reasoning.encrypted', data: 'xyz', index: 0 }] }],
  ['a call', { tool_calls: [call] }],
  ['a refusal', { refusal: 'No' }],
  ['sound', { audio: { id: 'audio_1', data: 'AAAA' } }],
  ['an image', { images: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,AA==' }, index: 0 }] }],
])("%s commits: a later failure is reported as this endpoint's", async (_what, delta) => {
  breaksAfter(wire.delta({ role: 'assistant', content: '' }), wire.delta(delta));
  const sentBefore = site.sent('b').length;
  const seen = await site.stream({});
  expect(seen.finishes).toEqual(['error']);
  expect(seen.chunks.find(({ error }) => error)?.error?.metadata).toMatchObject({ provider_name: 'A' });
  expect(site.sent('b')).toHaveLength(sentBefore);
});

test('an end without text commits, because it is an answer', async () => {
  site.scripts['a'] = () => [wire.head, wire.end(0), 'END'];
  const sentBefore = site.sent('b').length;
  const seen = await site.stream({});
  expect([seen.text, seen.finishes]).toEqual(['', ['stop']]);
  expect(site.sent('b')).toHaveLength(sentBefore);
});

test.each<[string, typeof breaksAfter]>([
  ['whose end is that of the connection', breaksAfter],
  ['whose body states its end', breaksWithin as typeof breaksAfter],
])('a stream %s is a failure if it breaks off after text and usage without a finish reason', async (_what, breaks) => {
  breaks(wire.text('Half'), usage);
  const seen = await site.stream({});
  expect([seen.text, seen.finishes]).toEqual(['Half', ['error']]);
  await site.expectSound();
});

test('usage alone is not an answer if the body ends with the connection', async () => {
  breaksAfter(usage);
  const seen = await site.stream({});
  expect([seen.text, seen.finishes]).toEqual(['From b', ['stop']]);
});

test('if the finish reason arrived with the text, a later failure is ignored', async () => {
  breaksWithin(wire.text('All of', ' it'), stop);
  const sentBefore = site.sent('b').length;
  const seen = await site.stream({ provider: { continuation: true } });
  expect([seen.text, seen.finishes, seen.is_done]).toEqual(['All of it', ['stop'], true]);
  expect(seen.last.gateway_metadata!.attempts).toMatchObject([{ provider: 'A', failure: null, estimated: true }]);
  expect(site.sent('b')).toHaveLength(sentBefore);
  await site.expectSound();
});

test('heartbeats of any duration do not commit, and every failure before the first content is skipped', async () => {
  breaksAfter({ wait: 150 }, wire.delta({ role: 'assistant', content: '' }), { wait: 150 });
  const response = await site.ask({ stream: true });
  expect(response.status).toBe(200);
  const text = await response.text();
  expect(text.match(/^: /gm)!.length).toBeGreaterThanOrEqual(3);
  expect(text).not.toContain('"provider":"A"},');
  const chunks = [...text.matchAll(/^data: (\{.*\})$/gm)].map(
    ([, json]) => JSON.parse(json as string) as { provider?: string },
  );
  expect(chunks.length).toBeGreaterThan(2);
  expect(chunks.every(({ provider }) => provider === 'B')).toBe(true);
});

test('every failure before the first content is recorded with its wait and its reason', async () => {
  site.scripts['a'] = () => wire.fail(429);
  site.scripts['b'] = () => wire.fail(503);
  site.scripts['c'] = () => [wire.head, ': hm\n\n', { wait: 30 }, wire.text('From c'), wire.end(1), 'END'];
  const seen = await site.stream({});
  expect(seen.text).toBe('From c');
  const generation = await site.generation(seen.id);
  expect(generation['provider_responses']).toMatchObject([
    { provider_name: 'A', status: 429, failure: 'rate_limited', cost: 0, tokens_prompt: null },
    { provider_name: 'B', status: 503, failure: 'unavailable', cost: 0 },
    { provider_name: 'C', status: 200, failure: null, tokens_prompt: 10, tokens_completion: 1, estimated: false },
  ]);
  const [, , last] = generation['provider_responses'] as { latency: number; wait: number }[];
  expect(last!.latency).toBeGreaterThanOrEqual(30);
  expect(last!.wait).toBeGreaterThanOrEqual(0);
  await site.expectSound();
});
