import { createHash, createHmac } from 'node:crypto';
import { SignatureV4 } from '@smithy/signature-v4';
import { describe, expect, test } from 'vitest';
import { UpstreamError } from '../dialect.ts';
import { addressFor, authorize } from './sign.ts';

/** SHA-256 in the form that AWS’s own signer uses. */
class Sha256 {
  readonly #hash;
  constructor(secret?: string | ArrayBuffer | ArrayBufferView) {
    this.#hash = secret === undefined ? createHash('sha256') : createHmac('sha256', Buffer.from(secret as Uint8Array));
  }
  update(data: string | Uint8Array): void {
    this.#hash.update(data);
  }
  async digest(): Promise<Uint8Array> {
    return this.#hash.digest();
  }
  reset(): void {}
}

const NOW = Date.UTC(2026, 10, 21, 12, 34, 56, 789);
const keys = { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY' };
const host = 'bedrock-runtime.eu-west-1.amazonaws.com';
const payload = '{"messages":[{"role":"user","content":[{"text":"Grüße ☁️"}]}]}';
const signable = (path: string, at = host) => ({
  method: 'POST',
  url: `https://${at}${path}`,
  headers: { 'content-type': 'application/json', 'user-agent': 'model-gateway', traceparent: '00-1' },
  payload,
});

async function expected(path: string, credentials: typeof keys & { sessionToken?: string }, region: string, at = host) {
  const signer = new SignatureV4({
    service: 'bedrock',
    region,
    credentials,
    sha256: Sha256 as never,
    applyChecksum: false,
  });
  const { headers } = await signer.sign(
    {
      method: 'POST',
      protocol: 'https:',
      hostname: at,
      path,
      headers: {
        host: at,
        'content-type': 'application/json',
        'content-length': String(Buffer.byteLength(payload)),
      },
      body: payload,
    },
    { signingDate: new Date(NOW) },
  );
  return headers;
}

describe('a pair of keys', () => {
  test.each([
    '/model/amazon.nova-lite-v1%3A0/converse',
    '/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A123456789012%3Aapplication-inference-profile%2Fabc/converse-stream',
    '/model/strange%20%28name%29%21%2A%27%7E/converse',
  ])("signs like AWS's own signer: %s", async (path) => {
    const headers = await expected(path, keys, 'eu-west-1');
    expect(authorize(JSON.stringify(keys), signable(path), NOW)).toEqual({
      'x-amz-date': '20261121T123456Z',
      authorization: headers['authorization'],
    });
  });

  test('with a session token signs the token too', async () => {
    const session = { ...keys, sessionToken: 'FwoGZXIvYXdzEBYaD//token==' };
    const headers = await expected('/model/a/converse', session, 'eu-west-1');
    expect(authorize(` ${JSON.stringify(session)}\n`, signable('/model/a/converse'), NOW)).toEqual({
      'x-amz-date': '20261121T123456Z',
      'x-amz-security-token': session.sessionToken,
      authorization: headers['authorization'],
    });
  });

  test("signs for the region of AWS's host, or else for its own region", async () => {
    const own = JSON.stringify({ ...keys, region: 'ap-southeast-2' });
    expect(authorize(own, signable('/model/a/converse'), NOW)['authorization']).toContain('/eu-west-1/bedrock/');
    const proxy = authorize(own, signable('/model/a/converse', 'proxy.example'), NOW);
    const headers = await expected('/model/a/converse', keys, 'ap-southeast-2', 'proxy.example');
    expect(proxy['authorization']).toBe(headers['authorization']);
  });

  test.each([
    '{}',
    '{"accessKeyId":"a"}',
    '{broken',
    '{"accessKeyId":"","secretAccessKey":"b"}',
    '{"region":"eu-west-1"}',
  ])('that is malformed is refused with a message without its content: %s', (credential) => {
    const attempt = () => authorize(credential, signable('/model/a/converse'), NOW);
    expect(attempt).toThrow(UpstreamError);
    expect(attempt).toThrow('is not a JSON object with accessKeyId and secretAccessKey');
  });
});

test('a credential that is not JSON is a Bedrock API key', () => {
  expect(authorize('bedrock-api-key-abc ', signable('/'), NOW)).toEqual({
    authorization: 'Bearer bedrock-api-key-abc',
  });
  expect(authorize(undefined, signable('/'), NOW)).toEqual({});
});

test.each([
  ['us-west-2', 'https://bedrock-runtime.eu-west-1.amazonaws.com', 'https://bedrock-runtime.us-west-2.amazonaws.com'],
  [
    'us-west-2',
    'https://bedrock-runtime-fips.us-east-1.amazonaws.com',
    'https://bedrock-runtime-fips.us-west-2.amazonaws.com',
  ],
  ['us-west-2', 'https://proxy.example/bedrock', 'https://proxy.example/bedrock'],
  [
    'us-west-2',
    'https://bedrock-runtime.eu-west-1.amazonaws.com.evil.example',
    'https://bedrock-runtime.eu-west-1.amazonaws.com.evil.example',
  ],
  [
    'evil.example/#',
    'https://bedrock-runtime.eu-west-1.amazonaws.com',
    'https://bedrock-runtime.eu-west-1.amazonaws.com',
  ],
  [
    'us-west-2.evil',
    'https://bedrock-runtime.eu-west-1.amazonaws.com',
    'https://bedrock-runtime.eu-west-1.amazonaws.com',
  ],
])('a credential for region %s changes the address %s to %s', (region, baseUrl, address) => {
  expect(addressFor(baseUrl, JSON.stringify({ ...keys, region }))).toBe(address);
  expect(addressFor(baseUrl, JSON.stringify(keys))).toBe(baseUrl);
  expect(addressFor(baseUrl, 'a key')).toBe(baseUrl);
});
