import { afterAll, beforeAll, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../../../test/harness.ts';
import { chatClient } from '../../../test/wires/chat-client.ts';

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway({
    yaml: 'timeouts: { upstream_first_token_ms_max: 400, heartbeat_first_ms: 100, heartbeat_ms: 100 }',
  });
});
afterAll(() => gateway.stop());

const hello = { model: 'sandbox/echo', messages: [{ role: 'user', content: 'Hello there' }] };
const { post } = chatClient(() => gateway);

const message = (extra: object) => ({ ...hello, ...extra });
const content = (parts: object[]) => message({ messages: [{ role: 'user', content: parts }] });
const tool = (name: string) => ({ type: 'function', function: { name } });
test.each<[number, string, unknown, string]>([
  [400, 'no input', { model: 'sandbox/echo' }, 'messages'],
  [400, 'both inputs', message({ prompt: 'x' }), 'prompt'],
  [400, 'no messages', message({ messages: [] }), 'messages'],
  [400, 'an unknown role', message({ messages: [{ role: 'robot', content: 'x' }] }), 'messages[0].role'],
  [
    400,
    'an unknown part',
    message({ messages: [{ role: 'user', content: [{ type: 'smell' }] }] }),
    'messages[0].content[0].type',
  ],
  [
    400,
    'a part that only decoders make',
    message({ messages: [{ role: 'user', content: [{ type: 'native', wire: 'openai-chat', block: {} }] }] }),
    'messages[0].content[0].type',
  ],
  [
    400,
    'an image without a URL',
    message({ messages: [{ role: 'user', content: [{ type: 'image_url', image_url: {} }] }] }),
    'messages[0].content[0].image_url.url',
  ],
  [
    400,
    'a tool message without its call',
    message({ messages: [{ role: 'tool', content: 'x' }] }),
    'messages[0].tool_call_id',
  ],
  [
    400,
    'a cache ttl of an hour and a half',
    message({
      messages: [
        { role: 'user', content: [{ type: 'text', text: 'x', cache_control: { type: 'ephemeral', ttl: '90m' } }] },
      ],
    }),
    'messages[0].content[0].cache_control.ttl',
  ],
  [400, 'max_tokens 0', message({ max_tokens: 0 }), 'max_tokens'],
  [400, 'max_tokens of the whole context', message({ max_tokens: 1e9 }), 'max_tokens'],
  [400, 'temperature 2.1', message({ temperature: 2.1 }), 'temperature'],
  [400, 'temperature as text', message({ temperature: '1' }), 'temperature'],
  [400, 'top_p 0', message({ top_p: 0 }), 'top_p'],
  [400, 'top_p 1.01', message({ top_p: 1.01 }), 'top_p'],
  [400, 'top_k 0', message({ top_k: 0 }), 'top_k'],
  [400, 'frequency_penalty -2.1', message({ frequency_penalty: -2.1 }), 'frequency_penalty'],
  [400, 'presence_penalty 2.1', message({ presence_penalty: 2.1 }), 'presence_penalty'],
  [400, 'repetition_penalty 0', message({ repetition_penalty: 0 }), 'repetition_penalty'],
  [400, 'min_p 1.1', message({ min_p: 1.1 }), 'min_p'],
  [400, 'top_a -0.1', message({ top_a: -0.1 }), 'top_a'],
  [400, 'a tool name of 65 characters', message({ tools: [tool('n'.repeat(65))] }), 'tools[0].function.name'],
  [400, 'a function name of 65 characters', message({ functions: [{ name: 'n'.repeat(65) }] }), 'functions[0].name'],
  [400, 'a metadata name of 65 characters', message({ metadata: { ['k'.repeat(65)]: 'x' } }), 'metadata.kkk'],
  [400, 'a metadata value of 513 characters', message({ metadata: { k: 'x'.repeat(513) } }), 'metadata.k'],
  [400, 'transforms as text', message({ transforms: 'middle-out' }), 'transforms must be an array'],
  [400, 'an unknown transform', message({ transforms: ['x'] }), 'transforms[0] must be one of "middle-out"'],
  [
    400,
    'an unknown image detail',
    content([{ type: 'image_url', image_url: { url: 'https://a.example/a.png', detail: 'nope' } }]),
    'messages[0].content[0].image_url.detail must be one of "auto", "low", "high", "original"',
  ],
  ...[{}, { filename: 'a.pdf' }, { file_data: '' }, { file_data: null, file_id: null }].map(
    (file): [number, string, unknown, string] => [
      400,
      `a file without its data: ${JSON.stringify(file)}`,
      content([
        { type: 'text', text: 'x' },
        { type: 'file', file },
      ]),
      'messages[0].content[1].file.file_data is required, or file_id',
    ],
  ),
  [400, 'a seed with a fraction', message({ seed: 1.5 }), 'seed'],
  [400, 'top_logprobs 1.5', message({ top_logprobs: 1.5 }), 'top_logprobs'],
  [400, 'a logit bias of text', message({ logit_bias: { 50256: 'much' } }), 'logit_bias'],
  [400, '101 stop sequences', message({ stop: Array.from({ length: 101 }, (_, n) => `${n}`) }), 'stop'],
  [400, 'an unknown route', message({ route: 'fastest' }), 'route'],
  [400, 'an unknown plugin', message({ plugins: [{ id: 'time-travel' }] }), 'plugins[0].id'],
  [400, 'a tool without a name', message({ tools: [{ type: 'function', function: {} }] }), 'tools[0].function.name'],
  [400, 'a tool of type function without one', message({ tools: [{ type: 'function' }] }), 'tools[0].function'],
  [400, 'a tool without a type or a function', message({ tools: [{ name: 'x' }] }), 'tools[0].function'],
  [400, 'an invalid tool choice', message({ tool_choice: 'maybe' }), 'tool_choice'],
  [400, 'a chosen function without a name', message({ tool_choice: { type: 'function' } }), 'tool_choice.function'],
  [400, 'an unknown response format', message({ response_format: { type: 'xml' } }), 'response_format.type'],
  [
    400,
    'a JSON schema without a name',
    message({ response_format: { type: 'json_schema', json_schema: { schema: {} } } }),
    'response_format.json_schema.name',
  ],
  [400, 'a prediction of another kind', message({ prediction: { type: 'guess', content: 'x' } }), 'prediction.type'],
  [400, 'n 129', message({ n: 129 }), 'n'],
  [400, 'provider.order as text', message({ provider: { order: 'sandbox' } }), 'provider.order'],
  [
    400,
    'provider.data_collection maybe',
    message({ provider: { data_collection: 'maybe' } }),
    'provider.data_collection',
  ],
  [400, 'two reasoning settings', message({ reasoning: { effort: 'low', max_tokens: 100 } }), 'reasoning'],
  [400, 'an unknown model', message({ model: 'nobody/nothing' }), 'nobody/nothing is not a valid model ID'],
  [400, 'an unknown fallback model', message({ models: ['nobody/nothing'] }), 'nobody/nothing is not a valid model ID'],
  [
    400,
    'a request that the provider refuses',
    message({ model: 'sandbox/echo;status=400', provider: { only: ['sandbox'] } }),
    'sandbox/echo;status=400',
  ],
  [404, 'an unknown provider', message({ provider: { only: ['nobody'] } }), 'No allowed providers'],
  [404, 'a price below every price', message({ provider: { max_price: { prompt: 0.000001 } } }), 'max price'],
  [429, 'a rate-limited provider', message({ model: 'sandbox/fail-429' }), 'rate-limited'],
  [502, 'an HTML error page', message({ model: 'sandbox/fail-500-html' }), 'returned an error'],
  [408, 'a provider that never answers', message({ model: 'sandbox/hang' }), 'in time'],
])('%i: %s', async (status, _reason, body, part) => {
  const { status: actualStatus, answer } = await post(body);
  expect(answer.error?.message).toContain(part);
  expect(actualStatus).toBe(status);
  expect(answer.error?.code).toBe(status);
});

