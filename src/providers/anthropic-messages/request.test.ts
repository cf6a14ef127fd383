import type Anthropic from '@anthropic-ai/sdk';
import fc from 'fast-check';
import { describe, expect, expectTypeOf, test } from 'vitest';
import { inTier } from '../../../test/tier.ts';
import { chatClient } from '../../api/chat/client.ts';
import { messagesClient } from '../../api/messages/client.ts';
import { limits } from '../../limits.ts';
import type { ChatRequest, Message } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import type { Quirks } from '../quirks.ts';
import { hashUser } from '../shared/user-hash.ts';
import { anthropicMessages } from './index.ts';
import type {
  WireDocument,
  WireImage,
  WireOutputConfig,
  WireRedactedThinking,
  WireRequest,
  WireText,
  WireThinking,
  WireThinkingConfig,
  WireTool,
  WireToolChoice,
  WireToolResult,
  WireToolUse,
} from './wire.ts';

function encode(request: Partial<ChatRequest>, quirks: Quirks = {}, stripState = false) {
  const endpoint = {
    model: 'anthropic/claude',
    provider: 'anthropic',
    upstream_model: 'claude',
    max_completion_tokens: 32_000,
    context_length: 200_000,
    input_modalities: ['text'],
    quirks,
  };
  const { body, report, state } = anthropicMessages.encodeRequest(
    { messages: [{ role: 'user', content: 'Hi' }], ...request },
    endpoint,
    { media: new Map(), strip_state: stripState },
  );
  return { body, fields: report.map(({ kind, field }) => `${kind} ${field}`), state };
}

test('everything that this dialect writes has the types that the provider publishes', () => {
  expectTypeOf<WireText>().toExtend<Anthropic.TextBlockParam>();
  expectTypeOf<WireImage>().toExtend<Anthropic.ImageBlockParam>();
  expectTypeOf<WireDocument>().toExtend<Anthropic.DocumentBlockParam>();
  expectTypeOf<WireThinking>().toExtend<Anthropic.ThinkingBlockParam>();
  expectTypeOf<WireRedactedThinking>().toExtend<Anthropic.RedactedThinkingBlockParam>();
  expectTypeOf<WireToolUse>().toExtend<Anthropic.ToolUseBlockParam>();
  expectTypeOf<Omit<WireToolResult, 'content'>>().toExtend<Anthropic.ToolResultBlockParam>();
  expectTypeOf<Omit<WireTool, 'input_schema'>>().toExtend<Omit<Anthropic.Tool, 'input_schema'>>();
  expectTypeOf<WireToolChoice>().toExtend<Anthropic.ToolChoice>();
  expectTypeOf<WireThinkingConfig>().toExtend<Anthropic.ThinkingConfigParam>();
  expectTypeOf<Omit<WireOutputConfig, 'format'>>().toExtend<Anthropic.OutputConfig>();
  // Lists of blocks and tools also contain entries that the gateway only passes through.
  type Carried = 'messages' | 'tools';
  expectTypeOf<Omit<WireRequest, Carried>>().toExtend<Omit<Anthropic.MessageCreateParams, Carried>>();
});

