/**
 * A stream that does not begin in time is requested from a second endpoint as well: which one answers, what happens to
 * the other, and what both cost.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { HEDGE_MS_MIN } from '../../src/inference/attempt/hedge.ts';
import { limits } from '../../src/limits.ts';
import { PERCENTILE_CALLS_MIN } from '../../src/routing/endpoint-windows.ts';
import { withLimits } from '../changed-limits.ts';
import type { Exchange, Step } from '../wires/wire-server.ts';
import { type FailoverSite, startFailoverSite, wire } from './failover-site.ts';

withLimits({ performance_fresh_ms: 200 });

let site: FailoverSite;
let thrifty: FailoverSite;
let soft: FailoverSite;

/** Enough calls that the gateway knows when these endpoints are late. */
async function warm(one: FailoverSite, names = ['a']): Promise<void> {
  for (const name of names) {
    one.scripts[name] = answers(name);
    for (let calls = 0; calls < PERCENTILE_CALLS_MIN; calls += 1) {
      expect((await one.stream({ provider: { only: [name] } })).text).toBe(`From ${name}`);
    }
  }
  await sleep(limits.performance_fresh_ms);
}

// 409 does not change the health of an endpoint, so that it gets calls at once.
const answers = (name: string) => (): Step[] => [wire.head, wire.text('From', ` ${name}`), wire.end(2), 'END'];
const answersAfter = (name: string, wait: number) => (): Step[] => [{ wait }, ...answers(name)()];
/** Sends the scripted answer shortly after the other endpoint has received a request as well. */
const once =
  (one: FailoverSite, other: string, ...then: Step[]) =>
  (): Step[] => [{ until: hasRequests(one, other, one.sent(other).length + 1) }, { wait: 20 }, ...then];
const hasRequests = (one: FailoverSite, name: string, count: number) =>
  vi.waitFor(() => expect(one.sent(name).length).toBeGreaterThanOrEqual(count), { timeout: 60_000, interval: 5 });
const silent = () => [{ wait: 10_000 }];
const wanted = { provider: { hedge: true } };
const attemptsOf = (seen: { last: { gateway_metadata?: { attempts: object[] } } }) =>
  seen.last.gateway_metadata!.attempts;

beforeAll(async () => {
  const providers = { d: { abort_stops_billing: false } };
  // One hedge for every two calls, so that tests do not run out of hedges.
  site = await startFailoverSite({ routing: { hedge_share: 1 }, providers });
  thrifty = await startFailoverSite({ routing: { hedge: true } });
  soft = await startFailoverSite({
    routing: { hedge_share: 1 },
    ledger: { budgets: 'soft', hold: 'sliced', unknown_outcome: 'metered' },
  });
  await Promise.all([warm(site, ['a', 'b', 'c', 'd']), warm(thrifty), warm(soft)]);
});
afterAll(() => Promise.all([site.stop(), thrifty.stop(), soft.stop()]));
beforeEach(() => {
  for (const name of ['a', 'b', 'c', 'd']) site.scripts[name] = answers(name);
});
afterEach(() => Promise.all([site.expectSound(), soft.expectSound()]));

test('if the first endpoint is late, the second gets the request as well and answers; the first is cancelled at no cost', async () => {
  site.scripts['a'] = silent;
  const seen = await site.stream(wanted);
  expect([seen.text, seen.finishes, seen.is_done]).toEqual(['From b', ['stop'], true]);
  expect(attemptsOf(seen)).toMatchObject([
    { provider: 'A', status: 0, failure: 'hedge_lost', cost: 0, hedges: false },
    { provider: 'B', status: 200, failure: null, hedges: true, tokens_completion: 2 },
  ]);
  const abandoned = site.exchanges('a').at(-1)!;
  await abandoned.closed;
  expect(abandoned.closed_at! - abandoned.received_at).toBeLessThan(5_000);
  expect(seen.last.usage!.cost).toBeCloseTo((10 * 2 + 2 * 2000) / 1e6, 12);
  const generation = await site.generation(seen.id);
  expect(generation.total_cost).toBe(seen.last.usage!.cost);
  expect(generation).toMatchObject({
    outcome: 'completed',
    provider_name: 'B',
    provider_responses: [
      { failure: 'hedge_lost', cost: 0 },
      { failure: null, hedges: true },
    ],
  });
});

