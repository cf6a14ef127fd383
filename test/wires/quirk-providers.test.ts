/**
 * The providers that speak OpenAI's chat wire with deviations: for each row of the table the documented request is sent
 * and the documented answer is read, whole and streamed.
 */
import { describe, expect, test } from 'vitest';
import { UpstreamError } from '../../src/providers/dialect.ts';
import { openaiChat } from '../../src/providers/openai-chat/index.ts';
import type { Quirks } from '../../src/providers/quirks.ts';
import { providerRow } from '../../src/providers/table.ts';
import { createFramer } from '../../src/providers/transport/frames.ts';
import { accumulate } from '../../src/schemas/accumulate.ts';
import type { ChatCompletion, ChatRequest } from '../../src/schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../src/schemas/json.ts';

const HELLO: ChatRequest = { messages: [{ role: 'user', content: 'Hello' }] };

/** One provider with its row's quirks, and those of a model on top. */
function provider(slug: string, model: Quirks = {}, upstreamModel = 'model-1') {
  const quirks = { ...providerRow.get(slug)!.quirks, ...model };
  const endpoint = {
    model: `maker/${slug}`,
    provider: slug,
    upstream_model: upstreamModel,
    max_completion_tokens: undefined,
    context_length: undefined,
    input_modalities: ['text', 'image'],
    quirks,
  };
  const encode = (request: ChatRequest) =>
    openaiChat.encodeRequest(request, endpoint, { media: new Map(), strip_state: false });
  const stateOf = (headers?: Record<string, string>) => ({
    generation_id: 'gen-1',
    ...encode(HELLO).state,
    ...(headers === undefined ? {} : { headers }),
  });
  return {
    encode,
    body: (request: ChatRequest) => encode(request).body,
    headers: (credential: string) =>
      openaiChat.authorize(credential, { method: 'POST', url: '', headers: {}, payload: '' }, 0, quirks),
    whole: (body: JsonObject, headers?: Record<string, string>) =>
      accumulate(openaiChat.decodeResponse(body, stateOf(headers)), 0),
    streamed(events: readonly (JsonObject | string)[], headers?: Record<string, string>): ChatCompletion {
      const framer = createFramer('sse');
      const decoder = openaiChat.createStreamDecoder(stateOf(headers));
      const text = events.map((event) => `data: ${typeof event === 'string' ? event : JSON.stringify(event)}\n\n`);
      const chunks = framer.push(new TextEncoder().encode(text.join(''))).flatMap((frame) => decoder.push(frame));
      for (const frame of framer.end()) chunks.push(...decoder.push(frame));
      chunks.push(...decoder.end());
      return accumulate(chunks, 0);
    },
    error: (status: number, body: JsonValue) => openaiChat.decodeError(status, {}, JSON.stringify(body)),
  };
}

const delta = (fields: JsonObject, more: JsonObject = {}): JsonObject => ({
  id: 'a',
  choices: [{ index: 0, delta: fields, ...more }],
});
const message = (fields: JsonObject, more: JsonObject = {}): JsonObject => ({
  id: 'a',
  choices: [{ index: 0, message: { role: 'assistant', ...fields }, finish_reason: 'stop', ...more }],
});
const counts = (promptTokens: number, completionTokens: number): JsonObject => ({
  prompt_tokens: promptTokens,
  completion_tokens: completionTokens,
  total_tokens: promptTokens + completionTokens,
});
const first = ({ choices: [choice] }: ChatCompletion) => choice;
const call = { id: 'call_1', type: 'function' as const, function: { name: 'look', arguments: '{}' } };
const tools: ChatRequest['tools'] = [{ type: 'function', function: { name: 'look' } }];

