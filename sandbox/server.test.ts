import { request as httpRequest } from 'node:http';
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type Sandbox, startSandbox } from './server.ts';
import { countTokens } from './tokens.ts';

let sandbox: Sandbox;
let openai: OpenAI;
let anthropic: Anthropic;

beforeAll(async () => {
  sandbox = await startSandbox();
  openai = new OpenAI({ baseURL: `${sandbox.url}/v1`, apiKey: 'none', maxRetries: 0 });
  anthropic = new Anthropic({ baseURL: sandbox.url, apiKey: 'none', maxRetries: 0 });
});
afterAll(() => sandbox.stop());

const weather = {
  name: 'get_weather',
  description: 'Tells the weather.',
  parameters: {
    type: 'object',
    properties: { city: { type: 'string' }, unit: { enum: ['celsius', 'kelvin'] } },
    required: ['city', 'unit'],
  },
};
const clock = { name: 'get_time', parameters: { type: 'object', properties: { zone: { type: 'string' } } } };
const pixel = 'data:image/png;base64,iVBORw0KGgo=';

type OpenAiRequest = Omit<OpenAI.ChatCompletionCreateParamsNonStreaming, 'stream'>;
const ask = (model: string, content = 'Good morning.'): OpenAiRequest => ({
  model,
  messages: [{ role: 'user', content }],
});
type AnthropicRequest = Omit<Anthropic.MessageCreateParamsNonStreaming, 'stream'>;
const askAnthropic = (model: string, content = 'Good morning.'): AnthropicRequest => ({
  model,
  max_tokens: 4096,
  messages: [{ role: 'user', content }],
});

