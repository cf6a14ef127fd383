/** Answers with an impossible count or call, on every wire: they are not free, and no call is silently lost. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Wire } from '../../src/schemas/inner.ts';
import type { JsonObject } from '../../src/schemas/json.ts';
import { startGateway, type TestGateway } from '../harness.ts';
import { responseHead, startWireServer, type WireServer } from '../wires/wire-server.ts';

const TEXT = 'The river runs past the old stone house.';

/** The answers of one wire: a text with counts, and a call. `name`: of the called tool. */
interface Scripts {
  counted(input: number, output: number): JsonObject;
  called(name: string | undefined): JsonObject;
  /** Both as the events of a stream. */
  countedEvents?(input: number, output: number): JsonObject[];
  calledEvents?(name: string | undefined): JsonObject[];
}

const chatEvent = (delta: JsonObject, more: JsonObject = {}): JsonObject => ({
  id: 'c',
  choices: [{ index: 0, delta, ...more }],
});
const chatCall = (name: string | undefined): JsonObject => ({
  index: 0,
  id: 'c1',
  type: 'function',
  function: { ...(name === undefined ? {} : { name }), arguments: '{}' },
});
const chatUsage = (input: number, output: number) => ({ prompt_tokens: input, completion_tokens: output });
const message = (content: JsonObject[], usage: JsonObject, reason: string): JsonObject => ({
  id: 'm',
  type: 'message',
  role: 'assistant',
  model: 'x',
  content,
  stop_reason: reason,
  usage,
});
const block = (index: number, opening: JsonObject, delta: JsonObject): JsonObject[] => [
  { type: 'content_block_start', index, content_block: opening },
  { type: 'content_block_delta', index, delta },
  { type: 'content_block_stop', index },
];
const messageEvents = (blocks: JsonObject[], usage: JsonObject, reason: string): JsonObject[] => [
  { type: 'message_start', message: message([], { input_tokens: usage['input_tokens'] ?? 9 }, 'end_turn') },
  ...blocks,
  { type: 'message_delta', delta: { stop_reason: reason }, usage },
  { type: 'message_stop' },
];
const response = (output: JsonObject[], usage: JsonObject): JsonObject => ({
  id: 'r',
  object: 'response',
  status: 'completed',
  model: 'x',
  output,
  usage,
});
const spoken: JsonObject = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  status: 'completed',
  content: [{ type: 'output_text', text: TEXT, annotations: [] }],
};
const functionCall = (name: string | undefined): JsonObject => ({
  id: 'fc_1',
  type: 'function_call',
  call_id: 'c1',
  ...(name === undefined ? {} : { name }),
  arguments: '{}',
});
const itemEvents = (item: JsonObject, usage: JsonObject): JsonObject[] => [
  { type: 'response.created', response: { ...response([], {}), status: 'in_progress', usage: null } },
  { type: 'response.output_item.added', output_index: 0, item },
  { type: 'response.output_item.done', output_index: 0, item },
  { type: 'response.completed', response: response([item], usage) },
];
const gemini = (parts: JsonObject[], usage: JsonObject): JsonObject => ({
  candidates: [{ content: { role: 'model', parts }, finishReason: 'STOP', index: 0 }],
  usageMetadata: usage,
});

