/**
 * Answers beyond what the gateway reads, of operations other than chat and of services other than models: another
 * endpoint is tried, or the failure is the provider's, and none is a fault of the gateway.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { EMBEDDING_ANSWER_VALUES_MAX } from '../../src/inference/operations/embeddings.ts';
import { TRANSCRIPT_VALUES_MAX } from '../../src/inference/operations/transcription.ts';
import { limits } from '../../src/limits.ts';
import { parseServiceJson } from '../../src/schemas/json-structure.ts';
import { startGateway, type TestGateway } from '../harness.ts';
import { silentSound } from '../process/silent-site.ts';
import { responseHead, startWireServer, type WireServer } from '../wires/wire-server.ts';

const DEEP = 10_000;
/** One model for each test, because an endpoint that failed gets no calls for a while. */
const TESTS = 10;
const many = (name: string, model: object) =>
  Object.fromEntries(Array.from({ length: TESTS }, (_, nth) => [`wire/${name}-${nth}`, model]));
let nth = 0;
const modelOf = (name: string) => `wire/${name}-${nth++ % TESTS}`;
const deep = '['.repeat(DEEP) + ']'.repeat(DEEP);
const zeros = (count: number) => `[${'0,'.repeat(count)}0]`;

let bad: WireServer;
let good: WireServer;
let gateway: TestGateway;
/** The answer of the first endpoint. */
let answer = '';

beforeAll(async () => {
  const json = (body: string) => [responseHead(200, 'application/json'), body, 'END' as const];
  bad = await startWireServer(() => json(answer));
  good = await startWireServer(({ path }) =>
    json(path.includes('embeddings') ? vectors('[0.6,0.8]') : transcript('[]')),
  );
  const endpoints = ['bad', 'good'].map((provider, at) => ({
    provider,
    upstream_model: 'x',
    pricing: { prompt: 1 + at, completion: 1 + at },
  }));
  gateway = await startGateway({
    yaml: JSON.stringify({
      bundled_catalog: false,
      providers: {
        bad: { dialect: 'openai-chat', base_url: bad.url },
        good: { dialect: 'openai-chat', base_url: good.url },
        counter: { dialect: 'anthropic-messages', base_url: bad.url },
      },
      models: {
        ...many('vectors', { output_modalities: ['embeddings'], endpoints }),
        ...many('speech', { input_modalities: ['audio'], output_modalities: ['transcription'], endpoints }),
        'wire/text': { endpoints: [{ ...endpoints[0], provider: 'counter' }] },
      },
    }),
  });
});
afterAll(async () => {
  await gateway.stop();
  await Promise.all([bad.stop(), good.stop()]);
});

const vectors = (embedding: string, more = '') =>
  `{"data":[{"index":0,"embedding":${embedding}}],"usage":{"prompt_tokens":3,"total_tokens":3}${more}}`;
const transcript = (words: string, more = '') =>
  `{"text":"hello","words":${words},"usage":{"type":"duration","seconds":1}${more}}`;

const CALLS = {
  '/embeddings': () => ({ model: modelOf('vectors'), input: 'hello' }),
  '/audio/transcriptions': () => ({ model: modelOf('speech'), input_audio: { data: silentSound(), format: 'wav' } }),
};

test.each<[keyof typeof CALLS, string, string]>([
  ['/embeddings', 'thousands of levels', vectors('[0.6,0.8]', `,"x":${deep}`)],
  ['/embeddings', 'brackets only', deep],
  ['/embeddings', 'brackets that are never closed', '['.repeat(DEEP)],
  [
    '/embeddings',
    'more values than its inputs can have',
    vectors(zeros(limits.answer_values_max + EMBEDDING_ANSWER_VALUES_MAX)),
  ],
  ['/audio/transcriptions', 'thousands of levels', transcript('[]', `,"x":${deep}`)],
  ['/audio/transcriptions', 'brackets only', deep],
  ['/audio/transcriptions', 'more values than a transcript has', transcript(zeros(TRANSCRIPT_VALUES_MAX))],
])('an answer of %s with %s leads to the next endpoint', async (path, _what, body) => {
  answer = body;
  const [before, after] = [bad.exchanges.length, good.exchanges.length];
  const response = await gateway.call('POST', path, CALLS[path]());
  expect([response.status, await response.json()]).toEqual([
    200,
    expect.objectContaining({ usage: expect.anything() }),
  ]);
  expect([bad.exchanges.length - before, good.exchanges.length - after]).toEqual([1, 1]);
});

test('an answer with many vectors may have as many values as they need', async () => {
  const inputs = Array.from({ length: 40 }, () => 'hello');
  const data = inputs.map((_, index) => `{"index":${index},"embedding":${zeros(4_095)}}`);
  answer = `{"data":[${data}],"usage":{"prompt_tokens":3,"total_tokens":3}}`;
  const [before, after] = [bad.exchanges.length, good.exchanges.length];
  const response = await gateway.call('POST', '/embeddings', { model: modelOf('vectors'), input: inputs });
  expect([response.status, ((await response.json()) as { data: unknown[] }).data.length]).toEqual([200, 40]);
  expect([bad.exchanges.length - before, good.exchanges.length - after]).toEqual([1, 0]);
});

test.each([
  ['thousands of levels', `{"input_tokens":7,"x":${deep}}`],
  ['brackets only', deep],
  ['more values than are read', `{"input_tokens":7,"x":${zeros(limits.answer_values_max)}}`],
])('an impossible token count of %s is replaced by the gateway’s count', async (_what, body) => {
  answer = body;
  const count = async () => {
    const response = await gateway.call('POST', '/messages/count_tokens', {
      model: 'wire/text',
      messages: [{ role: 'user', content: 'Hello' }],
    });
    return [response.status, ((await response.json()) as { input_tokens: number }).input_tokens];
  };
  const [status, tokens] = await count();
  expect([status, tokens === 7]).toEqual([200, false]);
  answer = '{"input_tokens":7}';
  expect(await count()).toEqual([200, 7]);
});

test('a service’s reply with more levels, values or keys than a request may have is not accepted as JSON', () => {
  const keys = Array.from({ length: limits.json_keys_max + 1 }, (_, i) => `"k${i}":0`);
  for (const text of [deep, zeros(limits.json_values_max), `{${keys}}`, '['.repeat(DEEP)])
    expect(() => parseServiceJson(text)).toThrow(SyntaxError);
  expect(parseServiceJson('{"a":[1]}')).toEqual({ a: [1] });
});
