import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../../../test/harness.ts';

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway({
    yaml: 'timeouts: { upstream_first_token_ms_max: 400, heartbeat_first_ms: 100, heartbeat_ms: 100 }',
  });
});
afterAll(() => gateway.stop());

const hello = { model: 'sandbox/echo', messages: [{ role: 'user', content: 'Hello there' }] };

interface Answer {
  id: string;
  object: string;
  created: number;
  model: string;
  provider: string;
  choices: {
    index: number;
    finish_reason: string;
    native_finish_reason: string;
    message?: Record<string, unknown>;
    text?: string;
  }[];
  usage: Record<string, unknown> & {
    prompt_tokens: number;
    completion_tokens: number;
    total_tokens: number;
    cost: number;
  };
  gateway_metadata?: Record<string, unknown> & { attempts: unknown[]; adjusted_parameters: unknown[] };
  error?: { code: number; message: string; metadata: Record<string, unknown> | null };
}

async function post(
  body: unknown,
  headers?: Record<string, string>,
): Promise<{ status: number; answer: Answer; headers: Headers }> {
  const response = await gateway.call('POST', '/chat/completions', body, headers);
  return { status: response.status, answer: (await response.json()) as Answer, headers: response.headers };
}

/** The events of a stream: comments as they are, data parsed. */
async function stream(
  body: object,
  headers?: Record<string, string>,
): Promise<{ comments: string[]; chunks: Answer[]; done: boolean }> {
  const response = await gateway.call('POST', '/chat/completions', { ...body, stream: true }, headers);
  expect(response.status).toBe(200);
  expect(response.headers.get('content-type')).toMatch(/^text\/event-stream/);
  const events = (await response.text()).split('\n\n').filter((event) => event !== '');
  const data = events.filter((event) => event.startsWith('data: ')).map((event) => event.slice('data: '.length));
  return {
    comments: events.filter((event) => event.startsWith(':')),
    chunks: data.filter((text) => text !== '[DONE]').map((text) => JSON.parse(text) as Answer),
    done: data.at(-1) === '[DONE]',
  };
}

test('the routing is shown also when it leaves no endpoint', async () => {
  const asked = { 'x-gateway-experimental-metadata': 'enabled' };
  const nobody = { order: ['nobody'], allow_fallbacks: false };
  for (const provider of [{ only: ['nobody'] }, nobody]) {
    const { status, answer } = await post({ ...hello, provider }, asked);
    expect(status).toBe(404);
    expect(answer.gateway_metadata).toMatchObject({ requested: 'sandbox/echo', attempt: 0, attempts: [] });
    expect(answer.error?.message).toMatch(/\w$/);
  }
  expect((await post({ ...hello, provider: nobody })).answer.gateway_metadata).toBeNull();
});

