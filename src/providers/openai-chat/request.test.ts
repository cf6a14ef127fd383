import { describe, expect, test } from 'vitest';
import type { ChatRequest, Message, ToolCall } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import type { DialectEndpoint, EncodeOptions } from '../dialect.ts';
import type { Quirks } from '../quirks.ts';
import { openaiChat } from './index.ts';

const PLAIN: EncodeOptions = { media: new Map(), strip_state: false };

const endpointOf = (quirks: Quirks): DialectEndpoint => ({
  model: 'acme/fast-1',
  provider: 'acme',
  upstream_model: 'fast',
  max_completion_tokens: undefined,
  context_length: undefined,
  input_modalities: ['text'],
  quirks,
});

function encode(request: Partial<ChatRequest>, quirks: Quirks = {}, options = PLAIN) {
  return openaiChat.encodeRequest({ messages: [], ...request }, endpointOf(quirks), options);
}

describe('unchanged parts are shared, not copied', () => {
  test('messages and tools are the client’s own objects', () => {
    const messages: Message[] = [
      { role: 'user', content: [{ type: 'text', text: 'a' }] },
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } }],
      },
      { role: 'tool', tool_call_id: 'a', content: 'b' },
    ];
    const tools = [{ type: 'function' as const, function: { name: 'f' } }];
    const { body } = encode({ messages, tools });
    (body['messages'] as object[]).forEach((message, i) => {
      expect(message).toBe(messages[i]);
    });
    expect((body['tools'] as object[])[0]).toBe(tools[0]);
  });

  test('a request is not modified', () => {
    const freeze = <T>(value: T): T => {
      if (typeof value === 'object' && value !== null) Object.values(Object.freeze(value)).forEach(freeze);
      return value;
    };
    const request = freeze<ChatRequest>({
      model: 'a/b',
      stream: true,
      messages: [
        { role: 'developer', content: 'x' },
        { role: 'assistant', content: 'y', reasoning: 'z', name: 'n' },
        { role: 'tool', tool_call_id: 'lost', content: 'w' },
        { role: 'assistant', content: [{ type: 'text', text: 'end' }] },
      ],
      tools: [{ type: 'function', function: { name: 'a.b' }, cache_control: { type: 'ephemeral' } }],
      tool_choice: { type: 'function', function: { name: 'a.b' } },
      provider: { options: { acme: { x: 1 } } },
      user: 'u',
    });
    const quirks: Quirks = {
      system_role: 'system',
      replay_reasoning: 'reasoning',
      prefill_prefix: true,
      tool_call_id: 'mistral9',
    };
    expect(() => encode(request, quirks)).not.toThrow();
  });
});

const called = (name: string) => ({ type: 'function' as const, function: { name } });
const allowed = (mode: string) => ({ type: 'allowed_tools', allowed_tools: { mode, tools: [called('b')] } });