test('429: states the time to wait', async () => {
  const { headers, answer } = await post(message({ model: 'sandbox/fail-429' }));
  expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
  expect(answer.error?.metadata).toMatchObject({ provider_name: expect.any(String) });
});

test.each<[number, string, RequestInit]>([
  [400, 'broken JSON', { body: '{"model":' }],
  [400, 'no body', { body: '' }],
  [400, 'a list', { body: '[]' }],
  [400, 'a compressed body', { headers: { 'content-encoding': 'gzip' } }],
  [400, 'another charset', { headers: { 'content-type': 'application/json; charset=utf-16' } }],
  [400, 'another content type', { body: '{}', headers: { 'content-type': 'text/plain' } }],
  [401, 'no credential', { headers: { authorization: '' } }],
  [401, 'a wrong key', { headers: { authorization: 'Bearer sk-gw-v1-0' } }],
  [403, 'a management key', { headers: { authorization: 'Bearer test-management-key-0123456789abcdef' } }],
])('%i: %s', async (status, _reason, init) => {
  const response = await fetch(`${gateway.base_url}/chat/completions`, {
    method: 'POST',
    body: JSON.stringify(hello),
    ...init,
    headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json', ...init.headers },
  });
  expect(response.status).toBe(status);
  const body = (await response.json()) as { error: { code: number }; gateway_metadata: null };
  expect(body.error.code).toBe(status);
  expect(Object.keys(body).sort()).toEqual(['error', 'gateway_metadata', 'user_id']);
});

test('405: another method gets a list of the supported ones', async () => {
  const response = await gateway.call('GET', '/chat/completions');
  expect(response.status).toBe(405);
  expect(response.headers.get('allow')).toBe('POST');
});

test('413: a body over the bound', async () => {
  const small = await startGateway({ environment: { GATEWAY_BODY_BYTES_MAX: '2048' } });
  const response = await small.call('POST', '/chat/completions', { ...hello, user: 'x', padding: 'x'.repeat(3000) });
  expect(response.status).toBe(413);
  await small.stop();
});
