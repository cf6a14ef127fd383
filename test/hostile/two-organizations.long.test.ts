/**
 * Two organizations with records of every kind: whoever calls from one of them, an id of the other gives the same answer as an id that
 * does not exist, in every path, filter, table, body and query of analytics. See docs/threat-model.md.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import openapi from '../../openapi.json' with { type: 'json' };
import { startGateway } from '../harness.ts';
import { consoleClient } from '../http/console-client.ts';
import { makeStranger } from '../http/stranger.ts';
import { describeStores } from '../ledger/store-variants.ts';

type Json = Record<string, unknown>;
/** An id of the other organization, and one of the same form that does not exist. */
type Pair = [theirs: string, absent: string];

interface Operation {
  operationId: string;
  parameters?: { in: string; name: string; schema?: { type?: string; enum?: unknown } }[];
}

const request = { model: 'sandbox/echo', messages: [{ role: 'user', content: 'hello' }] };
const hash = () => randomBytes(32).toString('hex');

/** What two answers may differ in: the id itself, times, and what identifies the request. */
function comparable({ status, text }: { status: number; text: string }, id: string): [number, string] {
  const shown = text.split(id).join('ID').split(encodeURIComponent(id)).join('ID');
  return [status, shown.replace(/"query_time_ms":\d+|"seconds_unseen":[\d.]+|"request_id":"[^"]*"|gen-\d+-\w+/g, '')];
}

describeStores('two organizations', ({ freshUrl }) => {
  test('cannot find out which ids the other one has', async () => {
    const databaseUrl = await freshUrl();
    const environment: Record<string, string> = databaseUrl === undefined ? {} : { DATABASE_URL: databaseUrl };
    const gateway = await startGateway({ environment, yaml: JSON.stringify({ responses: { store: true } }) });
    try {
      const other = await makeStranger({ data_dir: gateway.data_dir, database_url: databaseUrl });
      const ask = async (headers: Record<string, string>, method: string, path: string, body?: unknown) => {
        const answer = await gateway.call(method, path, body, headers);
        return { status: answer.status, text: await answer.text() };
      };
      const bearer = (secret: string) => ({ authorization: `Bearer ${secret}` });
      const make = async (secret: string, method: string, path: string, body: unknown) => {
        const { status, text } = await ask(bearer(secret), method, path, body);
        expect([path, status < 300]).toEqual([path, true]);
        const answer = JSON.parse(text) as { data?: Json } & Json;
        return answer.data ?? answer;
      };
      /** One record of each kind. */
      const fill = async (management: string, key: string, name: string) => {
        const workspace = await make(management, 'POST', '/workspaces', { name, slug: name });
        await make(management, 'PATCH', '/workspaces/default', { is_observability_io_logging_enabled: true });
        const guardrail = await make(management, 'POST', '/guardrails', { name, workspace_id: workspace['id'] });
        const credential = await make(management, 'POST', '/byok', { provider: 'sandbox', key: 'sk-0123456789' });
        const tags = { session_id: `${name}-session`, user: `${name}-user`, metadata: { tags: `${name}-tag` } };
        const generation = await make(key, 'POST', '/chat/completions', { ...request, ...tags });
        const stored = await make(key, 'POST', '/responses', { model: 'sandbox/echo', input: 'x', store: true });
        return { workspace, guardrail, credential, generation, stored };
      };
      const theirs = await fill(other.management, other.ordinary, 'theirs');
      const ours = await fill(gateway.management_key, gateway.key, 'ours');

      const generationId = String(theirs.generation['id']);
      const families: Record<string, Pair[]> = {
        workspaces: [
          [String(theirs.workspace['id']), randomUUID()],
          ['theirs', 'nobody'],
        ],
        keys: [[other.key_hash, hash()]],
        guardrails: [[String(theirs.guardrail['id']), randomUUID()]],
        byok: [[String(theirs.credential['id']), randomUUID()]],
        responses: [[String(theirs.stored['id']), generationId.replace(/.{6}$/, '000000')]],
        organization: [[other.user_id, randomUUID()]],
      };
      const values: Pair[] = [
        ...Object.values(families).flat(),
        [generationId, generationId.replace(/.{6}$/, '000000')],
        ['theirs-session', 'nobody-session'],
        ['theirs-user', 'nobody-user'],
        ['theirs-tag', 'nobody-tag'],
      ];
      const [admin, member] = [
        await consoleClient(gateway),
        await consoleClient(gateway, { email: 'member@example.com', role: 'member' }),
      ];
      const page = ({ cookie, form_token }: typeof admin) => ({
        cookie,
        authorization: '',
        origin: gateway.url,
        'x-form-token': form_token,
      });
      const callers: Record<string, Record<string, string>> = {
        key: bearer(gateway.key),
        management: bearer(gateway.management_key),
        admin: page(admin),
        member: page(member),
      };

      const bodies: Record<string, Json> = {
        updateKey: { disabled: true },
        rotateKey: {},
        explainKeyRoute: request,
        updateWorkspace: { name: 'Taken' },
        putWorkspaceBudget: { limit_usd: 1 },
        updateGuardrail: { name: 'Taken' },
        updateByok: { disabled: true },
        ...Object.fromEntries(
          ['addWorkspaceMembers', 'removeWorkspaceMembers'].map((name) => [name, { user_ids: [admin.user_id] }]),
        ),
        ...Object.fromEntries(
          ['assignGuardrailKeys', 'unassignGuardrailKeys'].map((name) => [name, { key_hashes: [gateway.key_hash] }]),
        ),
        ...Object.fromEntries(
          ['assignGuardrailMembers', 'unassignGuardrailMembers'].map((name) => [
            name,
            { member_user_ids: [admin.user_id] },
          ]),
        ),
      };
      /** Every request that names an id, and the ids to name. */
      const requests: [what: string, pairs: Pair[], of: (id: string) => [string, string, unknown?]][] = [];
      for (const [path, methods] of Object.entries(
        openapi.paths as unknown as Record<string, Record<string, Operation>>,
      )) {
        const pairs = families[path.split('/')[3] ?? ''];
        for (const [method, { operationId, parameters = [] }] of Object.entries(methods)) {
          const url = path.replace('/api/v1', '').replace('{interval}', 'daily');
          if (path.includes('{')) {
            const body = bodies[operationId];
            if (pairs !== undefined) {
              requests.push([operationId, pairs, (id) => [method.toUpperCase(), url.replace(/\{\w+\}/, id), body]]);
            }
            continue;
          }
          for (const { name, schema } of parameters.filter((one) => one.in === 'query' && method === 'get')) {
            if (schema?.type !== 'string' || schema.enum !== undefined || url.includes('models')) continue;
            for (const more of operationId === 'listGenerations' ? ['', '&format=csv&totals=true'] : ['']) {
              requests.push([`${operationId}?${name}${more}`, values, (id) => ['GET', `${url}?${name}=${id}${more}`]]);
            }
          }
        }
      }
      const named: [string, string, (id: string) => Json][] = [
        ['POST', '/keys', (id) => ({ name: 'k', workspace_id: id })],
        ['POST', '/keys', (id) => ({ name: 'k', creator_user_id: id })],
        ['POST', '/guardrails', (id) => ({ name: 'g', workspace_id: id })],
        ['POST', '/guardrails/test', (id) => ({ guardrail_id: id, text: 'x' })],
        ['POST', '/byok', (id) => ({ provider: 'sandbox', key: '0123456789', workspace_id: id })],
        ['POST', '/byok', (id) => ({ provider: 'sandbox', key: '0123456789', allowed_api_key_hashes: [id] })],
        ['POST', '/byok', (id) => ({ provider: 'sandbox', key: '0123456789', allowed_user_ids: [id] })],
        ['PATCH', '/workspaces/ours', (id) => ({ default_guardrail_id: id })],
        ['POST', '/workspaces/ours/members/add', (id) => ({ user_ids: [id] })],
        ['POST', `/guardrails/${ours.guardrail['id']}/assignments/keys`, (id) => ({ key_hashes: [id] })],
        ['POST', `/guardrails/${ours.guardrail['id']}/assignments/members`, (id) => ({ member_user_ids: [id] })],
        ['POST', '/responses', (id) => ({ model: 'sandbox/echo', input: 'x', previous_response_id: id })],
      ];
      for (const [method, path, body] of named) requests.push([path, values, (id) => [method, path, body(id)]]);
      for (const field of ['api_key_id', 'user', 'workspace', 'guardrail', 'tag', 'external_user']) {
        for (const operator of ['eq']) {
          const filter = (id: string) => ({ field, operator, value: operator.endsWith('in') ? [id] : id });
          const query = (id: string) => ({ metrics: ['request_count'], dimensions: [field], filters: [filter(id)] });
          requests.push([`analytics ${field} ${operator}`, values, (id) => ['POST', '/analytics/query', query(id)]]);
        }
      }

      const state = async () => {
        const lists = ['/workspaces', '/workspaces/theirs/members', '/keys', '/guardrails', '/byok', '/audit']
          .concat('/guardrails/assignments/keys', '/generations', '/organization/members')
          .map((path) => ask(bearer(other.management), 'GET', path));
        return (await Promise.all(lists)).map(({ text }) => text);
      };
      const before = await state();
      const differences: unknown[] = [];
      let compared = 0;
      for (const [at, [what, pairs, of]] of requests.entries()) {
        for (const [nth, [id, absent]] of pairs.entries()) {
          for (const [caller, headers] of Object.entries(callers)) {
            // An eighth of the comparisons where values are many.
            if ((at + nth + Object.keys(callers).indexOf(caller)) % 8 !== 0 && pairs.length > 2) continue;
            const [one, none] = [await ask(headers, ...of(id)), await ask(headers, ...of(absent))];
            compared += 1;
            const [shown, expected] = [comparable(one, id), comparable(none, absent)];
            if (shown[0] >= 500 || JSON.stringify(shown) !== JSON.stringify(expected)) {
              differences.push([what, caller, id, shown, expected]);
            }
          }
        }
      }
      expect(differences).toEqual([]);
      expect(compared).toBeGreaterThan(250);
      expect(await state()).toEqual(before);
    } finally {
      await gateway.stop();
    }
  }, 300_000);
});
