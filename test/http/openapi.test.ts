import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { Ajv } from 'ajv';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../harness.ts';

interface Answer {
  description: string;
  content?: unknown;
  headers?: Record<string, unknown>;
}

interface Document {
  paths: Record<
    string,
    Record<string, { operationId: string; responses: Record<string, Answer>; security?: unknown[] }>
  >;
  components: { schemas: Record<string, unknown> };
}

let gateway: TestGateway;
let document: Document;
beforeAll(async () => {
  gateway = await startGateway();
  document = (await (await fetch(`${gateway.base_url}/openapi.json`)).json()) as Document;
});
afterAll(() => gateway.stop());

test('the committed openapi.json is what the service serves (`npm run generate` writes it)', async () => {
  await expect(`${JSON.stringify(document, null, 2)}\n`).toMatchFileSnapshot('../../openapi.json');
});

test('every operation has its own id, a success, and the statuses of the contract', () => {
  const operations = Object.values(document.paths).flatMap((methods) => Object.values(methods));
  const ids = operations.map(({ operationId }) => operationId);
  expect(ids.length).toBeGreaterThan(8);
  expect(new Set(ids).size).toBe(ids.length);
  expect(ids.filter((id) => id === undefined)).toEqual([]);
  const statuses = Object.keys(document.paths['/api/v1/chat/completions']?.['post']?.responses ?? {});
  expect(statuses).toEqual([
    '200',
    '400',
    '401',
    '402',
    '403',
    '404',
    '408',
    '413',
    '422',
    '429',
    '431',
    '500',
    '502',
    '503',
  ]);
});

test('references resolve, and no internal extension is documented', () => {
  const text = JSON.stringify(document);
  for (const [, name = ''] of text.matchAll(/"\$ref":"#\/components\/schemas\/([^"]+)"/g)) {
    expect(Object.keys(document.components.schemas)).toContain(name);
  }
  expect(text).not.toMatch(/"(?:ext|native)":/);
});

test('the documentation page fits narrow screens', async () => {
  const page = await (await fetch(`${gateway.url}/docs`)).text();
  expect(page).toContain('<meta name="viewport" content="width=device-width, initial-scale=1">');
});

test('the documentation serves only its own files, by any path', async () => {
  const { port } = new URL(gateway.url);
  const ask = async (path: string, headers: Record<string, string> = {}, method = 'GET') => {
    const sent = request({ host: '127.0.0.1', port, path, method, headers }).end();
    const [answer] = (await once(sent, 'response')) as [IncomingMessage];
    return { status: answer.statusCode, headers: answer.headers, body: await text(answer) };
  };
  const outside = [
    '/docs/static/../../api/v1/models',
    '/docs/static/..%2f..%2fapi/v1/models',
    '/docs/static/%2e%2e/%2e%2e/api/v1/keys',
    '/docs/static/%2e%2e%2f%2e%2e%2fapi%2fv1%2fkeys',
    '/docs/static/..',
    '/docs/static/%00',
    '/docs/static//swagger-ui.css',
    '/docs/static/package.json',
    `/docs/static/${'a'.repeat(400)}`,
  ];
  for (const path of outside) {
    const { status, body } = await ask(path);
    expect({ path, status, code: (JSON.parse(body) as { error: { code: number } }).error.code }).toEqual({
      path,
      status: 404,
      code: 404,
    });
  }
  const whole = await ask('/docs/static/swagger-ui.css?again', { range: 'bytes=999999999-' });
  expect(whole).toMatchObject({ status: 200, headers: { 'content-type': 'text/css; charset=utf-8' } });
  expect(whole.headers['content-security-policy']).toContain("default-src 'self'");
  const known = await ask('/docs/static/swagger-ui.css', { 'if-none-match': String(whole.headers['etag']) });
  expect(known).toMatchObject({ status: 304, body: '' });
  const head = await ask('/docs/static/swagger-ui.css', {}, 'HEAD');
  expect(head).toMatchObject({ status: 200, headers: { 'content-length': whole.headers['content-length'] }, body: '' });
});

