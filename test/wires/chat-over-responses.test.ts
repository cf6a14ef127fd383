/** Properties of the Responses wire that only a running gateway shows: which endpoint uses it, and refused state. */
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sandboxModels, sandboxProviders } from '../../sandbox/catalog.ts';
import { type Sandbox, startSandbox } from '../../sandbox/server.ts';
import type { JsonObject } from '../../src/schemas/json.ts';
import { startGateway, type TestGateway } from '../harness.ts';
import { readStream } from '../readings/client.ts';
import { array, object } from '../readings/recordings.ts';

let sandbox: Sandbox;
let gateway: TestGateway;

beforeAll(async () => {
  sandbox = await startSandbox();
  const providers = sandboxProviders(sandbox.url);
  const pricing = { prompt: 1, completion: 2 };
  const models = {
    ...sandboxModels,
    // One provider, two wires: the second belongs to the endpoint.
    'acme/echo': {
      endpoints: [{ provider: 'sandbox', upstream_model: 'think', dialect: 'openai-responses', pricing }],
    },
    'acme/plain': { endpoints: [{ provider: 'sandbox', upstream_model: 'echo', pricing }] },
  };
  gateway = await startGateway({ yaml: JSON.stringify({ bundled_catalog: false, providers, models }) });
});
afterAll(async () => {
  await gateway.stop();
  await sandbox.stop();
});

async function ask(body: JsonObject): Promise<{ status: number; answer: JsonObject; path: string; sent: JsonObject }> {
  const response = await gateway.call('POST', '/chat/completions', body);
  const answer = (await response.json()) as JsonObject;
  const { path, body: sent } = await lastAttempt(String(answer['id']));
  return { status: response.status, answer, path, sent };
}

/** The last request of a generation that reached the sandbox. */
async function lastAttempt(id: string): Promise<{ path: string; body: JsonObject; count: number }> {
  for (const n of [3, 2, 1]) {
    const response = await fetch(`${sandbox.url}/sandbox/attempts/${id}.${n}`);
    if (response.status !== 200) continue;
    const { data } = (await response.json()) as { data: { path: string; body: JsonObject }[] };
    return { path: data[0]!.path, body: data[0]!.body, count: n };
  }
  return { path: '', body: {}, count: 0 };
}

const hello = [{ role: 'user', content: 'Good morning.' }];
const messageOf = (answer: JsonObject) => object(object(array(answer['choices'])[0])['message']);

describe('the wire of an endpoint', () => {
  test('takes precedence over its provider’s', async () => {
    expect((await ask({ model: 'acme/echo', messages: hello })).path).toBe('/v1/responses');
    expect((await ask({ model: 'acme/plain', messages: hello })).path).toBe('/v1/chat/completions');
  });

  test('that this version does not support is refused in the file', async () => {
    const endpoints = [{ provider: 'sandbox', upstream_model: 'x', dialect: 'smoke-signals' }];
    const file = { providers: sandboxProviders(sandbox.url), models: { 'a/b': { endpoints } } };
    await expect(startGateway({ yaml: JSON.stringify(file) })).rejects.toThrow(/dialect/);
  });
});

describe('reasoning', () => {
  test('is sent back encrypted, and refused state is removed in one more attempt', async () => {
    const first = await ask({ model: 'acme/echo', messages: hello });
    const details = array(messageOf(first.answer)['reasoning_details']).map(object);
    expect(details).toMatchObject(
      [{ type: 'reasoning.encrypted', format: 'openai-responses-v1', id: /^rs_/ }].map(({ id: _id, ...rest }) => rest),
    );
    const next = { role: 'user', content: 'And now?' };
    const turn = { role: 'assistant', content: 'Good morning.', reasoning_details: details };
    const second = await ask({ model: 'acme/echo', messages: [...hello, turn, next] });
    expect(array(second.sent['input']).map((item) => object(item)['type'])).toContain('reasoning');

    const stolen = { ...turn, reasoning_details: [{ ...details[0], data: 'gAAAAbm90aGluZw.of-another' }] };
    const third = await ask({ model: 'acme/echo', messages: [...hello, stolen, next] });
    expect(third.status).toBe(200);
    expect(array(third.sent['input']).map((item) => object(item)['type'])).not.toContain('reasoning');
    expect((await lastAttempt(String(third.answer['id']))).count).toBe(2);
  });

  test('is summarized if that is requested', async () => {
    const request = { model: 'acme/echo', messages: hello, reasoning: { effort: 'low', summary: 'auto' } };
    const { answer, sent } = await ask(request);
    expect(sent['reasoning']).toEqual({ effort: 'low', summary: 'auto' });
    expect(messageOf(answer)['reasoning']).toMatch(/^The user says/);
  });
});

