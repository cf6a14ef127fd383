import type { FastifyRequest } from 'fastify';
import { describe, expect, test } from 'vitest';
import { checkSameSite, returnPath } from './site.ts';

describe('a path to return to', () => {
  test.each([
    [
      '/auth?callback_url=https%3A%2F%2Fapp.example%2F&state=a',
      '/auth?callback_url=https%3A%2F%2Fapp.example%2F&state=a',
    ],
    ['/', '/'],
    ['/a/../b', '/b'],
    ['/a?b=//c', '/a?b=//c'],
    ['/a#fragment', '/a'],
  ])('%s is valid', (text, path) => {
    expect(returnPath(text)).toBe(path);
  });

  test.each([
    '//evil.example',
    '///evil.example',
    '/\\evil.example',
    '\\\\evil.example',
    '/\t/evil.example',
    '/\n/evil.example',
    ' //evil.example',
    '/a\\b',
    '/..//evil.example',
    '/.//evil.example',
    '/a/..//evil.example/b',
    '/%2e%2E//evil.example',
    'https://evil.example',
    'https:/evil.example',
    'javascript:alert(1)',
    'evil.example',
    '',
    '/a\u0000',
    '/é',
    `/${'a'.repeat(8192)}`,
  ])('%j is invalid', (text) => {
    expect(returnPath(text)).toBeUndefined();
  });
});

describe('a form', () => {
  const check = (headers: Record<string, string>, publicOrigin?: string) => () =>
    checkSameSite({ headers: { host: 'gateway.example', ...headers } } as unknown as FastifyRequest, {
      public_origin: publicOrigin,
    });
  const PUBLIC = 'https://public.example';

  test.each<[Record<string, string>, string | undefined]>([
    [{ origin: 'http://gateway.example' }, undefined],
    [{ 'sec-fetch-site': 'same-origin' }, undefined],
    [{ origin: 'http://gateway.example', 'sec-fetch-site': 'same-origin' }, undefined],
    [{ origin: PUBLIC }, PUBLIC],
    [{ origin: PUBLIC, 'sec-fetch-site': 'same-origin' }, PUBLIC],
  ])('with %j is from a page of the gateway', (headers, origin) => {
    expect(check(headers, origin)).not.toThrow();
  });

  test.each<[Record<string, string>, string | undefined]>([
    [{}, undefined],
    [{ origin: 'null' }, undefined],
    [{ origin: 'http://evil.example' }, undefined],
    [{ origin: 'https://gateway.example' }, undefined],
    [{ origin: 'http://gateway.example:81' }, undefined],
    [{ 'sec-fetch-site': 'cross-site' }, undefined],
    [{ 'sec-fetch-site': 'same-site' }, undefined],
    [{ 'sec-fetch-site': 'none' }, undefined],
    [{ origin: 'http://gateway.example', 'sec-fetch-site': 'cross-site' }, undefined],
    [{ origin: 'http://evil.example', 'sec-fetch-site': 'same-origin' }, undefined],
    [{ origin: 'http://gateway.example' }, PUBLIC],
    [{}, PUBLIC],
  ])('with %j is not from a page of the gateway', (headers, origin) => {
    expect(check(headers, origin)).toThrow(/did not come from a page/);
  });
});
