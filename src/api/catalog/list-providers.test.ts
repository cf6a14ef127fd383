import { expect, test } from 'vitest';
import { startGateway } from '../../../test/harness.ts';

test('GET /providers: the enabled ones, for each kind of key; 401 without a key', async () => {
  const yaml = `
providers:
  acme: { name: Acme AI, dialect: openai-chat, base_url: "http://127.0.0.1:9/v1" }
  zeta: { name: Zeta, dialect: openai-chat, base_url: "http://127.0.0.1:9/v1", api_key: "\${NOT_SET}" }
`;
  await using gateway = Object.assign(await startGateway({ yaml }), {
    async [Symbol.asyncDispose](this: { stop(): Promise<void> }) {
      await this.stop();
    },
  });
  const answer = await gateway.call('GET', '/providers');
  expect(answer.status).toBe(200);
  expect(await answer.json()).toEqual({
    data: [
      {
        name: 'Acme AI',
        slug: 'acme',
        privacy_policy_url: null,
        terms_of_service_url: null,
        status_page_url: null,
        headquarters: null,
        datacenters: null,
      },
    ],
  });
  const authorization = `Bearer ${gateway.management_key}`;
  expect((await gateway.call('GET', '/providers', undefined, { authorization })).status).toBe(200);
  expect((await fetch(`${gateway.base_url}/providers`)).status).toBe(401);
});
