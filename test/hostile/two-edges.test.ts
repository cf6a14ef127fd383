import { once } from 'node:events';
import { connect } from 'node:net';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../harness.ts';

let gateway: TestGateway;
let served = 0;
beforeAll(async () => {
  gateway = await startGateway({ environment: { GATEWAY_BODY_BYTES_MAX: '200000' } });
  const { directEdge } = gateway.gateway.app.server;
  const serve = directEdge.serve.bind(directEdge);
  directEdge.serve = (request, response) => {
    const isServed = serve(request, response);
    if (isServed) served += 1;
    return isServed;
  };
});
afterAll(() => gateway.stop());

const messages = [{ role: 'user', content: 'Hello there' }];
const OPERATIONS: Record<string, object> = {
  '/chat/completions': { model: 'sandbox/echo', messages },
  '/completions': { model: 'sandbox/echo', prompt: 'Hello there' },
  '/messages': { model: 'sandbox/echo', max_tokens: 50, messages },
  '/responses': { model: 'sandbox/echo', input: 'Hello there' },
  '/embeddings': { model: 'sandbox/embed', input: 'Hello there' },
};
const PATHS = Object.keys(OPERATIONS);

interface Sent {
  method?: string;
  version?: string;
  /** Header lines; `undefined` removes a usual one. */
  headers?: Record<string, string | undefined>;
  lines?: string[];
  body?: string | Buffer;
  /** Sends the body in chunks of this size. */
  chunked?: number;
  /** Sends the head, and the body only after `100 Continue`. */
  waits?: boolean;
  /** The announced body is never sent, so that nothing else can follow on the connection. */
  isWithheld?: boolean;
  /** Closes the connection after this number of bytes of the body. */
  breaks?: number;
}

interface Received {
  status: string;
  headers: string[];
  body: string;
  isOpen: boolean;
}

/** The bytes of a request before its body, and its body as it is sent. */
function bytesOf(path: string, { method = 'POST', version = '1.1', headers, lines = [], body, chunked }: Sent) {
  const bytes = Buffer.from(body ?? '');
  const content: Record<string, string> =
    chunked === undefined ? { 'content-length': String(bytes.length) } : { 'transfer-encoding': 'chunked' };
  const all: Record<string, string | undefined> = {
    host: 'x',
    authorization: `Bearer ${gateway.key}`,
    'content-type': 'application/json',
    ...content,
    ...headers,
  };
  const shown = Object.entries(all).flatMap(([name, value]) => (value === undefined ? [] : [`${name}: ${value}`]));
  const head = `${[`${method} ${path} HTTP/${version}`, ...shown, ...lines].join('\r\n')}\r\n\r\n`;
  if (chunked === undefined) return { head, parts: [bytes] };
  const parts: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += chunked) {
    const piece = bytes.subarray(at, at + chunked);
    parts.push(Buffer.concat([Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from('\r\n')]));
  }
  return { head, parts: [...parts, Buffer.from('0\r\n\r\n')] };
}

/** The end of the first answer in a text; undefined if it is not complete. */
function endOf(text: string, isHead: boolean): number | undefined {
  const body = text.indexOf('\r\n\r\n') + 4;
  if (body < 4) return undefined;
  const head = text.slice(0, body).toLowerCase();
  if (isHead || /^http\/1.1 (?:1\d\d|204)/.test(head)) return body;
  if (head.includes('transfer-encoding: chunked')) {
    const end = text.indexOf('\r\n0\r\n\r\n', body - 2);
    return end < 0 ? undefined : end + 7;
  }
  const length = Number(/content-length: (\d+)/.exec(head)?.[1] ?? Number.NaN);
  return text.length >= body + length ? body + length : undefined;
}

/** A chunked body without its chunks, which depend on how the provider's bytes arrive. */
function unchunked(body: string): string {
  let text = '';
  for (let at = 0; at < body.length; ) {
    const line = body.indexOf('\r\n', at);
    const length = Number.parseInt(body.slice(at, line), 16);
    text += body.slice(line + 2, line + 2 + length);
    at = line + 4 + length;
  }
  return text;
}

/** Texts without the parts that differ between requests: ids, times and durations. */
const plain = (text: string) =>
  text
    .replace(/gen-\d+-\w{20}/g, '<id>')
    .replace(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, '<uuid>')
    .replace(/"(created|created_at|completed_at|latency|latency_ms|duration_ms)":\d+/g, '"$1":0')
    .replace(/"msg_\w+"/g, '"<item>"')
    .replace(/^date: .*$/gim, 'date: <date>');

