/**
 * Any request of the Messages API through its parser: to upstreams of its own wire unchanged, to others in their form.
 */
import fc from 'fast-check';
import { Compile } from 'typebox/compile';
import { describe, expect, test } from 'vitest';
import { messagesRequest } from '../../src/api/messages/parse-request.ts';
import { GatewayError } from '../../src/errors.ts';
import { anthropicMessages } from '../../src/providers/anthropic-messages/index.ts';
import { anthropicModelQuirks } from '../../src/providers/anthropic-messages/model-quirks.ts';
import { dialects } from '../../src/providers/dialects.ts';
import { hashUser } from '../../src/providers/shared/user-hash.ts';
import type { JsonObject, JsonValue } from '../../src/schemas/json.ts';
import { MessagesBody } from '../../src/schemas/messages.ts';
import { array, object } from '../readings/recordings.ts';
import { inTier } from '../tier.ts';

const check = Compile(MessagesBody);
const ENDPOINT = {
  model: 'anthropic/claude',
  provider: 'anthropic',
  upstream_model: 'claude-opus-4-5',
  max_completion_tokens: 1000,
  context_length: undefined,
  input_modalities: ['text', 'image', 'file'],
};
const NO_ENVELOPE = { wrap: () => undefined, unwrap: () => undefined };
const OPTIONS = { media: new Map(), strip_state: false };

function ask(body: JsonObject, betas: string[] = []) {
  return messagesRequest(body as never, { envelope: NO_ENVELOPE, betas });
}

/** The body that reaches an upstream of this wire. */
function send(body: JsonObject, { name = 'claude-opus-4-5', betas = [] as string[], strip_state = false } = {}) {
  const whole = { model: 'm', max_tokens: 900, messages: [{ role: 'user', content: 'Hello' }], ...body };
  const endpoint = { ...ENDPOINT, upstream_model: name, quirks: anthropicModelQuirks(name) };
  const encoded = anthropicMessages.encodeRequest(ask(whole, betas), endpoint, { ...OPTIONS, strip_state });
  const reports = encoded.report.map(({ kind, field }) => `${kind} ${field}`);
  return { ...encoded, reports, whole };
}

const hello = { role: 'user', content: 'Hello' };
const tool = { name: 'f', input_schema: { type: 'object' } };
const use = { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'f', input: {} }] };
const result = { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'x' }] };
const marked = (text: string) => ({ type: 'text', text, cache_control: { type: 'ephemeral' } });
const thinking = { type: 'enabled', budget_tokens: 2000 };

