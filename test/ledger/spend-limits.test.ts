/**
 * The effects of a spend limit on a request, through a running gateway and a scripted upstream: hold, lowered bound,
 * refusal, cut and charge.
 */
import { readFileSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyContextConfig } from 'fastify';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { createServer } from '../../src/http/create-server.ts';
import { METERED, type MeteredInference } from '../../src/http/metered.ts';
import { limits } from '../../src/limits.ts';
import type { JsonObject } from '../../src/schemas/json.ts';
import { startGateway, type TestGateway } from '../harness.ts';
import {
  type Exchange,
  httpChunk,
  responseHead,
  type Step,
  startWireServer,
  type WireServer,
} from '../wires/wire-server.ts';

type Script = (exchange: Exchange, nth: number) => Step[];

/** A thousandth of a USD for each output token; input is free unless the name of the model says otherwise. */
const OUTPUT = { prompt: 0, completion: 1000 };
const timeouts = {
  shutdown_ms_max: 2_000,
  upstream_headers_ms_max: 400,
  upstream_first_token_ms_max: 3_000,
  upstream_idle_ms_max: 1_500,
};

/** Resets the health of endpoints after earlier tests. */
const both = { model: 'wire/both', provider: { order: ['chat', 'messages'] } };

let wire: WireServer;
let script: Script;
let strict: TestGateway;
let sliced: TestGateway;

async function start(ledger: object, more: object = {}): Promise<TestGateway> {
  const endpoint = (provider: string, pricing: object = OUTPUT) => ({
    provider,
    upstream_model: 'scripted',
    pricing,
    max_completion_tokens: 20_000,
  });
  const model = (...endpoints: object[]) => ({ context_length: 100_000, endpoints });
  const gpt = { tokenizer: 'GPT', context_length: 100_000 };
  const file = {
    bundled_catalog: false,
    timeouts,
    logging: { level: 'warn' },
    providers: {
      chat: { name: 'Chat', dialect: 'openai-chat', base_url: wire.url },
      messages: { name: 'Messages', dialect: 'anthropic-messages', base_url: wire.url },
      bills: { name: 'Bills', dialect: 'openai-chat', base_url: wire.url, abort_stops_billing: false },
      thinks: { name: 'Thinks', dialect: 'gemini-generate-content', base_url: wire.url, abort_stops_billing: false },
      closed: { name: 'Closed', dialect: 'openai-chat', base_url: 'http://127.0.0.1:9' },
    },
    models: {
      'wire/chat': model(endpoint('chat')),
      'wire/messages': model(endpoint('messages')),
      'wire/bills': model(endpoint('bills')),
      'wire/thinks': model(endpoint('thinks')),
      'wire/both': model(endpoint('chat'), endpoint('messages', { prompt: 0, completion: 1001 })),
      'wire/closed-first': model(endpoint('closed'), endpoint('messages', { prompt: 0, completion: 1001 })),
      'wire/priced-prompt': model(endpoint('chat', { prompt: 1000, completion: 1000 })),
      'wire/gpt': { ...gpt, endpoints: [endpoint('chat', { prompt: 1000, completion: 0 })] },
      'wire/vectors': { output_modalities: ['embeddings'], endpoints: [endpoint('chat', { prompt: 1000 })] },
      'wire/speech': {
        input_modalities: ['audio'],
        output_modalities: ['transcription'],
        endpoints: [endpoint('chat', { audio_second: 1 })],
      },
      'wire/free': model(endpoint('chat', { prompt: 0, completion: 0 })),
    },
    ledger: { journal_sync: 'os', ...ledger },
    ...more,
  };
  return startGateway({ yaml: JSON.stringify(file) });
}

beforeAll(async () => {
  wire = await startWireServer((exchange, nth) => script(exchange, nth));
  strict = await start({ default_output_tokens: 500 });
  sliced = await start({ budgets: 'soft', hold: 'sliced', unknown_outcome: 'metered' });
});
afterAll(async () => {
  await Promise.all([strict.stop(), sliced.stop()]);
  await wire.stop();
});
beforeEach(() => {
  wire.exchanges.length = 0;
  script = () => answer(7);
});

// ---------------------------------------------------------------- the answers of the upstream

/** One token each, by the gateway's count as well. */
const STORY = [' one', ' river', ' house', ' stone'];
const word = (nth: number) => STORY[nth % STORY.length];
const usageOf = (tokens: number) => ({ prompt_tokens: 10, completion_tokens: tokens, total_tokens: 10 + tokens });
const chunk = (delta: object, finishReason: string | null = null) =>
  `data: ${JSON.stringify({ id: 'up-1', object: 'chat.completion.chunk', created: 1, model: 'scripted', choices: [{ index: 0, delta, finish_reason: finishReason }] })}\n\n`;
const words = (count: number) => Array.from({ length: count }, (_, nth) => chunk({ content: word(nth) })).join('');
const usageChunk = (tokens: number) =>
  `data: ${JSON.stringify({ id: 'up-1', object: 'chat.completion.chunk', created: 1, model: 'scripted', choices: [], usage: usageOf(tokens) })}\n\ndata: [DONE]\n\n`;
