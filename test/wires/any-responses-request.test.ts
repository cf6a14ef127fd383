/** Any request that the Responses API accepts, through its parser: to its own wire unchanged, and to every other. */
import fc from 'fast-check';
import { Compile } from 'typebox/compile';
import { describe, expect, test } from 'vitest';
import { checkAnthropicMessages } from '../../sandbox/anthropic-messages-checks.ts';
import { checkBedrockConverse } from '../../sandbox/bedrock-converse-checks.ts';
import { checkCohereChat } from '../../sandbox/cohere-chat-checks.ts';
import { checkGemini } from '../../sandbox/gemini-generate-content-checks.ts';
import { checkOpenAiChat } from '../../sandbox/openai-chat-checks.ts';
import { responsesRequest } from '../../src/api/responses/parse-request.ts';
import { GatewayError } from '../../src/errors.ts';
import { explain } from '../../src/http/validation.ts';
import { createEnvelopes } from '../../src/inference/reasoning/envelope.ts';
import { anthropicMessages } from '../../src/providers/anthropic-messages/index.ts';
import { bedrockConverse } from '../../src/providers/bedrock-converse/index.ts';
import { cohereChat } from '../../src/providers/cohere-chat/index.ts';
import type { ChatDialect } from '../../src/providers/dialect.ts';
import { geminiGenerateContent } from '../../src/providers/gemini-generate-content/index.ts';
import { openaiChat } from '../../src/providers/openai-chat/index.ts';
import { openaiResponses } from '../../src/providers/openai-responses/index.ts';
import type { JsonObject, JsonValue } from '../../src/schemas/json.ts';
import { ResponsesBody } from '../../src/schemas/responses.ts';
import { array, object } from '../readings/recordings.ts';
import { inTier } from '../tier.ts';

const check = Compile(ResponsesBody);
const envelope = createEnvelopes('secret')('organization');

type Members = Record<string, fc.Arbitrary<unknown>>;
const some = (members: Members, required: string[] = []) => fc.record(members, { requiredKeys: required });

const text = fc.constantFrom('x', 'Hi\n', '👋', '{"a":1}', 'two words');
const anyText = fc.oneof(text, fc.constantFrom('', ' '));
const args = fc.constantFrom('{}', '{"a":1}', '{"x":{"y":[1,2.50]}}');
const name = fc.constantFrom('f', 'g');
const mark = fc.constant({ mode: 'explicit' });
const picture = 'data:image/png;base64,iVBORw0KGgo=';

const inputText = some({ type: fc.constant('input_text'), text, prompt_cache_breakpoint: mark }, ['type', 'text']);
const inputPart = fc.oneof(
  { weight: 3, arbitrary: inputText },
  { weight: 1, arbitrary: fc.constant({ type: 'input_image', image_url: picture, detail: 'low' }) },
  {
    weight: 1,
    arbitrary: fc.constant({
      type: 'input_file',
      filename: 'a.pdf',
      file_data: 'data:application/pdf;base64,JVBERi0=',
    }),
  },
);
const content = fc.oneof(text, fc.array(inputPart, { minLength: 1, maxLength: 3 }));

// ---------------------------------------------------------------- a conversation as providers would have made it

const user = fc.record({
  type: fc.constant('message'),
  role: fc.constantFrom('user', 'system', 'developer'),
  content: content,
});
const citation = { type: 'url_citation', url: 'https://a.example', title: 'A', start_index: 0, end_index: 1 };
const outputText = some({ type: fc.constant('output_text'), text, annotations: fc.constantFrom([], [citation]) }, [
  'type',
  'text',
]);

