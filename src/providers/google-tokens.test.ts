import { generateKeyPairSync } from 'node:crypto';
import { expect, test } from 'vitest';
import { createGoogleTokens } from './google-tokens.ts';

const pem = { type: 'pkcs8', format: 'pem' } as const;
const rsa = (modulusLength: number) => generateKeyPairSync('rsa', { modulusLength }).privateKey.export(pem).toString();
const account = (private_key: string) => JSON.stringify({ client_email: 'a@b', private_key });

const tokens = createGoogleTokens(async () => ({ status: 200, text: '{"access_token":"t","expires_in":3600}' }));

test('a service account signs with the keys that Google makes', async () => {
  expect(await tokens.show(account(rsa(2_048)), undefined, 0)).toBe('Bearer t');
});

test.each([
  ['is longer than Google takes, which would hold up every other request', rsa(5_120)],
  ['is of another kind', generateKeyPairSync('ed25519').privateKey.export(pem).toString()],
  ['is none', 'secret text'],
])('nothing is signed with a key that %s, and the refusal does not show it', async (_, key) => {
  const failure: unknown = await Promise.resolve(tokens.show(account(key), undefined, 0)).catch(
    (error: unknown) => error,
  );
  expect(failure).toMatchObject({ failure: 'credential', status: 401 });
  expect(JSON.stringify(failure) + String(failure)).not.toContain(key.slice(0, 20));
});
