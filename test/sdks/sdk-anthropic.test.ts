/** Anthropic's SDK as a client of the Messages API, its base URL at the gateway, over every wire. */
import Anthropic from '@anthropic-ai/sdk';
import { betaZodTool } from '@anthropic-ai/sdk/helpers/beta/zod';
import { jsonSchemaOutputFormat } from '@anthropic-ai/sdk/helpers/json-schema';
import { zodOutputFormat } from '@anthropic-ai/sdk/helpers/zod';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { clientWires, modelOf, refuseWarnings, type SdkGateway, startSdkGateway, wireFacts } from './sdk-gateway.ts';

let site: SdkGateway;
let anthropic: Anthropic;

beforeAll(async () => {
  site = await startSdkGateway();
  anthropic = clientOf({ apiKey: site.gateway.key });
});
afterAll(() => site.stop());
refuseWarnings();

/** The SDK adds `/v1/messages` to its base URL. */
function clientOf(options: { apiKey?: string | null; authToken?: string; baseURL?: string }): Anthropic {
  return new Anthropic({ baseURL: `${site.gateway.url}/api`, maxRetries: 0, apiKey: null, ...options });
}

const weather = {
  name: 'get_weather',
  description: 'Tells the weather.',
  input_schema: {
    type: 'object' as const,
    properties: { city: { type: 'string' }, unit: { enum: ['celsius', 'kelvin'] } },
    required: ['city', 'unit'],
  },
};
const clock = {
  name: 'get_time',
  input_schema: { type: 'object' as const, properties: { zone: { type: 'string' } }, required: ['zone'] },
};
const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const image = {
  type: 'image' as const,
  source: { type: 'base64' as const, media_type: 'image/png' as const, data: pixel },
};
const page = Buffer.from('%PDF-1.4\n1 0 obj<</Type/Catalog>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF').toString('base64');
const document = {
  type: 'document' as const,
  source: { type: 'base64' as const, media_type: 'application/pdf' as const, data: page },
};

type Ask = Anthropic.MessageCreateParamsNonStreaming;
const thinking = { type: 'enabled' as const, budget_tokens: 1_024, display: 'summarized' as const };

function textOf(message: { content: readonly { type: string; text?: string }[] }): string {
  return message.content.map((block) => (block.type === 'text' ? block.text : '')).join('');
}

function callsOf(message: Anthropic.Message): Anthropic.ToolUseBlock[] {
  return message.content.filter((block) => block.type === 'tool_use');
}

/** The answer twice: whole, and assembled by the SDK from a stream. */
async function both(ask: Ask): Promise<Anthropic.Message[]> {
  return [await anthropic.messages.create(ask), await anthropic.messages.stream(ask).finalMessage()];
}

/** Without members that differ between two answers. */
function essence({ content, stop_reason, stop_sequence, role, type, model, usage }: Anthropic.Message): unknown {
  const blocks = content.map((block) => ({ ...block, ...(block.type === 'tool_use' ? { id: 'made' } : {}) }));
  const { input_tokens, output_tokens } = usage;
  return { content: blocks, stop_reason, stop_sequence, role, type, model, input_tokens, output_tokens };
}

async function errorOf(act: () => Promise<unknown>): Promise<InstanceType<typeof Anthropic.APIError>> {
  const error = await act().then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(Anthropic.APIError);
  return error as InstanceType<typeof Anthropic.APIError>;
}

