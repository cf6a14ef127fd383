import { describe, expect, test } from 'vitest';
import { chatClient } from '../../api/chat/client.ts';
import { responsesClient } from '../../api/responses/client.ts';
import { limits } from '../../limits.ts';
import type { ChatRequest, FunctionTool, Message } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { openaiChat } from '../openai-chat/index.ts';
import type { Quirks } from '../quirks.ts';
import { providerRows } from '../table.ts';
import { declaredTools, decodeToolChoice, decodeTools, toolsOfItems } from './declared.ts';
import { decodeInput } from './from-wire.ts';
import { openaiResponses } from './index.ts';

const FUNCTION = {
  type: 'function',
  name: 'f',
  description: 'F.',
  parameters: { type: 'object', properties: {} },
  strict: false,
};
const CUSTOM = { type: 'custom', name: 'c', description: 'C.', format: { type: 'text' } };
const NAMESPACE = { type: 'namespace', name: 'ns', description: 'N.', tools: [FUNCTION, { ...CUSTOM, name: 'd' }] };

/** A request of a client of this API, on its own wire. */
function send(fields: Partial<ChatRequest>, quirks: Quirks = {}, rest: JsonObject = {}, dialect = openaiResponses) {
  const messages: Message[] = [{ role: 'user', content: 'Hello' }];
  const ext = { wire: 'openai-responses', client: responsesClient, rest } as const;
  const facts = { max_completion_tokens: undefined, context_length: undefined, input_modalities: ['text'] };
  const endpoint = { model: 'a/b', provider: 'maker', upstream_model: 'm', ...facts, quirks };
  return dialect.encodeRequest({ messages, ext, ...fields }, endpoint, { media: new Map(), strip_state: false });
}

describe('tools are sent as declared', () => {
  test('functions, custom tools and namespaces, in their order', () => {
    const declarations = [
      NAMESPACE,
      FUNCTION,
      CUSTOM,
      { ...NAMESPACE, name: 'other' },
      { ...NAMESPACE, name: 'third' },
    ];
    const { body, report } = send({ tools: decodeTools(declarations) });
    expect(body['tools']).toEqual(declarations);
    expect(report).toEqual([]);
  });

  test('tools of an item are in the item alone, and in the list of tools on other wires', () => {
    const item = { type: 'additional_tools', role: 'developer', tools: [{ ...FUNCTION, name: 'late' }] };
    const declared = decodeTools([FUNCTION]);
    const tools = [...declared, ...toolsOfItems([item], declared)];
    const messages = decodeInput({ input: [{ role: 'user', content: 'Hi' }, item] });
    expect(send({ tools, messages }).body).toMatchObject({ tools: [FUNCTION], input: [{ role: 'user' }, item] });
    expect(send({ tools, messages }, {}, {}, openaiChat).body['tools']).toMatchObject([
      { function: { name: 'f' } },
      { function: { name: 'late' } },
    ]);
  });

  test('calls of namespaced and custom tools have their names on other wires', () => {
    const input = [
      { type: 'function_call', id: 'fc_1', call_id: 'call_1', name: 'f', namespace: 'ns', arguments: '{}' },
      { type: 'custom_tool_call', id: 'ctc_1', call_id: 'call_2', name: 'd', namespace: 'ns', input: 'free "text"' },
      { type: 'function_call_output', call_id: 'call_1', output: 'F' },
      { type: 'custom_tool_call_output', call_id: 'call_2', output: 'D' },
    ];
    const messages = decodeInput({ input });
    expect(send({ messages }).body['input']).toEqual(input);
    expect(send({ messages }, {}, {}, openaiChat).body['messages']).toMatchObject([
      {
        tool_calls: [
          { function: { name: 'ns__f', arguments: '{}' } },
          { function: { name: 'ns__d', arguments: '{"input":"free \\"text\\""}' } },
        ],
      },
      { role: 'tool', content: 'F' },
      { role: 'tool', content: 'D' },
    ]);
  });

  test.each([
    { type: 'custom', name: 'c' },
    { type: 'function', name: 'f' },
    {
      type: 'allowed_tools',
      mode: 'auto',
      tools: [
        { type: 'custom', name: 'c' },
        { type: 'mcp', server_label: 's' },
      ],
    },
    { type: 'mcp', server_label: 's' },
  ])('the tool choice %j', (choice) => {
    const tools = decodeTools([FUNCTION, CUSTOM, { type: 'mcp', server_label: 's' }]);
    expect(send({ tools, tool_choice: decodeToolChoice(choice)! }).body['tool_choice']).toEqual(choice);
  });

  test('declared tools are found by their names on other wires', () => {
    expect([...declaredTools(decodeTools([FUNCTION, CUSTOM, NAMESPACE, { type: 'mcp' }]))]).toEqual([
      ['f', { name: 'f', namespace: undefined, is_custom: false }],
      ['c', { name: 'c', namespace: undefined, is_custom: true }],
      ['ns__f', { name: 'f', namespace: 'ns', is_custom: false }],
      ['ns__d', { name: 'd', namespace: 'ns', is_custom: true }],
    ]);
  });

  test('a name that is too long with its namespace is shortened on other wires', () => {
    const tools = decodeTools([{ ...NAMESPACE, name: 'n'.repeat(62), tools: [FUNCTION] }]);
    const [sent] = send({ tools }, {}, {}, openaiChat).body['tools'] as unknown as FunctionTool[];
    expect(sent!.function.name.length).toBe(limits.tool_name_chars_max);
    expect(send({ tools }).report).toEqual([]);
  });
});

