import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sandboxVectorModels } from '../../../sandbox/catalog.ts';
import { sandboxVector } from '../../../sandbox/embeddings.ts';
import { startGateway, type TestGateway } from '../../../test/harness.ts';

let gateway: TestGateway;

beforeAll(async () => {
  gateway = await startGateway();
});
afterAll(() => gateway.stop());

interface Answer {
  object: string;
  id: string;
  model: string;
  provider: string;
  data: { object: string; index: number; embedding: number[] | string }[];
  usage: {
    prompt_tokens: number;
    total_tokens: number;
    cost?: number;
    prompt_tokens_details: { text_tokens: number; image_tokens: number };
  };
  gateway_metadata?: Record<string, unknown>;
  error: { code: number; message: string; metadata: Record<string, unknown> | null };
}

async function embed(body: object, headers: Record<string, string> = {}) {
  const answer = await gateway.call('POST', '/embeddings', { model: 'sandbox/embed', ...body }, headers);
  return { status: answer.status, headers: answer.headers, body: (await answer.json()) as Answer };
}

const vectors = ({ data }: Answer) => data.map(({ embedding }) => embedding);
const image = { type: 'image_url', image_url: { url: 'data:image/png;base64,QUJD' } };
const text = { type: 'text', text: 'What is this?' };

describe('valid requests', () => {
  test('a text: one vector, its usage and cost', async () => {
    const { status, headers, body } = await embed({ input: 'Hello there' });
    expect(status).toBe(200);
    expect(body).toMatchObject({
      object: 'list',
      id: headers.get('x-generation-id'),
      model: 'sandbox/embed',
      provider: 'Sandbox',
      data: [{ object: 'embedding', index: 0, embedding: sandboxVector('Hello there') }],
      usage: {
        prompt_tokens: 2,
        total_tokens: 2,
        cost: 4e-8,
        is_byok: false,
        prompt_tokens_details: { text_tokens: 2, image_tokens: 0 },
      },
    });
    expect(body).not.toHaveProperty('gateway_metadata');
  });

  test('texts have a vector each, in their order, also if the provider answers in another', async () => {
    const input = ['one', 'two', 'three', 'one'];
    const { body } = await embed({ input });
    expect(vectors(body)).toEqual(input.map((one) => sandboxVector(one)));
    expect(body.data.map(({ index }) => index)).toEqual([0, 1, 2, 3]);
  });

  test('tokens, once or several times', async () => {
    const once = await embed({ input: [1, 2, 3] });
    expect(vectors(once.body)).toEqual([sandboxVector('[1,2,3]')]);
    expect(once.body.usage.prompt_tokens).toBe(3);
    const twice = await embed({ input: [[1, 2], [3]] });
    expect(vectors(twice.body)).toEqual([sandboxVector('[1,2]'), sandboxVector('[3]')]);
  });

  test('objects of text and images have one vector each, and of text alone the same as the text', async () => {
    const { status, body } = await embed({
      model: 'sandbox/embed-cohere',
      input: [{ content: [text, image] }, { content: [text] }],
    });
    expect(status).toBe(200);
    expect(body.data).toHaveLength(2);
    expect(body.usage.prompt_tokens_details.image_tokens).toBe(85);
    const alone = await embed({ input: [{ content: [text] }] });
    expect(vectors(alone.body)).toEqual([sandboxVector(text.text)]);
  });

  test('an image that the first endpoint does not accept is sent to one that does', async () => {
    const { status, body } = await embed({ input: [{ content: [image] }] });
    expect([status, body.provider]).toEqual([200, 'Sandbox Cohere']);
  });

  test.each(Object.keys(sandboxVectorModels))(
    '%s answers with the same vectors, as numbers and as base64',
    async (model) => {
      const input = ['Hello there', 'Bye'];
      const wanted = input.map((one) => sandboxVector(one));
      const numbers = await embed({ model, input, input_type: 'search_query' });
      expect(numbers.status, JSON.stringify(numbers.body)).toBe(200);
      expect(vectors(numbers.body)).toEqual(wanted);
      expect(numbers.body.usage.prompt_tokens).toBe(3);
      const { body } = await embed({ model, input, encoding_format: 'base64', user: 'someone' });
      const decoded = vectors(body).map((one) => {
        const bytes = Buffer.from(one as string, 'base64');
        return Array.from({ length: bytes.length / 4 }, (_, at) => bytes.readFloatLE(at * 4));
      });
      expect(decoded).toEqual(wanted);
    },
  );

  test.each(Object.entries(sandboxVectorModels))(
    '%s accepts an image if its modalities include images',
    async (model, row) => {
      const { status } = await embed({ model, input: [{ content: [image] }] });
      expect(status === 200).toBe(row.input_modalities.includes('image'));
    },
  );

  test.each(Object.keys(sandboxVectorModels))('%s makes vectors of 256 numbers if requested', async (model) => {
    const { body } = await embed({ model, input: 'Hello', dimensions: 256 });
    expect(body.data[0]?.embedding).toHaveLength(256);
  });

  test('the OpenAI SDK reads the answer', async () => {
    const client = new OpenAI({ baseURL: gateway.base_url, apiKey: gateway.key });
    const made = await client.embeddings.create({ model: 'sandbox/embed', input: ['one', 'two'] });
    expect(made.data.map(({ embedding }) => embedding)).toEqual([sandboxVector('one'), sandboxVector('two')]);
    expect(made.usage).toMatchObject({ prompt_tokens: 2, total_tokens: 2 });
    const plain = await client.embeddings.create({ model: 'sandbox/embed', input: 'one', encoding_format: 'float' });
    expect(plain.data[0]?.embedding).toEqual(sandboxVector('one'));
  });
});