describe('values that servers refuse and OpenAI accepts', () => {
  test.each([
    ['openai', 4],
    ['groq', 4],
    ['deepseek', 16],
    ['mistral', 100],
    ['vllm', 100],
  ])('%s accepts up to %d stop sequences: the first ones are sent, with a report', (slug, most) => {
    const { encode } = provider(slug);
    const stop = Array.from({ length: 100 }, (_, at) => `end ${at}`);
    const { body, report } = encode({ ...HELLO, stop });
    expect(body['stop']).toEqual(stop.slice(0, most));
    expect(report).toEqual(
      most === 100 ? [] : [{ kind: 'clamped', field: 'stop', reason: `${slug} accepts at most ${most} sequences` }],
    );
  });

  test.each([
    ['mistral', 1.5],
    ['z-ai', 1],
    ['moonshotai', 1],
    ['alibaba', 1.99],
  ])('%s accepts temperatures up to %d', (slug, most) => {
    const { encode } = provider(slug);
    const { body, report } = encode({ ...HELLO, temperature: 2 });
    expect(body['temperature']).toBe(most);
    expect(report).toEqual([expect.objectContaining({ kind: 'clamped', field: 'temperature' })]);
    expect(encode({ ...HELLO, temperature: most })).toMatchObject({ body: { temperature: most }, report: [] });
  });

  test.each<[string, JsonObject]>([
    ['nothing', {}],
    ['an object', { type: 'object' }],
    ['a title', { title: 'Empty', type: 'object', additionalProperties: false }],
  ])('a schema of %s gets properties if it is refused without them, and no other schema does', (_name, parameters) => {
    const sent = (schema: JsonObject, slug = 'openai') =>
      provider(slug).body({ ...HELLO, tools: [{ type: 'function', function: { name: 'f', parameters: schema } }] })[
        'tools'
      ];
    const full = { ...parameters, type: 'object', properties: {} };
    expect(sent(parameters)).toEqual([{ type: 'function', function: { name: 'f', parameters: full } }]);
    expect(sent(parameters, 'lmstudio')).toEqual([{ type: 'function', function: { name: 'f', parameters: full } }]);
    // Others receive what the client wrote.
    expect(sent(parameters, 'groq')).toEqual([{ type: 'function', function: { name: 'f', parameters } }]);
    for (const schema of [
      full,
      { anyOf: [{ type: 'object' }] },
      { $ref: '#/$defs/a', $defs: {} },
      { type: 'string' },
    ]) {
      expect(sent(schema)).toEqual([{ type: 'function', function: { name: 'f', parameters: schema } }]);
    }
  });

  test.each(['groq', 'cerebras', 'z-ai', 'llamacpp'])('%s receives instructions and results as one text', (slug) => {
    const parts = [
      { type: 'text', text: 'One.' },
      { type: 'text', text: 'Two.' },
    ] as const;
    const messages: ChatRequest['messages'] = [
      { role: 'system', content: [...parts] },
      { role: 'user', content: [...parts] },
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'tool', tool_call_id: 'call_1', content: [...parts] },
    ];
    expect(provider(slug).body({ messages, tools })['messages']).toMatchObject([
      { role: 'system', content: 'One.\nTwo.' },
      { role: 'user', content: parts },
      { role: 'assistant' },
      { role: 'tool', content: 'One.\nTwo.' },
    ]);
    expect(provider('openai').body({ messages, tools })['messages']).toMatchObject([
      { content: parts },
      { content: parts },
      {},
      { content: parts },
    ]);
  });
});

describe('Azure', () => {
  test('the key has a header of its own, and the model in the body names the deployment', () => {
    const { encode, headers } = provider('azure');
    expect(headers('k')).toEqual({ 'api-key': 'k' });
    expect(encode({ ...HELLO, max_tokens: 9 })).toMatchObject({
      path: '/chat/completions',
      body: { model: 'model-1', max_completion_tokens: 9 },
    });
  });

  test('the older interface has the deployment in its path and its version in the query', () => {
    const { encode } = provider('azure', {
      path: '/deployments/{model}/chat/completions',
      query: 'api-version=2024-10-21',
    });
    expect(encode(HELLO).path).toBe('/deployments/model-1/chat/completions?api-version=2024-10-21');
  });

  test('findings of its filter about the prompt and the answer are kept, and chunks with nothing else are empty', () => {
    const { streamed, error } = provider('azure');
    const promptFilterResults = [{ prompt_index: 0, content_filter_results: { hate: { filtered: false } } }];
    const late = {
      choices: [{ index: 0, finish_reason: null, content_filter_results: { self_harm: { filtered: false } } }],
      id: '',
    };
    const answer = streamed([
      { choices: [], id: '', model: '', prompt_filter_results: promptFilterResults },
      delta({ role: 'assistant', content: '' }),
      delta({ content: 'Hi' }),
      late,
      delta({}, { finish_reason: 'stop' }),
      { choices: [], usage: counts(3, 1) },
      '[DONE]',
    ]);
    expect(first(answer).message.content).toBe('Hi');
    expect(answer.ext.rest).toMatchObject({
      prompt_filter_results: promptFilterResults,
      content_filter_results: { self_harm: { filtered: false } },
    });
    const refused = {
      error: {
        code: 'content_filter',
        message: 'The response was filtered',
        status: 400,
        innererror: { code: 'ResponsibleAIPolicyViolation' },
      },
    };
    expect(error(400, refused).failure).toBe('content_filter');
    expect(
      error(404, { error: { code: 'DeploymentNotFound', message: 'The API deployment does not exist.' } }).failure,
    ).toBe('not_found');
  });
});

