/**
 * A stream that breaks off in the middle of its text and continues at the next endpoint: what the client sees, and what
 * it pays.
 */
import { afterAll, afterEach, beforeAll, expect, onTestFinished, test } from 'vitest';
import type { Step } from '../wires/wire-server.ts';
import { type AttemptSeen, type FailoverSite, startFailoverSite, wire } from './failover-site.ts';

let site: FailoverSite;
beforeAll(async () => {
  site = await startFailoverSite({ quirks: { b: { prefill: true }, c: { prefill_prefix: true } } });
});
afterAll(() => site.stop());
afterEach(() => {
  for (const name of Object.keys(site.scripts)) delete site.scripts[name];
});

const wanted = { provider: { continuation: true } };
const STORY = ['One river', ' and one house', ' stood near', ' the old stone'];
const STORY_TEXT = STORY.join('');
const dies = () => [wire.head, wire.text(...STORY), { wait: 5 }, 'RESET' as const];
const goesOn =
  (...pieces: string[]) =>
  () => [wire.head, wire.text(...pieces), wire.end(pieces.length), 'END' as const];

test('the next endpoint that accepts the text continues it, and both are paid once', async () => {
  site.scripts['a'] = dies;
  site.scripts['b'] = goesOn(' under', ' the tree.');
  const before = { b: site.sent('b').length };
  const seen = await site.stream(wanted);
  expect(seen.text).toBe(`${STORY_TEXT} under the tree.`);
  expect([seen.finishes, seen.is_done]).toEqual([['stop'], true]);
  expect(seen.chunks.map(({ provider }) => provider).filter((one, at, all) => one !== all[at - 1])).toEqual(['A', 'B']);
  const sent = site.sent('b')[before.b] as { messages: unknown[]; max_tokens: number };
  expect(sent.messages.at(-1)).toEqual({ role: 'assistant', content: STORY_TEXT });
  // As many tokens as requested, over both.
  expect(sent.max_tokens).toBeGreaterThan(80);
  expect(sent.max_tokens).toBeLessThan(100);
  const { attempts } = seen.last.gateway_metadata!;
  expect(attempts).toMatchObject([
    { provider: 'A', status: 200, failure: 'unavailable', continues: false, estimated: true },
    { provider: 'B', status: 200, failure: null, continues: true, tokens_completion: 2 },
  ]);
  const [first, second] = attempts as [AttemptSeen, AttemptSeen];
  expect(first.cost).toBeGreaterThan(0);
  expect(second.cost).toBeCloseTo((10 * 2 + 2 * 2000) / 1e6, 12);
  expect(seen.last.usage!.cost).toBeCloseTo(first.cost + second.cost, 12);
  expect(seen.last.usage!.completion_tokens).toBe(first.tokens_completion! + 2);
  const generation = await site.generation(seen.id);
  expect(generation.total_cost).toBe(seen.last.usage!.cost);
  expect(generation).toMatchObject({
    outcome: 'completed',
    provider_name: 'B',
    native_tokens_completion: seen.last.usage!.completion_tokens,
    provider_responses: [
      { provider_name: 'A', failure: 'unavailable', cost: first.cost },
      { provider_name: 'B', failure: null, cost: second.cost, continues: true },
    ],
  });
  await site.expectSound();
});

test.each<[string, () => Step[]]>([
  ['is continued', () => [wire.head, wire.text(' under.'), wire.end(1), 'END']],
  ['is not', () => wire.fail(409)],
])('the time of an answer includes all its parts if it %s', async (_what, next) => {
  site.scripts['a'] = () => [wire.head, wire.text(...STORY), { wait: 150 }, 'RESET'];
  for (const name of ['b', 'c']) site.scripts[name] = next;
  const { id } = await site.stream(wanted);
  expect((await site.generation(id))['generation_time']).toBeGreaterThanOrEqual(150);
});

test.each<[string, string[]]>([
  ['the whole text', [STORY_TEXT.slice(0, 5), STORY_TEXT.slice(5), ' under', ' it.']],
  ['the whole text and more in one piece', [`${STORY_TEXT} under`, ' it.']],
  ['its tail', [' one house stood ne', 'ar the old stone', ' under', ' it.']],
])('text that a continuation repeats is cut: %s', async (_what, pieces) => {
  site.scripts['a'] = dies;
  site.scripts['b'] = goesOn(...pieces);
  const seen = await site.stream(wanted);
  expect(seen.text).toBe(`${STORY_TEXT} under it.`);
  expect(seen.finishes).toEqual(['stop']);
});