describe('fields that the wire itself refuses, or that are repaired for other clients, are unchanged', () => {
  test.each<[string, JsonObject]>([
    ['more cache breakpoints than the maximum', { messages: [{ role: 'user', content: [...'abcdef'].map(marked) }] }],
    [
      'a cache of one hour after one of five minutes',
      {
        messages: [
          { role: 'user', content: [marked('a'), { ...marked('b'), cache_control: { type: 'ephemeral', ttl: '1h' } }] },
        ],
      },
    ],
    [
      'a cache hint of a future kind',
      {
        messages: [
          { role: 'user', content: [{ ...marked('a'), cache_control: { type: 'ephemeral', scope: 'global' } }] },
        ],
      },
    ],
    ['a forced tool with thinking', { thinking, tools: [tool], tool_choice: { type: 'any' } }],
    ['a tool choice without tools', { tool_choice: { type: 'auto' } }],
    ['sampling parameters with thinking', { thinking, temperature: 0.3, top_p: 0.5, top_k: 3 }],
    ['a temperature above the maximum', { temperature: 1.5 }],
    ['two sampling parameters', { temperature: 0.3, top_p: 0.5 }],
    ['a prefill that ends with white space', { messages: [hello, { role: 'assistant', content: 'Well ' }] }],
    ['a prefill with thinking', { thinking, messages: [hello, { role: 'assistant', content: 'Well' }] }],
    [
      'unsigned thinking',
      {
        messages: [
          hello,
          {
            role: 'assistant',
            content: [
              { type: 'thinking', thinking: 'hm', signature: '' },
              { type: 'text', text: 'a' },
            ],
          },
        ],
      },
    ],
    ['a tool loop without its thinking', { thinking, tools: [tool], messages: [hello, use, result] }],
    ['calls without tools', { messages: [hello, use, result] }],
    ['a call without its result', { tools: [tool], messages: [hello, use, hello] }],
    ['a result without its call', { messages: [result] }],
    ['an assistant turn first', { messages: [{ role: 'assistant', content: 'Hi' }, hello] }],
    [
      'two consecutive turns of one role',
      { messages: [hello, hello, { role: 'assistant', content: 'a' }, { role: 'assistant', content: 'b' }] },
    ],
    [
      'a system message between other turns',
      { messages: [hello, { role: 'system', content: 'Be brief.', clear_at: 'never' }] },
    ],
    ['a system message first', { messages: [{ role: 'system', content: 'Be brief.' }, hello] }],
    ['blank texts', { messages: [{ role: 'user', content: [{ type: 'text', text: ' ' }] }] }],
    ['stop sequences of white space', { stop_sequences: ['\n', 'END'] }],
    [
      'a schema that strict tools do not accept',
      {
        tools: [
          {
            name: 'f',
            strict: true,
            input_schema: { type: 'object', properties: { a: { type: 'string', minLength: 3 } } },
          },
        ],
      },
    ],
    [
      'a tool name that is too long, also in a call',
      {
        tools: [{ ...tool, name: 'f'.repeat(100) }],
        messages: [
          hello,
          { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'f'.repeat(100), input: {} }] },
          result,
        ],
      },
    ],
    ['empty turns', { messages: [{ role: 'user', content: [] }, { role: 'assistant', content: [] }, hello] }],
    [
      'an effort above the model’s maximum',
      { output_config: { effort: 'max', task_budget: { type: 'tokens', total: 5000 } } },
    ],
    ['an output format under its older name', { output_format: { type: 'json_schema', schema: { type: 'object' } } }],
    [
      'unknown options of thinking',
      { thinking: { type: 'adaptive', display: 'updates', block_binding: { type: 'x' } } },
    ],
    ['unknown fields', { container: 'c', context_management: { edits: [{ type: 'x' }] }, to_come: { a: [1] } }],
    [
      'MCP servers and their tools',
      {
        mcp_servers: [{ type: 'url', name: 'm', url: 'https://m.example', authorization_token: 't' }],
        tools: [
          { type: 'mcp_toolset', mcp_server_name: 'm' },
          { type: 'bash_20250124', name: 'bash' },
        ],
      },
    ],
    [
      'a search result',
      {
        messages: [
          {
            role: 'user',
            content: [
              {
                type: 'search_result',
                source: 's',
                title: 't',
                content: [{ type: 'text', text: 'a' }],
                citations: { enabled: true },
              },
            ],
          },
        ],
      },
    ],
  ])('%s', (_title, body) => {
    for (const name of ['claude-3-5-haiku', 'claude-opus-4-5', 'claude-opus-5-5', 'glm-5']) {
      const { body: sent, reports, whole } = send(body, { name });
      expect(sent).toEqual({ ...whole, model: name });
      expect(reports).toEqual([]);
    }
  });
});

