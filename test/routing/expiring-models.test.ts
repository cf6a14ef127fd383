import { expect, test } from 'vitest';
import { startGateway } from '../harness.ts';

const yaml = `
providers:
  acme: { name: Acme AI, dialect: openai-chat, base_url: "http://127.0.0.1:9/v1" }
models:
  acme/gone: { expiration_date: 2026-01-31, endpoints: [{ provider: acme, upstream_model: m, pricing: { prompt: 1, completion: 2 } }] }
  acme/stays: { endpoints: [{ provider: acme, upstream_model: m, pricing: { prompt: 1, completion: 2 } }] }
`;

test('the metadata of a call and its explanation warn of the models in its plan, and of no others', async () => {
  const gateway = await startGateway({ yaml });
  try {
    const warningsOf = async (model: string) => {
      const body = { model, messages: [{ role: 'user', content: 'Hello' }] };
      const answer = await gateway.call('POST', '/chat/completions', body, {
        'x-gateway-experimental-metadata': 'enabled',
      });
      const { gateway_metadata } = (await answer.json()) as { gateway_metadata: { warnings: unknown } };
      const explained = await gateway.call('POST', '/route/explain', body);
      const { data } = (await explained.json()) as { data: { warnings: unknown } };
      expect(data.warnings).toEqual(gateway_metadata.warnings);
      return gateway_metadata.warnings;
    };
    expect(await warningsOf('acme/gone')).toEqual([
      {
        type: 'model_expired',
        model: 'acme/gone',
        expiration_date: '2026-01-31',
        message: 'acme/gone may be removed at any time: its last day was 2026-01-31',
      },
    ]);
    expect(await warningsOf('acme/stays')).toEqual([]);
  } finally {
    await gateway.stop();
  }
});
