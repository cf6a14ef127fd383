import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Sandbox, startSandbox } from './server.ts';

let sandbox: Sandbox;
beforeAll(async () => {
  sandbox = await startSandbox();
});
afterAll(() => sandbox.stop());

const ask = (change: Record<string, unknown> = {}) => ({
  model: 'echo',
  stream: false,
  messages: [{ role: 'user', content: 'Good morning.' }],
  ...change,
});

async function post(body: unknown) {
  const response = await fetch(`${sandbox.url}/v2/chat`, { method: 'POST', body: JSON.stringify(body) });
  return { status: response.status, text: await response.text() };
}

const call = { id: 'a', type: 'function', function: { name: 'b', arguments: '{}' } };
const tool = (required: string[]) => ({
  type: 'function',
  function: { name: 'b', parameters: { type: 'object', properties: { c: { type: 'string' } }, required } },
});

describe('cohere-chat', () => {
  test('an answer has content and a finish reason, and separates billed units from counted tokens', async () => {
    const { text } = await post(ask());
    expect(JSON.parse(text)).toMatchObject({
      finish_reason: 'COMPLETE',
      message: { role: 'assistant', content: [{ type: 'text', text: 'Good morning.' }] },
      usage: { billed_units: { input_tokens: 4 + 3, output_tokens: 3 }, tokens: { input_tokens: 490 + 4 + 3 } },
    });
  });

  test('a stream names its events, and numbers contents and tool calls separately', async () => {
    const { text } = await post(
      ask({ model: 'tools', stream: true, tools: [tool(['c'])], thinking: { type: 'enabled' } }),
    );
    const types = text.split('\n\n').map((event) => /^event: (\S+)/.exec(event)?.[1]);
    expect([...new Set(types)]).toEqual([
      'message-start',
      'content-start',
      'content-delta',
      'content-end',
      'tool-call-start',
      'tool-call-delta',
      'tool-call-end',
      'message-end',
      undefined,
    ]);
    expect(text).toContain('"finish_reason":"TOOL_CALL"');
  });

  test.each<[number, string, Record<string, unknown>]>([
    [422, "unknown field: parameter 'top_p' is not a valid field", { top_p: 0.5 }],
    [400, 'temperature must be between 0 and 1', { temperature: 1.5 }],
    [400, 'cannot specify both', { frequency_penalty: 0.1, presence_penalty: 0.1 }],
    [400, 'p must be between 0.01 and 0.99', { p: 1 }],
    [400, 'stop_sequences must be a list of up to 5', { stop_sequences: ['a', 'b', 'c', 'd', 'e', 'f'] }],
    [400, 'seed must be', { seed: -1 }],
    [400, 'token_budget must be a positive integer', { thinking: { type: 'enabled', token_budget: 0 } }],
    [400, 'message must not be empty', { messages: [{ role: 'user', content: '' }] }],
    [400, "type 'file' is not valid", { messages: [{ role: 'user', content: [{ type: 'file' }] }] }],
    [
      400,
      'text content is not allowed when tool_calls are provided',
      { messages: [{ role: 'assistant', content: 'a', tool_calls: [call] }] },
    ],
    [400, 'missing tool results', { messages: [{ role: 'assistant', tool_calls: [call] }] }],
    [400, 'not found in previous tool calls', { messages: [{ role: 'tool', tool_call_id: 'a', content: 'b' }] }],
    [400, 'tools must not be empty', { tools: [] }],
    [400, 'tool_choice requires tools', { tool_choice: 'NONE' }],
    [400, 'at least one parameter must be required', { tools: [tool([])], strict_tools: true }],
    [400, 'not supported with tools', { tools: [tool([])], response_format: { type: 'json_object' } }],
    [400, 'too many tokens: max tokens', { max_tokens: 1_000_000 }],
    [404, "model 'nothing' not found", { model: 'nothing' }],
  ])('%i: %s', async (status, message, change) => {
    const { status: got, text } = await post(ask(change));
    expect([got, JSON.parse(text).message]).toEqual([status, expect.stringContaining(message)]);
  });
});
