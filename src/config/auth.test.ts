import { expect, test } from 'vitest';
import { readAuth } from './auth.ts';
import { readConfigFile } from './read-file.ts';

const read = (yaml: string, environment: Record<string, string> = {}) =>
  readAuth(environment, readConfigFile('gateway.yaml', yaml));
const oidc = (lines: string, publicUrl = 'https://gateway.example') =>
  `auth:\n  public_url: ${publicUrl}\n  oidc:\n    issuer: https://login.example\n    client_id: gateway\n${lines}`;

test('without settings: no address, no issuer, no warning', () => {
  const none = { auth: { public_origin: undefined, issuer: undefined }, warnings: [] };
  expect(readAuth({}, undefined)).toEqual(none);
  expect(read('{}')).toEqual(none);
});

test('all settings are read', () => {
  const lines = [
    `    client_secret: \${OIDC_SECRET}`,
    '    scopes: [openid, email]',
    '    provision: admin',
    '    allowed_email_domains: [Example.com]',
  ];
  expect(read(oidc(lines.join('\n'), 'https://Gateway.example:443/'), { OIDC_SECRET: 's3cret' })).toEqual({
    auth: {
      public_origin: 'https://gateway.example',
      issuer: {
        issuer: 'https://login.example',
        client_id: 'gateway',
        client_secret: 's3cret',
        scopes: ['openid', 'email'],
        provision: 'admin',
        allowed_email_domains: ['example.com'],
      },
    },
    warnings: [],
  });
});

test('by default no new user is admitted, and a client without a secret is a public one', () => {
  expect(read(oidc('')).auth.issuer).toMatchObject({
    provision: 'none',
    client_secret: undefined,
    scopes: ['openid', 'profile', 'email'],
    allowed_email_domains: undefined,
  });
});

test('an issuer whose secret is not set is disabled, with a warning that names the variable', () => {
  const { auth, warnings } = read(oidc(`    client_secret: \${OIDC_SECRET}`));
  expect(auth.issuer).toBeUndefined();
  expect(warnings).toEqual([
    expect.stringMatching(/auth\.oidc\.client_secret refers to OIDC_SECRET, which is not set/),
  ]);
});

test('an issuer on this machine may lack TLS', () => {
  const local = (issuer: string) => oidc('').replace('https://login.example', issuer);
  expect(read(local('http://127.0.0.1:9000/realm')).auth.issuer?.issuer).toBe('http://127.0.0.1:9000/realm');
  expect(() => read(local('http://login.example'))).toThrow(/auth\.oidc\.issuer must be a URL that starts with https/);
});

test.each([
  ['auth: { public_url: gateway.example }', /line 1: auth\.public_url must be an address without a path/],
  ['auth: { public_url: "https://gateway.example/path" }', /auth\.public_url must be an address without a path/],
  ['auth: { public_url: "https://a:b@gateway.example" }', /auth\.public_url must be an address/],
  ['auth: { public_url: "ftp://gateway.example" }', /auth\.public_url must be an address/],
  ['auth: { oidc: { issuer: "https://login.example", client_id: a } }', /auth must have public_url/],
  ['auth: { public_url: "https://a.example", oidc: { issuer: "https://login.example" } }', /must have client_id/],
  [oidc('    scopes: [email]'), /auth\.oidc\.scopes must have openid/],
  [oidc('    provision: owner'), /auth\.oidc\.provision must be one of admin, member, none/],
  [oidc('    allowed_email_domains: []'), /auth\.oidc\.allowed_email_domains must be a list of domains/],
  [oidc('    allowed_email_domains: ["@example.com"]'), /must be a domain such as example\.com/],
  [oidc('').replace('https://login.example', 'https://login.example/?a=b'), /auth\.oidc\.issuer must be a URL/],
  [oidc('    secret: a'), /auth\.oidc\.secret is not a known setting/],
])('%s is refused', (yaml, message) => {
  expect(() => read(yaml)).toThrow(message);
});

test('a wrong secret is not shown', () => {
  expect(() => read(oidc('    client_secret: 12345'))).toThrow(/client_secret must be(?!.*12345)/);
});