interface Made {
  kind: 'reasoning' | 'message' | 'call' | 'custom' | 'spaced' | 'native';
  fields: JsonObject;
}
const made = fc.oneof(
  fc.record({
    kind: fc.constant('reasoning'),
    fields: some(
      {
        summary: fc.array(fc.record({ type: fc.constant('summary_text'), text }), { maxLength: 2 }),
        content: fc.array(fc.record({ type: fc.constant('reasoning_text'), text }), { minLength: 1, maxLength: 2 }),
        encrypted_content: fc.constantFrom('RU5D', 'Zm9v'),
      },
      ['summary', 'encrypted_content'],
    ),
  }),
  fc.record({
    kind: fc.constant('message'),
    fields: some(
      {
        status: fc.constant('completed'),
        content: fc.array(fc.oneof(outputText), { minLength: 1, maxLength: 2 }),
        phase: fc.constantFrom('commentary', 'final_answer'),
      },
      ['status', 'content'],
    ),
  }),
  fc.record({
    kind: fc.constant('call'),
    fields: some({ name, arguments: args, status: fc.constant('completed') }, ['name', 'arguments']),
  }),
  fc.record({ kind: fc.constant('custom'), fields: fc.record({ name: fc.constant('c'), input: anyText }) }),
  fc.record({
    kind: fc.constant('spaced'),
    fields: fc.record({ name: fc.constant('s'), namespace: fc.constant('ns'), arguments: args }),
  }),
  fc.record({
    kind: fc.constant('native'),
    fields: fc.constantFrom<JsonObject>(
      { type: 'web_search_call', status: 'completed', action: { type: 'search', query: 'q' } },
      { type: 'mcp_call', server_label: 's', name: 't', arguments: '{}', output: 'o' },
      { type: 'tool_search_call', execution: 'server', status: 'completed', arguments: {} },
    ),
  }),
) as fc.Arbitrary<Made>;
const answered = fc.record({
  items: fc.array(made, { minLength: 1, maxLength: 4 }),
  output: fc.oneof(anyText, content),
});

/** The items of one turn, with ids derived from their positions, followed by the results of its calls. */
function itemsOf(turn: { items: Made[]; output: JsonValue }, at: number): JsonObject[] {
  const items = turn.items.map(({ kind, fields }, i): JsonObject => {
    const id = `${at}_${i}`;
    switch (kind) {
      case 'reasoning':
        return { type: 'reasoning', id: `rs_${id}`, ...fields };
      case 'message':
        return { type: 'message', role: 'assistant', id: `msg_${id}`, ...fields };
      case 'call':
      case 'spaced':
        return { type: 'function_call', id: `fc_${id}`, call_id: `call_${id}`, ...fields };
      case 'custom':
        return { type: 'custom_tool_call', id: `ctc_${id}`, call_id: `call_${id}`, ...fields };
      default:
        return { id: `own_${id}`, ...fields };
    }
  });
  // Reasoning without a following item is refused.
  if (items.at(-1)?.['type'] === 'reasoning') items.push({ type: 'message', role: 'assistant', content: 'End.' });
  const calls = items.filter(({ call_id }) => call_id !== undefined);
  const results = calls.map(({ type, call_id }) => ({ type: `${type}_output`, call_id, output: turn.output }));
  return [...items, ...results];
}

const conversation = fc
  .array(fc.oneof(user, answered), { minLength: 1, maxLength: 6 })
  .map((turns) =>
    turns.flatMap((turn, at): JsonObject[] =>
      'items' in turn
        ? [...itemsOf(turn as never, at), { type: 'message', role: 'user', content: 'Next.' }]
        : [turn as JsonObject],
    ),
  );

const FUNCTION = { type: 'function', name: 'f', description: 'F.', parameters: { type: 'object', properties: {} } };
const TOOLS: readonly JsonObject[] = [
  { ...FUNCTION, strict: false },
  { ...FUNCTION, name: 'g', strict: true, defer_loading: true },
  {
    type: 'custom',
    name: 'c',
    description: 'C.',
    format: { type: 'grammar', syntax: 'lark', definition: 'start: "a"' },
  },
  { type: 'namespace', name: 'ns', description: 'NS.', tools: [{ ...FUNCTION, name: 's', strict: false }] },
  { type: 'tool_search' },
  { type: 'mcp', server_label: 's', server_url: 'https://mcp.example' },
];
const tools = fc.subarray([...TOOLS], { minLength: 1 });
const fields = some({
  instructions: text,
  temperature: fc.constantFrom(0, 1),
  top_p: fc.constant(0.5),
  max_output_tokens: fc.constantFrom(16, 2000),
  service_tier: fc.constant('flex'),
  metadata: fc.constant({ a: 'b' }),
  prompt_cache_key: text,
  truncation: fc.constant('auto'),
  include: fc.constant(['reasoning.encrypted_content', 'message.output_text.logprobs']),
  text: fc.constantFrom<JsonObject>(
    { format: { type: 'json_object' }, verbosity: 'low' },
    { format: { type: 'json_schema', name: 'n', schema: { type: 'object' }, strict: false } },
  ),
  reasoning: fc.constantFrom<JsonObject>({ effort: 'low', context: 'all_turns' }, { effort: 'high', summary: 'auto' }),
  parallel_tool_calls: fc.boolean(),
  tool_choice: fc.constantFrom<JsonValue>('auto', 'required'),
  stream: fc.boolean(),
  moderation: fc.constant({ model: 'omni' }),
});
const faithful = fc
  .record({ input: conversation, tools, fields })
  .map(({ input, tools, fields: others }): JsonObject => ({ ...(others as JsonObject), input, tools }));

