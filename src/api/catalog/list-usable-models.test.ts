import { Errors } from 'typebox/value';
import { expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../../../test/harness.ts';
import { describeStores } from '../../../test/ledger/store-variants.ts';
import { PublicModel } from '../../schemas/model.ts';

const yaml = `
bundled_catalog: false
providers:
  cheap: { name: Cheap, dialect: openai-chat, base_url: "http://127.0.0.1:9/v1" }
  kept: { name: Kept, dialect: openai-chat, base_url: "http://127.0.0.1:9/v1", data_policy: { retention: none } }
  byok: { name: Byok, dialect: openai-chat, base_url: "http://127.0.0.1:9/v1", api_key: "\${NOT_SET}" }
models:
  acme/both:
    canonical_slug: acme/both-20260101
    endpoints:
      - { provider: cheap, upstream_model: m, pricing: { prompt: 1, completion: 2 } }
      - { provider: kept, upstream_model: m, pricing: { prompt: 10, completion: 20 } }
  acme/one: { endpoints: [{ provider: cheap, upstream_model: m, pricing: { prompt: 1, completion: 2 } }] }
  acme/vectors: { output_modalities: [embeddings], endpoints: [{ provider: cheap, upstream_model: e, pricing: { prompt: 1 } }] }
  acme/unpriced: { endpoints: [{ provider: cheap, upstream_model: m }] }
  acme/own: { endpoints: [{ provider: byok, upstream_model: m, pricing: { prompt: 1, completion: 2 } }] }
`;

interface Answer {
  data: PublicModel[];
  total_count: number;
  links: object;
  excluded: {
    id: string;
    reasons: { reason: string; detail: string; guardrail_id: string | null; endpoints: string[] }[];
  }[];
}

async function manage(gateway: TestGateway, path: string, body: unknown): Promise<{ data: { id: string } }> {
  const authorization = `Bearer ${gateway.management_key}`;
  const answer = await gateway.call('POST', path, body, { authorization });
  expect(answer.ok, await answer.clone().text()).toBe(true);
  return (await answer.json()) as { data: { id: string } };
}

async function listFor(gateway: TestGateway, query = ''): Promise<Answer> {
  const answer = await gateway.call('GET', `/models/user${query}`);
  expect(answer.status).toBe(200);
  expect(answer.headers.get('cache-control')).toBe('private, no-cache');
  const body = (await answer.json()) as Answer;
  for (const model of body.data) expect(Errors(PublicModel, model)).toEqual([]);
  expect(body).toMatchObject({ total_count: body.data.length, links: { next: null } });
  return body;
}

const ids = (list: readonly { id: string }[]) => list.map(({ id }) => id).sort();

describeStores('GET /models/user', ({ freshUrl }) => {
  test('lists the models that the key may use, and the reason for every other model', async () => {
    const url = await freshUrl();
    const gateway = await startGateway({ yaml, ...(url === undefined ? {} : { environment: { DATABASE_URL: url } }) });
    try {
      const plain = await listFor(gateway);
      expect(ids(plain.data)).toEqual(['acme/both', 'acme/one', 'acme/vectors']);
      expect(plain.excluded).toEqual([
        {
          id: 'acme/own',
          canonical_slug: 'acme/own',
          name: 'acme/own',
          reasons: [
            {
              reason: 'own-credential-required',
              detail: expect.stringContaining('no credential'),
              guardrail_id: null,
              endpoints: ['byok'],
            },
          ],
        },
        expect.objectContaining({
          id: 'acme/unpriced',
          reasons: [
            { reason: 'no-endpoint', detail: 'its price is not known', guardrail_id: null, endpoints: ['cheap'] },
          ],
        }),
      ]);

      await manage(gateway, '/byok', { provider: 'byok', key: 'sk-own-0123456789' });
      expect(ids((await listFor(gateway)).data)).toContain('acme/own');

      const { data: guardrail } = await manage(gateway, '/guardrails', {
        name: 'careful',
        enforce_zdr_other: true,
        ignored_models: ['acme/vectors'],
      });
      expect(ids((await listFor(gateway)).data)).toContain('acme/one');
      await manage(gateway, `/guardrails/${guardrail.id}/assignments/keys`, { key_hashes: [gateway.key_hash] });
      const guarded = await listFor(gateway);
      // The figures of the model are those of its remaining endpoint.
      expect(guarded.data.map(({ id, pricing }) => [id, pricing.prompt])).toEqual([['acme/both', '0.00001']]);
      const reasonOf = (id: string) => guarded.excluded.find((model) => model.id === id)?.reasons;
      expect(reasonOf('acme/one')).toEqual([
        {
          reason: 'zdr-violation-by-guardrail',
          detail: 'a guardrail excludes it (zdr-violation-by-guardrail)',
          guardrail_id: guardrail.id,
          endpoints: ['cheap'],
        },
      ]);
      expect(reasonOf('acme/vectors')?.[0]?.reason).toBe('model-ignored-by-guardrail');
      expect(reasonOf('acme/own')?.[0]?.reason).toBe('zdr-violation-by-guardrail');

      expect(ids((await listFor(gateway, '?output_modalities=embeddings')).excluded)).toEqual(['acme/vectors']);
      expect((await gateway.call('GET', '/models/user?output_modalities=smell')).status).toBe(400);
      expect((await fetch(`${gateway.base_url}/models/user`)).status).toBe(401);
      const authorization = `Bearer ${gateway.management_key}`;
      expect((await gateway.call('GET', '/models/user', undefined, { authorization })).status).toBe(200);
    } finally {
      await gateway.stop();
    }
  });

  test('a guardrail may name models that only own credentials reach', async () => {
    const url = await freshUrl();
    const gateway = await startGateway({ yaml, ...(url === undefined ? {} : { environment: { DATABASE_URL: url } }) });
    try {
      await manage(gateway, '/byok', { provider: 'byok', key: 'sk-own-0123456789' });
      const { data: guardrail } = await manage(gateway, '/guardrails', { name: 'one', ignored_models: ['acme/own'] });
      await manage(gateway, `/guardrails/${guardrail.id}/assignments/keys`, { key_hashes: [gateway.key_hash] });
      const { excluded } = await listFor(gateway);
      expect(excluded.find(({ id }) => id === 'acme/own')?.reasons[0]?.reason).toBe('model-ignored-by-guardrail');
    } finally {
      await gateway.stop();
    }
  });

  test('a guardrail of the owner applies to a key', async () => {
    const url = await freshUrl();
    const gateway = await startGateway({ yaml, ...(url === undefined ? {} : { environment: { DATABASE_URL: url } }) });
    try {
      const { data: guardrail } = await manage(gateway, '/guardrails', { name: 'one', allowed_providers: ['kept'] });
      const authorization = `Bearer ${gateway.management_key}`;
      const members = await gateway.call('GET', '/organization/members', undefined, { authorization });
      const { data } = (await members.json()) as { data: { id: string }[] };
      await manage(gateway, `/guardrails/${guardrail.id}/assignments/members`, { member_user_ids: ids(data) });
      expect(ids((await listFor(gateway)).data)).toEqual(['acme/both']);
    } finally {
      await gateway.stop();
    }
  });
});
