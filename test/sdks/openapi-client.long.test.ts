import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import type { AxiosResponse } from 'axios';
import { OpenAPIClientAxios } from 'openapi-client-axios';
import { expect, test } from 'vitest';
import openapi from '../../openapi.json' with { type: 'json' };
import { startGateway } from '../harness.ts';

type Method = 'get' | 'post' | 'put' | 'patch' | 'delete';
type Body = Record<string, unknown>;
type PathAndQuery = Record<string, string | number> | null;

interface Operation {
  operationId: string;
  responses: Record<string, { content?: Record<string, { schema: object }> }>;
}

const paths = openapi.paths as unknown as Record<string, Partial<Record<Method, Operation>>>;
const all = Object.entries(paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ path, method, operation: operation as Operation })),
);

/** Checks an answer against the document, with a validator of another project. */
function answerChecker() {
  const ajv = new Ajv2020({ strict: false, allErrors: true });
  formats.default(ajv);
  ajv.addSchema({ $id: 'openapi', components: openapi.components });
  return ({ responses, operationId }: Operation, { status, data, headers }: AxiosResponse) => {
    expect(Object.keys(responses), `${operationId} declares its status`).toContain(String(status));
    const schema = responses[String(status)]?.content?.['application/json']?.schema;
    if (schema === undefined || !String(headers['content-type']).startsWith('application/json')) return;
    const text = JSON.stringify(schema).replaceAll('"#/components/', '"openapi#/components/');
    const validate = ajv.compile(JSON.parse(text) as object);
    expect(validate(data), `${operationId} ${status}: ${ajv.errorsText(validate.errors)}`).toBe(true);
  };
}