async function post(path: string, body: unknown, headers: Record<string, string> = {}) {
  const response = await fetch(`${sandbox.url}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'anthropic-version': '2023-06-01', ...headers },
    body: JSON.stringify(body),
  });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

describe('openai-chat', () => {
  test('an answer has text, a finish reason and a usage that adds up', async () => {
    const answer = await openai.chat.completions.create(ask('echo', 'Good morning, world.'));
    expect(answer.choices[0]?.message.content).toBe('Good morning, world.');
    expect(answer.choices[0]?.finish_reason).toBe('stop');
    expect(answer.usage).toMatchObject({
      prompt_tokens: 4 + 4,
      completion_tokens: countTokens('Good morning, world.'),
    });
    expect(answer.usage?.total_tokens).toBe(answer.usage!.prompt_tokens + answer.usage!.completion_tokens);
  });

  test('a history may contain calls of custom tools', async () => {
    const custom = { id: 'a', type: 'custom' as const, custom: { name: 'note', input: 'Hello.' } };
    const messages: OpenAiRequest['messages'] = [
      { role: 'user', content: 'Note it.' },
      { role: 'assistant', content: null, tool_calls: [custom] },
      { role: 'tool', tool_call_id: 'a', content: 'Noted.' },
    ];
    const answer = await openai.chat.completions.create({ model: 'echo', messages });
    expect(answer.usage?.prompt_tokens).toBeGreaterThan(3 * 4 + countTokens(JSON.stringify(custom.custom)));
  });

  test.each(['echo', 'story', 'think', 'json', 'refuse'])(
    'a stream accumulates to the whole answer: %s',
    async (model) => {
      const whole = await openai.chat.completions.create(ask(model));
      const stream = openai.chat.completions.stream({ ...ask(model), stream_options: { include_usage: true } });
      const streamed = await stream.finalChatCompletion();
      expect(streamed.choices[0]?.message).toMatchObject({
        content: whole.choices[0]?.message.content || null,
        refusal: whole.choices[0]?.message.refusal ?? null,
      });
      expect(streamed.choices[0]?.finish_reason).toBe(whole.choices[0]?.finish_reason);
      expect(await stream.totalUsage()).toMatchObject({ total_tokens: whole.usage?.total_tokens });
    },
  );

  test('all tools are called at once with arguments that match their schemas, and their results are answered', async () => {
    const tools = [weather, clock].map((one) => ({ type: 'function' as const, function: one }));
    const request = { ...ask('tools'), tools };
    const streamed = await openai.chat.completions.stream(request).finalChatCompletion();
    const whole = await openai.chat.completions.create(request);
    const message = whole.choices[0]!.message;
    expect(message.tool_calls).toHaveLength(2);
    expect(message.tool_calls?.[0]).toMatchObject({
      function: { name: 'get_weather', arguments: '{"city":"sample city","unit":"celsius"}' },
    });
    expect(
      streamed.choices[0]?.message.tool_calls?.map((call) => 'function' in call && call.function.arguments),
    ).toEqual(message.tool_calls?.map((call) => 'function' in call && call.function.arguments));
    expect(whole.choices[0]?.finish_reason).toBe('tool_calls');
    const results = message.tool_calls!.map((call) => ({
      role: 'tool' as const,
      tool_call_id: call.id,
      content: `for ${call.id}`,
    }));
    const answer = await openai.chat.completions.create({
      ...request,
      messages: [...request.messages, message, ...results],
    });
    expect(answer.choices[0]?.message.content).toBe(
      `The tools answered: ${results.map((one) => one.content).join('; ')}`,
    );
    const one = await openai.chat.completions.create({ ...request, parallel_tool_calls: false });
    expect(one.choices[0]?.message.tool_calls).toHaveLength(1);
  });

  test('a JSON schema is satisfied by every model', async () => {
    const schema = { ...weather.parameters, additionalProperties: false };
    const answer = await openai.chat.completions.parse({
      ...ask('echo'),
      response_format: { type: 'json_schema', json_schema: { name: 'weather', strict: true, schema } },
    });
    expect(answer.choices[0]?.message.parsed).toEqual({ city: 'sample city', unit: 'celsius' });
  });

  test('images are counted, and stop sequences and the output bound are respected', async () => {
    const content = [
      { type: 'image_url' as const, image_url: { url: pixel } },
      { type: 'image_url' as const, image_url: { url: pixel } },
      { type: 'text' as const, text: 'What is this? A cat, or not?' },
    ];
    const seen = await openai.chat.completions.create({ model: 'echo', messages: [{ role: 'user', content }] });
    expect(seen.choices[0]?.message.content).toBe('[2 images] What is this? A cat, or not?');
    const stopped = await openai.chat.completions.create({ ...ask('echo', 'one two three'), stop: ['two'] });
    expect(stopped.choices[0]?.message.content).toBe('one ');
    const bound = await openai.chat.completions.create({ ...ask('story'), max_completion_tokens: 7 });
    expect(bound.choices[0]?.finish_reason).toBe('length');
    expect(bound.usage?.completion_tokens).toBe(7);
    for (const [tokens, finish] of [
      [7, 'stop'],
      [8, 'length'],
    ] as const) {
      const edge = await openai.chat.completions.create({ ...ask(`story;tokens=${tokens}`), max_completion_tokens: 7 });
      expect(edge.choices[0]?.finish_reason).toBe(finish);
    }
  });

  test.each<[number, string, Record<string, unknown>]>([
    [400, 'above maximum value. Expected a value <= 2, but got 3', { temperature: 3 }],
    [400, "Missing required parameter: 'messages'", { messages: undefined }],
    [400, "'tool' must be a response", { messages: [{ role: 'tool', tool_call_id: 'a', content: 'b' }] }],
    [
      400,
      'must be followed by tool messages',
      {
        messages: [
          { role: 'assistant', tool_calls: [{ id: 'a', type: 'function', function: { name: 'b', arguments: '{}' } }] },
          { role: 'user', content: 'c' },
        ],
      },
    ],
    [400, "Invalid 'tools': empty array", { tools: [] }],
    [400, "only allowed when 'tools' are specified", { tool_choice: 'auto' }],
    [400, 'must contain the word', { response_format: { type: 'json_object' } }],
    [400, 'max_tokens is too large', { max_tokens: 1_000_000 }],
    [404, 'does not exist', { model: 'nothing' }],
    [400, "knows no fault 'nonsense'", { sandbox: { nonsense: 1 } }],
  ])('%i: %s', async (status, message, change) => {
    const { status: got, text } = await post('/v1/chat/completions', { ...ask('echo'), ...change });
    expect(got).toBe(status);
    expect(JSON.parse(text).error.message).toContain(message);
  });
});

describe('anthropic-messages', () => {
  test.each(['echo', 'story', 'think', 'json', 'refuse'])(
    'a stream accumulates to the whole answer: %s',
    async (model) => {
      const whole = await anthropic.messages.create(askAnthropic(model));
      const streamed = await anthropic.messages.stream(askAnthropic(model)).finalMessage();
      expect(streamed).toMatchObject({ ...whole, id: expect.stringMatching(/^msg_/) });
    },
  );

  test('thinking is signed, and changed thinking is refused', async () => {
    const request = { ...askAnthropic('echo'), thinking: { type: 'enabled' as const, budget_tokens: 2048 } };
    const whole = await anthropic.messages.create(request);
    expect(whole.content.map((block) => block.type)).toEqual(['thinking', 'text']);
    const streamed = await anthropic.messages.stream(request).finalMessage();
    expect(streamed.content).toEqual(whole.content);
    const [thought, text] = whole.content as [Anthropic.ThinkingBlock, Anthropic.TextBlock];
    const next = (thinking: string) =>
      anthropic.messages.create({
        ...request,
        messages: [
          ...request.messages,
          { role: 'assistant', content: [{ ...thought, thinking }, text] },
          { role: 'user', content: 'Go on.' },
        ],
      });
    await expect(next(thought.thinking)).resolves.toMatchObject({ stop_reason: 'end_turn' });
    await expect(next('another thought')).rejects.toThrow('Invalid `signature`');
  });

  test('parallel tools are called, and their results answered', async () => {
    const tools = [weather, clock].map(({ name, parameters }) => ({
      name,
      input_schema: parameters as Anthropic.Tool.InputSchema,
    }));
    const request = { ...askAnthropic('tools'), tools };
    const whole = await anthropic.messages.create(request);
    const streamed = await anthropic.messages.stream(request).finalMessage();
    expect(streamed.content).toEqual(whole.content);
    expect(whole).toMatchObject({
      stop_reason: 'tool_use',
      content: [{ type: 'tool_use', input: { unit: 'celsius' } }, { name: 'get_time' }],
    });
    const results = whole.content.map((block) => ({
      type: 'tool_result' as const,
      tool_use_id: block.type === 'tool_use' ? block.id : '',
      content: 'warm',
    }));
    const answer = await anthropic.messages.create({
      ...request,
      messages: [
        ...request.messages,
        { role: 'assistant', content: whole.content },
        { role: 'user', content: results },
      ],
    });
    expect(answer.content).toMatchObject([{ type: 'text', text: 'The tools answered: warm; warm' }]);
  });

  test('a marked prefix is written to the cache once and read from then on', async () => {
    const content = [
      {
        type: 'text' as const,
        text: 'A long beginning.',
        cache_control: { type: 'ephemeral' as const, ttl: '1h' as const },
      },
    ];
    const request = { ...askAnthropic('echo'), system: content };
    const first = await anthropic.messages.create(request);
    const second = await anthropic.messages.create(request);
    const tokens = countTokens('A long beginning.');
    expect(first.usage).toMatchObject({
      cache_creation_input_tokens: tokens,
      cache_read_input_tokens: 0,
      cache_creation: { ephemeral_1h_input_tokens: tokens },
    });
    expect(second.usage).toMatchObject({
      cache_creation_input_tokens: 0,
      cache_read_input_tokens: tokens,
      input_tokens: first.usage.input_tokens,
    });
  });

  test.each<[number, string, Record<string, unknown>]>([
    [400, 'max_tokens: Field required', { max_tokens: undefined }],
    [400, 'temperature: range: 0..1', { temperature: 1.5 }],
    [400, 'top_a: Extra inputs are not permitted', { top_a: 0.5 }],
    [
      400,
      'text content blocks must be non-empty',
      { messages: [{ role: 'user', content: [{ type: 'text', text: '' }] }] },
    ],
    [
      400,
      'unexpected `tool_use_id` found',
      { messages: [{ role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a' }] }] },
    ],
    [
      400,
      'without `tool_result` blocks',
      {
        messages: [
          { role: 'user', content: 'a' },
          { role: 'assistant', content: [{ type: 'tool_use', id: 'b', name: 'c', input: {} }] },
          { role: 'user', content: 'd' },
        ],
      },
    ],
    [400, 'first message must use the "user" role', { messages: [{ role: 'assistant', content: 'a' }] }],
    [
      400,
      'cannot end with trailing whitespace',
      {
        messages: [
          { role: 'user', content: 'a' },
          { role: 'assistant', content: 'b ' },
        ],
      },
    ],
    [400, 'must be greater than `thinking.budget_tokens`', { thinking: { type: 'enabled', budget_tokens: 4096 } }],
    [404, 'model: nothing', { model: 'nothing' }],
  ])('%i: %s', async (status, message, change) => {
    const { status: got, text } = await post('/v1/messages', { ...askAnthropic('echo'), ...change });
    expect(got).toBe(status);
    expect(JSON.parse(text)).toMatchObject({ type: 'error', error: { message: expect.stringContaining(message) } });
  });

  test('counts tokens as it bills them, and refuses fields that a count request does not have', async () => {
    const { model, messages } = askAnthropic('echo');
    const { usage } = await anthropic.messages.create(askAnthropic('echo'));
    expect(await anthropic.messages.countTokens({ model, messages })).toEqual({ input_tokens: usage.input_tokens });
    const { status, text } = await post('/v1/messages/count_tokens', askAnthropic('echo'));
    expect([status, text]).toEqual([400, expect.stringContaining('max_tokens: Extra inputs are not permitted')]);
  });
});

describe('faults', () => {
  const path = '/v1/chat/completions';
  const streamed = (model: string) => ({ ...ask(model), stream: true, stream_options: { include_usage: true } });

  test('the model, the body or a header selects a fault', async () => {
    expect((await post(path, ask('fail-503'))).status).toBe(503);
    expect((await post(path, ask('echo;status=418'))).status).toBe(418);
    expect((await post(path, { ...ask('echo'), sandbox: { status: 418 } })).status).toBe(418);
    expect((await post(path, ask('echo'), { 'x-sandbox-status': '418' })).status).toBe(418);
    expect((await post(path, ask('fail-429'))).headers.get('retry-after')).toBe('1');
  });

  test('fail-once fails the first request of a user over all wires, and later ones succeed', async () => {
    expect((await post(path, { ...ask('fail-once'), user: 'one' })).status).toBe(503);
    expect((await post('/v1/messages', { ...askAnthropic('fail-once'), metadata: { user_id: 'one' } })).status).toBe(
      200,
    );
    expect((await post(path, { ...ask('fail-once'), user: 'one' })).status).toBe(200);
    expect((await post(path, { ...ask('fail-once'), user: 'two' })).status).toBe(503);
  });

  test('a selected fault changes the stream as its name says', async () => {
    expect((await post(path, streamed('echo'))).text).toMatch(
      /"usage":\{.*\ndata: \[DONE\]\n\n$|"usage":\{[^\n]*\n\ndata: \[DONE\]\n\n$/,
    );
    expect((await post(path, streamed('no-done'))).text).not.toContain('[DONE]');
    expect((await post(path, streamed('no-usage'))).text).not.toContain('usage":{');
    expect((await post(path, streamed('echo;crlf'))).text).not.toMatch(/[^\r]\n/);
    expect((await post(path, streamed('echo;html'))).text).toContain('<!DOCTYPE html>');
    const every = (await post(path, streamed('echo;usage_every_chunk'))).text;
    expect(every.match(/"usage":\{/g)).toHaveLength(every.match(/"delta"/g)!.length);
    const cut = (await post(path, streamed('truncate'))).text;
    expect(cut.match(/data: /g)).toHaveLength(20);
    expect((await post(path, streamed('fail-late'))).text).toMatch(
      /data: \{"error":\{"message":"Overloaded"[^\n]*\n\n$/,
    );
    const late = (await post('/v1/messages', { ...askAnthropic('fail-late'), stream: true })).text;
    expect(late).toMatch(/event: error\ndata: \{"type":"error","error":\{"type":"overloaded_error"/);
  });

  test('a connection breaks in the middle of a stream or a body', async () => {
    await expect(post(path, streamed('fail-mid-stream'))).rejects.toThrow();
    await expect(post(path, ask('fail-mid-stream'))).rejects.toThrow();
  });

  test('split writes carry the same bytes', async () => {
    const plain = await post(path, streamed('story'));
    const split = await post(path, streamed('story;split_bytes=7'));
    const body = (text: string) => text.replaceAll(/sandbox\d+|story(;split_bytes=7)?|"created":\d+/g, '');
    expect(body(split.text)).toBe(body(plain.text));
  });

  test('an attempt can be queried by the id that its caller sent, with its outcome', async () => {
    await post(path, ask('echo'), { 'x-client-request-id': 'mine' });
    const attempts = (await (await fetch(`${sandbox.url}/sandbox/attempts/mine`)).json()) as { data: unknown[] };
    expect(attempts.data).toMatchObject([
      { client_request_id: 'mine', status: 200, outcome: 'completed', body: { model: 'echo' } },
    ]);
    expect((await fetch(`${sandbox.url}/sandbox/attempts/other`)).status).toBe(404);
  });

  test('a request whose client disconnects is counted as aborted, and its answer is not generated further', async () => {
    const before = sandbox.requests().aborted;
    const leave = new AbortController();
    const response = await fetch(`${sandbox.url}${path}`, {
      method: 'POST',
      body: JSON.stringify(streamed('slow')),
      headers: { 'content-type': 'application/json' },
      signal: leave.signal,
    });
    await response.body!.getReader().read();
    leave.abort();
    await expect.poll(() => sandbox.requests().aborted).toBe(before + 1);
  });

  test('a client that stops reading stops the writes', async () => {
    const sent = sandbox.requests().chunks;
    const slow = await new Promise<import('node:http').IncomingMessage>((resolve) => {
      const request = httpRequest(`${sandbox.url}${path}`, { method: 'POST' }, resolve);
      request.end(JSON.stringify(streamed('story;tokens=300000')));
    });
    slow.pause();
    const seen: number[] = [];
    const standsStill = () => seen.push(sandbox.requests().chunks - sent) > 1 && seen.at(-1) === seen.at(-2);
    await expect.poll(standsStill, { interval: 200 }).toBe(true);
    expect(seen.at(-1)).toBeGreaterThan(0);
    expect(seen.at(-1)).toBeLessThan(200_000);
    slow.destroy();
  });
});

describe('credentials', () => {
  let closed: Sandbox;
  beforeEach(async () => {
    closed = await startSandbox({ api_key: 'right' });
    return () => closed.stop();
  });

  test('a sandbox with a key refuses other keys with the error of each wire', async () => {
    const wrong = new OpenAI({ baseURL: `${closed.url}/v1`, apiKey: 'wrong', maxRetries: 0 });
    await expect(wrong.chat.completions.create(ask('echo'))).rejects.toBeInstanceOf(OpenAI.AuthenticationError);
    const right = new Anthropic({ baseURL: closed.url, apiKey: 'right', maxRetries: 0 });
    await expect(right.messages.create(askAnthropic('echo'))).resolves.toMatchObject({ type: 'message' });
    const other = new Anthropic({ baseURL: closed.url, apiKey: 'wrong', maxRetries: 0 });
    await expect(other.messages.create(askAnthropic('echo'))).rejects.toBeInstanceOf(Anthropic.AuthenticationError);
  });
});