describe('Mistral', () => {
  test('receives its own field names', () => {
    const { body } = provider('mistral');
    const sent = body({
      messages: [
        { role: 'user', content: [{ type: 'file', file: { file_data: 'https://a.example/b.pdf' } }] },
        { role: 'assistant', content: null, tool_calls: [call] },
        { role: 'tool', tool_call_id: 'call_1', content: 'done' },
        { role: 'user', content: 'And?' },
        { role: 'assistant', content: 'Well' },
      ],
      tools,
      tool_choice: 'required',
      seed: 1,
      user: 'me',
      stream: true,
    });
    expect(sent).toMatchObject({ random_seed: 1, tool_choice: 'any' });
    expect(sent).not.toHaveProperty('user');
    expect(sent).not.toHaveProperty('stream_options');
    const [question, called, result, between, and, prefill] = sent['messages'] as JsonObject[];
    expect(question?.['content']).toEqual([{ type: 'document_url', document_url: 'https://a.example/b.pdf' }]);
    const [made] = (called?.['tool_calls'] ?? []) as JsonObject[];
    const id = made?.['id'];
    expect(id).toMatch(/^[A-Za-z0-9]{9}$/);
    expect([result?.['tool_call_id'], between?.['role'], and?.['role'], prefill?.['prefix']]).toEqual([
      id,
      'assistant',
      'user',
      true,
    ]);
  });

  test('a name is part of the text, because only tools may have one', () => {
    const sent = provider('mistral').body({
      messages: [
        { role: 'user', name: 'ann', content: 'Hello' },
        { role: 'assistant', content: null, tool_calls: [call] },
        { role: 'tool', name: 'look', tool_call_id: 'call_1', content: 'done' },
        { role: 'assistant', content: 'Done.' },
        { role: 'user', name: 'ben', content: [{ type: 'text', text: 'And?' }] },
      ],
    });
    expect(sent['messages']).toMatchObject([
      { content: 'ann: Hello' },
      {},
      { name: 'look' },
      {},
      { content: [{ type: 'text', text: 'ben: And?' }] },
    ]);
    expect((sent['messages'] as JsonObject[])[0]).not.toHaveProperty('name');
  });

  test('a name precedes an image as well', () => {
    const imageUrl = { url: 'data:image/png;base64,QUJD' };
    const { messages } = provider('mistral').body({
      messages: [{ role: 'user', name: 'ann', content: [{ type: 'image_url', image_url: imageUrl }] }],
    });
    expect(messages).toMatchObject([{ content: [{ type: 'text', text: 'ann:' }, { type: 'image_url' }] }]);
  });

  test('its reasoning is parts of the content, its model bound is a length, and its errors are flat', () => {
    const { whole, streamed, error } = provider('mistral');
    const content = [
      { type: 'thinking', thinking: [{ type: 'text', text: 'Hm' }] },
      { type: 'text', text: 'Yes' },
    ];
    const usage = { ...counts(4, 2), num_cached_tokens: 3 };
    const body = { ...message({ content }, { finish_reason: 'model_length' }), usage };
    const events = [
      delta({ content: [content[0]!] }),
      delta({ content: 'Yes' }),
      { ...delta({ content: '' }, { finish_reason: 'model_length' }), usage },
      '[DONE]',
    ];
    for (const answer of [whole(body), streamed(events)]) {
      expect(first(answer)).toMatchObject({ message: { content: 'Yes', reasoning: 'Hm' }, finish_reason: 'length' });
      expect(answer.ext.usage).toMatchObject({ in_cache_read: 3, in_uncached: 1 });
    }
    const unknown = {
      object: 'error',
      message: { detail: [{ type: 'extra_forbidden', loc: ['body', 'user'], msg: 'Extra inputs are not permitted' }] },
      type: 'invalid_request_error',
      code: null,
    };
    expect(error(422, unknown).message).toBe('body.user: Extra inputs are not permitted');
  });
});

