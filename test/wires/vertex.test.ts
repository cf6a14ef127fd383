/**
 * Vertex AI through a running gateway: accounts are exchanged for tokens, addresses follow accounts, and Claude is
 * served there.
 */
import { createPublicKey, generateKeyPairSync, verify } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { JsonObject } from '../../src/schemas/json.ts';
import { startGateway, type TestGateway } from '../harness.ts';
import { type Exchange, responseHead, type Step, startWireServer, type WireServer } from './wire-server.ts';

const { privateKey, publicKey } = generateKeyPairSync('rsa', {
  modulusLength: 2048,
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  publicKeyEncoding: { type: 'spki', format: 'pem' },
});
const ACCOUNT = {
  type: 'service_account',
  project_id: 'own-project',
  private_key_id: 'key-1',
  private_key: privateKey,
  client_email: 'gateway@own-project.iam.gserviceaccount.com',
  // Not followed, because the address in a credential could be any.
  token_uri: 'http://127.0.0.1:9/token',
};

const GEMINI: JsonObject = {
  candidates: [{ content: { parts: [{ text: 'Hello' }], role: 'model' }, finishReason: 'STOP' }],
  usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 1, totalTokenCount: 4, trafficType: 'ON_DEMAND' },
  modelVersion: 'gemini-3-flash',
  responseId: 'r1',
};
const CLAUDE: JsonObject = {
  id: 'msg_vrtx_1',
  type: 'message',
  role: 'assistant',
  model: 'claude-sonnet-4-5',
  content: [{ type: 'text', text: 'Hello' }],
  stop_reason: 'end_turn',
  stop_sequence: null,
  usage: { input_tokens: 3, output_tokens: 1 },
};

let upstream: WireServer;
let gateway: TestGateway;
let home: string;
/** The next answer of the token server. */
let tokenAnswer: () => Step[];
let issued = 0;
/** The tokens that Google no longer accepts. */
let revoked: string | undefined;

const json = (status: number, body: object): Step[] => [
  responseHead(status, 'application/json'),
  JSON.stringify(body),
  'END',
];
const token = (expiresIn = 3600): Step[] => {
  issued += 1;
  return json(200, { access_token: `ya29.token-${issued}`, expires_in: expiresIn, token_type: 'Bearer' });
};

beforeAll(async () => {
  upstream = await startWireServer((exchange) => {
    if (exchange.path.endsWith('/token')) return tokenAnswer();
    if (seen(exchange).authorization === revoked) {
      return json(401, {
        error: { code: 401, message: 'Invalid authentication credentials.', status: 'UNAUTHENTICATED' },
      });
    }
    return json(200, exchange.path.includes('Predict') ? CLAUDE : GEMINI);
  });
  home = mkdtempSync(join(tmpdir(), 'vertex-'));
  writeFileSync(join(home, 'account.json'), JSON.stringify(ACCOUNT, null, 2));
});

afterAll(async () => {
  await upstream.stop();
  rmSync(home, { recursive: true, force: true });
});

const price = { prompt: 1, completion: 2 };
const config = (quirks: object = {}, apiKey: string | undefined = join(home, 'account.json')) =>
  JSON.stringify({
    bundled_catalog: false,
    providers: {
      'google-vertex': {
        base_url: `${upstream.url}/v1beta1/projects/config-project/locations/europe-west4/publishers/google`,
        ...(apiKey === undefined ? {} : { api_key: apiKey }),
        quirks: { token_url: `${upstream.url}/token`, ...quirks },
      },
    },
    models: {
      'google/gemini': { endpoints: [{ provider: 'google-vertex', upstream_model: 'gemini-3-flash', pricing: price }] },
      'anthropic/claude': {
        endpoints: [
          {
            provider: 'google-vertex',
            dialect: 'anthropic-messages',
            upstream_model: 'claude-sonnet-4-5@20250929',
            pricing: price,
            max_completion_tokens: 100,
          },
        ],
      },
    },
  });

const ask = (model: string, more: object = {}) =>
  gateway.call('POST', '/chat/completions', { model, messages: [{ role: 'user', content: 'Hi' }], ...more });
const tokens = () => upstream.exchanges.filter(({ path }) => path.endsWith('/token'));
const calls = () => upstream.exchanges.filter(({ path }) => !path.endsWith('/token'));