describe('one field at a time', () => {
  test.each<[string, Partial<ChatRequest>, Quirks, object]>([
    [
      'the newer output bound takes precedence',
      { max_tokens: 5, max_completion_tokens: 6 },
      {},
      { max_completion_tokens: 6 },
    ],
    [
      'the output bound has the upstream’s field name',
      { max_tokens: 5 },
      { output_bound_field: 'max_completion_tokens' },
      { max_completion_tokens: 5 },
    ],
    ['usage is requested in streams', { stream: true }, {}, { stream: true, stream_options: { include_usage: true } }],
    [
      'the client’s other stream options are kept',
      { stream: true, stream_options: { include_usage: false, include_obfuscation: false } },
      {},
      { stream: true, stream_options: { include_usage: true, include_obfuscation: false } },
    ],
    [
      'usage is not requested if the upstream refuses the option',
      { stream: true },
      { no_stream_usage: true },
      { stream: true },
    ],
    [
      'stream options require a stream',
      { stream: false, stream_options: { include_usage: true } },
      {},
      { stream: false },
    ],
    ['null is omitted', { temperature: null, stop: null, tools: null, stream: null }, {}, {}],
    ['a tool choice requires tools', { tools: [], tool_choice: 'auto', parallel_tool_calls: true }, {}, {}],
    [
      'tools that are not allowed are not sent',
      { tools: [called('a'), called('b')], tool_choice: allowed('required') },
      {},
      { tools: [called('b')], tool_choice: 'required' },
    ],
    [
      'a required choice among allowed tools has Mistral’s value',
      { tools: [called('a'), called('b')], tool_choice: allowed('required') },
      { tool_choice_any: true },
      { tools: [called('b')], tool_choice: 'any' },
    ],
    [
      'an optional choice among allowed tools is auto',
      { tools: [called('a'), called('b')], tool_choice: allowed('auto') },
      {},
      { tools: [called('b')], tool_choice: 'auto' },
    ],
    [
      'allowed tools are sent to OpenAI as they are',
      { tools: [called('a'), called('b')], tool_choice: allowed('auto') },
      { allowed_tools: true },
      { tools: [called('a'), called('b')], tool_choice: allowed('auto') },
    ],
    ['a seed may have another field name', { seed: 3 }, { random_seed: true }, { random_seed: 3 }],
    [
      'metadata is sent with stored completions',
      { metadata: { a: 'b' }, store: true },
      {},
      { metadata: { a: 'b' }, store: true },
    ],
    ['reasoning effort is passed on', { reasoning_effort: 'high' }, {}, { reasoning_effort: 'high' }],
    ['disabled reasoning is effort none', { reasoning: { enabled: false } }, {}, { reasoning_effort: 'none' }],
    ['enabled reasoning is effort medium', { reasoning: { enabled: true } }, {}, { reasoning_effort: 'medium' }],
    [
      'reasoning is omitted if the request does not mention it',
      { reasoning: { exclude: true }, include_reasoning: true },
      {},
      {},
    ],
    [
      'a reasoning budget becomes an effort by its share',
      { reasoning: { max_tokens: 8_000 }, max_tokens: 10_000 },
      {},
      { reasoning_effort: 'high', max_tokens: 10_000 },
    ],
    [
      'an effort becomes the nearest supported effort',
      { reasoning: { effort: 'xhigh' } },
      { reasoning_efforts: ['low', 'high'] },
      { reasoning_effort: 'high' },
    ],
    [
      'Alibaba enables thinking by a flag',
      { reasoning: { max_tokens: 100 } },
      { reasoning_field: 'enable_thinking' },
      { enable_thinking: true, thinking_budget: 100 },
    ],
    [
      'the client’s own thinking field takes precedence',
      { reasoning: { effort: 'none' }, thinking: { type: 'enabled' } },
      { reasoning_field: 'thinking' },
      { thinking: { type: 'enabled' } },
    ],
    [
      'another gateway gets all reasoning options except exclude',
      { reasoning: { effort: 'low', exclude: true } },
      { reasoning_field: 'reasoning' },
      { reasoning: { effort: 'low' } },
    ],
    [
      'the client’s fields take precedence over the operator’s',
      { reasoning_format: 'raw' },
      { extra_body: { reasoning_format: 'parsed', x: 1 } },
      { reasoning_format: 'raw', x: 1 },
    ],
  ])('%s', (_rule, request, quirks, expected) => {
    const { model, messages, ...rest } = encode(request, quirks).body;
    expect(rest).toEqual(expected);
    expect([model, messages]).toEqual(['fast', []]);
  });

  test('a refused parameter is dropped with a report', () => {
    const { body, report } = encode(
      { top_k: 1, tools: [{ type: 'function', function: { name: 'f' } }] },
      { refused_parameters: ['top_k', 'tools'] },
    );
    expect(body).toEqual({ model: 'fast', messages: [] });
    expect(report.map((entry) => entry.field).sort()).toEqual(['tools', 'top_k']);
  });

  test('tools of the gateway and of other APIs are not sent', () => {
    const tools = [
      { type: 'gateway:web_search' },
      { type: 'native' as const, wire: 'anthropic-messages' as const, block: {} },
    ];
    const { body, report } = encode({ tools });
    expect(body['tools']).toBeUndefined();
    expect(report.map((entry) => entry.field)).toEqual(['tools[0]', 'tools[1]']);
  });
});