test('the documentation page and its files are served by the gateway, without network access', async () => {
  const page = await (await fetch(`${gateway.url}/docs`)).text();
  const links = [...page.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, link = '']) => link);
  expect(links.length).toBeGreaterThan(3);
  for (const link of links) {
    expect(link).toMatch(/^\/docs\//);
    expect((await fetch(gateway.url + link)).status).toBe(200);
  }
});

test('the documentation page does not force TLS, which a gateway in a private network lacks', async () => {
  const policy = (await fetch(`${gateway.url}/docs`)).headers.get('content-security-policy');
  expect(policy).toContain("default-src 'self'");
  expect(policy).not.toMatch(/upgrade-insecure-requests|https?:|validator/);
});

test('without the console the front page leads to the documentation', async () => {
  const plain = await startGateway({ environment: { GATEWAY_CONSOLE: 'off' } });
  const response = await fetch(plain.url);
  const text = await response.text();
  await plain.stop();
  expect(response.headers.get('content-type')).toMatch(/^text\/html/);
  expect(text).toContain('href="docs"');
  expect(text).not.toContain('npm ci');
});

test('every status states its meaning, and headers for clients are declared', () => {
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ name: `${method} ${path}`, ...operation })),
  );
  for (const { name, responses } of operations) {
    for (const [status, { description }] of Object.entries(responses)) {
      expect(description, `${name} ${status}`).not.toBe('Default Response');
    }
  }
  const headersOf = (path: string, method: string, status: string) =>
    Object.keys(document.paths[`/api/v1${path}`]?.[method]?.responses[status]?.headers ?? {});
  const limited = ['Retry-After', 'X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset'];
  expect(headersOf('/chat/completions', 'post', '429')).toEqual(limited);
  expect(headersOf('/embeddings', 'post', '429')).toEqual(limited);
  expect(headersOf('/chat/completions', 'post', '200')).toEqual(['X-Generation-Id']);
  expect(headersOf('/route/explain', 'post', '200')).toEqual([]);
  expect(headersOf('/models', 'get', '304')).toEqual(['ETag', 'Cache-Control']);
});

test('streams are documented event by event, and fields that need a credential say so', () => {
  const { responses } = document.paths['/api/v1/chat/completions']?.['post'] ?? {};
  expect(responses?.['200']?.content).toEqual({
    'application/json': { schema: { $ref: '#/components/schemas/ChatCompletion' } },
    'text/event-stream': { schema: { $ref: '#/components/schemas/ChatCompletionChunk' } },
  });
  expect(document.paths['/api/v1/models/{author}/{slug}/endpoints']?.['get']?.security).toEqual([{ bearer: [] }, {}]);
});

type Schema = Record<string, unknown>;

/** The same schema without additional properties, so that a field that it lacks is found. */
function closed(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(closed);
  if (schema === null || typeof schema !== 'object') return schema;
  const { additionalProperties: _, ...rest } = schema as Schema;
  const made = Object.fromEntries(Object.entries(rest).map(([name, value]) => [name, closed(value)]));
  return 'properties' in rest && Object.keys(rest['properties'] as Schema).length > 0
    ? { ...made, additionalProperties: false }
    : made;
}

/** The members of an object that its schema lacks, or describes differently. */
function undocumented(name: string): (object: unknown) => unknown {
  const { schemas } = document.components;
  const validate = new Ajv({ strict: false }).compile({
    $ref: `#/components/schemas/${name}`,
    components: { schemas: Object.fromEntries(Object.entries(schemas).map(([key, schema]) => [key, closed(schema)])) },
  });
  return (object) => (validate(object) ? undefined : validate.errors);
}

/** The answer of an operation, event by event if it is a stream. */
async function answersOf(path: string, body: object): Promise<Schema[]> {
  const headers = { 'x-gateway-experimental-metadata': 'enabled' };
  const text = await (await gateway.call('POST', path, body, headers)).text();
  return text.split('\n').flatMap((line) => {
    const json = line.replace(/^data: /, '');
    return json.startsWith('{') ? [JSON.parse(json) as Schema] : [];
  });
}

const messages = [{ role: 'user', content: 'Hello' }];