test('tokens that an endpoint reported before it was cancelled are charged in addition to the answer', async () => {
  const usage = { prompt_tokens: 10, completion_tokens: 40, total_tokens: 50 };
  site.scripts['a'] = () => [wire.head, wire.event([], { usage }), { wait: 10_000 }];
  const seen = await site.stream(wanted);
  expect(seen.text).toBe('From b');
  expect(attemptsOf(seen)).toMatchObject([
    { provider: 'A', failure: 'hedge_lost', cost: (10 * 1 + 40 * 1000) / 1e6 },
    { provider: 'B', failure: null, hedges: true },
  ]);
  const generation = await site.generation(seen.id);
  expect(generation.total_cost).toBeCloseTo((10 * 1 + 40 * 1000 + 10 * 2 + 2 * 2000) / 1e6, 12);
});

test('if the first endpoint begins before the second it answers, and the second is cancelled', async () => {
  site.scripts['a'] = once(site, 'b', ...answers('a')());
  site.scripts['b'] = silent;
  const sentBefore = site.sent('b').length;
  const seen = await site.stream(wanted);
  expect([seen.text, seen.finishes]).toEqual(['From a', ['stop']]);
  expect(attemptsOf(seen)).toMatchObject([
    { provider: 'A', status: 200, failure: null, hedges: false },
    { provider: 'B', failure: 'hedge_lost', cost: 0, hedges: true },
  ]);
  expect(site.sent('b')).toHaveLength(sentBefore + 1);
  await site.exchanges('b').at(-1)!.closed;
  expect(seen.last.usage!.cost).toBeCloseTo((10 * 1 + 2 * 1000) / 1e6, 12);
});

test('during the forced call of a model without native tools no hedge starts, and heartbeats do not end its parsing', async () => {
  const quirks = Object.fromEntries(['a', 'b', 'c', 'd'].map((name) => [name, { no_native_tools: true }]));
  const texts = await startFailoverSite({ routing: { hedge_share: 1 }, quirks });
  try {
    await warm(texts);
    const says = (text: string) => (): Step[] => [
      wire.head,
      wire.text('I think.'),
      { wait: 300 },
      wire.text(text),
      wire.end(9),
      'END',
    ];
    const call = '<tool_call>{"name": "look", "arguments": {}}</tool_call>';
    const forced = { ...wanted, tools: [{ type: 'function', function: { name: 'look' } }], tool_choice: 'required' };
    const sentBefore = texts.sent('b').length;
    texts.scripts['a'] = says(call);
    expect((await texts.stream(forced)).finishes).toEqual(['tool_calls']);
    expect(texts.sent('b')).toHaveLength(sentBefore);
    texts.scripts['a'] = says('No.');
    texts.scripts['b'] = says(call);
    const seen = await texts.stream(forced);
    expect([seen.text, seen.finishes, seen.last.gateway_metadata!.attempt]).toEqual(['I think.', ['tool_calls'], 2]);
    for (const name of ['b', 'c', 'd']) texts.scripts[name] = says('No.');
    const failed = await texts.stream(forced);
    expect([failed.status, failed.text, failed.chunks.flatMap(({ error }) => error?.code ?? [])]).toEqual([
      200,
      '',
      [502],
    ]);
    await texts.expectSound();
  } finally {
    await texts.stop();
  }
});

test('the upstream ids of the two attempts differ', async () => {
  site.scripts['a'] = silent;
  const seen = await site.stream(wanted);
  const nameOf = (provider: string) => site.exchanges(provider).at(-1)!.headers['x-client-request-id'];
  expect([nameOf('a'), nameOf('b')]).toEqual([`${seen.id}.1`, `${seen.id}.2`]);
});

test('both attempts have a full hold while both run', async () => {
  site.scripts['a'] = silent;
  const looked = Promise.withResolvers<void>();
  site.scripts['b'] = () => [{ until: looked.promise }, ...answers('b')()];
  const sentBefore = site.sent('b').length;
  const heldUsd = async () => {
    const text = await (await fetch(`${site.gateway.url}/metrics`)).text();
    return Number(/^gateway_ledger_held_usd(?:{.*})? (.+)$/m.exec(text)?.[1]);
  };
  const answered = site.stream(wanted);
  await vi.waitFor(() => expect(site.sent('b').length).toBe(sentBefore + 1), { timeout: 60_000 });
  // A hundred tokens of each, and the bound of their prompts.
  expect(await heldUsd()).toBeGreaterThan(0.1 + 0.2);
  expect(await heldUsd()).toBeLessThan(0.1 + 0.2 + 0.01);
  looked.resolve();
  expect((await answered).text).toBe('From b');
});