describe('thinking', () => {
  // effort | requested budget | max_tokens -> sent budget
  test.each([
    ['max', undefined, 10_000, 9_500],
    ['xhigh', undefined, 10_000, 9_500],
    ['high', undefined, 10_000, 8_000],
    ['medium', undefined, 10_000, 5_000],
    ['low', undefined, 10_000, 2_000],
    ['minimal', undefined, 10_000, 1_024],
    [undefined, 3_000, 10_000, 3_000],
    [undefined, 500, 10_000, 1_024],
    [undefined, 10_000, 10_000, 8_000],
    [undefined, 200_000, undefined, 25_600],
    ['medium', undefined, 1_025, 1_024],
    ['high', undefined, 1_024, undefined],
  ] as const)('effort %s, budget %s within %s tokens: a budget of %s', (effort, maxTokens, bound, budget) => {
    const { body } = encode({
      reasoning: { effort: effort ?? null, max_tokens: maxTokens ?? null },
      max_tokens: bound ?? null,
    });
    const thinking = body['thinking'] as JsonObject | undefined;
    expect(thinking?.['budget_tokens']).toBe(budget);
    if (budget !== undefined) expect(budget).toBeLessThan(Number(body['max_tokens']));
    expect(body['max_tokens']).toBe(bound ?? 32_000);
  });

  // quirks of the model | requested reasoning -> sent effort
  test.each<[Quirks, ChatRequest['reasoning'], string | undefined]>([
    [{ effort_max: 'max' }, { effort: 'max' }, 'max'],
    [{ effort_max: 'max', no_xhigh: true }, { effort: 'xhigh' }, 'high'],
    [{ effort_max: 'high' }, { effort: 'max' }, 'high'],
    [{ effort_max: 'max' }, { effort: 'minimal' }, 'low'],
    [{ effort_max: 'max' }, { max_tokens: 16_000 }, 'medium'],
    [{ effort_max: 'max' }, { enabled: true }, undefined],
  ])('adaptive: with %o a request of %o', (quirks, reasoning, effort) => {
    const { body } = encode({ reasoning: reasoning ?? null }, { ...quirks, thinking: 'adaptive' });
    expect(body['thinking']).toEqual({ type: 'adaptive' });
    expect((body['output_config'] as JsonObject | undefined)?.['effort']).toBe(effort);
  });

  test('is turned off only for models that support it', () => {
    const off = { reasoning: { effort: 'none' } } as const;
    expect(encode(off, { thinking: 'adaptive' }).body['thinking']).toBeUndefined();
    expect(encode({ reasoning: { max_tokens: 0 } }).body['thinking']).toBeUndefined();
    expect(encode(off, { thinking: 'adaptive', thinking_default: 'on' }).body['thinking']).toEqual({
      type: 'disabled',
    });
    expect(encode(off, { thinking: 'adaptive', thinking_default: 'always' }).body['thinking']).toBeUndefined();
  });

  test('the exact setting of a Messages client takes precedence over its translation', () => {
    const thinking = { type: 'enabled', budget_tokens: 2_000, display: 'summarized' };
    const ext = {
      wire: 'anthropic-messages',
      client: messagesClient,
      rest: { thinking, stream: true, container: 'c' },
    } as const;
    const { body } = encode({ reasoning: { max_tokens: 2_000 }, ext });
    expect(body).toMatchObject({ thinking, container: 'c' });
    expect(body['stream']).toBeUndefined();
  });
});

describe('opaque state', () => {
  const history: Message[] = [
    { role: 'user', content: 'Hi' },
    {
      role: 'assistant',
      content: 'Yes',
      reasoning_details: [{ type: 'reasoning.text', text: 't', signature: 's', format: 'anthropic-claude-v1' }],
      ext: {
        wire: 'anthropic-messages',
        rest: {},
        order: [
          { kind: 'reasoning', at: 0 },
          { kind: 'native', at: 0 },
          { kind: 'text', at: 0, ext: { wire: 'anthropic-messages', rest: { citations: [{ encrypted_index: 'x' }] } } },
        ],
        natives: [
          { type: 'native', wire: 'anthropic-messages', block: { type: 'web_search_tool_result', content: [] } },
        ],
      },
    },
    { role: 'user', content: 'Go on' },
  ];
  const assistant = (strip: boolean) => (encode({ messages: history }, {}, strip).body['messages'] as JsonObject[])[1];

  test('is sent back unchanged', () => {
    expect(assistant(false)?.['content']).toEqual([
      { type: 'thinking', thinking: 't', signature: 's' },
      { type: 'web_search_tool_result', content: [] },
      { type: 'text', text: 'Yes', citations: [{ encrypted_index: 'x' }] },
    ]);
  });

  test('is removed for a retry, and only the text stays', () => {
    expect(assistant(true)?.['content']).toEqual([{ type: 'text', text: 'Yes' }]);
  });
});

test('the end user is sent only as a hash, the same for every request', () => {
  expect(encode({ user: 'ada' }).body['metadata']).toEqual({ user_id: hashUser('ada') });
  expect(hashUser('ada')).toMatch(/^[0-9a-f]{64}$/);
  expect(hashUser('ada')).not.toBe(hashUser('bob'));
});

describe('members that clients leave empty', () => {
  const user = (content: unknown[]) => ({ messages: [{ role: 'user', content } as unknown as Message] });
  const blocksOf = (request: Partial<ChatRequest>) =>
    (encode(request).body['messages'] as JsonObject[])[0]?.['content'];

  test('a cache hint whose lifetime is null is sent without a lifetime', () => {
    const cacheControl = { type: 'ephemeral', ttl: null } as unknown as NonNullable<ChatRequest['cache_control']>;
    expect(encode({ cache_control: cacheControl }).body['cache_control']).toEqual({ type: 'ephemeral' });
    expect(blocksOf(user([{ type: 'text', text: 'Hi', cache_control: cacheControl }]))).toEqual([
      { type: 'text', text: 'Hi', cache_control: { type: 'ephemeral' } },
    ]);
  });

  test('members of a file that are null are ignored', () => {
    const file = { file_data: null, file_id: 'file_1', filename: null };
    expect(blocksOf(user([{ type: 'file', file }]))).toEqual([
      { type: 'document', source: { type: 'file', file_id: 'file_1' } },
    ]);
    const data = { file_data: 'data:text/plain,Hi', file_id: null, filename: 'a.txt' };
    expect(blocksOf(user([{ type: 'file', file: data }]))).toEqual([
      { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'Hi' }, title: 'a.txt' },
    ]);
    const none = { file_data: null, file_id: null };
    expect(() => encode(user([{ type: 'file', file: none }]))).toThrow('the file has neither data nor an id');
  });
});

