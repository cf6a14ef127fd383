/** Credentials of several parts through a running gateway: the upstream receives them, and nobody else does. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { JsonObject } from '../../src/schemas/json.ts';
import { startGateway, type TestGateway } from '../harness.ts';
import { responseHead, startWireServer, type WireServer } from './wire-server.ts';

const secret = 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY';
const token = 'FwoGZXIvYXdzEBYaDHqa0AP1wkq/session';
const keys = { accessKeyId: 'ASIAIOSFODNN7EXAMPLE', secretAccessKey: secret, sessionToken: token, region: 'eu-west-1' };

let upstream: WireServer;
let gateway: TestGateway;
let isRefused = false;

beforeAll(async () => {
  const body = {
    output: { message: { role: 'assistant', content: [{ text: 'Yes.' }] } },
    stopReason: 'end_turn',
    usage: { inputTokens: 3, outputTokens: 2, totalTokens: 5 },
  };
  upstream = await startWireServer(({ headers }) => {
    if (!isRefused) return [responseHead(200, 'application/json'), JSON.stringify(body), 'END'];
    // AWS quotes the headers that it used for the signature.
    const Message = `The Canonical String should have been: ${JSON.stringify(headers)}`;
    const type = { 'x-amzn-errortype': 'InvalidSignatureException' };
    return [responseHead(403, 'application/json', type), JSON.stringify({ Message }), 'END'];
  });
  const provider = { dialect: 'bedrock-converse', base_url: upstream.url };
  const pricing = { prompt: 1, completion: 2 };
  const model = (name: string) => ({
    endpoints: [{ provider: name, upstream_model: 'amazon.nova-lite-v1:0', pricing }],
  });
  gateway = await startGateway({
    yaml: JSON.stringify({
      bundled_catalog: false,
      ledger: { journal_sync: 'os' },
      logging: { level: 'debug' },
      providers: {
        bedrock: { name: 'Bedrock', ...provider, api_key: ['$', '{BEDROCK}'].join('') },
        plain: { name: 'Plain', dialect: 'openai-chat', base_url: upstream.url, api_key: 'k' },
      },
      models: { 'a/bedrock': model('bedrock'), 'a/plain': model('plain') },
    }),
    environment: { BEDROCK: 'bedrock-api-key-of-the-gateway' },
  });
});
afterAll(async () => {
  await gateway.stop();
  await upstream.stop();
});

async function ask(model: string): Promise<{ status: number; text: string }> {
  const response = await gateway.call('POST', '/chat/completions', {
    model,
    messages: [{ role: 'user', content: 'Hi' }],
  });
  return { status: response.status, text: await response.text() };
}

async function bring(provider: string): Promise<void> {
  const headers = { authorization: `Bearer ${gateway.management_key}` };
  const made = await gateway.call('POST', '/byok', { provider, key: JSON.stringify(keys) }, headers);
  const text = await made.text();
  expect(made.status, text).toBe(201);
  expect(text).not.toContain(secret);
  expect((JSON.parse(text) as { data: JsonObject }).data['label']).toBe('JSON');
}

test("the gateway's own key is sent as a token, and an organization's keys as a signature", async () => {
  expect((await ask('a/bedrock')).status).toBe(200);
  expect(upstream.exchanges.at(-1)!.headers['authorization']).toBe('Bearer bedrock-api-key-of-the-gateway');
  await bring('bedrock');
  const { status, text } = await ask('a/bedrock');
  expect(status, text).toBe(200);
  const { headers } = upstream.exchanges.at(-1)!;
  expect(headers['authorization']).toMatch(
    /^AWS4-HMAC-SHA256 Credential=ASIAIOSFODNN7EXAMPLE\/\d{8}\/eu-west-1\/bedrock\//,
  );
  expect(headers['x-amz-security-token']).toBe(token);
});

test('credentials that AWS quotes are not shown', async () => {
  isRefused = true;
  const { status, text } = await ask('a/bedrock');
  expect(status).toBe(502);
  expect(text).toContain('[redacted]');
  for (const part of [secret, token, keys.accessKeyId]) {
    expect(text).not.toContain(part);
    expect(gateway.log_lines.join('\n')).not.toContain(part);
  }
});

test('a provider on a wire without such credentials refuses them', async () => {
  await bring('plain');
  const { status, text } = await ask('a/plain');
  expect(status).toBe(404);
  expect(text).toContain('Filter by Own Credentials');
});
