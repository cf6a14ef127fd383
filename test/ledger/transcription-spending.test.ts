/**
 * The cost of a transcript, through a running gateway and a scripted upstream: the hold for the measured length, and
 * the charge if the provider reports less than it bills, fails, or continues without a client.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../harness.ts';
import { type Exchange, responseHead, type Step, startWireServer, type WireServer } from '../wires/wire-server.ts';

/** 1.172 s of speech. */
const inputAudio = {
  data: readFileSync(join(import.meta.dirname, '../audio/speech.wav')).toString('base64'),
  format: 'wav',
};

let wire: WireServer;
let gateway: TestGateway;
let script: (exchange: Exchange, nth: number) => Step[];

/** Resets the health of endpoints after earlier tests. */
const firstOne = { provider: { order: ['one', 'two'] } };

const json = (body: object, status = 200): Step[] => [
  responseHead(status, 'application/json'),
  JSON.stringify(body),
  'END',
];

beforeAll(async () => {
  wire = await startWireServer((exchange, nth) => script(exchange, nth));
  const endpoint = (provider: string, pricing: object, over: object = {}) => ({
    provider,
    upstream_model: 'scripted',
    pricing,
    ...over,
  });
  const model = (...endpoints: object[]) => ({
    input_modalities: ['audio'],
    output_modalities: ['transcription'],
    endpoints,
  });
  gateway = await startGateway({
    yaml: JSON.stringify({
      bundled_catalog: false,
      logging: { level: 'warn' },
      ledger: { journal_sync: 'os' },
      timeouts: { upstream_headers_ms_max: 600, shutdown_ms_max: 2_000 },
      providers: {
        one: { dialect: 'openai-chat', base_url: wire.url, api_key: 'sk-ours-0123456789' },
        two: { dialect: 'openai-chat', base_url: wire.url, quirks: { transcription_seconds_min: 10 } },
        hears: { dialect: 'gemini-generate-content', base_url: wire.url },
        later: { dialect: 'openai-chat', transcription_dialect: 'assemblyai-transcription', base_url: wire.url },
      },
      models: {
        // A USD a second.
        'wire/one': model(endpoint('one', { audio_second: 1 })),
        'wire/both': model(endpoint('one', { audio_second: 1 }), endpoint('two', { audio_second: 2 })),
        'wire/two': model(endpoint('two', { audio_second: 1 })),
        'wire/later': model(endpoint('later', { audio_second: 1 })),
        'wire/tokens': model(endpoint('one', { prompt: 1_000, completion: 1_000 }, { max_completion_tokens: 100 })),
        'wire/hears': {
          input_modalities: ['text', 'audio'],
          output_modalities: ['text'],
          endpoints: [endpoint('hears', { prompt: 1_000, completion: 1_000 })],
        },
        'wire/unpriced': model({ provider: 'one', upstream_model: 'scripted' }),
      },
    }),
  });
});
afterAll(async () => {
  await gateway.stop();
  await wire.stop();
});
beforeEach(() => {
  wire.exchanges.length = 0;
  script = () => json({ text: 'Hear what I say.' });
});

async function transcribe(model: string, key = gateway.key, over: object = {}) {
  const answered = await gateway.call(
    'POST',
    '/audio/transcriptions',
    { model, input_audio: inputAudio, ...over },
    { authorization: `Bearer ${key}`, 'x-gateway-experimental-metadata': 'enabled' },
  );
  const body = (await answered.json()) as {
    text: string;
    usage: Record<string, unknown>;
    gateway_metadata: { attempts: { status: number }[]; endpoints: { excluded: { reason: string }[] } };
    error?: { message: string };
  };
  return { status: answered.status, id: answered.headers.get('x-generation-id') ?? '', body };
}

const manage = async (method: string, path: string, body?: unknown) => {
  const answered = await gateway.call(method, path, body, { authorization: `Bearer ${gateway.management_key}` });
  return (await answered.json()) as { key: string; data: Record<string, unknown> };
};

async function limitedKey(limit: number): Promise<{ key: string; hash: string }> {
  const { key, data } = await manage('POST', '/keys', { name: 'limited', limit });
  return { key, hash: String(data['hash']) };
}

const usageOf = async (hash: string) => Number((await manage('GET', `/keys/${hash}`)).data['usage']);
const record = async (id: string) => (await manage('GET', `/generation?id=${id}`)).data;