describe('200', () => {
  test('an answer has every field of the contract', async () => {
    const { status, answer, headers } = await post(hello);
    expect(status).toBe(200);
    expect(answer.id).toMatch(/^gen-\d{10}-[A-Za-z0-9]{20}$/);
    expect(headers.get('x-generation-id')).toBe(answer.id);
    expect(answer).toMatchObject({
      object: 'chat.completion',
      model: 'sandbox/echo',
      provider: 'Sandbox',
      choices: [
        {
          index: 0,
          finish_reason: 'stop',
          native_finish_reason: 'stop',
          message: { role: 'assistant', refusal: null, reasoning: null },
        },
      ],
      usage: { is_byok: false, cost_details: { upstream_inference_cost: null } },
    });
    expect(answer.choices[0]?.message?.['content']).toContain('Hello there');
    const { prompt_tokens, completion_tokens, total_tokens, cost } = answer.usage;
    expect(total_tokens).toBe(prompt_tokens + completion_tokens);
    // 0.1 and 0.4 USD per million tokens.
    expect(cost).toBeCloseTo((prompt_tokens * 0.1 + completion_tokens * 0.4) / 1e6, 9);
  });

  test('a stream ends with one usage chunk of empty choices, then [DONE]', async () => {
    const { chunks, done } = await stream(hello);
    const whole = await post(hello);
    expect(done).toBe(true);
    expect(chunks.every((chunk) => chunk.object === 'chat.completion.chunk' && chunk.id === chunks[0]?.id)).toBe(true);
    const withUsage = chunks.filter((chunk) => chunk.usage !== undefined);
    expect(withUsage).toEqual([chunks.at(-1)]);
    expect(chunks.at(-1)?.choices).toEqual([]);
    expect(chunks.at(-1)?.usage.total_tokens).toBe(whole.answer.usage.total_tokens);
    const text = chunks
      .map((chunk) => (chunk.choices[0] as { delta?: { content?: string } } | undefined)?.delta?.content ?? '')
      .join('');
    expect(text).toBe(whole.answer.choices[0]?.message?.['content']);
    expect(chunks.filter((chunk) => chunk.choices[0]?.finish_reason).length).toBe(1);
  });

  test('the prompt form answers with text', async () => {
    const { answer } = await post({ model: 'sandbox/echo', prompt: 'Say it back' });
    expect(answer.choices[0]?.text).toContain('Say it back');
    expect(answer.choices[0]?.message).toBeUndefined();
    const { chunks } = await stream({ model: 'sandbox/echo', prompt: 'Say it back' });
    const texts = chunks.flatMap((chunk) => chunk.choices.map((choice) => choice.text));
    expect(texts.join('')).toContain('Say it back');
  });

  test('the metadata tells what was tried, only when asked for', async () => {
    expect((await post(hello)).answer.gateway_metadata).toBeUndefined();
    const body = { ...hello, model: 'sandbox/fallback', provider: { order: ['sandbox'] } };
    const { answer } = await post(body, { 'x-gateway-experimental-metadata': 'Enabled' });
    expect(answer.provider).toBe('Sandbox Anthropic');
    expect(answer.gateway_metadata).toMatchObject({
      requested: 'sandbox/fallback',
      strategy: 'direct',
      attempt: 2,
      is_byok: false,
      summary: 'available=2, selected=Sandbox Anthropic',
      endpoints: {
        total: 2,
        available: [
          { provider: 'Sandbox', model: 'sandbox/fallback', selected: false },
          { provider: 'Sandbox Anthropic', model: 'sandbox/fallback', selected: true },
        ],
      },
      attempts: [
        { provider: 'Sandbox', model: 'sandbox/fallback', status: 503 },
        { provider: 'Sandbox Anthropic', model: 'sandbox/fallback', status: 200 },
      ],
    });
  });

  test('the metadata of a stream stands on its last chunk', async () => {
    const { chunks } = await stream(hello, { 'x-openrouter-metadata': 'enabled' });
    expect(chunks.filter((chunk) => chunk.gateway_metadata)).toEqual([chunks.at(-1)]);
  });

  test('a parameter that the endpoint cannot take is dropped and listed', async () => {
    const body = { ...hello, top_k: 5, seed: 7, provider: { only: ['sandbox-anthropic'] } };
    const { answer } = await post(body, { 'x-gateway-experimental-metadata': 'enabled' });
    expect(answer.gateway_metadata?.adjusted_parameters).toContainEqual(
      expect.objectContaining({ kind: 'dropped', field: 'seed' }),
    );
  });

  test('models are tried in order, and the answer names the one that answered', async () => {
    const { answer } = await post({ ...hello, model: 'sandbox/fail-503', models: ['sandbox/echo'] });
    expect(answer.model).toBe('sandbox/echo');
  });

  test('debug.echo_upstream_body puts the sent bodies before the stream, one for each attempt', async () => {
    const body = {
      ...hello,
      model: 'sandbox/fallback',
      provider: { order: ['sandbox'] },
      debug: { echo_upstream_body: true },
    };
    const { chunks } = await stream(body);
    const debug = chunks.filter((chunk) => 'debug' in chunk) as unknown as {
      choices: [];
      debug: { echo_upstream_body: { model: string } };
    }[];
    expect(debug.map((chunk) => chunk.debug.echo_upstream_body.model)).toEqual(['fail-503', 'echo']);
    expect(chunks.slice(0, 2)).toEqual(debug);
    expect(debug[0]?.choices).toEqual([]);
  });

  test('an assistant prefill is continued', async () => {
    const messages = [...hello.messages, { role: 'assistant', content: 'I was saying' }];
    expect((await post({ ...hello, messages })).status).toBe(200);
  });

  test('legacy functions become tools, and their messages tool messages', async () => {
    const functions = [
      { name: 'look_up', parameters: { type: 'object', properties: { q: { type: 'string' } }, required: ['q'] } },
    ];
    const first = await post({ model: 'sandbox/tools', messages: hello.messages, functions });
    const calls = first.answer.choices[0]?.message?.['tool_calls'] as {
      function: { name: string; arguments: string };
    }[];
    expect(first.answer.choices[0]?.finish_reason).toBe('tool_calls');
    expect(calls[0]?.function.name).toBe('look_up');
    const second = await post({
      model: 'sandbox/tools',
      functions,
      messages: [
        ...hello.messages,
        { role: 'assistant', content: null, function_call: { name: 'look_up', arguments: '{"q":"x"}' } },
        { role: 'function', name: 'look_up', content: 'found' },
      ],
    });
    expect(second.status).toBe(200);
    expect(second.answer.choices[0]?.finish_reason).toBe('stop');
  });

  test('a quiet stream gets comments, and an upstream that then fails ends it with an error chunk', async () => {
    const { comments, chunks, done } = await stream({
      ...hello,
      model: 'sandbox/hang',
      provider: { only: ['sandbox'] },
    });
    expect(comments.length).toBeGreaterThan(0);
    expect(chunks[0]?.error).toMatchObject({ code: 408 });
    expect(chunks[0]?.choices[0]?.finish_reason).toBe('error');
    expect(done).toBe(true);
  });

  test('a failure in the middle of a stream is one error chunk, usage, [DONE]', async () => {
    const { chunks, done } = await stream({
      ...hello,
      model: 'sandbox/fail-mid-stream',
      provider: { only: ['sandbox'] },
    });
    const failed = chunks.filter((chunk) => chunk.error);
    expect(failed.length).toBe(1);
    expect(failed[0]?.error?.code).toBe(502);
    expect(failed[0]?.choices[0]?.finish_reason).toBe('error');
    expect(chunks.indexOf(failed[0] as Answer)).toBe(chunks.length - 2);
    expect(chunks.at(-1)?.usage.completion_tokens).toBeGreaterThan(0);
    expect(done).toBe(true);
  });
});