describe('a forced call of a tool, which upstreams refuse with thinking,', () => {
  const force = { ...HELLO, tools, tool_choice: { type: 'function' as const, function: { name: 'look' } } };
  const disabled = { thinking: { type: 'disabled' } };

  test.each([
    ['deepseek', disabled],
    ['moonshotai', disabled],
    ['alibaba', { enable_thinking: false }],
  ])('disables thinking that was not requested at %s', (slug, off) => {
    const { encode } = provider(slug);
    for (const toolChoice of [force.tool_choice, 'required'] as const) {
      const { body, report } = encode({ ...force, tool_choice: toolChoice });
      expect(body).toMatchObject({ ...off, tool_choice: toolChoice });
      expect(report).toMatchObject([{ kind: 'changed', field: 'reasoning' }]);
    }
    expect(encode({ ...force, reasoning: { enabled: false } })).toMatchObject({
      body: { ...off, ...force },
      report: [],
    });
    const { body, report } = encode({ ...force, reasoning: { enabled: true } });
    expect(body['tool_choice']).toBe('auto');
    expect(report).toMatchObject([{ kind: 'clamped', field: 'tool_choice' }]);
    for (const free of [{ ...force, tool_choice: 'auto' as const }, HELLO]) {
      expect(Object.keys(encode(free).body)).not.toContain(Object.keys(off)[0]);
    }
  });

  test('is unchanged for models that always think', () => {
    const body = provider('moonshotai', {}, 'kimi-k2-thinking').body(force);
    expect(body['tool_choice']).toBe('auto');
    expect(body).not.toHaveProperty('thinking');
  });
});

test('whole answers of Alibaba’s open models that think only in streams have no thinking', () => {
  const { encode } = provider('alibaba', {}, 'qwen3-8b');
  for (const reasoning of [undefined, { max_tokens: 500 }]) {
    const { body, report } = encode({ ...HELLO, ...(reasoning && { reasoning }) });
    expect(body).toMatchObject({ enable_thinking: false });
    expect(body).not.toHaveProperty('thinking_budget');
    expect(report).toMatchObject([{ kind: 'changed', field: 'reasoning' }]);
  }
  expect(encode({ ...HELLO, stream: true }).body).not.toHaveProperty('enable_thinking');
  expect(provider('alibaba', {}, 'qwen3.5-27b').body(HELLO)).not.toHaveProperty('enable_thinking');
});