test.each<[string, () => Step[], () => Step[], (string | null)[]]>([
  ['the first fails', () => once(site, 'b', ...wire.fail(409))(), answersAfter('b', 200), ['conflict', null]],
  [
    'the second fails',
    () => once(site, 'b', { wait: 150 }, ...answers('a')())(),
    () => wire.fail(409),
    [null, 'conflict'],
  ],
])('if %s the other one answers', async (_what, a, b, failures) => {
  Object.assign(site.scripts, { a, b });
  const seen = await site.stream(wanted);
  expect(seen.finishes).toEqual(['stop']);
  expect(seen.last.gateway_metadata!.attempts.map(({ failure }) => failure)).toEqual(failures);
  expect(seen.last.gateway_metadata!.attempts.map(({ hedges }) => hedges)).toEqual([false, true]);
});

test('if both fail, the next endpoint is tried, and none twice', async () => {
  site.scripts['a'] = once(site, 'b', { wait: 100 }, ...wire.fail(409));
  site.scripts['b'] = () => [{ wait: 20 }, ...wire.fail(409)];
  const sentBefore = ['a', 'b', 'c'].map((name) => site.sent(name).length);
  const seen = await site.stream(wanted);
  expect(seen.text).toBe('From c');
  expect(attemptsOf(seen)).toMatchObject([
    { provider: 'A', failure: 'conflict' },
    { provider: 'B', failure: 'conflict', hedges: true },
    { provider: 'C', failure: null, hedges: false },
  ]);
  expect(['a', 'b', 'c'].map((name) => site.sent(name).length)).toEqual(sentBefore.map((count) => count + 1));
});

test('a refusal of the request ends both attempts', async () => {
  site.scripts['a'] = once(site, 'b', ...wire.fail(400));
  site.scripts['b'] = silent;
  const sentBefore = site.sent('b').length;
  const response = await site.ask({ stream: true, ...wanted });
  const text = await response.text();
  expect(text).toContain('"code":400');
  expect(site.sent('b')).toHaveLength(sentBefore + 1);
  await site.exchanges('b').at(-1)!.closed;
});

test('a client that disconnects ends both attempts, and pays for neither', async () => {
  site.scripts['a'] = silent;
  site.scripts['b'] = silent;
  const sentBefore = site.sent('b').length;
  const left = new AbortController();
  const response = await site.ask({ stream: true, ...wanted }, { signal: left.signal });
  await vi.waitFor(() => expect(site.sent('b').length).toBe(sentBefore + 1), { timeout: 60_000 });
  left.abort();
  await Promise.all([site.exchanges('a').at(-1)!.closed, site.exchanges('b').at(-1)!.closed]);
  await site.expectSound();
  expect(await site.generation(response.headers.get('x-generation-id')!)).toMatchObject({
    outcome: 'cancelled',
    total_cost: 0,
    provider_responses: [{ failure: 'client_gone' }, { failure: 'client_gone', hedges: true }],
  });
});

test('soft budgets are hedged as well, with sliced holds or not', async () => {
  soft.scripts['a'] = silent;
  soft.scripts['b'] = answers('b');
  const seen = await soft.stream(wanted);
  expect([seen.text, attemptsOf(seen).length]).toEqual(['From b', 2]);
  soft.scripts['a'] = once(soft, 'b', ...answers('a')());
  soft.scripts['b'] = silent;
  expect((await soft.stream(wanted)).text).toBe('From a');
});

test('callers without limits are hedged as well', async () => {
  site.scripts['a'] = silent;
  const seen = await site.stream(wanted, { key: await site.key() });
  expect(seen.text).toBe('From b');
});

let words = 0;
/**
 * A call of `site` whose first endpoint is silent until `until`, which receives the call's own exchanges, and then
 * fails, so that it does not change the measured lateness. Several may run concurrently.
 */
async function callWithLate(
  first: string,
  body: object,
  until: (exchangeAt: (provider: string) => Exchange | undefined) => Promise<unknown>,
  options: { key?: string } = {},
): Promise<void> {
  const word = `${first} is late, call ${++words} ends`;
  const exchangeAt = (provider: string) => site.exchanges(provider).find((exchange) => exchange.body.includes(word));
  const ending = Promise.withResolvers<void>();
  late.set(word, ending.promise);
  for (const name of ['a', 'b', 'c', 'd']) {
    site.scripts[name] = ({ body }) => {
      const [word] = new RegExp(`${name} is late, call \\d+ ends`).exec(body) ?? [];
      if (word !== undefined) return [{ until: late.get(word)! }, ...wire.fail(409)];
      // Only a streamed call is answered by the events of a stream.
      return body.includes('"stream":true') ? answers(name)() : wire.fail(409);
    };
  }
  const messages = [{ role: 'user', content: word }];
  const response = site.ask({ stream: true, messages, ...body }, options).then((one) => one.text());
  try {
    await until(exchangeAt);
  } finally {
    ending.resolve();
    await response;
  }
}
const late = new Map<string, Promise<void>>();

