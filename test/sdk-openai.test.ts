import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sandboxModels, sandboxProviders } from '../src/sandbox/catalog.ts';
import { type Sandbox, startSandbox } from '../src/sandbox/server.ts';
import { startGateway, type TestGateway } from './harness.ts';

let sandbox: Sandbox;
let gateway: TestGateway;
let openai: OpenAI;

beforeAll(async () => {
  sandbox = await startSandbox();
  const file = { bundled_catalog: false, providers: sandboxProviders(sandbox.url), models: sandboxModels };
  gateway = await startGateway({ yaml: JSON.stringify(file) });
  openai = clientOf(gateway.key);
});
afterAll(async () => {
  await gateway.stop();
  await sandbox.stop();
});

function clientOf(apiKey: string, path = '/api/v1'): OpenAI {
  return new OpenAI({ baseURL: `${gateway.url}${path}`, apiKey, maxRetries: 0 });
}

const weather = {
  name: 'get_weather',
  description: 'Tells the weather.',
  parameters: {
    type: 'object',
    properties: { city: { type: 'string' }, unit: { enum: ['celsius', 'kelvin'] } },
    required: ['city', 'unit'],
    additionalProperties: false,
  },
};
const clock = { name: 'get_time', parameters: { type: 'object', properties: { zone: { type: 'string' } } } };
const tools = [weather, clock].map((one) => ({ type: 'function' as const, function: one }));
const pixel =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

type Ask = Omit<OpenAI.ChatCompletionCreateParamsNonStreaming, 'stream'>;