test('a cache hint on a whole message is put on its last block', () => {
  const cacheControl = { type: 'ephemeral' } as const;
  const call = { id: 'c1', type: 'function', function: { name: 'f', arguments: '{}' } } as const;
  const signed = { type: 'reasoning.text', text: 't', signature: 's', format: 'anthropic-claude-v1' } as const;
  const { body } = encode({
    messages: [
      { role: 'system', content: 'Be brief', cache_control: cacheControl },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'a' },
          { type: 'text', text: 'b' },
        ],
        cache_control: cacheControl,
        name: 'ada',
      },
      {
        role: 'assistant',
        content: null,
        reasoning_details: [signed],
        tool_calls: [call],
        cache_control: cacheControl,
      },
      { role: 'tool', tool_call_id: 'c1', content: 'ok', cache_control: { type: 'ephemeral', ttl: '1h' } },
      { role: 'assistant', content: null, reasoning_details: [signed], cache_control: cacheControl },
      { role: 'user', content: 'Go on', cache_control: null },
    ],
  });
  // At most four breakpoints, and none with a shorter lifetime before one of an hour.
  const held = JSON.stringify([body['system'], body['messages']]);
  expect(held.match(/"cache_control":\{[^}]*\}/g)).toEqual(Array(4).fill('"cache_control":{"type":"ephemeral"}'));
  expect(body['messages']).toMatchObject([
    { content: [{ text: 'ada: a' }, { text: 'b', cache_control: cacheControl }] },
    { content: [{ type: 'thinking' }, { type: 'tool_use', cache_control: cacheControl }] },
    { content: [{ type: 'tool_result', cache_control: cacheControl }] },
    { content: [{ type: 'thinking', signature: 's' }] },
    { content: [{ text: 'Go on' }] },
  ]);
});

test('a PDF may be bare base64', () => {
  const file = { file_data: 'JVBERi0xLjQK', filename: 'a.pdf' };
  const { body } = encode({ messages: [{ role: 'user', content: [{ type: 'file', file }] }] });
  expect(body['messages']).toMatchObject([
    { content: [{ source: { type: 'base64', media_type: 'application/pdf', data: file.file_data } }] },
  ]);
});

test('media in assistant messages are dropped, and the text stays', () => {
  const content: Message['content'] = [
    { type: 'text', text: 'Look' },
    { type: 'image_url', image_url: { url: 'data:image/png;base64,AA' } },
    { type: 'input_audio', input_audio: { data: 'AA', format: 'wav' } },
  ];
  const turn: Message = { role: 'assistant', content };
  const { body, fields } = encode({
    messages: [{ role: 'user', content: 'Hi' }, turn, { role: 'user', content: 'So' }],
  });
  expect((body['messages'] as JsonObject[])[1]?.['content']).toEqual([{ type: 'text', text: 'Look' }]);
  expect(fields).toEqual(['dropped messages[1].content[1]', 'dropped messages[1].content[2]']);
});

test('parameters without a field on this wire are dropped and reported, except those for the gateway', () => {
  const { body, fields } = encode({
    seed: 1,
    store: true,
    prompt_cache_retention: '24h',
    web_search_options: {},
    frequency_penalty: null,
    provider: { sort: 'price' },
    transforms: ['middle-out'],
    usage: { include: true },
    preset: 'p',
    trace: {},
    ext: { wire: 'openai-chat', client: chatClient, rest: {} },
  });
  expect(Object.keys(body).sort()).toEqual(['max_tokens', 'messages', 'model']);
  expect(fields.sort()).toEqual([
    'dropped prompt_cache_retention',
    'dropped seed',
    'dropped store',
    'dropped web_search_options',
  ]);
});

test('the end user may be named by user or by safety_identifier', () => {
  expect(encode({ safety_identifier: 'ada' }).body['metadata']).toEqual({ user_id: hashUser('ada') });
  expect(encode({ user: 'bob', safety_identifier: 'ada' }).body['metadata']).toEqual({ user_id: hashUser('bob') });
  expect(encode({ user: '' }).body['metadata']).toBeUndefined();
});

