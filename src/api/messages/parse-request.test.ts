import { describe, expect, test } from 'vitest';
import { GatewayError } from '../../errors.ts';
import { explain } from '../../http/validation.ts';
import { createEnvelopes, type Envelope } from '../../inference/reasoning/envelope.ts';
import type { ChatRequest, ReasoningDetail } from '../../schemas/inner.ts';
import { MessagesBody } from '../../schemas/messages.ts';
import { messagesClient } from './client.ts';
import { messagesRequest } from './parse-request.ts';

const envelope: Envelope = createEnvelopes('secret')('org');
const hello = [{ role: 'user', content: 'Hello' }];

/** The request as parsed from a body that the schema accepts. */
function parse(body: object, betas: string[] = []): ChatRequest {
  const whole = { model: 'a/b', messages: hello, ...body };
  expect(explain(MessagesBody as never, whole, '')).toEqual([]);
  return messagesRequest(whole as never, { envelope, betas });
}
const turn = (content: unknown, role = 'user') => parse({ messages: [{ role, content }] }).messages;
const rest = (fields: object) => ({ wire: 'anthropic-messages', rest: fields });

describe('every field is translated', () => {
  test.each<[string, object, Partial<ChatRequest>]>([
    ['max_tokens', { max_tokens: 5 }, { max_tokens: 5 }],
    ['temperature', { temperature: 0.5 }, { temperature: 0.5 }],
    ['top_p', { top_p: 0.5 }, { top_p: 0.5 }],
    ['top_k', { top_k: 5 }, { top_k: 5 }],
    ['stop_sequences', { stop_sequences: ['a', 'b'] }, { stop: ['a', 'b'] }],
    ['stream', { stream: true }, { stream: true }],
    ['cache_control', { cache_control: { type: 'ephemeral' } }, { cache_control: { type: 'ephemeral' } }],
    ['service_tier auto', { service_tier: 'auto' }, { service_tier: 'auto' }],
    ['service_tier standard_only', { service_tier: 'standard_only' }, { service_tier: 'default' }],
    ['metadata.user_id', { metadata: { user_id: 'u' } }, { user: 'u' }],
    ['user, which takes precedence over metadata.user_id', { user: 'v', metadata: { user_id: 'u' } }, { user: 'v' }],
    ['models', { models: ['c/d'] }, { models: ['c/d'] }],
    [
      'fallbacks, in the order in which the gateway tries models',
      { fallbacks: [{ model: 'c/d' }, { model: 'e/f' }] },
      { models: ['c/d', 'e/f'] },
    ],
    [
      'models, which take precedence over fallbacks',
      { models: ['c/d'], fallbacks: [{ model: 'e/f' }] },
      { models: ['c/d'] },
    ],
    ['fallbacks default, which has no effect', { fallbacks: 'default' }, {}],
    ['provider', { provider: { only: ['x'] } }, { provider: { only: ['x'] } }],
    ['plugins', { plugins: [{ id: 'web' }] }, { plugins: [{ id: 'web' }] }],
    ['route', { route: 'fallback' }, { route: 'fallback' }],
    ['session_id', { session_id: 's' }, { session_id: 's' }],
    ['trace', { trace: { a: 1 } }, { trace: { a: 1 } }],
    ['debug', { debug: { echo_upstream_body: true } }, { debug: { echo_upstream_body: true } }],
    ['nulls', { temperature: null, system: null, tools: null, thinking: null, metadata: null, ext: null }, {}],
    ['fields that only decoders make', { ext: { wire: 'anthropic-messages', rest: { a: 1 } } }, {}],
  ])('%s', (_title, body, expected) => {
    const { ext, ...request } = parse(body);
    expect(request).toEqual({ model: 'a/b', messages: hello, ...expected });
    expect(ext).toEqual({ client: messagesClient, wire: 'anthropic-messages', rest: {} });
  });

  test('fields without a translation are kept for the wire', () => {
    const fields = {
      container: 'c',
      context_management: { edits: [] },
      mcp_servers: [{ type: 'url', name: 'm', url: 'https://m.example' }],
      diagnostics: {},
      compaction: {},
      user_profile_id: 'p',
      workspace_id: 'w',
      inference_geo: 'global',
      speed: 'fast',
      to_come: [1],
    };
    expect(parse(fields).ext?.rest).toEqual(fields);
  });

  test('betas of the headers and of the body, each once', () => {
    expect(parse({ betas: ['b', 'c'], anthropic_beta: ['d', 'a'] }, ['a', 'b']).ext).toEqual({
      client: messagesClient,
      wire: 'anthropic-messages',
      rest: {},
      betas: ['a', 'b', 'c', 'd'],
    });
    expect(parse({}).ext).not.toHaveProperty('betas');
  });
});