describe.each([
  ['openai-chat', 'sandbox'],
  ['anthropic-messages', 'sandbox-anthropic'],
])('over %s', (_dialect, provider) => {
  const ask = (
    slug: string,
    content: OpenAI.ChatCompletionUserMessageParam['content'] = 'Good morning, world.',
  ): Ask => {
    const gateway_only = { provider: { only: [provider] } };
    return { model: `sandbox/${slug}`, messages: [{ role: 'user', content }], ...gateway_only };
  };

  test('a whole answer has text, finish reason and a usage that adds up', async () => {
    const { data: answer, response } = await openai.chat.completions.create(ask('echo')).withResponse();
    expect(answer).toMatchObject({
      object: 'chat.completion',
      model: 'sandbox/echo',
      choices: [
        {
          index: 0,
          finish_reason: 'stop',
          message: { role: 'assistant', content: 'Good morning, world.', refusal: null },
        },
      ],
    });
    expect(answer.choices).toHaveLength(1);
    expect(answer.id).toMatch(/^gen-/);
    expect(response.headers.get('x-generation-id')).toBe(answer.id);
    // Four tokens of text each way, and four of the message's frame (src/sandbox/tokens.ts).
    expect(answer.usage).toMatchObject({ prompt_tokens: 8, completion_tokens: 4, total_tokens: 12 });
  });

  test('a stream tells its usage exactly once, in a last chunk without choices', async () => {
    const chunks: OpenAI.ChatCompletionChunk[] = [];
    for await (const chunk of await openai.chat.completions.create({ ...ask('echo'), stream: true }))
      chunks.push(chunk);
    expect(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? '').join('')).toBe('Good morning, world.');
    expect(new Set(chunks.map((chunk) => `${chunk.id} ${chunk.object} ${chunk.model} ${chunk.created}`)).size).toBe(1);
    expect(chunks.flatMap((chunk) => chunk.choices[0]?.finish_reason ?? [])).toEqual(['stop']);
    expect(chunks.filter((chunk) => chunk.usage)).toEqual([chunks.at(-1)]);
    expect(chunks.at(-1)).toMatchObject({
      choices: [],
      usage: { prompt_tokens: 8, completion_tokens: 4, total_tokens: 12 },
    });
  });

  test.each(['echo', 'story', 'think', 'refuse'])(
    "the SDK's own accumulator makes of a stream what the whole answer is: %s",
    async (slug) => {
      const whole = await openai.chat.completions.create(ask(slug));
      const stream = openai.chat.completions.stream(ask(slug));
      const streamed = await stream.finalChatCompletion();
      expect(streamed.choices[0]?.message.content || null).toBe(whole.choices[0]?.message.content || null);
      expect(streamed.choices[0]?.message.refusal ?? null).toBe(whole.choices[0]?.message.refusal);
      expect(streamed.choices[0]?.finish_reason).toBe(whole.choices[0]?.finish_reason);
      expect(await stream.totalUsage()).toMatchObject({ total_tokens: whole.usage!.total_tokens });
    },
  );

  test('tools offered are called in parallel, streamed and whole, with arguments of their schemas', async () => {
    const request = { ...ask('tools'), tools };
    const whole = await openai.chat.completions.create(request);
    const streamed = await openai.chat.completions.stream(request).finalChatCompletion();
    for (const answer of [whole, streamed]) {
      expect(answer.choices[0]?.finish_reason).toBe('tool_calls');
      const message: OpenAI.ChatCompletionMessage = answer.choices[0]!.message;
      const calls = (message.tool_calls ?? []).filter((call) => call.type === 'function');
      expect(calls.map((call) => call.function.name)).toEqual(['get_weather', 'get_time']);
      expect(JSON.parse(calls[0]!.function.arguments)).toEqual({ city: 'sample city', unit: 'celsius' });
      expect(new Set(calls.map((call) => call.id)).size).toBe(2);
    }
  });

  test('one tool is called when parallel calls are not wanted, and the one that is named', async () => {
    const one = await openai.chat.completions.create({ ...ask('tools'), tools, parallel_tool_calls: false });
    expect(one.choices[0]?.message.tool_calls).toHaveLength(1);
    const named = await openai.chat.completions.create({
      ...ask('echo'),
      tools,
      tool_choice: { type: 'function', function: { name: 'get_time' } },
    });
    expect(named.choices[0]?.message.tool_calls).toMatchObject([{ function: { name: 'get_time' } }]);
    const none = await openai.chat.completions.create({ ...ask('tools'), tools, tool_choice: 'none' });
    expect(none.choices[0]?.message.tool_calls).toBeUndefined();
  });

  test("the SDK's tool loop runs to its answer", async () => {
    const asked: string[] = [];
    const runner = openai.chat.completions.runTools({
      ...ask('tools'),
      tools: [
        {
          type: 'function',
          function: {
            ...weather,
            parse: JSON.parse,
            function: ({ city }: { city: string }) => {
              asked.push(city);
              return `Rain in ${city}`;
            },
          },
        },
      ],
    });
    expect(await runner.finalContent()).toBe('The tools answered: Rain in sample city');
    expect(asked).toEqual(['sample city']);
  });

  test('an answer by a JSON schema parses', async () => {
    const response_format = {
      type: 'json_schema' as const,
      json_schema: { name: 'weather', strict: true, schema: weather.parameters },
    };
    const answer = await openai.chat.completions.parse({ ...ask('json'), response_format });
    expect(answer.choices[0]?.message.parsed).toEqual({ city: 'sample city', unit: 'celsius' });
  });

  test('images reach the model', async () => {
    const content = [
      { type: 'text' as const, text: 'What is this?' },
      { type: 'image_url' as const, image_url: { url: pixel } },
      { type: 'image_url' as const, image_url: { url: pixel } },
    ];
    const answer = await openai.chat.completions.create(ask('echo', content));
    expect(answer.choices[0]?.message.content).toBe('[2 images] What is this?');
  });

  test('the output bound and stop sequences are honoured', async () => {
    const bound = await openai.chat.completions.create({ ...ask('story'), max_completion_tokens: 7 });
    expect(bound.choices[0]?.finish_reason).toBe('length');
    expect(bound.usage?.completion_tokens).toBe(7);
    const stopped = await openai.chat.completions.create({ ...ask('echo', 'one two three'), stop: ['two'] });
    expect(stopped.choices[0]).toMatchObject({
      finish_reason: 'stop',
      message: { content: expect.stringMatching(/^one ?$/) },
    });
  });

  test('reasoning is shown beside the answer, and counted in its usage', async () => {
    const answer = await openai.chat.completions.create({ ...ask('think'), reasoning_effort: 'high' });
    const message = answer.choices[0]!.message as {
      reasoning?: string;
      reasoning_details?: { type: string; text: string }[];
    };
    expect(message.reasoning).toContain('The user says 4 tokens.');
    expect(message.reasoning_details?.[0]).toMatchObject({ type: 'reasoning.text', text: message.reasoning });
    expect(answer.usage?.completion_tokens_details?.reasoning_tokens).toBeGreaterThan(0);
    const { reasoning_tokens } = answer.usage!.completion_tokens_details!;
    expect(answer.usage?.completion_tokens).toBe(reasoning_tokens! + 4);
  });

  test('a stream that is aborted ends the work of the upstream', async () => {
    const before = sandbox.requests().aborted;
    const stream = await openai.chat.completions.create({ ...ask('slow'), stream: true });
    for await (const chunk of stream) {
      if (chunk.choices[0]?.delta.content) break;
    }
    stream.controller.abort();
    await expect.poll(() => sandbox.requests().aborted).toBe(before + 1);
  });

  test.each(['fail-mid-stream', 'fail-late', 'truncate'])(
    'an answer that breaks off is no success to the SDK: %s',
    async (slug) => {
      await expect(openai.chat.completions.create(ask(slug))).rejects.toBeInstanceOf(OpenAI.InternalServerError);
      const read = async () => {
        for await (const _ of await openai.chat.completions.create({ ...ask(slug), stream: true }));
      };
      await expect(read()).rejects.toBeInstanceOf(OpenAI.APIError);
    },
  );

  test.each<[string, new (...args: never[]) => Error]>([
    ['fail-429', OpenAI.RateLimitError],
    ['fail-503', OpenAI.InternalServerError],
    ['fail-500-html', OpenAI.InternalServerError],
  ])("an upstream's failure is an error of its class: %s", async (slug, wanted) => {
    await expect(openai.chat.completions.create(ask(slug))).rejects.toBeInstanceOf(wanted);
    await expect(openai.chat.completions.create({ ...ask(slug), stream: true })).rejects.toBeInstanceOf(wanted);
  });
});