test('a client generated from openapi.json can call every operation, and every answer matches the document', async () => {
  const gateway = await startGateway({ yaml: 'responses: { store: true }' });
  try {
    const definition = { ...(openapi as object), servers: [{ url: gateway.url }] };
    const api = new OpenAPIClientAxios({ definition: definition as never });
    const client = await api.init();
    const check = answerChecker();
    const called = new Set<string>();
    const call = async (
      key: string,
      method: Method,
      path: string,
      parameters: PathAndQuery = null,
      body?: Body,
      refusal?: number,
    ) => {
      const operation = paths[path]?.[method];
      if (!operation) throw new Error(`openapi.json has no ${method} ${path}`);
      const run = client[operation.operationId];
      if (!run) throw new Error(`the client has no ${operation.operationId}`);
      const answer = await run(parameters ?? undefined, body, {
        headers: { authorization: `Bearer ${key}` },
        validateStatus: () => true,
        maxRedirects: 0,
      });
      check(operation, answer);
      called.add(operation.operationId);
      const context = `${operation.operationId}: ${JSON.stringify(answer.data)}`;
      if (refusal === undefined) expect(answer.status, context).toBeLessThan(400);
      else expect(answer.status, context).toBe(refusal);
      return answer.data as { data: Body } & Body;
    };
    const managed = (...args: Arguments) => call(gateway.management_key, ...args);
    const ordinary = (...args: Arguments) => call(gateway.key, ...args);
    type Arguments = [method: Method, path: string, parameters?: PathAndQuery, body?: Body, refusal?: number];
    const v1 = '/api/v1';

    // Operations of ordinary keys.
    const chatBody = { model: 'sandbox/echo', messages: [{ role: 'user', content: 'hello' }] };
    await managed('patch', `${v1}/workspaces/{id}`, { id: 'default' }, { is_observability_io_logging_enabled: true });
    const completion = await ordinary('post', `${v1}/chat/completions`, null, chatBody);
    await ordinary('post', `${v1}/route/explain`, null, chatBody);
    await ordinary('post', `${v1}/completions`, null, { model: 'sandbox/echo', prompt: ['Hello', 'Hi'], logprobs: 1 });
    const kept = { model: 'sandbox/echo', input: 'hello', store: true };
    const { id: responseId } = await ordinary('post', `${v1}/responses`, null, kept);
    await ordinary('get', `${v1}/responses/{id}`, { id: String(responseId) });
    await ordinary('get', `${v1}/responses/{id}/input_items`, { id: String(responseId) });
    await ordinary('delete', `${v1}/responses/{id}`, { id: String(responseId) });
    await ordinary('post', `${v1}/messages`, null, { ...chatBody, max_tokens: 16 });
    await ordinary('post', `${v1}/messages/count_tokens`, null, chatBody);
    await ordinary('post', `${v1}/embeddings`, null, { model: 'sandbox/embed', input: ['a dog', 'a cat'] });
    await ordinary('get', `${v1}/embeddings/models`);
    const data = readFileSync(new URL('../audio/speech.wav', import.meta.url), 'base64');
    const sound = { model: 'sandbox/transcribe', input_audio: { data, format: 'wav' } };
    await ordinary('post', `${v1}/audio/transcriptions`, null, sound);
    await ordinary('get', `${v1}/generation`, { id: String(completion['id']) });
    await ordinary('get', `${v1}/generation/content`, { id: String(completion['id']) });
    await ordinary('get', `${v1}/models`);
    await ordinary('get', `${v1}/models/count`);
    await ordinary('get', `${v1}/models/user`);
    await ordinary('get', `${v1}/model/{author}/{slug}`, { author: 'sandbox', slug: 'echo' });
    await ordinary('get', `${v1}/models/{model}`, { model: 'sandbox/echo' });
    await ordinary('get', `${v1}/endpoints/zdr`);
    await ordinary('get', `${v1}/models/{author}/{slug}/endpoints`, { author: 'sandbox', slug: 'echo' });
    await ordinary('get', `${v1}/models/{author}/{slug}/endpoints/health`, { author: 'sandbox', slug: 'echo' });
    await ordinary('get', `${v1}/models/{author}/{slug}/endpoints/prices`, { author: 'sandbox', slug: 'echo' });
    await ordinary('get', `${v1}/endpoints/failing`, { limit: 10 });
    await ordinary('get', `${v1}/providers`);
    await ordinary('get', `${v1}/key`);
    await ordinary('get', '/health/live');
    await ordinary('get', '/health/ready');
    await ordinary('get', '/metrics');

    // Workspaces and their members.
    const members = await managed('get', `${v1}/organization/members`);
    const userId = String((members.data as unknown as Body[])[0]?.['id']);
    const { data: workspace } = await managed('post', `${v1}/workspaces`, null, { name: 'Research', slug: 'research' });
    const id = String(workspace['id']);
    await managed('get', `${v1}/workspaces`, { limit: 10 });
    await managed('get', `${v1}/workspaces/{id}`, { id: 'research' });
    await managed('patch', `${v1}/workspaces/{id}`, { id }, { description: 'Models under test' });
    await managed('post', `${v1}/workspaces/{id}/members/add`, { id }, { user_ids: [userId] });
    await managed('get', `${v1}/workspaces/{id}/members`, { id });
    await managed('post', `${v1}/workspaces/{id}/members/remove`, { id }, { user_ids: [userId] });
    await managed('put', `${v1}/workspaces/{id}/budgets/{interval}`, { id, interval: 'monthly' }, { limit_usd: 500 });
    await managed('get', `${v1}/workspaces/{id}/budgets/{interval}`, { id, interval: 'monthly' });
    await managed('get', `${v1}/workspaces/{id}/budgets`, { id });
    await managed('delete', `${v1}/workspaces/{id}/budgets/{interval}`, { id, interval: 'monthly' });

    // Keys.
    const { data: key } = await managed('post', `${v1}/keys`, null, { name: 'ci', workspace_id: id, limit: 5 });
    const hash = String(key['hash']);
    await managed('get', `${v1}/keys`, { workspace_id: id });
    await managed('get', `${v1}/keys/{hash}`, { hash });
    await managed('patch', `${v1}/keys/{hash}`, { hash }, { limit_reset: 'monthly' });
    await managed('post', `${v1}/keys/{hash}/rotate`, { hash }, { grace_seconds: 3_600 });
    await managed('delete', `${v1}/keys/{hash}/previous-secret`, { hash });

    await managed('get', `${v1}/keys/{hash}/policy`, { hash });
    await managed('post', `${v1}/keys/{hash}/route/explain`, { hash }, chatBody);
    await managed('get', `${v1}/budgets`);

    // Guardrails and their assignments.
    const { data: guardrail } = await managed('post', `${v1}/guardrails`, null, {
      name: 'No mail addresses',
      workspace_id: id,
      content_filter_builtins: [{ slug: 'email', action: 'redact' }],
    });
    const guard = { id: String(guardrail['id']) };
    await managed('get', `${v1}/guardrails`, { workspace_id: id });
    await managed('get', `${v1}/guardrails/{id}`, guard);
    await managed('patch', `${v1}/guardrails/{id}`, guard, { limit_usd: 10, reset_interval: 'daily' });
    await managed('post', `${v1}/guardrails/{id}/assignments/keys`, guard, { key_hashes: [hash] });
    await managed('post', `${v1}/guardrails/{id}/assignments/members`, guard, { member_user_ids: [userId] });
    await managed('get', `${v1}/guardrails/{id}/assignments/keys`, guard);
    await managed('get', `${v1}/guardrails/{id}/assignments/members`, guard);
    await managed('post', `${v1}/guardrails/test`, null, {
      guardrail: { content_filter_builtins: [{ slug: 'email', action: 'redact' }], ignored_providers: ['sandbox'] },
      request: { model: 'sandbox/echo', messages: [{ role: 'user', content: 'jane@example.com' }] },
    });
    await managed('get', `${v1}/guardrails/assignments/keys`);
    await managed('get', `${v1}/guardrails/assignments/members`);
    await managed('post', `${v1}/guardrails/{id}/assignments/keys/remove`, guard, { key_hashes: [hash] });
    await managed('post', `${v1}/guardrails/{id}/assignments/members/remove`, guard, { member_user_ids: [userId] });
    await managed('delete', `${v1}/guardrails/{id}`, guard);

    // Own credentials of a workspace.
    const { data: own } = await managed('post', `${v1}/byok`, null, { provider: 'openai', key: 'sk-0123456789abcdef' });
    const credential = { id: String(own['id']) };
    await managed('get', `${v1}/byok`);
    await managed('get', `${v1}/byok/{id}`, credential);
    await managed('patch', `${v1}/byok/{id}`, credential, { key: 'sk-fedcba9876543210' });
    await managed('post', `${v1}/byok/{id}/test`, credential, {});
    await managed('get', `${v1}/provider-credentials`);
    await managed('post', `${v1}/provider-credentials/{slug}/test`, { slug: 'sandbox' }, {});
    await managed('delete', `${v1}/byok/{id}`, credential);

    // A key by authorization code.
    const codeVerifier = 'v'.repeat(43);
    const { data: code } = await ordinary('post', `${v1}/auth/keys/code`, null, {
      callback_url: 'https://app.example/callback',
      code_challenge: createHash('sha256').update(codeVerifier).digest('base64url'),
      code_challenge_method: 'S256',
    });
    await call('', 'post', `${v1}/auth/keys`, null, {
      code: code['id'],
      code_verifier: codeVerifier,
      code_challenge_method: 'S256',
    });

    // Only a browser's session has these.
    await managed('get', `${v1}/session`, null, undefined, 403);
    await managed('delete', `${v1}/session`, null, undefined, 403);

    // Usage, audit, and deletions.
    await managed('get', `${v1}/credits`);
    await managed('get', `${v1}/activity`);
    await managed('get', `${v1}/generations`, { limit: 10 });
    await managed('get', `${v1}/generations/sessions`);
    await managed('post', `${v1}/analytics/query`, null, { metrics: ['request_count'], dimensions: ['model'] });
    await managed('post', `${v1}/ledger/verify`, null, {});
    await managed('get', `${v1}/audit`, { limit: 100 });
    await managed('delete', `${v1}/keys/{hash}`, { hash });
    await managed('delete', `${v1}/workspaces/{id}`, { id });
    // One node runs, and its one member is the last administrator: neither can be removed.
    await managed('post', `${v1}/ledger/release`, null, { node_id: 'no-such-node' }, 404);
    await managed('post', `${v1}/ledger/resolve`, null, { generation_id: 'gen-none', cost: 0 }, 404);
    await managed('delete', `${v1}/organization/members/{id}`, { id: userId }, undefined, 400);

    // An operation of administrators that reads, without a parameter, needs no line above.
    for (const { path, method, operation } of all) {
      const isPlain = method === 'get' && !path.includes('{') && path.startsWith(v1);
      if (isPlain && !called.has(operation.operationId)) await managed(method, path);
    }
    const uncalled = all.map(({ operation }) => operation.operationId).filter((name) => !called.has(name));
    expect(uncalled, 'Add a call of each of these operations above.').toEqual([]);
  } finally {
    await gateway.stop();
  }
});