describe('messages', () => {
  test('the model of a previous answer is not sent, since strict servers refuse unknown fields', () => {
    const message = { role: 'assistant', content: 'a', model: 'a/b' } as Message;
    expect(encode({ messages: [message] }).body['messages']).toEqual([{ role: 'assistant', content: 'a' }]);
  });

  const assistant = (more: Partial<Message>): Message => ({ role: 'assistant', content: 'a', ...more });
  test.each<[string, Message, Quirks, object]>([
    [
      'an instruction has a role that the upstream accepts',
      { role: 'developer', content: 'x' },
      { system_role: 'system' },
      { role: 'system', content: 'x' },
    ],
    ['reasoning is omitted', assistant({ reasoning: 'r' }), {}, { role: 'assistant', content: 'a' }],
    [
      'reasoning is sent back as a string',
      assistant({ reasoning: 'r' }),
      { replay_reasoning: 'reasoning_content' },
      { role: 'assistant', content: 'a', reasoning_content: 'r' },
    ],
    [
      'reasoning details take precedence over the string',
      assistant({ reasoning: 'r', reasoning_details: [] }),
      { replay_reasoning: 'reasoning' },
      { role: 'assistant', content: 'a' },
    ],
    [
      'empty reasoning is not a detail',
      assistant({ reasoning: '' }),
      { replay_reasoning: 'thinking_part' },
      assistant({}),
    ],
    [
      'empty reasoning is a field for upstreams that require it',
      assistant({ reasoning: '' }),
      { replay_reasoning: 'reasoning_content' },
      { role: 'assistant', content: 'a', reasoning_content: '' },
    ],
    [
      'encrypted reasoning of one id is sent once',
      assistant({
        reasoning_details: [
          { type: 'reasoning.encrypted', data: 'a', id: 'rs_1' },
          { type: 'reasoning.encrypted', data: 'b', id: 'rs_1' },
          { type: 'reasoning.encrypted', data: 'c', id: null },
          { type: 'reasoning.encrypted', data: 'd', id: null },
        ],
      }),
      { replay_reasoning: 'reasoning_details' },
      {
        role: 'assistant',
        content: 'a',
        reasoning_details: [
          { type: 'reasoning.encrypted', data: 'a', id: 'rs_1' },
          { type: 'reasoning.encrypted', data: 'c', id: null },
          { type: 'reasoning.encrypted', data: 'd', id: null },
        ],
      },
    ],
    [
      'reasoning of another vendor is omitted',
      assistant({ reasoning_details: [{ type: 'reasoning.text', text: 'r', format: 'anthropic-claude-v1' }] }),
      { replay_reasoning: 'reasoning' },
      { role: 'assistant', content: 'a' },
    ],
    [
      'previous audio is sent by its id',
      assistant({ audio: { id: 'x', data: 'AA' } }),
      {},
      { role: 'assistant', content: 'a', audio: { id: 'x' } },
    ],
    [
      'an answer of reasoning alone gets a content',
      assistant({ content: null, reasoning: 'r' }),
      {},
      { role: 'assistant', content: '' },
    ],
    [
      'cache breakpoints are kept if the upstream supports them',
      { role: 'user', content: [{ type: 'text', text: 'a', cache_control: { type: 'ephemeral' } }] },
      { cache_control: true },
      { role: 'user', content: [{ type: 'text', text: 'a', cache_control: { type: 'ephemeral' } }] },
    ],
    [
      'a cache breakpoint on a whole message is sent only if the upstream supports breakpoints',
      { role: 'user', content: 'a', cache_control: { type: 'ephemeral' } },
      {},
      { role: 'user', content: 'a' },
    ],
    [
      'a document by URL keeps the client’s shape',
      {
        role: 'user',
        content: [
          {
            type: 'file',
            file: { file_data: 'https://a.example/x.pdf' },
            ext: {
              wire: 'openai-chat',
              rest: { type: 'document_url', document_url: 'https://a.example/x.pdf' },
            },
          },
        ],
      },
      {},
      { role: 'user', content: [{ type: 'document_url', document_url: 'https://a.example/x.pdf' }] },
    ],
    [
      'video is sent unchanged',
      { role: 'user', content: [{ type: 'video_url', video_url: { url: 'https://v' } }] },
      {},
      { role: 'user', content: [{ type: 'video_url', video_url: { url: 'https://v' } }] },
    ],
  ])('%s', (_rule, message, quirks, expected) => {
    expect(encode({ messages: [message] }, quirks).body['messages']).toEqual([expected]);
  });

  test('opaque state is omitted in a retry', () => {
    const details = [
      { type: 'reasoning.text' as const, text: 'a', signature: 's' },
      { type: 'reasoning.text' as const, text: 'b' },
      { type: 'reasoning.encrypted' as const, data: 'd' },
    ];
    const request = { messages: [assistant({ reasoning_details: details })] };
    const quirks: Quirks = { replay_reasoning: 'reasoning_details' };
    expect(encode(request, quirks).body['messages']).toEqual([assistant({ reasoning_details: details })]);
    const stripped = encode(request, quirks, { ...PLAIN, strip_state: true });
    expect(stripped.body['messages']).toEqual([assistant({ reasoning_details: [details[1]!] })]);
  });

  test('a long or invalid call id has one replacement, for call and result', () => {
    const id = 'x'.repeat(65);
    const call = { id, type: 'function' as const, function: { name: 'f', arguments: '{}' } };
    const messages = [assistant({ tool_calls: [call] }), { role: 'tool' as const, tool_call_id: id, content: 'r' }];
    const [one, other] = encode({ messages }).body['messages'] as [
      { tool_calls: { id: string }[] },
      { tool_call_id: string },
    ];
    expect(one.tool_calls[0]!.id).toMatch(/^[0-9A-Za-z]{29}$/);
    expect(other.tool_call_id).toBe(one.tool_calls[0]!.id);
  });

  test('a call is sent back with the members that only this wire has', () => {
    const call = (id: string, text: string, rest: JsonObject): ToolCall => ({
      id,
      type: 'function',
      function: { name: 'f', arguments: text },
      ext: { wire: 'openai-chat', rest },
    });
    const extraContent = { google: { thought_signature: 'S' } };
    const toolCalls = [
      call('a', '{}', { extra_content: extraContent }),
      call('b', '{"input":"x"}', { type: 'custom' }),
    ];
    const results = toolCalls.map(({ id }): Message => ({ role: 'tool', tool_call_id: id, content: 'r' }));
    const { body } = encode({ messages: [{ role: 'assistant', content: null, tool_calls: toolCalls }, ...results] });
    expect((body['messages'] as unknown as Message[])[0]?.tool_calls).toEqual([
      { id: 'a', type: 'function', function: { name: 'f', arguments: '{}' }, extra_content: extraContent },
      { id: 'b', type: 'custom', custom: { name: 'f', input: 'x' } },
    ]);
  });

  test('a call without arguments is sent with an empty object', () => {
    const call = { id: 'a', type: 'function' as const, function: { name: 'f', arguments: '' } };
    const messages = [assistant({ tool_calls: [call] }), { role: 'tool' as const, tool_call_id: 'a', content: 'r' }];
    const [sent] = encode({ messages }).body['messages'] as object[];
    expect(sent).toEqual(assistant({ tool_calls: [{ ...call, function: { name: 'f', arguments: '{}' } }] }));
  });
});

