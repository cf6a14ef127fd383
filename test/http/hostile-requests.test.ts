/**
 * Random requests, by a seed, on every operation of a running gateway: none ends it, none is a 500, and every answer is
 * well-formed. `HOSTILE_SEED` and `HOSTILE_REQUESTS` choose others.
 */
import { readFileSync } from 'node:fs';
import { createConnection } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ERROR_MESSAGE_CHARS_MAX } from '../../src/errors.ts';
import { startGateway, type TestGateway } from '../harness.ts';
import { Random } from '../simulation/random.ts';
import { inTier } from '../tier.ts';

const SEED = Number(process.env['HOSTILE_SEED'] ?? 1);
const REQUESTS = Number(process.env['HOSTILE_REQUESTS'] ?? inTier(200, 1_500));
const SOUND = readFileSync(join(import.meta.dirname, '../audio/speech.wav')).toString('base64');

type Json = Record<string, unknown>;
interface Operation {
  method: string;
  path: string;
  queries: string[];
  body: Json | undefined;
}

const document = JSON.parse(readFileSync(join(import.meta.dirname, '../../openapi.json'), 'utf8')) as {
  paths: Record<string, Record<string, Json>>;
  components: { schemas: Record<string, Json> };
};
const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, definition]): Operation => {
    const content = (definition['requestBody'] as { content?: Record<string, { schema?: Json }> } | undefined)?.content;
    const parameters = (definition['parameters'] ?? []) as { in: string; name: string }[];
    const queries = parameters.filter((one) => one.in === 'query').map(({ name }) => name);
    return { method: method.toUpperCase(), path, queries, body: content?.['application/json']?.schema };
  }),
);

/** The operations that run models. */
const running = operations.filter(({ path }) =>
  /(?:completions|responses|messages|count_tokens|embeddings|transcriptions|explain)$/.test(path),
);

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway({
    yaml: 'responses: { store: true }',
    environment: { GATEWAY_BODY_BYTES_MAX: String(8 * 1024 * 1024) },
  });
});
afterAll(() => gateway.stop());

const TEXTS = [
  ...[
    '',
    ' ',
    'x',
    '0',
    '-1',
    'null',
    'true',
    '[]',
    '{}',
    '__proto__',
    'constructor',
    'toString',
    'default',
    'sandbox/echo',
  ],
  ...[
    '\u0000',
    '\ud800',
    'a\udc00b',
    '\u2028',
    '👋',
    '../../etc/passwd',
    '%',
    '%00',
    "'; DROP TABLE keys; --",
    'daily',
    'never',
  ],
  ...[
    'https://example.test/a.png',
    'http://127.0.0.1:1/',
    'data:image/png;base64,AA==',
    'data:,',
    'file:///etc/passwd',
  ],
  ...[
    '2026-01-01T00:00:00Z',
    '9999-12-31T23:59:59.999Z',
    '2026-02-30',
    'x'.repeat(300),
    'é'.repeat(5_000),
    'sandbox/tools',
  ],
];
const NUMBERS = [0, -0, 1, -1, 0.5, 2, 100, 1e9, 2 ** 53, -(2 ** 63), 1e21, 1.7976931348623157e308, 5e-324];