/** The same usage before the end. */
const usageEvent = (tokens: number) => usageChunk(tokens).replace('data: [DONE]\n\n', '');
const sse = responseHead(200, 'text/event-stream');
const chunked = responseHead(200, 'text/event-stream', {
  connection: 'keep-alive',
  'transfer-encoding': 'chunked',
});
const json = responseHead(200, 'application/json');

/** A whole answer of the chat wire that reports this number of tokens. */
function answer(tokens: number): Step[] {
  const choices = [{ index: 0, message: { role: 'assistant', content: 'Yes.' }, finish_reason: 'stop' }];
  const body = {
    id: 'up-1',
    object: 'chat.completion',
    created: 1,
    model: 'scripted',
    choices,
    usage: usageOf(tokens),
  };
  return [json, JSON.stringify(body), 'END'];
}

function message(tokens: number): Step[] {
  const usage = { input_tokens: 10, output_tokens: tokens };
  const content = [{ type: 'text', text: 'Yes.' }];
  const body = {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'scripted',
    content,
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage,
  };
  return [json, JSON.stringify(body), 'END'];
}

const stream = (tokens: number): Step[] => [sse, words(tokens), chunk({}, 'stop'), usageChunk(tokens), 'END'];

// ---------------------------------------------------------------- the requests of a client

