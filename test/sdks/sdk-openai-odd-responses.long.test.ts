/** Unusual uses of OpenAI's SDK at the Responses API: its tool runner, odd fields, many concurrent requests. */
import OpenAI from 'openai';
import { ResponsesToolRunner, runnerFunction } from 'openai/helpers/responses-tool-runner';
import { zodResponsesFunction, zodTextFormat } from 'openai/helpers/zod';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import {
  checkedFetch,
  clientWires,
  modelOf,
  openaiOf,
  refuseWarnings,
  type SdkGateway,
  startSdkGateway,
  wireFacts,
} from './sdk-gateway.ts';

let served: SdkGateway;
let openai: OpenAI;
beforeAll(async () => {
  served = await startSdkGateway(['story;tokens=3000', 'echo;status=429;retry_after=1;fail_times=1']);
  openai = openaiOf(served.gateway);
});
afterAll(() => served.stop());
refuseWarnings();

type Ask = Omit<OpenAI.Responses.ResponseCreateParamsNonStreaming, 'stream'>;
type Item = OpenAI.Responses.ResponseInputItem;
const pixel =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const pdf = 'data:application/pdf;base64,JVBERi0xLjQK';
const clock = { type: 'function' as const, name: 'get_time', parameters: {}, strict: false };
const called: Item = { type: 'function_call', call_id: 'call_1', name: 'get_time', arguments: '{}' };
const user = (content: string): Item => ({ role: 'user', content });

