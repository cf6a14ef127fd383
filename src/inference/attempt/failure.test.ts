import { expect, test } from 'vitest';
import { type FailureClass, UpstreamError } from '../../providers/dialect.ts';
import type { Provider } from '../../providers/provider.ts';
import type { InnerPart } from '../../schemas/inner.ts';
import { clientError, fallsOver, isOfEndpoint, redact } from './failure.ts';

const provider: Provider = {
  slug: 'acme',
  name: 'Acme',
  dialect: 'openai-chat',
  base_url: 'http://10.1.2.3/v1',
  credential: 'very-secret-credential',
  quirks: {},
  data_policy: { training: 'unknown', retention_days: 'unknown' },
  abort_stops_billing: true,
  headers: {},
};
const failed = (failure: FailureClass, message = 'it said so', details = {}) => ({
  provider,
  error: new UpstreamError(failure, message, details),
});

test.each<[FailureClass, boolean, number]>([
  ['rate_limited', true, 429],
  ['overloaded', true, 503],
  ['unavailable', true, 502],
  ['timeout', true, 408],
  ['credential', true, 502],
  ['payment', true, 502],
  ['not_found', true, 502],
  ['conflict', true, 502],
  ['invalid_request', false, 400],
  ['content_filter', false, 403],
  ['invalid_response', true, 502],
])('%s: falls back: %s, otherwise status %i', (failure, over, status) => {
  expect(fallsOver(failure)).toBe(over);
  expect(clientError([failed(failure)]).status).toBe(status);
});

test('a provider that could not be reached is not reported as having returned an error', () => {
  const message = (details: ConstructorParameters<typeof UpstreamError>[2]) =>
    clientError([failed('unavailable', 'The provider could not be reached', details)]).message;
  const unreached = 'Acme did not answer: The provider could not be reached';
  expect(message({ transport_code: 'ECONNREFUSED', never_sent: true })).toBe(unreached);
  expect(message({ never_sent: true })).toBe(unreached);
  expect(message({ status: 500 })).toMatch(/^Acme returned an error: /);
});

test('a 503 of the provider is a 503 for the client, whatever its failure class; a 500 is a 502', () => {
  for (const failure of ['unavailable', 'overloaded'] as const) {
    expect(clientError([failed(failure, 'busy', { status: 503 })]).status).toBe(503);
  }
  expect(clientError([failed('unavailable', 'broken', { status: 500 })]).status).toBe(502);
});

test.each([413, 422])('a provider’s own status %i is returned', (status) => {
  expect(clientError([failed('invalid_request', 'too large', { status })]).status).toBe(status);
});

test('retry-after is the shortest wait that a failed endpoint requested', () => {
  const error = clientError([
    failed('rate_limited', 'a', { retry_after_ms: 9_000 }),
    failed('rate_limited', 'b', { retry_after_ms: 2_500 }),
  ]);
  expect(error.headers).toEqual({ 'retry-after': '3' });
  expect(error.metadata?.['previous_errors']).toEqual([{ provider: 'Acme', code: null, reason: 'rate_limited' }]);
});

test.each<[FailureClass, string | undefined]>([
  ['rate_limited', '2'],
  ['overloaded', '2'],
  ['unavailable', undefined],
])('retry-after is sent with a 429 and a 503 only: %s', (failure, expected) => {
  expect(clientError([failed(failure, 'a', { retry_after_ms: 2_000 })]).headers?.['retry-after']).toBe(expected);
});

test('a provider’s message about the operator’s balance is not shown to clients', () => {
  const error = clientError([failed('payment', 'Your credit balance is too low', { raw: 'raw', status: 402 })]);
  expect(error.message).toBe("Acme refused the gateway's credential or account");
  expect(error.metadata).not.toHaveProperty('raw');
});

test('a provider’s message about the operator’s credential is not shown to clients', () => {
  const error = clientError([
    failed('credential', 'Incorrect API key provided: very-s*****ial', { raw: 'Incorrect API key', status: 401 }),
  ]);
  expect(error.message).toBe("Acme refused the gateway's credential or account");
  expect(error.metadata).not.toHaveProperty('raw');
});

test.each([
  ['the credential of the endpoint', 'key very-secret-credential is bad', 'key [redacted] is bad'],
  ['an OpenAI key', 'Incorrect API key: sk-proj-abcDEF0123456789', 'Incorrect API key: [redacted]'],
  ['a Google key', 'bad AIzaSyA0123456789abcdefghij', 'bad [redacted]'],
  ['an error code', 'api_key_invalid_or_missing', 'api_key_invalid_or_missing'],
  ['an AWS key', 'denied for AKIAIOSFODNN7EXAMPLE', 'denied for [redacted]'],
  ['a bearer token', 'got Bearer abc.def.ghi', 'got Bearer [redacted]'],
  ['an ordinary sentence', 'The key of this map is missing', 'The key of this map is missing'],
])('credentials in messages are redacted: %s', (_name, text, shown) => {
  expect(redact(text, provider.credential)).toBe(shown);
});

test('a long text is cut', () => {
  expect(redact('x'.repeat(1e6), undefined).length).toBeLessThan(2_100);
});

test.each<[FailureClass, number | null, boolean]>([
  ['rate_limited', 429, true],
  ['unavailable', null, true],
  ['timeout', null, true],
  ['invalid_response', 200, true],
  ['payment', 400, true],
  ['credential', 400, true],
  ['invalid_response', 400, false],
  ['not_found', 400, false],
  ['invalid_response', 413, false],
  ['invalid_response', 422, false],
])('whether a failure is caused by the endpoint: %s with status %s: %s', (failure, status, expected) => {
  expect(isOfEndpoint(failed(failure, 'it said so', { status }).error, { messages: [] })).toBe(expected);
});

test.each<[string, string | undefined, boolean]>([
  ['No such File object: file-abc', 'file-abc', false],
  ['Nothing is known of file-abc', 'file-abc', false],
  ['File not found', 'file-abc', false],
  ['The model does not exist', 'file-abc', true],
  ['The profile does not exist', 'file-abc', true],
  ['File not found', undefined, true],
])(
  'a 404 with the message "%s" for a request with file %s is caused by the endpoint: %s',
  (message, fileId, expected) => {
    const content = [
      fileId === undefined ? { type: 'text', text: 'x' } : { type: 'file', file: { file_id: fileId } },
    ] as InnerPart[];
    const { error } = failed('not_found', message, { status: 404 });
    expect(isOfEndpoint(error, { messages: [{ role: 'user', content }] })).toBe(expected);
  },
);

test('each part of a credential of several parts is redacted', () => {
  const credential = JSON.stringify({
    accessKeyId: 'ASIAIOSFODNN7EXAMPLE',
    secretAccessKey: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY',
    sessionToken: 'FwoGZXIvYXdzEBYaDHqa0AP1/token',
    region: 'eu-west-1',
  });
  const quoted =
    'Canonical String: host:eu-west-1 x-amz-security-token:FwoGZXIvYXdzEBYaDHqa0AP1/token key ASIAIOSFODNN7EXAMPLE';
  expect(redact(quoted, credential)).toBe(
    'Canonical String: host:eu-west-1 x-amz-security-token:[redacted] key [redacted]',
  );
  expect(redact(`no ${credential}`, credential)).toBe('no [redacted]');
  expect(redact('key ASIAIOSFODNN7EXAMPLE', undefined)).toBe('key [redacted]');
});