describe('thinking, effort and format', () => {
  test.each<[string, object, Partial<ChatRequest>]>([
    ['with a budget', { thinking: { type: 'enabled', budget_tokens: 2000 } }, { reasoning: { max_tokens: 2000 } }],
    ['adaptive', { thinking: { type: 'adaptive' } }, { reasoning: { enabled: true } }],
    ['not', { thinking: { type: 'disabled' } }, { reasoning: { effort: 'none' } }],
    ['interleaved with tools, which only this wire has', { thinking: { type: 'between_tools' } }, {}],
    [
      'not displayed',
      { thinking: { type: 'adaptive', display: 'omitted' } },
      { reasoning: { enabled: true, exclude: true } },
    ],
    ['hard', { output_config: { effort: 'high' } }, { reasoning: { effort: 'high' } }],
    [
      'with high effort, adaptive',
      { thinking: { type: 'adaptive' }, output_config: { effort: 'max' } },
      { reasoning: { enabled: true, effort: 'max' } },
    ],
    [
      'with high effort, with a budget',
      { thinking: { type: 'enabled', budget_tokens: 2000 }, output_config: { effort: 'low' } },
      { reasoning: { max_tokens: 2000 }, verbosity: 'low' },
    ],
    [
      'with high effort, without thinking',
      { thinking: { type: 'disabled' }, output_config: { effort: 'high' } },
      { reasoning: { effort: 'none' }, verbosity: 'high' },
    ],
    [
      'as JSON',
      { output_config: { format: { type: 'json_schema', schema: { type: 'object' } } } },
      {
        response_format: {
          type: 'json_schema',
          json_schema: { name: 'answer', schema: { type: 'object' } },
        },
      },
    ],
    [
      'as JSON, by the older name',
      { output_format: { type: 'json_schema', schema: { type: 'object' } } },
      {
        response_format: {
          type: 'json_schema',
          json_schema: { name: 'answer', schema: { type: 'object' } },
        },
      },
    ],
  ])('%s', (_title, body, expected) => {
    const { ext, model: _m, messages: _s, ...request } = parse(body);
    expect(request).toEqual(expected);
    // Unchanged for upstreams of this wire.
    expect(ext?.rest).toEqual(body);
  });
});

describe('tools', () => {
  const inputSchema = { type: 'object', properties: {} };
  test("are the client's own, including fields that only this wire has", () => {
    const more = {
      defer_loading: true,
      input_examples: [{ a: 1 }],
      eager_input_streaming: true,
      allowed_callers: ['direct'],
    };
    const cacheControl = { type: 'ephemeral', ttl: '1h' };
    const tool = {
      type: 'custom',
      name: 'f',
      description: 'd',
      input_schema: inputSchema,
      strict: false,
      cache_control: cacheControl,
      ...more,
    };
    expect(parse({ tools: [tool] }).tools).toEqual([
      {
        type: 'function',
        function: { name: 'f', description: 'd', parameters: inputSchema, strict: false },
        cache_control: cacheControl,
        ext: rest({ type: 'custom', ...more }),
      },
    ]);
  });

  test.each(['bash_20250124', 'text_editor_20250728', 'web_search_20250305', 'mcp_toolset', 'advisor_20260301'])(
    'of type %s belong to this wire alone',
    (type) => {
      const block = { type, name: 'x', max_uses: 3 };
      expect(parse({ tools: [block] }).tools).toEqual([{ type: 'native', wire: 'anthropic-messages', block }]);
    },
  );

  test.each([undefined, null, 'custom'])('of type %s are functions', (type) => {
    expect(parse({ tools: [{ type, name: 'f', input_schema: inputSchema }] }).tools).toEqual([
      {
        type: 'function',
        function: { name: 'f', parameters: inputSchema },
        ...(type === 'custom' ? { ext: rest({ type }) } : {}),
      },
    ]);
  });

  test('are strict on every wire if their schema allows it, else on this one only', () => {
    const closed = { ...inputSchema, additionalProperties: false };
    const [one, other] = parse({
      tools: [
        { name: 'f', input_schema: closed, strict: true },
        { name: 'g', input_schema: inputSchema, strict: true },
      ],
    }).tools!;
    expect(one).toEqual({ type: 'function', function: { name: 'f', parameters: closed, strict: true } });
    expect(other).toEqual({
      type: 'function',
      function: { name: 'g', parameters: inputSchema },
      ext: rest({ strict: true }),
    });
  });

  test("of the gateway are the gateway's", () => {
    expect(parse({ tools: [{ type: 'gateway:web_search', parameters: { max_results: 2 } }] }).tools).toEqual([
      { type: 'gateway:web_search', parameters: { max_results: 2 } },
    ]);
  });

  test.each<[object, Partial<ChatRequest>]>([
    [{ type: 'auto' }, { tool_choice: 'auto' }],
    [{ type: 'any' }, { tool_choice: 'required' }],
    [{ type: 'none' }, { tool_choice: 'none' }],
    [{ type: 'tool', name: 'f' }, { tool_choice: { type: 'function', function: { name: 'f' } } }],
    [
      { type: 'auto', disable_parallel_tool_use: true },
      { tool_choice: 'auto', parallel_tool_calls: false },
    ],
    [{ type: 'any', disable_parallel_tool_use: false }, { tool_choice: 'required' }],
  ])('with the choice %j', (toolChoice, expected) => {
    const {
      ext,
      model: _m,
      messages: _s,
      tools: _t,
      ...request
    } = parse({ tools: [{ name: 'f', input_schema: inputSchema }], tool_choice: toolChoice });
    expect(request).toEqual(expected);
    expect(ext?.rest).toEqual({ tool_choice: toolChoice });
  });
});