describe('tools with uncounted cost', () => {
  const UNPRICED: JsonObject[] = [
    { type: 'image_generation' },
    { type: 'code_interpreter', container: { type: 'auto' } },
    { type: 'file_search', vector_store_ids: ['vs_1'] },
    { type: 'shell', environment: { type: 'container_auto' } },
    { type: 'shell', environment: { type: 'container_reference', container_id: 'c' } },
  ];
  test.each(UNPRICED)('%j is dropped, unless the operator allows it', (tool) => {
    const tools = decodeTools([tool, FUNCTION]);
    const { body, report } = send({ tools });
    expect(body['tools']).toEqual([FUNCTION]);
    expect(report).toMatchObject([{ kind: 'dropped', field: 'tools[0]' }]);
    expect(send({ tools }, { unpriced_tools: true }).body['tools']).toEqual([tool, FUNCTION]);
  });

  test.each<JsonObject>([
    { type: 'shell' },
    { type: 'shell', environment: { type: 'local' } },
    { type: 'local_shell' },
    { type: 'mcp', server_label: 's' },
    { type: 'computer_use_preview' },
    { type: 'web_search', search_context_size: 'low' },
    { type: 'tool_search' },
  ])('%j is sent', (tool) => {
    expect(send({ tools: decodeTools([tool]) }).body['tools']).toEqual([tool]);
  });

  test('calls of provider-side tools are bounded by the client’s bound and by the spend limit', () => {
    const bound = (tool: JsonObject, maxToolCalls?: number) =>
      send({ tools: decodeTools([tool]), ...(maxToolCalls === undefined ? {} : { max_tool_calls: maxToolCalls }) });
    expect(bound({ type: 'web_search' }).body['max_tool_calls']).toBe(limits.web_searches_assumed);
    expect(bound({ type: 'mcp' }).body).not.toHaveProperty('max_tool_calls');
    expect(bound({ type: 'mcp' }, 2).body['max_tool_calls']).toBe(2);
    expect(bound(FUNCTION, 2).body).not.toHaveProperty('max_tool_calls');
    const { body, report } = bound({ type: 'mcp' }, 99);
    expect(body['max_tool_calls']).toBe(limits.web_searches_assumed);
    expect(report).toMatchObject([{ kind: 'clamped', field: 'max_tool_calls' }]);
  });

  test('the gateway’s fields are dropped from a client’s other fields, with a report', () => {
    const rest = { n: 4, models: ['x'], api_key: 'k', moderation: { model: 'm' } };
    const { body, report } = send({}, {}, rest);
    expect(body).toMatchObject({ moderation: { model: 'm' } });
    for (const name of ['n', 'models', 'api_key']) expect(body).not.toHaveProperty(name);
    expect(report.map(({ field }) => field)).toEqual(['n', 'models', 'api_key']);
  });
});