/** Sends a request on a connection of its own, then a second one, to see whether the connection is still open. */
async function send(path: string, sent: Sent): Promise<Received> {
  const socket = connect(Number(new URL(gateway.url).port), '127.0.0.1');
  let text = '';
  socket.on('error', () => {});
  socket.on('data', (bytes: Buffer) => {
    text += bytes.toString('latin1');
  });
  await once(socket, 'connect');
  const { head, parts } = bytesOf(path, sent);
  const more = () => Promise.race([once(socket, 'data'), once(socket, 'close')]);
  socket.write(head);
  if (sent.waits === true) {
    while (endOf(text, false) === undefined && !socket.closed) await more();
    if (!text.startsWith('HTTP/1.1 100')) parts.length = 0;
  }
  if (sent.breaks !== undefined) {
    socket.end(parts[0]!.subarray(0, sent.breaks));
    await once(socket, 'close');
    return { status: '', headers: [], body: plain(text), isOpen: false };
  }
  for (const part of parts) socket.write(part);
  const interim = text.startsWith('HTTP/1.1 100') ? text.slice(0, text.indexOf('\r\n\r\n') + 4) : '';
  const answer = () => text.slice(interim.length);
  while (endOf(answer(), sent.method === 'HEAD') === undefined && !socket.closed) await more();
  const end = endOf(answer(), sent.method === 'HEAD') ?? answer().length;
  const received = answer().slice(0, end);
  text = '';
  if (sent.isWithheld !== true) socket.write('GET /health/live HTTP/1.1\r\nhost: x\r\n\r\n');
  while (sent.isWithheld !== true && text === '' && !socket.closed) await more();
  socket.destroy();
  const [top = '', ...rest] = received.split('\r\n\r\n');
  const [status = '', ...headers] = top.split('\r\n');
  const isChunked = /transfer-encoding: chunked/i.test(top);
  return {
    status: interim + status,
    headers: headers.map(plain).sort(),
    body: plain(isChunked ? unchunked(rest.join('\r\n\r\n')) : rest.join('\r\n\r\n')),
    isOpen: text !== '',
  };
}

/** The access log's line of the last request, without ids and times. */
function lastLine(): Record<string, unknown> | undefined {
  const lines = gateway.log_lines.map((line) => JSON.parse(line) as Record<string, unknown>);
  const line = lines.findLast(({ msg, path }) => msg === 'request' && path !== '/health/live');
  const { time: _time, request_id: _id, ms: _ms, generation_id, ...facts } = line ?? {};
  return { ...facts, has_generation: generation_id !== undefined };
}

/** Sends the same request to both edges: the framework serves a target with an empty query. */
async function onBoth(path: string, sent: Sent) {
  gateway.log_lines.length = 0;
  served = 0;
  const direct = await send(path, sent);
  await expect.poll(() => gateway.log_lines.some((line) => line.includes('"msg":"request"'))).toBe(true);
  const directLine = lastLine();
  const isDirect = served === 1;
  gateway.log_lines.length = 0;
  const framework = await send(`${path}?`, sent);
  await expect.poll(() => gateway.log_lines.some((line) => line.includes('"msg":"request"'))).toBe(true);
  expect(served).toBe(isDirect ? 1 : 0);
  // The refusal of a method names the path without its query.
  expect(direct).toEqual(framework);
  expect(directLine).toEqual(lastLine());
  return { ...direct, isDirect, line: directLine };
}

const bodyOf = (path: string, more: object = {}) => JSON.stringify({ ...OPERATIONS[path], ...more });
const IDENTIFIED = { 'x-request-id': 'mine-1' };

test.each(PATHS)('%s answers alike on both edges, whole and as a stream', async (path) => {
  for (const base of ['/api/v1', '/v1']) {
    const whole = await onBoth(base + path, { body: bodyOf(path) });
    expect(whole).toMatchObject({ status: 'HTTP/1.1 200 OK', isOpen: true, isDirect: true });
  }
  if (path === '/embeddings') return;
  const streamed = await onBoth(`/api/v1${path}`, { body: bodyOf(path, { stream: true }) });
  expect(streamed).toMatchObject({ status: 'HTTP/1.1 200 OK', isOpen: true, isDirect: true });
});