test('an answer that starts again is not a continuation: it ends as broken, and nothing of it is shown', async () => {
  site.scripts['a'] = dies;
  site.scripts['b'] = goesOn(STORY_TEXT.slice(0, 36), ' something else altogether');
  const seen = await site.stream(wanted);
  expect(seen.text).toBe(STORY_TEXT);
  expect(seen.finishes).toEqual(['error']);
  expect(seen.last.gateway_metadata!.attempts.map(({ failure }) => failure)).toEqual([
    'unavailable',
    'conflict',
    'unavailable',
  ]);
  await site.expectSound();
});

test('a continuation that breaks off is continued in turn, within a bound', async () => {
  site.scripts['a'] = dies;
  site.scripts['b'] = () => [wire.head, wire.text(' under', ' the tree'), { wait: 5 }, 'RESET'];
  site.scripts['c'] = goesOn(' it ends.');
  const seen = await site.stream(wanted);
  expect(seen.text).toBe(`${STORY_TEXT} under the tree it ends.`);
  expect(site.sent('c').at(-1)).toMatchObject({
    messages: [{ role: 'user' }, { role: 'assistant', content: `${STORY_TEXT} under the tree`, prefix: true }],
  });
  expect(seen.last.gateway_metadata!.attempts.map(({ continues }) => continues)).toEqual([false, true, true]);
  await site.expectSound();
});

test('if every continuation fails, the stream ends as if none had been tried', async () => {
  site.scripts['a'] = dies;
  site.scripts['b'] = () => wire.fail(503);
  site.scripts['c'] = () => wire.fail(429);
  const seen = await site.stream(wanted);
  expect([seen.text, seen.finishes, seen.is_done]).toEqual([STORY_TEXT, ['error'], true]);
  const error = seen.chunks.find((one) => one.error !== undefined)?.error;
  expect(error).toMatchObject({ code: 502, metadata: { provider_name: 'A' } });
  expect(seen.last.usage!.cost).toBe(seen.last.gateway_metadata!.attempts[0]!.cost);
  expect(await site.generation(seen.id)).toMatchObject({
    outcome: 'failed',
    provider_name: 'A',
    finish_reason: 'error',
  });
  await site.expectSound();
});

const call = { index: 0, id: 'call_1', type: 'function', function: { name: 'look', arguments: '{"a' } };
test.each<[string, object, () => (string | { wait: number })[]]>([
  ['the client does not request it', { provider: {} }, dies],
  ['a tool call is open', {}, () => [wire.head, wire.text('Let me see.'), wire.delta({ tool_calls: [call] })]],
  ['reasoning has begun', {}, () => [wire.head, wire.delta({ reasoning: 'Hm' }), wire.text('Well')]],
  ['only white space arrived', {}, () => [wire.head, wire.text('\n\n')]],
  ['the answer must be JSON', { response_format: { type: 'json_object' } }, () => [wire.head, wire.text('{"a":')]],
  ['the request enables thinking', { reasoning: { effort: 'low' } }, dies],
  ['logprobs are requested', { logprobs: true }, dies],
  [
    'the request has an assistant prefill',
    {
      messages: [
        { role: 'user', content: 'x' },
        { role: 'assistant', content: 'y' },
      ],
    },
    dies,
  ],
  ['fallbacks are not allowed', { provider: { continuation: true, only: ['a'], allow_fallbacks: false } }, dies],
  ['no later endpoint is known to accept the text', { provider: { continuation: true, only: ['a', 'd'] } }, dies],
])('nothing is continued if %s', async (_what, body, script) => {
  site.scripts['a'] = () => [...script(), { wait: 5 }, 'RESET'];
  for (const other of ['b', 'c', 'd']) site.scripts[other] = goesOn(' never');
  const sentBefore = ['b', 'c', 'd'].map((one) => site.sent(one).length);
  const seen = await site.stream({ ...wanted, ...body });
  expect(seen.finishes).toEqual(['error']);
  expect(['b', 'c', 'd'].map((one) => site.sent(one).length)).toEqual(sentBefore);
  await site.expectSound();
});

test('the rest of a limit must pay for the continuation like for any attempt', async () => {
  site.scripts['a'] = () => [wire.head, wire.text(...Array(30).fill(' river')), { wait: 5 }, 'RESET'];
  site.scripts['b'] = goesOn(' on');
  // The first attempt's 40 tokens fit; after its 30 the rest does not pay for 16 more at twice the price.
  const key = await site.key(0.045);
  const sentBefore = site.sent('b').length;
  const seen = await site.stream({ ...wanted, max_tokens: 40 }, { key });
  expect(seen.finishes).toEqual(['error']);
  expect(site.sent('b')).toHaveLength(sentBefore);
  await site.expectSound();
});