describe('DeepSeek', () => {
  const thinks = { replay_reasoning: 'reasoning_content' } as const;
  const looked = (reasoning?: string): ChatRequest => ({
    messages: [
      { role: 'user', content: 'Look.' },
      { role: 'assistant', content: null, tool_calls: [call], ...(reasoning === undefined ? {} : { reasoning }) },
      { role: 'tool', tool_call_id: 'call_1', content: 'done' },
    ],
    tools,
    reasoning: { effort: 'high' },
  });

  test('receives whether to think and how hard, and the reasoning of earlier calls', () => {
    const sent = provider('deepseek', thinks).body(looked('I must look.'));
    expect(sent).toMatchObject({ thinking: { type: 'enabled' }, reasoning_effort: 'high' });
    expect(sent['messages']).toMatchObject([{}, { reasoning_content: 'I must look.' }, {}]);
  });

  test('if a client lost that reasoning, the request is sent without thinking, because it would be refused', () => {
    const { body, report } = provider('deepseek', thinks).encode(looked());
    expect(body).toMatchObject({ thinking: { type: 'disabled' } });
    expect(body).not.toHaveProperty('reasoning_effort');
    expect(report).toContainEqual({
      kind: 'changed',
      field: 'reasoning',
      reason: 'thinking disabled: the reasoning of former tool calls is missing',
    });
    // A model that does not think needs no reasoning back.
    expect(provider('deepseek').body({ ...looked(), reasoning: null })).not.toHaveProperty('thinking');
  });

  test('a trailing assistant message is a prefix', () => {
    const sent = provider('deepseek').body({ messages: [...HELLO.messages, { role: 'assistant', content: '{' }] });
    expect(sent['messages']).toMatchObject([{}, { prefix: true }]);
  });

  test('its cache is counted by hits, and a miss is no write', () => {
    const usage = {
      ...counts(10, 5),
      prompt_cache_hit_tokens: 8,
      prompt_cache_miss_tokens: 2,
      completion_tokens_details: { reasoning_tokens: 3 },
    };
    const { whole, streamed } = provider('deepseek');
    const expected = { in_cache_read: 8, in_uncached: 2, out_reasoning: 3, out_text: 2 };
    const body = { ...message({ content: 'Hi', reasoning_content: 'Hm' }), usage };
    const events = [
      delta({ reasoning_content: 'Hm', content: null }),
      delta({ content: 'Hi', reasoning_content: null }),
      { ...delta({ content: '' }, { finish_reason: 'stop' }), usage },
      '[DONE]',
    ];
    for (const answer of [whole(body), streamed(events)]) {
      expect(answer.ext.usage).toEqual(expected);
      expect(first(answer).message).toMatchObject({ content: 'Hi', reasoning: 'Hm' });
    }
  });
});

test('Moonshot: a marker replaces lost reasoning, because some of its models always think', () => {
  const { body } = provider('moonshotai', { replay_reasoning: 'reasoning_content' });
  const sent = body({
    messages: [
      { role: 'user', content: 'Look.' },
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'tool', tool_call_id: 'call_1', content: 'done' },
    ],
    tools,
  });
  expect(sent['messages']).toMatchObject([{}, { reasoning_content: '.' }, {}]);
});

describe('Groq', () => {
  test('a wrong tool call is the model’s fault, so that another endpoint is tried', () => {
    const { error, streamed } = provider('groq');
    const failed = {
      error: {
        message: 'Failed to call a function.',
        type: 'invalid_request_error',
        code: 'tool_use_failed',
        failed_generation: '<function',
      },
    };
    expect(error(400, failed)).toMatchObject({
      failure: 'invalid_response',
      raw: expect.stringContaining('failed_generation'),
    });
    expect(() => streamed([delta({ content: 'I' }), { error: { ...failed.error, status_code: 400 } }])).toThrow(
      UpstreamError,
    );
  });

  test('usage is in a field of its own, the tier has another name, and reasoning is tagged', () => {
    const xGroq = { id: 'req_1', usage: counts(7, 3) };
    const answer = provider('groq').streamed([
      delta({ role: 'assistant', content: '' }),
      delta({ content: '<thi' }),
      delta({ content: 'nk>Hm</think>Hi' }),
      { ...delta({}, { finish_reason: 'stop' }), x_groq: xGroq, service_tier: 'on_demand' },
      '[DONE]',
    ]);
    expect(first(answer).message).toMatchObject({ content: 'Hi', reasoning: 'Hm' });
    expect(answer).toMatchObject({ service_tier: 'default', ext: { usage: { in_uncached: 7, out_text: 3 } } });
  });

  test('a format excludes streams, a schema excludes tools', () => {
    const { body, encode } = provider('groq');
    const responseFormat = { type: 'json_schema', json_schema: { name: 'a', schema: { type: 'object' } } } as const;
    const whole = encode({ ...HELLO, response_format: responseFormat, stream: true });
    expect(whole).toMatchObject({
      body: { stream: false, response_format: responseFormat },
      headers: { accept: 'application/json' },
    });
    expect(whole.body).not.toHaveProperty('stream_options');
    for (const stream of [true, false]) {
      const { body: sent, report } = encode({ ...HELLO, response_format: responseFormat, tools, stream });
      expect(sent).toMatchObject({ stream, tools });
      expect(sent).not.toHaveProperty('response_format');
      expect(report.map(({ field }) => field)).toEqual(['response_format']);
    }
    expect(body({ ...HELLO, stream: true })).toMatchObject({ stream: true });
  });

  test('fields that it answers with a 400 are not sent', () => {
    const sent = provider('groq').body({ ...HELLO, logprobs: true, logit_bias: { 1: 1 }, max_tokens: 5 });
    expect(sent).toEqual({ model: 'model-1', messages: HELLO.messages, max_completion_tokens: 5 });
  });
});

