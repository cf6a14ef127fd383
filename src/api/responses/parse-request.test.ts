import { describe, expect, test } from 'vitest';
import { GatewayError } from '../../errors.ts';
import { explain } from '../../http/validation.ts';
import { createEnvelopes } from '../../inference/reasoning/envelope.ts';
import type { ChatRequest, Message, ReasoningDetail } from '../../schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import { ResponsesBody } from '../../schemas/responses.ts';
import { responsesClient } from './client.ts';
import { responsesRequest } from './parse-request.ts';

const envelopes = createEnvelopes('secret');
const envelope = envelopes('organization');

function requestOf(body: JsonObject, stored = false): ChatRequest {
  expect(explain(ResponsesBody as never, body, '')).toEqual([]);
  return responsesRequest(body as never, { envelope, stored });
}

/** The message of the error for this body. */
function refusalOf(body: JsonObject): string {
  const [first] = explain(ResponsesBody as never, body, '');
  if (first !== undefined) return `${first.path} ${first.rule}`;
  try {
    responsesRequest(body as never, { envelope });
  } catch (error) {
    expect(error).toBeInstanceOf(GatewayError);
    expect((error as GatewayError).status).toBe(400);
    return (error as GatewayError).message;
  }
  return 'taken';
}

const user = (...content: JsonObject[]) => ({ input: [{ role: 'user', content }] });
const handles = (count: number) => Array.from({ length: count }, (_, i) => `h${i}`);
const FUNCTION = { type: 'function', name: 'f', parameters: { type: 'object' } };
const ITEM_KINDS =
  '"message", "reasoning", "function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output", "image_generation_call", "additional_tools", "apply_patch_call", "apply_patch_call_output", "code_interpreter_call", "compaction", "compaction_trigger", "computer_call", "computer_call_output", "configuration_update", "file_search_call", "item_reference", "local_shell_call", "local_shell_call_output", "mcp_approval_request", "mcp_approval_response", "mcp_call", "mcp_list_tools", "program", "program_output", "shell_call", "shell_call_output", "tool_search_call", "tool_search_output", "web_search_call"';
const PART_KINDS =
  '"input_text", "output_text", "text", "input_image", "input_file", "input_audio", "input_video", "refusal"';

