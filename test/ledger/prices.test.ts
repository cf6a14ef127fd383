/** Charges of calls through the whole gateway, with a scripted upstream. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { JsonObject } from '../../src/schemas/json.ts';
import { startGateway, type TestGateway } from '../harness.ts';
import { array, object } from '../readings/recordings.ts';
import { responseHead, type Step, startWireServer, type WireServer } from '../wires/wire-server.ts';

const usage = { prompt_tokens: 1_000, completion_tokens: 100, total_tokens: 1_100 };

function answer(over: JsonObject = {}): Step[] {
  const choice = { index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' };
  const body = { id: 'x', object: 'chat.completion', created: 1, model: 'm', choices: [choice], usage, ...over };
  return [responseHead(200, 'application/json'), JSON.stringify(body), 'END'];
}

const CHANGE_MS = Date.UTC(2027, 0, 31);
const yaml = (url: string) => `
bundled_catalog: false
ledger: { journal_sync: os, unknown_price: allow }
providers:
  acme: { dialect: openai-chat, base_url: "${url}" }
  beta: { dialect: openai-chat, base_url: "${url}" }
models:
  acme/dated:
    endpoints:
      - provider: acme
        upstream_model: dated
        pricing: { prompt: 1, completion: 2, changes: [{ from: 2027-01-31, prompt: 3, completion: 4 }] }
  acme/tiers:
    endpoints:
      - provider: acme
        upstream_model: tiers
        pricing:
          prompt: 1
          completion: 2
          tiers: [{ over: 1000, prompt: 10, completion: 20 }]
          service_tiers:
            flex: { prompt: 0.5, completion: 1, tiers: [{ over: 1000, prompt: 5, completion: 10 }] }
  acme/unpriced: { endpoints: [{ provider: acme, upstream_model: unpriced, pricing: { prompt: 1 } }] }
  acme/fallback:
    endpoints:
      - { provider: acme, upstream_model: broken, pricing: { prompt: 0.000333, completion: 2, discount: 0.123456 } }
      - { provider: beta, upstream_model: whole, pricing: { prompt: 7.777777, completion: 9.999999, request: 0.000000000001, discount: 0.05 } }
`;

let upstream: WireServer;
let gateway: TestGateway;
let script: (body: JsonObject) => Step[] = () => answer();
let clockShiftMs = 0;

beforeAll(async () => {
  upstream = await startWireServer(({ body }) => script(object(JSON.parse(body))));
  const clock = { nowMs: () => Date.now() + clockShiftMs, monotonicMs: () => performance.now() };
  gateway = await startGateway({ yaml: yaml(upstream.url), clock });
});

afterAll(async () => {
  await gateway.stop();
  await upstream.stop();
});

async function ask(model: string, over: JsonObject = {}): Promise<JsonObject> {
  const body = { model, messages: [{ role: 'user', content: 'Hello' }], ...over };
  const response = await gateway.call('POST', '/chat/completions', body);
  const answerBody = object(JSON.parse(await response.text()));
  expect(response.status, JSON.stringify(answerBody)).toBe(200);
  return answerBody;
}

const costOf = (answerBody: JsonObject) => object(answerBody['usage'])['cost'];

async function generationOf(answerBody: JsonObject): Promise<JsonObject> {
  const response = await gateway.call('GET', `/generation?id=${String(answerBody['id'])}`);
  return object(object((await response.json()) as JsonObject)['data']);
}

/** A decimal of USD in 10^-18 USD, exactly. */
function atto(text: unknown): bigint {
  const match = /^(-?)(\d+)(?:\.(\d{1,18}))?$/.exec(String(text));
  if (!match) throw new Error(`${String(text)} is not an exact decimal`);
  const [, sign, whole = '', fraction = ''] = match;
  return BigInt(`${sign}${whole}${fraction.padEnd(18, '0')}`);
}

/** Every line is correct, and the lines add up to the cost, in exact arithmetic that a reader can repeat. */
function expectExact(record: JsonObject): JsonObject[] {
  const lines = array(record['charges']).map(object);
  for (const { units, unit_price, discount, amount } of lines) {
    const millionths = 1_000_000n - BigInt(Math.round(Number(discount) * 1_000_000));
    expect(atto(amount) * 1_000_000n).toBe(BigInt(Number(units)) * atto(unit_price) * millionths);
  }
  const sum = lines.reduce((total, { amount }) => total + atto(amount), 0n);
  expect(sum).toBe(atto(Number(record['total_cost']).toFixed(9)));
  return lines;
}

