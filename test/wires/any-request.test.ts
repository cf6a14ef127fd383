/** Any request that the contract allows, through the parser and each dialect. */
import fc from 'fast-check';
import { Value } from 'typebox/value';
import { expect, test } from 'vitest';
import { type ChatBody, chatRequest } from '../../src/api/chat/parse-request.ts';
import { GatewayError } from '../../src/errors.ts';
import { anthropicMessages } from '../../src/providers/anthropic-messages/index.ts';
import { anthropicModelQuirks } from '../../src/providers/anthropic-messages/model-quirks.ts';
import { openaiChat } from '../../src/providers/openai-chat/index.ts';
import { ChatCompletionBody } from '../../src/schemas/chat.ts';
import type { JsonObject, JsonValue } from '../../src/schemas/json.ts';
import { array, object } from '../readings/recordings.ts';
import { inTier } from '../tier.ts';

type Members = Record<string, fc.Arbitrary<unknown>>;
const some = (members: Members, required: string[] = []) => fc.record(members, { requiredKeys: required });
const orNull = (value: fc.Arbitrary<unknown>) => fc.oneof(value, fc.constant(null));

const text = fc.constantFrom('', ' ', 'x', 'Hi\n', '👋', 'data:', '{"a":1}', '[1]');
const hint = orNull(some({ type: fc.constant('ephemeral'), ttl: orNull(fc.constantFrom('5m', '1h')) }, ['type']));
const address = fc.constantFrom(
  'https://a.example/x.png',
  'data:image/png;base64,AA==',
  'data:text/plain,hi',
  'data:application/pdf;base64,AA==',
  'JVBERi0x',
);
const part = fc.oneof(
  { weight: 3, arbitrary: some({ type: fc.constant('text'), text, cache_control: hint }, ['type', 'text']) },
  {
    weight: 1,
    arbitrary: some(
      {
        type: fc.constant('image_url'),
        image_url: fc.oneof(
          address,
          some({ url: address, detail: orNull(fc.constantFrom('auto', 'low', 'high', 'original')) }, ['url']),
        ),
        cache_control: hint,
      },
      ['type', 'image_url'],
    ),
  },
  {
    weight: 1,
    arbitrary: some(
      {
        type: fc.constant('file'),
        file: some({ file_data: orNull(address), file_id: orNull(text), filename: orNull(text) }),
      },
      ['type', 'file'],
    ),
  },
  {
    weight: 1,
    arbitrary: some({ type: fc.constant('document_url'), document_url: address, document_name: orNull(text) }, [
      'type',
      'document_url',
    ]),
  },
);
const thought = some(
  {
    type: fc.constant('thinking'),
    thinking: fc.oneof(text, fc.array(some({ type: fc.constant('text'), text: orNull(text) }), { maxLength: 2 })),
  },
  ['type', 'thinking'],
);
const content = fc.oneof(text, fc.array(part, { maxLength: 3 }));
const name = fc.constantFrom('f', 'g.h', 'x'.repeat(80));
/** Of declared tools, which have a bound; calls of earlier turns may have longer names. */
const declared = fc.constantFrom('f', 'g.h', 'x'.repeat(64));
const id = fc.constantFrom('', 'a', 'a b', 'call_1');
const call = fc.oneof(
  {
    weight: 4,
    arbitrary: some(
      {
        id,
        type: fc.constant('function'),
        index: fc.nat(3),
        function: fc.record({ name, arguments: fc.oneof(text, fc.constantFrom(null, {}, { a: [1] })) }),
        extra_content: orNull(fc.constant({ google: { thought_signature: 'S' } })),
      },
      ['id', 'function'],
    ),
  },
  {
    weight: 1,
    arbitrary: fc.record({ id, type: fc.constant('custom'), custom: fc.record({ name, input: text }) }),
  },
);
const format = orNull(fc.constantFrom('unknown', 'anthropic-claude-v1', 'google-gemini-v1'));
const detail = fc.oneof(
  some({ type: fc.constant('reasoning.text'), text: orNull(text), signature: orNull(text), format }, ['type']),
  some({ type: fc.constant('reasoning.encrypted'), data: text, format, id: orNull(text) }, ['type', 'data']),
  some({ type: fc.constant('reasoning.summary'), summary: text, format }, ['type', 'summary']),
);
const message = fc.oneof(
  some({ role: fc.constantFrom('system', 'developer', 'user'), content: orNull(content), name: orNull(text) }, [
    'role',
    'content',
  ]),
  some(
    {
      role: fc.constant('assistant'),
      content: orNull(fc.oneof(content, fc.array(fc.oneof(part, thought), { maxLength: 3 }))),
      tool_calls: orNull(fc.array(call, { maxLength: 3 })),
      refusal: orNull(text),
      reasoning: orNull(text),
      reasoning_content: orNull(text),
      reasoning_details: orNull(fc.array(detail, { maxLength: 3 })),
      audio: orNull(fc.constant({ id: 'audio_1' })),
      images: orNull(fc.constant([{ image_url: { url: 'data:image/png;base64,AA==' } }])),
      function_call: fc.constant(null),
    },
    ['role'],
  ),
  some({ role: fc.constant('tool'), content: orNull(content), tool_call_id: id, name: orNull(text) }, [
    'role',
    'content',
    'tool_call_id',
  ]),
);
const parameters = fc.constantFrom(
  {},
  { type: 'object', properties: { a: { type: ['string', 'null'], oneOf: [{ const: 1 }], items: false } } },
  { anyOf: [true, { type: 'object' }], properties: null, $defs: { A: null } },
);
const tool = fc.oneof(
  some(
    {
      type: fc.constant('function'),
      function: some(
        { name: declared, description: orNull(text), strict: orNull(fc.boolean()), parameters: orNull(parameters) },
        ['name'],
      ),
      cache_control: hint,
    },
    ['function'],
  ),
  fc.constantFrom({ type: 'gateway:web_search' }, { type: 'custom', custom: { name: 'c' } }),
);
const choice = fc.constantFrom<JsonValue>(
  'none',
  'auto',
  'required',
  'any',
  { type: 'function', function: { name: 'f' } },
  { type: 'allowed_tools', allowed_tools: null },
  { type: 'allowed_tools', mode: 'auto', tools: [null, { name: 'f' }] },
);
const output = fc.constantFrom<JsonValue>(
  { type: 'text' },
  { type: 'json_object' },
  { type: 'json_schema', json_schema: { name: 'a', schema: null } },
  { type: 'json_schema', json_schema: { name: 'a', schema: { type: 'array', items: { $ref: '#' } } } },
);
const request = some(
  {
    model: fc.constant('a/b'),
    messages: fc.array(message, { minLength: 1, maxLength: 6 }),
    tools: orNull(fc.array(tool, { maxLength: 3 })),
    tool_choice: orNull(choice),
    response_format: orNull(output),
    reasoning: orNull(
      some({
        effort: orNull(fc.constantFrom('none', 'minimal', 'high', 'max')),
        enabled: orNull(fc.boolean()),
        exclude: orNull(fc.boolean()),
      }),
    ),
    max_tokens: orNull(fc.constantFrom(1, 1024, 1025, 99_999)),
    temperature: orNull(fc.constantFrom(0, 1, 2)),
    top_p: orNull(fc.constantFrom(0.5, 1)),
    top_k: orNull(fc.constantFrom(1, 2.5)),
    stop: orNull(fc.constantFrom<JsonValue>('', ' ', 'x', ['', 'a'])),
    user: orNull(text),
    safety_identifier: orNull(fc.oneof(text, fc.nat())),
    stream: orNull(fc.boolean()),
    parallel_tool_calls: orNull(fc.boolean()),
    verbosity: orNull(fc.constantFrom('low', 'max')),
    service_tier: orNull(text),
    cache_control: hint,
    metadata: orNull(fc.constant({})),
    logit_bias: orNull(fc.constant({})),
  },
  ['model', 'messages'],
) as fc.Arbitrary<ChatBody>;