describe('refused requests', () => {
  test.each([
    ['an unknown model', { model: 'sandbox/nobody', input: 'x' }, 'sandbox/nobody is not a valid model ID'],
    ['a chat model', { model: 'sandbox/echo', input: 'x' }, 'sandbox/echo is not an embedding model'],
  ])('404: %s', async (_, body, message) => {
    const { status, body: answer } = await embed(body);
    expect(status).toBe(404);
    expect(answer.error).toMatchObject({ code: 404, message });
  });

  test.each([
    ['no input', {}, 'input'],
    ['an empty text', { input: '' }, 'input'],
    ['an empty list', { input: [] }, 'input'],
    ['an empty text among others', { input: ['a', ''] }, 'input'],
    ['a number', { input: 1 }, 'input'],
    ['an unknown format', { input: 'x', encoding_format: 'int8' }, 'encoding_format'],
    ['zero dimensions', { input: 'x', dimensions: 0 }, 'dimensions'],
    ['an object without parts', { input: [{ content: [] }] }, 'input'],
    ['a part of another kind', { input: [{ content: [{ type: 'video_url', video_url: { url: 'x' } }] }] }, 'input'],
  ])('400: %s', async (_, body, field) => {
    const { status, body: answer } = await embed(body);
    expect(status).toBe(400);
    expect(answer.error.message).toContain(field);
  });

  test('400: a field that no wire of the model can express', async () => {
    const { status, body } = await embed({ model: 'sandbox/embed-jina', input: [{ content: [text, image] }] });
    expect([status, body.error.message]).toEqual([400, 'This endpoint cannot combine several parts into one vector']);
  });

  test('400: an image that must be fetched, at a private address', async () => {
    const content = [{ type: 'image_url', image_url: { url: 'http://127.0.0.1/a.png' } }];
    const { status, body } = await embed({ model: 'sandbox/embed-gemini', input: [{ content }] });
    expect(status).toBe(400);
    expect(body.error.message).toMatch(/^input\[0\]\.content\[0\]\.image_url\.url must be on the public internet/);
  });

  test('401: no key', async () => {
    const answer = await fetch(`${gateway.base_url}/embeddings`, { method: 'POST', body: '{}' });
    expect(answer.status).toBe(401);
  });

  test('404: provider preferences exclude every endpoint', async () => {
    const { status } = await embed({ input: 'x', provider: { only: ['openai'] } });
    expect(status).toBe(404);
  });

  test('429: the provider is rate-limited, and no other is available', async () => {
    const { status, headers } = await embed({
      model: 'sandbox/embed-cohere',
      input: 'x',
      provider: { options: { 'sandbox-cohere': { sandbox: { status: 429, retry_after: 3 } } } },
    });
    expect([status, headers.get('retry-after')]).toEqual([429, '3']);
  });

  test('400 from chat: an embedding model does not answer chat', async () => {
    const messages = [{ role: 'user', content: 'x' }];
    const answer = await gateway.call('POST', '/chat/completions', { model: 'sandbox/embed', messages });
    expect(answer.status).toBe(400);
  });
});