const scripts: Record<Wire, Scripts> = {
  'openai-chat': {
    counted: (input, output) => ({
      choices: [{ index: 0, message: { role: 'assistant', content: TEXT }, finish_reason: 'stop' }],
      usage: chatUsage(input, output),
    }),
    called: (name) => ({
      choices: [
        { index: 0, message: { role: 'assistant', tool_calls: [chatCall(name)] }, finish_reason: 'tool_calls' },
      ],
      usage: chatUsage(9, 9),
    }),
    countedEvents: (input, output) => [
      chatEvent({ content: TEXT }),
      { ...chatEvent({}, { finish_reason: 'stop' }), usage: chatUsage(input, output) },
    ],
    calledEvents: (name) => [
      chatEvent({ tool_calls: [chatCall(name)] }),
      { ...chatEvent({}, { finish_reason: 'tool_calls' }), usage: chatUsage(9, 9) },
    ],
  },
  'anthropic-messages': {
    counted: (input, output) =>
      message([{ type: 'text', text: TEXT }], { input_tokens: input, output_tokens: output }, 'end_turn'),
    called: (name) =>
      message(
        [{ type: 'tool_use', id: 't1', ...(name === undefined ? {} : { name }), input: {} }],
        { input_tokens: 9, output_tokens: 9 },
        'tool_use',
      ),
    countedEvents: (input, output) =>
      messageEvents(
        block(0, { type: 'text', text: '' }, { type: 'text_delta', text: TEXT }),
        { input_tokens: input, output_tokens: output },
        'end_turn',
      ),
    calledEvents: (name) =>
      messageEvents(
        block(
          0,
          { type: 'tool_use', id: 't1', ...(name === undefined ? {} : { name }), input: {} },
          { type: 'input_json_delta', partial_json: '{}' },
        ),
        { output_tokens: 9 },
        'tool_use',
      ),
  },
  'openai-responses': {
    counted: (input, output) => response([spoken], { input_tokens: input, output_tokens: output }),
    called: (name) => response([functionCall(name)], { input_tokens: 9, output_tokens: 9 }),
    countedEvents: (input, output) => itemEvents(spoken, { input_tokens: input, output_tokens: output }),
    calledEvents: (name) => itemEvents(functionCall(name), { input_tokens: 9, output_tokens: 9 }),
  },
  'gemini-generate-content': {
    counted: (input, output) => gemini([{ text: TEXT }], { promptTokenCount: input, candidatesTokenCount: output }),
    called: (name) =>
      gemini([{ functionCall: { ...(name === undefined ? {} : { name }), args: {} } }], {
        promptTokenCount: 9,
        candidatesTokenCount: 9,
      }),
    countedEvents: (input, output) => [
      gemini([{ text: TEXT }], { promptTokenCount: input, candidatesTokenCount: output }),
    ],
    calledEvents: (name) => [
      gemini([{ functionCall: { ...(name === undefined ? {} : { name }), args: {} } }], {
        promptTokenCount: 9,
        candidatesTokenCount: 9,
      }),
    ],
  },
  'cohere-chat': {
    counted: (input, output) => ({
      id: 'm',
      finish_reason: 'COMPLETE',
      message: { role: 'assistant', content: [{ type: 'text', text: TEXT }] },
      usage: { billed_units: { input_tokens: input, output_tokens: output } },
    }),
    called: (name) => ({
      id: 'm',
      finish_reason: 'TOOL_CALL',
      message: { role: 'assistant', tool_calls: [chatCall(name)] },
      usage: { billed_units: { input_tokens: 9, output_tokens: 9 } },
    }),
    calledEvents: (name) => [
      { type: 'message-start', id: 'm', delta: { message: { role: 'assistant' } } },
      { type: 'tool-call-start', index: 0, delta: { message: { tool_calls: chatCall(name) } } },
      { type: 'tool-call-end', index: 0 },
      { type: 'message-end', delta: { finish_reason: 'TOOL_CALL', usage: {} } },
    ],
  },
  'bedrock-converse': {
    counted: (input, output) => ({
      output: { message: { role: 'assistant', content: [{ text: TEXT }] } },
      stopReason: 'end_turn',
      usage: { inputTokens: input, outputTokens: output },
    }),
    called: (name) => ({
      output: {
        message: {
          role: 'assistant',
          content: [{ toolUse: { toolUseId: 't1', ...(name === undefined ? {} : { name }), input: {} } }],
        },
      },
      stopReason: 'tool_use',
      usage: { inputTokens: 9, outputTokens: 9 },
    }),
  },
};
const wires = Object.keys(scripts) as Wire[];
const streamed = wires.filter((wire) => scripts[wire].calledEvents !== undefined);

