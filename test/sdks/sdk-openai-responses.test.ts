/** OpenAI's SDK as a client of the Responses API, over every wire. */
import OpenAI from 'openai';
import { zodResponsesFunction, zodTextFormat } from 'openai/helpers/zod';
import { toResponseInputItems } from 'openai/lib/responses/ResponseInputItems';
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
} from './sdk-gateway.ts';

type Create = Omit<OpenAI.Responses.ResponseCreateParamsNonStreaming, 'stream'>;
type Events = OpenAI.Responses.ResponseStreamEvent[];

let served: SdkGateway;
let openai: OpenAI;
beforeAll(async () => {
  served = await startSdkGateway(['echo;split_bytes=1']);
  openai = openaiOf(served.gateway);
});
afterAll(() => served.stop());
refuseWarnings();

const weather = zodResponsesFunction({
  name: 'get_weather',
  description: 'Tells the weather.',
  parameters: z.object({ city: z.string(), unit: z.enum(['celsius', 'kelvin']) }),
});
const clock = zodResponsesFunction({ name: 'get_time', parameters: z.object({ zone: z.string() }) });
const tools = [weather, clock];
const results: Record<string, string> = { get_weather: 'Rain', get_time: 'Noon' };
const pixel =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

async function all<T>(stream: AsyncIterable<T>): Promise<T[]> {
  const events: T[] = [];
  for await (const event of stream) events.push(event);
  return events;
}

/** The members of two answers to one request that must be equal. */
function essence(response: OpenAI.Responses.Response) {
  return {
    status: response.status,
    incomplete: response.incomplete_details,
    text: response.output_text,
    usage: response.usage && [response.usage.input_tokens, response.usage.output_tokens, response.usage.total_tokens],
    items: response.output.map((item) => {
      if (item.type === 'message') return item.content.map((part) => ('text' in part ? part.text : part.refusal));
      if (item.type === 'function_call') return [item.name, JSON.parse(item.arguments)];
      if (item.type === 'reasoning') return [item.summary, item.content ?? []].flat().map(({ text }) => text);
      return item.type;
    }),
  };
}

/** The order of events: numbers without gaps, items one after the other, each closed before the next. */
function expectInOrder(events: Events): void {
  expect(events.map(({ sequence_number }) => sequence_number)).toEqual(events.map((_, i) => i));
  expect(events.slice(0, 2).map(({ type }) => type)).toEqual(['response.created', 'response.in_progress']);
  const items = events.flatMap((event) =>
    event.type === 'response.output_item.added' || event.type === 'response.output_item.done'
      ? [`${event.output_index} ${event.type.slice('response.output_item.'.length)}`]
      : [],
  );
  expect(items).toEqual(Array.from({ length: items.length / 2 }, (_, i) => [`${i} added`, `${i} done`]).flat());
}

