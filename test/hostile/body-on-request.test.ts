import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { limits } from '../../src/limits.ts';
import { startGateway, type TestGateway } from '../harness.ts';
import { answersIn, rawClient } from './raw-http.ts';

let gateway: TestGateway;
beforeAll(async () => {
  // The clock of rate limits stands still, so that no attempt is restored while a test runs.
  const clock = { nowMs: Date.now, monotonicMs: () => 0 };
  gateway = await startGateway({ environment: { GATEWAY_BODY_BYTES_MAX: '2000' }, clock });
});
afterAll(() => gateway.stop());

const CONTINUE = 'HTTP/1.1 100 Continue\r\n\r\n';

function head(path: string, options: { key?: string; length?: number; method?: string; expect?: string } = {}): string {
  const { key, length = 100, method = 'POST', expect: expectation = '100-continue' } = options;
  return (
    `${method} ${path} HTTP/1.1\r\nHost: gateway.example\r\nContent-Type: application/json\r\n` +
    `Content-Length: ${length}\r\nExpect: ${expectation}\r\n` +
    `${key === undefined ? '' : `Authorization: Bearer ${key}\r\n`}\r\n`
  );
}

/** Everything that a connection receives up to its end if it announces a body and sends none. */
async function refusal(text: string): Promise<string> {
  const client = await rawClient(gateway.url);
  client.send(text);
  await client.closed;
  return client.received();
}

test.each([
  ['no key', 401, () => head('/api/v1/chat/completions')],
  ['an unknown key', 401, () => head('/api/v1/chat/completions', { key: 'sk-gw-v1-none' })],
  ['a key of the other kind', 403, () => head('/api/v1/keys', { key: gateway.key })],
  ['an unknown path', 404, () => head('/api/v1/nothing', { key: gateway.key })],
  ['a path that is no URL', 400, () => head('/api/v1/keys/%zz', { key: gateway.key })],
  [
    'a name that is too long',
    404,
    () => head(`/api/v1/keys/${'a'.repeat(400)}`, { key: gateway.key, method: 'PATCH' }),
  ],
  ['a method that the path lacks', 405, () => head('/api/v1/chat/completions', { key: gateway.key, method: 'PUT' })],
  ['a body that is too long', 413, () => head('/api/v1/chat/completions', { key: gateway.key, length: 2_001 })],
  ['a body that is too long without a key', 413, () => head('/api/v1/auth/keys', { length: 20_000 })],
  ['a form of another site', 403, () => head('/sign-in')],
  ['an expectation that nobody knows', 401, () => head('/api/v1/chat/completions', { expect: 'miracles' })],
])('%s is refused with %i before the body is requested, and the connection closes', async (name, status, text) => {
  const received = name.startsWith('an expectation') ? await first(text()) : await refusal(text());
  expect(received).not.toContain('100 Continue');
  const { answers, rest } = answersIn(received);
  expect([answers.map((answer) => answer.status), rest]).toEqual([[status], '']);
  if (!name.startsWith('an expectation')) expect(answers[0]?.headers['connection']).toBe('close');
});

async function first(text: string): Promise<string> {
  const client = await rawClient(gateway.url);
  client.send(text);
  await client.answers(1);
  client.socket.destroy();
  return client.received();
}

test('an attempt beyond the limit is refused before its body is requested: code exchanges and sign-ins', async () => {
  const form = (path: string) =>
    `POST ${path} HTTP/1.1\r\nHost: gateway.example\r\nOrigin: http://gateway.example\r\n` +
    `Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 1\r\n`;
  for (const [path, times] of [
    ['/sign-in', limits.sign_ins_per_minute],
    ['/api/v1/auth/keys', limits.exchanges_per_minute],
  ] as const) {
    const client = await rawClient(gateway.url);
    client.send(`${form(path)}\r\nx`.repeat(times));
    await client.answers(times);
    client.socket.destroy();
    const received = await refusal(`${form(path)}Expect: 100-continue\r\n\r\n`);
    expect(received, path).toMatch(/^HTTP\/1\.1 429 /);
  }
});

test('a client that waits to send a body gets one 100 Continue, and its connection stays open', async () => {
  const body = JSON.stringify({ model: 'sandbox/echo', messages: [{ role: 'user', content: 'Hello' }] });
  const client = await rawClient(gateway.url);
  const length = Buffer.byteLength(body);
  for (const [sent, expectation] of [
    [1, '100-continue'],
    [2, '100-Continue'],
  ] as const) {
    client.send(head('/api/v1/chat/completions', { key: gateway.key, length, expect: expectation }));
    while (client.received().split(CONTINUE).length <= sent)
      await new Promise((done) => client.socket.once('data', done));
    client.send(body);
    while (answersIn(client.received().replaceAll(CONTINUE, '')).answers.length < sent)
      await new Promise((done) => client.socket.once('data', done));
  }
  const { answers } = answersIn(client.received().replaceAll(CONTINUE, ''));
  expect(answers.map(({ status }) => status)).toEqual([200, 200]);
  expect(client.received().split(CONTINUE)).toHaveLength(3);
  client.socket.destroy();
});

test.each([
  ['no length', 'GET', ''],
  ['a length of zero', 'POST', 'Content-Length: 0\r\n'],
])('a refused request that announces no body keeps its connection: %s', async (_name, method, more) => {
  const client = await rawClient(gateway.url);
  const bytes = `${method} /api/v1/keys HTTP/1.1\r\nHost: gateway.example\r\nExpect: 100-continue\r\n${more}\r\n`;
  client.send(bytes.repeat(2));
  await vi.waitFor(() => expect(client.received().split('HTTP/1.1 401')).toHaveLength(3), { timeout: 60_000 });
  const { answers } = answersIn(client.received().replaceAll(CONTINUE, ''));
  expect(answers.map(({ status, headers }) => [status, headers['connection']])).toEqual([
    [401, 'keep-alive'],
    [401, 'keep-alive'],
  ]);
  client.socket.destroy();
});