test('on its own wire a request is unchanged', () => {
  fc.assert(
    fc.property(faithful, (body) => {
      expect(explain(ResponsesBody as never, body, '')).toEqual([]);
      const { body: sent, report } = encode(openaiResponses, body);
      expect(report).toEqual([]);
      expect(normal(sent)).toEqual(normal({ ...body, model: 'upstream', store: false, include: includeOf(body) }));
    }),
    { numRuns: inTier(150, 1_500) },
  );
});

const shared = { type: 'function_call', call_id: 'call_1', name: 'f', arguments: '{}' };
const sharedOutput = { type: 'function_call_output', call_id: 'call_1', output: 'o' };
const annotated = { type: 'output_text', text: 'x', annotations: [{ type: 'file_path', file_id: 'f', index: 0 }] };
const assistant = (content: JsonObject[]) => ({ type: 'message', role: 'assistant', content });

/** Results that arrive late, or never, and one without a call. */
const unpaired = fc
  .record({ body: faithful, fates: fc.array(fc.constantFrom('stays', 'goes', 'late'), { minLength: 8, maxLength: 8 }) })
  .map(({ body, fates }): JsonObject => {
    const isResult = (item: JsonValue) => String(object(item)['type']).endsWith('call_output');
    let nth = 0;
    const fated = array(body['input']).map((item) => ({ item, fate: isResult(item) ? fates[nth++ % 8] : 'stays' }));
    const those = (wanted: string) => fated.filter(({ fate }) => fate === wanted).map(({ item }) => item);
    const orphans = [
      { type: 'function_call_output', call_id: 'call_orphan', output: 'o' },
      { type: 'custom_tool_call_output', call_id: 'call_orphan', output: [{ type: 'input_text', text: 'o' }] },
      { type: 'function_call_output', name: 'f', output: 'o' },
    ];
    return { ...body, input: [...those('stays'), ...those('late'), ...orphans] };
  });

test('on its own wire results keep their places, and none is invented', () => {
  fc.assert(
    fc.property(unpaired, (body) => {
      expect(explain(ResponsesBody as never, body, '')).toEqual([]);
      const { body: sent, report } = encode(openaiResponses, body);
      expect(report).toEqual([]);
      expect(normal(sent)).toEqual(normal({ ...body, model: 'upstream', store: false, include: includeOf(body) }));
    }),
    { numRuns: inTier(125, 500) },
  );
});

test.each<[string, JsonObject[]]>([
  ['annotations of a message without an id', [{ ...assistant([annotated, { ...annotated, text: 'y' }]) }]],
  ['ids that calls share', ['1', '2'].flatMap((output) => [{ ...shared }, { ...sharedOutput, output }])],
  ['ids that calls of one turn share', [shared, shared, sharedOutput, sharedOutput]],
  ['an image whose generation failed', [{ type: 'image_generation_call', id: 'ig_1', status: 'failed', result: null }]],
  [
    'a result of another type',
    [{ ...shared, type: 'custom_tool_call', input: 'x', arguments: undefined }, sharedOutput],
  ],
])('on its own wire %s pass', (_what, items) => {
  const body = { input: [{ type: 'message', role: 'user', content: 'Hi' }, ...items] } as JsonObject;
  const { body: sent, report } = encode(openaiResponses, body);
  expect(report).toEqual([]);
  expect(normal({ input: sent['input']! })).toEqual(normal({ input: body['input']! }));
});