describe('violations are refused with a message that names the field', () => {
  const cases: [JsonObject, string][] = [
    [{}, 'input is required'],
    [{ input: null }, 'input must be a string or an array'],
    [{ input: 3 }, 'input must be a string or an array'],
    [{ input: [] }, 'input must have at least 1 item'],
    [{ input: ['Hi'] }, 'input[0] must be an object'],
    [{ input: [{ role: 'user', content: 'Hi' }, { type: 'poem' }] }, `input[1].type must be one of ${ITEM_KINDS}`],
    [{ input: [{ content: 'Hi' }] }, 'input[0].role is required'],
    [
      { input: [{ role: 'tool', content: 'Hi' }] },
      'input[0].role must be one of "user", "assistant", "system", "developer"',
    ],
    [{ input: [{ role: 'user' }] }, 'input[0].content is required'],
    [{ input: [{ type: 'message', role: 'user', content: 3 }] }, 'input[0].content must be a string or an array'],
    [user({ type: 'video' }), `input[0].content[0].type must be one of ${PART_KINDS}`],
    [user({ type: 'input_text' }), 'input[0].content[0].text is required'],
    [user({ type: 'input_image' }), 'input[0].content[0].image_url is required, or file_id'],
    [
      user({ type: 'input_image', image_url: { url: 'https://a.example' } }),
      'input[0].content[0].image_url must be a string or null',
    ],
    [user({ type: 'input_file', filename: 'a' }), 'input[0].content[0].file_data is required, or file_url or file_id'],
    [
      user({ type: 'input_audio', input_audio: { data: 'AA==' } }),
      'input[0].content[0].input_audio.format is required',
    ],
    [user({ type: 'input_video' }), 'input[0].content[0].video_url is required'],
    [
      user({ type: 'refusal', refusal: 'No' }),
      'input[0].content[0].type must not be "refusal": only messages of the assistant may have it',
    ],
    [
      { input: [{ role: 'assistant', content: [{ type: 'input_image', image_url: 'https://a.example' }] }] },
      'input[0].content[0].type must be one of "output_text", "refusal" in a message of the assistant',
    ],
    [{ input: [{ type: 'function_call', name: 'f', arguments: '{}' }] }, 'input[0].call_id is required'],
    [
      { input: [{ type: 'function_call', call_id: 'c', name: 'f', arguments: {} }] },
      'input[0].arguments must be a string',
    ],
    [{ input: [{ type: 'function_call_output', call_id: 'c' }] }, 'input[0].output is required'],
    [
      { input: [{ type: 'function_call_output', call_id: 'c', output: {} }] },
      'input[0].output must be a string or an array',
    ],
    [
      { input: [{ type: 'function_call_output', call_id: 'c', output: [{ type: 'x' }] }] },
      `input[0].output[0].type must be one of ${PART_KINDS}`,
    ],
    [
      { input: [{ type: 'function_call_output', call_id: 'c', output: [{ type: 'input_file' }] }] },
      'input[0].output[0].file_data is required, or file_url or file_id',
    ],
    [{ input: [{ type: 'custom_tool_call', call_id: 'c', name: 'f' }] }, 'input[0].input is required'],
    [
      { input: [{ type: 'item_reference', id: 'rs_1' }] },
      'input[0].type must not be "item_reference": items cannot be referred to by id; send the item itself (clients do so with store: false), or use previous_response_id if responses are stored',
    ],
    [{ input: 'Hi', instructions: [] }, 'instructions must be a string or null'],
    [{ input: 'Hi', max_output_tokens: 0 }, 'max_output_tokens must be at least 1'],
    [{ input: 'Hi', max_tool_calls: 0 }, 'max_tool_calls must be at least 1'],
    [{ input: 'Hi', temperature: 3 }, 'temperature must be at most 2'],
    [{ input: 'Hi', top_p: 0 }, 'top_p must be greater than 0'],
    [{ input: 'Hi', top_k: 0 }, 'top_k must be at least 1'],
    [{ input: 'Hi', top_logprobs: 21 }, 'top_logprobs must be at most 20'],
    [{ input: 'Hi', frequency_penalty: 3 }, 'frequency_penalty must be at most 2'],
    [{ input: 'Hi', presence_penalty: -3 }, 'presence_penalty must be at least -2'],
    [{ input: 'Hi', truncation: 'middle' }, 'truncation must be one of "auto", "disabled"'],
    [{ input: 'Hi', include: 'x' }, 'include must be an array or null'],
    [{ input: 'Hi', modalities: ['video'] }, 'modalities[0] must be one of "text", "image", "audio"'],
    [{ input: 'Hi', metadata: { a: 1 } }, 'metadata.a must be a string'],
    [{ input: 'Hi', user: 'u'.repeat(513) }, 'user must have at most 512 characters'],
    [{ input: 'Hi', session_id: 's'.repeat(257) }, 'session_id must have at most 256 characters'],
    [{ input: 'Hi', stream: 'yes' }, 'stream must be a boolean or null'],
    [{ input: 'Hi', model: '' }, 'model must not be empty'],
    [{ input: 'Hi', route: 'fast' }, 'route must be one of "fallback", "sort"'],
    [{ input: 'Hi', provider: { order: 'p' } }, 'provider.order must be an array or null'],
    [{ input: 'Hi', cache_control: { type: 'forever' } }, 'cache_control.type must be "ephemeral"'],
    [{ input: 'Hi', debug: { echo_upstream_body: 1 } }, 'debug.echo_upstream_body must be a boolean or null'],
    [
      { input: 'Hi', reasoning: { effort: 'huge' } },
      'reasoning.effort must be one of "none", "minimal", "low", "medium", "high", "xhigh", "max"',
    ],
    [{ input: 'Hi', reasoning: { effort: 'low', max_tokens: 9 } }, 'reasoning may have effort or max_tokens, not both'],
    [
      { input: 'Hi', text: { format: { type: 'xml' } } },
      'text.format.type must be one of "text", "json_object", "json_schema"',
    ],
    [{ input: 'Hi', text: { format: { type: 'json_schema', schema: {} } } }, 'text.format.name is required'],
    [{ input: 'Hi', text: { format: { type: 'json_schema', name: 'n' } } }, 'text.format.schema is required'],
    [
      { input: 'Hi', text: { verbosity: 'loud' } },
      'text.verbosity must be one of "low", "medium", "high", "xhigh", "max"',
    ],
    [{ input: 'Hi', tools: {} }, 'tools must be an array or null'],
    [{ input: 'Hi', tools: [{}] }, 'tools[0].name is required'],
    [{ input: 'Hi', tools: [{ type: 'function' }] }, 'tools[0].name is required'],
    [{ input: 'Hi', tools: [{ type: 'function', function: {} }] }, 'tools[0].function.name is required'],
    [{ input: 'Hi', tools: [{ type: 'custom' }] }, 'tools[0].name is required'],
    [{ input: 'Hi', tools: [{ type: 'namespace', name: 'n' }] }, 'tools[0].tools is required'],
    [
      { input: 'Hi', tools: [{ type: 'namespace', name: 'n', tools: [{ type: 'mcp' }] }] },
      'tools[0].tools[0].type must be one of "function", "custom"',
    ],
    [{ input: 'Hi', tool_choice: 'any' }, 'tool_choice must be one of "none", "auto", "required"'],
    [{ input: 'Hi', tools: [FUNCTION], tool_choice: { type: 'function' } }, 'tool_choice.name is required'],
    [
      { input: 'Hi', tools: [FUNCTION], tool_choice: { type: 'function', name: 'g' } },
      'tool_choice.name must be the name of a tool in tools',
    ],
    [{ input: 'Hi', tool_choice: { type: 'custom' } }, 'tool_choice.name is required'],
    [{ input: 'Hi', tool_choice: { type: 'allowed_tools' } }, 'tool_choice.tools is required'],
    [
      { input: 'Hi', plugins: [{ id: 'web', max_results: 26 }] },
      'plugins[0].max_results must be an integer from 1 to 25',
    ],
    [
      { input: 'Hi', plugins: [{ id: 'web', max_results: 0 }] },
      'plugins[0].max_results must be an integer from 1 to 25',
    ],
    [
      { input: 'Hi', plugins: [{ id: 'web', include_domains: 'a.example' }] },
      'plugins[0].include_domains must be an array of domains',
    ],
    [
      { input: 'Hi', x_search_filter: { allowed_x_handles: handles(11) } },
      'x_search_filter.allowed_x_handles must have at most 10 items',
    ],
    [
      { input: 'Hi', x_search_filter: { excluded_x_handles: handles(11) } },
      'x_search_filter.excluded_x_handles must have at most 10 items',
    ],
    [
      { input: 'Hi', x_search_filter: { allowed_x_handles: ['a'], excluded_x_handles: ['b'] } },
      'x_search_filter may have allowed_x_handles or excluded_x_handles, not both',
    ],
    [
      { input: 'Hi', x_search_filter: { from_date: 'yesterday' } },
      'x_search_filter.from_date must be an ISO 8601 date such as 2026-01-31',
    ],
    [
      { input: 'Hi', x_search_filter: { to_date: '2026-02-30' } },
      'x_search_filter.to_date must be an ISO 8601 date such as 2026-01-31',
    ],
    ...['2026-00-01', '2026-13-01', '2026-01-00', '2026-01-32', '2026-01-01T25:00:00Z'].map(
      (toDate): [JsonObject, string] => [
        { input: 'Hi', x_search_filter: { to_date: toDate } },
        'x_search_filter.to_date must be an ISO 8601 date such as 2026-01-31',
      ],
    ),
    [
      { input: 'Hi', x_search_filter: { to_date: '2026-1-3' } },
      'x_search_filter.to_date must be an ISO 8601 date such as 2026-01-31',
    ],
    [
      { input: 'Hi', x_search_filter: { from_date: '2026-02-02', to_date: '2026-02-01' } },
      'x_search_filter.from_date must not be after to_date',
    ],
    [
      { input: 'Hi', x_search_filter: { enable_image_understanding: 1 } },
      'x_search_filter.enable_image_understanding must be a boolean or null',
    ],
    [{ input: 'Hi', background: true }, 'background must be false: background responses are not supported'],
    [
      { input: 'Hi', conversation: 'conv_1' },
      'conversation must be null: conversations are not stored; send the conversation in input',
    ],
    [
      { input: 'Hi', prompt: { id: 'pmpt_1' } },
      'prompt must be null: prompts are not stored; send their text in instructions or input',
    ],
  ];
  test.each(cases)('%j: %s', (body, expected) => {
    expect(refusalOf(body)).toBe(expected);
  });

  test('too many tools and parts', () => {
    const namespace = { type: 'namespace', name: 'n', tools: Array(1024).fill(FUNCTION) };
    expect(refusalOf({ input: 'Hi', tools: [namespace, FUNCTION] })).toBe(
      'tools must have at most 1024 items, including those of namespaces and of input',
    );

    const items = (count: number, parts: number) =>
      Array.from({ length: count }, () => ({
        role: 'user',
        content: Array.from({ length: parts }, () => ({ type: 'input_text', text: 'x' })),
      }));
    expect(refusalOf({ input: items(1, 10_001) })).toBe('input[0].content must have at most 10000 items');
    expect(refusalOf({ input: items(6, 10_000) })).toBe('input must have at most 50000 parts in all');
    expect(refusalOf({ input: items(10_001, 0) })).toBe('input must have at most 10000 items');
  });

  test('each refusal names its field in its violations too', () => {
    const messages = [
      { input: 'Hi', background: true },
      { input: 'Hi', store: true },
      { input: 'Hi', reasoning: { effort: 'low', max_tokens: 1 } },
      { input: 'Hi', x_search_filter: { from_date: 'never' } },
      { input: [{ type: 'item_reference', id: 'msg_1' }] },
      { input: 'Hi', tools: [FUNCTION], tool_choice: { type: 'function', name: 'g' } },
    ].map((body) => {
      try {
        return requestOf(body as never);
      } catch (error) {
        return ((error as GatewayError).metadata?.['violations'] as { path: string }[] | undefined)?.[0]?.path;
      }
    });
    expect(messages).toEqual([
      'background',
      'store',
      'reasoning',
      'x_search_filter.from_date',
      'input[0].type',
      'tool_choice.name',
    ]);
  });

  test('requests that need storage are refused, unless responses are stored', () => {
    expect(refusalOf({ input: 'Hi', store: true })).toMatch(/^store must be false/);
    expect(refusalOf({ input: 'Hi', previous_response_id: 'gen-1' })).toMatch(/^previous_response_id must be null/);
    const { ext } = requestOf({ input: 'Hi', store: true, previous_response_id: 'gen-1' }, true);
    expect(ext).toEqual({ wire: 'openai-responses', client: responsesClient, rest: {} });
  });
});