let answer = '';
let type = 'application/json';
let upstream: WireServer;
let gateway: TestGateway;
beforeAll(async () => {
  upstream = await startWireServer(() => [responseHead(200, type), answer, 'END']);
  const provider = (dialect: Wire) => ({ name: dialect, dialect, base_url: upstream.url, api_key: 'k' });
  gateway = await startGateway({
    yaml: JSON.stringify({
      bundled_catalog: false,
      providers: Object.fromEntries(wires.map((wire) => [wire, provider(wire)])),
      models: Object.fromEntries(
        wires.map((wire) => [
          `test/${wire}`,
          {
            context_length: 10_000,
            endpoints: [{ provider: wire, upstream_model: 'x', pricing: { prompt: 0, completion: 1_000 } }],
          },
        ]),
      ),
    }),
  });
});
afterAll(async () => {
  await gateway.stop();
  await upstream.stop();
});

const eventsOf = (wire: Wire, events: JsonObject[]) =>
  events
    .map((one) => `${typeof one['type'] === 'string' ? `event: ${one['type']}\n` : ''}data: ${JSON.stringify(one)}\n\n`)
    .join('') + (wire === 'openai-chat' ? 'data: [DONE]\n\n' : '');

async function ask(wire: Wire, script: JsonObject | JsonObject[]) {
  const stream = Array.isArray(script);
  answer = stream ? eventsOf(wire, script) : JSON.stringify(script);
  type = stream ? 'text/event-stream' : 'application/json';
  const body = { model: `test/${wire}`, stream, messages: [{ role: 'user', content: 'Hi' }] };
  const reply = await gateway.call('POST', '/chat/completions', body);
  const text = await reply.text();
  return { status: reply.status, text, cost: Number(/"cost":([^,}]+)/.exec(text)?.[1]) };
}

describe('a negative count is ignored, and the answer is charged by the received content', () => {
  test.each(wires)('%s, whole', async (wire) => {
    const { cost } = await ask(wire, scripts[wire].counted(5, -1));
    expect(cost).toBeGreaterThan(0.005);
  });
  test.each(streamed.filter((wire) => scripts[wire].countedEvents))('%s, streamed', async (wire) => {
    const { cost } = await ask(wire, scripts[wire].countedEvents!(5, -1));
    expect(cost).toBeGreaterThan(0.005);
  });
});

test('content that arrives after the last usage of a Gemini stream is charged', async () => {
  const first = gemini([{ text: 'The' }], { promptTokenCount: 5, candidatesTokenCount: 1, totalTokenCount: 6 });
  const { candidates } = gemini([{ text: TEXT }], {});
  delete (first['candidates'] as JsonObject[])[0]!['finishReason'];
  const { cost } = await ask('gemini-generate-content', [first, { candidates: candidates! }]);
  expect(cost).toBeGreaterThan(0.005);
});

describe('a tool call without a name is a failure of the provider', () => {
  test.each(wires)('%s, whole', async (wire) => {
    const good = await ask(wire, scripts[wire].called('look'));
    expect([good.status, good.text]).toEqual([200, expect.stringContaining('"name":"look"')]);
    for (const name of [undefined, '']) {
      const { status, text } = await ask(wire, scripts[wire].called(name));
      expect([name, status, text]).toEqual([name, 502, expect.stringContaining('"error"')]);
    }
  });
  test.each(streamed)('%s, streamed', async (wire) => {
    const good = await ask(wire, scripts[wire].calledEvents!('look'));
    expect([good.status, good.text]).toEqual([200, expect.stringContaining('"name":"look"')]);
    for (const name of [undefined, '']) {
      const { text } = await ask(wire, scripts[wire].calledEvents!(name));
      expect(text).toContain('"error"');
      expect(text).not.toContain('"tool_calls":[');
    }
  });
});