describe.each(clientWires('anthropic'))('over %s', (wire) => {
  const ask = (slug: string, content: Anthropic.MessageParam['content'] = 'Good morning, world.'): Ask => ({
    model: modelOf(wire, slug),
    max_tokens: 8_000,
    messages: [{ role: 'user', content }],
  });
  const thinksUnasked = wireFacts.thinks_unasked.has(wire);

  test('a whole answer has text, stop reason and usage', async () => {
    const answer = await anthropic.messages.create(ask('echo'));
    expect(answer).toMatchObject({
      type: 'message',
      role: 'assistant',
      model: modelOf(wire, 'echo'),
      stop_reason: 'end_turn',
      stop_sequence: null,
    });
    expect(textOf(answer)).toBe('Good morning, world.');
    expect(answer.id.length).toBeGreaterThan(4);
    expect(answer._request_id).toBe(answer.id);
    expect(answer.usage.input_tokens).toBeGreaterThan(3);
    expect(answer.usage.output_tokens).toBe(thinksUnasked ? 12 : 4);
  });

  test('a stream has the events of the wire in their order', async () => {
    const events: Anthropic.MessageStreamEvent[] = [];
    for await (const event of await anthropic.messages.create({ ...ask('echo'), stream: true })) events.push(event);
    const order = events.map(({ type }) => type).filter((type, i, all) => type !== all[i - 1]);
    const block = ['content_block_start', 'content_block_delta', 'content_block_stop'];
    expect(order).toEqual([
      'message_start',
      ...block,
      ...(thinksUnasked ? block : []),
      'message_delta',
      'message_stop',
    ]);
    const [start] = events;
    expect(start).toMatchObject({ message: { content: [], stop_reason: null, role: 'assistant' } });
    const delta = events.find((event) => event.type === 'message_delta')!;
    expect(delta.delta.stop_reason).toBe('end_turn');
    expect(delta.usage.output_tokens).toBe(thinksUnasked ? 12 : 4);
  });

  test.each(['echo', 'story', 'json', 'refuse'])(
    "the SDK's accumulator builds the whole answer from a stream: %s",
    async (slug) => {
      const [whole, streamed] = await both(ask(slug));
      expect(essence(streamed!)).toEqual(essence(whole!));
    },
  );

  test('the stream helper emits every event', async () => {
    const seen = new Map<string, number>();
    const note = (name: string) => () => void seen.set(name, (seen.get(name) ?? 0) + 1);
    const stream = anthropic.messages.stream({ ...ask('tools'), tools: [weather, clock], thinking });
    for (const name of [
      'connect',
      'streamEvent',
      'inputJson',
      'thinking',
      'signature',
      'message',
      'contentBlock',
      'finalMessage',
      'end',
    ] as const) {
      stream.on(name, note(name));
    }
    const message = await stream.finalMessage();
    expect(message.stop_reason).toBe('tool_use');
    expect(seen.get('contentBlock')).toBe(message.content.length);
    expect([seen.get('connect'), seen.get('message'), seen.get('finalMessage')]).toEqual([1, 1, 1]);
    expect(seen.get('inputJson')).toBeGreaterThan(1);
    expect(seen.get('thinking')).toBeGreaterThan(0);
    const text = anthropic.messages.stream(ask('story'));
    let streamedText = '';
    text.on('text', (delta) => {
      streamedText += delta;
    });
    expect(await text.finalText()).toBe(streamedText);
  });

  test('offered tools are called in parallel, whole and streamed, with input that matches their schemas', async () => {
    for (const answer of await both({ ...ask('tools'), tools: [weather, clock] })) {
      const calls = callsOf(answer);
      expect(calls.map(({ name, input }) => [name, input])).toEqual([
        ['get_weather', { city: 'sample city', unit: 'celsius' }],
        ['get_time', { zone: expect.any(String) }],
      ]);
      for (const { id } of calls) expect(id).toMatch(/^[a-zA-Z0-9_-]+$/);
      expect(new Set(calls.map(({ id }) => id)).size).toBe(2);
      expect(answer.stop_reason).toBe('tool_use');
    }
  });

  test('the one named tool is called, and none is called if none is allowed', async () => {
    const tools = [weather, clock];
    const named = await anthropic.messages.create({
      ...ask('echo'),
      tools,
      tool_choice: { type: 'tool', name: 'get_time' },
    });
    expect(callsOf(named).map(({ name }) => name)).toEqual(['get_time']);
    const any = await anthropic.messages.create({ ...ask('echo'), tools, tool_choice: { type: 'any' } });
    expect(callsOf(any).length).toBeGreaterThan(0);
    const none = await anthropic.messages.create({ ...ask('tools'), tools, tool_choice: { type: 'none' } });
    expect(callsOf(none)).toEqual([]);
    if (wireFacts.calls_in_parallel_always.has(wire)) return;
    const one = { type: 'auto' as const, disable_parallel_tool_use: true };
    expect(callsOf(await anthropic.messages.create({ ...ask('tools'), tools, tool_choice: one }))).toHaveLength(1);
  });

  test.each([false, true])("the SDK's tool runner runs to its answer (stream: %s)", async (stream) => {
    const cities: string[] = [];
    const runner = anthropic.beta.messages.toolRunner({
      model: modelOf(wire, 'tools'),
      max_tokens: 8_000,
      stream,
      messages: [{ role: 'user', content: 'Good morning, world.' }],
      tools: [
        betaZodTool({
          name: 'get_weather',
          description: 'Tells the weather.',
          inputSchema: z.object({ city: z.string() }),
          run: ({ city }) => {
            cities.push(city);
            return `Rain in ${city}`;
          },
        }),
      ],
    });
    const final = await runner.runUntilDone();
    expect(textOf(final)).toBe('The tools answered: Rain in sample city');
    expect(cities).toEqual(['sample city']);
  });

  test.each([false, true])('a loop with thinking accepts its signed thinking back (stream: %s)', async (stream) => {
    const request: Ask = { ...ask('tools'), tools: [weather, clock], thinking };
    const run = (messages: Anthropic.MessageParam[]) =>
      stream
        ? anthropic.messages.stream({ ...request, messages }).finalMessage()
        : anthropic.messages.create({ ...request, messages });
    const first = await run(request.messages);
    expect(first.content[0]).toMatchObject({ type: 'thinking', thinking: expect.stringContaining('The user says') });
    expect((first.content[0] as Anthropic.ThinkingBlock).signature.length).toBeGreaterThan(0);
    const results = callsOf(first).map(({ id, name }) => ({
      type: 'tool_result' as const,
      tool_use_id: id,
      content: name === 'get_time' ? 'noon' : [{ type: 'text' as const, text: 'Rain' }],
    }));
    const second = await run([
      ...request.messages,
      { role: 'assistant', content: first.content },
      { role: 'user', content: results },
    ]);
    expect(textOf(second)).toBe('The tools answered: Rain; noon');
    expect(second.content[0]!.type).toBe('thinking');
    const third = await run([
      ...request.messages,
      { role: 'assistant', content: first.content },
      { role: 'user', content: results },
      { role: 'assistant', content: second.content },
      { role: 'user', content: 'Call them again.' },
    ]);
    expect(third.stop_reason).toBe('tool_use');
  });

  test('a result that is an error, or has an image, is accepted', async () => {
    const request: Ask = { ...ask('tools'), tools: [weather, clock] };
    const first = await anthropic.messages.create(request);
    const [one, two] = callsOf(first);
    const second = await anthropic.messages.create({
      ...request,
      messages: [
        ...request.messages,
        { role: 'assistant', content: first.content },
        {
          role: 'user',
          content: [
            { type: 'tool_result', tool_use_id: one!.id, content: 'No such city', is_error: true },
            { type: 'tool_result', tool_use_id: two!.id, content: [{ type: 'text', text: 'A picture:' }, image] },
          ],
        },
      ],
    });
    // These wires accept no images in results: the image follows as a user turn, which the sandbox then answers.
    if (wire === 'openai-chat' || wire === 'cohere-chat') {
      expect(second.stop_reason).toBe('tool_use');
      return;
    }
    expect(textOf(second)).toContain('No such city');
    expect(textOf(second)).toContain('A picture:');
  });

  test('images and documents reach the model', async () => {
    const takesFiles = wire !== 'cohere-chat';
    const content = [image, ...(takesFiles ? [document] : []), { type: 'text' as const, text: 'What is this?' }, image];
    const answer = textOf(await anthropic.messages.create(ask('echo', content)));
    expect(answer).toBe(takesFiles ? '[2 images, 1 file] What is this?' : '[2 images] What is this?');
  });

  test('an answer with a schema is parsed, whole and streamed', async () => {
    const wanted = { city: 'sample city', unit: 'celsius' };
    const schema = z.object({ city: z.string(), unit: z.enum(['celsius', 'kelvin']) });
    const request = { ...ask('json'), output_config: { format: zodOutputFormat(schema) } };
    expect((await anthropic.messages.parse(request)).parsed_output).toEqual(wanted);
    expect((await anthropic.messages.stream(request).finalMessage()).parsed_output).toEqual(wanted);
    const format = jsonSchemaOutputFormat({
      type: 'object',
      properties: { city: { type: 'string' }, unit: { type: 'string', enum: ['celsius', 'kelvin'] } },
      required: ['city', 'unit'],
      additionalProperties: false,
    });
    expect((await anthropic.messages.parse({ ...ask('json'), output_config: { format } })).parsed_output).toEqual(
      wanted,
    );
  });

  test('the output limit and stop sequences end an answer, and are reported', async () => {
    for (const answer of await both({ ...ask('story'), max_tokens: 20 })) {
      expect([answer.stop_reason, answer.usage.output_tokens]).toEqual(['max_tokens', 20]);
    }
    if (wireFacts.stops_nowhere.has(wire)) return;
    for (const answer of await both({ ...ask('echo', 'one two three'), stop_sequences: ['two'] })) {
      expect(textOf(answer).trim()).toBe('one');
      // Only this wire reports the stop sequence that ended the answer.
      const expected = wire === 'anthropic-messages' ? ['stop_sequence', 'two'] : ['end_turn', null];
      expect([answer.stop_reason, answer.stop_sequence]).toEqual(expected);
    }
  });

  test('a token count before the call equals that of the call', async () => {
    const request = { ...ask('echo'), system: 'Be brief.', tools: [weather] };
    const { max_tokens: _, ...counted } = request;
    const { input_tokens } = await anthropic.messages.countTokens(counted);
    expect(input_tokens).toBeGreaterThan(0);
    expect((await anthropic.beta.messages.countTokens(counted)).input_tokens).toBe(input_tokens);
    const more = await anthropic.messages.countTokens({ ...counted, system: 'Be brief. '.repeat(50) });
    expect(more.input_tokens).toBeGreaterThan(input_tokens + 90);
  });

  test('an aborted stream ends the upstream request', async () => {
    const before = site.sandbox.requests().aborted;
    const stream = anthropic.messages.stream(ask('slow'));
    stream.on('text', () => stream.abort());
    await expect(stream.finalMessage()).rejects.toBeInstanceOf(Anthropic.APIUserAbortError);
    await expect.poll(() => site.sandbox.requests().aborted).toBe(before + 1);
  });

  test.each(['fail-mid-stream', 'fail-late', 'truncate'])(
    'an answer that breaks off is an error in the SDK: %s',
    async (slug) => {
      const whole = await errorOf(() => anthropic.messages.create(ask(slug)));
      expect(whole.status).toBeGreaterThanOrEqual(500);
      expect(whole.type).toMatch(/^(api_error|overloaded_error|timeout_error)$/);
      const read = async () => {
        for await (const _ of await anthropic.messages.create({ ...ask(slug), stream: true }));
      };
      const streamed = await errorOf(read);
      expect(streamed.type).toMatch(/^(api_error|overloaded_error|timeout_error)$/);
      await errorOf(() => anthropic.messages.stream(ask(slug)).finalMessage());
    },
  );

  test.each<[string, new (...args: never[]) => Error, string]>([
    ['fail-429', Anthropic.RateLimitError, 'rate_limit_error'],
    ['fail-503', Anthropic.InternalServerError, 'overloaded_error'],
  ])("an upstream's failure is an error of its class: %s", async (slug, wanted, type) => {
    for (const act of [
      () => anthropic.messages.create(ask(slug)),
      () => anthropic.messages.create({ ...ask(slug), stream: true }),
      () => anthropic.messages.stream(ask(slug)).finalMessage(),
    ]) {
      const error = await errorOf(act);
      expect(error).toBeInstanceOf(wanted);
      expect(error.type).toBe(type);
      expect(error.requestID).toEqual(expect.any(String));
    }
  });

  test('many streams at once do not mix, and characters of several bytes stay whole', async () => {
    const prompts = Array.from({ length: 24 }, (_, i) => `Stream ${i} ☕👩‍👩‍👧‍👦 žluť ${'雪 '.repeat(i)}`.trim());
    const texts = await Promise.all(
      prompts.map((prompt) => anthropic.messages.stream(ask('echo', prompt)).finalText()),
    );
    expect(texts).toEqual(prompts);
  });
});