describe('fields with neutral values are accepted', () => {
  const cases: JsonObject[] = [
    { input: '' },
    { input: 'Hi', store: false, background: false, previous_response_id: null, conversation: null, prompt: null },
    { input: 'Hi', tools: null, tool_choice: null, text: null, reasoning: null, include: null, x_search_filter: null },
    { input: 'Hi', tools: [], tool_choice: { type: 'function', name: 'f' }, x_search_filter: {} },
    { input: 'Hi', truncation: 'disabled', text: { format: { type: 'text' } }, reasoning: {}, top_logprobs: 0 },
    { input: 'Hi', ext: { client: 'chat' } },
  ];
  test.each(cases)('%j', (body) => {
    const { messages, ext, ...fields } = requestOf(body);
    expect(fields).toEqual('x_search_filter' in body && body['x_search_filter'] ? { x_search_filter: {} } : {});
    expect(messages).toEqual([{ role: 'user', content: body['input'] }]);
    const rest = body['truncation'] ? { truncation: 'disabled' } : {};
    expect(ext).toEqual({ wire: 'openai-responses', client: responsesClient, rest });
  });

  test('dates at the limits of their range', () => {
    const taken = {
      from_date: '2026-02-01',
      to_date: '2026-02-01T00:00:00Z',
      allowed_x_handles: handles(10),
      excluded_x_handles: [],
    };
    expect(requestOf({ input: 'Hi', x_search_filter: taken })['x_search_filter']).toEqual(taken);
  });
});

