/**
 * Embeddings that take several requests to a provider, through a running gateway and a scripted upstream: the requests,
 * the charge if a part fails, the hold, and the cost of a client that disconnects.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { EMBEDDING_REQUESTS_AT_ONCE_MAX } from '../../src/inference/operations/embeddings.ts';
import { limits } from '../../src/limits.ts';
import { startGateway, type TestGateway } from '../harness.ts';
import { type Exchange, responseHead, type Step, startWireServer, type WireServer } from './wire-server.ts';

type Script = (exchange: Exchange, nth: number) => Step[];

let wire: WireServer;
let gateway: TestGateway;
let script: Script;

/** A thousandth of a USD a token. */
const pricing = { prompt: 1000 };

async function start(ledger: object, timeouts: object = {}): Promise<TestGateway> {
  const provider = (name: string, batch: object = {}) => ({
    name,
    dialect: 'openai-chat',
    base_url: wire.url,
    quirks: { embedding_batch: { inputs_max: 3, ...batch } },
  });
  const model = (...names: string[]) => ({
    output_modalities: ['embeddings'],
    endpoints: names.map((name, at) => ({
      provider: name,
      upstream_model: name,
      pricing: { prompt: pricing.prompt + at },
    })),
  });
  const file = {
    bundled_catalog: false,
    timeouts: { upstream_headers_ms_max: 400, upstream_idle_ms_max: 400, ...timeouts },
    logging: { level: 'warn' },
    providers: {
      one: provider('One'),
      two: provider('Two'),
      tokens: provider('Tokens', { inputs_max: 100, tokens_max: 20 }),
    },
    models: { 'wire/one': model('one'), 'wire/both': model('one', 'two'), 'wire/tokens': model('tokens') },
    ledger: { journal_sync: 'os', ...ledger },
  };
  return startGateway({ yaml: JSON.stringify(file) });
}

beforeAll(async () => {
  wire = await startWireServer((exchange, nth) => script(exchange, nth));
  gateway = await start({});
});
afterAll(async () => {
  await gateway.stop();
  await wire.stop();
});
beforeEach(() => {
  wire.exchanges.length = 0;
  script = answer;
});

const sent = ({ body }: Exchange) => JSON.parse(body) as { model: string; input: string[] };

/** One token an input; the vector identifies its input. */
function body(exchange: Exchange): string {
  const { input } = sent(exchange);
  const data = input.map((text, index) => ({ index, embedding: [Number(text), 1] }));
  return JSON.stringify({ data: data.toReversed(), usage: { prompt_tokens: input.length } });
}
const answer: Script = (exchange) => [responseHead(200, 'application/json'), body(exchange), 'END'];
const fail = (status: number): Step[] => [
  responseHead(status, 'application/json'),
  '{"error":{"message":"no"}}',
  'END',
];

const numbers = (count: number) => Array.from({ length: count }, (_, at) => String(at + 1));

async function embed(model: string, input: string[], key = gateway.key, of = gateway) {
  const answered = await of.call(
    'POST',
    '/embeddings',
    { model, input },
    {
      authorization: `Bearer ${key}`,
      'x-gateway-experimental-metadata': 'enabled',
    },
  );
  const read = (await answered.json()) as {
    data: { embedding: number[] }[];
    usage: { prompt_tokens: number; cost: number };
    gateway_metadata: { attempts: { status: number }[] };
    error: { message: string; metadata: Record<string, unknown> };
  };
  return { status: answered.status, id: answered.headers.get('x-generation-id')!, body: read };
}

async function record(id: string) {
  const answered = await gateway.call('GET', `/generation?id=${id}`);
  return ((await answered.json()) as { data: Record<string, unknown> }).data;
}

async function limitedKey(limit: number, of = gateway): Promise<{ key: string; hash: string }> {
  const made = await of.call(
    'POST',
    '/keys',
    { name: 'limited', limit },
    { authorization: `Bearer ${of.management_key}` },
  );
  const { key, data } = (await made.json()) as { key: string; data: { hash: string } };
  return { key, hash: data.hash };
}

async function usageOf(hash: string, of = gateway): Promise<{ usage: number; limit_remaining: number }> {
  const shown = await of.call('GET', `/keys/${hash}`, undefined, { authorization: `Bearer ${of.management_key}` });
  return ((await shown.json()) as { data: { usage: number; limit_remaining: number } }).data;
}

