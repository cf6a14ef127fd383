import OpenAI from 'openai';
import { afterEach, expect, test } from 'vitest';
import { sandboxModels, sandboxProviders, sandboxVectorModels } from '../../sandbox/catalog.ts';
import { type Sandbox, startSandbox } from '../../sandbox/server.ts';
import type { Clock } from '../../src/inference/call.ts';
import { creditStore } from '../../src/storage/credits.ts';
import { openDatabase } from '../../src/storage/database.ts';
import { startGateway, type TestGateway, type TestGatewayOptions } from '../harness.ts';
import { describeStores } from './store-variants.ts';

const cleanups: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanups.splice(0).reverse()) await cleanUp();
});

const free = { pricing: { prompt: 0, completion: 0 }, provider: 'sandbox', upstream_model: 'echo' };
const models = {
  ...sandboxModels,
  ...sandboxVectorModels,
  'acme/echo:free': { endpoints: [free] },
  'acme/both': {
    endpoints: [
      { ...free, variant: 'gratis' },
      { ...free, pricing: { prompt: 1, completion: 1 } },
    ],
  },
  'acme/story:free': { endpoints: [{ ...free, upstream_model: 'story' }] },
};

async function sandboxOf(): Promise<Sandbox> {
  const sandbox = await startSandbox();
  cleanups.push(() => sandbox.stop());
  return sandbox;
}

async function gatewayOf(sandbox: Sandbox, rateLimits: object | undefined, options: TestGatewayOptions = {}) {
  const file = { bundled_catalog: false, providers: sandboxProviders(sandbox.url), models, rate_limits: rateLimits };
  const gateway = await startGateway({ yaml: JSON.stringify(file), ...options });
  cleanups.push(() => gateway.stop());
  return gateway;
}

/** The machine's time, set to some seconds of a minute and advanced by the test. */
function clockAt(second: number): Clock & { pass(ms: number): void } {
  const nowMs = Date.now();
  let offsetMs = second * 1_000 - (nowMs % 60_000);
  return {
    nowMs: () => Date.now() + offsetMs,
    monotonicMs: () => performance.now(),
    pass: (ms) => {
      offsetMs += ms;
    },
  };
}

interface Outcome {
  status: number;
  headers: Record<string, string | null>;
  error: { code: number; message: string; metadata: Record<string, unknown> } | undefined;
  model: string | undefined;
}

const shown = ['retry-after', 'x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset', 'x-should-retry'];

async function ask(
  gateway: TestGateway,
  body: object,
  key = gateway.key,
  path = '/chat/completions',
): Promise<Outcome> {
  const answer = await gateway.call('POST', path, body, { authorization: `Bearer ${key}` });
  const { error, model } = (await answer.json()) as Pick<Outcome, 'error' | 'model'>;
  const headers = Object.fromEntries(shown.map((name) => [name, answer.headers.get(name)]));
  return { status: answer.status, headers, error, model };
}

const manager = ({ management_key }: TestGateway) => ({ authorization: `Bearer ${management_key}` });
const messages = [{ role: 'user', content: 'hello there' }];
const chat = (model = 'sandbox/echo', more: object = {}) => ({ model, messages, max_tokens: 20, ...more });
const statuses = async (count: number, work: () => Promise<Outcome>) => {
  const statuses: number[] = [];
  for (let n = 0; n < count; n += 1) statuses.push((await work()).status);
  return statuses;
};