describe('messages', () => {
  const cacheControl = { type: 'ephemeral' };

  test('the system prompt is the first message, and a later system message stays in its place', () => {
    const body = {
      system: [{ type: 'text', text: 'A', cache_control: cacheControl }],
      messages: [...hello, { role: 'system', content: 'B', clear_at: 'never' }],
    };
    expect(parse(body).messages).toEqual([
      { role: 'system', content: [{ type: 'text', text: 'A', cache_control: cacheControl }] },
      ...hello,
      { role: 'system', content: 'B', ext: rest({ role: 'system', clear_at: 'never' }) },
    ]);
    expect(parse({ system: 'A' }).messages[0]).toEqual({ role: 'system', content: 'A' });
  });

  test.each<[string, object, object]>([
    [
      'a text',
      { type: 'text', text: 'a', cache_control: cacheControl },
      { type: 'text', text: 'a', cache_control: cacheControl },
    ],
    [
      'an image by URL',
      { type: 'image', source: { type: 'url', url: 'https://a.example/b.png' } },
      { type: 'image_url', image_url: { url: 'https://a.example/b.png' } },
    ],
    [
      'an image',
      { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' }, cache_control: cacheControl },
      { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' }, cache_control: cacheControl },
    ],
    [
      'an image by id, which only this wire has',
      { type: 'image', source: { type: 'file', file_id: 'f' } },
      { type: 'native', wire: 'anthropic-messages', block: { type: 'image', source: { type: 'file', file_id: 'f' } } },
    ],
    [
      'a PDF',
      { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: 'AAAA' }, title: 't' },
      { type: 'file', file: { file_data: 'data:application/pdf;base64,AAAA', filename: 't' } },
    ],
    [
      'a document by URL, with citations',
      {
        type: 'document',
        source: { type: 'url', url: 'https://a.example/b.pdf' },
        context: 'c',
        citations: { enabled: true },
      },
      {
        type: 'file',
        file: { file_data: 'https://a.example/b.pdf' },
        ext: rest({ context: 'c', citations: { enabled: true } }),
      },
    ],
    [
      'a text document',
      { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'Hi' } },
      { type: 'file', file: { file_data: 'data:text/plain;base64,SGk=' } },
    ],
    [
      'a document by id',
      { type: 'document', source: { type: 'file', file_id: 'f' } },
      { type: 'file', file: { file_id: 'f' } },
    ],
    [
      'a document of text blocks, which is text on other wires',
      {
        type: 'document',
        source: {
          type: 'content',
          content: [
            { type: 'text', text: 'a' },
            { type: 'text', text: 'b' },
          ],
        },
        title: 'T',
        cache_control: cacheControl,
      },
      {
        type: 'text',
        text: 'T\na\nb',
        cache_control: cacheControl,
        ext: rest({
          type: 'document',
          source: {
            type: 'content',
            content: [
              { type: 'text', text: 'a' },
              { type: 'text', text: 'b' },
            ],
          },
          title: 'T',
        }),
      },
    ],
    [
      'a document whose blocks are a string',
      { type: 'document', source: { type: 'content', content: 'a' } },
      { type: 'text', text: 'a', ext: rest({ type: 'document', source: { type: 'content', content: 'a' } }) },
    ],
    [
      'a document of images, which only this wire has',
      {
        type: 'document',
        source: { type: 'content', content: [{ type: 'image', source: { type: 'url', url: 'u' } }] },
      },
      {
        type: 'file',
        file: {},
        ext: rest({ source: { type: 'content', content: [{ type: 'image', source: { type: 'url', url: 'u' } }] } }),
      },
    ],
    [
      'a search result, which is text on other wires',
      { type: 'search_result', source: 'https://a.example', title: 'T', content: [{ type: 'text', text: 'a' }] },
      {
        type: 'text',
        text: 'T\nhttps://a.example\na',
        ext: rest({
          type: 'search_result',
          source: 'https://a.example',
          title: 'T',
          content: [{ type: 'text', text: 'a' }],
        }),
      },
    ],
    [
      'an upload for a container',
      { type: 'container_upload', file_id: 'f' },
      { type: 'native', wire: 'anthropic-messages', block: { type: 'container_upload', file_id: 'f' } },
    ],
  ])('%s', (_title, block, part) => {
    expect(turn([block])).toEqual([{ role: 'user', content: [part] }]);
  });

  test("tool results become messages of their own, before the rest of the user's message", () => {
    expect(
      turn([
        { type: 'text', text: 'so' },
        { type: 'tool_result', tool_use_id: 'a', content: 'A', is_error: true, cache_control: cacheControl },
        {
          type: 'tool_result',
          tool_use_id: 'b',
          content: [
            { type: 'text', text: 'B' },
            { type: 'tool_reference', tool_name: 't' },
          ],
        },
        { type: 'tool_result', tool_use_id: 'c' },
      ]),
    ).toEqual([
      { role: 'tool', tool_call_id: 'a', content: 'A', cache_control: cacheControl, ext: rest({ is_error: true }) },
      {
        role: 'tool',
        tool_call_id: 'b',
        content: [
          { type: 'text', text: 'B' },
          { type: 'native', wire: 'anthropic-messages', block: { type: 'tool_reference', tool_name: 't' } },
        ],
      },
      { role: 'tool', tool_call_id: 'c', content: '' },
      { role: 'user', content: [{ type: 'text', text: 'so' }] },
    ]);
  });

  test('a cache hint on the last block belongs to the turn, and one on another block to the block', () => {
    const blocks = [
      { type: 'text', text: 'a', cache_control: cacheControl },
      { type: 'tool_use', id: 'c', name: 'f', input: {}, cache_control: cacheControl },
      { type: 'thinking', thinking: 'hm', signature: 'S' },
    ];
    const [message] = turn(blocks, 'assistant');
    expect(message).toMatchObject({
      content: 'a',
      cache_control: cacheControl,
      ext: { order: [{ kind: 'text', ext: rest({ cache_control: cacheControl }) }, { kind: 'call' }, {}] },
    });
    expect(message?.tool_calls?.[0]).not.toHaveProperty('ext');
    expect(turn([{ type: 'text', text: 'a', cache_control: cacheControl }], 'assistant')).toEqual([
      { role: 'assistant', content: 'a', cache_control: cacheControl },
    ]);
  });

  test('an assistant turn keeps the order of its blocks, and blocks that only this wire has', () => {
    const search = { type: 'server_tool_use', id: 's', name: 'web_search', input: { query: 'q' } };
    const result = { type: 'web_search_tool_result', tool_use_id: 's', content: [] };
    const [message] = turn(
      [
        { type: 'text', text: 'Well. ' },
        { type: 'thinking', thinking: 'hm', signature: 'S' },
        search,
        result,
        { type: 'redacted_thinking', data: 'D' },
        { type: 'text', text: 'So.' },
        { type: 'tool_use', id: 'c', name: 'f', input: { a: 1 }, caller: { type: 'direct' } },
      ],
      'assistant',
    );
    const format = 'anthropic-claude-v1';
    expect(message).toMatchObject({
      content: [
        { type: 'text', text: 'Well. ' },
        { type: 'text', text: 'So.' },
      ],
      reasoning_details: [
        { type: 'reasoning.text', text: 'hm', signature: 'S', format },
        { type: 'reasoning.encrypted', data: 'D', format },
      ],
      tool_calls: [
        {
          id: 'c',
          type: 'function',
          function: { name: 'f', arguments: '{"a":1}' },
          ext: rest({ caller: { type: 'direct' } }),
        },
      ],
      ext: { natives: [{ block: search }, { block: result }] },
    });
    expect(message?.ext?.order?.map(({ kind }) => kind)).toEqual([
      'text',
      'reasoning',
      'native',
      'native',
      'reasoning',
      'text',
      'call',
    ]);
  });
});