describe('an account', () => {
  beforeEach(() => {
    upstream.exchanges.length = 0;
    tokenAnswer = token;
  });

  async function run(work: () => Promise<void>, yaml = config()): Promise<void> {
    gateway = await startGateway({ yaml });
    try {
      await work();
    } finally {
      await gateway.stop();
    }
  }

  test('gets one token for concurrent requests, signed for itself, and keeps it', async () => {
    await run(async () => {
      const answers = await Promise.all([ask('google/gemini'), ask('google/gemini'), ask('google/gemini')]);
      expect(await Promise.all(answers.map(async (one) => [one.status, await one.json()]))).toEqual(
        answers.map(() => [200, expect.objectContaining({ provider: 'Google' })]),
      );
      expect((await ask('google/gemini')).status).toBe(200);
      expect(tokens()).toHaveLength(1);
      const { authorization, path } = seen(calls()[0]!);
      expect(authorization).toBe(`Bearer ya29.token-${issued}`);
      // The operator's project: the account belongs to another one, and has access to this one.
      expect(path).toBe(
        '/v1beta1/projects/config-project/locations/europe-west4/publishers/google/models/gemini-3-flash:generateContent',
      );
      expectAssertion(tokens()[0]!);
      expect(gateway.log_lines.join('\n')).not.toContain('PRIVATE KEY');
      expect(gateway.log_lines.join('\n')).not.toContain('ya29.');
    });
  });

  test('gets another token when the first is near its end', async () => {
    tokenAnswer = () => token(200);
    await run(async () => {
      expect((await ask('google/gemini')).status).toBe(200);
      expect((await ask('google/gemini')).status).toBe(200);
      expect(tokens()).toHaveLength(2);
      expect(calls().map((one) => seen(one).authorization)).toEqual([
        `Bearer ya29.token-${issued - 1}`,
        `Bearer ya29.token-${issued}`,
      ]);
    });
  });

  test('gets another token when Google no longer accepts the first', async () => {
    await run(async () => {
      expect((await ask('google/gemini')).status).toBe(200);
      revoked = `Bearer ya29.token-${issued}`;
      // The call itself may continue elsewhere, and reports the cause.
      expect((await ask('google/gemini')).status).toBe(502);
      expect((await ask('google/gemini')).status).toBe(200);
      expect(tokens()).toHaveLength(2);
    });
  });

  test("is the operator's fault if Google refuses it: no model is called, and nothing is charged", async () => {
    tokenAnswer = () => json(400, { error: 'invalid_grant', error_description: 'Invalid JWT Signature.' });
    await run(async () => {
      const response = await ask('google/gemini');
      const { error } = (await response.json()) as { error: JsonObject };
      expect(response.status).toBe(502);
      expect(JSON.stringify(error)).not.toContain('own-project');
      expect(calls()).toHaveLength(0);
      expect(gateway.log_lines.join('\n')).not.toContain('PRIVATE KEY');
    });
  });

  test('whose token is unavailable for a while costs nothing either', async () => {
    tokenAnswer = () => ['RESET'];
    await run(async () => {
      const response = await ask('google/gemini');
      expect(response.status).toBe(503);
      await expect
        .poll(async () => ((await (await gateway.call('GET', '/key')).json()) as { data: JsonObject }).data['usage'])
        .toBe(0);
    });
  });

  test('speaks to Claude: the model in the address, the version in the body', async () => {
    await run(async () => {
      const response = await ask('anthropic/claude');
      expect([response.status, ((await response.json()) as JsonObject)['model']]).toEqual([200, 'anthropic/claude']);
      const { path, body, headers } = seen(calls()[0]!);
      expect(path).toBe(
        '/v1beta1/projects/config-project/locations/europe-west4/publishers/anthropic/models/claude-sonnet-4-5@20250929:rawPredict',
      );
      expect(body).toEqual({
        anthropic_version: 'vertex-2023-10-16',
        max_tokens: 100,
        messages: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }],
      });
      expect(headers['anthropic-version']).toBeUndefined();
      await (await ask('anthropic/claude', { stream: true })).text();
      expect(seen(calls()[1]!).path).toMatch(/:streamRawPredict$/);
    });
  });

  test('of an organization is used in its own project and at its own location, with a token of its own', async () => {
    await run(async () => {
      const key = JSON.stringify({ ...ACCOUNT, project_id: 'their-project', region: 'us-east5' });
      const made = await fetch(`${gateway.base_url}/byok`, {
        method: 'POST',
        headers: { authorization: `Bearer ${gateway.management_key}`, 'content-type': 'application/json' },
        body: JSON.stringify({ provider: 'google-vertex', key }),
      });
      expect(made.status).toBe(201);
      expect((await ask('google/gemini')).status).toBe(200);
      expect(seen(calls()[0]!).path).toContain('/projects/their-project/locations/us-east5/');
    });
  });

  test('is not needed if a plain key is configured', async () => {
    await run(
      async () => {
        expect((await ask('google/gemini')).status).toBe(200);
        expect(tokens()).toHaveLength(0);
        expect(seen(calls()[0]!).headers['x-goog-api-key']).toBe('AIza-plain');
      },
      config({}, 'AIza-plain'),
    );
  });

  test('that cannot be read stops the start, and is not quoted', async () => {
    writeFileSync(join(home, 'broken.json'), '{"private_key": "secret-part"}');
    await expect(startGateway({ yaml: config({}, join(home, 'broken.json')) })).rejects.toThrow(
      /key file of a service account/,
    );
    await expect(startGateway({ yaml: config({}, join(home, 'absent.json')) })).rejects.toThrow(/path of a JSON file/);
  });
});

function seen({ path, headers, body }: Exchange) {
  return {
    path: path.replace(/^\/v1(?=\/)/, ''),
    headers,
    authorization: headers['authorization'],
    body: JSON.parse(body) as JsonObject,
  };
}

function expectAssertion({ body, headers }: Exchange): void {
  expect(headers['content-type']).toBe('application/x-www-form-urlencoded');
  const form = new URLSearchParams(body);
  expect(form.get('grant_type')).toBe('urn:ietf:params:oauth:grant-type:jwt-bearer');
  const [head = '', claims = '', signature = ''] = form.get('assertion')!.split('.');
  const read = (part: string) => JSON.parse(Buffer.from(part, 'base64url').toString());
  expect(read(head)).toEqual({ alg: 'RS256', typ: 'JWT', kid: 'key-1' });
  const { iat, exp, ...others } = read(claims);
  expect(exp - iat).toBe(3600);
  expect(Math.abs(iat - Date.now() / 1000)).toBeLessThan(60);
  expect(others).toEqual({
    iss: ACCOUNT.client_email,
    scope: 'https://www.googleapis.com/auth/cloud-platform',
    aud: `${upstream.url}/token`,
  });
  const signed = Buffer.from(`${head}.${claims}`);
  expect(verify('RSA-SHA256', signed, createPublicKey(publicKey), Buffer.from(signature, 'base64url'))).toBe(true);
}