describe('fields with another name or place', () => {
  const schema = { type: 'object', properties: {} };
  const cases: [name: string, body: JsonObject, fields: JsonObject, rest: JsonObject][] = [
    ['the output bound', { max_output_tokens: 5 }, { max_completion_tokens: 5 }, {}],
    [
      'log probabilities',
      { include: ['message.output_text.logprobs'], top_logprobs: 2 },
      { logprobs: true, top_logprobs: 2 },
      {},
    ],
    ['a number of log probabilities, which enables them', { top_logprobs: 3 }, { logprobs: true, top_logprobs: 3 }, {}],
    [
      'other values of include',
      { include: ['reasoning.encrypted_content', 'file_search_call.results', 'message.output_text.logprobs'] },
      { logprobs: true },
      { include: ['reasoning.encrypted_content', 'file_search_call.results'] },
    ],
    [
      'a schema',
      {
        text: { format: { type: 'json_schema', name: 'n', schema, strict: true, description: 'd' }, verbosity: 'low' },
      },
      {
        verbosity: 'low',
        response_format: { type: 'json_schema', json_schema: { name: 'n', schema, description: 'd', strict: true } },
      },
      {},
    ],
    [
      'JSON',
      { text: { format: { type: 'json_object' }, other: 1 } },
      { response_format: { type: 'json_object' } },
      { text: { other: 1 } },
    ],
    [
      'reasoning',
      { reasoning: { effort: 'low', summary: 'auto', context: 'all_turns', mode: 'm', generate_summary: 'auto' } },
      { reasoning: { effort: 'low', summary: 'auto' } },
      { reasoning: { context: 'all_turns', mode: 'm', generate_summary: 'auto' } },
    ],
    [
      'reasoning in the form of chat',
      { reasoning: { max_tokens: 2000, enabled: true, exclude: true } },
      { reasoning: { max_tokens: 2000, enabled: true, exclude: true } },
      {},
    ],
    [
      'middle-out truncation',
      { truncation: 'auto' },
      { plugins: [{ id: 'context-compression' }] },
      { truncation: 'auto' },
    ],
    [
      'truncation that is set twice',
      { truncation: 'auto', plugins: [{ id: 'context-compression', enabled: false }] },
      { plugins: [{ id: 'context-compression', enabled: false }] },
      { truncation: 'auto' },
    ],
    [
      'the search of the gateway',
      { plugins: [{ id: 'web', max_results: 5 }] },
      { plugins: [{ id: 'web', max_results: 5 }] },
      {},
    ],
    ['the end user, by the newer name', { safety_identifier: 's' }, { user: 's' }, {}],
    ['the end user, by both names', { user: 'u', safety_identifier: 's' }, { user: 'u' }, {}],
    ['unknown fields', { moderation: { model: 'm' }, later: 1 }, {}, { moderation: { model: 'm' }, later: 1 }],
  ];
  test.each(cases)('%s', (_name, body, fields, rest) => {
    const { messages: _, ext, ...translated } = requestOf({ input: 'Hi', ...body });
    expect(translated).toEqual(fields);
    expect(ext?.rest).toEqual(rest);
  });

  const same: JsonObject = {
    model: 'a/b',
    models: ['c/d'],
    route: 'fallback',
    provider: { only: ['p'] },
    stream: true,
    parallel_tool_calls: false,
    temperature: 1,
    top_p: 0.5,
    top_k: 5,
    frequency_penalty: 1,
    presence_penalty: 1,
    service_tier: 'flex',
    user: 'u',
    metadata: { a: 'b' },
    session_id: 's',
    trace: { trace_id: 't' },
    cache_control: { type: 'ephemeral' },
    prompt_cache_key: 'k',
    prompt_cache_options: { mode: 'explicit' },
    prompt_cache_retention: '24h',
    modalities: ['text'],
    image_config: { aspect_ratio: '1:1' },
    max_tool_calls: 3,
    stop_server_tools_when: [{ type: 'step_count_is', step_count: 2 }],
    debug: { echo_upstream_body: true },
  };
  test('all other fields are the same', () => {
    const { messages: _, ext, ...translated } = requestOf({ input: 'Hi', ...same });
    expect(translated).toEqual(same);
    expect(ext?.rest).toEqual({});
  });
});