describe('a tool of a namespace is chosen by its own name', () => {
  const tools = [TOOLS[3]!, { ...FUNCTION, strict: false }];
  const chosen = (toolChoice: JsonObject) => ({ input: 'Hi', tools, tool_choice: toolChoice }) as JsonObject;

  test.each<[JsonObject, unknown]>([
    [
      { type: 'function', name: 's' },
      { type: 'function', function: { name: 'ns__s' } },
    ],
    [
      { type: 'function', name: 's', namespace: 'ns' },
      { type: 'function', function: { name: 'ns__s' } },
    ],
  ])('%j', (choice, elsewhere) => {
    expect(encode(openaiResponses, chosen(choice)).body['tool_choice']).toEqual(choice);
    expect(encode(openaiChat, chosen(choice)).body['tool_choice']).toEqual(elsewhere);
  });

  test('a whole namespace may be allowed', () => {
    const choice = { type: 'allowed_tools', mode: 'required', tools: [{ type: 'namespace', name: 'ns' }] };
    expect(encode(openaiResponses, chosen(choice)).body['tool_choice']).toEqual(choice);
    const elsewhere = encode(anthropicMessages, chosen(choice)).body;
    expect(array(elsewhere['tools']).map((tool) => object(tool)['name'])).toEqual(['ns__s']);
  });

  test('is missing if it belongs to another namespace', () => {
    const choice = { type: 'function', name: 's', namespace: 'other' };
    expect(() => encode(openaiChat, chosen(choice))).toThrow('tool_choice.name must be the name of a tool in tools');
  });
});

// ---------------------------------------------------------------- any requests of clients

const wrapped = fc.constantFrom(
  envelope.wrap([{ type: 'reasoning.text', text: 'Hm', signature: 'SIG', format: 'anthropic-claude-v1' }])!,
  envelope.wrap([{ type: 'reasoning.encrypted', data: 'R0VN', format: 'google-gemini-v1', id: 'call_1' }])!,
  'gw1.broken',
  'RU5D',
  '',
);
const callId = fc.constantFrom('call_1', 'call_2', 'a b');
const wild = fc.oneof(
  fc.record({
    role: fc.constantFrom('user', 'system', 'developer'),
    content: fc.oneof(anyText, fc.array(inputPart, { maxLength: 3 })),
  }),
  some(
    {
      type: fc.constant('message'),
      role: fc.constant('assistant'),
      id: fc.constantFrom('msg_1', 'gen-1', ''),
      status: fc.constantFrom('completed', 'incomplete', null),
      content: fc.oneof(
        anyText,
        fc.array(
          fc.oneof(
            fc.record({ type: fc.constantFrom('output_text', 'input_text'), text: anyText }),
            fc.record({ type: fc.constant('refusal'), refusal: anyText }),
          ),
          { maxLength: 2 },
        ),
      ),
    },
    ['role', 'content'],
  ),
  some(
    {
      type: fc.constant('reasoning'),
      id: fc.constantFrom('rs_1', 'rs_2', null),
      summary: fc.array(fc.record({ text: anyText }), { maxLength: 2 }),
      content: fc.constantFrom(null, [], [{ type: 'reasoning_text', text: 'T' }]),
      encrypted_content: wrapped,
      signature: fc.constantFrom('S', null),
      format: fc.constantFrom('anthropic-claude-v1', 'google-gemini-v1', null),
    },
    ['type'],
  ),
  some(
    {
      type: fc.constant('function_call'),
      call_id: callId,
      name: fc.constantFrom('f', 'x.y', 'z'.repeat(80)),
      arguments: anyText,
      namespace: fc.constantFrom('ns', null),
    },
    ['type', 'call_id', 'name', 'arguments'],
  ),
  some({ type: fc.constant('custom_tool_call'), call_id: callId, name, input: anyText }, [
    'type',
    'call_id',
    'name',
    'input',
  ]),
  some(
    {
      type: fc.constantFrom('function_call_output', 'custom_tool_call_output'),
      call_id: callId,
      output: fc.oneof(anyText, fc.array(inputPart, { maxLength: 2 })),
      id: fc.constantFrom('fco_1', null),
    },
    ['type', 'call_id', 'output'],
  ),
  fc.constantFrom<JsonObject>(
    { type: 'web_search_call', id: 'ws_1', status: 'completed' },
    { type: 'image_generation_call', id: 'ig_1', status: 'completed', result: 'iVBORw0KGgo=' },
    { type: 'image_generation_call', id: 'ig_1', status: 'failed', result: null },
    { type: 'computer_call', call_id: 'call_2' },
    { type: 'computer_call_output', call_id: 'call_2', output: {} },
    { type: 'additional_tools', role: 'developer', tools: [{ ...FUNCTION, name: 'late' }] },
    { type: 'tool_search_output', execution: 'client', call_id: null, tools: [{ ...FUNCTION, name: 'found' }] },
    { type: 'mcp_approval_response', approval_request_id: 'a', approve: true },
    { type: 'compaction', encrypted_content: 'RU5D' },
  ),
);
const anything = some(
  {
    input: fc.oneof(
      text,
      fc.array(wild, { maxLength: 7 }).map((items) => [{ role: 'user', content: 'First.' }, ...items]),
    ),
    instructions: fc.constantFrom('', 'Be brief.', null),
    tools: fc.oneof(tools, fc.constant([]), fc.constant(null)),
    tool_choice: fc.constantFrom<JsonValue>(
      'auto',
      'none',
      null,
      { type: 'function', name: 'f' },
      { type: 'custom', name: 'c' },
      {
        type: 'allowed_tools',
        mode: 'required',
        tools: [
          { type: 'function', name: 'f' },
          { type: 'mcp', server_label: 's' },
        ],
      },
      { type: 'mcp', server_label: 's' },
    ),
    reasoning: fc.constantFrom<JsonValue>(null, { effort: 'none' }, { max_tokens: 2000 }, { enabled: true }),
    max_output_tokens: fc.constantFrom(null, 1, 4000),
    text: fc.constantFrom<JsonValue>(null, { format: { type: 'text' } }, { verbosity: 'max' }),
    user: fc.constantFrom('u', ''),
    x_search_filter: fc.constant({ from_date: '2026-01-01' }),
  },
  ['input'],
) as fc.Arbitrary<JsonObject>;

