import { describe, expect, test } from 'vitest';
import { responsesClient } from '../../api/responses/client.ts';
import { limits } from '../../limits.ts';
import type { ChatRequest, Message } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import type { DialectEndpoint } from '../dialect.ts';
import type { Quirks } from '../quirks.ts';
import { decodeTool, decodeToolChoice } from './declared.ts';
import { decodeInput } from './from-wire.ts';
import { openaiResponses } from './index.ts';

function encode(request: Partial<ChatRequest>, quirks: Quirks = {}, stripState = false) {
  const endpoint: DialectEndpoint = {
    model: 'openai/gpt-5',
    provider: 'openai',
    upstream_model: 'gpt-5',
    max_completion_tokens: undefined,
    context_length: undefined,
    input_modalities: ['text'],
    quirks,
  };
  const messages: Message[] = [{ role: 'user', content: 'Hello' }];
  return openaiResponses.encodeRequest({ messages, ...request }, endpoint, {
    media: new Map(),
    strip_state: stripState,
  });
}

describe('state', () => {
  const turn: Message = {
    role: 'assistant',
    content: 'Hi.',
    reasoning_details: [{ type: 'reasoning.encrypted', data: 'x', format: 'openai-responses-v1', id: 'rs_1' }],
  };

  test('that an upstream refused is omitted in the retry, and no new state is requested', () => {
    const messages = [turn, { role: 'user', content: 'And?' } as Message];
    expect(encode({ messages }).body).toMatchObject({
      include: ['reasoning.encrypted_content'],
      input: [{ type: 'reasoning' }, { role: 'assistant' }, { role: 'user' }],
    });
    const { body, report } = encode({ messages }, {}, true);
    expect(body['include']).toBeUndefined();
    expect(body['input']).toMatchObject([{ role: 'assistant' }, { role: 'user' }]);
    expect(report).toMatchObject([{ kind: 'dropped', field: 'messages[0].reasoning_details' }]);
  });

  test('is never stored upstream, whatever the client requests', () => {
    const keepers = {
      store: true,
      background: true,
      previous_response_id: 'resp_1',
      conversation: 'conv_1',
      prompt: {},
    };
    const rest = { ...keepers, include: ['web_search_call.results'], context_management: [] };
    const { body } = encode(
      { ext: { wire: 'openai-responses', client: responsesClient, rest } },
      { extra_body: { ...keepers, truncation: 'auto' } },
    );
    expect(body).toMatchObject({ store: false, truncation: 'auto', context_management: [] });
    for (const name of Object.keys(keepers)) if (name !== 'store') expect(body).not.toHaveProperty(name);
    expect(body['include']).toEqual(['web_search_call.results', 'reasoning.encrypted_content']);
    for (const name of Object.keys(keepers)) expect(openaiResponses.reserved.has(name), name).toBe(true);
  });
});

