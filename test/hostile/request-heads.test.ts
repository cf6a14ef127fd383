import { afterAll, beforeAll, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../harness.ts';
import { answersIn, ask, rawClient } from './raw-http.ts';

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway();
});
afterAll(() => gateway.stop());

const HOST = 'Host: gateway.example\r\n';
const GET = 'GET /api/v1/models/count HTTP/1.1\r\n';
const POST = `POST /api/v1/auth/keys HTTP/1.1\r\n${HOST}Content-Type: application/json\r\n`;
const CHUNKED = 'Transfer-Encoding: chunked\r\n';
const SMUGGLED = `GET /api/v1/models/count HTTP/1.1\r\n${HOST}\r\n`;

test.each([
  ['two hosts', `${GET}${HOST}Host: other.example\r\n\r\n`],
  ['two equal hosts', `${GET}${HOST}HOST: gateway.example\r\n\r\n`],
  ['no host', `${GET}\r\n`],
  ...[
    'Authorization: Bearer a',
    'X-Api-Key: a',
    'Content-Type: application/json',
    'Content-Encoding: identity',
    'Expect: 100-continue',
    'Origin: https://a.example',
    'Sec-Fetch-Site: same-origin',
  ].flatMap((line): [string, string][] => {
    const [name = ''] = line.split(':');
    return [
      [`two headers ${name}`, `${GET}${HOST}${line}\r\n${name.toUpperCase()}: other\r\n\r\n`],
      [`two equal headers ${name}`, `${GET}${HOST}${line}\r\nX-A: b\r\n${line}\r\n\r\n`],
    ];
  }),
  ['a host with a space', `${GET}Host: a b\r\n\r\n`],
  ['a host with a path', `${GET}Host: a/b\r\n\r\n`],
  ['a host with a user', `${GET}Host: user@a\r\n\r\n`],
  ['two hosts in one header', `${GET}Host: a, b\r\n\r\n`],
  ['a host with markup', `${GET}Host: a"><script>\r\n\r\n`],
  ['HTTP/2.0', `GET /api/v1/models/count HTTP/2.0\r\n${HOST}\r\n`],
  ['the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
  ['HTTP/0.9 with headers', `GET /api/v1/models/count HTTP/0.9\r\n${HOST}\r\n`],
  ['HTTP/0.9 without a version', 'GET /api/v1/models/count\r\n\r\n'],
  ['HTTP/1.2', `GET /api/v1/models/count HTTP/1.2\r\n${HOST}\r\n`],
  ['HTTP/3.0', `GET /api/v1/models/count HTTP/3.0\r\n${HOST}\r\n`],
  ['a method in lower case', `get /api/v1/models/count HTTP/1.1\r\n${HOST}\r\n`],
  ['a tab in the request line', `GET\t/api/v1/models/count HTTP/1.1\r\n${HOST}\r\n`],
  ['a space in the target', `GET /api/v1/models/count x HTTP/1.1\r\n${HOST}\r\n`],
  ['a fragment in the target', `GET /api/v1/models/count#top HTTP/1.1\r\n${HOST}\r\n`],
  ['GET *', `GET * HTTP/1.1\r\n${HOST}\r\n`],
  ['an address of another scheme', `GET ftp://gateway.example/api/v1/models/count HTTP/1.1\r\n${HOST}\r\n`],
  ['an address with a user', `GET http://a:b@gateway.example/api/v1/models/count HTTP/1.1\r\n${HOST}\r\n`],
  ['an address without a host', `GET http:///api/v1/models/count HTTP/1.1\r\n${HOST}\r\n`],
  ['bytes beyond ASCII in the target', `GET /api/v1/models/\xe9 HTTP/1.1\r\n${HOST}\r\n`],
  ['lines that end with LF', 'GET /api/v1/models/count HTTP/1.1\nHost: a\n\n'],
  ['one header that ends with LF', `${GET}Host: a\nX-A: b\r\n\r\n`],
  ['a head that ends with LF', `${GET}${HOST}\n`],
  ['CR inside a header', `${GET}Host: a\rX-A: b\r\n\r\n`],
  ['a folded header', `${GET}${HOST}X-A: a\r\n b\r\n\r\n`],
  ['a folded host', `${GET}Host: a\r\n\tb\r\n\r\n`],
  ['white space in front of the first header', `${GET} ${HOST}\r\n`],
  ['a header name with a space', `${GET}${HOST}X A: b\r\n\r\n`],
  ['a space in front of the colon', `${GET}${HOST}X-A : b\r\n\r\n`],
  ['a header without a name', `${GET}${HOST}: b\r\n\r\n`],
  ['a header without a colon', `${GET}${HOST}X-A\r\n\r\n`],
  ['NUL in a header', `${GET}${HOST}X-A: a\0b\r\n\r\n`],
  ['a control character in a header', `${GET}${HOST}X-A: a\x01b\r\n\r\n`],
  ['a header name beyond ASCII', `${GET}${HOST}X-\xe9: b\r\n\r\n`],
  ['two lengths', `${POST}Content-Length: 5\r\nContent-Length: 6\r\n\r\n${SMUGGLED}`],
  ['two equal lengths', `${POST}Content-Length: 5\r\nContent-Length: 5\r\n\r\n${SMUGGLED}`],
  ['two lengths in one header', `${POST}Content-Length: 5, 5\r\n\r\n${SMUGGLED}`],
  ['a length with a sign', `${POST}Content-Length: +5\r\n\r\n${SMUGGLED}`],
  ['a negative length', `${POST}Content-Length: -5\r\n\r\n${SMUGGLED}`],
  ['a length in hexadecimal', `${POST}Content-Length: 0x5\r\n\r\n${SMUGGLED}`],
  ['an empty length', `${POST}Content-Length:\r\n\r\n${SMUGGLED}`],
  ['a length beyond all integers', `${POST}Content-Length: 99999999999999999999999\r\n\r\n${SMUGGLED}`],
  ['a length and chunks', `${POST}Content-Length: 5\r\n${CHUNKED}\r\n0\r\n\r\n${SMUGGLED}`],
  ['chunks and a length', `${POST}${CHUNKED}Content-Length: 5\r\n\r\n0\r\n\r\n${SMUGGLED}`],
  ['gzip, chunked', `${POST}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n${SMUGGLED}`],
  ['gzip alone', `${POST}Transfer-Encoding: gzip\r\n\r\n${SMUGGLED}`],
  ['chunked, identity', `${POST}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n${SMUGGLED}`],
  ['identity', `${POST}Transfer-Encoding: identity\r\n\r\n${SMUGGLED}`],
  ['an unknown encoding', `${POST}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n${SMUGGLED}`],
  ['chunked twice', `${POST}${CHUNKED}${CHUNKED}\r\n0\r\n\r\n${SMUGGLED}`],
  ['an empty encoding', `${POST}Transfer-Encoding:\r\n\r\n0\r\n\r\n${SMUGGLED}`],
  ['a folded encoding', `${POST}Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n${SMUGGLED}`],
  ['an encoding behind a vertical tab', `${POST}Transfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n${SMUGGLED}`],
  ['chunks of HTTP/1.0', `POST /api/v1/auth/keys HTTP/1.0\r\n${HOST}${CHUNKED}\r\n0\r\n\r\n${SMUGGLED}`],
  ['gzip, chunked of GET', `${GET}${HOST}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n${SMUGGLED}`],
  ['identity of GET', `${GET}${HOST}Transfer-Encoding: identity\r\n\r\n${SMUGGLED}`],
  ['an encoding of GET', `${GET}${HOST}Transfer-Encoding: gzip\r\n\r\n${SMUGGLED}`],
  ['a chunk size in another form', `${POST}${CHUNKED}\r\n0x2\r\n{}\r\n0\r\n\r\n${SMUGGLED}`],
  ['a chunk size that ends with LF', `${POST}${CHUNKED}\r\n2\n{}\r\n0\r\n\r\n${SMUGGLED}`],
  ['a chunk without its end', `${POST}${CHUNKED}\r\n2\r\n{}0\r\n\r\n${SMUGGLED}`],
  ['a chunk size beyond all integers', `${POST}${CHUNKED}\r\n10000000000000002\r\n{}\r\n0\r\n\r\n${SMUGGLED}`],
  ['LF in a chunk extension', `${POST}${CHUNKED}\r\n2;a\nb\r\n{}\r\n0\r\n\r\n${SMUGGLED}`],
])('%s: one 400 with an error body, and the connection ends', async (_name, text) => {
  const client = await rawClient(gateway.url);
  client.send(text);
  await client.closed;
  const { answers, rest } = answersIn(client.received());
  expect(answers.map(({ status }) => status)).toEqual([400]);
  expect(rest).toBe('');
  expect(JSON.parse(answers[0]?.body ?? '')).toMatchObject({
    error: { code: 400, message: expect.stringMatching(/\w/) },
  });
});

test.each([
  ['a path', `${GET}${HOST}\r\n`],
  ['an address', `GET http://gateway.example/api/v1/models/count HTTP/1.1\r\n${HOST}\r\n`],
  [
    'an address with a port and a query',
    `GET HTTP://gateway.example:8080/api/v1/models/count?x=1 HTTP/1.1\r\n${HOST}\r\n`,
  ],
  ['an address of the short name', `GET https://gateway.example/v1/models/count HTTP/1.1\r\n${HOST}\r\n`],
  ['HTTP/1.0 without a host', 'GET /api/v1/models/count HTTP/1.0\r\n\r\n'],
  ['a host of IPv6 with a port', `${GET}Host: [::1]:8080\r\n\r\n`],
  ['an empty host', `${GET}Host:\r\n\r\n`],
  ['empty lines in front', `\r\n\r\n${GET}${HOST}\r\n`],
])('%s is served', async (_name, text) => {
  const answer = await ask(gateway.url, text);
  expect(answer?.status).toBe(200);
  expect(JSON.parse(answer?.body ?? '')).toMatchObject({ data: { count: expect.any(Number) } });
});

test('the host of an absolute target replaces the header, as the links of the feed show', async () => {
  const target = 'http://public.example/api/v1/models?use_rss=true';
  const answer = await ask(gateway.url, `GET ${target} HTTP/1.1\r\nHost: inner.example\r\n\r\n`);
  expect(answer?.body).toContain('http://public.example/');
  expect(answer?.body).not.toContain('inner.example');
});

test('an address without a path is the front page', async () => {
  for (const target of ['http://gateway.example', 'http://gateway.example?x']) {
    expect((await ask(gateway.url, `GET ${target} HTTP/1.1\r\n${HOST}\r\n`))?.body).toContain(
      '<title>Model Gateway</title>',
    );
  }
});

test('OPTIONS * is answered with the methods of the gateway', async () => {
  const answer = await ask(gateway.url, `OPTIONS * HTTP/1.1\r\n${HOST}\r\n`);
  expect(answer?.status).toBe(204);
  expect(answer?.headers['allow']?.split(', ').sort()).toEqual(['DELETE', 'GET', 'HEAD', 'PATCH', 'POST', 'PUT']);
});

test('chunks with an extension and trailers are one body, and trailers do not become headers', async () => {
  const body = `${CHUNKED}\r\n2;name=value\r\n{}\r\n0\r\nX-Request-Id: from-a-trailer\r\nHost: other.example\r\n\r\n`;
  const client = await rawClient(gateway.url);
  client.send(`${POST}${body}${SMUGGLED}`);
  const answers = await client.answers(2);
  expect(answers.map(({ status }) => status)).toEqual([400, 200]);
  expect(JSON.parse(answers[0]?.body ?? '')).toMatchObject({ error: { metadata: { violations: [{ path: 'code' }] } } });
  expect(answers[0]?.headers['x-request-id']).not.toBe('from-a-trailer');
  client.socket.destroy();
});

test('a fault after a running answer adds nothing to it', async () => {
  const body = JSON.stringify({
    model: 'sandbox/story',
    stream: true,
    messages: [{ role: 'user', content: 'Hello' }],
    sandbox: { tokens: 200, chunk_delay_ms: 5 },
  });
  const client = await rawClient(gateway.url);
  const length = Buffer.byteLength(body);
  client.send(
    `POST /api/v1/chat/completions HTTP/1.1\r\n${HOST}Authorization: Bearer ${gateway.key}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${length}\r\n\r\n${body}`,
  );
  await client.answers(1);
  client.send('no HTTP at all\r\n\r\n');
  await client.closed;
  expect(client.received().match(/HTTP\/1\.1/g)).toHaveLength(1);
  expect(client.received()).not.toContain('data: [DONE]');
});

test('a response splitter in a request id, a title or a path reaches no header', async () => {
  for (const evil of ['a%0d%0aset-cookie:x=1', 'a\\r\\nset-cookie:x=1', 'a;b', 'x'.repeat(200)]) {
    const answer = await ask(gateway.url, `${GET}${HOST}X-Request-Id: ${evil}\r\n\r\n`);
    expect(answer?.headers['x-request-id']).toMatch(/^[\da-f-]{36}$/);
    expect(answer?.headers['set-cookie']).toBeUndefined();
  }
});