/** A key with a limit of this many thousandths of a USD, which is the number of tokens. */
async function keyOf(gateway: TestGateway, tokens: number, more: object = {}): Promise<string> {
  const response = await fetch(`${gateway.base_url}/keys`, {
    method: 'POST',
    headers: { authorization: `Bearer ${gateway.management_key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'limited', limit: tokens / 1000, ...more }),
  });
  expect(response.status).toBe(201);
  return ((await response.json()) as { key: string }).key;
}

interface Answered {
  status: number;
  headers: Headers;
  text: string;
  body: JsonObject & {
    error?: { message: string; metadata: JsonObject };
    usage?: JsonObject;
    gateway_metadata?: JsonObject;
  };
}

async function ask(gateway: TestGateway, key: string, body: object): Promise<Answered> {
  const response = await fetch(`${gateway.base_url}/chat/completions`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
      'x-gateway-experimental-metadata': 'enabled',
    },
    body: JSON.stringify({ messages: [{ role: 'user', content: 'Hello there' }], ...body }),
  });
  const text = await response.text();
  const parsed = text.startsWith('{') ? JSON.parse(text) : {};
  return { status: response.status, headers: response.headers, text, body: parsed };
}

interface Chunk {
  choices: { delta: { content?: string }; finish_reason: string | null }[];
  usage?: { completion_tokens: number; cost: number };
  gateway_metadata?: JsonObject;
  error?: JsonObject;
}

function chunksOf({ text }: Answered): Chunk[] {
  return text
    .split('\n\n')
    .filter((block) => block.startsWith('data: {'))
    .map((block) => JSON.parse(block.slice(6)) as Chunk);
}

async function usedBy(gateway: TestGateway, key: string): Promise<number> {
  const response = await fetch(`${gateway.base_url}/key`, { headers: { authorization: `Bearer ${key}` } });
  const { data } = (await response.json()) as { data: { usage: number } };
  return Math.round(data.usage * 1e6) / 1000;
}

async function generationOf(gateway: TestGateway, key: string, answered: Answered): Promise<JsonObject> {
  const id = answered.headers.get('x-generation-id');
  const response = await fetch(`${gateway.base_url}/generation?id=${id}`, {
    headers: { authorization: `Bearer ${key}` },
  });
  return ((await response.json()) as { data: JsonObject }).data;
}

const sent = (nth = 0) => JSON.parse(wire.exchanges[nth]!.body) as JsonObject & { max_tokens?: number };
const adjusted = (metadata: JsonObject | undefined) =>
  (metadata?.['adjusted_parameters'] ?? []) as { kind: string; field: string; reason: string }[];

// ---------------------------------------------------------------- the rules

describe('every operation that runs models', () => {
  /** A request of each operation that an empty budget does not pay for. */
  const samples: Record<string, object> = {
    '/api/v1/chat/completions': { model: 'wire/chat', messages: [{ role: 'user', content: 'Hello there' }] },
    '/api/v1/completions': { model: 'wire/chat', prompt: ['Hello', 'there'] },
    '/api/v1/messages': { model: 'wire/chat', max_tokens: 9, messages: [{ role: 'user', content: 'Hello there' }] },
    '/api/v1/responses': { model: 'wire/chat', input: 'Hello there' },
    '/api/v1/embeddings': { model: 'wire/vectors', input: 'Hello there' },
    '/api/v1/audio/transcriptions': {
      model: 'wire/speech',
      input_audio: { data: readFileSync(join(import.meta.dirname, '../audio/speech.wav'), 'base64'), format: 'wav' },
    },
  };

  test('refuses a caller whose budget is empty, before anything is sent', async () => {
    const document = (await (await fetch(`${strict.base_url}/openapi.json`)).json()) as {
      paths: Record<string, Record<string, { tags?: string[]; responses: JsonObject }>>;
    };
    const paths = Object.entries(document.paths).filter(([, { post }]) => post?.responses['402'] !== undefined);
    expect(paths.map(([path]) => path).sort()).toEqual(Object.keys(samples).sort());
    const key = await keyOf(strict, 0);
    for (const [path, body] of Object.entries(samples)) {
      const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
      const asked = await fetch(strict.url + path, { method: 'POST', headers, body: JSON.stringify(body) });
      expect([path, asked.status]).toEqual([path, 402]);
    }
    expect(wire.exchanges).toHaveLength(0);
  });

  test('defines its metering, or the service does not start', () => {
    const server = createServer({
      authenticate: () => Promise.reject(new Error()),
      logger: false,
      body_bytes_max: 1_000,
    });
    const plant = (config: FastifyContextConfig, tags: string[]) =>
      server.route({ method: 'POST', url: `/planted-${tags}`, config, schema: { tags }, handler: () => 'free' });
    for (const tag of ['Chat', 'Messages', 'Responses', 'Embeddings', 'Audio']) {
      expect(() => plant({ access: 'any' }, [tag])).toThrow('runs models without metering them');
      expect(() => plant({ metered: {} as MeteredInference }, [tag])).toThrow('runs models without metering them');
    }
    expect(() => plant({ metered: { [METERED]: true } }, ['Chat'])).not.toThrow();
    expect(() => plant({ access: 'any' }, ['Accounting'])).not.toThrow();
  });
});

describe('before the send', () => {
  test('a request that exceeds its limit is refused with 402, and nothing is sent', async () => {
    const key = await keyOf(strict, 10);
    const refused = await ask(strict, key, { model: 'wire/chat', max_tokens: 100 });
    expect(refused.status).toBe(402);
    expect(refused.body.error!.message).toMatch(/limit.*\$0\.01/);
    expect(refused.body.gateway_metadata).toMatchObject({ attempt: 0 });
    expect(wire.exchanges).toHaveLength(0);
    expect(await generationOf(strict, key, refused)).toBeUndefined();
    expect(await usedBy(strict, key)).toBe(0);
  });

  test('if an endpoint costs more than the rest of the limit, a cheaper one serves', async () => {
    const key = await keyOf(strict, 10);
    const models = ['wire/chat', 'wire/free'];
    const { status, body } = await ask(strict, key, { models, max_tokens: 100 });
    expect([status, body.model]).toEqual([200, 'wire/free']);
    expect(wire.exchanges).toHaveLength(1);
  });

  test('after a failure, a refusal of the next attempt for lack of money names the failure', async () => {
    script = () => [responseHead(503, 'application/json'), '{"error":{"message":"down"}}', 'END'];
    const key = await keyOf(strict, 10);
    const refused = await ask(strict, key, { models: ['wire/free', 'wire/chat'], max_tokens: 100 });
    expect(refused.status).toBe(402);
    expect(refused.body.error!.metadata).toMatchObject({ previous_errors: [{}] });
  });

  test.each([
    ['wire/chat', {}, answer(7)],
    ['wire/messages', {}, message(7)],
  ] as const)(
    '%s is sent the output bound that the limit pays for, and the change is reported to the client',
    async (model, more, events) => {
      script = () => [...events];
      const key = await keyOf(strict, 60);
      const { status, body } = await ask(strict, key, { model, max_tokens: 100, ...more });
      expect(status).toBe(200);
      expect(sent().max_tokens).toBe(60);
      const reason = 'the spend limit pays for 60 output tokens';
      expect(adjusted(body.gateway_metadata)).toContainEqual({ kind: 'clamped', field: 'max_tokens', reason });
      expect(await usedBy(strict, key)).toBe(7);
      await ask(strict, key, { model, max_tokens: 100 });
      expect(sent(1).max_tokens).toBe(53);
    },
  );

  test('the thinking budget stays below a lowered output bound', async () => {
    script = () => message(7);
    const key = await keyOf(strict, 3_000);
    const reasoning = { max_tokens: 8_000 };
    const { status } = await ask(strict, key, { model: 'wire/messages', max_tokens: 10_000, reasoning });
    expect(status).toBe(200);
    expect(sent()).toMatchObject({ max_tokens: 3_000, thinking: { type: 'enabled', budget_tokens: 2_400 } });
  });

  test('a thinking budget that the client wrote itself is covered or refused, never exceeded', async () => {
    const key = await keyOf(strict, 3_000);
    const thinking = { type: 'enabled', budget_tokens: 8_000 };
    const provider = { options: { messages: { thinking } } };
    expect((await ask(strict, key, { model: 'wire/messages', max_tokens: 10_000, provider })).status).toBe(402);
    script = () => message(7);
    provider.options.messages.thinking.budget_tokens = 2_000;
    expect((await ask(strict, key, { model: 'wire/messages', max_tokens: 10_000, provider })).status).toBe(200);
    expect(sent()).toMatchObject({ max_tokens: 3_000, thinking: { budget_tokens: 2_000 } });
  });

  test('parameters that multiply a price are not passed on', async () => {
    script = () => message(7);
    const key = await keyOf(strict, 3_000);
    const provider = { options: { messages: { inference_geo: 'us', speed: 'fast', top_k: 3 } } };
    const { body } = await ask(strict, key, { model: 'wire/messages', max_tokens: 100, provider });
    expect(sent()).not.toHaveProperty('inference_geo');
    expect(sent()).not.toHaveProperty('speed');
    expect(sent()).toHaveProperty('top_k', 3);
    expect(adjusted(body.gateway_metadata).map(({ field }) => field)).toEqual([
      'provider.options.messages.inference_geo',
      'provider.options.messages.speed',
    ]);
  });

  test('an output bound is not lowered below the minimum', async () => {
    const key = await keyOf(strict, 15);
    expect((await ask(strict, key, { model: 'wire/chat', max_tokens: 100 })).status).toBe(402);
    expect((await ask(strict, key, { model: 'wire/chat', max_tokens: 15 })).status).toBe(200);
    expect(wire.exchanges).toHaveLength(1);
  });

  test('a limited caller that sets no output bound gets the default, and an unlimited one gets none', async () => {
    const key = await keyOf(strict, 5_000);
    const { body } = await ask(strict, key, { model: 'wire/chat' });
    expect(sent().max_tokens).toBe(500);
    expect(adjusted(body.gateway_metadata)).toMatchObject([{ kind: 'changed', field: 'max_tokens' }]);
    const free = await ask(strict, strict.key, { model: 'wire/chat' });
    expect(sent(1)).not.toHaveProperty('max_tokens');
    expect(adjusted(free.body.gateway_metadata)).toEqual([]);
  });

  test('without a default a limited caller gets the model’s own bound, up to a quarter of the rest of the limit', async () => {
    const more = { budget_mode: 'strict' };
    const rich = await keyOf(sliced, 1_000_000, more);
    const whole = await ask(sliced, rich, { model: 'wire/chat' });
    expect(sent().max_tokens).toBe(20_000);
    const [first] = adjusted(whole.body.gateway_metadata);
    expect(first).toMatchObject({
      kind: 'changed',
      field: 'max_tokens',
      reason: expect.stringMatching(/^20000, the model's maximum:/),
    });

    const poor = await keyOf(sliced, 10_000, more);
    const less = await ask(sliced, poor, { model: 'wire/chat' });
    expect(sent(1).max_tokens).toBe(2_500);
    expect(adjusted(less.body.gateway_metadata)[0]?.reason).toMatch(/^2500, the tokens that 25 % of the rest/);
    // A bound that the client sets may use all of it.
    await ask(sliced, poor, { model: 'wire/chat', max_tokens: 15_000 });
    expect(sent(2).max_tokens).toBe(9_993);

    // Slices are paid for as they are used, so the bound is the model's own.
    const soft = await keyOf(sliced, 10_000);
    script = () => stream(3);
    await ask(sliced, soft, { model: 'wire/chat', stream: true });
    expect(sent(3).max_tokens).toBe(20_000);
  });

  test('calls without a bound run concurrently on one limit, and their cost never exceeds it', async () => {
    const key = await keyOf(sliced, 10_000, { budget_mode: 'strict' });
    script = ({ body }) => answer((JSON.parse(body) as { max_tokens: number }).max_tokens);
    const answers = await Promise.all(Array.from({ length: 12 }, () => ask(sliced, key, { model: 'wire/chat' })));
    expect(answers.filter(({ status }) => status === 200).length).toBeGreaterThanOrEqual(4);
    expect(answers.every(({ status }) => status === 200 || status === 402)).toBe(true);
    expect(await usedBy(sliced, key)).toBeLessThanOrEqual(10_000);
  });

  test('the prompt is reserved as well: one token for each byte if no tokenizer is known', async () => {
    const key = await keyOf(strict, 2_000);
    const long = {
      model: 'wire/priced-prompt',
      max_tokens: 16,
      messages: [{ role: 'user', content: 'a '.repeat(1_000) }],
    };
    expect((await ask(strict, key, long)).status).toBe(402);
    const short = { ...long, messages: [{ role: 'user', content: 'a '.repeat(100) }] };
    expect((await ask(strict, key, short)).status).toBe(200);
  });

  test('in soft mode, also of a single key, the gateway’s own count of the prompt is reserved', async () => {
    const [key, soft] = [await keyOf(strict, 1_500), await keyOf(strict, 1_500, { budget_mode: 'soft' })];
    const request = {
      model: 'wire/priced-prompt',
      max_tokens: 16,
      messages: [{ role: 'user', content: 'a '.repeat(1_000) }],
    };
    expect((await ask(strict, key, request)).status).toBe(402);
    expect((await ask(strict, soft, request)).status).toBe(200);
  });

  test('a prompt that is too large by its bytes is counted with the tokenizer of the model, if known', async () => {
    const key = await keyOf(strict, 2_000);
    const long = { max_tokens: 16, messages: [{ role: 'user', content: 'considerable '.repeat(1_000) }] };
    expect((await ask(strict, key, { ...long, model: 'wire/priced-prompt' })).status).toBe(402);
    // The first count may take longer than a request waits for it, because the tokenizer is loaded then.
    const counted = async () => expect((await ask(strict, key, { ...long, model: 'wire/gpt' })).status).toBe(200);
    await vi.waitFor(counted, { timeout: 60_000, interval: 200 });
  });

  test('free models are served when the limit is used up', async () => {
    script = () => answer(50);
    const key = await keyOf(strict, 50);
    expect((await ask(strict, key, { model: 'wire/chat', max_tokens: 50 })).status).toBe(200);
    expect((await ask(strict, key, { model: 'wire/chat', max_tokens: 50 })).status).toBe(402);
    expect((await ask(strict, key, { model: 'wire/free', max_tokens: 50 })).status).toBe(200);
  });
});

test('of many concurrent requests exactly as many are served as the limit covers', async () => {
  script = () => [{ wait: 5 }, ...answer(20)];
  const key = await keyOf(strict, 1_000);
  const all = await Promise.all(
    Array.from({ length: 120 }, () => ask(strict, key, { model: 'wire/chat', max_tokens: 20 })),
  );
  const counts: Record<number, number> = {};
  for (const { status } of all) counts[status] = (counts[status] ?? 0) + 1;
  expect(counts).toEqual({ 200: 50, 402: 70 });
  expect(wire.exchanges).toHaveLength(50);
  expect(await usedBy(strict, key)).toBe(1_000);
});

test.each([false, true])(
  'prompts of one request wait for one another if the limit pays only for one at a time',
  async (stream) => {
    const key = await keyOf(strict, 80);
    script = () => [
      { wait: 30 },
      ...(stream ? [sse, words(7), chunk({}, 'stop'), usageChunk(7), 'END' as const] : answer(7)),
    ];
    const response = await fetch(`${strict.base_url}/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'wire/chat', prompt: ['a', 'b', 'c', 'd'], max_tokens: 50, stream }),
    });
    expect([response.status, await response.text()]).toEqual([200, expect.not.stringContaining('"error"')]);
    expect(await usedBy(strict, key)).toBe(28);
  },
);