test('the routing metadata of calls is the documented one, field by field', async () => {
  const story = { model: 'sandbox/break-off', messages, provider: { order: ['sandbox'], continuation: true } };
  const calls: [string, object][] = [
    ['/chat/completions', { model: 'sandbox/fallback', models: ['sandbox/echo'], messages, top_k: 3 }],
    ['/chat/completions', { model: 'sandbox/echo', messages, provider: { ignore: ['sandbox'] } }],
    ['/chat/completions', { model: 'sandbox/echo', messages, provider: { only: ['nobody'] } }],
    ['/chat/completions', { ...story, stream: true }],
    ['/embeddings', { model: 'sandbox/embed', input: 'Hello' }],
  ];
  for (const [path, body] of calls) {
    const answer = (await answersOf(path, body)).find((answer) => 'gateway_metadata' in answer);
    expect(undocumented('RoutingMetadata')(answer?.['gateway_metadata'])).toBeUndefined();
  }
});

test('answers and chunks of every kind of chat completion are documented, field by field', async () => {
  const chunk = undocumented('ChatCompletionChunk');
  const whole = undocumented('ChatCompletion');
  const failure = undocumented('Error');
  const tools = [{ type: 'function', function: { name: 'look', parameters: { type: 'object', properties: {} } } }];
  for (const model of [
    'echo',
    'tools',
    'think',
    'refuse',
    'json',
    'truncate',
    'fail-mid-stream',
    'fail-late',
    'break-off',
  ]) {
    for (const input of [
      { messages, tools, logprobs: true },
      { messages, debug: { echo_upstream_body: true } },
      { prompt: 'Hello' },
    ]) {
      for (const stream of [true, false]) {
        for (const answer of await answersOf('/chat/completions', { model: `sandbox/${model}`, ...input, stream })) {
          const faultsOf = !('choices' in answer) ? failure : stream ? chunk : whole;
          expect(faultsOf(answer), `${model} ${JSON.stringify(answer)}`).toBeUndefined();
        }
      }
    }
  }
});

test('answers and chunks of every kind of legacy completion are documented, field by field', async () => {
  const chunk = undocumented('CompletionChunk');
  const whole = undocumented('Completion');
  const failure = undocumented('Error');
  for (const model of ['echo', 'think', 'refuse', 'truncate', 'fail-mid-stream', 'fail-late', 'break-off']) {
    for (const input of [
      { prompt: 'Hello', logprobs: 2, debug: { echo_upstream_body: true } },
      { prompt: ['a', 'b'] },
    ]) {
      for (const stream of [true, false]) {
        for (const answer of await answersOf('/completions', { model: `sandbox/${model}`, ...input, stream })) {
          const faultsOf = !('choices' in answer) ? failure : stream ? chunk : whole;
          expect(faultsOf(answer), `${model} ${JSON.stringify(answer)}`).toBeUndefined();
        }
      }
    }
  }
});

test('answers and events of every kind of the Responses API are documented, field by field', async () => {
  const event = undocumented('ResponseEvent');
  const whole = undocumented('Response');
  const failure = undocumented('ResponsesError');
  const tools = [{ type: 'function', name: 'look', parameters: { type: 'object', properties: {} } }];
  const custom = [{ type: 'custom', name: 'look' }];
  const reasoning = { summary: 'auto' };
  for (const model of [
    'echo',
    'tools',
    'think',
    'refuse',
    'json',
    'truncate',
    'fail-mid-stream',
    'fail-late',
    'responses-think',
  ]) {
    for (const more of [
      { tools, include: ['message.output_text.logprobs'] },
      { tools: custom, reasoning },
      { debug: { echo_upstream_body: true } },
    ]) {
      for (const stream of [true, false]) {
        const body = { model: `sandbox/${model}`, input: 'Hello', ...more, stream };
        for (const answer of await answersOf('/responses', body)) {
          const faultsOf = 'sequence_number' in answer ? event : answer['object'] === 'response' ? whole : failure;
          expect(faultsOf(answer), `${model} ${JSON.stringify(answer)}`).toBeUndefined();
        }
      }
    }
  }
});