/** Each with the status that both edges must answer, and whether the direct edge serves it. */
const REQUESTS: Record<string, [status: number | undefined, isDirect: boolean, (path: string) => Sent]> = {
  'a request id of the client': [200, true, (path) => ({ body: bodyOf(path), headers: IDENTIFIED })],
  'an invalid request id': [200, true, (path) => ({ body: bodyOf(path), headers: { 'x-request-id': 'a b' } })],
  'an origin': [200, true, (path) => ({ body: bodyOf(path), headers: { origin: 'https://page.example' } })],
  'the key header of another service': [
    200,
    true,
    (path) => ({ body: bodyOf(path), headers: { authorization: undefined, 'x-api-key': gateway.key } }),
  ],
  'two different keys': [400, true, (path) => ({ body: bodyOf(path), headers: { 'x-api-key': 'sk-other' } })],
  'no key': [401, true, (path) => ({ body: bodyOf(path), headers: { authorization: undefined } })],
  'no key, and an origin': [
    401,
    true,
    (path) => ({ body: bodyOf(path), headers: { authorization: undefined, origin: 'https://page.example' } }),
  ],
  'an unknown key': [401, true, (path) => ({ body: bodyOf(path), headers: { authorization: 'Bearer sk-unknown' } })],
  'a management key': [
    403,
    true,
    (path) => ({ body: bodyOf(path), headers: { authorization: `Bearer ${gateway.management_key}` } }),
  ],
  'malformed JSON': [400, true, () => ({ body: '{"model": ' })],
  'an empty body': [400, true, () => ({ body: '' })],
  'a body that is an array': [400, true, () => ({ body: '[]' })],
  'a body that is null': [400, true, () => ({ body: 'null' })],
  'a body that is not UTF-8': [400, true, () => ({ body: Buffer.from('{"model":"\xff"}', 'latin1') })],
  'a __proto__ key': [400, true, () => ({ body: '{"__proto__":{}}' })],
  'deep nesting': [400, true, () => ({ body: `${'['.repeat(5_000)}${']'.repeat(5_000)}` })],
  'fields of a wrong type': [400, true, (path) => ({ body: bodyOf(path, { model: 7, provider: 3 }) })],
  'a disabled sampler': [undefined, true, (path) => ({ body: bodyOf(path, { top_k: 0 }) })],
  'an unknown model': [undefined, true, (path) => ({ body: bodyOf(path, { model: 'no/such' }) })],
  'an announced length beyond the bound': [
    413,
    true,
    () => ({ isWithheld: true, headers: { 'content-length': '300000000' } }),
  ],
  'a long body': [undefined, true, (path) => ({ body: bodyOf(path, { user: 'x'.repeat(150_000) }) })],
  'a body beyond the bound in chunks': [413, true, () => ({ body: ' '.repeat(210_000), chunked: 50_000 })],
  'a body in chunks': [200, true, (path) => ({ body: bodyOf(path), chunked: 7 })],
  'a body in chunks with a stream': [undefined, true, (path) => ({ body: bodyOf(path, { stream: true }), chunked: 9 })],
  'a charset': [
    200,
    true,
    (path) => ({ body: bodyOf(path), headers: { 'content-type': 'application/json; charset=utf-8' } }),
  ],
  'another charset': [
    400,
    false,
    (path) => ({ body: bodyOf(path), headers: { 'content-type': 'application/json; charset=latin1' } }),
  ],
  'a content type in capitals': [
    200,
    false,
    (path) => ({ body: bodyOf(path), headers: { 'content-type': 'Application/JSON' } }),
  ],
  'no content type': [200, false, (path) => ({ body: bodyOf(path), headers: { 'content-type': undefined } })],
  'plain text': [400, false, (path) => ({ body: bodyOf(path), headers: { 'content-type': 'text/plain' } })],
  'a form': [400, false, () => ({ body: 'a=b', headers: { 'content-type': 'application/x-www-form-urlencoded' } })],
  'an invalid content type': [400, false, (path) => ({ body: bodyOf(path), headers: { 'content-type': ';;' } })],
  'a compressed body': [
    200,
    false,
    (path) => ({ body: gzipSync(bodyOf(path)), headers: { 'content-encoding': 'gzip' } }),
  ],
  'an unknown coding': [400, false, (path) => ({ body: bodyOf(path), headers: { 'content-encoding': 'br' } })],
  'an expectation': [200, false, (path) => ({ body: bodyOf(path), waits: true, headers: { expect: '100-continue' } })],
  'an expectation without a key': [
    401,
    false,
    (path) => ({ body: bodyOf(path), waits: true, headers: { expect: '100-continue', authorization: undefined } }),
  ],
  'an unknown expectation': [undefined, false, (path) => ({ body: bodyOf(path), headers: { expect: 'wonders' } })],
  'an upgrade': [200, false, (path) => ({ body: bodyOf(path), headers: { upgrade: 'h2c', connection: 'upgrade' } })],
  'a request to close the connection': [
    200,
    true,
    (path) => ({ body: bodyOf(path), headers: { connection: 'close' } }),
  ],
  'HTTP/1.0': [200, false, (path) => ({ body: bodyOf(path), version: '1.0' })],
  'a repeated host': [400, true, (path) => ({ body: bodyOf(path), lines: ['host: y'] })],
  'no host': [400, true, (path) => ({ body: bodyOf(path), headers: { host: undefined } })],
  'two lengths of one body': [400, true, (path) => ({ body: bodyOf(path), lines: ['content-type: text/plain'] })],
  'a body that breaks off': [undefined, true, (path) => ({ body: bodyOf(path), breaks: 9 })],
  GET: [405, false, () => ({ method: 'GET', headers: { 'content-type': undefined, 'content-length': undefined } })],
  HEAD: [405, false, () => ({ method: 'HEAD', headers: { 'content-type': undefined, 'content-length': undefined } })],
  PUT: [405, false, (path) => ({ method: 'PUT', body: bodyOf(path) })],
  OPTIONS: [405, false, () => ({ method: 'OPTIONS', headers: { 'content-type': undefined } })],
  'a preflight': [
    204,
    false,
    () => ({
      method: 'OPTIONS',
      headers: {
        'content-type': undefined,
        origin: 'https://page.example',
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'authorization',
      },
    }),
  ],
};