test('the changes to a prompt that waited for another are reported once', async () => {
  const manage = (path: string, body: object) =>
    strict.call('POST', path, body, { authorization: `Bearer ${strict.management_key}` }).then((made) => made.json());
  const filters = [{ pattern: 'river', action: 'redact' }];
  const { data: guardrail } = (await manage('/guardrails', { name: 'No rivers', content_filters: filters })) as {
    data: { id: string };
  };
  const made = (await manage('/keys', { name: 'limited', limit: 0.08 })) as { key: string; data: { hash: string } };
  await manage(`/guardrails/${guardrail.id}/assignments/keys`, { key_hashes: [made.data.hash] });
  script = () => [{ wait: 30 }, ...answer(7)];
  const response = await strict.call(
    'POST',
    '/completions',
    { model: 'wire/chat', prompt: ['a river', 'b river', 'c river'], max_tokens: 50 },
    { authorization: `Bearer ${made.key}`, 'x-gateway-experimental-metadata': 'enabled' },
  );
  const { generations } = (await response.json()) as {
    generations: { gateway_metadata: { pipeline: { name: string }[] } }[];
  };
  expect(generations.map((one) => one.gateway_metadata.pipeline.length)).toEqual([1, 1, 1]);
});

describe('between attempts', () => {
  test.each([400, 401, 429, 500, 503, 529])('an attempt that ended with status %i costs nothing', async (status) => {
    script = (_, nth) => (nth === 0 ? [responseHead(status, 'application/json'), '{}', 'END'] : message(7));
    const key = await keyOf(strict, 100);
    await ask(strict, key, { ...both, max_tokens: 50 });
    expect(await usedBy(strict, key)).toBe(status === 400 ? 0 : 7.007);
  });

  test('a refused connection costs nothing', async () => {
    script = () => message(7);
    const key = await keyOf(strict, 100);
    const answered = await ask(strict, key, { model: 'wire/closed-first', max_tokens: 50 });
    expect(answered.status).toBe(200);
    expect(await usedBy(strict, key)).toBe(7.007);
  });

  test.each([
    ['broke off after it was sent', ['RESET']],
    ['did not answer in time', [{ wait: 2_000 }]],
  ] as [string, Step[]][])('an attempt that %s keeps its whole hold, beside the next one', async (_, steps) => {
    script = (_exchange, nth) => (nth === 0 ? steps : message(7));
    const key = await keyOf(strict, 200);
    const answered = await ask(strict, key, { ...both, max_tokens: 50 });
    expect(answered.status).toBe(200);
    expect(answered.body.usage).toMatchObject({ completion_tokens: 7, cost: 0.007007 });
    expect(await usedBy(strict, key)).toBe(57.007);
    const record = await generationOf(strict, key, answered);
    expect(record).toMatchObject({ total_cost: 0.057007, estimated: true });
    expect(record['provider_responses']).toHaveLength(2);
  });

  test('an attempt that cannot be paid in addition to the last one is not made', async () => {
    script = () => ['RESET'];
    const key = await keyOf(strict, 60);
    const refused = await ask(strict, key, { ...both, max_tokens: 50 });
    expect(refused.status).toBe(402);
    expect(refused.body.error!.metadata).toMatchObject({
      previous_errors: [{ provider: 'Chat', reason: 'unavailable' }],
    });
    expect(refused.body.gateway_metadata).toMatchObject({ attempt: 1 });
    expect(wire.exchanges).toHaveLength(1);
    expect(await usedBy(strict, key)).toBe(50);
    expect(await generationOf(strict, key, refused)).toMatchObject({ total_cost: 0.05 });
  });

  test('in soft mode an attempt with an unknown outcome may be charged by its metered part', async () => {
    script = () => ['RESET'];
    const key = await keyOf(sliced, 2_000);
    await ask(sliced, key, { model: 'wire/priced-prompt', max_tokens: 500 });
    const used = await usedBy(sliced, key);
    expect(used).toBeGreaterThan(0);
    expect(used).toBeLessThan(20);
  });
});

