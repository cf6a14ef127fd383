import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type GatewayProcess, isAlive, makeKey, metric, serve, until } from './gateway-process.ts';

const HEAP_MIB = 192;
const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);
const IMAGE_BYTES = 6 * 1024 * 1024;
const ANSWER_BYTES = 12 * 1024 * 1024;

const answer = (content: string) =>
  JSON.stringify({
    id: 'one',
    object: 'chat.completion',
    model: 'm',
    choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
  });

let upstream: Server;
let origin: string;
/** The timeout of an answer. */
let waitMs = 1_500;
beforeAll(async () => {
  upstream = createServer(async (request, response) => {
    if (request.method === 'GET') {
      response.writeHead(200, { 'content-length': IMAGE_BYTES }).write(PNG);
      response.end(Buffer.alloc(IMAGE_BYTES - PNG.length));
      return;
    }
    request.resume();
    await sleep(waitMs);
    response.setHeader('content-type', 'application/json');
    if (request.url?.includes('generateContent')) {
      const candidates = [{ content: { role: 'model', parts: [{ text: 'seen' }] }, finishReason: 'STOP' }];
      response.end(JSON.stringify({ candidates, usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1 } }));
    } else response.end(answer(request.url?.startsWith('/large') ? 'x'.repeat(ANSWER_BYTES) : 'heard'));
  });
  await new Promise<void>((resolve) => void upstream.listen(0, '127.0.0.1', resolve));
  origin = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`;
});
afterAll(() => {
  upstream.closeAllConnections();
  upstream.close();
});

const model = (provider: string, inputModalities: string[]) => ({
  name: provider,
  context_length: 100_000_000,
  input_modalities: inputModalities,
  endpoints: [{ provider, upstream_model: 'gemini-m', pricing: { prompt: 0.1, completion: 0.1 } }],
});

async function small(): Promise<{ gateway: GatewayProcess; key: string }> {
  const gateway = await serve({
    yaml: JSON.stringify({
      bundled_catalog: false,
      providers: {
        plain: { name: 'Plain', dialect: 'openai-chat', base_url: `${origin}/v1` },
        large: { name: 'Large', dialect: 'openai-chat', base_url: `${origin}/large` },
        fetching: { name: 'Fetching', dialect: 'gemini-generate-content', base_url: origin },
      },
      models: {
        'a/plain': model('plain', ['text']),
        'a/large': model('large', ['text']),
        'a/fetching': model('fetching', ['text', 'image']),
      },
      media: { private_hosts: [new URL(origin).host] },
      logging: { level: 'silent' },
    }),
    environment: { NODE_OPTIONS: `--max-old-space-size=${HEAP_MIB}` },
  });
  return { gateway, key: (await makeKey(gateway)).key };
}

/** Sends this number of concurrent requests, and returns their statuses; a broken connection is 0. */
async function statuses(gateway: GatewayProcess, key: string, count: number, body: unknown): Promise<number[]> {
  const text = JSON.stringify(body);
  const requests = Array.from({ length: count }, async () => {
    const response = await fetch(`${gateway.base_url}/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: text,
    });
    const bodyText = await response.text();
    if (response.status === 503) {
      expect(response.headers.get('retry-after')).toBe('1');
      expect(JSON.parse(bodyText)).toMatchObject({ error: { code: 503, message: expect.stringMatching(/memory/) } });
    }
    return response.status;
  });
  return (await Promise.allSettled(requests)).map((one) => (one.status === 'fulfilled' ? one.value : 0));
}

async function isUnharmed(gateway: GatewayProcess, key: string): Promise<void> {
  expect(isAlive(gateway.child.pid ?? 0), gateway.err()).toBe(true);
  await until(
    'the reserved memory is released',
    async () => (await metric(gateway, 'gateway_request_memory_bytes')) === 0,
  );
  const body = { model: 'a/plain', messages: [{ role: 'user', content: 'Hello' }] };
  expect(await statuses(gateway, key, 1, body)).toEqual([200]);
}

const text = (chars: number) => ({ model: 'a/plain', messages: [{ role: 'user', content: 'x'.repeat(chars) }] });

test('many large bodies at a slow upstream are refused if they do not fit, and do not end the process', async () => {
  const { gateway, key } = await small();
  const answers = await statuses(gateway, key, 30, text(8 * 1024 * 1024));
  expect(new Set(answers)).toEqual(new Set([200, 503]));
  await isUnharmed(gateway, key);
});

test('many large files at addresses in requests do not end the process', async () => {
  const { gateway, key } = await small();
  const content = [{ type: 'image_url', image_url: { url: `${origin}/a.png` } }];
  const answers = await statuses(gateway, key, 20, { model: 'a/fetching', messages: [{ role: 'user', content }] });
  expect(new Set(answers)).toEqual(new Set([200, 503]));
  await isUnharmed(gateway, key);
});

test('many large answers do not end the process', async () => {
  const { gateway, key } = await small();
  waitMs = 100;
  const answers = await statuses(gateway, key, 16, {
    model: 'a/large',
    messages: [{ role: 'user', content: 'Hello' }],
  });
  waitMs = 1_500;
  expect(answers).toContain(200);
  expect(answers.filter((status) => status !== 200 && status !== 503)).toEqual([]);
  await isUnharmed(gateway, key);
});

test('a body whose structure exceeds its bounds is a 400, one that is only too large a 413', async () => {
  const { gateway, key } = await small();
  const messages = `[${'{},'.repeat(3 * 1024 * 1024)}{}]`;
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  const ask = (body: string) => fetch(`${gateway.base_url}/chat/completions`, { method: 'POST', headers, body });
  const answers = await Promise.all(Array.from({ length: 4 }, () => ask(`{"model":"a/plain","messages":${messages}}`)));
  expect(answers.map(({ status }) => status)).toEqual([400, 400, 400, 400]);
  expect((await ask(JSON.stringify(text(40 * 1024 * 1024)))).status).toBe(413);
  await isUnharmed(gateway, key);
});