test('top_k is rounded down to a whole number', () => {
  expect(encode({ top_k: 40 })).toMatchObject({ body: { top_k: 40 }, fields: [] });
  expect(encode({ top_k: 1.5 })).toMatchObject({ body: { top_k: 1 }, fields: ['changed top_k'] });
});

test('numbers in arguments are sent as written', () => {
  const text = '{"a":7006652.0,"b":12345678901234567890,"c":[-0,1e400,0.1],"d":1}';
  const call = { id: 'c1', type: 'function', function: { name: 'f', arguments: text } } as const;
  const messages: Message[] = [
    { role: 'user', content: 'Hi' },
    { role: 'assistant', content: null, tool_calls: [call] },
    { role: 'tool', tool_call_id: 'c1', content: 'ok' },
  ];
  expect(JSON.stringify(encode({ messages }).body)).toContain(`"input":${text}`);
});

test('schema constraints that the decoder refuses are moved into the description', () => {
  const schema = { type: 'object', properties: { a: { type: 'string', pattern: '^x', format: 'date' } } };
  const { body } = encode({ response_format: { type: 'json_schema', json_schema: { name: 'n', schema } } });
  expect(body['output_config']).toEqual({
    format: {
      type: 'json_schema',
      schema: {
        type: 'object',
        properties: { a: { type: 'string', format: 'date', description: '(pattern: "^x")' } },
        additionalProperties: false,
      },
    },
  });
});

test('repeated call ids become unique, and results stay in order', () => {
  const calls = Array.from({ length: 8_000 }, (_, i) => ({
    id: 'a',
    type: 'function' as const,
    function: { name: `f${i}`, arguments: '{}' },
  }));
  const results = calls.slice(0, 3).map((_, i): Message => ({ role: 'tool', tool_call_id: 'a', content: `r${i}` }));
  const { body, fields } = encode({ messages: [{ role: 'assistant', tool_calls: calls }, ...results] });
  expect(fields).toHaveLength(limits.reports_max);
  const [, second, third] = body['messages'] as { content: JsonObject[] }[];
  const ids = second?.content.map((block) => block['id']);
  expect(new Set(ids).size).toBe(calls.length);
  expect(third?.content.map((block) => block['tool_use_id'])).toEqual(ids);
  expect(third?.content.slice(0, 4).map((block) => block['content'])).toEqual(['r0', 'r1', 'r2', '(no result)']);
});

test('any conversation becomes turns that the wire accepts', () => {
  const id = fc.constantFrom('a', 'b', 'c d', '');
  const text = fc.constantFrom('x', '', '  ');
  const message: fc.Arbitrary<Message> = fc.oneof(
    fc.record({ role: fc.constantFrom('user' as const, 'system' as const), content: text }),
    fc.record({ role: fc.constant('tool' as const), tool_call_id: id, content: text }),
    fc.record({
      role: fc.constant('assistant' as const),
      content: text,
      tool_calls: fc.array(
        id.map((call) => ({ id: call, type: 'function' as const, function: { name: 'f.g', arguments: '{}' } })),
        { maxLength: 3 },
      ),
    }),
  );
  fc.assert(
    fc.property(fc.array(message, { maxLength: 12 }), fc.boolean(), (messages, midSystem) => {
      const { body } = encode({ messages }, { mid_system: midSystem });
      const turns = body['messages'] as { role: string; content: JsonObject[] }[];
      expect(turns[0]?.role).toBe('user');
      const ids: unknown[] = [];
      for (const [i, { role, content }] of turns.entries()) {
        expect(content.length).toBeGreaterThan(0);
        if (i > 0) expect(role).not.toBe(turns[i - 1]?.role);
        for (const block of content) if (block['type'] === 'text') expect(String(block['text']).trim()).not.toBe('');
        const calls = content.filter((block) => block['type'] === 'tool_use').map((block) => block['id']);
        ids.push(...calls);
        if (role !== 'assistant') continue;
        const next = turns[i + 1]?.content ?? [];
        expect(next.slice(0, calls.length).map((block) => block['tool_use_id'])).toEqual(calls);
        expect(next.slice(calls.length).some((block) => block['type'] === 'tool_result')).toBe(false);
      }
      expect(new Set(ids).size).toBe(ids.length);
      expect(ids.every((call) => /^[A-Za-z0-9_-]{1,64}$/.test(String(call)))).toBe(true);
    }),
    { numRuns: inTier(100, 1_000) },
  );
});
