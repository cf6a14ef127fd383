import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { createRateModel } from '../../../test/ledger/rate-store.ts';
import { StoreWait } from '../../http/store-wait.ts';
import { limits } from '../../limits.ts';
import type { Candidate } from '../../routing/candidate.ts';
import type { RateAmounts, RateAnswer, RateAsk, RateRules } from '../../schemas/rate-limit.ts';
import type { Call } from '../call.ts';
import { createRateLimits, type RateLimits } from './rate-limits.ts';

const amounts = (requestsPerMinute?: number, tokensPerMinute?: number): RateAmounts => ({
  requests_per_minute: requestsPerMinute,
  tokens_per_minute: tokensPerMinute,
});
const running: RateLimits[] = [];
afterEach(async () => {
  for (const rates of running.splice(0)) await rates.stop();
});

/** Rate limits over a store that a test can delay. */
function setUp(rules: Partial<RateRules>) {
  const model = createRateModel();
  const sentAsks: RateAsk[] = [];
  let way = async () => {};
  const nowMs = 1_800_000_000_000 - (1_800_000_000_000 % 60_000) + 10_000;
  const begun = performance.now();
  const warnings: string[] = [];
  let all: RateRules = {
    ...{ per_key: amounts(), per_model: amounts(), per_key_and_model: amounts() },
    ...{ keys: new Map(), models: new Map(), free_models: undefined, uncounted: 'refuse' as const, ...rules },
  };
  const rates = createRateLimits({
    rules: () => all,
    store: {
      async ask(asks, at): Promise<RateAnswer[]> {
        if (new Set(asks.map(({ id }) => id)).size < asks.length) throw new Error('a counter is named twice');
        sentAsks.push(...asks);
        await way();
        return model.ask(asks, at);
      },
      sweep: async () => {},
    },
    clock: { nowMs: () => nowMs + Math.floor(performance.now() - begun), monotonicMs: () => performance.now() },
    log: { warn: (_facts, message) => void warnings.push(message) },
    metrics: { rateLimited: () => {} },
  });
  running.push(rates);
  const call = ({ key_hash = 'one', store_wait, ...more }: { key_hash?: string; store_wait?: StoreWait } = {}) => {
    const principal = { key_hash, organization_id: 'org', budgets: [] };
    const request = { messages: [{ role: 'user', content: 'hello there' }], ...more };
    return { principal, store_wait, request } as unknown as Call;
  };
  const open = async (more: object = {}) =>
    (await rates.open({ call: call(more), plan: { attempts: [at('a')] }, variants: undefined }))!;
  const outcome = (more: object = {}) =>
    open(more).then(
      (reservation) => reservation,
      (error: { status: number }) => error.status,
    );
  const hold = (next: () => Promise<void>) => {
    way = next;
  };
  const change = (to: Partial<RateRules>) => {
    all = { ...all, ...to };
  };
  return { sentAsks, warnings, open, outcome, hold, change };
}

const at = (id: string) => ({ model: { id }, endpoint: { pricing: { prompt: 1 } } }) as unknown as Candidate;

test('a node with recent counts rarely queries the store, and hardly at all after a refusal', async () => {
  const { sentAsks, outcome } = setUp({ per_key: amounts(5_000) });
  for (let n = 0; n < 2_000; n += 1) expect(typeof (await outcome())).toBe('object');
  expect(sentAsks.length).toBeLessThan(60);
  const outcomes = await Promise.all(Array.from({ length: 5_000 }, () => outcome()));
  expect(outcomes.filter((one) => one === 429)).toHaveLength(2_000);
  const before = sentAsks.length;
  for (let n = 0; n < 500; n += 1) expect(await outcome()).toBe(429);
  expect(sentAsks.length - before).toBeLessThan(10);
});

test('many simultaneous calls are counted with few requests to the store', async () => {
  const { sentAsks, outcome, hold } = setUp({ per_key: amounts(100) });
  hold(() => sleep(5));
  const outcomes = await Promise.all(Array.from({ length: 300 }, () => outcome()));
  expect(outcomes.filter((one) => one === 429)).toHaveLength(200);
  expect(sentAsks.length).toBeLessThan(10);
});

test('a store that hangs delays calls for a bounded time, and its late answer is used', async () => {
  const { sentAsks, warnings, outcome, hold } = setUp({ per_key: amounts(10) });
  const held = Promise.withResolvers<void>();
  hold(() => held.promise);
  const began = performance.now();
  expect(await outcome()).toBe(503);
  expect(await outcome()).toBe(503);
  expect(performance.now() - began).toBeLessThan(2_000);
  expect(sentAsks).toHaveLength(1);
  expect(warnings).toHaveLength(1);
  held.resolve();
  await sleep(5);
  expect(typeof (await outcome())).toBe('object');
  expect(sentAsks).toHaveLength(1);
});

