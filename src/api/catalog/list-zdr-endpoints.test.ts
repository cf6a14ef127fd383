import { Errors } from 'typebox/value';
import { expect, test } from 'vitest';
import { startGateway } from '../../../test/harness.ts';
import { PublicEndpoint } from '../../schemas/endpoint.ts';

const yaml = `
bundled_catalog: false
providers:
  kept: { name: Kept, dialect: openai-chat, base_url: "http://127.0.0.1:9/v1", data_policy: { retention: 30d } }
  none: { name: None, dialect: openai-chat, base_url: "http://127.0.0.1:9/v1", data_policy: { retention: none } }
  silent: { name: Silent, dialect: openai-chat, base_url: "http://127.0.0.1:9/v1" }
models:
  acme/one:
    endpoints:
      - { provider: kept, upstream_model: m, pricing: { prompt: 1, completion: 2 } }
      - { provider: none, upstream_model: m, pricing: { prompt: 1, completion: 2 } }
      - { provider: silent, upstream_model: m, pricing: { prompt: 1, completion: 2 } }
  acme/two: { output_modalities: [embeddings], endpoints: [{ provider: none, upstream_model: e, pricing: { prompt: 1 } }] }
  acme/three: { endpoints: [{ provider: kept, upstream_model: m, pricing: { prompt: 1, completion: 2 } }] }
`;

test('GET /endpoints/zdr: endpoints of providers with zero retention, of all models, without authentication', async () => {
  const gateway = await startGateway({ yaml });
  try {
    const answer = await fetch(`${gateway.base_url}/endpoints/zdr`);
    expect(answer.status).toBe(200);
    const { data } = (await answer.json()) as { data: PublicEndpoint[] };
    for (const endpoint of data) expect(Errors(PublicEndpoint, endpoint)).toEqual([]);
    expect(data.map(({ name }) => name).sort()).toEqual(['None | acme/one', 'None | acme/two']);
    const wrong = await fetch(`${gateway.base_url}/endpoints/zdr`, { headers: { authorization: 'Bearer wrong' } });
    expect(await wrong.json()).toEqual({ data });
    const head = await fetch(`${gateway.base_url}/endpoints/zdr`, { method: 'HEAD' });
    expect([head.status, await head.text()]).toEqual([200, '']);
  } finally {
    await gateway.stop();
  }
});

test('GET /endpoints/zdr: by default the published policy of the provider, except for models outside it', async () => {
  const environment = { DEEPINFRA_API_KEY: 'k', OPENAI_API_KEY: 'k', MISTRAL_API_KEY: 'k' };
  const gateway = await startGateway({ environment });
  try {
    const answer = await fetch(`${gateway.base_url}/endpoints/zdr`);
    const { data } = (await answer.json()) as { data: PublicEndpoint[] };
    const at = (provider: string) => data.filter(({ provider_name }) => provider_name === provider);
    expect(at('DeepInfra').length).toBeGreaterThan(5);
    expect(at('DeepInfra').filter(({ model_id }) => /^(?:google|anthropic)\//.test(model_id))).toEqual([]);
    expect([...at('OpenAI'), ...at('Mistral')]).toEqual([]);
  } finally {
    await gateway.stop();
  }
});
