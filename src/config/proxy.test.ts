import { expect, test } from 'vitest';
import { proxyFor } from '../providers/transport/proxy.ts';
import { readProxies } from './proxy.ts';

const PROXY = 'http://proxy.internal:3128';
const via = (environment: Record<string, string>, url: string) => proxyFor(readProxies(environment), new URL(url));

test('each scheme has its variable, with lower case first, and a proxy may lack its scheme', () => {
  expect(readProxies({})).toBeUndefined();
  expect(via({ HTTPS_PROXY: PROXY }, 'https://api.example')).toBe(`${PROXY}/`);
  expect(via({ HTTPS_PROXY: PROXY }, 'http://api.example')).toBeUndefined();
  expect(via({ HTTP_PROXY: PROXY }, 'http://api.example')).toBe(`${PROXY}/`);
  expect(via({ https_proxy: 'small.internal:1', HTTPS_PROXY: PROXY }, 'https://api.example')).toBe(
    'http://small.internal:1/',
  );
});

test.each([
  ['api.example', 'https://api.example', true],
  ['api.example', 'https://deep.api.example', true],
  ['api.example', 'https://notapi.example', false],
  ['.example', 'https://api.example', true],
  ['*.example', 'https://API.EXAMPLE.', true],
  ['other.example api.example', 'https://api.example', true],
  ['other.example, api.example', 'https://api.example', true],
  ['api.example:8443', 'https://api.example:8443', true],
  ['api.example:8443', 'https://api.example', false],
  ['api.example:443', 'https://api.example', true],
  ['10.0.0.0/8', 'https://10.1.2.3', true],
  ['10.0.0.0/8', 'https://11.1.2.3', false],
  ['10.0.0.0/8', 'https://10.example', false],
  ['fd00::/8', 'https://[fd12::1]', true],
  ['fd12::1', 'https://[fd12::1]', true],
  ['[fd12::1]:8443', 'https://[fd12::1]:8443', true],
  ['[fd12::1]:8443', 'https://[fd12::1]', false],
  ['*', 'https://api.example', true],
  ['', 'https://api.example', false],
  ['', 'https://localhost:8080', true],
  ['', 'https://127.3.2.1', true],
  ['', 'https://[::1]', true],
  ['', 'https://localhost.example', false],
])('NO_PROXY "%s": %s is reached directly: %s', (noProxy, url, isDirect) => {
  expect(via({ HTTPS_PROXY: PROXY, NO_PROXY: noProxy }, url) === undefined).toBe(isDirect);
});

test.each(['socks5://user:hidden@proxy:1080', 'http://user:hidden@proxy:1/path', 'ftp://hidden', 'http://:hidden:'])(
  'an address that is not an HTTP proxy (%s) stops the start, and is not quoted',
  (text) => {
    expect(() => readProxies({ HTTPS_PROXY: text })).toThrow(/^HTTPS_PROXY must be the address of an HTTP proxy/);
    expect(() => readProxies({ HTTPS_PROXY: text })).toThrow(/^(?!.*hidden)/);
  },
);
