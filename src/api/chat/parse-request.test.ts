import { Value } from 'typebox/value';
import { describe, expect, test } from 'vitest';
import { ChatCompletionBody } from '../../schemas/chat.ts';
import { completionsClient } from '../completions/client.ts';
import { chatClient } from './client.ts';
import { type ChatBody, chatRequest } from './parse-request.ts';

const parse = (body: object) => chatRequest(body as ChatBody);
const hello = [{ role: 'user', content: 'Hello' }];
const first = (message: object) => parse({ messages: [message] }).messages[0];

describe('fields that only decoders make are removed', () => {
  test.each([
    ['of the request', { messages: hello, ext: { client: 'x' } }],
    ['of a message', { messages: [{ ...hello[0], ext: { blocks: [] } }] }],
    ['of a part', { messages: [{ role: 'user', content: [{ type: 'text', text: 'a', ext: { rest: {} } }] }] }],
    ['of a tool', { messages: hello, tools: [{ type: 'function', function: { name: 'f' }, ext: { rest: {} } }] }],
  ])('%s', (_title, body) => {
    const { ext, ...request } = parse(body);
    expect(ext).toEqual({ wire: 'openai-chat', client: chatClient, rest: {} });
    expect(JSON.stringify(request)).not.toContain('"ext"');
  });

  test("an assistant's fields on other messages, and a call id on a message that is not a result", () => {
    const fields = { tool_calls: [], reasoning: 'r', refusal: 'n', images: [], annotations: [], tool_call_id: 'c' };
    expect(first({ role: 'user', content: 'a', ...fields })).toEqual({ role: 'user', content: 'a' });
    expect(first({ role: 'assistant', content: 'a', reasoning: 'r', tool_call_id: 'c' })).toEqual({
      role: 'assistant',
      content: 'a',
      reasoning: 'r',
    });
    expect(first({ role: 'tool', content: 'a', tool_call_id: 'c' })).toMatchObject({ tool_call_id: 'c' });
  });
});

test('meaningless nulls are removed', () => {
  expect(parse({ messages: hello, temperature: null, stop: null, seed: 1 })).toEqual({
    messages: hello,
    seed: 1,
    ext: expect.anything(),
  });
});

test('another name of a video part becomes the one of the contract', () => {
  const content = [{ type: 'input_video', video_url: { url: 'https://v.example/a.mp4' } }];
  expect(first({ role: 'user', content })?.content).toEqual([{ ...content[0], type: 'video_url' }]);
});

test("OpenAI's cache breakpoint becomes one for every wire", () => {
  const part = { type: 'text', text: 'Long.', prompt_cache_breakpoint: { mode: 'explicit' } };
  expect(first({ role: 'user', content: [part] })?.content).toEqual([
    { ...part, cache_control: { type: 'ephemeral' } },
  ]);
  const own = { ...part, cache_control: { type: 'ephemeral', ttl: '1h' } };
  expect(first({ role: 'user', content: [own] })?.content).toEqual([own]);
});

test("the public service's records of its own tools are accepted and dropped", () => {
  const thought = { type: 'reasoning.text', text: 'Hm' };
  const record = { type: 'reasoning.server_tool_call', tool_name: 'x', arguments: '{}', result: 'r' };
  const messages = [{ role: 'assistant', content: 'a', reasoning_details: [record, thought] }];
  expect(Value.Check(ChatCompletionBody, { messages })).toBe(true);
  expect(parse({ messages }).messages[0]?.reasoning_details).toEqual([thought]);
});

test('refusals among the parts of an answer become its refusal', () => {
  const parts = [
    { type: 'text', text: 'a' },
    { type: 'refusal', refusal: 'I will ' },
    { type: 'refusal', refusal: 'not' },
  ];
  expect(first({ role: 'assistant', content: parts })).toEqual({
    role: 'assistant',
    content: [parts[0]],
    refusal: 'I will not',
  });
});