describe('xAI', () => {
  test('reasoning is counted beside the completion, and included in the total', () => {
    const usage = {
      prompt_tokens: 10,
      completion_tokens: 4,
      total_tokens: 34,
      completion_tokens_details: { reasoning_tokens: 20 },
    };
    const { whole, streamed } = provider('xai');
    const body = { ...message({ content: 'Hi', reasoning_content: 'Hm' }), usage, citations: ['https://a.example/'] };
    const events = [
      delta({ reasoning_content: 'Hm' }),
      delta({ content: 'Hi' }, { finish_reason: 'stop' }),
      { choices: [], usage, citations: ['https://a.example/'] },
      '[DONE]',
    ];
    for (const answer of [whole(body), streamed(events)]) {
      expect(answer.ext.usage).toEqual({ in_uncached: 10, out_text: 4, out_reasoning: 20 });
      expect(first(answer).message.annotations).toMatchObject([{ url_citation: { url: 'https://a.example/' } }]);
    }
  });

  test('content that breaks its rules is a 403, which does not count against the key', () => {
    const { error } = provider('xai');
    expect(error(403, { code: 'forbidden', error: 'Content violates usage guidelines.' }).failure).toBe(
      'content_filter',
    );
    expect(
      error(400, { code: 'Client specified an invalid argument', error: 'Incorrect API key provided: xa***' }).failure,
    ).toBe('credential');
  });
});

describe('Together', () => {
  test('logprobs are requested by their number', () => {
    const { body } = provider('together');
    expect(body({ ...HELLO, logprobs: true, top_logprobs: 3 })).toMatchObject({ logprobs: 3 });
    expect(body({ ...HELLO, logprobs: true })).toEqual({ model: 'model-1', messages: HELLO.messages, logprobs: 1 });
    expect(body({ ...HELLO, logprobs: false })).not.toHaveProperty('logprobs');
  });

  test('logprobs are returned in the lists of the older API, and the end reason has its own name', () => {
    const logprobs = { tokens: ['Hi'], token_ids: [1], token_logprobs: [-0.5], top_logprobs: [{ Hi: -0.5, Ho: -1 }] };
    const { whole, streamed } = provider('together');
    const body = { ...message({ content: 'Hi' }, { finish_reason: 'eos', logprobs }), usage: counts(2, 1) };
    const events = [
      delta({ content: 'Hi' }, { logprobs }),
      { ...delta({ content: '' }, { finish_reason: 'eos' }), usage: counts(2, 1) },
      '[DONE]',
    ];
    const alternatives = [
      { token: 'Hi', logprob: -0.5, bytes: null },
      { token: 'Ho', logprob: -1, bytes: null },
    ];
    for (const answer of [whole(body), streamed(events)]) {
      expect(first(answer)).toMatchObject({
        finish_reason: 'stop',
        native_finish_reason: 'eos',
        logprobs: { content: [{ token: 'Hi', logprob: -0.5, bytes: null, top_logprobs: alternatives }] },
      });
    }
  });
});

test('Fireworks: cached tokens are in a header', () => {
  const { whole, streamed } = provider('fireworks');
  const headers = { 'fireworks-cached-prompt-tokens': '6' };
  const body = { ...message({ content: '<think>Hm</think>Hi' }), usage: counts(8, 1) };
  const events = [
    delta({ content: '<think>Hm</think>Hi' }),
    { ...delta({}, { finish_reason: 'stop' }), usage: counts(8, 1) },
    '[DONE]',
  ];
  for (const answer of [whole(body, headers), streamed(events, headers)]) {
    expect(answer.ext.usage).toEqual({ in_cache_read: 6, in_uncached: 2, out_text: 1 });
    expect(first(answer).message).toMatchObject({ content: 'Hi', reasoning: 'Hm' });
  }
});