describe('the charge', () => {
  test('is the measured length if the provider reports none, marked as the gateway’s count', async () => {
    const { body, id } = await transcribe('wire/one');
    expect(body.usage).toMatchObject({ type: 'duration', seconds: 1.172, cost: 1.172 });
    expect(await record(id)).toMatchObject({ total_cost: 1.172, estimated: true });
  });

  test('is the length that the provider reports', async () => {
    script = () => json({ text: 'x', usage: { type: 'duration', seconds: 2 } });
    const { body, id } = await transcribe('wire/one');
    expect(body.usage).toMatchObject({ seconds: 2, cost: 2 });
    expect(await record(id)).toMatchObject({ total_cost: 2, estimated: false });
  });

  test('is at least the provider’s minimum', async () => {
    const { body } = await transcribe('wire/two');
    expect(body.usage).toMatchObject({ seconds: 1.172, cost: 10 });
  });

  test('is for the reported tokens, of which those of the audio are part of the input', async () => {
    const usage = { input_tokens: 20, input_token_details: { audio_tokens: 12, text_tokens: 8 }, output_tokens: 5 };
    script = () => json({ text: 'x', usage: { type: 'tokens', ...usage, total_tokens: 25 } });
    const { body, id } = await transcribe('wire/tokens');
    expect(body.usage).toMatchObject({ type: 'tokens', input_tokens: 20, output_tokens: 5, total_tokens: 25 });
    expect(body.usage['cost']).toBeCloseTo(0.025, 9);
    expect(await record(id)).toMatchObject({ tokens_prompt: 20, tokens_completion: 5, estimated: false });
  });

  test('is for the gateway’s token count if the provider reports none, or impossible ones', async () => {
    for (const usage of [
      undefined,
      { input_tokens: 1.5, output_tokens: 1 },
      { input_tokens: 2e12, output_tokens: 1 },
    ]) {
      script = () => json({ text: 'Hear what I say.', usage });
      const { body, id } = await transcribe('wire/tokens');
      expect(body.usage['cost']).toBeGreaterThan(0.012);
      expect(await record(id)).toMatchObject({ tokens_prompt: 12, estimated: true });
    }
  });

  test('needs a known price: without one the call is refused', async () => {
    const { status } = await transcribe('wire/unpriced');
    expect(status).toBe(404);
    expect(wire.exchanges).toHaveLength(0);
  });
});

describe('spend limits', () => {
  test('refuse a call with 402 before anything is sent if they do not cover the length', async () => {
    const { key, hash } = await limitedKey(2);
    const { status, body } = await transcribe('wire/one', key);
    expect([status, body.error?.message]).toEqual([402, expect.stringContaining('limit')]);
    expect(wire.exchanges).toHaveLength(0);
    expect(await usageOf(hash)).toBe(0);
  });

  test('lead to the cheaper endpoint', async () => {
    const { key } = await limitedKey(4);
    script = (_exchange, nth) => (nth === 0 ? json({ error: { message: 'no' } }, 503) : json({ text: 'x' }));
    const { status } = await transcribe('wire/both', key, firstOne);
    // The second provider bills at least ten seconds, for which the limit does not pay.
    expect(status).toBe(402);
    expect(wire.exchanges).toHaveLength(1);
  });

  test('are never exceeded by concurrent calls', async () => {
    const { key, hash } = await limitedKey(10);
    script = () => [{ wait: 20 }, ...json({ text: 'x', usage: { seconds: 2 } })];
    const answers = await Promise.all(Array.from({ length: 12 }, () => transcribe('wire/one', key)));
    const served = answers.filter(({ status }) => status === 200).length;
    expect(served).toBeGreaterThan(0);
    expect(answers.every(({ status }) => status === 200 || status === 402)).toBe(true);
    expect(await usageOf(hash)).toBe(served * 2);
    expect(served * 2).toBeLessThanOrEqual(10);
  });

  test('reserve the longest possible transcript of a model priced by tokens', async () => {
    // 3 s of 40 tokens, the template and a hundred output tokens, at a thousandth of a USD each.
    const { key } = await limitedKey(0.4);
    expect((await transcribe('wire/tokens', key)).status).toBe(402);
    const { key: rich } = await limitedKey(0.8);
    expect((await transcribe('wire/tokens', rich)).status).toBe(200);
  });
});

describe('failures', () => {
  test('lead to the next endpoint, and a refusal by status costs nothing', async () => {
    script = (_exchange, nth) => (nth === 0 ? json({ error: { message: 'no' } }, 500) : json({ text: 'x' }));
    const { status, body, id } = await transcribe('wire/both', gateway.key, firstOne);
    expect([status, body.gateway_metadata.attempts.map((attempt) => attempt.status)]).toEqual([200, [500, 200]]);
    expect((await record(id))['total_cost']).toBe(20);
  });

  test('that are a 400 are returned, and no other endpoint is tried', async () => {
    script = () => json({ error: { message: 'The audio is too short.' } }, 400);
    const { status, body } = await transcribe('wire/both', gateway.key, firstOne);
    expect([status, body.error?.message]).toEqual([400, expect.stringContaining('The audio is too short.')]);
    expect(wire.exchanges).toHaveLength(1);
  });

  test('with an unknown outcome are charged the hold', async () => {
    const { key, hash } = await limitedKey(100);
    script = () => ['DESTROY'];
    expect((await transcribe('wire/one', key)).status).toBe(502);
    expect(await usageOf(hash)).toBe(3);
  });

  test('after an answer that a chat model did not finish are charged as reported', async () => {
    script = () =>
      json({
        candidates: [{ content: { role: 'model', parts: [{ text: 'Hear' }] }, finishReason: 'MAX_TOKENS' }],
        usageMetadata: { promptTokenCount: 60, candidatesTokenCount: 3, totalTokenCount: 63 },
      });
    const { status, id } = await transcribe('wire/hears');
    expect(status).toBe(502);
    expect((await record(id))['total_cost']).toBeCloseTo(0.063, 9);
  });

  test('after an answer without a text are charged as reported', async () => {
    script = () => json({ usage: { type: 'duration', seconds: 2 } });
    const { status, id } = await transcribe('wire/one');
    expect(status).toBe(502);
    expect((await record(id))['total_cost']).toBe(2);
  });

  test.each([
    ['no text', { words: [] }, 502],
    ['a list', [1], 502],
    ['an error in a 200', { error: { message: 'no', code: 503 } }, 503],
  ])('include an answer with %s', async (_what, body, expected) => {
    script = () => json(body);
    expect((await transcribe('wire/one')).status).toBe(expected);
  });
});

