import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../../../test/harness.ts';
import { managementServer } from '../../../test/http/management-server.ts';
import { describeStores } from '../../../test/ledger/store-variants.ts';
import { createVault } from '../../accounts/vault.ts';
import { dialects } from '../../providers/dialects.ts';
import { ServiceFailed } from '../../providers/transport/services.ts';
import { byokStore } from '../../storage/byok.ts';
import { checkCredential } from './check-credential.ts';
import { listProviderCredentials } from './list-provider-credentials.ts';
import { testCredentials } from './test-credentials.ts';

const SECRET = 'sk-own-account-0123456789abcdef';

describe('a test of a credential', () => {
  const provider = {
    dialect: 'openai-chat' as const,
    base_url: 'https://provider.example/v1',
    headers: {},
    quirks: {},
  };
  const dialect = dialects.get('openai-chat');
  /** A provider that answers each request with the next status; undefined: it does not answer. */
  async function result(credential: string | undefined, ...statuses: (number | undefined)[]) {
    if (dialect === undefined) throw new Error('the wire is missing');
    const sent: string[] = [];
    const services = {
      async ask({ url, headers }: { url: string; headers?: Record<string, string> }) {
        sent.push(`${url} ${headers?.['authorization']}`);
        const status = statuses.shift();
        if (status === undefined) throw new ServiceFailed('no answer');
        return { status, headers: {}, body: Buffer.from(`not ${SECRET}`) };
      },
    };
    const check = await checkCredential({ provider, dialect, credential, services, now_ms: 0 });
    expect(JSON.stringify(check)).not.toContain(SECRET);
    return [check.result, sent.length];
  }

  test('reports works only if the provider also refuses a wrong credential', async () => {
    expect(await result(SECRET, 200, 401)).toEqual(['works', 2]);
    expect(await result(SECRET, 401)).toEqual(['refused', 1]);
    expect(await result(SECRET, 429)).toEqual(['limited', 1]);
    expect(await result(SECRET, 503)).toEqual(['unreachable', 1]);
    expect(await result(SECRET, undefined)).toEqual(['unreachable', 1]);
  });

  test('reports unknown if the provider lists its models without a credential, or not at all', async () => {
    expect(await result(SECRET, 200, 200)).toEqual(['unknown', 2]);
    expect(await result(SECRET, 404)).toEqual(['unknown', 1]);
    expect(await result('{"client_email": "a"}')).toEqual(['unknown', 0]);
  });
});

describe('the operations', () => {
  let gateway: TestGateway;
  beforeAll(async () => {
    gateway = await startGateway();
  });
  afterAll(() => gateway.stop());

  async function manage(method: string, path: string, body?: object, key = gateway.management_key) {
    const answer = await fetch(`${gateway.base_url}${path}`, {
      method,
      headers: { authorization: `Bearer ${key}`, ...(body ? { 'content-type': 'application/json' } : {}) },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    // biome-ignore lint/suspicious/noExplicitAny: the assertions check the shape.
    return { status: answer.status, body: (await answer.json()) as any };
  }

  test('every known provider is listed with its state, and without its credential', async () => {
    const { data } = (await manage('GET', '/provider-credentials')).body;
    const states = new Map(data.map(({ slug, state }: { slug: string; state: string }) => [slug, state]));
    expect(states.get('sandbox')).toBe('on');
    expect(states.get('openai')).toBe('own_only');
    expect((await manage('GET', '/provider-credentials', undefined, gateway.key)).status).toBe(403);
  });

  test('a test is audited, limited in rate, and refused to ordinary keys', async () => {
    expect((await manage('POST', '/provider-credentials/nobody/test')).status).toBe(404);
    expect((await manage('POST', '/provider-credentials/sandbox/test', undefined, gateway.key)).status).toBe(403);
    const first = await manage('POST', '/provider-credentials/sandbox/test');
    expect(first.status).toBe(200);
    const made = await manage('POST', '/byok', { provider: 'sandbox', key: SECRET });
    const tested = await manage('POST', `/byok/${made.body.data.id}/test`);
    expect(tested.status).toBe(200);
    expect(JSON.stringify(tested.body)).not.toContain(SECRET);
    const { data } = (await manage('GET', '/audit?limit=5')).body;
    const tests = data.filter(({ action }: { action: string }) => action === 'test');
    expect(tests.map(({ resource_type }: { resource_type: string }) => resource_type)).toEqual([
      'byok_credential',
      'provider',
    ]);
    expect(JSON.stringify(data)).not.toContain(SECRET);
    const statuses = [];
    for (let count = 0; count < 9; count += 1)
      statuses.push((await manage('POST', '/provider-credentials/sandbox/test')).status);
    expect(statuses.at(-1)).toBe(429);
  });
});

describeStores('credentials of providers', ({ open }) => {
  test("the operator's credentials are accessible only to the organization of the gateway", async () => {
    const database = await open();
    const { server, call, home, change } = await managementServer(database, '2026-11-21T10:00:00.000Z');
    const configured = () => ({
      on: [],
      own_only: [],
      off: [{ slug: 'acme', name: 'Acme', reason: 'KEY is not set' }],
    });
    const clock = { nowMs: Date.now, monotonicMs: () => performance.now() };
    listProviderCredentials(server, {
      configured,
      catalog: () => ({ models: () => [] }) as never,
      isRefused: () => false,
      home,
    });
    const services = { ask: () => Promise.reject(new ServiceFailed('none')) };
    const byok = byokStore(database.queries);
    testCredentials(server, { configured, byok, change, vault: createVault(SECRET), services, home, clock });
    expect((await call('GET', '/provider-credentials')).body['data']).toMatchObject([{ slug: 'acme', state: 'off' }]);
    expect((await call('GET', '/provider-credentials', undefined, 'foreign')).status).toBe(403);
    expect((await call('POST', '/provider-credentials/acme/test')).status).toBe(404);
    expect((await call('POST', '/provider-credentials/acme/test', undefined, 'foreign')).status).toBe(403);
    expect((await call('POST', '/byok/none/test')).status).toBe(404);
  });
});