const plain: Ask = { model: 'sandbox/echo', messages: [{ role: 'user', content: 'Hello' }] };

test.each<[string, string, Ask]>([
  ['a first endpoint that always fails', 'sandbox/fallback', plain],
  ['a first request that fails', 'sandbox/fail-once', plain],
])('%s is made good by the second', async (_name, model, request) => {
  const answer = await openai.chat.completions.create({ ...request, model });
  expect(answer).toMatchObject({ provider: 'Sandbox Anthropic', choices: [{ message: { content: 'Hello' } }] });
});

test('a base URL that ends in /v1 answers alike', async () => {
  const answer = await clientOf(gateway.key, '/v1').chat.completions.create(plain);
  expect(answer.choices[0]?.message.content).toBe('Hello');
});

test('models are listed', async () => {
  const ids: string[] = [];
  for await (const model of openai.models.list()) ids.push(model.id);
  expect(ids).toEqual(expect.arrayContaining(Object.keys(sandboxModels)));
});

test.each<[string, new (...args: never[]) => Error, () => Promise<unknown>]>([
  ['a wrong key', OpenAI.AuthenticationError, () => clientOf('sk-gw-v1-wrong').chat.completions.create(plain)],
  [
    'a management key',
    OpenAI.PermissionDeniedError,
    () => clientOf(gateway.management_key).chat.completions.create(plain),
  ],
  [
    'a temperature out of range',
    OpenAI.BadRequestError,
    () => openai.chat.completions.create({ ...plain, temperature: 3 }),
  ],
  [
    'an unknown model',
    OpenAI.BadRequestError,
    () => openai.chat.completions.create({ ...plain, model: 'sandbox/none' }),
  ],
  ['no messages', OpenAI.BadRequestError, () => openai.chat.completions.create({ ...plain, messages: [] })],
  ['an unknown path', OpenAI.NotFoundError, () => openai.get('/nothing/here')],
])('%s is an error of its class', async (_name, wanted, act) => {
  const error = await act().then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(wanted);
  expect((error as InstanceType<typeof OpenAI.APIError>).message.length).toBeGreaterThan(10);
});