/** Resets the health that earlier tests gave to an endpoint. */
const fallback = { model: 'sandbox/embed-fallback', provider: { order: ['sandbox'] } };

describe('routing and record', () => {
  test('a failing endpoint is followed by the next, and the record shows it', async () => {
    const { status, headers, body } = await embed(
      { ...fallback, input: 'x', input_type: 'search_document' },
      { 'x-gateway-experimental-metadata': 'enabled' },
    );
    expect([status, body.provider]).toEqual([200, 'Sandbox Cohere']);
    expect(body.gateway_metadata).toMatchObject({
      requested: 'sandbox/embed-fallback',
      attempt: 2,
      attempts: [{ status: 503 }, { status: 200 }],
    });
    const shown = await gateway.call('GET', `/generation?id=${headers.get('x-generation-id')}`);
    const { data } = (await shown.json()) as { data: Record<string, unknown> };
    expect(data).toMatchObject({
      api_type: 'embeddings',
      model: 'sandbox/embed-fallback',
      provider_name: 'Sandbox Cohere',
      tokens_prompt: 1,
      tokens_completion: 0,
      total_cost: 4e-8,
      streamed: false,
    });
  });

  test('provider preferences apply: order, and no fallback', async () => {
    const preferred = await embed({ input: 'x', provider: { order: ['sandbox-cohere'] } });
    expect(preferred.body.provider).toBe('Sandbox Cohere');
    const alone = await embed({ ...fallback, input: 'x', provider: { ...fallback.provider, allow_fallbacks: false } });
    expect(alone.status).toBe(503);
  });

  test('a field that the wire cannot express is reported', async () => {
    const { body } = await embed(
      { input: 'x', input_type: 'search_query' },
      { 'x-gateway-experimental-metadata': 'enabled' },
    );
    expect(body.gateway_metadata?.['adjusted_parameters']).toEqual([
      { kind: 'dropped', field: 'input_type', reason: 'the endpoint does not distinguish queries from documents' },
    ]);
  });

  test('unknown fields are sent on a wire that may support them, and reported for others', async () => {
    const shown = { 'x-gateway-experimental-metadata': 'enabled' };
    const refused = await embed({ input: 'x', truncate_prompt_tokens: 5, provider: { only: ['sandbox'] } });
    expect([refused.status, refused.body.error.message]).toEqual([
      400,
      'Unrecognized request argument supplied: truncate_prompt_tokens',
    ]);
    const { body } = await embed({ model: 'sandbox/embed-voyage', input: 'x', stream: true, unheard_of: 5 }, shown);
    expect(body.gateway_metadata?.['adjusted_parameters']).toEqual([
      { kind: 'dropped', field: 'unheard_of', reason: 'the endpoint does not support it' },
    ]);
  });

  test('usage that the provider does not report is estimated', async () => {
    const { status, body } = await embed({
      input: 'Hello there',
      provider: { options: { sandbox: { sandbox: { no_usage: true } } } },
    });
    expect(status).toBe(200);
    expect(body.usage.prompt_tokens).toBeGreaterThan(0);
    expect(body.usage.cost).toBeGreaterThan(0);
  });

  test.each([
    ['options', '{"provider":{"options":{"sandbox":{"a":DEEP}}}}'],
    ['unknown fields', '{"provider":{"only":["sandbox"]},"unheard_of":DEEP}'],
  ])('%s that are nested too deeply are a 400', async (_what, text) => {
    const deep = `${'['.repeat(50_000)}${']'.repeat(50_000)}`;
    const body = `{"model":"sandbox/embed","input":"x",${text.slice(1)}`.replace('DEEP', deep);
    const response = await gateway.call('POST', '/embeddings', body);
    expect([response.status, await response.text()]).toEqual([400, expect.stringMatching(/nested/)]);
  });

  test('options cannot set the fields of the gateway', async () => {
    const { status, body } = await embed(
      { input: 'x', provider: { options: { sandbox: { model: 'fail-503', encoding_format: 'base64' } } } },
      { 'x-gateway-experimental-metadata': 'enabled' },
    );
    expect([status, body.provider]).toEqual([200, 'Sandbox']);
    expect(vectors(body)).toEqual([sandboxVector('x')]);
    expect(body.gateway_metadata?.['adjusted_parameters']).toHaveLength(2);
  });
});