describe('prices that change', () => {
  test('a call keeps the price of its admission; the next one and the catalog have the new one', async () => {
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    script = () => [{ until: released }, ...answer()];
    clockShiftMs = CHANGE_MS - 10_000 - Date.now();
    const nth = upstream.exchanges.length;
    const running = ask('acme/dated');
    await upstream.exchange(nth);
    clockShiftMs = CHANGE_MS + 10_000 - Date.now();
    script = () => answer();
    const next = await ask('acme/dated');
    release();
    expect([costOf(await running), costOf(next)]).toEqual([0.0012, 0.0034]);

    const shown = async () => {
      const response = await gateway.call('GET', '/models/acme/dated/endpoints');
      const data = object(object((await response.json()) as JsonObject)['data']);
      return object(object(array(data['endpoints'])[0])['pricing'])['prompt'];
    };
    expect(await shown()).toBe('0.000003');
    clockShiftMs = 0;
    expect(await shown()).toBe('0.000001');
  });
});

describe('service tiers', () => {
  test.each<[string, string | undefined, string | undefined, number]>([
    ['none', undefined, undefined, 0.0012],
    ['the requested tier if the upstream reports none', 'flex', undefined, 0.0006],
    ['the tier that served if it is not the requested one', 'flex', 'default', 0.0012],
    ['the tier that served if none was requested', undefined, 'flex', 0.0006],
  ])('the price is that of %s', async (_title, requestedTier, served, cost) => {
    script = () => answer(served === undefined ? {} : { service_tier: served });
    const answerBody = await ask('acme/tiers', requestedTier === undefined ? {} : { service_tier: requestedTier });
    expect(costOf(answerBody)).toBe(cost);
    expect(await generationOf(answerBody)).toMatchObject({ service_tier: served ?? null, total_cost: cost });
  });

  test('the price is that of the tier that served a stream', async () => {
    const chunk = { id: 'x', object: 'chat.completion.chunk', created: 1, model: 'm', service_tier: 'flex' };
    const choices = [{ index: 0, delta: { content: 'Hi' }, finish_reason: 'stop' }];
    const lines = [
      { ...chunk, choices },
      { ...chunk, choices: [], usage },
    ].map((one) => `data: ${JSON.stringify(one)}\n\n`);
    script = () => [responseHead(200, 'text/event-stream'), ...lines, 'data: [DONE]\n\n', 'END'];
    const body = { model: 'acme/tiers', stream: true, messages: [{ role: 'user', content: 'Hello' }] };
    const text = await (await gateway.call('POST', '/chat/completions', body)).text();
    expect(text).toContain('"cost":0.0006');
  });

  test('a longer prompt has its own price in each tier', async () => {
    const longer = { ...usage, prompt_tokens: 1_001, total_tokens: 1_101 };
    script = () => answer({ usage: longer });
    expect(costOf(await ask('acme/tiers'))).toBe(0.01201);
    script = () => answer({ usage: longer, service_tier: 'flex' });
    expect(costOf(await ask('acme/tiers'))).toBe(0.006005);
  });

  test('a tier without a price is never requested', async () => {
    script = () => answer();
    for (const body of [
      { service_tier: 'priority' },
      { provider: { options: { acme: { service_tier: 'priority' } } } },
    ]) {
      const nth = upstream.exchanges.length;
      await ask('acme/tiers', body);
      const sent = object(JSON.parse((await upstream.exchange(nth)).body));
      expect(sent).not.toHaveProperty('service_tier');
    }
    const nth = upstream.exchanges.length;
    await ask('acme/tiers', { provider: { options: { acme: { service_tier: 'flex' } } } });
    expect(object(JSON.parse((await upstream.exchange(nth)).body))['service_tier']).toBe('flex');
  });
});

test('if a price is not known, no cost is reported, and the known part is charged', async () => {
  script = () => answer();
  const answerBody = await ask('acme/unpriced');
  expect(object(answerBody['usage'])).toMatchObject({ prompt_tokens: 1_000, completion_tokens: 100 });
  expect(answerBody['usage']).not.toHaveProperty('cost');
  const record = await generationOf(answerBody);
  expect(record).toMatchObject({ total_cost: null, usage: null });
  expect(array(record['charges']).map(object)).toMatchObject([
    { class: 'in_uncached', units: 1_000, unit_price: '0.000001', amount: '0.001' },
  ]);
});

test('every attempt that may have been billed has its lines, and they add up to the cost exactly', async () => {
  script = ({ model }) => (model === 'broken' ? ['RESET'] : answer());
  const record = await generationOf(await ask('acme/fallback'));
  const lines = expectExact(record);
  expect(lines.map((line) => [line['attempt'], line['endpoint_id'], line['class']])).toEqual([
    [1, 'acme|acme/fallback', 'in_uncached'],
    [1, 'acme|acme/fallback', 'rounding'],
    [2, 'beta|acme/fallback', 'in_uncached'],
    [2, 'beta|acme/fallback', 'out_text'],
    [2, 'beta|acme/fallback', 'request'],
    [2, 'beta|acme/fallback', 'rounding'],
  ]);
  // (1,000 x 7.777777 + 100 x 9.999999 + 0.000001) millionths of a USD, less 5 %, are 0.00833888805595.
  expect(lines[5]?.['amount']).toBe('0.00000000094405');
  const second = lines.slice(2).reduce((sum, { amount }) => sum + atto(amount), 0n);
  expect(second).toBe(atto('0.008338889'));
});