describe('batches', () => {
  test('inputs beyond the bound are sent in further requests, and returned in order, as one generation', async () => {
    const { status, id, body: made } = await embed('wire/one', numbers(10));
    expect(status).toBe(200);
    expect(wire.exchanges.map((exchange) => sent(exchange).input.length).sort()).toEqual([1, 3, 3, 3]);
    expect(made.data.map(({ embedding }) => embedding[0])).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    expect(made.usage).toMatchObject({ prompt_tokens: 10, total_tokens: 10 });
    expect(made.usage.cost).toBeCloseTo(0.01, 9);
    expect(made.gateway_metadata.attempts).toHaveLength(1);
    expect(await record(id)).toMatchObject({ tokens_prompt: 10, total_cost: 0.01 });
  });

  test('inputs with tokens beyond the bound are divided as well, and one that is too long by itself is sent alone', async () => {
    const long = 'lorem ipsum dolor sit amet '.repeat(10);
    script = (exchange) => {
      const { input } = sent(exchange);
      const data = input.map((_, index) => ({ index, embedding: [1] }));
      return [responseHead(200, 'application/json'), JSON.stringify({ data }), 'END'];
    };
    const { status } = await embed('wire/tokens', ['short', long, 'a', 'b', 'c']);
    expect(status).toBe(200);
    expect(wire.exchanges.map((exchange) => sent(exchange).input.length).sort()).toEqual([1, 1, 3]);
  });

  test('at most a bound of requests run at a time', async () => {
    let [open, most] = [0, 0];
    script = (exchange) => {
      open += 1;
      most = Math.max(most, open);
      void exchange.closed.then(() => (open -= 1));
      return [{ wait: 20 }, ...answer(exchange, 0)];
    };
    const { status } = await embed('wire/one', numbers(60));
    expect(status).toBe(200);
    expect(most).toBeLessThanOrEqual(EMBEDDING_REQUESTS_AT_ONCE_MAX);
    expect(most).toBeGreaterThan(1);
  });
});

test('inputs that need too many requests are a 400 before any is sent', async () => {
  const { status, body: made } = await embed('wire/one', numbers(3 * limits.embedding_requests_max + 1));
  expect([status, made.error.message]).toEqual([
    400,
    'At this endpoint this number of inputs needs 2049 requests, more than 2048',
  ]);
  expect(wire.exchanges).toHaveLength(0);
});

describe('a batch that fails', () => {
  test('the next endpoint starts again, and the first is charged only for what it billed until then', async () => {
    script = (exchange, nth) => {
      const { model, input } = sent(exchange);
      return model === 'one' && input[0] === '4' ? [{ wait: 50 }, ...fail(500)] : answer(exchange, nth);
    };
    const { status, id, body: made } = await embed('wire/both', numbers(9));
    expect(status).toBe(200);
    expect(made.data.map(({ embedding }) => embedding[0])).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect(made.gateway_metadata.attempts.map(({ status }) => status)).toEqual([500, 200]);
    // Nine at the second; two of the first's three requests were answered.
    expect(made.usage.cost).toBeCloseTo(9 * 0.001001, 9);
    const shown = await record(id);
    expect(shown['total_cost']).toBeCloseTo(6 * 0.001 + 9 * 0.001001, 9);
    expect(shown['tokens_prompt']).toBe(9);
  });

  test('without another endpoint the client gets the failure, and the key is charged the billed part', async () => {
    const { key, hash } = await limitedKey(100);
    script = (exchange, nth) =>
      sent(exchange).input[0] === '1' ? [{ wait: 50 }, ...fail(429)] : answer(exchange, nth);
    const { status, id } = await embed('wire/one', numbers(6), key);
    expect(status).toBe(429);
    expect((await record(id))['total_cost']).toBeCloseTo(0.003, 9);
    expect((await usageOf(hash)).usage).toBeCloseTo(0.003, 9);
  });

  test('after a failure no further request is begun', async () => {
    script = () => fail(500);
    await embed('wire/one', numbers(90));
    expect(wire.exchanges.length).toBeLessThanOrEqual(EMBEDDING_REQUESTS_AT_ONCE_MAX);
  });

  test('a request with an unknown end is charged its hold', async () => {
    const { key, hash } = await limitedKey(1_000);
    script = (exchange, nth) => (sent(exchange).input[0] === '1' ? ['DESTROY'] : answer(exchange, nth));
    const { status } = await embed('wire/one', numbers(6), key);
    expect(status).toBe(502);
    const { usage } = await usageOf(hash);
    // By bytes: more than the six tokens of all inputs.
    expect(usage).toBeGreaterThan(0.006);
    expect(usage).toBeLessThan(1);
  });

  test('a request with an unknown end beside a refused one is charged its hold', async () => {
    const { key, hash } = await limitedKey(1_000);
    script = (exchange, nth) => {
      const [first] = sent(exchange).input;
      if (first === '1') return ['DESTROY'];
      return first === '4' ? [{ wait: 60 }, ...fail(429)] : answer(exchange, nth);
    };
    expect((await embed('wire/one', numbers(6), key)).status).toBe(502);
    expect((await usageOf(hash)).usage).toBeGreaterThan(0.006);
  });

  test('an answer with a missing vector is a failure, and is charged', async () => {
    script = () => [
      responseHead(200, 'application/json'),
      JSON.stringify({ data: [{ index: 0, embedding: [1] }], usage: { prompt_tokens: 2 } }),
      'END',
    ];
    const { status, id, body: made } = await embed('wire/one', numbers(2));
    expect(status).toBe(502);
    expect(made.error.message).toContain('1 vectors for 2 inputs');
    expect((await record(id))['total_cost']).toBeCloseTo(0.002, 9);
  });

  test.each([
    [
      'a repeated index',
      [
        { index: 0, embedding: [1] },
        { index: 0, embedding: [1] },
      ],
    ],
    [
      'a null among the numbers',
      [
        { index: 0, embedding: [1, null] },
        { index: 1, embedding: [1, 2] },
      ],
    ],
  ])('an answer with %s is a failure, and is charged', async (_, data) => {
    script = () => [
      responseHead(200, 'application/json'),
      JSON.stringify({ data, usage: { prompt_tokens: 2 } }),
      'END',
    ];
    const { status, id, body: made } = await embed('wire/one', numbers(2));
    expect(status).toBe(502);
    expect(made.error.message).toContain('not have one vector for each input');
    expect((await record(id))['total_cost']).toBeCloseTo(0.002, 9);
  });

  test('an answer without numbers is a failure', async () => {
    script = () => [responseHead(200, 'application/json'), '{"data":[{"index":0,"embedding":["NaN"]}]}', 'END'];
    expect((await embed('wire/one', ['1'])).status).toBe(502);
  });
});