describe('Perplexity', () => {
  test('turns alternate: adjacent ones of one role are merged, and late instructions become the user’s', () => {
    const { body, report } = provider('perplexity').encode({
      messages: [
        { role: 'system', content: 'One.' },
        { role: 'developer', content: 'Two.' },
        { role: 'user', content: 'Hello' },
        { role: 'user', content: [{ type: 'text', text: 'World' }] },
        { role: 'assistant', content: 'Hi.' },
        { role: 'assistant', content: 'Ho.' },
        { role: 'user', content: 'A' },
        { role: 'system', content: 'B' },
      ],
    });
    const parts = [
      { type: 'text', text: 'Hello' },
      { type: 'text', text: 'World' },
    ];
    expect(body['messages']).toEqual([
      { role: 'system', content: 'One.' },
      { role: 'system', content: 'Two.' },
      { role: 'user', content: parts },
      { role: 'assistant', content: 'Hi.\n\nHo.' },
      { role: 'user', content: 'A\n\nB' },
    ]);
    expect(report.map(({ field }) => field)).toEqual(['messages']);
  });

  test('sources are annotations, searches are counted, and research is billed in addition to the answer', () => {
    const searchResults = [{ title: 'A', url: 'https://a.example/', date: null }];
    const usage = { ...counts(33, 7_163), citation_tokens: 20_016, num_search_queries: 21, reasoning_tokens: 95_305 };
    const { whole, streamed } = provider('perplexity');
    const sources = { citations: ['https://a.example/'], search_results: searchResults };
    const body = { ...message({ content: 'Hi' }), usage, ...sources };
    // Each chunk repeats the whole message so far.
    const chunk = (text: string, wholeText: string, finishReason: string | null) => ({
      choices: [
        {
          index: 0,
          delta: { content: text },
          message: { role: 'assistant', content: wholeText },
          finish_reason: finishReason,
        },
      ],
      usage,
      ...sources,
    });
    for (const answer of [whole(body), streamed([chunk('H', 'H', null), chunk('i', 'Hi', 'stop')])]) {
      expect(first(answer).message).toMatchObject({
        content: 'Hi',
        annotations: [{ type: 'url_citation', url_citation: { url: 'https://a.example/', title: 'A' } }],
      });
      expect(answer.ext.usage).toEqual({
        in_uncached: 33 + 20_016,
        out_text: 7_163,
        out_reasoning: 95_305,
        counts: { web_search: 21 },
      });
    }
  });
});

describe('Cloudflare', () => {
  const { streamed, whole } = provider('cloudflare');

  test('a token that looks like a number or a boolean is text, also zero and false, and also in reasoning', () => {
    const { message } = first(
      streamed([
        delta({ role: 'assistant', content: '' }),
        delta({ reasoning_content: 'Of ' }),
        delta({ reasoning_content: 2 }),
        delta({ content: 'See [' }),
        delta({ content: 1 }),
        delta({ content: ']: $' }),
        delta({ content: 0 }),
        delta({ content: 0.5 }),
        delta({ content: ' or ' }),
        delta({ content: false }),
        delta({ content: null }, { finish_reason: 'stop' }),
        '[DONE]',
      ]),
    );
    expect([message.content, message.reasoning]).toEqual(['See [1]: $00.5 or false', 'Of 2']);
  });

  test('JSON for a schema arrives parsed, and is passed on as text', () => {
    const content = { city: 'Brno', rivers: ['Svratka', 'Svitava'], height: 0 };
    expect(JSON.parse(first(whole(message({ content }))).message.content as string)).toEqual(content);
    expect(first(whole(message({ content: 42 }))).message.content).toBe('42');
  });
});