describe('reasoning of other wires is restored from its envelope', () => {
  const ofGoogle: ReasoningDetail = { type: 'reasoning.text', text: 'hm', signature: 'G', format: 'google-gemini-v1' };
  const summary: ReasoningDetail = { type: 'reasoning.summary', summary: '', format: 'openai-responses-v1' };
  const item: ReasoningDetail = { type: 'reasoning.encrypted', data: 'E', id: 'rs_1', format: 'openai-responses-v1' };
  const wrap = (...details: ReasoningDetail[]) => envelope.wrap(details)!;

  test('from thinking and redacted thinking, each in its place', () => {
    const [message] = turn(
      [
        { type: 'thinking', thinking: 'shown', signature: wrap(summary, item) },
        { type: 'text', text: 'a' },
        { type: 'redacted_thinking', data: wrap(ofGoogle) },
        { type: 'thinking', thinking: 'mine', signature: 'S' },
        { type: 'text', text: 'b' },
      ],
      'assistant',
    );
    expect(message?.reasoning_details).toEqual([
      { ...summary, summary: 'shown', index: 0 },
      { ...item, index: 1 },
      { ...ofGoogle, index: 2 },
      { type: 'reasoning.text', text: 'mine', signature: 'S', format: 'anthropic-claude-v1', id: null, index: 3 },
    ]);
    expect(message?.ext?.order).toEqual([
      { kind: 'reasoning', at: 0, span: 2 },
      { kind: 'text', at: 0 },
      { kind: 'reasoning', at: 2 },
      { kind: 'reasoning', at: 3 },
      { kind: 'text', at: 1 },
    ]);
  });

  test('with its texts unchanged', () => {
    const both = [
      { ...summary, summary: 'one' },
      { ...summary, summary: 'two' },
    ];
    const [message] = turn([{ type: 'thinking', thinking: 'one\n\ntwo', signature: wrap(...both) }], 'assistant');
    expect(message?.reasoning_details?.map((detail) => 'summary' in detail && detail.summary)).toEqual(['one', 'two']);
  });

  test('with a text of the block if it can only belong to one detail', () => {
    const opened = (thinking: string, ...details: ReasoningDetail[]) =>
      turn([{ type: 'thinking', thinking, signature: wrap(...details) }], 'assistant')[0]?.reasoning_details;
    expect(opened('shown', { ...ofGoogle, text: '' })).toEqual([{ ...ofGoogle, text: 'shown', index: 0 }]);
    const silent = [summary, { ...summary, summary: 'two' }];
    expect(opened('one\n\ntwo', ...silent)).toEqual(silent.map((detail, index) => ({ ...detail, index })));
  });

  test.each([
    ['changed', `${wrap(ofGoogle)}x`],
    ['of another organization', createEnvelopes('secret')('other').wrap([ofGoogle])!],
    ['of another gateway', createEnvelopes('other')('org').wrap([ofGoogle])!],
    ['nonsense', 'gw1.AAAA'],
  ])('unless it is %s', (_title, signature) => {
    const [message] = turn(
      [
        { type: 'text', text: 'a' },
        { type: 'thinking', thinking: 'hm', signature },
        { type: 'redacted_thinking', data: signature },
        { type: 'text', text: 'b' },
      ],
      'assistant',
    );
    expect(message?.reasoning_details).toEqual([]);
    expect(JSON.stringify(message)).not.toContain('gw1.');
    expect(message?.ext?.order?.map(({ kind }) => kind)).toEqual(['text', 'text']);
  });

  test('encoded call ids are decoded, in calls and in results', () => {
    const shown = `gwid_${Buffer.from('functions.f:0').toString('base64url')}`;
    const messages = [
      { role: 'assistant', content: [{ type: 'tool_use', id: shown, name: 'f', input: {} }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: shown, content: 'x' }] },
    ];
    const [call, result] = parse({ messages }).messages;
    expect([call?.tool_calls?.[0]?.id, result?.tool_call_id]).toEqual(['functions.f:0', 'functions.f:0']);
  });
});

