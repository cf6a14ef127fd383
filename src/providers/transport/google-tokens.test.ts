import { generateKeyPairSync } from 'node:crypto';
import { expect, test } from 'vitest';
import { createGoogleTokens, GOOGLE_FAILURE_MS, GOOGLE_REFUSAL_MS } from './google-tokens.ts';

const pem = { type: 'pkcs8', format: 'pem' } as const;
const rsa = (modulusLength: number) => generateKeyPairSync('rsa', { modulusLength }).privateKey.export(pem).toString();
const account = (privateKey: string) => JSON.stringify({ client_email: 'a@b', private_key: privateKey });

const tokens = createGoogleTokens(async () => ({ status: 200, text: '{"access_token":"t","expires_in":3600}' }));

test('a service account signs with a key of Google’s size', async () => {
  expect(await tokens.show(account(rsa(2_048)), undefined, 0)).toBe('Bearer t');
});

test('a refused account is not tried again for a while; others are, and so is a corrected one', async () => {
  const answers = [
    { status: 400, text: '{"error":"invalid_grant"}' },
    { status: 503, text: '' },
    { status: 200, text: '{"access_token":"t","expires_in":3600}' },
  ];
  let requestCount = 0;
  const own = createGoogleTokens(async () => answers[requestCount++] ?? { status: 500, text: '' });
  const [bad, good] = [account(rsa(2_048)), account(rsa(2_048))];
  const ask = (credential: string, nowMs: number) =>
    Promise.resolve(own.show(credential, undefined, nowMs)).catch((error: { failure: string }) => error.failure);
  expect(await Promise.all([ask(bad, 0), ask(bad, 1)])).toEqual(['credential', 'credential']);
  expect([await ask(bad, GOOGLE_REFUSAL_MS - 1), requestCount]).toEqual(['credential', 1]);
  expect([await ask(good, 0), await ask(good, GOOGLE_FAILURE_MS - 1), requestCount]).toEqual([
    'unavailable',
    'unavailable',
    2,
  ]);
  expect([await ask(good, GOOGLE_FAILURE_MS), requestCount]).toEqual(['Bearer t', 3]);
  expect([await ask(good, GOOGLE_FAILURE_MS), requestCount]).toEqual(['Bearer t', 3]);
});

test('a token is used until it expires if no new one is available, unless Google refuses the account', async () => {
  const fine = { status: 200, text: '{"access_token":"t","expires_in":3600}' };
  const credential = account(rsa(2_048));
  const after = async (status: number, nowMs: number) => {
    const answers = [fine, { status, text: '{"error":"x"}' }];
    const own = createGoogleTokens(async () => answers.shift() ?? { status, text: '' });
    const ask = (at: number) =>
      Promise.resolve()
        .then(() => own.show(credential, undefined, at))
        .catch((error: { failure: string }) => error.failure);
    await ask(0);
    return [await ask(nowMs), await ask(nowMs + 1)];
  };
  expect(await after(503, 3_400_000)).toEqual(['Bearer t', 'Bearer t']);
  expect(await after(429, 3_400_000)).toEqual(['Bearer t', 'Bearer t']);
  expect(await after(503, 3_600_000)).toEqual(['unavailable', 'unavailable']);
  expect(await after(400, 3_400_000)).toEqual(['credential', 'credential']);
});

test.each([
  ['is longer than Google’s, which would block every other request', rsa(5_120)],
  ['is of another kind', generateKeyPairSync('ed25519').privateKey.export(pem).toString()],
  ['is not a key', 'secret text'],
])('nothing is signed with a key that %s, and the error does not contain it', async (_, key) => {
  const failure: unknown = await Promise.resolve(tokens.show(account(key), undefined, 0)).catch(
    (error: unknown) => error,
  );
  expect(failure).toMatchObject({ failure: 'credential', status: 401 });
  expect(JSON.stringify(failure) + String(failure)).not.toContain(key.slice(0, 20));
});