describe('a client of this API', () => {
  test('has strict tools by default, as in this API', () => {
    const declaration = { type: 'function', name: 'look', parameters: { type: 'object', properties: {} } };
    for (const [strict, sent] of [
      [undefined, null],
      [false, false],
      [true, true],
    ]) {
      const tool = decodeTool(strict === undefined ? declaration : { ...declaration, strict: strict! })!;
      expect(encode({ tools: [tool] }).body['tools']).toEqual([{ ...declaration, strict: sent }]);
    }
    // Schemas without properties are refused.
    for (const parameters of [undefined, {}, { type: 'object' }]) {
      const chat = { type: 'function' as const, function: { name: 'look', ...(parameters && { parameters }) } };
      expect(encode({ tools: [chat] }).body['tools']).toEqual([{ ...declaration, strict: false }]);
    }
  });

  test('has its tool choice sent in its own form', () => {
    const tools = [decodeTool({ type: 'function', name: 'look' })!, decodeTool({ type: 'web_search' })!];
    for (const choice of ['none', 'required', { type: 'function', name: 'look' }, { type: 'web_search' }]) {
      expect(encode({ tools, tool_choice: decodeToolChoice(choice)! }).body['tool_choice']).toEqual(choice);
    }
    const { body, report } = encode({ tools, tool_choice: { type: 'file_search' } });
    expect([body['tool_choice'], report[0]?.field]).toEqual([undefined, 'tool_choice']);
  });

  test('has its instructions kept in place, and its options take precedence over those of chat', () => {
    const messages = decodeInput({ instructions: 'Be brief.', input: 'Hello' });
    const rest = { reasoning: { context: 'all_turns' }, text: { verbosity: 'low' } };
    const { body } = encode({
      messages,
      reasoning: { effort: 'high' },
      response_format: { type: 'json_object' },
      ext: { wire: 'openai-responses', client: responsesClient, rest },
    });
    expect(body).toMatchObject({
      instructions: 'Be brief.',
      input: [{ role: 'user', content: 'Hello' }],
      reasoning: { context: 'all_turns', effort: 'high' },
      text: { verbosity: 'low', format: { type: 'json_object' } },
    });
  });

  test('has answers to the provider’s requests kept in place', () => {
    const input: JsonObject[] = [
      { type: 'message', role: 'user', content: 'Link it.' },
      { type: 'mcp_approval_request', id: 'mcpr_1', name: 'shorten', arguments: '{}', server_label: 's' },
      { type: 'mcp_approval_response', approval_request_id: 'mcpr_1', approve: true },
      { type: 'computer_call_output', call_id: 'call_1', output: { type: 'computer_screenshot' } },
    ];
    expect(encode({ messages: decodeInput({ input }) }).body['input']).toEqual(input);
  });
});

test('searches are limited to those that are paid for, if the upstream has a field for it', () => {
  const searching = { web_search_options: {}, max_tool_calls: 99 };
  expect(encode(searching).body['max_tool_calls']).toBe(limits.web_searches_assumed);
  expect(encode({ ...searching, max_tool_calls: 2 }).body['max_tool_calls']).toBe(2);
  expect(encode(searching, { refused_parameters: ['max_tool_calls'] }).body).not.toHaveProperty('max_tool_calls');
  expect(encode({ max_tool_calls: 2 }).body).not.toHaveProperty('max_tool_calls');
  expect(openaiResponses.reserved.has('max_tool_calls')).toBe(true);
});

test('tools in items have the same rules as tools of the request', () => {
  const search = { type: 'web_search' };
  const brought = (type: string, ...tools: JsonObject[]): JsonObject => ({ type, role: 'developer', tools });
  const items = [
    brought('additional_tools', search, { type: 'image_generation' }, { type: 'code_interpreter' }),
    brought('tool_search_output', { type: 'file_search' }, { type: 'shell', environment: { type: 'container_auto' } }),
  ];
  const messages = decodeInput({ input: items });
  const { body, report } = encode({ messages });
  expect(body['input']).toEqual([brought('additional_tools', search), brought('tool_search_output')]);
  expect(body['max_tool_calls']).toBe(limits.web_searches_assumed);
  expect(report.map(({ field }) => field)).toEqual(['input[0].tools', 'input[1].tools']);
  expect(encode({ messages }, { unpriced_tools: true }).body['input']).toEqual(items);
});

test('the end user is sent as a hash in the field that the upstream accepts', () => {
  const named = encode({ user: 'ann' }).body['safety_identifier'];
  expect(named).toMatch(/^[0-9a-f]{64}$/);
  for (const request of [{ user: 'ann' }, { safety_identifier: 'ann' }]) {
    const { body } = encode(request, { refused_parameters: ['safety_identifier'] });
    expect([body['user'], body['safety_identifier']]).toEqual([named, undefined]);
  }
});

test('a request is not modified', () => {
  const tools = [{ type: 'function' as const, function: { name: 'no name', parameters: {} } }];
  const request = {
    tools,
    messages: [{ role: 'user' as const, name: 'ann', content: [{ type: 'text' as const, text: 'Hi' }] }],
  };
  const before = structuredClone(request);
  encode(request, { cache_control: true, extra_body: { model: 'other' } });
  expect(request).toEqual(before);
});