describe('400 names the field', () => {
  test.each<[string, object]>([
    ['thread', { thread: { type: 'create' } }],
    ['inference_geo', { inference_geo: 'us' }],
  ])('%s', (field, body) => {
    expect(() => parse(body)).toThrow(
      expect.objectContaining({ status: 400, message: expect.stringContaining(field) }),
    );
    expect(() => parse(body)).toThrow(GatewayError);
  });

  const bodyWith = (block: object) => ({ messages: [{ role: 'user', content: [block] }] });
  test.each<[string, object]>([
    ['messages', { messages: [] }],
    ['messages[0].role', { messages: [{ role: 'robot', content: 'x' }] }],
    ['messages[0].content', { messages: [{ role: 'user' }] }],
    ['messages[0].content[0].type', bodyWith({ type: 'smell' })],
    ['messages[0].content[0].type', bodyWith({ type: 'native', wire: 'anthropic-messages', block: {} })],
    ['messages[0].content[0].text', bodyWith({ type: 'text' })],
    ['messages[0].content[0].source.type', bodyWith({ type: 'image', source: { type: 'disk' } })],
    ['messages[0].content[0].source.url', bodyWith({ type: 'image', source: { type: 'url' } })],
    [
      'messages[0].content[0].cache_control.ttl',
      bodyWith({ type: 'text', text: 'x', cache_control: { type: 'ephemeral', ttl: '2h' } }),
    ],
    ['messages[0].content[0].tool_use_id', bodyWith({ type: 'tool_result', content: 'x' })],
    [
      'messages[0].content[0].content[0].type',
      bodyWith({ type: 'tool_result', tool_use_id: 'a', content: [{ type: 'tool_use' }] }),
    ],
    ['max_tokens', { max_tokens: -1 }],
    ['temperature', { temperature: 3 }],
    ['top_p', { top_p: 2 }],
    ['stop_sequences', { stop_sequences: 'a' }],
    ['system[0].type', { system: [{ type: 'image' }] }],
    ['thinking.type', { thinking: { type: 'perhaps' } }],
    ['thinking.budget_tokens', { thinking: { type: 'enabled' } }],
    ['output_config.effort', { output_config: { effort: 'some' } }],
    ['output_config.format.type', { output_config: { format: { type: 'json_object' } } }],
    ['tools[0].input_schema', { tools: [{ name: 'f' }] }],
    ['tools[0].name', { tools: [{ type: 'custom', input_schema: {} }] }],
    ['tools[0]', { tools: [{ type: 'native', wire: 'anthropic-messages', block: {} }] }],
    ['tool_choice.type', { tool_choice: { type: 'maybe' } }],
    ['tool_choice.name', { tool_choice: { type: 'tool' } }],
    ['metadata.user_id', { metadata: { user_id: 5 } }],
  ])('%s', (field, body) => {
    const violations = explain(MessagesBody as never, { model: 'a/b', messages: hello, ...body }, '');
    expect(violations.map(({ path }) => path)).toContain(field);
  });
});

test("blocks of the gateway's own tools are removed from a conversation, and those of the provider stay", () => {
  const search = (id: string) => [
    { type: 'server_tool_use', id, name: 'web_search', input: { query: 'q' } },
    { type: 'web_search_tool_result', tool_use_id: id, content: [] },
  ];
  const blocks = [...search('srvtoolu_gateway_1'), ...search('srvtoolu_1'), { type: 'text', text: 'Yes' }];
  const translated = JSON.stringify(parse({ messages: [...hello, { role: 'assistant', content: blocks }] }).messages);
  expect(translated).not.toContain('srvtoolu_gateway_1');
  expect(translated.match(/"srvtoolu_1"/g)).toHaveLength(2);
  expect(translated).toContain('Yes');
});

test("a turn that contains only blocks of the gateway's tools is removed", () => {
  const blocks = [{ type: 'server_tool_use', id: 'srvtoolu_gateway_1', name: 'web_search', input: {} }];
  const { messages } = parse({ messages: [...hello, { role: 'assistant', content: blocks }, ...hello] });
  expect(messages.map(({ role }) => role)).toEqual(['user', 'user']);
});
