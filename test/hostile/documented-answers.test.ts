import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../harness.ts';
import { ask } from './raw-http.ts';

interface Response {
  content?: Record<string, { schema?: { $ref?: string } }>;
}
interface Operation {
  responses: Record<string, Response>;
  security?: object[];
  tags?: string[];
}

const document = JSON.parse(readFileSync(join(import.meta.dirname, '../../openapi.json'), 'utf8')) as {
  paths: Record<string, Record<string, Operation>>;
};
const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ method: method.toUpperCase(), path, ...operation })),
);
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'QUERY'];

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway({ environment: { GATEWAY_BODY_BYTES_MAX: '4000' } });
});
afterAll(() => gateway.stop());

/** A path of the document with a text for each of its parameters. */
const filled = (path: string, text: string) => path.replace(/\{\w+\}/g, text);

/** Requests that are refused before any operation, by name. */
function faulty(method: string, path: string): [string, string][] {
  const request = (target: string, headers: string, body = '') =>
    `${method} ${target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n${headers}\r\n${body}`;
  const plain = filled(path, 'x');
  const json = 'Content-Type: application/json\r\n';
  const [ordinary, management] = [gateway.key, gateway.management_key].map((key) => `Authorization: Bearer ${key}\r\n`);
  const badEscape = path.includes('{') ? filled(path, '%zz') : `${plain}?a=%zz`;
  const requests: [string, string][] = [
    ['two hosts', request(plain, 'Host: b\r\n')],
    ['large headers', request(plain, `X-A: ${'a'.repeat(40_000)}\r\n`)],
    ['no key', request(plain, '')],
    ['an escape that is none', request(badEscape, `${ordinary}`)],
    ['a long name', request(filled(path, 'a'.repeat(400)), `${management}`)],
  ];
  if (method === 'GET') return requests;
  for (const key of [ordinary, management]) {
    requests.push(
      ['a long body', request(plain, `${key}${json}Content-Length: 5000000\r\n`)],
      ['no JSON', request(plain, `${key}${json}Content-Length: 3\r\n`, '{]}')],
      ['no content type', request(plain, `${key}Content-Length: 3\r\n`, '{]}')],
    );
  }
  return requests;
}

test('every error of an operation is documented, with its body', async () => {
  const undocumented: string[] = [];
  for (const { method, path, responses } of operations) {
    for (const [name, text] of faulty(method, path)) {
      const answer = await ask(gateway.url, text);
      const what = `${method} ${path}, ${name}: ${answer?.status}`;
      if (answer === undefined || answer.status < 400) continue;
      const schema = responses[answer.status]?.content?.['application/json']?.schema?.$ref?.split('/').at(-1);
      if (schema === undefined) {
        undocumented.push(what);
        continue;
      }
      const body = JSON.parse(answer.body) as Record<string, unknown> & { error: Record<string, unknown> };
      expect(body.error['message'], what).toEqual(expect.stringMatching(/\w/));
      if (schema === 'Error') expect(body.error['code'], what).toBe(answer.status);
      else expect(body['error_type'] ?? body.error['error_type'], `${what} as ${schema}`).toEqual(expect.any(String));
    }
  }
  expect(undocumented).toEqual([]);
});

test('errors that every operation can return are documented at each', () => {
  for (const { method, path, responses } of operations) {
    const owed = [
      '400',
      '408',
      '431',
      ...(method === 'GET' ? [] : ['413']),
      ...(path === '/health/live' ? [] : ['503']),
    ];
    expect(Object.keys(responses), `${method} ${path}`).toEqual(expect.arrayContaining(owed));
  }
});

test('405 names exactly the methods of the path, and every other method is refused with it', async () => {
  for (const path of Object.keys(document.paths)) {
    const documented = Object.keys(document.paths[path] ?? {}).map((method) => method.toUpperCase());
    const expected = [...documented, ...(documented.includes('GET') ? ['HEAD'] : [])].sort();
    for (const method of METHODS.filter((name) => !expected.includes(name))) {
      const target = filled(path, 'x');
      const head = `${method} ${target} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${gateway.management_key}\r\n\r\n`;
      const answer = await ask(gateway.url, head);
      expect([method, target, answer?.status, answer?.headers['allow']?.split(', ').sort()]).toEqual([
        method,
        target,
        405,
        expected,
      ]);
    }
  }
});

test('an id of more than 300 characters is refused in the form of its API', async () => {
  for (const [path, kind] of [
    [`/api/v1/responses/${'a'.repeat(400)}`, 'not_found'],
    [`/api/v1/responses/${'a'.repeat(400)}/input_items`, 'not_found'],
    ['/api/v1/responses/%zz', 'invalid_request'],
  ]) {
    const answer = await ask(
      gateway.url,
      `GET ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${gateway.key}\r\n\r\n`,
    );
    expect(JSON.parse(answer?.body ?? '')).toMatchObject({
      error: { type: 'invalid_request_error' },
      error_type: kind,
    });
  }
});