describe('a provider that works in the background', () => {
  const states = (...states: object[]) => {
    let polls = 0;
    script = ({ method, path }) => {
      if (path.endsWith('/upload')) return json({ upload_url: 'https://cdn.test/1' });
      if (method === 'POST') return json({ id: 't-1', status: 'queued' });
      const state = states[Math.min(polls, states.length - 1)] ?? {};
      polls += 1;
      return 'break' in state ? ['DESTROY'] : json(state);
    };
  };

  test('is polled until it finishes', async () => {
    states({ status: 'processing' }, { status: 'completed', text: 'Hear.', audio_duration: 2, language_code: 'en' });
    const { status, body, id } = await transcribe('wire/later', gateway.key, { language: 'en' });
    expect(status).toBe(200);
    expect(body).toMatchObject({ text: 'Hear.', usage: { seconds: 2, cost: 2 } });
    expect(wire.exchanges.map(({ method, path }) => `${method} ${path.replace('/v1', '')}`)).toEqual([
      'POST /upload',
      'POST /transcript',
      'GET /transcript/t-1',
      'GET /transcript/t-1',
    ]);
    expect(JSON.parse(wire.exchanges[1]?.body ?? '')).toEqual({
      speech_models: ['scripted'],
      language_code: 'en',
      audio_url: 'https://cdn.test/1',
    });
    expect(wire.exchanges[2]?.headers['content-length'] ?? '0').toBe('0');
    expect(await record(id)).toMatchObject({ upstream_id: 't-1' });
  });

  test('costs nothing if it reports a failure', async () => {
    states({ status: 'error', error: 'Audio file is corrupt' });
    const { status, body, id } = await transcribe('wire/later');
    expect(status).toBeGreaterThanOrEqual(400);
    expect(body.error?.message).toContain('Audio file is corrupt');
    expect((await record(id))['total_cost']).toBe(0);
  });

  test('is charged if it can no longer be polled, or returns an invalid answer', async () => {
    script = ({ path }) =>
      path.endsWith('/upload') ? json({ upload_url: 'https://cdn.test/1' }) : json({ id: 't-1' });
    const begun = transcribe('wire/later');
    await wire.exchange(1);
    const html: Step[] = [responseHead(200, 'text/html'), '<html>maintenance</html>', 'END'];
    script = () => html;
    const { status, id } = await begun;
    expect(status).toBe(502);
    expect((await record(id))['total_cost']).toBe(1.172);
  });

  test('is charged if the client disconnects after the request was accepted', async () => {
    const { key, hash } = await limitedKey(100);
    states({ status: 'processing' });
    const control = new AbortController();
    const left = fetch(`${gateway.base_url}/audio/transcriptions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'wire/later', input_audio: inputAudio }),
      signal: control.signal,
    });
    await wire.exchange(2);
    control.abort();
    await left.catch(() => undefined);
    await expect.poll(() => usageOf(hash)).toBe(1.172);
  });
});

test('the running request of a client that disconnects is read to its end and charged', async () => {
  const { key, hash } = await limitedKey(100);
  const control = new AbortController();
  script = () => [{ wait: 150 }, ...json({ text: 'x', usage: { seconds: 2 } })];
  const left = fetch(`${gateway.base_url}/audio/transcriptions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'wire/one', input_audio: inputAudio }),
    signal: control.signal,
  });
  await wire.exchange(0);
  await sleep(50);
  control.abort();
  await left.catch(() => undefined);
  await expect.poll(() => usageOf(hash)).toBe(2);
});

test("an organization's own credential pays, and the gateway nothing", async () => {
  const { key, hash } = await limitedKey(1);
  const { data } = await manage('POST', '/byok', { provider: 'one', key: 'ours.first.0123456789.abc' });
  const { status, body, id } = await transcribe('wire/one', key);
  await manage('DELETE', `/byok/${String(data['id'])}`);
  expect(status).toBe(200);
  expect(wire.exchanges[0]?.headers['authorization']).toBe('Bearer ours.first.0123456789.abc');
  expect(body.usage).toMatchObject({ cost: 0, is_byok: true, cost_details: { upstream_inference_cost: 1.172 } });
  expect((await record(id))['total_cost']).toBe(0);
  expect(await usageOf(hash)).toBe(0);
});