test('a call that has used up its wait for the store is refused, and the next one is counted', async () => {
  const { sentAsks, warnings, outcome, hold } = setUp({ per_key: amounts(10) });
  const held = Promise.withResolvers<void>();
  hold(() => held.promise);
  expect(await outcome({ store_wait: new StoreWait(0, () => 0) })).toBe(503);
  expect([sentAsks.length, warnings.length]).toEqual([1, 0]);
  const next = outcome({ store_wait: new StoreWait(60_000, () => 0) });
  held.resolve();
  expect(typeof (await next)).toBe('object');
  expect(sentAsks).toHaveLength(1);
});

test('a store that fails is queried again later', async () => {
  const { outcome, hold } = setUp({ per_key: amounts(10) });
  hold(() => Promise.reject(new Error('no')));
  expect(await outcome()).toBe(503);
  hold(async () => {});
  expect(await outcome()).toBe(503);
  await expect.poll(outcome, { interval: 100 }).not.toBe(503);
});

test('a call that cannot be counted is admitted if the operator allows it, and its release has no effect', async () => {
  const { outcome, hold } = setUp({ per_key: amounts(1), uncounted: 'allow' });
  hold(() => Promise.reject(new Error('no')));
  for (let n = 0; n < 5; n += 1) {
    const reservation = await outcome();
    if (typeof reservation === 'number') throw new Error(`refused with ${reservation}`);
    reservation.release();
  }
});

test('a call that is released does not count; a call that was sent counts, whatever its outcome', async () => {
  const { open, outcome } = setUp({ per_key: amounts(2) });
  for (let n = 0; n < 5; n += 1) (await open()).release();
  (await open()).commitInFull();
  (await open()).commit(0, undefined);
  expect(await outcome()).toBe(429);
});

test('a call counts once at each model for which it acquires', async () => {
  const { open } = setUp({ per_model: amounts(2) });
  for (const reservation of [await open(), await open()]) {
    await Promise.all([reservation.acquire(at('a')), reservation.acquire(at('a'))]);
    await reservation.acquire(at('a'));
  }
  const third = await open();
  await expect(third.acquire(at('a'))).rejects.toMatchObject({ status: 429 });
  await expect(third.acquire(at('a'))).rejects.toMatchObject({ status: 429 });
  await third.acquire(at('b'));
});

test('a refusal by one limit takes no units of another', async () => {
  const { open, outcome } = setUp({ per_key: amounts(10, 100) });
  const wide = await open({ max_tokens: 90 });
  for (let n = 0; n < 20; n += 1) expect(await outcome({ max_tokens: 50 })).toBe(429);
  wide.commit(0, 'a');
  for (let n = 0; n < 9; n += 1) (await open({ max_tokens: 50 })).commit(0, 'a');
  expect(await outcome()).toBe(429);
});

test('tokens above the reservation count when they are known', async () => {
  const { open, outcome } = setUp({ per_key: amounts(undefined, 1_000) });
  (await open()).commit(995, 'a');
  expect(await outcome()).toBe(429);
});

test('no tokens count at a model that did not answer', async () => {
  const { open } = setUp({ per_model: amounts(undefined, 100) });
  const reservation = await open({ max_tokens: 80 });
  await reservation.acquire(at('a'));
  await reservation.acquire(at('b'));
  reservation.commit(90, 'b');
  const next = await open({ max_tokens: 80 });
  await next.acquire(at('a'));
  await expect(next.acquire(at('b'))).rejects.toMatchObject({ status: 429 });
});

test('with more counters than the bound, none in use is deleted, and each has one request to the store at a time', {
  timeout: 30_000,
}, async () => {
  const { outcome, hold } = setUp({ per_key: amounts(2) });
  const keyed = (keyHash: string) => outcome({ key_hash: keyHash });
  expect(typeof (await keyed('first'))).toBe('object');
  for (let n = 1; n < limits.rate_counters_max - 1; n += 1) await keyed(`other ${n}`);
  const held = Promise.withResolvers<void>();
  hold(() => held.promise);
  // The oldest counter waits for the store when another one is added.
  const outcomes = [keyed('busy'), keyed('first'), keyed('one more'), keyed('first'), keyed('first')];
  await sleep(5);
  held.resolve();
  const ends = await Promise.all(outcomes);
  expect(ends.map((end) => (typeof end === 'number' ? end : 200))).toEqual([200, 200, 200, 429, 429]);
});

test('changed rules apply to the next call, and used units still count', async () => {
  const { outcome, change } = setUp({ per_key: amounts(2) });
  const refusals = async (count: number) => {
    const outcomes = [];
    for (let n = 0; n < count; n += 1) outcomes.push((await outcome()) === 429);
    return outcomes;
  };
  expect(await refusals(3)).toEqual([false, false, true]);
  change({ per_key: amounts(4) });
  // A refusal is cached for a short time.
  await expect.poll(async () => (await refusals(1))[0]).toBe(false);
  expect(await refusals(2)).toEqual([false, true]);
  change({ per_key: amounts() });
  expect(await refusals(3)).toEqual([false, false, false]);
});