test('reasoning_content becomes reasoning, unless that is set as well', () => {
  expect(first({ role: 'assistant', content: 'a', reasoning_content: 'r' })).toEqual({
    role: 'assistant',
    content: 'a',
    reasoning: 'r',
  });
  expect(first({ role: 'assistant', content: 'a', reasoning: 'own', reasoning_content: 'r' })).toMatchObject({
    reasoning: 'own',
  });
});

describe('legacy functions', () => {
  test('become tools, with their choice, their calls and the results', () => {
    const request = parse({
      functions: [{ name: 'f', parameters: {} }],
      function_call: { name: 'f' },
      messages: [
        { role: 'assistant', content: null, function_call: { name: 'f', arguments: '{}' } },
        { role: 'function', name: 'f', content: 'done' },
      ],
    });
    expect(request.tools).toEqual([{ type: 'function', function: { name: 'f', parameters: {} } }]);
    expect(request.tool_choice).toEqual({ type: 'function', function: { name: 'f' } });
    // Their answers have room for one call.
    expect(request.parallel_tool_calls).toBe(false);
    const [call, answer] = request.messages;
    expect(call?.tool_calls).toMatchObject([{ type: 'function', function: { name: 'f', arguments: '{}' } }]);
    expect(answer).toEqual({ role: 'tool', name: 'f', content: 'done', tool_call_id: call?.tool_calls?.[0]?.id });
    expect(JSON.stringify(request)).not.toMatch(/function_call|functions/);
  });

  test('400: a result of a function that was not called', () => {
    expect(() => parse({ messages: [{ role: 'function', name: 'f', content: 'x' }] })).toThrow(
      expect.objectContaining({ status: 400, message: expect.stringContaining('messages[0].name') }),
    );
  });
});

test('the tool choice `any` becomes `required`, and a tool without a type becomes a function', () => {
  const request = parse({ messages: hello, tools: [{ function: { name: 'f' } }], tool_choice: 'any' });
  expect(request.tool_choice).toBe('required');
  expect(request.tools).toEqual([{ type: 'function', function: { name: 'f' } }]);
});

test.each<[string, object, boolean]>([
  ['effort and max_tokens', { reasoning: { effort: 'low', max_tokens: 5 } }, true],
  ['two different efforts', { reasoning: { effort: 'low' }, reasoning_effort: 'high' }, true],
  ['the same effort twice', { reasoning: { effort: 'low' }, reasoning_effort: 'low' }, false],
  ['neither prompt nor messages', { messages: undefined }, true],
  [
    'a prompt with tools',
    { messages: undefined, prompt: 'p', tools: [{ type: 'function', function: { name: 'f' } }] },
    true,
  ],
  ['a prompt with functions', { messages: undefined, prompt: 'p', functions: [{ name: 'f' }] }, true],
  ['a prompt for an image', { messages: undefined, prompt: 'p', modalities: ['image', 'text'] }, true],
  ['a prompt for text', { messages: undefined, prompt: 'p', modalities: ['text'], tools: [] }, false],
  ['both prompt and messages', { prompt: 'p' }, true],
])('%s: whether it is a 400', (_title, more, refused) => {
  const parseInvalid = () => parse({ messages: hello, ...more });
  if (refused) expect(parseInvalid).toThrow(expect.objectContaining({ status: 400 }));
  else expect(parseInvalid).not.toThrow();
});

test('a prompt becomes one user message, and the answer has the form of completions', () => {
  expect(parse({ prompt: 'p' })).toEqual({
    messages: [{ role: 'user', content: 'p' }],
    ext: { wire: 'openai-chat', client: completionsClient, rest: {} },
  });
});