const others: { wire: string; dialect: ChatDialect; checkBody(body: JsonObject): void }[] = [
  { wire: 'openai-chat', dialect: openaiChat, checkBody: checkOpenAiChat },
  {
    wire: 'anthropic-messages',
    dialect: anthropicMessages,
    checkBody: (body) => checkAnthropicMessages(body, { 'anthropic-version': '2023-06-01', 'x-api-key': 'k' }),
  },
  { wire: 'gemini-generate-content', dialect: geminiGenerateContent, checkBody: (body) => checkGemini(body, {}) },
  { wire: 'bedrock-converse', dialect: bedrockConverse, checkBody: checkBedrockConverse },
  { wire: 'cohere-chat', dialect: cohereChat, checkBody: checkCohereChat },
];

describe('on other wires', () => {
  test.each(others)(
    '$wire: an upstream accepts any translated request, or the request is a 400',
    ({ dialect, checkBody }) => {
      let sent = 0;
      fc.assert(
        fc.property(anything, (body) => {
          expect(explain(ResponsesBody as never, body, '')).toEqual([]);
          const send = (stripState: boolean): void => {
            const json = JSON.stringify(encode(dialect, body, stripState).body);
            expect(json).not.toContain('gw1.');
            checkBody(JSON.parse(json) as JsonObject);
          };
          try {
            send(false);
          } catch (error) {
            if (error instanceof GatewayError) {
              expect(error.status).toBe(400);
              return;
            }
            // State that no provider made is refused, and then removed.
            if (!/signature|thinking block/i.test((error as Error).message)) throw error;
            send(true);
          }
          sent += 1;
        }),
        { numRuns: inTier(100, 1_000) },
      );
      expect(sent).toBeGreaterThan(inTier(50, 500));
    },
  );
});

function encode(dialect: ChatDialect, body: JsonObject, stripState = false) {
  expect(check.Check(body)).toBe(true);
  const request = responsesRequest(body as never, { envelope });
  const before = JSON.stringify(request);
  const facts = { max_completion_tokens: 32_000, context_length: 200_000, input_modalities: ['text', 'image', 'file'] };
  const upstreamModel = dialect.wire === 'gemini-generate-content' ? 'gemini-3-pro' : 'upstream';
  const endpoint = { model: 'a/b', provider: 'p', upstream_model: upstreamModel, ...facts, quirks: {} };
  const sent = dialect.encodeRequest(request, endpoint, { media: new Map(), strip_state: stripState });
  expect(JSON.stringify(request)).toBe(before);
  return sent;
}

function includeOf({ include }: JsonObject): JsonValue[] {
  return [...new Set([...array(include), 'reasoning.encrypted_content'])].sort();
}

/** Empty lists may be removed, and a choice that is the default as well; the order of `include` has no meaning. */
function normal(body: JsonObject): JsonValue {
  const include = array(body['include']).toSorted();
  const normalized = { stream: false, ...body, include, input: array(body['input']).map(object) };
  return JSON.parse(
    JSON.stringify(normalized, (_key, value) => (Array.isArray(value) && value.length === 0 ? undefined : value)),
  );
}
