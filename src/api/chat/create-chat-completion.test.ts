import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { checkChatStream } from '../../../test/grammar/chat.ts';
import { startGateway, type TestGateway } from '../../../test/harness.ts';
import { type Answer, chatClient } from '../../../test/wires/chat-client.ts';
import type { JsonObject } from '../../schemas/json.ts';

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway({
    yaml: 'timeouts: { upstream_first_token_ms_max: 400, heartbeat_first_ms: 100, heartbeat_ms: 100 }',
  });
});
afterAll(() => gateway.stop());

const hello = { model: 'sandbox/echo', messages: [{ role: 'user', content: 'Hello there' }] };
const { post, stream } = chatClient(() => gateway);

test('the routing is shown also if it leaves no endpoint', async () => {
  const withMetadata = { 'x-gateway-experimental-metadata': 'enabled' };
  const nobody = { order: ['nobody'], allow_fallbacks: false };
  for (const provider of [{ only: ['nobody'] }, nobody]) {
    const { status, answer } = await post({ ...hello, provider }, withMetadata);
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

  test('the prompt form is answered with text', async () => {
    const { answer } = await post({ model: 'sandbox/echo', prompt: 'Say it back' });
    expect(answer.choices[0]?.text).toContain('Say it back');
    expect(answer.choices[0]?.message).toBeUndefined();
    const { chunks } = await stream({ model: 'sandbox/echo', prompt: 'Say it back' });
    const texts = chunks.flatMap((chunk) => chunk.choices.map((choice) => choice.text));
    expect(texts.join('')).toContain('Say it back');
  });

  test('reasoning is sent beside the text of the prompt form, whole and streamed, unless excluded', async () => {
    const thinking = { model: 'sandbox/think', prompt: 'Say it back' };
    const { answer } = await post(thinking);
    expect(answer.choices[0]).toMatchObject({ reasoning: expect.stringMatching(/./) });
    const reasoningOf = async (body: object) =>
      (await stream(body)).chunks
        .flatMap(({ choices }) => choices as { reasoning?: string }[])
        .map((one) => one.reasoning ?? '');
    expect((await reasoningOf(thinking)).join('')).toBe((answer.choices[0] as { reasoning?: string }).reasoning);
    expect((await reasoningOf({ ...thinking, reasoning: { exclude: true } })).join('')).toBe('');
  });

  test('the metadata lists the attempts, only if requested', async () => {
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

  test('the metadata of a stream is in its last chunk', async () => {
    const { chunks } = await stream(hello, { 'x-openrouter-metadata': 'enabled' });
    expect(chunks.filter((chunk) => chunk.gateway_metadata)).toEqual([chunks.at(-1)]);
  });

  test('a parameter that the endpoint does not support is dropped and listed', async () => {
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
    // Each names the provider that got its body, not the one that answered.
    expect(chunks.slice(0, 3).map(({ model, provider }) => [model, provider])).toEqual([
      ['sandbox/fallback', 'Sandbox'],
      ['sandbox/fallback', 'Sandbox Anthropic'],
      ['sandbox/fallback', 'Sandbox Anthropic'],
    ]);
  });

  test.each(['/chat/completions', '/completions'])(
    '%s: a failure after the first heartbeat names the requested model and the failed provider, with full usage',
    async (path) => {
      const input = path === '/completions' ? { prompt: 'Hi' } : { messages: hello.messages };
      const body = { ...input, model: 'sandbox/hang', stream: true, provider: { only: ['sandbox'] } };
      const text = await (await gateway.call('POST', path, body)).text();
      expect(text).toMatch(/^: GATEWAY PROCESSING\n\n/);
      const events = checkChatStream(text, { form: path === '/completions' ? 'completions' : 'chat' });
      const head = { model: 'sandbox/hang', provider: 'Sandbox' };
      expect(events).toMatchObject([
        { ...head, error: { code: 408 } },
        { ...head, service_tier: null, choices: [], usage: { cost: 0, is_byok: false } },
      ]);
      const answered = await (await gateway.call('POST', path, { ...body, model: 'sandbox/echo' })).text();
      const usageOf = (chunks: JsonObject[]) => Object.keys(chunks.at(-1)?.['usage'] as JsonObject);
      const form = path === '/completions' ? 'completions' : 'chat';
      expect(usageOf(events)).toEqual(usageOf(checkChatStream(answered, { form })));
      expect(Object.keys(events.at(-1) ?? {})).toEqual(Object.keys(checkChatStream(answered, { form }).at(-1) ?? {}));
    },
  );

  test('an assistant prefill is continued', async () => {
    const messages = [...hello.messages, { role: 'assistant', content: 'I was saying' }];
    expect((await post({ ...hello, messages })).status).toBe(200);
  });

  test('legacy functions are answered in their own form, and their messages become tool messages', async () => {
    const functions = [
      { name: 'look_up', parameters: { type: 'object', properties: { q: { type: 'string' } }, required: ['q'] } },
    ];
    const first = await post({ model: 'sandbox/tools', messages: hello.messages, functions });
    const { finish_reason, message } = first.answer.choices[0]!;
    expect(finish_reason).toBe('function_call');
    expect(message).toMatchObject({ function_call: { name: 'look_up', arguments: expect.stringContaining('{') } });
    expect(message).not.toHaveProperty('tool_calls');
    const streamed = await stream({ model: 'sandbox/tools', messages: hello.messages, functions });
    type Piece = { delta: { function_call?: Record<string, string> }; finish_reason: string | null };
    const pieces = streamed.chunks.flatMap(({ choices }) => choices) as unknown as Piece[];
    const calls = pieces.flatMap(({ delta }) => (delta.function_call === undefined ? [] : [delta.function_call]));
    expect(calls[0]?.['name']).toBe('look_up');
    expect(calls.map((piece) => piece['arguments'] ?? '').join('')).toBe(
      (message as { function_call: { arguments: string } }).function_call.arguments,
    );
    expect(pieces.map((piece) => piece.finish_reason).filter(Boolean)).toEqual(['function_call']);
    expect(pieces.every(({ delta }) => !('tool_calls' in delta))).toBe(true);
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

  test('an idle stream gets comments, and an upstream that then fails ends it with an error chunk', async () => {
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

  test('a failure in the middle of a stream is one error chunk, then usage, then [DONE]', async () => {
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

describe('internal extensions are not sent', () => {
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
])('options for %s are sent, except fields that the gateway sets', async (name, slug) => {
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

test('fields that only decoders make are removed from a request', async () => {
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

test('the same operation answers under /v1', async () => {
  const response = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    body: JSON.stringify(hello),
    headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
  });
  expect(response.status).toBe(200);
});

test('a body with excessive nesting causes no internal error, and the process survives', async () => {
  const deep = `${'['.repeat(200_000)}${']'.repeat(200_000)}`;
  const body = `{"model":"sandbox/echo","messages":[{"role":"user","content":"x"}],"extra":${deep}}`;
  const response = await gateway.call('POST', '/chat/completions', body);
  expect(response.status).toBeLessThan(500);
  expect((await post(hello)).status).toBe(200);
});