describe('under spend limits', () => {
  test('a call is a 402 before anything is sent if the limit does not pay for the worst case', async () => {
    const { key } = await limitedKey(0.01);
    const { status, body: made } = await embed('wire/one', numbers(6), key);
    expect(status).toBe(402);
    expect(made.error.message).toContain('limit');
    expect(wire.exchanges).toHaveLength(0);
  });

  test('a limit that pays for it is charged once, for the usage, and keeps the rest', async () => {
    const { key, hash } = await limitedKey(5);
    const { status } = await embed('wire/one', numbers(6), key);
    expect(status).toBe(200);
    const { usage, limit_remaining } = await usageOf(hash);
    expect(usage).toBeCloseTo(0.006, 9);
    expect(limit_remaining).toBeCloseTo(4.994, 9);
  });

  test('concurrent calls never overspend', async () => {
    const limit = 2;
    const { key, hash } = await limitedKey(limit);
    script = (exchange, nth) => [{ wait: 10 }, ...answer(exchange, nth)];
    const answers = await Promise.all(Array.from({ length: 12 }, () => embed('wire/one', numbers(6), key)));
    const served = answers.filter(({ status }) => status === 200);
    expect(served.length).toBeGreaterThan(0);
    expect(answers.every(({ status }) => status === 200 || status === 402)).toBe(true);
    const { usage } = await usageOf(hash);
    expect(usage).toBeCloseTo(served.length * 0.006, 9);
    expect(usage).toBeLessThanOrEqual(limit);
  });
});

test('if the client disconnects, running requests are read and charged, and no other is sent', async () => {
  const { key, hash } = await limitedKey(1_000);
  const control = new AbortController();
  script = (exchange, nth) => [{ wait: 150 }, ...answer(exchange, nth)];
  const left = fetch(`${gateway.base_url}/embeddings`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'wire/one', input: numbers(60) }),
    signal: control.signal,
  });
  await wire.exchange(0);
  await sleep(50);
  control.abort();
  await left.catch(() => undefined);
  await expect.poll(async () => (await usageOf(hash)).usage).toBeGreaterThan(0);
  expect(wire.exchanges).toHaveLength(EMBEDDING_REQUESTS_AT_ONCE_MAX);
  expect((await usageOf(hash)).usage).toBeCloseTo(EMBEDDING_REQUESTS_AT_ONCE_MAX * 0.003, 9);
});

test("an organization's own credential pays for all requests of a call, and the gateway for none", async () => {
  const { key, hash } = await limitedKey(1);
  const headers = { authorization: `Bearer ${gateway.management_key}` };
  const made = await gateway.call('POST', '/byok', { provider: 'one', key: 'ours.first.0123456789.abc' }, headers);
  expect(made.status).toBe(201);
  const { data } = (await made.json()) as { data: { id: string } };
  const { status, body: answer, id } = await embed('wire/one', numbers(6), key);
  await gateway.call('DELETE', `/byok/${data.id}`, undefined, headers);
  expect(status).toBe(200);
  expect(wire.exchanges.map((exchange) => exchange.headers['authorization'])).toEqual(
    Array(2).fill('Bearer ours.first.0123456789.abc'),
  );
  expect(answer.usage).toMatchObject({ cost: 0, is_byok: true, cost_details: { upstream_inference_cost: 0.006 } });
  expect((await record(id))['total_cost']).toBe(0);
  expect((await usageOf(hash)).usage).toBe(0);
});

test('an answer that sends only white space gets no more time than an answer may take to begin', async () => {
  const impatient = await start({}, { upstream_first_token_ms_max: 500 });
  script = () => [
    responseHead(200, 'application/json'),
    ...Array.from({ length: 30 }, () => [' ', { wait: 100 }]).flat(),
  ];
  const beganMs = performance.now();
  const { status } = await embed('wire/one', ['1'], impatient.key, impatient);
  expect(status).toBe(408);
  expect(performance.now() - beganMs).toBeLessThan(2_500);
  await impatient.stop();
});