describe('during an answer', () => {
  test('an upstream that exceeds its output bound is cut, and the client gets a clean end', async () => {
    script = () => [sse, words(2_000), { wait: 5_000 }, 'END'];
    const key = await keyOf(strict, 5_000);
    const answered = await ask(strict, key, { model: 'wire/chat', max_tokens: 100, stream: true });
    const chunks = chunksOf(answered);
    expect(chunks.flatMap(({ choices }) => choices.flatMap(({ finish_reason }) => finish_reason ?? []))).toEqual([
      'length',
    ]);
    expect(chunks.some(({ error }) => error !== undefined)).toBe(false);
    expect(answered.text.trimEnd().endsWith('data: [DONE]')).toBe(true);
    const last = chunks.at(-1)!;
    expect(last.usage!.completion_tokens).toBeGreaterThan(100);
    const reason = 'the provider exceeded the output bound of 100 tokens';
    expect(adjusted(last.gateway_metadata)).toContainEqual({ kind: 'clamped', field: 'max_tokens', reason });
    await wire.exchanges[0]!.closed;
    expect(await usedBy(strict, key)).toBeCloseTo(last.usage!.cost * 1000, 6);
    expect(strict.log_lines.some((line) => line.includes('an answer was cut'))).toBe(true);
  });

  test('if closing does not stop billing, a cut answer is read to its end and charged as reported', async () => {
    script = () => [sse, words(2_000), { wait: 50 }, chunk({}, 'stop'), usageChunk(2_500), 'END'];
    const key = await keyOf(strict, 5_000);
    await ask(strict, key, { model: 'wire/bills', max_tokens: 100, stream: true });
    expect(await usedBy(strict, key)).toBe(2_500);
  });

  test.each([
    ['breaks off', ['RESET']],
    ['falls silent', [{ wait: 2_000 }]],
    ['continues with an invalid event', ['data: {no\n\n', { wait: 2_000 }]],
  ] as [string, Step[]][])(
    'if closing does not stop billing, a stream that %s keeps its whole hold',
    async (_, steps) => {
      script = () => [sse, words(10), { wait: 20 }, ...steps];
      const key = await keyOf(strict, 5_000);
      const answered = await ask(strict, key, { model: 'wire/bills', max_tokens: 100, stream: true });
      expect(chunksOf(answered).at(-1)!.usage!.cost).toBe(0.1);
      expect(await usedBy(strict, key)).toBe(100);
      expect(await generationOf(strict, key, answered)).toMatchObject({ total_cost: 0.1, estimated: true });
    },
  );

  test.each([
    ['reported', usageEvent(12), 12],
    ['counted', '', 10],
  ])('if the upstream itself ends it early, the %s usage is charged', async (_, usage, tokens) => {
    script = () => [chunked, httpChunk(words(10) + usage), { wait: 20 }, httpChunk('')];
    const key = await keyOf(strict, 5_000);
    const answered = await ask(strict, key, { model: 'wire/bills', max_tokens: 100, stream: true });
    expect(chunksOf(answered).find(({ error }) => error !== undefined)?.error).toMatchObject({ code: 502 });
    expect(chunksOf(answered).at(-1)!.usage!.completion_tokens).toBe(tokens);
    expect(await usedBy(strict, key)).toBe(tokens);
    const record = await generationOf(strict, key, answered);
    expect(record).toMatchObject({ total_cost: tokens / 1000, estimated: tokens === 10 });

    script = () => [chunked, httpChunk(chunk({ role: 'assistant' })), httpChunk('')];
    const empty = await ask(strict, key, { model: 'wire/bills', max_tokens: 100, stream: true });
    expect(empty.status).toBe(502);
    expect(await usedBy(strict, key)).toBe(tokens);
  });

  test.each(['wire/bills', 'wire/chat'])(
    'a count that was reported before the last words does not bound the charge: %s',
    async (model) => {
      script = () => [chunked, httpChunk(usageEvent(1) + words(10)), { wait: 20 }, httpChunk('')];
      const key = await keyOf(strict, 5_000);
      const answered = await ask(strict, key, { model, max_tokens: 100, stream: true });
      expect(chunksOf(answered).at(-1)!.usage!.completion_tokens).toBe(10);
      expect(await usedBy(strict, key)).toBe(10);
    },
  );

  test('reported usage is charged, even if the attempt failed without content and another endpoint answered', async () => {
    const empty = [chunked, httpChunk(usageEvent(40)), httpChunk('')];
    const texts = [
      { type: 'message_start', message: { id: 'msg_1', type: 'message', role: 'assistant', content: [], usage: {} } },
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: 'Yes.' } },
      { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { input_tokens: 10, output_tokens: 7 } },
      { type: 'message_stop' },
    ];
    const other = [
      sse,
      ...texts.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`),
      'END' as const,
    ];
    script = (_, nth) => (nth === 0 ? empty : other);
    const key = await keyOf(strict, 5_000);
    const answered = await ask(strict, key, { ...both, max_tokens: 100, stream: true });
    expect(chunksOf(answered).at(-1)!.usage).toMatchObject({ completion_tokens: 7, cost: 0.007007 });
    expect(await usedBy(strict, key)).toBe(47.007);

    script = () => [
      chunked,
      httpChunk(`${usageEvent(40)}data: {"error":{"message":"Broken","code":500}}\n\n`),
      httpChunk(''),
    ];
    await ask(strict, key, { model: 'wire/bills', max_tokens: 100, stream: true });
    expect(await usedBy(strict, key)).toBe(47.007);
  });

  test.each([
    [0, 0],
    [40, 40],
  ])('an empty whole answer that reports %i tokens is charged for them', async (tokens, cost) => {
    const usageMetadata = { promptTokenCount: 10, thoughtsTokenCount: tokens, totalTokenCount: 10 + tokens };
    script = () => [json, JSON.stringify({ candidates: [{ content: { role: 'model' } }], usageMetadata }), 'END'];
    const key = await keyOf(strict, 5_000);
    expect((await ask(strict, key, { model: 'wire/thinks', max_tokens: 100 })).status).toBe(502);
    expect(await usedBy(strict, key)).toBe(cost);
  });

  test('if closing does not stop billing, a stream whose connection ends early keeps its whole hold', async () => {
    script = () => [sse, words(10), { wait: 20 }, 'END'];
    const key = await keyOf(strict, 5_000);
    const answered = await ask(strict, key, { model: 'wire/bills', max_tokens: 100, stream: true });
    expect(chunksOf(answered).at(-1)!.usage!.cost).toBe(0.1);
    expect(await usedBy(strict, key)).toBe(100);
  });

  test('if closing does not stop billing, a stream that exceeds the memory keeps its whole hold', async () => {
    const small = await start({}, { limits: { memory_bytes: limits.memory_bytes_setting_min } });
    const event = ['data: "', { repeat: 'x'.repeat(65_536), times: 64 }, { wait: 2_000 }];
    script = () => [sse, words(10), { wait: 20 }, ...event] as Step[];
    const key = await keyOf(small, 5_000);
    const answered = await ask(small, key, { model: 'wire/bills', max_tokens: 100, stream: true });
    expect(chunksOf(answered).at(-1)!.usage!.cost).toBe(0.1);
    expect(await usedBy(small, key)).toBe(100);
    await small.stop();
  });

  test('if closing stops billing, or no limit counts it, a broken stream is charged by the gateway’s count', async () => {
    script = () => [sse, words(10), { wait: 20 }, 'RESET'];
    const limited = await keyOf(strict, 5_000);
    await ask(strict, limited, { model: 'wire/chat', max_tokens: 100, stream: true });
    expect(await usedBy(strict, limited)).toBe(10);
    const unlimited = await keyOf(strict, 0, { limit: null });
    await ask(strict, unlimited, { model: 'wire/bills', max_tokens: 100, stream: true });
    expect(await usedBy(strict, unlimited)).toBe(10);
  });

  test('an answer that reports more than its bound is charged in full, and counted in a metric', async () => {
    script = () => answer(300);
    const key = await keyOf(strict, 5_000);
    const { body } = await ask(strict, key, { model: 'wire/chat', max_tokens: 100 });
    expect(adjusted(body.gateway_metadata)).toMatchObject([{ kind: 'changed', field: 'max_tokens' }]);
    expect(await usedBy(strict, key)).toBe(300);
    const metrics = await (await fetch(`${strict.url}/metrics`)).text();
    expect(metrics).toMatch(/gateway_overruns_total\{provider="chat"\} [1-9]/);
  });

  test('an unlimited caller’s answer is not cut', async () => {
    script = () => stream(2_000);
    const chunks = chunksOf(await ask(strict, strict.key, { model: 'wire/chat', max_tokens: 100, stream: true }));
    expect(chunks.flatMap(({ choices }) => choices.flatMap(({ finish_reason }) => finish_reason ?? []))).toEqual([
      'stop',
    ]);
  });

  test('a sliced hold grows with the answer', async () => {
    script = () => stream(3_000);
    const key = await keyOf(sliced, 4_000);
    const chunks = chunksOf(await ask(sliced, key, { model: 'wire/chat', max_tokens: 10_000, stream: true }));
    expect(sent().max_tokens).toBe(10_000);
    expect(chunks.flatMap(({ choices }) => choices.flatMap(({ finish_reason }) => finish_reason ?? []))).toEqual([
      'stop',
    ]);
    expect(await usedBy(sliced, key)).toBe(3_000);
  });

  test('a sliced hold that cannot grow ends the answer cleanly, within the limit', async () => {
    script = () => [sse, ...Array.from({ length: 400 }, () => [words(10), { wait: 1 }]).flat(), { wait: 5_000 }];
    const key = await keyOf(sliced, 2_000);
    const answered = await ask(sliced, key, { model: 'wire/chat', max_tokens: 10_000, stream: true });
    const chunks = chunksOf(answered);
    expect(chunks.flatMap(({ choices }) => choices.flatMap(({ finish_reason }) => finish_reason ?? []))).toEqual([
      'length',
    ]);
    const reason = 'the spend limit pays for no more of the answer';
    expect(adjusted(chunks.at(-1)!.gateway_metadata)).toContainEqual({ kind: 'clamped', field: 'max_tokens', reason });
    const used = await usedBy(sliced, key);
    expect(used).toBeGreaterThan(1_000);
    // One more read than was paid for.
    expect(used).toBeLessThanOrEqual(2_100);
  });
});

describe('if the client disconnects', () => {
  const leaveAfter = async (model: string, body: object, ms: number) => {
    const key = await keyOf(strict, 5_000);
    const leave = new AbortController();
    const asked = fetch(`${strict.base_url}/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model, max_tokens: 100, messages: [{ role: 'user', content: 'Hello there' }], ...body }),
      signal: leave.signal,
    })
      .then((response) => response.text())
      .catch(() => undefined);
    const exchange = await wire.exchange(0);
    await sleep(ms);
    leave.abort();
    await asked;
    await exchange.closed;
    await expect.poll(() => usedBy(strict, key)).toBeGreaterThanOrEqual(0);
    return key;
  };

  test('a whole answer is received and charged, even if closing a stream would stop billing', async () => {
    script = () => [{ wait: 200 }, ...answer(42)];
    const key = await leaveAfter('wire/chat', {}, 30);
    await expect.poll(() => usedBy(strict, key)).toBe(42);
  });

  test('before the send, the hold is released', async () => {
    const key = await keyOf(strict, 70_000);
    // Words that are in no vocabulary take long to count.
    let state = 7;
    const letter = () => {
      state = (state * 48_271) % 0x7fffffff;
      return String.fromCharCode(97 + (state % 26));
    };
    const content = Array.from({ length: 14_000 }, () => `${Array.from({ length: 8 }, letter).join('')} `).join('');
    const request = { model: 'wire/gpt', max_tokens: 16, messages: [{ role: 'user', content }] };
    // The client disconnects while its prompt is being counted.
    await new Promise<void>((resolve) => {
      const body = JSON.stringify(request);
      const headers = {
        authorization: `Bearer ${key}`,
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
      };
      const asked = httpRequest(`${strict.base_url}/chat/completions`, { method: 'POST', headers, agent: false });
      asked.on('error', () => undefined);
      asked.on('close', resolve);
      asked.end(body, () => setTimeout(() => asked.destroy(), 20));
    });
    await expect.poll(async () => (await ask(strict, key, request)).status).toBe(200);
    expect(wire.exchanges).toHaveLength(1);
  });

  test('a stream is closed and charged by the gateway’s count if that stops billing', async () => {
    script = () => [sse, words(10), { wait: 3_000 }, words(30), 'END'];
    const key = await leaveAfter('wire/chat', { stream: true }, 100);
    await expect.poll(() => usedBy(strict, key)).toBeGreaterThan(0);
    expect(await usedBy(strict, key)).toBeLessThanOrEqual(30);
  });

  test('a stream is read to its end and charged as reported if closing does not stop billing', async () => {
    script = () => [sse, words(10), { wait: 300 }, words(30), chunk({}, 'stop'), usageChunk(77), 'END'];
    const key = await leaveAfter('wire/bills', { stream: true }, 100);
    await expect.poll(() => usedBy(strict, key)).toBe(77);
  });

  test('reading without a client is bounded, and then charged by the gateway’s count', {
    timeout: 20_000,
  }, async () => {
    const part = chunk({ content: ' river'.repeat(200) });
    script = () => [sse, words(10), { wait: 200 }, { repeat: part, times: 20_000 }, 'END'];
    const key = await leaveAfter('wire/bills', { stream: true, max_tokens: 10_000 }, 100);
    expect(wire.exchanges[0]!.written).toBeLessThan(20_000 * part.length);
    await expect.poll(() => usedBy(strict, key)).toBeGreaterThan(limits.drain_bytes_max / part.length);
  });

  test('a stream that may continue beyond that bound is charged its whole hold', async () => {
    const part = `: ${'-'.repeat(20_000)}\n\n`;
    script = () => [sse, words(10), { wait: 200 }, { repeat: part, times: 2_000 }, 'END'];
    const key = await leaveAfter('wire/bills', { stream: true, max_tokens: 4_000 }, 100);
    await expect.poll(() => usedBy(strict, key)).toBe(4_000);
  });
});
