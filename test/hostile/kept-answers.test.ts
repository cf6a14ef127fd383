/** What a streamed answer keeps until its end counts as memory of requests: many at once are bounded together. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { limits } from '../../src/limits.ts';
import { startGateway, type TestGateway } from '../harness.ts';
import { responseHead, type Step, startWireServer, type WireServer } from '../wires/wire-server.ts';

const token = (at: number) => ({ token: `t${at % 1_000}`, logprob: -0.123456, bytes: null });
const event = (at: number) => {
  const alternatives = Array.from({ length: 20 }, (_, nth) => token(at + nth));
  const logprobs = { content: [{ ...token(at), top_logprobs: alternatives }] };
  const choices = [{ index: 0, delta: { content: `t${at % 1_000}` }, logprobs, finish_reason: null }];
  return `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'x', choices })}\n\n`;
};
const events = (count: number) => Array.from({ length: count }, (_, at) => event(at)).join('');
const END = `data: ${JSON.stringify({
  choices: [{ index: 0, delta: {}, finish_reason: 'stop' }],
  usage: { prompt_tokens: 1, completion_tokens: 1 },
})}\n\ndata: [DONE]\n\n`;
/** Their text is about one megabyte, and their probabilities as JSON, once with the bytes of each token, some three. */
const FEW = 1_000;
/** More than the whole budget. */
const MANY = 8_000;

let script: () => Step[];
let upstream: WireServer;
let gateway: TestGateway;
beforeAll(async () => {
  upstream = await startWireServer(() => script());
  gateway = await startGateway({
    yaml: JSON.stringify({
      bundled_catalog: false,
      limits: { memory_bytes: limits.memory_bytes_setting_min },
      providers: { scripted: { name: 'Scripted', dialect: 'openai-chat', base_url: upstream.url, api_key: 'k' } },
      models: {
        'test/scripted': {
          context_length: 100_000,
          endpoints: [{ provider: 'scripted', upstream_model: 'x', pricing: { prompt: 1, completion: 1 } }],
        },
      },
    }),
  });
});
afterAll(async () => {
  await gateway.stop();
  await upstream.stop();
});

const post = (path: string, body: object) =>
  fetch(`${gateway.url}/api/v1${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'test/scripted', stream: true, top_logprobs: 20, ...body }),
  });
const ofResponses = () => post('/responses', { input: 'a', include: ['message.output_text.logprobs'] });
const ofChat = () => post('/chat/completions', { messages: [{ role: 'user', content: 'a' }], logprobs: true });

async function heldBytes(): Promise<number> {
  const metrics = await (await fetch(`${gateway.url}/metrics`)).text();
  return Number(/gateway_request_memory_bytes (\d+)/.exec(metrics)?.[1]);
}

/** The memory that a stream holds when all of these events were read, and nothing after them has come. */
async function heldBefore(count: number, ask: () => Promise<Response>): Promise<number> {
  const { promise: ended, resolve: end } = Promise.withResolvers<void>();
  script = () => [responseHead(200, 'text/event-stream'), events(count), { until: ended }, END, 'END'];
  const answer = await ask();
  const reading = answer.text();
  let held = 0;
  for (let before = -1; held !== before || held === 0; await sleep(100)) {
    before = held;
    held = await heldBytes();
  }
  end();
  expect(await reading).toContain('[DONE]');
  await expect.poll(heldBytes).toBe(0);
  return held;
}

test('the probabilities of a running Response count until its end; those of a chat are not kept', async () => {
  expect(await heldBefore(FEW, ofResponses)).toBeGreaterThan(2_000_000);
  expect(await heldBefore(FEW, ofChat)).toBeLessThan(1_000_000);
});

test('a Response with more than the budget ends as a failure that is charged', async () => {
  script = () => [responseHead(200, 'text/event-stream'), events(MANY), END, 'END'];
  const text = await (await ofResponses()).text();
  const last = text.split('data: ').find((data) => data.includes('"type":"response.failed"'));
  const { response } = JSON.parse(last!) as { response: { error: { message: string }; usage: { cost: number } } };
  expect(response.error.message).toMatch(/would take more than \d+ bytes of memory/);
  expect(response.usage.cost).toBeGreaterThan(0.003);
  await expect.poll(heldBytes).toBe(0);
  expect(await (await ofChat()).text()).toContain('"finish_reason":"stop"');
});
