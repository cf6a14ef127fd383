import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { checkResponse, checkResponsesStream } from '../../../test/grammar/responses.ts';
import { startGateway, type TestGateway } from '../../../test/harness.ts';
import { array, object } from '../../../test/readings/recordings.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway({
    yaml: 'timeouts: { upstream_first_token_ms_max: 400, heartbeat_first_ms: 100, heartbeat_ms: 100 }',
  });
});
afterAll(() => gateway.stop());

const hello = { model: 'sandbox/echo', input: 'Hello there' };
const weather = { type: 'function', name: 'get_weather', parameters: { type: 'object', properties: {} } };

async function post(body: object, headers: Record<string, string> = {}) {
  const response = await gateway.call('POST', '/responses', body, headers);
  return { status: response.status, headers: response.headers, answer: (await response.json()) as JsonObject };
}

async function stream(body: object, headers: Record<string, string> = {}) {
  const response = await gateway.call('POST', '/responses', { ...body, stream: true }, headers);
  const text = await response.text();
  expect(response.status, text).toBe(200);
  return { headers: response.headers, text, ...checkResponsesStream(text, { continued: true }) };
}

const OF_ONE_ANSWER = new Set(['id', 'call_id', 'encrypted_content']);

/** The common part of two answers to the same request. */
function alike(response: JsonObject): JsonValue {
  const { id: _, created_at: __, completed_at: ___, ...rest } = response;
  return JSON.parse(JSON.stringify(rest, (name, value) => (OF_ONE_ANSWER.has(name) ? '' : value)));
}

