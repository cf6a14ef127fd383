import { describe, expect, test } from 'vitest';
import { type ChatBody, chatRequest } from './door.ts';

const ask = (body: object) => chatRequest(body as ChatBody);
const hello = [{ role: 'user', content: 'Hello' }];
const first = (message: object) => ask({ messages: [message] }).messages[0];

describe('what only decoders may make is taken out', () => {
  test.each([
    ['of the request', { messages: hello, ext: { client: 'x' } }],
    ['of a message', { messages: [{ ...hello[0], ext: { blocks: [] } }] }],
    ['of a part', { messages: [{ role: 'user', content: [{ type: 'text', text: 'a', ext: { rest: {} } }] }] }],
    ['of a tool', { messages: hello, tools: [{ type: 'function', function: { name: 'f' }, ext: { rest: {} } }] }],
  ])('%s', (_title, body) => {
    const { ext, ...request } = ask(body);
    expect(ext).toEqual({ wire: 'openai-chat', client: 'chat', rest: {} });
    expect(JSON.stringify(request)).not.toContain('"ext"');
  });

  test("an assistant's fields on other messages, and a call's id on what answers none", () => {
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

test('nulls that mean nothing are not there', () => {
  expect(ask({ messages: hello, temperature: null, stop: null, seed: 1 })).toEqual({
    messages: hello,
    seed: 1,
    ext: expect.anything(),
  });
});

test('another name of a video part is the one of the contract', () => {
  const content = [{ type: 'input_video', video_url: { url: 'https://v.example/a.mp4' } }];
  expect(first({ role: 'user', content })?.content).toEqual([{ ...content[0], type: 'video_url' }]);
});

test('refusals among the parts of an answer are its refusal', () => {
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

test('reasoning_content is reasoning, unless that is told as well', () => {
  expect(first({ role: 'assistant', content: 'a', reasoning_content: 'r' })).toEqual({
    role: 'assistant',
    content: 'a',
    reasoning: 'r',
  });
  expect(first({ role: 'assistant', content: 'a', reasoning: 'own', reasoning_content: 'r' })).toMatchObject({
    reasoning: 'own',
  });
});

describe('functions of before tools', () => {
  test('are tools, with their choice, their calls and the answers to them', () => {
    const request = ask({
      functions: [{ name: 'f', parameters: {} }],
      function_call: { name: 'f' },
      messages: [
        { role: 'assistant', content: null, function_call: { name: 'f', arguments: '{}' } },
        { role: 'function', name: 'f', content: 'done' },
      ],
    });
    expect(request.tools).toEqual([{ type: 'function', function: { name: 'f', parameters: {} } }]);
    expect(request.tool_choice).toEqual({ type: 'function', function: { name: 'f' } });
    const [call, answer] = request.messages;
    expect(call?.tool_calls).toMatchObject([{ type: 'function', function: { name: 'f', arguments: '{}' } }]);
    expect(answer).toEqual({ role: 'tool', name: 'f', content: 'done', tool_call_id: call?.tool_calls?.[0]?.id });
    expect(JSON.stringify(request)).not.toMatch(/function_call|functions/);
  });

  test('400: an answer to a function that nobody called', () => {
    expect(() => ask({ messages: [{ role: 'function', name: 'f', content: 'x' }] })).toThrow(
      expect.objectContaining({ status: 400, message: expect.stringContaining('messages[0].name') }),
    );
  });
});

test('the choice `any` is `required`; a tool without a type is a function', () => {
  const request = ask({ messages: hello, tools: [{ function: { name: 'f' } }], tool_choice: 'any' });
  expect(request.tool_choice).toBe('required');
  expect(request.tools).toEqual([{ type: 'function', function: { name: 'f' } }]);
});

test.each<[string, object, boolean]>([
  ['effort and max_tokens', { reasoning: { effort: 'low', max_tokens: 5 } }, true],
  ['two different efforts', { reasoning: { effort: 'low' }, reasoning_effort: 'high' }, true],
  ['the same effort twice', { reasoning: { effort: 'low' }, reasoning_effort: 'low' }, false],
  ['neither prompt nor messages', { messages: undefined }, true],
  ['both prompt and messages', { prompt: 'p' }, true],
])('%s: a 400 or not', (_title, more, refused) => {
  const asked = () => ask({ messages: hello, ...more });
  if (refused) expect(asked).toThrow(expect.objectContaining({ status: 400 }));
  else expect(asked).not.toThrow();
});

test('a prompt is one message of the user, and the answer has its form', () => {
  expect(ask({ prompt: 'p' })).toEqual({
    messages: [{ role: 'user', content: 'p' }],
    ext: { wire: 'openai-chat', client: 'completions', rest: {} },
  });
});