describe('a server of the operator', () => {
  test('receives no effort that Ollama, SGLang and older versions of vLLM refuse', () => {
    const effort = (slug: string, reasoning: ChatRequest['reasoning']) =>
      provider(slug).body({ ...HELLO, reasoning })['reasoning_effort'];
    for (const slug of ['ollama', 'vllm', 'sglang', 'lmstudio', 'llamacpp']) {
      expect(effort(slug, { effort: 'xhigh' })).toBe('high');
      // Not `none`, because a request for little thinking is one for some.
      expect(effort(slug, { effort: 'minimal' })).toBe('low');
      expect(effort(slug, { enabled: false })).toBe('none');
    }
  });

  const local = ['ollama', 'vllm', 'sglang', 'lmstudio', 'llamacpp'];

  test.each(local)(
    '%s: reasoning is in the field or in tags, arguments may be an object, ids may be missing',
    (slug) => {
      const { whole, streamed } = provider(slug);
      const bare = { function: { name: 'look', arguments: { at: 'sky' } } };
      for (const thought of [{ reasoning_content: 'Hm' }, { reasoning: 'Hm' }, { content: '<think>Hm</think>' }]) {
        const body = { ...message({ content: '', ...thought, tool_calls: [bare] }), usage: counts(3, 2) };
        const events = [
          delta({ ...thought }),
          delta({ tool_calls: [bare] }),
          delta({}, { finish_reason: 'stop' }),
          { choices: [], usage: counts(3, 2) },
          '[DONE]',
        ];
        for (const answer of [whole(body), streamed(events)]) {
          expect(first(answer)).toMatchObject({ finish_reason: 'tool_calls', message: { reasoning: 'Hm' } });
          expect(first(answer).message.tool_calls).toMatchObject([
            { id: expect.stringMatching(/^call_\w{24}$/), function: { name: 'look', arguments: '{"at":"sky"}' } },
          ]);
        }
      }
    },
  );

  test.each(local)('%s: the newest names of OpenAI are not used', (slug) => {
    const sent = provider(slug).body({
      messages: [{ role: 'developer', content: 'Be brief.' }, ...HELLO.messages],
      max_completion_tokens: 5,
    });
    expect(sent).toMatchObject({ max_tokens: 5, messages: [{ role: 'system' }, {}] });
    expect(provider(slug).headers('k')).toEqual({ authorization: 'Bearer k' });
  });

  test.each(['ollama', 'lmstudio'])('%s: images are sent as data', (slug) => {
    const image = {
      role: 'user' as const,
      content: [{ type: 'image_url' as const, image_url: { url: 'https://a.example/b.png' } }],
    };
    const endpoint = {
      model: 'a/b',
      provider: slug,
      upstream_model: 'b',
      max_completion_tokens: undefined,
      context_length: undefined,
      input_modalities: [],
      quirks: providerRow.get(slug)!.quirks,
    };
    expect(openaiChat.requiredMedia({ messages: [image] }, endpoint)).toEqual([
      { url: 'https://a.example/b.png', kind: 'image' },
    ]);
  });

  test.each(['vllm', 'sglang'])('%s: a trailing assistant message is continued', (slug) => {
    const { body } = provider(slug);
    const messages = [...HELLO.messages, { role: 'assistant' as const, content: 'Well' }];
    expect(body({ messages })).toMatchObject({ continue_final_message: true, add_generation_prompt: false });
    expect(body(HELLO)).not.toHaveProperty('continue_final_message');
  });

  test('the matched stop sequence is reported by vLLM and SGLang, each in its field', () => {
    const stops = [{ stop_reason: 'END' }, { matched_stop: 'END' }];
    for (const stop of stops) {
      expect(
        provider('vllm').whole({ ...message({ content: 'Hi' }, stop), usage: counts(1, 1) }).ext.stopSequence,
      ).toBe('END');
    }
  });

  test('an error within a stream is an error, as Ollama and llama.cpp send it', () => {
    expect(() => provider('ollama').streamed([delta({ content: 'H' }), { error: 'an error was encountered' }])).toThrow(
      'an error was encountered',
    );
    const llama = { error: { code: 500, message: 'context shift is disabled', type: 'server_error' } };
    expect(() => provider('llamacpp').streamed([delta({ content: 'H' }), llama])).toThrow('context shift is disabled');
  });
});