describe('no extension leaks', () => {
  test.each(['sandbox/echo', 'sandbox/think', 'sandbox/tools'])(
    '%s, whole and streamed, from both wires',
    async (model) => {
      const tools = [
        { type: 'function', function: { name: 'look_up', parameters: { type: 'object', properties: {} } } },
      ];
      for (const only of ['sandbox', 'sandbox-anthropic']) {
        const body = {
          ...hello,
          model,
          provider: { only: [only] },
          reasoning: { effort: 'low' },
          ...(model === 'sandbox/tools' ? { tools } : {}),
        };
        const whole = await post(body);
        expect(whole.status).toBe(200);
        const streamed = await stream(body);
        expect(JSON.stringify([whole.answer, streamed.chunks])).not.toMatch(/"ext"|"native"/);
      }
    },
  );
});

test.each([
  ['sandbox', 'sandbox'],
  ['sandbox-anthropic', 'sandbox-anthropic'],
  ['Sandbox Anthropic', 'sandbox-anthropic'],
])('options for %s are sent, but for what the gateway sets', async (name, slug) => {
  const options = { service_tier: 'auto', max_tokens: 1_000_000, stream: false };
  const { chunks } = await stream(
    {
      ...hello,
      debug: { echo_upstream_body: true },
      provider: { only: [slug], options: { [name]: options, other: { y: 1 } } },
    },
    { 'x-gateway-experimental-metadata': 'enabled' },
  );
  const { debug } = chunks[0] as unknown as { debug: { echo_upstream_body: Record<string, unknown> } };
  expect(debug.echo_upstream_body).toMatchObject({ service_tier: 'auto', stream: true });
  expect(debug.echo_upstream_body['max_tokens']).not.toBe(1_000_000);
  expect(debug.echo_upstream_body).not.toHaveProperty('y');
  expect(chunks.at(-1)?.gateway_metadata?.adjusted_parameters).toMatchObject(
    ['max_tokens', 'stream'].map((field) => ({
      kind: 'dropped',
      field: `provider.options.${slug}.${field}`,
    })),
  );
});

test('what only decoders may make is taken out at the door', async () => {
  const response = await gateway.call('POST', '/chat/completions', {
    model: 'sandbox/echo',
    stream: true,
    debug: { echo_upstream_body: true },
    ext: { wire: 'openai-chat', rest: { evil: 1 } },
    messages: [
      {
        role: 'user',
        content: [{ type: 'text', text: 'Hi', ext: { wire: 'openai-chat', rest: { evil: 1 } } }],
        ext: { evil: 1 },
      },
    ],
  });
  const text = await response.text();
  expect(text).toContain('echo_upstream_body');
  expect(text).not.toContain('evil');
});