describe('media that must be fetched', () => {
  const request: ChatRequest = {
    messages: [
      {
        role: 'user',
        content: [
          { type: 'file', file: { file_data: 'https://x/a.pdf' } },
          { type: 'file', file: { file_data: 'data:application/pdf;base64,AA==', filename: 'b' } },
          { type: 'image_url', image_url: { url: 'https://x/a.png' } },
        ],
      },
    ],
  };
  test.each<[string, Quirks, string[]]>([
    ['are files by URL', {}, ['https://x/a.pdf']],
    ['are none if the upstream accepts documents by URL', { document_url: true }, []],
    [
      'include images if the upstream requires inline images',
      { inline_images: true },
      ['https://x/a.pdf', 'https://x/a.png'],
    ],
  ])('%s', (_rule, quirks, expected) => {
    expect(openaiChat.requiredMedia(request, endpointOf(quirks)).map((need) => need.url)).toEqual(expected);
  });

  test('do not include a document in the client’s own shape', () => {
    const fileData = 'https://x/b.pdf';
    const ext = { wire: 'openai-chat' as const, rest: { type: 'document_url', document_url: fileData } };
    const messages: Message[] = [{ role: 'user', content: [{ type: 'file', file: { file_data: fileData }, ext }] }];
    expect(openaiChat.requiredMedia({ messages }, endpointOf({}))).toEqual([]);
  });

  test('are sent as a URL if they were not fetched', () => {
    const { body } = encode(request);
    expect(JSON.stringify(body)).toContain('https://x/a.pdf');
  });
});

test('a file with neither data nor id is refused; one with an id is sent unchanged', () => {
  const of = (file: object): ChatRequest => ({
    model: 'm',
    messages: [{ role: 'user', content: [{ type: 'file', file }] }],
  });
  expect(() => encode(of({ filename: 'a' }))).toThrow('messages[0].content[0]: the file has neither data nor an id');
  expect(JSON.stringify(encode(of({ file_id: 'file_1', file_data: null })).body)).toContain('file_1');
});

test.each(['data:text/csv;base64,YSxi', 'data:application/json;base64,YSxi', 'data:application/json,a%2Cb'])(
  'a text file is sent as text: %s',
  (fileData) => {
    const content: Message['content'] = [{ type: 'file', file: { file_data: fileData, filename: 'a' } }];
    const { body } = encode({ model: 'm', messages: [{ role: 'user', content }] });
    expect(body['messages']).toEqual([{ role: 'user', content: [{ type: 'text', text: 'a:\na,b' }] }]);
  },
);

test('the credential is sent in the header that the upstream reads', () => {
  const request = { method: 'POST', url: 'https://x', headers: {}, payload: '' };
  expect(openaiChat.authorize('k', request, 0, {})).toEqual({ authorization: 'Bearer k' });
  expect(openaiChat.authorize('k', request, 0, { api_key_header: 'api-key' })).toEqual({ 'api-key': 'k' });
  expect(openaiChat.authorize(undefined, request, 0, {})).toEqual({});
});

test('empty lists are not sent, since servers refuse them', () => {
  const call: ToolCall = { id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } };
  const messages: Message[] = [
    { role: 'system', content: [] },
    { role: 'user', content: [] },
    { role: 'assistant', content: [], tool_calls: [call] },
    { role: 'tool', tool_call_id: 'a', content: [] },
  ];
  const { body } = encode({ messages, stop: [], tools: [] });
  expect((body['messages'] as JsonObject[]).map(({ content }) => content)).toEqual(['', '', null, '']);
  expect(Object.keys(body).sort()).toEqual(['messages', 'model']);
});