describe('changes of the gateway are reported', () => {
  test.each<[string, JsonObject, JsonObject, string[]]>([
    ['a user id is hashed', { metadata: { user_id: 'u' } }, { metadata: { user_id: hashUser('u') } }, []],
    [
      'an output bound above the endpoint’s is lowered',
      { max_tokens: 5000 },
      { max_tokens: 1000 },
      ['clamped max_tokens'],
    ],
    ['a missing output bound is set', { max_tokens: null }, { max_tokens: 1000 }, []],
    ['fast mode, which has another price, is dropped', { speed: 'fast' }, { speed: undefined }, ['dropped speed']],
    [
      'fields that choose an address or version are dropped',
      { api_base: 'https://a.example', n: 3, anthropic_version: 'x' },
      { api_base: undefined, n: undefined, anthropic_version: undefined },
      ['dropped api_base', 'dropped n', 'dropped anthropic_version'],
    ],
    ['names of inherited members are ignored', { constructor: 1, toString: 'x' }, {}, []],
    [
      'a billing policy is dropped',
      { billing_policy: { type: 'x' } },
      { billing_policy: undefined },
      ['dropped billing_policy'],
    ],
    ['fallback models are removed', { fallbacks: [{ model: 'c/d' }] }, { fallbacks: undefined }, []],
    [
      'tool results move to the front of their turn',
      { messages: [hello, use, { role: 'user', content: [{ type: 'text', text: 'a' }, ...result.content] }] },
      { messages: [hello, use, { role: 'user', content: [...result.content, { type: 'text', text: 'a' }] }] },
      [],
    ],
    [
      'an id that the wire does not accept is replaced',
      {
        messages: [
          hello,
          { role: 'assistant', content: [{ type: 'tool_use', id: 'a:b', name: 'f', input: {} }] },
          { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a:b' }] },
        ],
      },
      {
        messages: [
          hello,
          {
            role: 'assistant',
            content: [{ type: 'tool_use', id: expect.stringMatching(/^\w+$/), name: 'f', input: {} }],
          },
          { role: 'user', content: [{ type: 'tool_result', tool_use_id: expect.stringMatching(/^\w+$/) }] },
        ],
      } as never,
      ['changed messages[1].tool_calls[0].id'],
    ],
  ])('%s', (_title, body, otherwise, reported) => {
    const { body: sent, reports, whole } = send(body);
    expect(sent).toEqual({ ...whole, model: 'claude-opus-4-5', ...otherwise });
    expect(reports).toEqual(reported);
  });

  test('a thinking budget that no longer fits the endpoint’s bound is lowered', () => {
    const endpoint = { ...ENDPOINT, max_completion_tokens: 4000, quirks: {} };
    const request = ask({ messages: [hello], max_tokens: 9000, thinking: { type: 'enabled', budget_tokens: 8000 } });
    const sent = (betas: string[]) =>
      anthropicMessages.encodeRequest({ ...request, ext: { ...request.ext!, betas } }, endpoint, OPTIONS).body[
        'thinking'
      ];
    expect(sent([])).toEqual({ type: 'enabled', budget_tokens: 3999 });
    expect(sent(['interleaved-thinking-2025-05-14'])).toEqual({ type: 'enabled', budget_tokens: 8000 });
  });

  test('after a refusal of its state a request is sent without it, and without thinking if it must not think', () => {
    const turn = { role: 'assistant', content: [{ type: 'thinking', thinking: 'hm', signature: 'S' }, ...use.content] };
    const { body, reports } = send({ thinking, tools: [tool], messages: [hello, turn, result] }, { strip_state: true });
    expect(body['messages']).toEqual([hello, use, result]);
    expect(body).not.toHaveProperty('thinking');
    expect(reports).toEqual(['dropped messages[1].reasoning_details[0]', 'changed thinking']);
  });

  test('a tool loop without any state of its model is sent without thinking after a refusal', () => {
    const request = { thinking, tools: [tool], messages: [hello, use, result] };
    expect(send(request).body['thinking']).toEqual(thinking);
    const { body, reports } = send(request, { strip_state: true });
    expect(body).not.toHaveProperty('thinking');
    expect(reports).toEqual(['changed thinking']);
  });

  test('a turn that has only unverified thinking is left out, and an empty turn stays', () => {
    const turn = { role: 'assistant', content: [{ type: 'thinking', thinking: 'hm', signature: 'gw1.x' }] };
    const empty = { role: 'assistant', content: [] };
    const body = { model: 'm', max_tokens: 900, messages: [hello, turn, hello, empty, hello] };
    const envelope = { ...NO_ENVELOPE, unwrap: (text: string) => (text.startsWith('gw1.') ? [] : undefined) };
    const request = messagesRequest(body as never, { envelope, betas: [] });
    const encoded = anthropicMessages.encodeRequest(request, { ...ENDPOINT, quirks: {} }, OPTIONS);
    expect(encoded.body['messages']).toEqual([hello, hello, empty, hello]);
  });

  test('a turn whose unverified thinking was removed by the parser is left out as well', () => {
    const turn = {
      role: 'assistant',
      content: [{ type: 'thinking', thinking: 'hm', signature: 'gw1.x' }, ...use.content],
    };
    const body = { model: 'm', max_tokens: 900, thinking, tools: [tool], messages: [hello, turn, result] };
    const envelope = { ...NO_ENVELOPE, unwrap: (text: string) => (text.startsWith('gw1.') ? [] : undefined) };
    const request = messagesRequest(body as never, { envelope, betas: [] });
    const encoded = anthropicMessages.encodeRequest(request, { ...ENDPOINT, quirks: {} }, OPTIONS);
    expect(encoded.body['messages']).toEqual([hello, use, result]);
    expect(encoded.body).not.toHaveProperty('thinking');
  });

  test('a parameter that routing removed for the endpoint does not return', () => {
    const request = ask({
      messages: [hello],
      thinking: { type: 'adaptive' },
      output_config: { effort: 'low', format: { type: 'json_schema', schema: {} }, task_budget: { total: 1 } },
      tools: [tool],
      tool_choice: { type: 'auto' },
    });
    const { reasoning: _r, verbosity: _v, response_format: _f, tools: _t, tool_choice: _c, ...fitted } = request;
    const { body } = anthropicMessages.encodeRequest(fitted, { ...ENDPOINT, quirks: {} }, OPTIONS);
    expect(body).toEqual({
      model: 'claude-opus-4-5',
      max_tokens: 1000,
      messages: [hello],
      output_config: { task_budget: { total: 1 } },
    });
  });

  test('the model’s variant enables thinking if the client does not set it', () => {
    const request = { ...ask({ messages: [hello], max_tokens: 900 }), reasoning: { enabled: true } };
    const quirks = anthropicModelQuirks('claude-opus-4-6');
    expect(anthropicMessages.encodeRequest(request, { ...ENDPOINT, quirks }, OPTIONS).body['thinking']).toEqual({
      type: 'adaptive',
    });
  });
});

test('the decoder gets the ids of the conversation', () => {
  expect(send({ messages: [hello, use, result] }).state.call_ids).toEqual(['toolu_1']);
});

describe('beta features', () => {
  const header = (betas: string[], quirks: object = {}) => {
    const { headers, report } = anthropicMessages.encodeRequest(
      ask({ messages: [hello] }, betas),
      { ...ENDPOINT, quirks },
      OPTIONS,
    );
    return { sent: headers['anthropic-beta'], dropped: report.map(({ field, reason }) => `${field}: ${reason}`) };
  };

  test('are passed on if they concern this answer only, whatever their date', () => {
    const betas = [
      'interleaved-thinking-2025-05-14',
      'files-api-2025-04-14',
      'skills-2027-01-01',
      'claude-code-20250219',
    ];
    expect(header(betas)).toEqual({ sent: betas.join(','), dropped: [] });
    expect(header([])).toEqual({ sent: undefined, dropped: [] });
  });

  test.each([
    'fast-mode-2026-02-01',
    'server-side-fallback-2026-07-01',
    'message-batches-2024-09-24',
    'context-1m-2025-08-07',
    'files-api',
    'to-come-2026-01-01',
    'a\r\nx-api-key: b',
  ])('%j is not passed on', (beta) =>
    expect(header([beta])).toEqual({ sent: undefined, dropped: [`anthropic-beta: ${beta} is not allowed`] }),
  );

  test('can be allowed by the operator', () => {
    const betas = ['to-come-2026-01-01', 'whole-name'];
    expect(header(betas, { betas: ['to-come', 'whole-name'] })).toEqual({ sent: betas.join(','), dropped: [] });
  });
});

// ---- Any request.

type Members = Record<string, fc.Arbitrary<unknown>>;
const some = (members: Members, required: string[] = []) => fc.record(members, { requiredKeys: required });
const text = fc.constantFrom(' ', 'x', 'Hi\n', '👋', '{"a":1}');
const hint = some({ type: fc.constant('ephemeral'), ttl: fc.constantFrom('5m', '1h'), scope: text }, ['type']);
const of = (type: string, members: Members = {}, required = Object.keys(members)) =>
  some({ type: fc.constant(type), ...members, cache_control: hint }, ['type', ...required]);
const textBlock = of('text', { text });
const source = fc.oneof(
  some({ type: fc.constant('url'), url: fc.constant('https://a.example/x') }, ['type', 'url']),
  some({ type: fc.constant('file'), file_id: text }, ['type', 'file_id']),
);
const image = of(
  'image',
  {
    source: fc.oneof(source, fc.constant({ type: 'base64', media_type: 'image/png', data: 'AAAA' })),
    transformations: fc.constant({ a: 1 }),
  },
  ['source'],
);
const document = of(
  'document',
  {
    source: fc.oneof(
      source,
      fc.constant({ type: 'base64', media_type: 'application/pdf', data: 'AAAA' }),
      text.map((data) => ({ type: 'text', media_type: 'text/plain', data })),
      fc.constant({ type: 'content', content: 'x' }),
    ),
    title: text,
    context: text,
    citations: fc.constant({ enabled: true }),
  },
  ['source'],
);
const searchResult = of('search_result', {
  source: text,
  title: text,
  content: fc.array(textBlock, { minLength: 1, maxLength: 2 }),
});
const own = fc.constantFrom(
  { type: 'server_tool_use', id: 's1', name: 'web_search', input: { query: 'q' } },
  {
    type: 'web_search_tool_result',
    tool_use_id: 's1',
    content: [{ type: 'web_search_result', url: 'https://a.example' }],
  },
  { type: 'container_upload', file_id: 'f' },
  { type: 'compaction', content: 'c' },
);
const id = fc.constantFrom('toolu_1', 'toolu_2', 'call_3');
const results = fc.oneof(
  of(
    'tool_result',
    {
      tool_use_id: id,
      content: fc.oneof(text, fc.array(fc.oneof(textBlock, image, document), { minLength: 1, maxLength: 2 })),
      is_error: fc.boolean(),
    },
    ['tool_use_id'],
  ),
);
const thought = fc.oneof(
  some({ type: fc.constant('thinking'), thinking: text, signature: fc.constantFrom('S', 'T') }, [
    'type',
    'thinking',
    'signature',
  ]),
  some({ type: fc.constant('redacted_thinking'), data: text }, ['type', 'data']),
);
const call = of(
  'tool_use',
  {
    id,
    name: fc.constantFrom('f', 'g'),
    input: fc.constantFrom({}, { a: [1, 'x'] }),
    caller: fc.constant({ type: 'direct' }),
  },
  ['id', 'name', 'input'],
);
const blocks = (...kinds: fc.Arbitrary<unknown>[]) => fc.array(fc.oneof(...kinds), { minLength: 1, maxLength: 5 });
const message = fc.oneof(
  fc.record({
    role: fc.constant('user'),
    content: fc.oneof(
      text,
      fc
        .tuple(fc.array(results, { maxLength: 2 }), blocks(textBlock, image, document, searchResult, own))
        .map(([first, then]) => [...first, ...then]),
    ),
  }),
  fc.record({
    role: fc.constant('assistant'),
    // An id is used once in a turn.
    content: fc.oneof(text, blocks(textBlock, thought, call, own).map(withoutTwins)),
  }),
);

function withoutTwins(list: unknown[]): unknown[] {
  const seen = new Set<unknown>();
  return list.filter((one) => {
    const { type, id: name } = one as { type: string; id?: string };
    if (type !== 'tool_use') return true;
    return seen.has(name) ? false : seen.add(name);
  });
}

const body = some(
  {
    messages: fc.array(message, { minLength: 1, maxLength: 5 }),
    system: fc.oneof(text, fc.array(textBlock, { minLength: 1, maxLength: 2 })),
    max_tokens: fc.constantFrom(1, 900),
    tools: fc.array(
      fc.oneof(
        some(
          {
            name: fc.constantFrom('f', 'g'),
            description: text,
            input_schema: fc.constant({ type: 'object' }),
            strict: fc.boolean(),
            cache_control: hint,
            defer_loading: fc.boolean(),
          },
          ['name', 'input_schema'],
        ),
        fc.constantFrom(
          { type: 'bash_20250124', name: 'bash' },
          { type: 'web_search_20250305', name: 'web_search', max_uses: 2 },
        ),
      ),
      { minLength: 1, maxLength: 3 },
    ),
    tool_choice: fc.constantFrom(
      { type: 'auto' },
      { type: 'any', disable_parallel_tool_use: true },
      { type: 'none' },
      { type: 'tool', name: 'f' },
    ),
    thinking: fc.constantFrom(
      { type: 'enabled', budget_tokens: 1024 },
      { type: 'adaptive', display: 'omitted' },
      { type: 'disabled' },
      { type: 'between_tools' },
    ),
    output_config: some({
      effort: fc.constantFrom('low', 'max'),
      format: fc.constant({ type: 'json_schema', schema: { type: 'object' } }),
    }),
    temperature: fc.constantFrom(0, 1),
    top_p: fc.constantFrom(0.5, 1),
    top_k: fc.constantFrom(1, 40),
    stop_sequences: fc.array(text, { minLength: 1, maxLength: 5 }),
    service_tier: fc.constantFrom('auto', 'standard_only'),
    cache_control: hint,
    context_management: fc.constant({ edits: [{ type: 'clear_tool_uses_20250919' }] }),
    stream: fc.boolean(),
  },
  ['messages', 'max_tokens'],
);

/** Parts of a body that are written in another way with the same meaning. */
function normal(value: JsonObject): JsonObject {
  const copy = JSON.parse(JSON.stringify(value)) as JsonObject;
  if (Object.keys(object(copy['output_config'])).length === 0) delete copy['output_config'];
  copy['messages'] = array(copy['messages']).map((turn) => {
    const { content, ...others } = object(turn);
    return { ...others, content: typeof content === 'string' ? [{ type: 'text', text: content }] : content! };
  });
  return copy;
}

test('to an upstream of its wire it is sent as it was written', () => {
  fc.assert(
    fc.property(body, (any) => {
      expect([...check.Errors(any)]).toEqual([]);
      const before = JSON.stringify(any);
      const { body: sent, reports } = send(any as JsonObject);
      expect(JSON.stringify(any)).toBe(before);
      expect(reports).toEqual([]);
      expect(normal(sent)).toEqual({ ...normal(any as JsonObject), model: 'claude-opus-4-5' });
    }),
    { numRuns: inTier(100, 1_000) },
  );
});

test.each([...dialects.values()].map((dialect) => [dialect.wire, dialect] as const))(
  'to %s it is sent without any term of this wire, or is refused with its field',
  (_wire, dialect) => {
    fc.assert(
      fc.property(body, fc.boolean(), (any, stripState) => {
        const request = ask({ model: 'm', ...(any as JsonObject) });
        let sent: JsonValue;
        try {
          sent = dialect.encodeRequest(
            request,
            { ...ENDPOINT, quirks: {} },
            { media: new Map(), strip_state: stripState },
          ).body;
        } catch (error) {
          expect(error).toBeInstanceOf(GatewayError);
          expect((error as GatewayError).status).toBe(400);
          return;
        }
        if (dialect.wire === 'anthropic-messages') return;
        expect(JSON.stringify(sent)).not.toMatch(
          /"(?:tool_use_id|server_tool_use|clear_tool_uses_20250919|redacted_thinking|native|ext)"/,
        );
      }),
      { numRuns: inTier(75, 300) },
    );
  },
);