/** Resolves when another endpoint has a request beside the first, which is silent until then. */
const isHedged = (body: object, options?: { key?: string }) =>
  callWithLate(
    'a',
    body,
    (exchangeAt) => vi.waitFor(() => expect(exchangeAt('b')).toBeDefined(), { timeout: 60_000, interval: 5 }),
    options,
  );

/** The latest time at which an endpoint counts as late: the published value is at least the measured one. */
async function lateAfterMs(one: FailoverSite, provider: string): Promise<number> {
  const headers = { authorization: `Bearer ${one.gateway.key}` };
  const response = await fetch(`${one.gateway.base_url}/models/wire/model/endpoints`, { headers });
  const { data } = (await response.json()) as {
    data: { endpoints: { tag: string; latency_last_30m: { p99: number } }[] };
  };
  const endpoint = data.endpoints.find(({ tag }) => tag === provider);
  return Math.max(HEDGE_MS_MIN, 1.1 * endpoint!.latency_last_30m.p99);
}

/** The time until a hedge starts has passed, as a later call that is hedged proves. */
async function haveBeenLate(one: FailoverSite, provider: string): Promise<void> {
  await sleep(await lateAfterMs(one, provider));
  await isHedged(wanted);
}

/** Whether the second endpoint gets a request while the first is late. */
async function isSentToSecond(body: object, [first, second]: [string, string], options?: { key?: string }) {
  let isSent = false;
  await callWithLate(
    first,
    body,
    async (exchangeAt) => {
      await vi.waitFor(() => expect(exchangeAt(first)).toBeDefined(), { timeout: 60_000, interval: 5 });
      await haveBeenLate(site, first);
      isSent = exchangeAt(second) !== undefined;
    },
    options,
  );
  return isSent;
}

test('the hedge does not wait for an endpoint that is late and fails', async () => {
  await isHedged(wanted);
});

test('no hedge starts if the limit does not pay for both', async () => {
  await isHedged(wanted, { key: await site.key(0.4) });
  expect(await isSentToSecond(wanted, ['a', 'b'], { key: await site.key(0.25) })).toBe(false);
});

describe('no hedge starts if', () => {
  const cases: [string, object, [string, string]?][] = [
    ['hedging is not enabled', {}],
    ['the client disables it', { provider: { hedge: false } }],
    ['fallbacks are not allowed', { provider: { hedge: true, allow_fallbacks: false, order: ['a', 'b'] } }],
    [
      'closing does not stop billing at the second endpoint',
      { provider: { hedge: true, order: ['a', 'd'] } },
      ['a', 'd'],
    ],
    [
      'closing does not stop billing at the first endpoint',
      { provider: { hedge: true, order: ['d', 'a'] } },
      ['d', 'a'],
    ],
    ['the answer is not streamed, since both would be billed in full', { stream: false, ...wanted }],
  ];
  let hedged: boolean[];
  beforeAll(async () => {
    hedged = await Promise.all(
      cases.map(([, body, names]) => {
        const { provider, ...rest } = body as { provider?: { order?: string[] } };
        const only = provider?.order ? { only: provider.order } : {};
        return isSentToSecond({ ...rest, provider: { ...provider, ...only } }, names ?? ['a', 'b']);
      }),
    );
  });

  test.each(cases.map(([title], at) => [title, at] as const))('%s', (_title, at) => {
    expect(hedged[at]).toBe(false);
  });
});

test('of many late calls only a share is hedged', async () => {
  for (const name of ['b', 'c', 'd']) thrifty.scripts[name] = answers(name);
  const failing = Promise.withResolvers<void>();
  thrifty.scripts['a'] = () => [{ until: failing.promise }, ...wire.fail(409)];
  const before = thrifty.sent('b').length;
  const sent = thrifty.sent('a').length;
  const answered = Promise.all(Array.from({ length: 20 }, () => thrifty.stream({})));
  await hasRequests(thrifty, 'a', sent + 20);
  // On a busy machine the first hedge takes longer than the delay at which calls are late.
  await hasRequests(thrifty, 'b', before + 1);
  await haveBeenLate(thrifty, 'a');
  const hedged = thrifty.sent('b').length - before;
  failing.resolve();
  expect((await answered).every(({ text }) => text === 'From b')).toBe(true);
  expect(hedged).toBeLessThanOrEqual(3);
  await thrifty.expectSound();
});
