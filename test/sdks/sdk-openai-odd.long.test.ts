/** Unusual uses of OpenAI's SDK: odd fields, retries, aborts, many concurrent requests. */
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
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

type Ask = Omit<OpenAI.ChatCompletionCreateParamsNonStreaming, 'stream'>;
const pdf = 'data:application/pdf;base64,JVBERi0xLjQK';
const hello: OpenAI.ChatCompletionMessageParam[] = [{ role: 'user', content: 'Hello' }];

describe.each(clientWires('openai'))('over %s', (wire) => {
  const ask = (slug: string, more: Partial<Ask> = {}): Ask => ({
    model: modelOf(wire, slug),
    messages: hello,
    ...more,
  });
  const outputText = async (request: Ask) => {
    const whole = await openai.chat.completions.create(request);
    const streamed = await openai.chat.completions.stream(request).finalChatCompletion();
    expect(streamed.choices[0]?.message.content).toBe(whole.choices[0]?.message.content);
    return whole.choices[0]?.message.content;
  };

  test.each<[string, Partial<Ask>]>([
    ['no tools', { tools: [] }],
    ['no tools, with a tool choice', { tools: [], tool_choice: 'auto' }],
    ['parallel calls without tools', { parallel_tool_calls: false }],
    ['stream options', { stream_options: { include_usage: true } }],
    ['stream options that are null', { stream_options: null }],
    ['undefined fields', { store: undefined, temperature: undefined, tools: undefined } as never],
    ['the older output bound', { max_tokens: 4_000 }],
    ['both output bounds', { max_tokens: 4_000, max_completion_tokens: 4_000 }],
    ['one answer', { n: 1 }],
    ['a seed and penalties', { seed: 7, frequency_penalty: 0, presence_penalty: 0, logit_bias: {} }],
    ['user and metadata', { user: 'somebody', metadata: { team: 'a' }, safety_identifier: 'b' }],
    ['storage options', { store: false, prompt_cache_key: 'c', service_tier: 'auto' }],
    ['system and developer instructions', { messages: [{ role: 'developer', content: 'Be brief.' }, ...hello] }],
    [
      'instructions in parts',
      { messages: [{ role: 'system', content: [{ type: 'text', text: 'Be brief.' }] }, ...hello] },
    ],
    ['text in parts', { messages: [{ role: 'user', content: [{ type: 'text', text: 'Hello' }] }] }],
    ['plain text as the format', { response_format: { type: 'text' } }],
  ])('is ignored or understood: %s', async (_name, more) => {
    expect(await outputText(ask('echo', more))).toBe('Hello');
  });

  test('fields that are null count as absent', async () => {
    const names = [
      ...['tools', 'tool_choice', 'stop', 'temperature', 'top_p', 'n', 'seed', 'response_format', 'logit_bias'],
      ...['user', 'metadata', 'store', 'modalities', 'audio', 'prediction', 'parallel_tool_calls', 'reasoning_effort'],
      ...['service_tier', 'max_tokens', 'max_completion_tokens', 'stream_options', 'web_search_options', 'functions'],
    ];
    expect(await outputText(ask('echo', Object.fromEntries(names.map((name) => [name, null]))))).toBe('Hello');
  });

  test('a message of the assistant is accepted with every field of the SDK', async () => {
    const first = await openai.chat.completions.create(ask('echo'));
    const message = first.choices[0]!.message;
    expect(await outputText(ask('echo', { messages: [...hello, message, { role: 'user', content: 'Two' }] }))).toBe(
      'Two',
    );
    const parsed = await openai.chat.completions.stream(ask('echo')).finalMessage();
    const odd = { ...parsed, audio: null, function_call: null, annotations: [], tool_calls: undefined } as never;
    expect(await outputText(ask('echo', { messages: [...hello, odd, { role: 'user', content: 'Three' }] }))).toBe(
      'Three',
    );
  });

  test('calls without arguments and results in parts are understood', async () => {
    const call = { id: 'call_1', type: 'function' as const, function: { name: 'get_time', arguments: '' } };
    const content = [{ type: 'text' as const, text: 'Noon' }];
    const messages: OpenAI.ChatCompletionMessageParam[] = [
      ...hello,
      { role: 'assistant', content: null, refusal: null, tool_calls: [call] },
      { role: 'tool', tool_call_id: 'call_1', content },
    ];
    const tools = [{ type: 'function' as const, function: { name: 'get_time' } }];
    expect(await outputText(ask('echo', { messages, tools }))).toBe('The tools answered: Noon');
  });

  test('only the tools that are allowed are called', async () => {
    const tools = ['get_weather', 'get_time'].map((name) => ({ type: 'function' as const, function: { name } }));
    const allowedTools = { mode: 'required' as const, tools: [tools[1]!] };
    const choice = { type: 'allowed_tools' as const, allowed_tools: allowedTools };
    const { choices } = await openai.chat.completions.create(ask('echo', { tools, tool_choice: choice }));
    expect(choices[0]?.message.tool_calls).toMatchObject([{ function: { name: 'get_time' } }]);
  });

  test('a file reaches the model, or no endpoint of its wire takes files', async () => {
    const content = [
      { type: 'file' as const, file: { filename: 'a.pdf', file_data: pdf } },
      { type: 'text' as const, text: 'What is this?' },
    ];
    const answer = outputText(ask('echo', { messages: [{ role: 'user', content }] }));
    if (wire === 'cohere-chat') await expect(answer).rejects.toBeInstanceOf(OpenAI.BadRequestError);
    else expect(await answer).toBe('[1 file] What is this?');
  });

  test('audio is refused with a message if the model does not accept it', async () => {
    const content = [{ type: 'input_audio' as const, input_audio: { data: 'AAAA', format: 'wav' as const } }];
    const error = await openai.chat.completions
      .create(ask('echo', { messages: [{ role: 'user', content }] }))
      .then(undefined, (thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(OpenAI.NotFoundError);
    expect((error as Error).message).toContain('audio');
  });

  test('a long answer is complete', async () => {
    const stream = openai.chat.completions.stream(ask('story;tokens=3000'));
    const { choices } = await stream.finalChatCompletion();
    expect(choices[0]?.finish_reason).toBe('stop');
    expect(choices[0]?.message.content?.length).toBeGreaterThan(10_000);
    const thoughts = wireFacts.thinks_unasked.has(wire) ? 8 : 0;
    expect((await stream.totalUsage()).completion_tokens).toBe(3_000 + thoughts);
  });

  test('forty concurrent answers do not mix', async () => {
    const texts = Array.from({ length: 40 }, (_, i) => `This is question ${i} of forty.`);
    const answers = await Promise.all(
      texts.map((text) =>
        openai.chat.completions.stream(ask('echo', { messages: [{ role: 'user', content: text }] })).finalContent(),
      ),
    );
    expect(answers).toEqual(texts);
  });

  test('an abort by signal ends the request with its own error, before and during the answer', async () => {
    const early = openai.chat.completions.create(ask('slow'), { signal: AbortSignal.timeout(50) });
    await expect(early).rejects.toBeInstanceOf(OpenAI.APIUserAbortError);
    const before = served.sandbox.requests().aborted;
    const control = new AbortController();
    const stream = openai.chat.completions.stream(ask('slow'), { signal: control.signal });
    stream.once('content', () => control.abort());
    await expect(stream.finalContent()).rejects.toBeInstanceOf(OpenAI.APIUserAbortError);
    await expect.poll(() => served.sandbox.requests().aborted).toBeGreaterThan(before);
  });

  test('a client that waits too long reports its own timeout', async () => {
    await expect(openai.chat.completions.create(ask('slow'), { timeout: 50 })).rejects.toBeInstanceOf(
      OpenAI.APIConnectionTimeoutError,
    );
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
    const answer = await patient.chat.completions.create({
      ...ask('echo;status=429;retry_after=1;fail_times=1', { messages: [{ role: 'user', content: `By ${wire}` }] }),
    });
    expect(answer.choices[0]?.message.content).toBe(`By ${wire}`);
    expect(statuses).toEqual([
      [429, '1'],
      [200, null],
    ]);
  });

  test('every answer and every error has the id of its request', async () => {
    const answer = await openai.chat.completions.create(ask('echo'));
    const error = await openai.chat.completions.create(ask('fail-503')).then(undefined, (thrown: unknown) => thrown);
    if (!(error instanceof OpenAI.APIError)) throw new Error(`it is ${error}`);
    const ids = [answer._request_id, error.requestID];
    for (const id of ids) expect(id).toMatch(/^[0-9a-f-]{36}$/);
    expect(new Set(ids).size).toBe(2);
  });
});
