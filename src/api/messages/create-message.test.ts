/** Errors that clients of the Messages API receive: before a stream, in it, and during an idle time. */
import Anthropic, { APIError } from '@anthropic-ai/sdk';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { checkMessagesStream } from '../../../test/grammar/messages.ts';
import { startGateway, type TestGateway } from '../../../test/harness.ts';
import { object } from '../../../test/readings/recordings.ts';
import { responseHead, type Step, startWireServer, type WireServer } from '../../../test/wires/wire-server.ts';
import type { JsonObject } from '../../schemas/json.ts';

/** Long enough that a busy machine reports a failure within it. */
const HEARTBEAT_MS = 1_000;
const SILENCE_MS = 1_500;

let wire: WireServer;
let gateway: TestGateway;
let steps: Step[];

beforeAll(async () => {
  wire = await startWireServer(() => steps);
  const endpoints = [{ provider: 'scripted', upstream_model: 'm', pricing: { prompt: 1, completion: 2 } }];
  const scripted = { name: 'Scripted', dialect: 'openai-chat', base_url: wire.url, api_key: 'secret' };
  gateway = await startGateway({
    yaml: JSON.stringify({
      bundled_catalog: false,
      providers: { scripted },
      models: {
        'test/chat': { endpoints },
        'test/gemini': {
          endpoints: endpoints.map((endpoint) => ({ ...endpoint, dialect: 'gemini-generate-content' })),
        },
      },
      timeouts: { heartbeat_first_ms: HEARTBEAT_MS, heartbeat_ms: HEARTBEAT_MS },
      ledger: { journal_sync: 'os' },
    }),
    environment: { GATEWAY_BODY_BYTES_MAX: '20000' },
  });
});

afterAll(async () => {
  await gateway.stop();
  await wire.stop();
});

beforeEach(() => {
  steps = [];
});

const chunk = (delta: JsonObject, finishReason: string | null = null) =>
  `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason: finishReason }] })}\n\n`;
const stream = responseHead(200, 'text/event-stream');
const json = (status: number, body: object, headers: Record<string, string> = {}): Step[] => [
  responseHead(status, 'application/json', headers),
  JSON.stringify(body),
  'END',
];

const send = (more: object = {}, headers: Record<string, string> = {}) =>
  gateway.call(
    'POST',
    '/messages',
    { model: 'test/chat', max_tokens: 16, messages: [{ role: 'user', content: 'Hello' }], ...more },
    headers,
  );

describe('before a stream', () => {
  test('max_tokens 0 is refused on other wires, which would read it as no bound', async () => {
    const response = await send({ max_tokens: 0 });
    expect([response.status, await response.json()]).toEqual([
      400,
      expect.objectContaining({
        error: expect.objectContaining({ message: expect.stringContaining('max_tokens must be at least 1') }),
      }),
    ]);
  });

  test.each([
    [429, { 'retry-after': '7' }, 429, 'rate_limit_error', '7'],
    [503, { 'retry-after': '3' }, 503, 'overloaded_error', '3'],
    [529, {}, 503, 'overloaded_error', null],
    [500, {}, 502, 'api_error', null],
    [401, {}, 502, 'api_error', null],
    [400, {}, 400, 'invalid_request_error', null],
    [413, {}, 413, 'request_too_large', null],
  ] as const)('status %i of the provider', async (upstream, headers, status, type, retryAfter) => {
    steps = json(upstream, { error: { message: 'so it is' } }, headers);
    for (const isStream of [false, true]) {
      const response = await send({ stream: isStream });
      const body = (await response.json()) as JsonObject;
      expect([response.status, response.headers.get('retry-after')]).toEqual([status, retryAfter]);
      expect(body).toMatchObject({
        type: 'error',
        error: { type, error_type: expect.any(String), metadata: { provider_name: 'Scripted' } },
        request_id: response.headers.get('x-generation-id'),
      });
      expect(response.headers.get('request-id')).toBe(body['request_id']);
    }
  });

  test('a request that is too large, and one of another content type', async () => {
    const large = await send({ system: 'x'.repeat(30_000) });
    expect(large.status).toBe(413);
    expect(await large.json()).toMatchObject({ type: 'error', error: { type: 'request_too_large' }, request_id: null });
    const form = await send({}, { 'content-type': 'text/plain' });
    expect(form.status).toBe(400);
    expect(await form.json()).toMatchObject({ type: 'error', error: { type: 'invalid_request_error' } });
  });

  test('an answer that the provider ended with an error', async () => {
    steps = json(200, { choices: [{ index: 0, message: { content: 'a' }, finish_reason: 'error' }] });
    const response = await send();
    expect(response.status).toBe(502);
    expect(await response.json()).toMatchObject({ type: 'error', error: { type: 'api_error' } });
  });

  test.each([false, true])(
    'the provider’s message about an answer that failed before its first text is returned redacted (streamed: %s)',
    async (isStream) => {
      const finishReason = 'MALFORMED_FUNCTION_CALL';
      const body = { candidates: [{ finishReason, finishMessage: 'Malformed function call: run(secret)' }] };
      steps = isStream ? [stream, `data: ${JSON.stringify(body)}\n\n`, 'END'] : json(200, body);
      const response = await send({ model: 'test/gemini', stream: isStream });
      expect(response.status).toBe(502);
      const message = 'Scripted returned an error: Malformed function call: run([redacted])';
      expect(await response.json()).toMatchObject({ error: { message, metadata: { provider_code: finishReason } } });
    },
  );

  test('routing is shown if requested', async () => {
    steps = json(500, { error: { message: 'so it is' } });
    const response = await send({}, { 'x-gateway-metadata': 'enabled' });
    expect(await response.json()).toMatchObject({ type: 'error', gateway_metadata: { attempt: 1 } });
  });
});