const MODELS = [
  'claude-3-5-sonnet',
  'claude-sonnet-4',
  'claude-opus-4-6',
  'claude-opus-4-8',
  'claude-fable-5',
  'other',
];

function encoded(dialect: typeof openaiChat, body: ChatBody, model: string, stripState: boolean): JsonObject {
  expect(Value.Check(ChatCompletionBody, body)).toBe(true);
  const inner = chatRequest(body);
  const before = JSON.stringify(inner);
  const quirks = dialect.wire === 'anthropic-messages' ? anthropicModelQuirks(model) : {};
  const facts = { max_completion_tokens: 32_000, context_length: 200_000, input_modalities: ['text'], quirks };
  const endpoint = { model: 'a/b', provider: 'p', upstream_model: model, ...facts };
  const sent = dialect.encodeRequest(inner, endpoint, { media: new Map(), strip_state: stripState });
  expect(JSON.stringify(inner)).toBe(before);
  return sent.body;
}

/** Runs `check` on every body that is not refused, and fails if all are refused. */
function checkBodies(dialect: typeof openaiChat, check: (body: JsonObject) => void): void {
  let sent = 0;
  fc.assert(
    fc.property(request, fc.constantFrom(...MODELS), fc.boolean(), (body, model, stripState) => {
      let sentBody: JsonObject;
      try {
        sentBody = encoded(dialect, body, model, stripState);
      } catch (error) {
        if (!(error instanceof GatewayError)) throw error;
        expect(error.status).toBe(400);
        return;
      }
      sent += 1;
      check(JSON.parse(JSON.stringify(sentBody)) as JsonObject);
    }),
    { numRuns: inTier(300, 3_000) },
  );
  expect(sent).toBeGreaterThan(inTier(100, 1_000));
}