test.each(Object.entries(REQUESTS))(
  '%s: status, headers, body, connection and log line are alike on both edges',
  async (_, [status, isDirect, make]) => {
    for (const path of PATHS) {
      const answer = await onBoth(`/api/v1${path}`, make(path));
      expect(answer.isDirect, path).toBe(isDirect);
      if (status !== undefined) expect(answer.status, path).toMatch(new RegExp(`HTTP/1.1 ${status} `));
    }
  },
);

test('the direct edge serves each of its operations under both base paths, and every other target goes to the framework', async () => {
  const unserved = [
    '/api/v1/chat/completions/',
    '//api/v1/chat/completions',
    '/api/v1/chat/completions#a',
    '/api/v1/keys',
  ];
  served = 0;
  for (const path of unserved) await send(path, { body: '{}' });
  expect(served).toBe(0);
  for (const path of PATHS.flatMap((path) => [`/api/v1${path}`, `/v1${path}`])) await send(path, { body: '{}' });
  expect(served).toBe(2 * PATHS.length);
});

test('an operation of the direct edge has no hook that this edge does not run', () => {
  const { server } = gateway.gateway.app;
  const lines = server.printRoutes({ includeHooks: true, commonPrefix: false }).split('\n');
  for (const path of PATHS) {
    const at = lines.findIndex((line) => line.includes(`api/v1${path} (POST)`));
    const hooks: Record<string, number> = {};
    for (const line of lines.slice(at + 1)) {
      const [, name, list] = /• \((\w+)\) (\[.*\])/.exec(line) ?? [];
      if (name === undefined || list === undefined) break;
      hooks[name] = (JSON.parse(list) as string[]).length;
    }
    // Beginning and caller; memory and 100 Continue, which this edge leaves to the framework; the caller again, and
    // `prepareBody`; the body beyond its schema; the headers of each answer.
    expect(hooks, path).toEqual({
      onRequest: 2,
      preParsing: 2,
      preValidation: 2,
      preHandler: 1,
      onSend: path === '/messages' ? 2 : 1,
    });
  }
});

// The last test, because the gateway does not serve after it.
test('a gateway in its grace period closes the connections of both edges, and one that stops refuses requests on both', async () => {
  const { running } = gateway.gateway.app.server;
  running.leave();
  const body = bodyOf('/chat/completions');
  const leaving = await onBoth('/api/v1/chat/completions', { body });
  expect(leaving).toMatchObject({ status: 'HTTP/1.1 200 OK', isOpen: false, isDirect: true });
  running.stop();
  const stopped = await onBoth('/api/v1/chat/completions', { body });
  expect(stopped).toMatchObject({ status: 'HTTP/1.1 503 Service Unavailable', isOpen: false, isDirect: true });
});