describe('a Response object', () => {
  test('has every field of the contract', async () => {
    const { status, answer, headers } = await post(hello);
    expect(status).toBe(200);
    checkResponse(answer);
    expect(headers.get('x-generation-id')).toBe(answer['id']);
    expect(headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect(answer).toMatchObject({
      object: 'response',
      status: 'completed',
      model: 'sandbox/echo',
      output: [
        {
          type: 'message',
          id: expect.stringMatching(/^msg_/),
          role: 'assistant',
          status: 'completed',
          content: [{ type: 'output_text', text: expect.stringContaining('Hello there'), annotations: [] }],
        },
      ],
      temperature: 1,
      top_p: 1,
      tools: [],
      tool_choice: 'auto',
      parallel_tool_calls: true,
      text: { format: { type: 'text' } },
      reasoning: { effort: null, summary: null },
      truncation: 'disabled',
      store: false,
      metadata: {},
    });
  });

  test("repeats the request in the client's form", async () => {
    const fields = {
      instructions: 'Be brief.',
      temperature: 0.5,
      top_p: 0.9,
      max_output_tokens: 500,
      metadata: { a: 'b' },
      tools: [weather],
      tool_choice: 'none',
      parallel_tool_calls: false,
      reasoning: { effort: 'low' },
      text: { verbosity: 'low' },
      user: 'somebody',
      prompt_cache_key: 'k',
      truncation: 'auto',
    };
    const { answer } = await post({ ...hello, ...fields });
    expect(answer).toMatchObject({
      ...fields,
      reasoning: { effort: 'low', summary: null },
      text: { verbosity: 'low', format: { type: 'text' } },
    });
    const { events } = await stream({ ...hello, ...fields });
    expect(events[0]!['response']).toMatchObject(fields);
  });

  test("contains usage and cost, equal to the generation's", async () => {
    const { answer } = await post(hello);
    const { input_tokens, output_tokens, cost } = object(answer['usage']) as Record<string, number>;
    // 0.1 and 0.4 USD per million tokens.
    expect(cost).toBeCloseTo((input_tokens! * 0.1 + output_tokens! * 0.4) / 1e6, 9);
    const generation = await gateway.call('GET', `/generation?id=${answer['id']}`);
    const { data } = (await generation.json()) as { data: JsonObject };
    expect(data).toMatchObject({ api_type: 'responses', total_cost: cost, tokens_completion: output_tokens });
  });

  test('is incomplete if its bound was reached, and so is its last item', async () => {
    const { answer } = await post({ model: 'sandbox/story', input: 'Tell me', max_output_tokens: 16 });
    expect(answer).toMatchObject({
      status: 'incomplete',
      incomplete_details: { reason: 'max_output_tokens' },
      completed_at: null,
      output: [{ status: 'incomplete' }],
    });
  });
});

describe('a stream', () => {
  const bodies: [string, JsonObject][] = [
    ['text', hello],
    ['reasoning', { model: 'sandbox/think', input: 'Think' }],
    ['calls', { model: 'sandbox/tools', input: 'How is the weather?', tools: [weather] }],
    ['Anthropic', { model: 'sandbox/think', input: 'Think', provider: { only: ['sandbox-anthropic'] } }],
    ['Gemini', { model: 'sandbox/gemini-tools', input: 'How is the weather?', tools: [weather] }],
    ['the same wire', { model: 'sandbox/responses-think', input: 'Think' }],
    ['an output bound', { model: 'sandbox/story', input: 'Tell me', max_output_tokens: 16 }],
  ];
  test.each(bodies)('ends with the response of the whole answer: %s', async (_what, body) => {
    const { response, headers } = await stream(body);
    expect(headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
    expect(headers.get('x-generation-id')).toBe(response['id']);
    expect(array(response['output']).length).toBeGreaterThan(0);
    const { status, answer } = await post(body);
    expect(status).toBe(200);
    expect(alike(response)).toEqual(alike(answer));
  });

  test('has lines of data alone', async () => {
    const { text } = await stream(hello);
    expect(text.split('\n').filter((line) => line !== '' && !line.startsWith('data: '))).toEqual([]);
  });

  test('hides reasoning from a client that excludes it, and counts it', async () => {
    const body = { model: 'sandbox/think', input: 'Think', reasoning: { exclude: true } };
    const { response, text } = await stream(body);
    expect(text).not.toContain('reasoning_text');
    expect(array(response['output']).map((item) => object(item)['type'])).toEqual(['message']);
    expect(object(object(response['usage'])['output_tokens_details'])['reasoning_tokens']).toBeGreaterThan(0);
  });

  test('has the metadata in its last event, only if requested', async () => {
    const { events } = await stream(hello, { 'x-gateway-experimental-metadata': 'enabled' });
    const withMetadata = events.filter(({ response }) => object(response)['gateway_metadata'] !== undefined);
    expect(withMetadata).toEqual([events.at(-1)]);
    expect(object(withMetadata[0]!['response'])['gateway_metadata']).toMatchObject({
      requested: 'sandbox/echo',
      attempt: 1,
    });
    expect((await post(hello)).answer['gateway_metadata']).toBeUndefined();
    const { answer } = await post(hello, { 'x-gateway-experimental-metadata': 'enabled' });
    expect(answer['gateway_metadata']).toMatchObject({ requested: 'sandbox/echo' });
  });

  test('shows the body that was sent upstream before any output, if requested', async () => {
    const { events } = await stream({ ...hello, debug: { echo_upstream_body: true } });
    expect(events[2]).toMatchObject({ type: 'response.debug', debug: { echo_upstream_body: { model: 'echo' } } });
  });

  test('that fails late states the error in its last event, with the cost', async () => {
    const { response, events } = await stream({ model: 'sandbox/fail-mid-stream', input: 'Tell me' });
    expect(events.at(-1)!['type']).toBe('response.failed');
    expect(response).toMatchObject({ status: 'failed', error: { code: 'server_error', message: expect.any(String) } });
    expect(response['error_type']).toBe('provider_unavailable');
    expect(array(response['output'])).toMatchObject([{ type: 'message', status: 'incomplete' }]);
    expect(object(response['usage'])['output_tokens']).toBeGreaterThan(0);
  });

  test('that fails after a heartbeat is created and fails', async () => {
    const { response, text, events } = await stream({ model: 'sandbox/hang', input: 'Hello' });
    expect(text.startsWith(': ')).toBe(true);
    expect(events.map(({ type }) => type)).toEqual(['response.created', 'response.in_progress', 'response.failed']);
    expect(response).toMatchObject({ error: { code: 'server_error' }, error_type: 'timeout', output: [] });
  });

  test('that another endpoint continues stays one message', async () => {
    const { response } = await stream({
      model: 'sandbox/break-off',
      input: 'Tell me',
      provider: { continuation: true },
    });
    expect(response).toMatchObject({ status: 'completed', output: [{ type: 'message', content: [{}] }] });
  });
});

describe('errors before the stream', () => {
  test.each<[number, string, object, string, string, string | null]>([
    [400, 'invalid_request', { model: 'sandbox/echo' }, 'input', 'invalid_request_error', 'input'],
    [400, 'invalid_request', { ...hello, temperature: 3 }, 'temperature', 'invalid_request_error', 'temperature'],
    [400, 'invalid_request', { ...hello, model: 'nobody/nothing' }, 'nobody/nothing', 'invalid_request_error', 'model'],
    [404, 'not_found', { ...hello, provider: { only: ['nobody'] } }, 'No allowed', 'invalid_request_error', null],
    [429, 'rate_limit_exceeded', { ...hello, model: 'sandbox/fail-429' }, 'rate-limited', 'rate_limit_error', null],
    [502, 'provider_unavailable', { ...hello, model: 'sandbox/fail-500-html' }, 'returned', 'server_error', null],
    [408, 'timeout', { ...hello, model: 'sandbox/hang' }, 'in time', 'invalid_request_error', null],
  ])(
    '%i %s: the standard envelope, with the members for clients of this API',
    async (status, errorType, body, part, type, param) => {
      const { status: actualStatus, answer } = await post(body);
      expect(actualStatus).toBe(status);
      expect(answer).toMatchObject({
        error: { code: status, type, param },
        error_type: errorType,
        user_id: expect.anything(),
      });
      expect(object(answer['error'])['message']).toContain(part);
    },
  );

  test.each<[number, RequestInit]>([
    [400, { body: '{"model":' }],
    [401, { headers: { authorization: 'Bearer sk-gw-v1-0' } }],
  ])('%i: also before the request is parsed', async (status, init) => {
    const response = await fetch(`${gateway.base_url}/responses`, {
      method: 'POST',
      body: JSON.stringify(hello),
      ...init,
      headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json', ...init.headers },
    });
    expect(response.status).toBe(status);
    expect(await response.json()).toMatchObject({
      error: { code: status, type: expect.any(String) },
      error_type: expect.any(String),
    });
  });

  test('of a stream have their status as well', async () => {
    const { status, answer } = await post({ ...hello, stream: true, model: 'sandbox/fail-429' });
    expect([status, object(answer['error'])['code']]).toEqual([429, 429]);
  });
});