describe.each(clientWires('openai'))('over %s', (wire) => {
  const ask = (slug: string, more: Partial<Ask> = {}): Ask => ({
    model: modelOf(wire, slug),
    input: 'Hello',
    ...more,
  });
  const outputText = async (request: Ask) => {
    const whole = await openai.responses.create(request);
    const streamed = await openai.responses.stream(request).finalResponse();
    expect(streamed.output_text).toBe(whole.output_text);
    expect(streamed.status).toBe('completed');
    return whole.output_text;
  };

  test.each([
    ['whole', {}],
    ['streamed', { stream: true }],
    ['streamed, with tool calls that begin before its end', { stream: true, eager: true }],
  ])("the SDK's tool runner runs to its answer: %s", async (_name, options) => {
    const cities: string[] = [];
    const rain = zodResponsesFunction({
      name: 'get_weather',
      parameters: z.object({ city: z.string() }),
      function: ({ city }) => {
        cities.push(city);
        return `Rain in ${city}`;
      },
    });
    const noon = zodResponsesFunction({
      name: 'get_time',
      parameters: z.object({ zone: z.string() }),
      function: () => 'Noon',
    });
    const runner = new ResponsesToolRunner({ functions: [runnerFunction(rain), runnerFunction(noon)] });
    const request = ask('tools', { reasoning: { effort: 'low' }, store: false });
    const { output_text, status } = await runner.run(openai, request, options);
    expect([output_text, status]).toEqual(['The tools answered: Rain in sample city; Noon', 'completed']);
    expect(cities).toEqual(['sample city']);
  });

  test.each<[string, Partial<Ask>]>([
    ['no tools', { tools: [] }],
    ['no tools, with a tool choice', { tools: [], tool_choice: 'auto' }],
    ['parallel calls without tools', { parallel_tool_calls: false }],
    ['stream options', { stream_options: { include_obfuscation: false } }],
    ['undefined fields', { store: undefined, temperature: undefined, previous_response_id: undefined } as never],
    ['storage options', { store: false, background: false, prompt_cache_key: 'c', service_tier: 'auto' }],
    ['user and metadata', { user: 'somebody', metadata: { team: 'a' }, safety_identifier: 'b' }],
    ['plain text as the format', { text: { format: { type: 'text' } } }],
    ['a verbosity', { text: { verbosity: 'low' } }],
    ['reasoning without an effort', { reasoning: { effort: null, summary: null } }],
    ['a truncation', { truncation: 'auto' }],
    ['included fields', { include: ['reasoning.encrypted_content', 'message.input_image.image_url'] }],
    [
      'system and developer instructions',
      { instructions: 'Be brief.', input: [{ role: 'developer', content: 'No.' }, user('Hello')] },
    ],
    ['text in parts', { input: [{ role: 'user', content: [{ type: 'input_text', text: 'Hello' }] }] }],
    ['a tool that is not called', { tools: [{ ...clock, parameters: null }] }],
  ])('is ignored or understood: %s', async (_name, more) => {
    expect(await outputText(ask('echo', more))).toBe('Hello');
  });

  test('a message of the assistant is accepted in each form of the SDK', async () => {
    const part = { type: 'output_text' as const, text: 'Hi', annotations: [] };
    const message = { type: 'message' as const, role: 'assistant' as const, status: 'completed' as const };
    const forms: Item[] = [
      { role: 'assistant', content: 'Hi' },
      { ...message, id: 'msg_1', content: [part] },
      { ...message, id: 'msg_2', content: [{ type: 'refusal', refusal: 'No.' }] },
    ];
    for (const form of forms)
      expect(await outputText(ask('echo', { input: [user('One'), form, user('Two')] }))).toBe('Two');
  });

  test('results of calls are understood as text, in parts, and without a call', async () => {
    const result = (output: string | OpenAI.Responses.ResponseFunctionCallOutputItemList): Item => ({
      type: 'function_call_output',
      call_id: 'call_1',
      output,
    });
    const turns = (...items: Item[]) => ask('echo', { tools: [clock], input: [user('When?'), ...items] });
    const answered = 'The tools answered: Noon';
    expect(await outputText(turns(called, result('Noon')))).toBe(answered);
    expect(await outputText(turns(called, result([{ type: 'input_text', text: 'Noon' }])))).toBe(answered);
    expect(await outputText(turns({ ...called, arguments: '' } as Item, result('Noon')))).toBe(answered);
    expect(await outputText(turns({ ...called, id: 'fc_1', status: 'completed' } as Item, result('Noon')))).toBe(
      answered,
    );
    const alone = outputText(turns(result('Noon')));
    // A client of the provider's own API learns more from the provider's refusal than from a repair.
    if (wire === 'openai-responses') await expect(alone).rejects.toBeInstanceOf(OpenAI.BadRequestError);
    else expect(await alone).toContain('Noon');
    const pictured = result([
      { type: 'input_text', text: 'Noon' },
      { type: 'input_image', image_url: pixel },
    ]);
    expect((await openai.responses.create(turns(called, pictured))).status).toBe('completed');
  });

  test('images and files reach the model', async () => {
    const image = { type: 'input_image' as const, image_url: pixel, detail: 'low' as const };
    const text = { type: 'input_text' as const, text: 'What is this?' };
    expect(await outputText(ask('echo', { input: [{ role: 'user', content: [text, image] }] }))).toBe(
      '[1 image] What is this?',
    );
    const file = { type: 'input_file' as const, filename: 'a.pdf', file_data: pdf };
    const answer = outputText(ask('echo', { input: [{ role: 'user', content: [file, text] }] }));
    if (wire === 'cohere-chat') await expect(answer).rejects.toBeInstanceOf(OpenAI.BadRequestError);
    else expect(await answer).toBe('[1 file] What is this?');
  });

  // The sandbox's own Responses wire calls only functions; test/sdks/sdk-openai-recorded.long.test.ts has a recorded call
  // with free text.
  test.skipIf(wire === 'openai-responses')(
    'a custom tool with free text is called, and its result answered',
    async () => {
      const tools = [{ type: 'custom' as const, name: 'shell', description: 'Runs a command.' }];
      const request = ask('tools', { tools });
      const streamed: OpenAI.Responses.Response = await openai.responses.stream(request).finalResponse();
      for (const { output } of [await openai.responses.create(request), streamed]) {
        const call = output.find((item) => item.type === 'custom_tool_call');
        if (call === undefined) throw new Error(`it is ${JSON.stringify(output)}`);
        expect([call.name, typeof call.input]).toEqual(['shell', 'string']);
        const result = { type: 'custom_tool_call_output' as const, call_id: call.call_id, output: 'Done' };
        const input = [user('Hello'), ...(output as Item[]), result];
        expect(await outputText({ ...request, input })).toBe('The tools answered: Done');
      }
    },
  );

  test('only the tools that are allowed are called', async () => {
    const tools = [clock, { ...clock, name: 'get_weather' }];
    const choice = { type: 'allowed_tools' as const, mode: 'required' as const, tools: [tools[1]!] };
    const { output } = await openai.responses.create(ask('echo', { tools, tool_choice: choice }));
    expect(output.filter(({ type }) => type === 'function_call')).toMatchObject([{ name: 'get_weather' }]);
  });

  test('calls with a schema and an answer with a schema work together', async () => {
    const City = z.object({ city: z.string() });
    const tool = zodResponsesFunction({ name: 'get_weather', parameters: City });
    const text = { format: zodTextFormat(City, 'city') };
    const first = await openai.responses.parse(ask('tools', { tools: [tool], text }));
    const call = first.output.find((item) => item.type === 'function_call');
    expect(call?.parsed_arguments).toEqual({ city: 'sample city' });
    const result: Item = { type: 'function_call_output', call_id: call!.call_id, output: 'Rain' };
    const input = [user('Hello'), ...(first.output as Item[]), result];
    // Cohere accepts a schema only without tools (src/providers/cohere-chat/request.ts).
    const tools = wire === 'cohere-chat' ? [] : [tool];
    const last = await openai.responses.parse(ask('tools', { tools, text, input }));
    expect(last.output_parsed).toEqual({ city: 'sample city' });
  });

  test('a long answer is complete', async () => {
    const { output_text, usage } = await openai.responses.stream(ask('story;tokens=3000')).finalResponse();
    expect(output_text.length).toBeGreaterThan(10_000);
    expect(usage?.output_tokens).toBe(3_000 + (wireFacts.thinks_unasked.has(wire) ? 8 : 0));
  });

  test('forty concurrent answers do not mix', async () => {
    const texts = Array.from({ length: 40 }, (_, i) => `This is question ${i} of forty.`);
    const answers = await Promise.all(
      texts.map(async (input) => (await openai.responses.stream(ask('echo', { input })).finalResponse()).output_text),
    );
    expect(answers).toEqual(texts);
  });

  test('an abort by signal ends the request with its own error, before and during the answer', async () => {
    const early = openai.responses.create(ask('slow'), { signal: AbortSignal.timeout(50) });
    await expect(early).rejects.toBeInstanceOf(OpenAI.APIUserAbortError);
    const before = served.sandbox.requests().aborted;
    const stream = openai.responses.stream(ask('slow'));
    stream.once('response.output_text.delta', () => stream.abort());
    await expect(stream.finalResponse()).rejects.toBeInstanceOf(OpenAI.APIUserAbortError);
    await expect.poll(() => served.sandbox.requests().aborted).toBeGreaterThan(before);
  });

  test('a rate-limited request is retried after the stated time', async () => {
    const statuses: [number, string | null][] = [];
    const patient = openaiOf(served.gateway, {
      maxRetries: 2,
      fetch: async (url, init) => {
        const response = await checkedFetch(url, init);
        statuses.push([response.status, response.headers.get('retry-after')]);
        return response;
      },
    });
    const request = ask('echo;status=429;retry_after=1;fail_times=1', { input: `By ${wire}` });
    expect((await patient.responses.create(request)).output_text).toBe(`By ${wire}`);
    expect(statuses).toEqual([
      [429, '1'],
      [200, null],
    ]);
  });

  test('every answer and every error has the id of its request', async () => {
    const answer = await openai.responses.create(ask('echo'));
    const error = await openai.responses.create(ask('fail-503')).then(undefined, (thrown: unknown) => thrown);
    if (!(error instanceof OpenAI.APIError)) throw new Error(`it is ${error}`);
    for (const id of [answer._request_id, error.requestID]) expect(id).toMatch(/^[0-9a-f-]{36}$/);
  });
});
