import { expect, test } from 'vitest';
import openapi from '../../openapi.json' with { type: 'json' };
import { startGateway } from '../harness.ts';
import { describeStores } from '../ledger/store-variants.ts';
import { makeStranger } from './stranger.ts';

const V1 = '/api/v1';

type Json = Record<string, unknown>;

describeStores('another organization', ({ freshUrl }) => {
  test('sees nothing of another’s ids, in any operation, and changes nothing', async () => {
    const databaseUrl = await freshUrl();
    const environment: Record<string, string> = databaseUrl === undefined ? {} : { DATABASE_URL: databaseUrl };
    const gateway = await startGateway({ environment, yaml: 'responses: { store: true }' });
    try {
      const stranger = await makeStranger({ data_dir: gateway.data_dir, database_url: databaseUrl });
      const ask = async (secret: string, method: string, path: string, body?: unknown) => {
        const headers = { authorization: `Bearer ${secret}` };
        const answer = await gateway.call(method, path, body, headers);
        return { status: answer.status, body: (await answer.json()) as { data: Json } & Json };
      };
      const ours = async (method: string, path: string, body?: unknown) => {
        const { status, body: answer } = await ask(gateway.management_key, method, path, body);
        expect([path, status < 300]).toEqual([path, true]);
        return answer.data;
      };

      // The records of the first organization.
      const members = (await ours('GET', '/organization/members')) as unknown as Json[];
      const userId = members[0]?.['id'];
      const workspace = await ours('POST', '/workspaces', { name: 'Research', slug: 'research' });
      await ours('PUT', '/workspaces/research/budgets/daily', { limit_usd: 5 });
      const key = await ours('POST', '/keys', { name: 'k', workspace_id: workspace['id'] });
      const guardrail = await ours('POST', '/guardrails', { name: 'g', workspace_id: workspace['id'] });
      const assigned = { key_hashes: [key['hash']] };
      await ours('POST', `/guardrails/${guardrail['id']}/assignments/keys`, assigned);
      const credential = await ours('POST', '/byok', { provider: 'sandbox', key: 'sk-0123456789abcdef' });
      const request = { model: 'sandbox/echo', messages: [{ role: 'user', content: 'hello' }] };
      const completion = await ask(gateway.key, 'POST', '/chat/completions', request);
      const question = { model: 'sandbox/echo', input: 'hello', store: true };
      const response = await ask(gateway.key, 'POST', '/responses', question);
      const state = async () =>
        Promise.all(
          [
            '/workspaces',
            '/workspaces/research/members',
            '/workspaces/research/budgets',
            '/keys',
            '/guardrails',
            '/byok',
          ]
            .concat('/guardrails/assignments/keys', '/guardrails/assignments/members', '/audit')
            .map((path) => ours('GET', path)),
        );
      const before = await state();

      // Every operation whose path or query names a record, with the other organization's key and the first one's ids.
      const ids: Record<string, Record<string, unknown>> = {
        workspaces: { id: workspace['id'], interval: 'daily' },
        keys: { hash: key['hash'] },
        guardrails: { id: guardrail['id'] },
        byok: { id: credential['id'] },
        organization: { id: userId },
        responses: { id: response.body['id'] },
      };
      const bodies: Record<string, Json> = {
        'patch keys': { disabled: true },
        'patch workspaces': { name: 'Taken' },
        'patch guardrails': { name: 'Taken' },
        'patch byok': { disabled: true },
        'put workspaces': { limit_usd: 1 },
        'post workspaces': { user_ids: [userId] },
        'post guardrails': {},
        'post keys': request,
      };
      const walked: string[] = [];
      const missing: string[] = [];
      for (const [path, methods] of Object.entries(openapi.paths)) {
        const family = path.replace(`${V1}/`, '').split('/')[0] ?? '';
        // All organizations have the same models, and the operator's credentials serve the operator's organization: a
        // 403.
        if (!path.includes('{') || ['model', 'models', 'provider-credentials'].includes(family)) continue;
        const url = path.replace(V1, '').replaceAll(/\{(\w+)\}/g, (_, name: string) => {
          const id = ids[family]?.[name];
          if (id === undefined) missing.push(`${path}: ${name}`);
          return String(id);
        });
        for (const [method, operation] of Object.entries(methods)) {
          const assignees = url.includes('/members') ? { member_user_ids: [userId] } : assigned;
          const ofPath = url.endsWith('/rotate') ? {} : bodies[`${method} ${family}`];
          const body = url.includes('/assignments/') ? assignees : ofPath;
          const answer = await ask(
            stranger.management,
            method.toUpperCase(),
            url,
            method === 'get' || method === 'delete' ? undefined : body,
          );
          const { operationId } = operation as { operationId: string };
          expect([operationId, answer.status]).toEqual([operationId, 404]);
          walked.push(operationId);
        }
      }
      expect(missing, 'Add the id of a record of the first organization to `ids`.').toEqual([]);
      expect(walked.length).toBeGreaterThanOrEqual(25);
      const queries = [
        `/keys?workspace_id=${workspace['id']}`,
        `/guardrails?workspace_id=${workspace['id']}`,
        `/byok?workspace_id=${workspace['id']}`,
      ];
      for (const url of queries) expect([url, (await ask(stranger.management, 'GET', url)).status]).toEqual([url, 404]);
      const generation = `/generation?id=${String(completion.body['id'])}`;
      expect((await ask(stranger.ordinary, 'GET', generation)).status).toBe(404);
      expect((await ask(gateway.key, 'GET', generation)).status).toBe(200);

      // Ids of the first organization in bodies of the other, and the other's own lists.
      const wrong: [string, Json, number][] = [
        ['/keys', { name: 'k', workspace_id: workspace['id'] }, 400],
        ['/keys', { name: 'k', creator_user_id: userId }, 400],
        ['/guardrails', { name: 'g', workspace_id: workspace['id'] }, 400],
        ['/byok', { provider: 'sandbox', key: 'k', workspace_id: workspace['id'] }, 400],
        ['/byok', { provider: 'sandbox', key: 'k', allowed_api_key_hashes: [key['hash']] }, 400],
        ['/workspaces', { name: 'w', slug: 'w', io_logging_api_key_ids: [key['id']] }, 400],
        ['/workspaces/default/members/add', { user_ids: [userId] }, 404],
      ];
      for (const [url, body, status] of wrong) {
        expect([url, body, (await ask(stranger.management, 'POST', url, body)).status]).toEqual([url, body, status]);
      }
      for (const list of [
        '/guardrails',
        '/byok',
        '/guardrails/assignments/keys',
        '/guardrails/assignments/members',
        '/audit',
      ]) {
        expect([list, (await ask(stranger.management, 'GET', list)).body]).toEqual([
          list,
          { data: [], total_count: 0 },
        ]);
      }
      expect((await ask(stranger.management, 'GET', '/workspaces')).body).toMatchObject({ total_count: 1 });
      expect((await ask(stranger.management, 'GET', '/organization/members')).body).toMatchObject({ total_count: 1 });
      expect((await ask(stranger.management, 'GET', '/credits')).body.data).toEqual({
        total_credits: 0,
        total_usage: 0,
      });
      const activity = await ask(stranger.management, 'GET', `/activity?date=${new Date().toISOString().slice(0, 10)}`);
      expect(activity.body).toEqual({ data: [] });
      const keys = (await ask(stranger.management, 'GET', '/keys')).body as unknown as { data: Json[] };
      expect(keys.data.map(({ name }) => name)).toEqual(['k']);

      expect(await state()).toEqual(before);
    } finally {
      await gateway.stop();
    }
  });
});
