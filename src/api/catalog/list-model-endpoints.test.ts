import { Errors } from 'typebox/value';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { KNOWN_SECRET, startCatalogServer } from '../../../test/http/catalog-server.ts';
import { buildCatalog, type Catalog } from '../../catalog/catalog.ts';
import { describeEndpoint, describeModel } from '../../catalog/describe.ts';
import type { Server } from '../../http/server.ts';
import { NO_FIGURES } from '../../routing/endpoint-windows.ts';
import { ModelEndpoints } from '../../schemas/model.ts';
import { listModelEndpoints } from './list-model-endpoints.ts';

let server: Server;
let catalog: Catalog;

beforeAll(async () => {
  ({ server, catalog } = await startCatalogServer(listModelEndpoints));
});
afterAll(() => server.close());

async function get(url: string) {
  const answer = await server.inject({ method: 'GET', url });
  return { status: answer.statusCode, body: answer.json() };
}

describe('GET /models/{author}/{slug}/endpoints', () => {
  test('200: every listing has every field of the specification', async () => {
    for (const { id } of catalog.models()) {
      const { status, body } = await get(`/models/${id}/endpoints`);
      expect(status).toBe(200);
      expect(Errors(ModelEndpoints, body.data), id).toEqual([]);
    }
  });

  test('200: an endpoint has its provider, price and limits, and without a credential no performance', async () => {
    const { body } = await get('/models/meta-llama/llama-3.3-70b-instruct/endpoints');
    expect(body.data.endpoints.map(({ tag }: { tag: string }) => tag)).toEqual(['groq', 'deepinfra/turbo']);
    expect(body.data.endpoints[0]).toMatchObject({
      name: 'Groq | meta-llama/llama-3.3-70b-instruct',
      model_id: 'meta-llama/llama-3.3-70b-instruct-20241206',
      provider_name: 'Groq',
      pricing: { prompt: '0.00000059', completion: '0.00000079' },
      context_length: 131072,
      max_prompt_tokens: null,
      quantization: 'unknown',
      status: '0',
      latency_last_30m: null,
      throughput_last_30m: null,
      samples_last_30m: null,
      uptime_last_5m: null,
      uptime_last_30m: 99.5,
      uptime_last_1d: 100,
    });
  });

  test('200: with a credential the performance is included, and shared caches must not store it', async () => {
    const url = '/models/openai/gpt-4o/endpoints';
    const plain = await server.inject({ method: 'GET', url });
    expect(plain.headers).toMatchObject({
      vary: 'authorization, x-api-key, api-key',
      'cache-control': expect.stringMatching(/^public/),
    });
    const known = await server.inject({ method: 'GET', url, headers: { authorization: `Bearer ${KNOWN_SECRET}` } });
    expect(known.headers).toMatchObject({
      vary: 'authorization, x-api-key, api-key',
      'cache-control': 'private, no-cache',
    });
    expect(known.json().data.endpoints[0]).toMatchObject({
      latency_last_30m: { p50: 100, p75: 200, p90: 300, p99: 400 },
      throughput_last_30m: { p50: 50, p75: 40, p90: 30, p99: 20 },
      samples_last_30m: 120,
    });
  });

  test('200: a service tier is an endpoint with its own tag and prices', async () => {
    const { body } = await get('/models/openai/gpt-5/endpoints');
    const priceOf = (wanted: string) =>
      body.data.endpoints.find(({ tag }: { tag: string }) => tag === wanted).pricing.prompt;
    expect(Number(priceOf('openai/flex'))).toBe(Number(priceOf('openai')) / 2);
  });

  test('200: an alias and a dynamic suffix name the model', async () => {
    const { body } = await get('/models/~anthropic/claude-haiku-latest/endpoints');
    expect(body.data.id).toBe('anthropic/claude-haiku-4.5');
    expect((await get('/models/openai/gpt-4o:nitro/endpoints')).body.data.id).toBe('openai/gpt-4o');
    expect((await get('/models/openai/gpt-4o-20240513:floor:online/endpoints')).body.data.id).toBe('openai/gpt-4o');
  });

  test('200: a router model has no endpoints of its own', async () => {
    const { status, body } = await get('/models/gateway/auto/endpoints');
    expect([status, body.data.endpoints]).toEqual([200, []]);
    expect(Errors(ModelEndpoints, body.data)).toEqual([]);
  });

  test('200: the canonical slug names the same model', async () => {
    const { body } = await get('/models/openai/gpt-4o-20240513/endpoints');
    expect(body.data.id).toBe('openai/gpt-4o');
  });

  test('the details link of a model is the path of its endpoints, also for a slug with slashes', () => {
    const model = { id: 'acme/deep/thought', endpoints: [{ provider: 'openai', upstream_model: 'm' }] };
    const own = buildCatalog({
      bundled: { format: 1, models: [] },
      config: { bundled_catalog: true, models: [model] },
      providers: catalog.providers(),
      created_default: 0,
    });
    const [ownModel] = own.models();
    expect(ownModel && describeModel(ownModel).links.details).toBe('/api/v1/models/acme/deep%2Fthought/endpoints');
  });

  test('an endpoint of unknown context shows its model’s, else the default; the model shows null', () => {
    const lengths = (contextLength: number | undefined) => {
      const model = {
        id: 'acme/m',
        context_length: contextLength,
        endpoints: [{ provider: 'openai', upstream_model: 'm' }],
      };
      const { context_length: _, ...unknown } = model;
      const own = buildCatalog({
        bundled: { format: 1, models: [] },
        config: {
          bundled_catalog: true,
          models: [contextLength === undefined ? unknown : { ...model, context_length: contextLength }],
        },
        providers: catalog.providers(),
        created_default: 0,
      });
      const [known] = own.models();
      const shown = describeEndpoint(known!, known!.endpoints[0]!, {
        provider_name: 'X',
        statistics: { ...NO_FIGURES, status: '0' },
      });
      return [describeModel(known!).context_length, shown.context_length];
    };
    expect(lengths(8_000)).toEqual([8_000, 8_000]);
    expect(lengths(undefined)).toEqual([null, 32_768]);
  });

  test('404: an escaped slash is part of the slug', async () => {
    expect((await get('/models/openai/gpt-4o%2Fx/endpoints')).body.error.message).toBe(
      'Model openai/gpt-4o/x does not exist',
    );
  });

  test.each([
    ['an unknown model', '/models/openai/gpt-0/endpoints'],
    ['another case', '/models/OpenAI/gpt-4o/endpoints'],
    ['an unknown suffix', '/models/openai/gpt-4o:fast/endpoints'],
    ['a model without a free endpoint', '/models/openai/gpt-4o:free/endpoints'],
    ['batches', '/models/openai/gpt-4o:batch/endpoints'],
    ['a model whose providers are disabled', '/models/mistralai/mistral-large-2512/endpoints'],
  ])('404: %s', async (_, url) => {
    const { status, body } = await get(url);
    expect(status).toBe(404);
    expect(body.error).toMatchObject({ code: 404, metadata: null });
  });
});