/** Every path with a null, except in the client's own data: schemas and arguments. */
function nulls(value: JsonValue | undefined, path = ''): string[] {
  if (value === null) return [path];
  if (typeof value !== 'object') return [];
  return Object.entries(value).flatMap(([key, entry]) =>
    ['input_schema', 'schema', 'input'].includes(key) ? [] : nulls(entry, `${path}.${key}`),
  );
}

test('to the chat wire: it is encoded, or refused with a 400', () => {
  checkBodies(openaiChat, (body) => expect(array(body['messages']).length).toBeGreaterThan(0));
});

test('to the messages wire: it is encoded to what the server accepts, or refused with a 400', () => {
  checkBodies(anthropicMessages, (body) => {
    expect(nulls(body)).toEqual([]);
    for (const turn of array(body['messages']).map(object)) {
      for (const block of array(turn['content']).map(object)) {
        const kinds = turn['role'] === 'assistant' ? ['thinking', 'redacted_thinking', 'tool_use'] : ['tool_result'];
        if (turn['role'] === 'user') kinds.push('image', 'document');
        expect(['text', ...kinds]).toContain(block['type']);
        for (const member of ['text', 'title', 'signature', 'data', 'id', 'tool_use_id']) {
          if (block[member] !== undefined) expect(block[member], member).not.toBe('');
        }
        if (block['type'] === 'text') expect(String(block['text']).trim()).not.toBe('');
        if (block['type'] === 'tool_use') expect(block['name']).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
      }
    }
    const choice = object(body['tool_choice'])['type'];
    if (choice !== undefined) expect(array(body['tools']).length).toBeGreaterThan(0);
    const thinking = object(body['thinking']);
    if (thinking['type'] !== 'enabled') return;
    expect(Number(thinking['budget_tokens'])).toBeLessThan(Number(body['max_tokens']));
    expect(['any', 'tool']).not.toContain(choice);
    expect(body['temperature'] ?? body['top_k']).toBeUndefined();
  });
});