describe('the conversation', () => {
  const messagesOf = (input: JsonValue, fields: JsonObject = {}): Message[] => requestOf({ input, ...fields }).messages;
  const own = (rest: JsonObject) => ({ wire: 'openai-responses', rest });

  test('instructions become its first message', () => {
    expect(messagesOf('Hi', { instructions: 'Be brief.' })).toEqual([
      { role: 'system', content: 'Be brief.', ext: own({ via: 'instructions' }) },
      { role: 'user', content: 'Hi' },
    ]);
  });

  test('parts of every kind are translated', () => {
    const parts = [
      { type: 'input_text', text: 'Look', prompt_cache_breakpoint: { mode: 'explicit' } },
      { type: 'input_image', image_url: 'https://a.example/x.png', detail: 'low' },
      { type: 'input_file', file_url: 'https://a.example/x.pdf' },
      { type: 'input_file', file_data: 'data:application/pdf;base64,JVBERi0=', filename: 'x.pdf' },
      { type: 'input_file', file_id: 'file-1' },
      { type: 'input_audio', input_audio: { data: 'AA==', format: 'wav' } },
      { type: 'input_video', video_url: 'https://a.example/x.mp4' },
      { type: 'input_image', file_id: 'file-2' },
    ];
    const [message] = messagesOf([{ role: 'user', content: parts }]);
    expect(message!.content).toEqual([
      {
        type: 'text',
        text: 'Look',
        cache_control: { type: 'ephemeral' },
        ext: own({ prompt_cache_breakpoint: { mode: 'explicit' } }),
      },
      { type: 'image_url', image_url: { url: 'https://a.example/x.png', detail: 'low' } },
      { type: 'file', file: { file_data: 'https://a.example/x.pdf' } },
      { type: 'file', file: { file_data: 'data:application/pdf;base64,JVBERi0=', filename: 'x.pdf' } },
      { type: 'file', file: { file_id: 'file-1' } },
      { type: 'input_audio', input_audio: { data: 'AA==', format: 'wav' } },
      { type: 'video_url', video_url: { url: 'https://a.example/x.mp4' } },
      { type: 'native', wire: 'openai-responses', block: { type: 'input_image', file_id: 'file-2' } },
    ]);
  });

  test("ids and statuses of the assistant's items may be omitted", () => {
    const messages = messagesOf([
      { role: 'user', content: 'Look it up.' },
      { type: 'function_call', call_id: 'call_1', name: 'f', arguments: '{"a":1}' },
      { type: 'function_call_output', call_id: 'call_1', output: 'Found.' },
      { role: 'assistant', content: 'It is so.' },
    ]);
    expect(messages).toMatchObject([
      { role: 'user', content: 'Look it up.' },
      { role: 'assistant', tool_calls: [{ id: 'call_1', function: { name: 'f', arguments: '{"a":1}' } }] },
      { role: 'tool', tool_call_id: 'call_1', content: 'Found.' },
      { role: 'assistant', content: 'It is so.' },
    ]);
  });

  test('the items of one turn become one message', () => {
    const [, turn] = messagesOf([
      { role: 'user', content: 'Hi' },
      { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'Hm' }], encrypted_content: 'RU5D' },
      {
        type: 'message',
        id: 'msg_1',
        role: 'assistant',
        status: 'completed',
        phase: 'commentary',
        content: [{ type: 'output_text', text: 'Wait.', annotations: [], logprobs: [] }],
      },
      { type: 'function_call', id: 'fc_1', call_id: 'call_1', name: 'f', arguments: '{}', status: 'completed' },
      { type: 'function_call_output', id: 'fco_1', call_id: 'call_1', output: [{ type: 'input_text', text: 'R' }] },
    ]);
    expect(turn).toMatchObject({
      role: 'assistant',
      content: 'Wait.',
      tool_calls: [{ id: 'call_1', ext: own({ id: 'fc_1', status: 'completed' }) }],
      reasoning_details: [
        { type: 'reasoning.summary', summary: 'Hm' },
        { type: 'reasoning.encrypted', data: 'RU5D', id: 'rs_1' },
      ],
      ext: {
        wire: 'openai-responses',
        order: [
          { kind: 'reasoning', at: 0, span: 2 },
          { kind: 'text', at: 0, ext: own({ id: 'msg_1', status: 'completed', phase: 'commentary' }) },
          { kind: 'call', at: 0 },
        ],
      },
    });
  });

  test('a result without a call becomes a tool message', () => {
    expect(messagesOf([{ type: 'function_call_output', call_id: 'lost', output: 'R' }])).toEqual([
      { role: 'tool', tool_call_id: 'lost', content: 'R' },
    ]);
  });

  test("items of the provider's own tools are unchanged", () => {
    const item = { type: 'web_search_call', id: 'ws_1', status: 'completed', action: { type: 'search' } };
    const answered = { type: 'shell_call_output', call_id: 'c', output: [] };
    const messages = messagesOf([{ role: 'user', content: 'Hi' }, item, answered]);
    expect(messages[1]!.ext?.natives).toEqual([{ type: 'native', wire: 'openai-responses', block: item }]);
    expect(messages[2]).toEqual({
      role: 'user',
      content: [{ type: 'native', wire: 'openai-responses', block: answered }],
    });
  });
});

