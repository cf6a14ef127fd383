import OpenAI from 'openai';
import { zodFunction, zodResponseFormat } from 'openai/helpers/zod';
import type { ChatCompletionRunner } from 'openai/lib/ChatCompletionRunner';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import {
  clientWires,
  modelOf,
  openaiOf,
  refuseWarnings,
  type SdkGateway,
  startSdkGateway,
  wireFacts,
  wires,
} from './sdk-gateway.ts';

let served: SdkGateway;
let openai: OpenAI;

beforeAll(async () => {
  served = await startSdkGateway(['echo;split_bytes=1', 'story;tokens=3000', 'echo;fail_times=1']);
  openai = openaiOf(served.gateway);
});
afterAll(() => served.stop());
refuseWarnings();

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

describe.each(clientWires('openai'))('over %s', (wire) => {
  const ask = (
    slug: string,
    content: OpenAI.ChatCompletionUserMessageParam['content'] = 'Good morning, world.',
  ): Ask => ({ model: modelOf(wire, slug), messages: [{ role: 'user', content }] });

  // Four tokens of text each way, and four of the message's frame (sandbox/tokens.ts).
  const written = wireFacts.thinks_unasked.has(wire) ? 12 : 4;
  const counted = { prompt_tokens: 8, completion_tokens: written, total_tokens: 8 + written };

  test('a whole answer has text, a finish reason and a usage that adds up', async () => {
    const { data: answer, response } = await openai.chat.completions.create(ask('echo')).withResponse();
    expect(answer).toMatchObject({
      object: 'chat.completion',
      model: modelOf(wire, 'echo'),
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
    expect(answer.usage).toMatchObject(counted);
  });

  test('a stream reports its usage exactly once, in a last chunk without choices', async () => {
    const chunks: OpenAI.ChatCompletionChunk[] = [];
    for await (const chunk of await openai.chat.completions.create({ ...ask('echo'), stream: true }))
      chunks.push(chunk);
    expect(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? '').join('')).toBe('Good morning, world.');
    expect(new Set(chunks.map((chunk) => `${chunk.id} ${chunk.object} ${chunk.model} ${chunk.created}`)).size).toBe(1);
    expect(chunks.flatMap((chunk) => chunk.choices[0]?.finish_reason ?? [])).toEqual(['stop']);
    expect(chunks.filter((chunk) => chunk.usage)).toEqual([chunks.at(-1)]);
    expect(chunks.at(-1)).toMatchObject({
      choices: [],
      usage: counted,
    });
  });

  test.each(['echo', 'story', 'think', 'refuse'])(
    "the SDK's own accumulator builds the whole answer from a stream: %s",
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

  test('offered tools are called in parallel, streamed and whole, with arguments that match their schemas', async () => {
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

  test('one tool is called if parallel calls are disabled, and the named tool is called', async () => {
    const one = await openai.chat.completions.create({ ...ask('tools'), tools, parallel_tool_calls: false });
    expect(one.choices[0]?.message.tool_calls).toHaveLength(wireFacts.calls_in_parallel_always.has(wire) ? 2 : 1);
    const named = await openai.chat.completions.create({
      ...ask('echo'),
      tools,
      tool_choice: { type: 'function', function: { name: 'get_time' } },
    });
    expect(named.choices[0]?.message.tool_calls).toMatchObject([{ function: { name: 'get_time' } }]);
    const none = await openai.chat.completions.create({ ...ask('tools'), tools, tool_choice: 'none' });
    expect(none.choices[0]?.message.tool_calls).toBeUndefined();
  });

  test.each([false, true])("the SDK's tool runner runs to its answer: streamed %s", async (stream) => {
    const cities: string[] = [];
    const rain = zodFunction({
      name: 'get_weather',
      parameters: z.object({ city: z.string() }),
      function: ({ city }) => {
        cities.push(city);
        return `Rain in ${city}`;
      },
    });
    const noon = zodFunction({ name: 'get_time', parameters: z.object({ zone: z.string() }), function: () => 'Noon' });
    const request = { ...ask('tools'), tools: [rain, noon] };
    const runner = stream
      ? openai.chat.completions.runTools({ ...request, stream: true })
      : openai.chat.completions.runTools(request);
    const seen: string[] = [];
    (runner as ChatCompletionRunner<null>)
      .on('functionToolCall', (call) => seen.push(call.name))
      .on('functionToolCallResult', (result) => seen.push(result));
    expect(await runner.finalContent()).toBe('The tools answered: Rain in sample city; Noon');
    expect(cities).toEqual(['sample city']);
    expect(seen.toSorted()).toEqual(['Noon', 'Rain in sample city', 'get_time', 'get_weather']);
    expect(runner.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'tool', 'assistant']);
    expect((await runner.totalUsage()).completion_tokens).toBeGreaterThan(8);
  });

  test('an answer with a schema parses, whole and streamed', async () => {
    const City = z.object({ city: z.string(), unit: z.enum(['celsius', 'kelvin']) });
    const request = { ...ask('json'), response_format: zodResponseFormat(City, 'weather') };
    const whole = await openai.chat.completions.parse(request);
    expect(whole.choices[0]?.message.parsed).toEqual({ city: 'sample city', unit: 'celsius' });
    const stream = openai.chat.completions.stream(request);
    const parts: unknown[] = [];
    stream.on('content.delta', ({ parsed }) => void parts.push(parsed));
    const streamed = await stream.finalChatCompletion();
    expect(streamed.choices[0]?.message.parsed).toEqual({ city: 'sample city', unit: 'celsius' });
    expect(parts.length).toBeGreaterThan(1);
  });

  test('the events of the streaming helper contain the whole answer', async () => {
    const events: string[] = [];
    const stream = openai.chat.completions
      .stream({ ...ask('tools'), tools, stream_options: { include_usage: true } })
      .on('connect', () => events.push('connect'))
      .on('tool_calls.function.arguments.done', ({ name, index }) => events.push(`${index} ${name}`))
      .on('message', ({ role }) => events.push(role))
      .on('end', () => events.push('end'));
    await stream.done();
    expect(events).toEqual(['connect', '0 get_weather', '1 get_time', 'assistant', 'end']);

    let text = '';
    const story = openai.chat.completions.stream(ask('story')).on('content', (delta, snapshot) => {
      text += delta;
      expect(snapshot).toBe(text);
    });
    expect(await story.finalContent()).toBe(text);
    expect(text.length).toBeGreaterThan(400);
  });

  test('characters of several bytes stay whole, however the upstream splits them', async () => {
    const spoken = 'Grüße 👩‍👩‍👧‍👦 — 日本語 \u2028 العربية "quoted" \\ end';
    const stream = await openai.chat.completions.create({ ...ask('echo;split_bytes=1', spoken), stream: true });
    let spokenText = '';
    for await (const chunk of stream) spokenText += chunk.choices[0]?.delta.content ?? '';
    expect(spokenText).toBe(spoken);
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

  test('the output bound and stop sequences are respected', async () => {
    const bound = await openai.chat.completions.create({ ...ask('story'), max_completion_tokens: 17 });
    expect(bound.choices[0]?.finish_reason).toBe('length');
    expect(bound.usage?.completion_tokens).toBe(17);
    const stopped = await openai.chat.completions.create({ ...ask('echo', 'one two three'), stop: ['two'] });
    expect(stopped.choices[0]?.finish_reason).toBe('stop');
    const textBefore = stopped.choices[0]?.message.content?.trim();
    expect(textBefore).toBe(wireFacts.stops_nowhere.has(wire) ? 'one two three' : 'one');
  });

  test('reasoning is shown beside the answer, and counted in its usage', async () => {
    const reasoning = { effort: 'high', summary: 'auto' };
    const answer = await openai.chat.completions.create({ ...ask('think'), reasoning } as Ask);
    const message = answer.choices[0]!.message as {
      reasoning?: string;
      reasoning_details?: { type: string; text?: string; summary?: string }[];
    };
    expect(message.reasoning).toContain('The user says 4 tokens.');
    const [detail] = message.reasoning_details!;
    expect(detail?.text ?? detail?.summary).toBe(message.reasoning);
    const { reasoning_tokens } = answer.usage!.completion_tokens_details!;
    if (wireFacts.reasoning_uncounted.has(wire)) expect(reasoning_tokens).toBe(0);
    else expect(answer.usage?.completion_tokens).toBe(reasoning_tokens! + 4);
    expect(answer.usage?.completion_tokens).toBeGreaterThan(4);
  });

  test('an aborted stream ends the upstream request', async () => {
    const before = served.sandbox.requests().aborted;
    const stream = await openai.chat.completions.create({ ...ask('slow'), stream: true });
    for await (const chunk of stream) {
      if (chunk.choices[0]?.delta.content) break;
    }
    stream.controller.abort();
    await expect.poll(() => served.sandbox.requests().aborted).toBe(before + 1);
  });

  test.each(['fail-mid-stream', 'fail-late', 'truncate'])(
    'an answer that breaks off is an error in the SDK: %s',
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
])('%s is recovered by the second attempt', async (_name, model, request) => {
  const answer = await openai.chat.completions.create({ ...request, model });
  expect(answer).toMatchObject({ provider: 'Sandbox Anthropic', choices: [{ message: { content: 'Hello' } }] });
});

test('a base URL that ends in /v1 answers alike', async () => {
  const answer = await openaiOf(served.gateway, { baseURL: `${served.gateway.url}/v1` }).chat.completions.create(plain);
  expect(answer.choices[0]?.message.content).toBe('Hello');
});

test('models are listed', async () => {
  const ids: string[] = [];
  for await (const model of openai.models.list()) ids.push(model.id);
  expect(ids).toEqual(expect.arrayContaining(wires.map((wire) => modelOf(wire, 'echo'))));
});

test.each<[string, new (...args: never[]) => Error, () => Promise<unknown>]>([
  [
    'a wrong key',
    OpenAI.AuthenticationError,
    () => openaiOf(served.gateway, { apiKey: 'sk-gw-v1-wrong' }).chat.completions.create(plain),
  ],
  [
    'a management key',
    OpenAI.PermissionDeniedError,
    () => openaiOf(served.gateway, { apiKey: served.gateway.management_key }).chat.completions.create(plain),
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