const message = (extra: object) => ({ ...hello, ...extra });
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
    'a part made by nobody but decoders',
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
  [400, 'a seed with a fraction', message({ seed: 1.5 }), 'seed'],
  [400, 'top_logprobs 1.5', message({ top_logprobs: 1.5 }), 'top_logprobs'],
  [400, 'a logit bias of text', message({ logit_bias: { 50256: 'much' } }), 'logit_bias'],
  [400, 'five stop sequences', message({ stop: ['a', 'b', 'c', 'd', 'e'] }), 'stop'],
  [400, 'route other than fallback', message({ route: 'fastest' }), 'route'],
  [400, 'a plugin that is not there', message({ plugins: [{ id: 'time-travel' }] }), 'plugins[0].id'],
  [400, 'a tool without a name', message({ tools: [{ type: 'function', function: {} }] }), 'tools[0].function.name'],
  [400, 'a tool of type function without one', message({ tools: [{ type: 'function' }] }), 'tools[0].function'],
  [400, 'a tool without a type or a function', message({ tools: [{ name: 'x' }] }), 'tools[0].function'],
  [400, 'a tool choice that is none', message({ tool_choice: 'maybe' }), 'tool_choice'],
  [400, 'a chosen function without a name', message({ tool_choice: { type: 'function' } }), 'tool_choice.function'],
  [400, 'an unknown response format', message({ response_format: { type: 'xml' } }), 'response_format.type'],
  [
    400,
    'a JSON schema without a name',
    message({ response_format: { type: 'json_schema', json_schema: { schema: {} } } }),
    'response_format.json_schema.name',
  ],
  [400, 'a prediction of another kind', message({ prediction: { type: 'guess', content: 'x' } }), 'prediction.type'],
  [400, 'n 2', message({ n: 2 }), 'n'],
  [400, 'provider.order as text', message({ provider: { order: 'sandbox' } }), 'provider.order'],
  [
    400,
    'provider.data_collection maybe',
    message({ provider: { data_collection: 'maybe' } }),
    'provider.data_collection',
  ],
  [400, 'two reasoning wishes', message({ reasoning: { effort: 'low', max_tokens: 100 } }), 'reasoning'],
  [400, 'a model that is not there', message({ model: 'nobody/nothing' }), 'nobody/nothing is not a valid model ID'],
  [
    400,
    'a fallback model that is not there',
    message({ models: ['nobody/nothing'] }),
    'nobody/nothing is not a valid model ID',
  ],
  [
    400,
    'what the provider refuses',
    message({ model: 'sandbox/echo;status=400', provider: { only: ['sandbox'] } }),
    'sandbox/echo;status=400',
  ],
  [404, 'no provider of that name', message({ provider: { only: ['nobody'] } }), 'No allowed providers'],
  [404, 'a price below every price', message({ provider: { max_price: { prompt: 0.000001 } } }), 'max price'],
  [429, 'a rate-limited provider', message({ model: 'sandbox/fail-429' }), 'rate-limited'],
  [502, 'an HTML error page', message({ model: 'sandbox/fail-500-html' }), 'returned an error'],
  [408, 'a provider that never answers', message({ model: 'sandbox/hang' }), 'in time'],
])('%i: %s', async (status, _reason, body, part) => {
  const { status: given, answer } = await post(body);
  expect(answer.error?.message).toContain(part);
  expect(given).toBe(status);
  expect(answer.error?.code).toBe(status);
});

test('429: tells when to come again', async () => {
  const { headers, answer } = await post(message({ model: 'sandbox/fail-429' }));
  expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
  expect(answer.error?.metadata).toMatchObject({ provider_name: expect.any(String) });
});

test.each<[number, string, RequestInit]>([
  [400, 'broken JSON', { body: '{"model":' }],
  [400, 'no body', { body: '' }],
  [400, 'a list', { body: '[]' }],
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

test('405: another method names the ones that are there', async () => {
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

test('the same operation answers under /v1', async () => {
  const response = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    body: JSON.stringify(hello),
    headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
  });
  expect(response.status).toBe(200);
});

test('a body nested beyond reason is no fault of ours, and the process goes on', async () => {
  const deep = `${'['.repeat(200_000)}${']'.repeat(200_000)}`;
  const body = `{"model":"sandbox/echo","messages":[{"role":"user","content":"x"}],"extra":${deep}}`;
  const response = await gateway.call('POST', '/chat/completions', body);
  expect(response.status).toBeLessThan(500);
  expect((await post(hello)).status).toBe(200);
});
