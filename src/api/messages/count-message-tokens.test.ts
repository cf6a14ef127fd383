import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../../../test/harness.ts';

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway();
});
afterAll(() => gateway.stop());

const PROMPT = {
  system: 'Be brief.',
  messages: [
    { role: 'user', content: 'How is the weather in Oslo?' },
    { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'weather', input: { city: 'Oslo' } }] },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'Rain' }] },
  ],
  tools: [{ name: 'weather', input_schema: { type: 'object', properties: { city: { type: 'string' } } } }],
};

async function count(body: object, key = gateway.key, at = gateway) {
  const response = await fetch(`${at.base_url}/messages/count_tokens`, {
    method: 'POST',
    headers: { 'x-api-key': key, 'content-type': 'application/json' },
    body: JSON.stringify({ ...PROMPT, ...body }),
  });
  // Tokens or an error: a missing member fails the comparison.
  const counted = (await response.json()) as { input_tokens: number; type: string; error: { message: string } };
  return { status: response.status, headers: response.headers, body: counted };
}

const anthropic = { model: 'sandbox/echo', provider: { only: ['sandbox-anthropic'] } };

test('an upstream of this wire returns the count that it will bill', async () => {
  const { status, body } = await count(anthropic);
  expect(status).toBe(200);
  const answer = await gateway.call('POST', '/messages', { ...PROMPT, ...anthropic, max_tokens: 100 });
  const { usage } = (await answer.json()) as { usage: { input_tokens: number } };
  expect(body).toEqual({ input_tokens: usage.input_tokens });
});

test.each([
  'sandbox/echo',
  'sandbox/gemini-echo',
  'sandbox/responses-echo',
  'sandbox/bedrock-echo',
  'sandbox/cohere-echo',
])('%s: without such an upstream the count is an estimate and marked as one', async (model) => {
  const { status, body } = await count({ model, provider: { ignore: ['sandbox-anthropic'] } });
  expect({ status, ...body }).toEqual({ status: 200, input_tokens: expect.any(Number), estimated: true });
  expect(body.input_tokens).toBeGreaterThan(20);
  expect(body.input_tokens).toBeLessThan(100);
});

test('more text is more tokens', async () => {
  const more = { system: 'Be brief. '.repeat(100) };
  for (const provider of [{ only: ['sandbox'] }, { only: ['sandbox-anthropic'] }]) {
    const [short, long] = [await count({ ...anthropic, provider }), await count({ ...anthropic, provider, ...more })];
    expect(long.body.input_tokens).toBeGreaterThan(short.body.input_tokens + 150);
  }
});

test('an upstream failure leads to an estimate, and a refusal of the prompt to an error', async () => {
  const failing = await count({ ...anthropic, model: 'sandbox/fail-503' });
  expect(failing.body).toEqual({ input_tokens: expect.any(Number), estimated: true });
  const orphan = [{ role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_9', content: 'x' }] }];
  const { status, body } = await count({ ...anthropic, messages: orphan });
  expect(status).toBe(400);
  expect(body).toMatchObject({ type: 'error', error: { type: 'invalid_request_error' } });
});

test('a prompt that the wire cannot express is estimated', async () => {
  const image = { type: 'image', source: { type: 'base64', media_type: 'image/bmp', data: 'AAAA' } };
  const { body } = await count({ ...anthropic, messages: [{ role: 'user', content: [image] }] });
  expect(body).toEqual({ input_tokens: expect.any(Number), estimated: true });
});

test('nothing is charged, held or recorded', async () => {
  const spent = async () => {
    const response = await gateway.call('GET', '/key');
    return ((await response.json()) as { data: { usage: number } }).data.usage;
  };
  const before = await spent();
  const { headers } = await count(anthropic);
  expect(headers.get('x-generation-id')).toBeNull();
  expect(await spent()).toBe(before);
});

describe('errors have the form of this API', () => {
  test.each<[number, string, object, string]>([
    [400, 'no messages', { model: 'sandbox/echo', messages: [] }, 'messages'],
    [
      400,
      'an unknown block',
      { model: 'sandbox/echo', messages: [{ role: 'user', content: [{ type: 'smell' }] }] },
      'messages[0].content[0].type',
    ],
    [400, 'an unknown model', { model: 'nobody/nothing' }, 'nobody/nothing'],
    [404, 'an unknown provider', { model: 'sandbox/echo', provider: { only: ['nobody'] } }, 'No allowed providers'],
  ])('%i: %s', async (status, _title, body, part) => {
    const { status: actualStatus, body: error } = await count(body);
    expect(actualStatus).toBe(status);
    expect(error.type).toBe('error');
    expect(error.error.message).toContain(part);
  });

  test('401: a wrong key', async () => {
    const { status, body } = await count(anthropic, 'sk-gw-v1-0');
    expect(status).toBe(401);
    expect(body).toMatchObject({ type: 'error', error: { type: 'authentication_error' } });
  });
});

test.each(['per_key', 'per_model'])('429: a count is one request, %s', async (scope) => {
  const limited = await startGateway({ yaml: `rate_limits: { ${scope}: { requests_per_minute: 2 } }` });
  try {
    const body = { model: 'sandbox/echo' };
    const statuses = [];
    for (let i = 0; i < 3; i += 1) statuses.push((await count(body, limited.key, limited)).status);
    expect(statuses).toEqual([200, 200, 429]);
  } finally {
    await limited.stop();
  }
});

test('counted tokens do not count against token rates', async () => {
  const limited = await startGateway({ yaml: 'rate_limits: { per_key: { tokens_per_minute: 100 } }' });
  try {
    const statuses = [];
    for (let i = 0; i < 4; i += 1) statuses.push((await count({ model: 'sandbox/echo' }, limited.key, limited)).status);
    expect(statuses).toEqual([200, 200, 200, 200]);
  } finally {
    await limited.stop();
  }
});