const plain: Ask = { model: 'sandbox/echo', max_tokens: 100, messages: [{ role: 'user', content: 'Hello' }] };

test.each<[string, () => Anthropic]>([
  ['an API key', () => clientOf({ apiKey: site.gateway.key })],
  ['a bearer token', () => clientOf({ authToken: site.gateway.key })],
  ['a base URL without a path', () => clientOf({ apiKey: site.gateway.key, baseURL: site.gateway.url })],
])('%s is accepted', async (_name, client) => {
  expect(textOf(await client().messages.create(plain))).toBe('Hello');
  expect(textOf(await client().beta.messages.create({ ...plain, betas: ['interleaved-thinking-2025-05-14'] }))).toBe(
    'Hello',
  );
});

test('models are listed, page by page to the end', async () => {
  const ids: string[] = [];
  for await (const { id } of anthropic.models.list()) ids.push(id);
  expect(ids).toEqual(expect.arrayContaining(['sandbox/echo', 'anthropic-messages/echo']));
  expect(new Set(ids).size).toBe(ids.length);
});

test.each<[string, new (...args: never[]) => Error, string, () => Promise<unknown>]>([
  [
    'a wrong key',
    Anthropic.AuthenticationError,
    'authentication_error',
    () => clientOf({ apiKey: 'sk-gw-v1-wrong' }).messages.create(plain),
  ],
  [
    'a management key',
    Anthropic.PermissionDeniedError,
    'permission_error',
    () => clientOf({ apiKey: site.gateway.management_key }).messages.create(plain),
  ],
  [
    'a temperature out of range',
    Anthropic.BadRequestError,
    'invalid_request_error',
    () => anthropic.messages.create({ ...plain, ...{ temperature: 3 } }),
  ],
  [
    'no messages',
    Anthropic.BadRequestError,
    'invalid_request_error',
    () => anthropic.messages.create({ ...plain, messages: [] }),
  ],
  [
    'an unknown model',
    Anthropic.BadRequestError,
    'invalid_request_error',
    () => anthropic.messages.create({ ...plain, model: 'sandbox/none' }),
  ],
  [
    'a block of an unknown type',
    Anthropic.BadRequestError,
    'invalid_request_error',
    () =>
      anthropic.messages.create({ ...plain, messages: [{ role: 'user', content: [{ type: 'nothing' } as never] }] }),
  ],
])('%s is an error of its class', async (_name, wanted, type, act) => {
  const error = await errorOf(act);
  expect(error).toBeInstanceOf(wanted);
  expect(error.type).toBe(type);
  expect(error.message.length).toBeGreaterThan(10);
  expect(error.requestID).toEqual(expect.any(String));
});
