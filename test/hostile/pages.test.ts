import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../harness.ts';
import { ask } from './raw-http.ts';

let gateway: TestGateway;
let cookie: string;
const HOST = 'gateway.example';
const SAME_SITE = `Origin: http://${HOST}\r\n`;
const FORM = 'Content-Type: application/x-www-form-urlencoded\r\n';

const get = (path: string, headers = '') =>
  ask(gateway.url, `GET ${path} HTTP/1.1\r\nHost: ${HOST}\r\nConnection: close\r\n${headers}\r\n`);
const post = (path: string, fields: Record<string, string>, headers = SAME_SITE) => {
  const body = new URLSearchParams(fields).toString();
  return ask(
    gateway.url,
    `POST ${path} HTTP/1.1\r\nHost: ${HOST}\r\nConnection: close\r\n${headers}${FORM}Content-Length: ${body.length}\r\n\r\n${body}`,
  );
};

beforeAll(async () => {
  // Sign-in is tried often here; the clock restores every attempt.
  let now = 0;
  const clock = {
    nowMs: Date.now,
    monotonicMs: () => {
      now += 60_000;
      return now;
    },
  };
  gateway = await startGateway({ clock });
  const answer = await post('/sign-in', { management_key: gateway.management_key });
  cookie = /^[^;]+/.exec(answer?.headers['set-cookie'] ?? '')?.[0] ?? '';
});
afterAll(() => gateway.stop());

describe('a form is accepted only from this site', () => {
  test.each([
    ['a form without any origin header', ''],
    ['a form from another origin', 'Origin: http://evil.example\r\n'],
    ['a form from a null origin', 'Origin: null\r\n'],
    ['a form from our host with another scheme', `Origin: https://${HOST}\r\n`],
    ['a form from a host that begins with ours', `Origin: http://${HOST}.evil.example\r\n`],
    ['a form with two origin headers', `${SAME_SITE}Origin: http://evil.example\r\n`, 400],
    ['a form with two origins in one header', `Origin: http://${HOST}, http://evil.example\r\n`],
    ['a form of our origin that was sent cross-site', `${SAME_SITE}Sec-Fetch-Site: cross-site\r\n`],
    ['a form from another host of the same site', 'Sec-Fetch-Site: same-site\r\n'],
    ['a form submitted from the address bar', 'Sec-Fetch-Site: none\r\n'],
    ['a form with only a referer', `Referer: http://${HOST}/sign-in\r\n`],
  ])('%s is refused', async (_name, headers, status = 403) => {
    for (const path of ['/sign-in', '/sign-out', '/auth']) {
      const answer = await post(path, { management_key: gateway.management_key }, `${headers}Cookie: ${cookie}\r\n`);
      expect([path, answer?.status, answer?.headers['set-cookie']]).toEqual([path, status, undefined]);
    }
  });

  test('an approval without the token of its session is refused', async () => {
    const fields = { callback_url: 'https://app.example/cb', decision: 'approve' };
    for (const formToken of ['', 'x', 'a'.repeat(43)]) {
      const answer = await post('/auth', { ...fields, form_token: formToken }, `${SAME_SITE}Cookie: ${cookie}\r\n`);
      expect([answer?.status, answer?.headers['location']]).toEqual([403, undefined]);
    }
  });

  test('a second cookie with the name of the session’s has no effect', async () => {
    const answer = await get('/sign-in', `Cookie: ${cookie}; ${cookie}\r\n`);
    expect(answer?.body).toContain('name="management_key"');
    expect((await get('/sign-in', `Cookie: ${cookie}\r\n`))?.body).not.toContain('name="management_key"');
  });
});

describe('redirects lead only to checked addresses', () => {
  test.each([
    '//evil.example',
    '/\\evil.example',
    '/\t/evil.example',
    '/\n/evil.example',
    '\u0001//evil.example',
    'https://evil.example',
    'https:evil.example',
    '/..//evil.example',
    '/.%2e//evil.example',
    '/a/../..//evil.example',
    'javascript:alert(1)',
    '@evil.example',
  ])('%j is not accepted as a target of a redirect', async (returnTo) => {
    const answer = await post('/sign-in', { management_key: gateway.management_key, return_to: returnTo });
    expect([answer?.status, answer?.headers['location']]).toEqual([303, './']);
    const page = await get(`/sign-in?${new URLSearchParams({ return_to: returnTo })}`);
    expect(page?.body).not.toContain('evil.example');
  });

  test('line breaks of a target, a state or a callback stay escaped in the redirect', async () => {
    const answer = await post('/sign-in', {
      management_key: gateway.management_key,
      return_to: '/%0d%0aSet-Cookie:x=1',
    });
    expect(answer?.headers['location']).toBe('./%0d%0aSet-Cookie:x=1');
    const fields = { callback_url: 'https://app.example/cb', state: 'x\r\nSet-Cookie: y=1', decision: 'deny' };
    const page = await get(`/auth?${new URLSearchParams(fields)}`, `Cookie: ${cookie}\r\n`);
    const [, formToken = ''] = /name="form_token" value="([^"]+)"/.exec(page?.body ?? '') ?? [];
    const sent = await post('/auth', { ...fields, form_token: formToken }, `${SAME_SITE}Cookie: ${cookie}\r\n`);
    expect(sent?.headers['location']).toMatch(/^https:\/\/app\.example\/cb\?[\x21-\x7e]+$/);
    expect(sent?.headers['set-cookie']).toBeUndefined();
  });

  test.each([
    'javascript:alert(1)',
    'http://app.example/cb',
    'https://app.example:444/cb',
    'https://user:word@app.example/cb',
    'https://app.example\\@evil.example/',
    'https://app.example;script-src x/cb',
    '//app.example/cb',
  ])('%j is not accepted as a callback, and changes no policy of the page', async (callbackUrl) => {
    const page = await get(`/auth?${new URLSearchParams({ callback_url: callbackUrl })}`, `Cookie: ${cookie}\r\n`);
    expect(page?.status).toBe(400);
    expect(page?.headers['content-security-policy']).toMatch(/form-action 'self'; frame-ancestors 'none'/);
  });
});

test('pages run no scripts, cannot be framed by another site, and are not cached', async () => {
  for (const path of ['/sign-in', '/auth', '/auth?callback_url=https%3A%2F%2Fapp.example%2Fcb', '/sign-in?x=1&x=2']) {
    const { headers = {} } = (await get(path, `Cookie: ${cookie}\r\n`)) ?? {};
    expect(headers, path).toMatchObject({
      'cache-control': 'no-store',
      'x-frame-options': 'DENY',
      'x-content-type-options': 'nosniff',
      'content-security-policy': expect.stringMatching(/^default-src 'none';.*frame-ancestors 'none'/),
    });
    expect(headers['content-security-policy']).not.toContain('script-src');
  }
  expect((await get('/'))?.headers['content-security-policy']).toContain("frame-ancestors 'none'");
  expect((await get('/docs'))?.headers['content-security-policy']).toContain("frame-ancestors 'self'");
});

test('metrics are not cached', async () => {
  expect((await get('/metrics'))?.headers['cache-control']).toBe('no-store');
});