describe('reasoning of other wires is restored', () => {
  const carried = (item: JsonObject): ReasoningDetail[] | undefined =>
    requestOf({
      input: [
        { type: 'reasoning', id: 'rs_1', summary: [], ...item },
        { role: 'assistant', content: 'So.' },
      ],
    }).messages[0]!.reasoning_details;
  const thought: ReasoningDetail = {
    type: 'reasoning.text',
    text: 'Hm',
    signature: 'SIG',
    format: 'anthropic-claude-v1',
  };

  test('from an envelope, with its own signature, whatever the item shows', () => {
    const encryptedContent = envelope.wrap([thought])!;
    const content = [{ type: 'reasoning_text', text: 'Changed' }];
    expect(carried({ encrypted_content: encryptedContent, content })).toEqual([{ ...thought, index: 0 }]);
  });

  test('from an envelope, with the text of the item', () => {
    const summarized: ReasoningDetail = { type: 'reasoning.summary', summary: '', format: 'x' };
    const encryptedContent = envelope.wrap([{ ...thought, text: null }, summarized])!;
    const shown = { content: [{ type: 'reasoning_text', text: 'Hm' }], summary: [{ type: 'summary_text', text: 'S' }] };
    expect(carried({ encrypted_content: encryptedContent, ...shown })).toEqual([
      { ...thought, index: 0 },
      { ...summarized, summary: 'S', index: 1 },
    ]);
  });

  test('from a block of the Messages API, with the text of the block', () => {
    const content = [{ type: 'reasoning_text', text: 'Hm' }];
    const signature = envelope.wrap([{ ...thought, text: '' }])!;
    expect(carried({ signature, content, format: 'anthropic-claude-v1' })).toEqual([{ ...thought, index: 0 }]);
    expect(carried({ encrypted_content: signature, content })).toEqual([{ ...thought, index: 0 }]);
    expect(carried({ encrypted_content: signature })).toEqual([{ ...thought, text: '', index: 0 }]);
  });

  test('but not from an envelope of another organization, or a changed one', () => {
    const content = [{ type: 'reasoning_text', text: 'Hm' }];
    const foreign = envelopes('another').wrap([thought])!;
    for (const encryptedContent of [foreign, `${foreign}x`, 'gw1.', 'gw1.a.b']) {
      for (const state of [{ encrypted_content: encryptedContent }, { signature: encryptedContent }]) {
        const details = carried({ ...state, content });
        expect(JSON.stringify(details)).not.toContain('gw1.');
        expect(details).toMatchObject([{ type: 'reasoning.text', text: 'Hm' }]);
        expect(details![0]).not.toHaveProperty('signature');
      }
    }
  });

  test('from the fields of the public API', () => {
    const format = 'anthropic-claude-v1';
    const content = [{ type: 'reasoning_text', text: 'Hm' }];
    expect(carried({ content, signature: 'SIG', format })).toMatchObject([{ ...thought }]);
    expect(carried({ encrypted_content: 'R0VN', format: 'google-gemini-v1' })).toMatchObject([
      { type: 'reasoning.encrypted', data: 'R0VN', format: 'google-gemini-v1', id: 'rs_1' },
    ]);
  });
});