describe.each(clientWires('openai'))('over %s', (wire) => {
  const ask = (slug: string, input: Create['input'] = 'Good morning, world.'): Create => ({
    model: modelOf(wire, slug),
    input,
  });
  const outputTokens = wireFacts.thinks_unasked.has(wire) ? 12 : 4;

  test('a whole answer has text, items and a usage that adds up', async () => {
    const { data, response } = await openai.responses.create(ask('echo')).withResponse();
    expect(data).toMatchObject({
      object: 'response',
      status: 'completed',
      model: modelOf(wire, 'echo'),
      error: null,
      incomplete_details: null,
      output_text: 'Good morning, world.',
      usage: { input_tokens: 8, output_tokens: outputTokens, total_tokens: 8 + outputTokens },
    });
    expect(data.id).toMatch(/^gen-/);
    expect(response.headers.get('x-generation-id')).toBe(data.id);
    expect(data.output.at(-1)).toMatchObject({
      type: 'message',
      role: 'assistant',
      status: 'completed',
      content: [{ type: 'output_text', text: 'Good morning, world.', annotations: [] }],
    });
    expect(Number.isInteger(data.created_at)).toBe(true);
  });

  test.each(['echo', 'story', 'think', 'refuse'])(
    "the SDK's own accumulator builds the whole answer from a stream: %s",
    async (slug) => {
      const whole = await openai.responses.create(ask(slug));
      const stream = openai.responses.stream(ask(slug));
      const events: Events = [];
      let text = '';
      stream.on('event', (event) => void events.push(event as Events[number]));
      stream.on('response.output_text.delta', ({ delta, snapshot }) => {
        text += delta;
        expect(snapshot).toBe(text);
      });
      const streamed = await stream.finalResponse();
      expect(essence(streamed)).toEqual(essence(whole));
      expectInOrder(events);
      expect(text).toBe(whole.output_text);
    },
  );

  test('a refusal is a refusal if the wire has refusals, otherwise text', async () => {
    const { output } = await openai.responses.create(ask('refuse'));
    const message = output.find((item) => item.type === 'message')!;
    const [part] = message.content;
    const shownText = part?.type === 'refusal' ? part.refusal : part?.text;
    expect(shownText).toBe("I'm sorry, but I can't help with that.");
  });

  test('an answer with a schema parses, whole and streamed', async () => {
    const City = z.object({ city: z.string(), unit: z.enum(['celsius', 'kelvin']) });
    const request = { ...ask('json'), text: { format: zodTextFormat(City, 'weather') } };
    const whole = await openai.responses.parse(request);
    expect(whole.output_parsed).toEqual({ city: 'sample city', unit: 'celsius' });
    const streamed = await openai.responses.stream(request).finalResponse();
    expect(streamed.output_parsed).toEqual({ city: 'sample city', unit: 'celsius' });
  });

  test('offered tools are called in parallel, whole and streamed, with arguments that match their schemas', async () => {
    const request = { ...ask('tools'), tools };
    const whole = await openai.responses.parse(request);
    const stream = openai.responses.stream(request);
    const events: Events = [];
    stream.on('event', (event) => void events.push(event as Events[number]));
    const streamed = await stream.finalResponse();
    for (const { output, status } of [whole, streamed]) {
      expect(status).toBe('completed');
      const calls = output.filter((item) => item.type === 'function_call');
      expect(calls.map(({ name, parsed_arguments }) => [name, parsed_arguments])).toEqual([
        ['get_weather', { city: 'sample city', unit: 'celsius' }],
        ['get_time', { zone: 'sample zone' }],
      ]);
      expect(new Set(calls.map(({ call_id }) => call_id)).size).toBe(2);
      expect(new Set(output.map(({ id }) => id)).size).toBe(output.length);
    }
    expectInOrder(events);
  });

  test.each(['as they are', 'as the SDK cleans them'])('a tool loop with items sent back %s', async (how) => {
    const input: OpenAI.Responses.ResponseInputItem[] = [{ role: 'user', content: 'How is it?' }];
    const request = { ...ask('tools', input), tools, reasoning: { effort: 'low' as const } };
    for (const streamed of [false, true]) {
      const { output }: OpenAI.Responses.Response = streamed
        ? await openai.responses.stream(request).finalResponse()
        : await openai.responses.create(request);
      const calls = output.filter((item) => item.type === 'function_call');
      expect(calls).toHaveLength(2);
      const items = how === 'as they are' ? output : toResponseInputItems(output);
      input.push(...(items as OpenAI.Responses.ResponseInputItem[]));
      for (const { call_id, name } of calls) {
        input.push({ type: 'function_call_output', call_id, output: results[name]! });
      }
      const last = await openai.responses.create(request);
      expect(last.output_text).toBe('The tools answered: Rain; Noon');
      input.push(...(last.output as OpenAI.Responses.ResponseInputItem[]), { role: 'user', content: 'And now?' });
    }
  });

  test('one tool is called if parallel calls are disabled, and the named tool is called', async () => {
    const one = await openai.responses.create({ ...ask('tools'), tools, parallel_tool_calls: false });
    const calls = one.output.filter(({ type }) => type === 'function_call');
    expect(calls).toHaveLength(wireFacts.calls_in_parallel_always.has(wire) ? 2 : 1);
    const choice = { type: 'function', name: 'get_time' } as const;
    const named = await openai.responses.create({ ...ask('echo'), tools, tool_choice: choice });
    expect(named.output.filter(({ type }) => type === 'function_call')).toMatchObject([{ name: 'get_time' }]);
    const none = await openai.responses.create({ ...ask('tools'), tools, tool_choice: 'none' });
    expect(none.output.some(({ type }) => type === 'function_call')).toBe(false);
  });

  test('instructions, an older conversation and images reach the model', async () => {
    const response = await openai.responses.create({
      ...ask('echo', [
        { role: 'user', content: 'One' },
        { role: 'assistant', content: 'One' },
        {
          type: 'message',
          role: 'user',
          content: [
            { type: 'input_text', text: 'What is this?' },
            { type: 'input_image', image_url: pixel, detail: 'auto' },
          ],
        },
      ]),
      instructions: 'Be brief.',
    });
    expect(response.output_text).toBe('[1 image] What is this?');
    expect(response.instructions).toBe('Be brief.');
  });

  test('an answer that is cut reports it', async () => {
    const whole = await openai.responses.create({ ...ask('story'), max_output_tokens: 17 });
    const streamed = await openai.responses.stream({ ...ask('story'), max_output_tokens: 17 }).finalResponse();
    for (const answer of [whole, streamed]) {
      expect(answer.status).toBe('incomplete');
      expect(answer.incomplete_details).toEqual({ reason: 'max_output_tokens' });
      expect(answer.usage?.output_tokens).toBe(17);
      expect(answer.output.at(-1)).toMatchObject({ type: 'message', status: 'incomplete' });
    }
  });

  test('reasoning is an item before the answer, and is counted in its usage', async () => {
    const request: Create = {
      ...ask('think'),
      reasoning: { effort: 'high', summary: 'auto' },
      include: ['reasoning.encrypted_content'],
      store: false,
    };
    const whole = await openai.responses.create(request);
    const streamed = await openai.responses.stream(request).finalResponse();
    expect(essence(streamed)).toEqual(essence(whole));
    for (const { output, usage, output_text } of [whole, streamed]) {
      expect(output_text).toBe('Good morning, world.');
      expect(output.map(({ type }) => type)).toEqual(['reasoning', 'message']);
      const [reasoning] = output;
      if (reasoning?.type !== 'reasoning') throw new Error('no reasoning');
      const reasoningText = [...reasoning.summary, ...(reasoning.content ?? [])].map(({ text }) => text).join('');
      expect(reasoningText).toContain('The user says 4 tokens.');
      const { reasoning_tokens } = usage!.output_tokens_details;
      if (wireFacts.reasoning_uncounted.has(wire)) expect(reasoning_tokens).toBe(0);
      else expect(usage?.output_tokens).toBe(reasoning_tokens + 4);
    }
    const input = [...(whole.output as OpenAI.Responses.ResponseInputItem[])];
    const turns = [{ role: 'user' as const, content: 'One' }, ...input, { role: 'user' as const, content: 'Two' }];
    expect((await openai.responses.create({ ...request, input: turns })).output_text).toBe('Two');
  });

  test('characters of several bytes stay whole, however the upstream splits them', async () => {
    const spoken = 'Grüße 👩‍👩‍👧‍👦 — 日本語 \u2028 العربية "quoted" \\ end';
    const stream = openai.responses.stream(ask('echo;split_bytes=1', spoken));
    expect((await stream.finalResponse()).output_text).toBe(spoken);
  });

  test('an aborted stream ends the upstream request', async () => {
    const before = served.sandbox.requests().aborted;
    const stream = await openai.responses.create({ ...ask('slow'), stream: true });
    for await (const event of stream) if (event.type === 'response.output_text.delta') break;
    stream.controller.abort();
    await expect.poll(() => served.sandbox.requests().aborted).toBe(before + 1);
  });

  test.each(['fail-mid-stream', 'fail-late', 'truncate'])(
    'an answer that breaks off is reported as failed: %s',
    async (slug) => {
      await expect(openai.responses.create(ask(slug))).rejects.toBeInstanceOf(OpenAI.InternalServerError);
      const events = await all(await openai.responses.create({ ...ask(slug), stream: true }));
      expectInOrder(events);
      const last = events.at(-1)!;
      if (last.type !== 'response.failed') throw new Error(`it ends with ${last.type}`);
      expect(last.response.status).toBe('failed');
      expect(last.response.error).toMatchObject({ code: 'server_error', message: expect.stringMatching(/.{10}/) });
      const final = await openai.responses.stream(ask(slug)).finalResponse();
      expect(final.status).toBe('failed');
    },
  );

  test.each<[string, new (...args: never[]) => Error, string]>([
    ['fail-429', OpenAI.RateLimitError, 'rate_limit_error'],
    ['fail-503', OpenAI.InternalServerError, 'server_error'],
    ['fail-500-html', OpenAI.InternalServerError, 'server_error'],
  ])("an upstream's failure is an error of its class: %s", async (slug, wanted, type) => {
    for (const stream of [false, true]) {
      const error = await openai.responses
        .create({ ...ask(slug), stream })
        .then(undefined, (thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(wanted);
      expect(error).toMatchObject({ type });
    }
  });
});

const plain: Create = { model: 'openai-chat/echo', input: 'Hello' };

test.each<[string, Create, string]>([
  ['a previous response', { ...plain, previous_response_id: 'resp_123' }, 'previous_response_id'],
  ['storing', { ...plain, store: true }, 'store'],
  ['background execution', { ...plain, background: true }, 'background'],
  ['an item of an unknown type', { ...plain, input: [{ type: 'nonsense' } as never] }, 'input'],
  ['a temperature out of range', { ...plain, temperature: 3 }, 'temperature'],
])('%s is refused with the name of the field', async (_name, request, field) => {
  for (const stream of [false, true]) {
    const error = await openai.responses.create({ ...request, stream } as Create).then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    if (!(error instanceof OpenAI.BadRequestError)) throw new Error(`it is ${error}`);
    expect(error.message).toContain(field);
    expect(error.status).toBe(400);
    expect(error.requestID).toMatch(/^[0-9a-f-]{36}$/);
    expect([error.code, error.type]).toEqual([400, 'invalid_request_error']);
    if (field === 'temperature') expect(error.param).toBe(field);
  }
});

test('a wrong key and an unknown model are errors of their classes', async () => {
  const stranger = openaiOf(served.gateway, { apiKey: 'sk-gw-v1-wrong' });
  await expect(stranger.responses.create(plain)).rejects.toBeInstanceOf(OpenAI.AuthenticationError);
  const unknown = openai.responses.create({ ...plain, model: 'nobody/none' });
  await expect(unknown).rejects.toBeInstanceOf(OpenAI.BadRequestError);
});

test('omitted fields may be null or undefined', async () => {
  const response = await openai.responses.create({
    ...plain,
    instructions: null,
    tools: [],
    metadata: null,
    temperature: null,
    top_p: null,
    max_output_tokens: null,
    parallel_tool_calls: null,
    previous_response_id: null,
    store: null,
    include: null,
    reasoning: null,
    truncation: null,
    service_tier: null,
    background: null,
    stream: null as never,
  });
  expect(response.output_text).toBe('Hello');
});