describe('requests of clients of other providers', () => {
  /** The message as parsed from a request that the schema accepts. */
  const taken = (message: object) => {
    const body = { messages: [message] };
    expect(Value.Check(ChatCompletionBody, body)).toBe(true);
    return first(message);
  };
  const call = (called: object) => ({ role: 'assistant', content: null, tool_calls: [called] });

  test('an image may be its URL', () => {
    const content = [{ type: 'image_url', image_url: 'https://a.example/x.png' }];
    expect(taken({ role: 'user', content })?.content).toEqual([
      { type: 'image_url', image_url: { url: 'https://a.example/x.png' } },
    ]);
  });

  test('a document by URL is a file, and keeps its own shape for upstreams of this wire', () => {
    const part = { type: 'document_url', document_url: 'https://a.example/x.pdf', document_name: 'x' };
    expect(taken({ role: 'user', content: [part] })?.content).toEqual([
      {
        type: 'file',
        file: { file_data: part.document_url, filename: 'x' },
        ext: { wire: 'openai-chat', rest: part },
      },
    ]);
    const unnamed = { type: 'document_url', document_url: 'https://a.example/x.pdf', document_name: null };
    expect(taken({ role: 'user', content: [unnamed] })?.content).toMatchObject([
      { file: { file_data: unnamed.document_url } },
    ]);
  });

  test('thinking among the parts of an answer becomes its reasoning, unless that is set as well', () => {
    const thought = (thinking: unknown) => ({ type: 'thinking', thinking });
    const text = { type: 'text', text: 'a' };
    const content = [
      thought([
        { type: 'text', text: 'h' },
        { type: 'text', text: 'm' },
      ]),
      thought('!'),
      text,
    ];
    expect(taken({ role: 'assistant', content })).toEqual({ role: 'assistant', content: [text], reasoning: 'hm!' });
    expect(taken({ role: 'assistant', content, reasoning: 'own' })).toMatchObject({ reasoning: 'own' });
    expect(taken({ role: 'assistant', content, reasoning_details: [] })).not.toHaveProperty('reasoning');
  });

  test('arguments may be an object, or null', () => {
    const made = (text: unknown) => taken(call({ id: 'a', function: { name: 'f', arguments: text } }))?.tool_calls;
    expect(made({ b: [1] })).toEqual([{ id: 'a', type: 'function', function: { name: 'f', arguments: '{"b":[1]}' } }]);
    expect(made(null)?.[0]?.function.arguments).toBe('');
  });

  test('a call and its result may have an empty id', () => {
    expect(taken(call({ id: '', function: { name: 'f', arguments: '' } }))?.tool_calls?.[0]?.id).toBe('');
    expect(taken({ role: 'tool', tool_call_id: '', content: 'x' })?.tool_call_id).toBe('');
  });

  test('a call of a custom tool keeps its kind for upstreams of this wire', () => {
    expect(taken(call({ id: 'a', type: 'custom', custom: { name: 'f', input: 'x "' } }))?.tool_calls).toEqual([
      {
        id: 'a',
        type: 'function',
        function: { name: 'f', arguments: '{"input":"x \\""}' },
        ext: { wire: 'openai-chat', rest: { type: 'custom' } },
      },
    ]);
  });

  test('the thought signature of a call stays with it', () => {
    const extraContent = { google: { thought_signature: 'S' } };
    const made = taken(call({ id: 'a', extra_content: extraContent, function: { name: 'f', arguments: '{}' } }));
    expect(made?.tool_calls?.[0]?.ext).toEqual({ wire: 'openai-chat', rest: { extra_content: extraContent } });
  });

  test.each(['system', 'developer', 'user', 'tool'])('the content of role %s may be null', (role) => {
    expect(taken({ role, content: null, ...(role === 'tool' ? { tool_call_id: 'a' } : {}) })?.content).toBe('');
  });

  test('prompt may be null beside messages, and messages beside prompt', () => {
    for (const body of [
      { prompt: null, messages: hello },
      { messages: null, prompt: 'Hello' },
    ]) {
      expect(Value.Check(ChatCompletionBody, body)).toBe(true);
      expect(parse(body).messages).toEqual(hello);
    }
  });

  test('a tool of a kind that only decoders make is refused', () => {
    const tools = [{ type: 'native', wire: 'openai-chat', block: {} }];
    expect(Value.Check(ChatCompletionBody, { messages: hello, tools })).toBe(false);
  });
});