describe('in a stream', () => {
  test('a message begins with the estimated tokens of its prompt if the provider reports them last', async () => {
    const usage = { prompt_tokens: 90, completion_tokens: 1, total_tokens: 91 };
    const last = `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', choices: [], usage })}\n\n`;
    steps = [stream, chunk({ content: 'Hi' }), chunk({}, 'stop'), last, 'data: [DONE]\n\n', 'END'];
    const messages = [{ role: 'user', content: 'How many words has this sentence? '.repeat(10) }];
    const text = await (await send({ messages, stream: true })).text();
    const usages = [...text.matchAll(/"input_tokens":(\d+)/g)].map(([, tokens]) => Number(tokens));
    expect(usages).toHaveLength(2);
    expect(usages[0]).toBeGreaterThan(50);
    expect(usages[0]).toBeLessThan(150);
    expect(usages[1]).toBe(90);
  });

  const read = async (more: object = {}) => {
    const response = await send({ stream: true, ...more });
    expect(response.status).toBe(200);
    return response.text();
  };

  test('idle times are filled with pings, before the message and in it', async () => {
    steps = [
      stream,
      { wait: SILENCE_MS },
      chunk({ content: 'a' }),
      { wait: SILENCE_MS },
      chunk({}, 'stop'),
      'data: [DONE]\n\n',
      'END',
    ];
    const text = await read();
    const { events } = checkMessagesStream(text);
    const types = events.map(({ type }) => type);
    expect(types[0]).toBe('ping');
    expect(types.lastIndexOf('ping')).toBeGreaterThan(types.indexOf('content_block_delta'));
    expect(text).not.toMatch(/^:/m);
  });

  test('a provider failure after a ping ends the stream with an error', async () => {
    steps = [{ wait: SILENCE_MS }, ...json(500, { error: { message: 'so it is' } })];
    const { events, error } = checkMessagesStream(await read());
    expect(new Set(events.map(({ type }) => type))).toEqual(new Set(['ping', 'error']));
    expect(error).toMatchObject({ type: 'api_error', error_type: 'provider_unavailable' });
  });

  test('a connection that breaks in the middle ends the stream with an error and the cost', async () => {
    steps = [stream, chunk({ content: 'a word' }), { wait: 20 }, 'DESTROY'];
    const { events, error, message } = checkMessagesStream(await read());
    expect(error).toMatchObject({ type: 'api_error' });
    expect(message!['content']).toEqual([{ type: 'text', text: 'a word' }]);
    expect(Number(object(events.at(-1)!['usage'])['cost'])).toBeGreaterThan(0);
  });

  test('the official client throws the error that it receives', async () => {
    steps = [stream, chunk({ content: 'a word' }), { wait: 20 }, 'DESTROY'];
    const client = new Anthropic({ apiKey: gateway.key, baseURL: gateway.url, maxRetries: 0 });
    const messages = [{ role: 'user' as const, content: 'Hello' }];
    const failed = client.messages.stream({ model: 'test/chat', max_tokens: 16, messages }).finalMessage();
    const error = await failed.then(
      () => undefined,
      (thrown: unknown) => thrown as APIError,
    );
    expect(error).toBeInstanceOf(APIError);
    expect(error!.type).toBe('api_error');
  });

  test('the body that was sent upstream is shown in a ping', async () => {
    steps = [stream, chunk({ content: 'a' }, 'stop'), 'data: [DONE]\n\n', 'END'];
    const { events } = checkMessagesStream(await read({ debug: { echo_upstream_body: true } }));
    expect(events[0]).toMatchObject({ type: 'ping', debug: { echo_upstream_body: { model: 'm' } } });
  });
});