describe('a request', () => {
  test('stores nothing upstream, even if the client requests storage', async () => {
    const options = {
      sandbox: {
        store: true,
        previous_response_id: 'resp_1',
        prompt: { id: 'p' },
        max_output_tokens: 9_999,
        truncation: 'auto',
      },
    };
    const { sent } = await ask({ model: 'acme/echo', messages: hello, max_tokens: 64, provider: { options } });
    expect(sent).toMatchObject({ store: false, truncation: 'auto', max_output_tokens: 64 });
    expect(Object.keys(sent)).not.toContain('previous_response_id');
    expect(Object.keys(sent)).not.toContain('prompt');
  });

  test.each([false, true])('that is cut at its bound ends by length (stream: %s)', async (stream) => {
    const body = { model: 'sandbox/responses-story', messages: hello, max_tokens: 20, stream };
    const response = await gateway.call('POST', '/chat/completions', body);
    const text = await response.text();
    const received = stream ? readStream(text) : undefined;
    const choice = received ?? object(array(object(JSON.parse(text))['choices'])[0]);
    const [finish, native] = received
      ? [received.finish, received.native_finish]
      : [choice, choice].map((one, i) => object(one as JsonObject)[i === 0 ? 'finish_reason' : 'native_finish_reason']);
    expect([finish, native]).toEqual(['length', 'max_output_tokens']);
  });

  test('whose stream has a late error ends as an error, and earlier content is passed on', async () => {
    const body = { model: 'sandbox/responses-fail-late', messages: hello, stream: true };
    const { finish, text, error } = readStream(await (await gateway.call('POST', '/chat/completions', body)).text());
    expect([finish, text.length > 0, error?.['code']]).toEqual(['error', true, 503]);
  });
});

describe('OpenAI’s own client reads the sandbox', () => {
  const client = () => new OpenAI({ baseURL: `${sandbox.url}/v1`, apiKey: 'none', maxRetries: 0 });

  test.each(['echo', 'story', 'think', 'json', 'refuse', 'tools'])(
    '%s: a stream ends with the whole answer',
    async (model) => {
      const tools =
        model === 'tools'
          ? [{ type: 'function' as const, name: 'look', parameters: { type: 'object' }, strict: false }]
          : [];
      const request = { model, input: 'Good morning, JSON.', ...(tools.length > 0 ? { tools } : {}) };
      const whole = await client().responses.create(request);
      const streamed = await client().responses.stream(request).finalResponse();
      const bare = ({ output }: OpenAI.Responses.Response) =>
        output.map(({ id: _id, ...item }) =>
          JSON.parse(JSON.stringify(item, (key, value) => (/^parsed/.test(key) ? undefined : value))),
        );
      expect(bare(streamed as OpenAI.Responses.Response)).toEqual(bare(whole));
      expect(whole.usage?.total_tokens).toBe(whole.usage!.input_tokens + whole.usage!.output_tokens);
    },
  );

  const input = [{ role: 'user', content: 'Hello' }];
  const looked = { type: 'function_call', call_id: 'call_1', name: 'look', arguments: '{}' };
  test.each([
    ['a parameter of another wire', { input, messages: [] }, 'Unknown parameter'],
    ['no input', {}, 'Missing required parameter'],
    ['an output bound that is too low', { input, max_output_tokens: 5 }, 'below minimum'],
    [
      'a part of another wire',
      { input: [{ role: 'user', content: [{ type: 'text', text: 'x' }] }] },
      'Supported values',
    ],
    ['a call without its result', { input: [...input, looked] }, 'No tool output found'],
    [
      'a result without its call',
      { input: [{ type: 'function_call_output', call_id: 'c', output: '' }] },
      'No tool call found',
    ],
    ['an id of another type', { input: [{ ...looked, id: 'call_1' }] }, "begins with 'fc'"],
    ['an invalid name', { input: [{ ...looked, name: 'no name' }] }, 'does not match'],
    ['an id that is too long', { input: [{ ...looked, call_id: 'x'.repeat(65) }] }, 'string too long'],
    ['unencrypted reasoning', { input: [{ type: 'reasoning', id: 'rs_1', summary: [] }] }, 'not persisted'],
    [
      'reasoning of another account',
      { input: [{ type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'x' }] },
      'could not be verified',
    ],
    ['an empty list of tools', { input, tools: [] }, 'empty array'],
    [
      'a strict tool with an open schema',
      { input, tools: [{ type: 'function', name: 'a', strict: true, parameters: { type: 'object' } }] },
      'additionalProperties',
    ],
    [
      'a choice of an unknown tool',
      { input, tools: [{ type: 'function', name: 'a', strict: false }], tool_choice: { type: 'function', name: 'b' } },
      'not found',
    ],
    ['JSON mode without the word in the prompt', { input, text: { format: { type: 'json_object' } } }, "word 'json'"],
    [
      'a format without its schema',
      { input, text: { format: { type: 'json_schema', name: 'a' } } },
      'text.format.schema',
    ],
    ['an unknown effort', { input, reasoning: { effort: 'much' } }, 'Supported values'],
    ['an unknown value to include', { input, include: ['everything'] }, 'Supported values'],
  ])('the sandbox refuses %s', async (_name, body, message) => {
    const response = await fetch(`${sandbox.url}/v1/responses`, {
      method: 'POST',
      body: JSON.stringify({ model: 'echo', ...body }),
    });
    const { error } = (await response.json()) as { error: { message: string; type: string } };
    expect([400, 404]).toContain(response.status);
    expect(error.message).toContain(message);
    expect(error.type).toBe('invalid_request_error');
  });
});