test('one request beyond the limit of a key is a 429, with the limit in headers and body, until the next minute', async () => {
  const clock = clockAt(20);
  const sandbox = await sandboxOf();
  const rateLimits = {
    per_key: { requests_per_minute: 3 },
    keys: { 'of its own': { requests_per_minute: 'unlimited' } },
  };
  const gateway = await gatewayOf(sandbox, rateLimits, { clock });
  const made = await gateway.call('POST', '/keys', { name: 'of its own' }, manager(gateway));
  const { key: other } = (await made.json()) as { key: string };

  // Requests that are refused for other reasons do not count.
  expect(await statuses(4, () => ask(gateway, chat('no/such')))).toEqual([400, 400, 400, 400]);
  expect((await ask(gateway, chat())).headers).toEqual(Object.fromEntries(shown.map((name) => [name, null])));
  const vectors = { model: 'sandbox/embed', input: 'hello' };
  expect((await ask(gateway, vectors, gateway.key, '/embeddings')).status).toBe(200);
  expect((await ask(gateway, chat())).status).toBe(200);

  const beforeMs = clock.nowMs();
  const refused = await ask(gateway, chat());
  const resetMs = beforeMs - (beforeMs % 60_000) + 60_000;
  const headers = { 'X-RateLimit-Limit': '3', 'X-RateLimit-Remaining': '0', 'X-RateLimit-Reset': String(resetMs) };
  expect(refused).toMatchObject({
    status: 429,
    headers: { 'x-ratelimit-limit': '3', 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': String(resetMs) },
    error: {
      code: 429,
      message: 'Rate limit exceeded: key-requests-per-min. This API key may use 3 requests a minute',
      metadata: { headers, provider_name: null },
    },
  });
  const waitS = Number(refused.headers['retry-after']);
  expect(waitS).toBeGreaterThanOrEqual((resetMs - clock.nowMs()) / 1_000 - 1);
  expect(waitS).toBeLessThanOrEqual((resetMs - beforeMs) / 1_000 + 1);
  expect((await ask(gateway, vectors, gateway.key, '/embeddings')).status).toBe(429);
  expect(await statuses(5, () => ask(gateway, chat(), other))).toEqual([200, 200, 200, 200, 200]);
  expect(await (await fetch(`${gateway.url}/metrics`)).text()).toMatch(
    /gateway_rate_limited_total\{limit="key-requests-per-min"\} 2/,
  );

  clock.pass(60_000);
  expect(await statuses(4, () => ask(gateway, chat()))).toEqual([200, 200, 200, 429]);
});

test('a model at its limit falls back to the next of `models`; without one it is a 429', async () => {
  const sandbox = await sandboxOf();
  const rateLimits = { models: { 'sandbox/ec*': { requests_per_minute: 2 } }, per_key: { requests_per_minute: 6 } };
  const gateway = await gatewayOf(sandbox, rateLimits, { clock: clockAt(20) });
  expect(await statuses(2, () => ask(gateway, chat()))).toEqual([200, 200]);
  const before = sandbox.requests().requests;
  const refused = await ask(gateway, chat());
  expect(refused).toMatchObject({
    status: 429,
    error: { message: expect.stringContaining('model-requests-per-min. All requests for sandbox/echo together') },
  });
  expect(sandbox.requests().requests).toBe(before);
  const answer = await gateway.call('POST', '/chat/completions', chat('sandbox/echo', { models: ['sandbox/story'] }), {
    'x-gateway-experimental-metadata': 'enabled',
  });
  expect(await answer.json()).toMatchObject({ model: 'sandbox/story' });
  // Refused requests do not count against the key: two, one by the second model, three more.
  expect(await statuses(4, () => ask(gateway, chat('sandbox/story')))).toEqual([200, 200, 200, 429]);
});

test('a fallback at its limit reports the failures before it', async () => {
  const rateLimits = { models: { 'sandbox/echo': { requests_per_minute: 1 } } };
  const gateway = await gatewayOf(await sandboxOf(), rateLimits, { clock: clockAt(20) });
  expect((await ask(gateway, chat())).status).toBe(200);
  const refused = await ask(gateway, chat('sandbox/fail-503', { models: ['sandbox/echo'] }));
  expect(refused).toMatchObject({
    status: 429,
    error: { metadata: { previous_errors: [{ code: 503 }, { code: 503 }], headers: { 'X-RateLimit-Limit': '1' } } },
  });
});

test('tokens are counted as used; the bound of a request is reserved meanwhile', async () => {
  const clock = clockAt(10);
  const gateway = await gatewayOf(await sandboxOf(), { per_key: { tokens_per_minute: 1_000 } }, { clock });
  // Each call uses about ten tokens: all fit, although each reserves most of the minute's tokens.
  const wide = chat('sandbox/echo', { max_tokens: 900 });
  expect(await statuses(5, () => ask(gateway, wide))).toEqual([200, 200, 200, 200, 200]);
  expect(await statuses(1, () => ask(gateway, chat('sandbox/echo', { max_tokens: 5_000 })))).toEqual([429]);

  // Without a bound, the answer counts when it has arrived: calls in progress may exceed the minute.
  const words = Array.from({ length: 400 }, (_, index) => `word${index}`).join(' ');
  const long = { model: 'sandbox/echo', messages: [{ role: 'user', content: words }], stream: true };
  const streamed = await gateway.call('POST', '/chat/completions', long);
  expect(streamed.status).toBe(200);
  expect(await streamed.text()).toContain('[DONE]');
  const refused = await ask(gateway, { model: 'sandbox/echo', messages: long.messages });
  expect(refused).toMatchObject({ status: 429, error: { message: expect.stringContaining('key-tokens-per-min') } });
  expect(refused.headers['retry-after']).not.toBeNull();

  const larger = { model: 'sandbox/echo', messages: [{ role: 'user', content: `${words} ${words} ${words}` }] };
  const never = await ask(gateway, larger);
  expect(never).toMatchObject({ status: 429, headers: { 'x-should-retry': 'false', 'x-ratelimit-limit': '1000' } });
  expect(never.headers).toMatchObject({
    'retry-after': expect.stringMatching(/^\d+$/),
    'x-ratelimit-reset': refused.headers['x-ratelimit-reset'],
  });
  expect(never.error?.message).toMatch(/the prompt of this request alone counts \d+/);

  clock.pass(60_000);
  expect(await statuses(1, () => ask(gateway, chat('sandbox/echo', { max_tokens: 5_000 })))).toEqual([200]);
});

test('free models have the limits of the public service, shared by all keys of an organization', async () => {
  const clock = clockAt(20);
  const gateway = await gatewayOf(await sandboxOf(), undefined, { clock });
  expect(new Set(await statuses(20, () => ask(gateway, chat('acme/echo:free'))))).toEqual(new Set([200]));
  expect(await ask(gateway, chat('acme/story:free'))).toMatchObject({
    status: 429,
    headers: { 'x-ratelimit-limit': '20', 'x-ratelimit-remaining': '0' },
    error: { message: 'Rate limit exceeded: free-models-per-min.' },
  });
  expect((await ask(gateway, chat('acme/both:free'))).status).toBe(429);
  expect((await ask(gateway, chat('acme/both'))).status).toBe(200);
  expect((await ask(gateway, chat('sandbox/echo'))).status).toBe(200);
  clock.pass(60_000);
  expect((await statuses(20, () => ask(gateway, chat('acme/echo:free')))).includes(429)).toBe(false);
  clock.pass(60_000);
  expect((await statuses(10, () => ask(gateway, chat('acme/echo:free')))).includes(429)).toBe(false);
  const dayMs = 86_400_000;
  expect(await ask(gateway, chat('acme/echo:free'))).toMatchObject({
    status: 429,
    headers: {
      'x-ratelimit-limit': '50',
      'x-ratelimit-reset': String(clock.nowMs() - (clock.nowMs() % dayMs) + dayMs),
    },
    error: {
      message: 'Rate limit exceeded: free-models-per-day. Add 10 credits to unlock 1000 free model requests per day',
    },
  });
  clock.pass(dayMs);
  expect((await ask(gateway, chat('acme/echo:free'))).status).toBe(200);

  const off = await gatewayOf(await sandboxOf(), { free_models: 'off' }, { clock });
  expect((await statuses(25, () => ask(off, chat('acme/echo:free')))).includes(429)).toBe(false);
});

test('granted credits unlock more requests for free models', async () => {
  const freeModels = { requests_per_minute: 1_000, requests_per_day: 2, requests_per_day_funded: 4 };
  const gateway = await gatewayOf(await sandboxOf(), { free_models: freeModels }, { clock: clockAt(20) });
  const database = await openDatabase({ data_dir: gateway.data_dir });
  cleanups.push(() => database.close());
  const { organization_id } = await database.queries
    .selectFrom('api_keys')
    .select('organization_id')
    .where('hash', '=', gateway.key_hash)
    .executeTakeFirstOrThrow();
  const grant = { organization_id, amount_nano: 9_990_000_000, reason: 'a start', at: new Date().toISOString() };
  await creditStore(database.queries).grant(grant);
  const free = () => ask(gateway, chat('acme/echo:free'));
  expect(await statuses(2, free)).toEqual([200, 200]);
  expect(await free()).toMatchObject({ status: 429, headers: { 'x-ratelimit-limit': '2' } });
  await creditStore(database.queries).grant({ ...grant, amount_nano: 10_000_000 });
  // Longer than the key and the refusal are cached.
  await gateway.call('PATCH', `/keys/${gateway.key_hash}`, { name: 'other' }, manager(gateway));
  await expect.poll(async () => (await free()).status).toBe(200);
  expect(await statuses(2, free)).toEqual([200, 429]);
  expect((await free()).error?.message).toBe('Rate limit exceeded: free-models-per-day-high-balance.');
});

test('the official SDK waits as long as the response says, and then succeeds', async () => {
  const clock = clockAt(20);
  const gateway = await gatewayOf(await sandboxOf(), { per_key: { requests_per_minute: 1 } }, { clock });
  const seen: number[] = [];
  const client = new OpenAI({
    baseURL: gateway.base_url,
    apiKey: gateway.key,
    maxRetries: 2,
    fetch: async (url, init) => {
      const answer = await fetch(url, init);
      seen.push(answer.status);
      return answer;
    },
  });
  const request = { model: 'sandbox/echo', messages: [{ role: 'user' as const, content: 'hello there' }] };
  await client.chat.completions.create(request);
  clock.pass(60_000 - (clock.nowMs() % 60_000) - 1_500);
  const beganMs = performance.now();
  const answer = await client.chat.completions.create(request);
  expect(answer.choices[0]?.message.content).toBe('hello there');
  expect(seen).toEqual([200, 429, 200]);
  expect(performance.now() - beganMs).toBeGreaterThan(1_000);
  await expect(
    new OpenAI({ baseURL: gateway.base_url, apiKey: gateway.key, maxRetries: 0 }).chat.completions.create(request),
  ).rejects.toBeInstanceOf(OpenAI.RateLimitError);
});

test('calls that cannot be counted are refused, or allowed if the operator configures that', async () => {
  const sandbox = await sandboxOf();
  const perKey = { requests_per_minute: 5 };
  const strict = await gatewayOf(sandbox, { per_key: perKey });
  const open = await gatewayOf(sandbox, { per_key: perKey, uncounted: 'allow' });
  for (const { data_dir } of [strict, open]) {
    const database = await openDatabase({ data_dir });
    await database.queries.schema.alterTable('rate_windows').renameTo('gone').execute();
    await database.close();
  }
  expect(await ask(strict, chat())).toMatchObject({ status: 503, headers: { 'retry-after': '1' } });
  expect(new Set(await statuses(8, () => ask(open, chat())))).toEqual(new Set([200]));
});

describeStores('two nodes', ({ freshUrl }) => {
  test('together never exceed the limit, and return what they do not use', {
    timeout: 180_000,
  }, async () => {
    const url = await freshUrl();
    const environment: Record<string, string> = url === undefined ? {} : { DATABASE_URL: url };
    const sandbox = await sandboxOf();
    const rateLimits = { free_models: { requests_per_minute: 100_000, requests_per_day: 150 } };
    const one = await gatewayOf(sandbox, rateLimits, { environment });
    const shared = url === undefined ? { data_dir: one.data_dir } : {};
    const other = await gatewayOf(sandbox, rateLimits, { environment, ...shared });
    const burst = async (count: number) => {
      const statuses = await Promise.all(
        Array.from({ length: count }, (_, index) => ask(index % 2 ? one : other, chat('acme/echo:free'), one.key)),
      );
      return statuses.filter(({ status }) => status === 200).length;
    };
    const used = async () => {
      const database = await openDatabase({ data_dir: one.data_dir, database_url: url });
      const rows = await database.queries.selectFrom('rate_windows').select(['id', 'used']).execute();
      await database.close();
      return rows.find(({ id }) => id.endsWith('/day'))?.used;
    };
    expect(await burst(40)).toBe(40);
    await expect.poll(used).toBe(40);
    expect(await burst(60)).toBe(60);
    const last = await burst(200);
    expect(last).toBeLessThanOrEqual(50);
    expect(last).toBeGreaterThanOrEqual(40);
    await expect.poll(used).toBe(100 + last);
  });
});