test('the broken attempt counts against the limit of the continuation', async () => {
  site.scripts['a'] = () => [wire.head, wire.text(...Array(30).fill(' river')), { wait: 5 }, 'RESET'];
  site.scripts['b'] = goesOn(' on');
  const key = await site.key(0.12);
  const seen = await site.stream(wanted, { key });
  expect(seen.finishes).toEqual(['stop']);
  const paid = seen.last.gateway_metadata!.attempts[0]!.cost;
  expect(paid).toBeCloseTo(0.03, 3);
  const { max_tokens } = site.sent('b').at(-1) as { max_tokens: number };
  expect(max_tokens * 0.002).toBeLessThanOrEqual(0.12 - paid);
  expect(max_tokens).toBeGreaterThan(30);
  await site.expectSound();
});

test('if closing does not stop billing, the broken attempt keeps its whole hold beside the continuation', async () => {
  const providers = { a: { abort_stops_billing: false } };
  const fresh = await startFailoverSite({ quirks: { b: { prefill: true } }, providers });
  onTestFinished(() => fresh.stop());
  fresh.scripts['a'] = dies;
  fresh.scripts['b'] = goesOn(' on');
  const seen = await fresh.stream({ ...wanted, max_tokens: 200 });
  expect(seen.finishes).toEqual(['stop']);
  const [broken, last] = seen.last.gateway_metadata!.attempts;
  expect(broken).toMatchObject({ provider: 'A', estimated: true });
  expect(broken!.cost).toBeGreaterThanOrEqual(200 * 0.001);
  expect(seen.last.usage!.cost).toBeCloseTo(broken!.cost + last!.cost, 9);
  await fresh.expectSound();
});

test('an endpoint that broke off has not recovered if the client disconnects during the continuation', async () => {
  const fresh = await startFailoverSite({ quirks: { b: { prefill: true } } });
  onTestFinished(() => fresh.stop());
  const statusOfA = async () => {
    const response = await fresh.gateway.call('GET', '/models/wire/model/endpoints');
    const { data } = (await response.json()) as { data: { endpoints: { provider_name: string; status: string }[] } };
    return data.endpoints.find(({ provider_name }) => provider_name === 'A')?.status;
  };
  const well = await statusOfA();
  fresh.scripts['a'] = dies;
  fresh.scripts['b'] = () => [{ wait: 10_000 }];
  const left = new AbortController();
  const response = await fresh.ask({ ...wanted, stream: true }, { signal: left.signal });
  for await (const _ of response.body ?? []) if (fresh.sent('b').length > 0) break;
  expect(await statusOfA()).not.toBe(well);
  left.abort();
  await fresh.exchanges('b').at(-1)!.closed;
  await fresh.expectSound();
  expect(await statusOfA()).not.toBe(well);
});

test('a client that disconnects before a continuation pays for the text so far', async () => {
  site.scripts['a'] = dies;
  site.scripts['b'] = () => [{ wait: 10_000 }];
  const sentBefore = site.sent('b').length;
  const left = new AbortController();
  const response = await site.ask({ ...wanted, stream: true }, { signal: left.signal });
  const id = response.headers.get('x-generation-id')!;
  for await (const _ of response.body ?? []) if (site.sent('b').length > sentBefore) break;
  left.abort();
  await site.exchanges('b').at(-1)!.closed;
  await site.expectSound();
  const generation = await site.generation(id);
  expect(generation).toMatchObject({
    outcome: 'cancelled',
    provider_responses: [{ failure: 'unavailable' }, { failure: 'client_gone', cost: 0 }],
  });
  expect(generation.total_cost).toBeGreaterThan(0);
});

test("a broken attempt at the organization's own account is reported separately from the continuation at the gateway's account", async () => {
  const fresh = await startFailoverSite({ quirks: { b: { prefill: true } } });
  onTestFinished(() => fresh.stop());
  const asManager = { authorization: `Bearer ${fresh.gateway.management_key}` };
  const credential = { provider: 'a', key: 'sk-own-0123456789abcdef', allow_shared_fallback: true };
  expect((await fresh.gateway.call('POST', '/byok', credential, asManager)).status).toBe(201);
  fresh.scripts['a'] = dies;
  fresh.scripts['b'] = goesOn(' under it.');
  const { id, last, text } = await fresh.stream(wanted);
  expect(text).toBe(`${STORY_TEXT} under it.`);
  const [first, second] = last.gateway_metadata!.attempts as [AttemptSeen, AttemptSeen];
  expect(first.cost).toBeGreaterThan(0);
  expect(last.usage).toMatchObject({ cost: second.cost, cost_details: { upstream_inference_cost: first.cost } });
  expect(await fresh.generation(id)).toMatchObject({ total_cost: second.cost, upstream_inference_cost: first.cost });
});