describe('fields of this API', () => {
  const metadata = { a: 'b' };
  const streamOptions = { include_obfuscation: false };

  test('metadata and stream options are sent for clients of this API alone', () => {
    expect(send({ metadata, stream: true }, {}, { stream_options: streamOptions }).body).toMatchObject({
      metadata,
      stream_options: streamOptions,
    });
    expect(send({ metadata }, {}, { stream_options: streamOptions }).body).not.toHaveProperty('stream_options');
    const refusedParameters = ['metadata', 'stream_options'];
    const { body, report } = send(
      { metadata, stream: true },
      { refused_parameters: refusedParameters },
      { stream_options: streamOptions },
    );
    expect(body).not.toHaveProperty('metadata');
    expect(body).not.toHaveProperty('stream_options');
    expect(report).toMatchObject([{ kind: 'dropped', field: 'metadata' }]);
    const chat = send({ metadata, ext: { wire: 'openai-chat', client: chatClient, rest: {} } });
    expect(chat.body).not.toHaveProperty('metadata');
    expect(chat.report).toMatchObject([{ kind: 'dropped', field: 'metadata' }]);
  });

  test('a prompt cache breakpoint keeps its form', () => {
    const promptCacheBreakpoint = { mode: 'explicit', ttl: '12h' };
    const content = [{ type: 'input_text', text: 'Long.', prompt_cache_breakpoint: promptCacheBreakpoint }];
    const messages = decodeInput({ input: [{ role: 'user', content }] });
    for (const quirks of [{}, { cache_control: true }]) {
      expect(send({ messages }, quirks).body['input']).toEqual([{ type: 'message', role: 'user', content }]);
    }
  });

  const filter = { allowed_x_handles: ['a'], from_date: '2026-01-01', excluded_x_handles: null };
  const sent = { type: 'x_search', allowed_x_handles: ['a'], from_date: '2026-01-01' };

  test('an X search filter becomes a tool if the endpoint searches X', () => {
    const { body, report } = send({ x_search_filter: filter }, { x_search: true });
    expect(body['tools']).toEqual([sent]);
    expect(body).not.toHaveProperty('x_search_filter');
    expect(report).toEqual([]);
    const tools = decodeTools([{ type: 'x_search', enable_video_understanding: true }]);
    expect(send({ tools, x_search_filter: filter }, { x_search: true }).body['tools']).toEqual([
      { ...sent, enable_video_understanding: true },
    ]);
  });

  test('of the providers, only xAI searches X', () => {
    const searching = providerRows.filter(({ quirks }) => quirks?.x_search === true);
    expect(searching.map(({ slug }) => slug)).toEqual(['xai']);
  });

  test('on other endpoints an X search filter is dropped with a report', () => {
    for (const dialect of [openaiResponses, openaiChat]) {
      const { body, report } = send({ x_search_filter: filter }, {}, {}, dialect);
      expect(JSON.stringify(body)).not.toContain('x_search');
      expect(report).toMatchObject([{ kind: 'dropped', field: 'x_search_filter' }]);
    }
  });
});

test('reasoning without a named vendor is sent to all endpoints of this API', () => {
  const item = { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'RU5D' };
  const azure = { ...item, format: 'azure-openai-responses-v1' };
  const reply = { type: 'message', role: 'assistant', content: 'So.' };
  const sentTo = (item: JsonObject, quirks: Quirks, dialect = openaiResponses) =>
    JSON.stringify(send({ messages: decodeInput({ input: [item, reply] }) }, quirks, {}, dialect).body);
  for (const reasoningFormat of ['openai-responses-v1', 'azure-openai-responses-v1', 'xai-responses-v1'] as const) {
    expect(sentTo(item, { reasoning_format: reasoningFormat })).toContain('RU5D');
    expect(sentTo(azure, { reasoning_format: reasoningFormat }).includes('RU5D')).toBe(
      reasoningFormat === 'azure-openai-responses-v1',
    );
  }
  expect(sentTo(item, {}, openaiChat)).not.toContain('RU5D');
  expect(sentTo(item, { replay_reasoning: 'reasoning_details' }, openaiChat)).toContain('"openai-responses-v1"');
});