const deep = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`;
/** Raw texts in a body, which `JSON.stringify` never writes. */
const RAW: Record<string, string> = {
  '@deep': deep(2_000),
  '@deeper': deep(100_000),
  '@objects': `${'{"a":'.repeat(3_000)}1${'}'.repeat(3_000)}`,
  '@proto': '{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}}}',
  '@huge': '1e400',
  '@digits': '9'.repeat(400),
  '@many': `[${'{},'.repeat(20_000)}{}]`,
  '@names': `{${Array.from({ length: 2_000 }, (_, at) => `"n${at}":${at}`).join()}}`,
  '@twice': '{"a":1,"a":2}',
};

function anything(random: Random): unknown {
  switch (random.whole(0, 7)) {
    case 0:
      return null;
    case 1:
      return random.chance(0.5);
    case 2:
      return random.pick(NUMBERS);
    case 3:
      return [];
    case 4:
      return {};
    case 5:
      return `@raw${random.pick(Object.keys(RAW))}`;
    default:
      return random.pick(TEXTS);
  }
}

/** A value of a schema in most cases, sometimes any other value, at every level. */
function madeOf(random: Random, schema: Json, level = 0): unknown {
  if (random.chance(0.04)) return anything(random);
  const { $ref } = schema;
  if (typeof $ref === 'string')
    return madeOf(random, document.components.schemas[$ref.split('/').at(-1) ?? ''] ?? {}, level);
  const choices = (schema['anyOf'] ?? schema['oneOf']) as Json[] | undefined;
  if (choices) return madeOf(random, random.pick(choices), level);
  if ('const' in schema) return schema['const'];
  if (Array.isArray(schema['enum'])) return random.pick(schema['enum'] as unknown[]);
  if (level > 8) return anything(random);
  switch ([schema['type']].flat()[0]) {
    case 'object': {
      const properties = Object.entries((schema['properties'] ?? {}) as Record<string, Json>);
      const required = new Set((schema['required'] ?? []) as string[]);
      const share = random.next() ** 2;
      const members = properties
        .filter(([name]) => (required.has(name) ? !random.chance(0.02) : random.chance(share)))
        .map(([name, inner]): [string, unknown] => [name, madeOf(random, inner, level + 1)]);
      if (random.chance(0.05)) members.push([random.pick(TEXTS), anything(random)]);
      return Object.fromEntries(members);
    }
    case 'array': {
      const length = random.chance(0.02) ? 300 : random.whole(0, 3);
      return Array.from({ length }, () => madeOf(random, (schema['items'] ?? {}) as Json, level + 1));
    }
    case 'integer':
    case 'number':
      return random.chance(0.5) ? random.whole(0, 5) : random.pick(NUMBERS);
    case 'boolean':
      return random.chance(0.5);
    case 'string':
      return random.pick(TEXTS);
    default:
      return anything(random);
  }
}

function textOf(value: unknown): string {
  const text = JSON.stringify(value) ?? 'null';
  return text.replace(/"@raw(@\w+)"/g, (_, name: string) => RAW[name] ?? 'null');
}

const MODELS = [
  'sandbox/echo',
  'sandbox/tools',
  'sandbox/think',
  'sandbox/embed',
  'sandbox/transcribe',
  'sandbox/gemini-echo',
];

/** A request that the sandbox answers. */
function soundBody({ path }: Operation): Json {
  if (path.endsWith('embeddings')) return { model: 'sandbox/embed', input: 'x' };
  if (path.endsWith('transcriptions'))
    return { model: 'sandbox/transcribe', input_audio: { data: SOUND, format: 'wav' } };
  if (path.endsWith('/responses')) return { model: 'sandbox/echo', input: [{ role: 'user', content: 'Hello' }] };
  if (/[^t]\/completions$/.test(path)) return { model: 'sandbox/echo', prompt: ['Hello', 'there'] };
  return { model: 'sandbox/echo', messages: [{ role: 'user', content: 'Hello' }] };
}

/** A valid request with a few members of any value, at any place where they may be. */
function spoiltBody(random: Random, operation: Operation): string {
  const sandbox: Json = {};
  const options: Json = { sandbox };
  const provider: Json = { options };
  const made: Json = { ...soundBody(operation), provider };
  const turns = (made['messages'] ?? made['input'] ?? []) as Json[] | string;
  const turn = Array.isArray(turns) ? turns[0] : undefined;
  const spoilt = [made, turn ?? made, provider, options, sandbox];
  for (let members = random.whole(1, 2); members > 0; members--)
    random.pick(spoilt)[random.pick(TEXTS)] = anything(random);
  return textOf(made);
}

function bodyOf(random: Random, operation: Operation): string | Buffer | undefined {
  const { body } = operation;
  if (running.includes(operation) && random.chance(0.5)) return spoiltBody(random, operation);
  if (body === undefined) return random.chance(0.9) ? undefined : textOf(anything(random));
  const made = madeOf(random, body);
  if (typeof made === 'object' && made !== null && 'model' in made && random.chance(0.8)) {
    Object.assign(made, { model: random.pick(MODELS) });
    // Whole conversations that the sandbox answers, in some of the requests.
    if ('messages' in made && random.chance(0.5))
      Object.assign(made, { messages: [{ role: 'user', content: random.pick(TEXTS) }] });
  }
  const text = textOf(made);
  if (random.chance(0.03)) return text.slice(0, random.whole(0, text.length));
  if (random.chance(0.02)) return Buffer.concat([Buffer.from([0xff, 0xfe, 0xef, 0xbb, 0xbf]), Buffer.from(text)]);
  if (random.chance(0.02)) return random.pick(Object.values(RAW));
  return text;
}

const TYPES = [
  ...['text/plain', 'application/json; charset=utf-16', 'multipart/form-data', 'multipart/form-data; boundary=b', 'a'],
  ...[
    'application/x-www-form-urlencoded',
    'application/json;',
    'APPLICATION/JSON',
    'application/json, text/html',
    '*/*',
  ],
];

interface Sent {
  method: string;
  url: string;
  headers: Record<string, string>;
  body: string | Buffer | undefined;
}

function requestOf(random: Random): Sent {
  const operation = random.pick(random.chance(0.4) ? running : operations);
  const path = operation.path.replace(
    /\{\w+\}/g,
    () => encodeURIComponent(random.pick(TEXTS).toWellFormed().slice(0, 100)) || 'x',
  );
  const queries = [...operation.queries, ...(random.chance(0.1) ? ['__proto__', 'limit', 'x'] : [])]
    .filter(() => random.chance(0.3))
    .map((name) => `${name}=${encodeURIComponent(random.pick(TEXTS).toWellFormed().slice(0, 200))}`);
  const isInference = /chat|completions|responses|messages|embeddings|transcriptions|\/key$/.test(operation.path);
  const key = random.chance(0.9) === isInference ? gateway.key : gateway.management_key;
  const body = bodyOf(random, operation);
  const headers: Record<string, string> = {};
  if (!random.chance(0.03)) headers['authorization'] = random.chance(0.02) ? 'Bearer \u00ff' : `Bearer ${key}`;
  if (body !== undefined) headers['content-type'] = random.chance(0.05) ? random.pick(TYPES) : 'application/json';
  if (random.chance(0.1)) headers['x-gateway-experimental-metadata'] = 'enabled';
  if (random.chance(0.03)) headers['if-match'] = random.pick(['*', '"1"', 'x']);
  if (random.chance(0.03)) headers['x-request-id'] = random.pick(['ok', 'x'.repeat(500), '"\'<>']);
  const method = random.chance(0.02)
    ? random.pick(['PUT', 'POST', 'DELETE', 'OPTIONS', 'HEAD', 'PATCH'])
    : operation.method;
  return { method, url: path + (queries.length === 0 ? '' : `?${queries.join('&')}`), headers, body };
}

/** Paths whose errors and streams have Anthropic's form. */
const IN_MESSAGES = /\/messages(?:\/|\?|$)/;
const CHAT_END = /data: \[DONE\]\n\n$/;
const MESSAGES_END = /event: (?:message_stop|error)\ndata: [^\n]*\n\n$/;

/** The error of an answer; undefined if it has none. */
function faultOf({ method, url }: Sent, status: number, type: string, text: string): string | undefined {
  if (status === 500) return 'a 500';
  if (method === 'HEAD' || status === 204) return undefined;
  if (status >= 400) {
    let answer: { error?: { code?: unknown; message?: unknown; metadata?: unknown }; user_id?: unknown };
    try {
      answer = JSON.parse(text);
    } catch {
      return `an error of ${type} that is not JSON`;
    }
    const { error } = answer;
    const isWhole = IN_MESSAGES.test(url)
      ? 'request_id' in answer && error !== undefined && 'type' in error
      : 'gateway_metadata' in answer && 'user_id' in answer && error?.code === status && 'metadata' in error;
    if (!isWhole) return 'an error without the envelope';
    const message = error?.message;
    const hasMessage = typeof message === 'string' && message !== '' && message.length <= 2 * ERROR_MESSAGE_CHARS_MAX;
    return hasMessage ? undefined : 'an error without a message, or with internal data';
  }
  if (/^text\/event-stream/.test(type))
    return (IN_MESSAGES.test(url) ? MESSAGES_END : CHAT_END).test(text) ? undefined : 'a stream without an end';
  if (!/^application\/json/.test(type)) return undefined;
  try {
    JSON.parse(text);
    return undefined;
  } catch {
    return 'an answer that is not JSON';
  }
}

async function send(sent: Sent): Promise<string | undefined> {
  const response = await fetch(`${gateway.url}${sent.url}`, {
    method: sent.method,
    headers: sent.headers,
    ...(sent.body === undefined || ['GET', 'HEAD'].includes(sent.method) ? {} : { body: sent.body as string }),
    signal: AbortSignal.timeout(20_000),
  });
  const text = await response.text();
  const fault = faultOf(sent, response.status, response.headers.get('content-type') ?? '', text);
  return fault && `${fault} (${response.status}): ${text.slice(0, 300)}`;
}

/** The log lines of the gateway's own faults. */
const faultsLogged = () =>
  gateway.log_lines.filter((line) => /"(?:request|stream) failed"/.test(line) && !/"status":50[23]/.test(line));

async function isAlive(): Promise<void> {
  const { status } = await gateway.call('POST', '/chat/completions', {
    model: 'sandbox/echo',
    messages: [{ role: 'user', content: 'Still there?' }],
  });
  expect(status).toBe(200);
  expect(Object.hasOwn(Object.prototype, 'polluted')).toBe(false);
}

test(`${REQUESTS} requests of any kind are answered in order, none with a 500`, async () => {
  const random = new Random(SEED);
  const wrong: string[] = [];
  const made = Array.from({ length: REQUESTS }, () => requestOf(random));
  const work = async () => {
    for (let sent = made.pop(); sent !== undefined; sent = made.pop()) {
      const { method, url, headers, body } = sent;
      const fault = await send(sent).catch(
        (error: Error) => `no answer: ${error.message} ${String(error.cause ?? '')}`,
      );
      if (fault === undefined) continue;
      const shown = String(body).slice(0, 500);
      wrong.push(`${method} ${url} ${headers['content-type'] ?? ''} ${shown}\n  ${fault}`);
    }
  };
  await Promise.all(Array.from({ length: 4 }, work));
  expect(wrong).toEqual([]);
  expect(faultsLogged()).toEqual([]);
  await isAlive();
}, 240_000);

/** Writes pieces on a connection of its own, disconnects or waits, and returns what arrived. */
async function talk(pieces: readonly (string | number)[], ends: 'leaves' | 'waits'): Promise<string> {
  const { hostname, port } = new URL(gateway.url);
  const socket = createConnection(Number(port), hostname);
  let received = '';
  socket.setEncoding('utf8');
  socket.on('data', (text: string) => {
    received += text;
  });
  const closed = new Promise<void>((resolve) => void socket.once('close', () => resolve()));
  socket.on('error', () => {});
  for (const piece of pieces) {
    if (typeof piece === 'number') await sleep(piece);
    else if (!socket.destroyed) socket.write(piece);
  }
  if (ends === 'leaves') socket.destroy();
  else {
    const late = sleep(1_500).then(() => socket.destroy());
    await Promise.race([closed, late]);
  }
  await closed;
  return received;
}

test('connections of any kind end no process, and receive HTTP or nothing', async () => {
  const random = new Random(SEED + 1);
  const body = JSON.stringify({ model: 'sandbox/echo', stream: true, messages: [{ role: 'user', content: 'Hello' }] });
  const head = (length: number | string, more = '') =>
    `POST /api/v1/chat/completions HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${gateway.key}\r\n` +
    `content-type: application/json\r\ncontent-length: ${length}\r\n${more}\r\n`;
  const chunked = head('0').replace('content-length: 0', 'transfer-encoding: chunked');
  const whole = head(body.length) + body;
  const get = 'GET /api/v1/key HTTP/1.1\r\nhost: a\r\n\r\n';
  const kinds: (() => [pieces: (string | number)[], ends: 'leaves' | 'waits'])[] = [
    () => [[head(body.length), body.slice(0, random.whole(0, body.length - 1))], 'leaves'],
    () => [[head(5_000_000), 'x'.repeat(random.whole(0, 200_000))], 'leaves'],
    () => [[whole, random.whole(0, 30)], 'leaves'],
    () => [[whole.repeat(random.whole(2, 8)), random.whole(0, 100)], random.pick(['leaves', 'waits'])],
    () => [[get.repeat(random.whole(2, 30))], 'waits'],
    () => [
      whole
        .split('')
        .slice(0, 200)
        .flatMap((char, at) => (at % 40 === 0 ? [char, 1] : [char])),
      'leaves',
    ],
    () => [[chunked, 'zz\r\n', body], 'waits'],
    () => [[chunked, `${body.length.toString(16)}\r\n${body}\r\n`], 'leaves'],
    () => [[head('-1')], 'waits'],
    () => [[head(body.length, 'transfer-encoding: chunked\r\n'), body], 'waits'],
    () => [[head(body.length, 'expect: 100-continue\r\n'), 10, body, 20], 'leaves'],
    () => [[head(body.length, 'upgrade: websocket\r\nconnection: upgrade\r\n'), body, 20], 'leaves'],
    () => [[`GET /${'x'.repeat(70_000)} HTTP/1.1\r\n\r\n`], 'waits'],
    () => [[`GET / HTTP/1.1\r\nhost: a\r\n${'x: y\r\n'.repeat(5_000)}\r\n`], 'waits'],
    () => [['\u0016\u0003\u0001\u0002\u0000\u0001\u0000\u0001\u00fc\u0003\u0003'], 'waits'],
    () => [
      ['GET http://[::1 HTTP/1.1\r\nhost: a\r\n\r\nOPTIONS * HTTP/1.1\r\n\r\nCONNECT a:1 HTTP/1.1\r\n\r\n'],
      'waits',
    ],
    () => [[''], 'leaves'],
  ];
  const talks = Array.from({ length: 120 }, (_, nth) => kinds[nth % kinds.length]?.() ?? [[], 'leaves']);
  const wrong: string[] = [];
  const work = async () => {
    for (let one = talks.pop(); one !== undefined; one = talks.pop()) {
      const received = await talk(one[0] as (string | number)[], one[1] as 'leaves' | 'waits');
      const statuses = [...received.matchAll(/^HTTP\/1\.1 (\d{3})/gm)].map(([, status]) => Number(status));
      const isHttp = received === '' || received.startsWith('HTTP/1.1 ');
      if (!isHttp || statuses.includes(500))
        wrong.push(`${String(one[0][0]).slice(0, 200)} -> ${received.slice(0, 300)}`);
    }
  };
  await Promise.all(Array.from({ length: 8 }, work));
  expect(wrong).toEqual([]);
  expect(faultsLogged()).toEqual([]);
  await isAlive();
});