describe('tools', () => {
  const toolsOf = (tools: JsonObject[], input: JsonValue = 'Hi') => requestOf({ input, tools }).tools;

  test('of type function, flat or in the form of chat, keep fields of this API separately', () => {
    const fn = { name: 'f', description: 'D', parameters: { type: 'object' } };
    expect(toolsOf([{ type: 'function', ...fn, strict: true, defer_loading: true }])).toEqual([
      {
        type: 'function',
        function: { ...fn, strict: true },
        ext: { wire: 'openai-responses', rest: { defer_loading: true } },
      },
    ]);
    expect(toolsOf([{ name: 'f', strict: false }])).toEqual([
      { type: 'function', function: { name: 'f', strict: false } },
    ]);
    expect(toolsOf([{ type: 'function', function: { ...fn, strict: false } }])).toEqual([
      { type: 'function', function: { ...fn, strict: false } },
    ]);
  });

  test('without `strict` are not strict on other wires', () => {
    for (const strict of [undefined, null]) {
      const [tool] = toolsOf([{ ...FUNCTION, ...(strict === undefined ? {} : { strict }) }])!;
      expect(tool).toMatchObject({ function: { name: 'f' }, ext: { rest: { strict: null } } });
      expect((tool as { function: object }).function).not.toHaveProperty('strict');
    }
  });

  test('with a text as input become functions with one text parameter', () => {
    const format = { type: 'grammar', syntax: 'lark', definition: 'start: "a"' };
    expect(toolsOf([{ type: 'custom', name: 'c', description: 'D', format }])).toEqual([
      {
        type: 'function',
        function: {
          name: 'c',
          description: 'D',
          parameters: {
            type: 'object',
            properties: { input: { type: 'string', description: 'In this lark grammar:\nstart: "a"' } },
            required: ['input'],
            additionalProperties: false,
          },
        },
        ext: { wire: 'openai-responses', rest: { type: 'custom', format } },
      },
    ]);
  });

  test('of a namespace get its name as a prefix, in the conversation as well', () => {
    const namespace = {
      type: 'namespace',
      name: 'ns',
      description: 'D',
      tools: [FUNCTION, { type: 'custom', name: 'c' }],
    };
    const input = [
      { type: 'function_call', call_id: 'call_1', name: 'f', namespace: 'ns', arguments: '{}' },
      { type: 'function_call_output', call_id: 'call_1', output: 'R' },
    ];
    const request = requestOf({ input, tools: [namespace] });
    expect(request.tools).toMatchObject([{ function: { name: 'ns__f' } }, { function: { name: 'ns__c' } }]);
    expect(request.messages[0]!.tool_calls).toMatchObject([
      { function: { name: 'ns__f' }, ext: { rest: { namespace: 'ns' } } },
    ]);
  });

  test('in items of the conversation are declared with the others, once', () => {
    const late = { type: 'additional_tools', role: 'developer', tools: [FUNCTION, { ...FUNCTION, name: 'late' }] };
    const search = {
      type: 'tool_search_output',
      execution: 'client',
      tools: [{ type: 'namespace', name: 'ns', tools: [FUNCTION] }, { type: 'mcp' }],
    };
    const tools = toolsOf([FUNCTION], [{ role: 'user', content: 'Hi' }, late, search]);
    expect(tools).toMatchObject([
      { function: { name: 'f' } },
      { function: { name: 'late' }, ext: { rest: { via: 'item' } } },
      { function: { name: 'ns__f' }, ext: { rest: { via: 'item' } } },
    ]);
    expect(tools).toHaveLength(3);
  });

  test('of other kinds are unchanged, and those of the gateway have the form of chat', () => {
    const search = { type: 'web_search', search_context_size: 'low' };
    expect(toolsOf([search, { type: 'gateway:web_search', parameters: { max_results: 3 } }])).toEqual([
      { type: 'native', wire: 'openai-responses', block: search },
      { type: 'gateway:web_search', parameters: { max_results: 3 } },
    ]);
  });

  const choices: [JsonValue, JsonValue][] = [
    ['auto', 'auto'],
    ['none', 'none'],
    ['required', 'required'],
    [
      { type: 'function', name: 'f' },
      { type: 'function', function: { name: 'f' } },
    ],
    [
      { type: 'function', function: { name: 'f' } },
      { type: 'function', function: { name: 'f' } },
    ],
    [
      { type: 'custom', name: 'c' },
      { type: 'function', function: { name: 'c' } },
    ],
    [{ type: 'web_search_preview' }, { type: 'web_search_preview' }],
    [
      { type: 'mcp', server_label: 's', name: 't' },
      { type: 'mcp', server_label: 's', name: 't' },
    ],
    [
      {
        type: 'allowed_tools',
        mode: 'required',
        tools: [
          { type: 'function', name: 'f' },
          { type: 'mcp', server_label: 's' },
        ],
      },
      {
        type: 'allowed_tools',
        allowed_tools: {
          mode: 'required',
          tools: [
            { type: 'function', function: { name: 'f' } },
            { type: 'mcp', server_label: 's' },
          ],
        },
      },
    ],
  ];
  test.each(choices)('are chosen by %j', (toolChoice, expected) => {
    const tools = [FUNCTION, { type: 'custom', name: 'c' }];
    expect(requestOf({ input: 'Hi', tools, tool_choice: toolChoice }).tool_choice).toEqual(expected);
  });
});

test("items of the gateway's own tools are removed from a conversation, and those of the provider stay", () => {
  const search = (id: string) => ({
    type: 'web_search_call',
    id,
    status: 'completed',
    action: { type: 'search', query: 'q' },
  });
  const input = [
    { role: 'user', content: 'Hi' },
    search('ws_gateway_1'),
    search('ws_1'),
    { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'Yes', annotations: [] }] },
  ];
  const translated = JSON.stringify(requestOf({ input }).messages);
  expect(translated).not.toContain('ws_gateway_1');
  expect(translated).toContain('"ws_1"');
  expect(translated).toContain('Yes');
});
