/**
 * The loop of a coding agent over three wires and through three client APIs: a long prompt to be cached, thirty tools
 * that are all called at once, reasoning whose signatures must be sent back, results with an error and an image, a
 * stream that is aborted in its middle, and the work after it. The sandbox refuses what the real services refuse,
 * signatures included.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { geminiModelPrefix } from '../../sandbox/gemini-generate-content.ts';
import { startSandbox } from '../../sandbox/server.ts';
import type { Wire } from '../../src/schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../src/schemas/json.ts';
import { startGateway, type TestGateway } from '../harness.ts';
import { array, object } from '../readings/recordings.ts';
import { type RecordingProxy, startRecordingProxy } from '../recording-proxy.ts';

let sandbox: Awaited<ReturnType<typeof startSandbox>>;
let proxy: RecordingProxy;
let gateway: TestGateway;

const WIRES = {
  anthropic: { dialect: 'anthropic-messages', path: '/v1', prefix: '' },
  responses: { dialect: 'openai-responses', path: '/v1', prefix: '' },
  gemini: { dialect: 'gemini-generate-content', path: '/v1beta', prefix: geminiModelPrefix },
} as const satisfies Record<string, { dialect: Wire; path: string; prefix: string }>;
type WireName = keyof typeof WIRES;
const SLOW = '-slowly';

beforeAll(async () => {
  sandbox = await startSandbox();
  proxy = await startRecordingProxy(sandbox.url);
  const wires = Object.entries(WIRES);
  const providers = Object.fromEntries(
    wires.map(([name, { dialect, path }]) => [
      name,
      { dialect, base_url: proxy.url + path, abort_stops_billing: true, quirks: { cache_control: true } },
    ]),
  );
  const models = Object.fromEntries(
    wires.flatMap(([provider, { prefix }]) =>
      Object.entries({ '': 'tools', [SLOW]: 'tools;chunk_delay_ms=10' }).map(([end, upstreamModel]) => [
        `agent/${provider}${end}`,
        {
          input_modalities: ['text', 'image', 'file'],
          context_length: 200_000,
          endpoints: [
            {
              provider,
              upstream_model: prefix + upstreamModel,
              max_completion_tokens: 32_000,
              pricing: { prompt: 1, completion: 4, input_cache_read: 0.1, input_cache_write: 1.25 },
            },
          ],
        },
      ]),
    ),
  );
  gateway = await startGateway({
    yaml: JSON.stringify({ bundled_catalog: false, logging: { level: 'warn' }, providers, models }),
  });
});
afterAll(async () => {
  await gateway.stop();
  await proxy.stop();
  await sandbox.stop();
});

const TOOL_COUNT = 30;
const SYSTEM = `You are a coding agent. ${'Rule: read before you write, and say what you did. '.repeat(600)}`;
const FILES = Array.from(
  { length: 20 },
  (_, n) => `// file ${n}.ts\n${`export const value_${n} = ${n};\n`.repeat(120)}`,
);
const SCHEMA = { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] };
const TOOLS = Array.from({ length: TOOL_COUNT }, (_, n) => ({ name: `tool_${n}`, description: `Does the work ${n}.` }));
const PICTURE = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const FAILED = 1;
const SHOWN = 2;
const LONG = 'Write a long answer: '.repeat(60);
const EFFORT = 'high';
const OUTPUT_TOKENS = 8_000;

/** The calls of a turn's answer, in order. */
interface Call {
  id: string;
  name: string;
}
const resultTextOf = (at: number) => (at === FAILED ? 'File not found' : `Result ${at}`);

/** An agent in one client API: it holds the conversation in that API's own form. */
interface Agent {
  /** Sends a text, adds the whole answer to the conversation, and returns its calls. */
  ask(text: string): Promise<Call[]>;
  /** Answers all calls: one as failed, one with an image. */
  answer(calls: readonly Call[]): Promise<Call[]>;
  /** The model of further requests. */
  use(model: string): void;
  /**
   * Sends a text and disconnects in the middle of the answer. Returns the generation's id; nothing of it stays in the
   * conversation.
   */
  leave(text: string): Promise<string>;
  /** The last text. */
  text(): string;
}
type MakeAgent = (model: string) => Agent;

const CACHED = { type: 'ephemeral' } as const;

/** Reads a stream up to its third piece, then disconnects. */
async function readAndLeave(path: string, body: object): Promise<string> {
  const leaving = new AbortController();
  const response = await fetch(gateway.base_url + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
    signal: leaving.signal,
  });
  expect(response.status).toBe(200);
  let text = '';
  const decoder = new TextDecoder();
  try {
    for await (const piece of response.body!) {
      text += decoder.decode(piece as Uint8Array, { stream: true });
      if ((text.match(/long/g) ?? []).length > 3) leaving.abort();
    }
  } catch (error) {
    expect((error as Error).name).toBe('AbortError');
  }
  expect(text).not.toContain('message_stop');
  expect(text).not.toContain('[DONE]');
  return response.headers.get('x-generation-id')!;
}

const chatAgent: MakeAgent = (firstModel) => {
  let model = firstModel;
  const client = new OpenAI({ apiKey: gateway.key, baseURL: gateway.base_url, maxRetries: 0 });
  const cached = (text: string) => [{ type: 'text', text, cache_control: CACHED }];
  const messages: object[] = [
    { role: 'system', content: cached(SYSTEM) },
    { role: 'user', content: cached(FILES.join('\n')) },
  ];
  const body = () => ({
    model,
    messages,
    tools: TOOLS.map((tool) => ({ type: 'function', function: { ...tool, parameters: SCHEMA } })),
    reasoning: { effort: EFFORT },
    max_tokens: OUTPUT_TOKENS,
  });
  let text = '';
  async function next(): Promise<Call[]> {
    const stream = await client.chat.completions.create({
      ...(body() as unknown as OpenAI.ChatCompletionCreateParamsStreaming),
      stream: true,
    });
    const details = new Map<number, JsonObject>();
    const calls: { id: string; type: 'function'; function: { name: string; arguments: string } }[] = [];
    text = '';
    for await (const { choices } of stream) {
      const delta = choices[0]?.delta as
        | (OpenAI.ChatCompletionChunk.Choice.Delta & { reasoning_details?: JsonObject[] })
        | undefined;
      text += delta?.content ?? '';
      for (const detail of delta?.reasoning_details ?? []) {
        const index = Number(detail['index']);
        const former = details.get(index);
        const text = `${former?.['text'] ?? ''}${detail['text'] ?? ''}`;
        details.set(index, { ...former, ...detail, ...(text === '' ? {} : { text }) });
      }
      for (const { index, id, function: called } of delta?.tool_calls ?? []) {
        calls[index] ??= { id: id!, type: 'function', function: { name: called!.name!, arguments: '' } };
        calls[index].function.arguments += called?.arguments ?? '';
      }
    }
    messages.push({
      role: 'assistant',
      content: text,
      reasoning_details: [...details.values()],
      ...(calls.length === 0 ? {} : { tool_calls: calls }),
    });
    return calls.map((call) => ({ id: call.id, name: call.function.name }));
  }
  return {
    ask(text) {
      messages.push({ role: 'user', content: text });
      return next();
    },
    answer(calls) {
      const picture = { type: 'image_url', image_url: { url: `data:image/png;base64,${PICTURE}` } };
      messages.push(
        ...calls.map(({ id }, at) => ({
          role: 'tool',
          tool_call_id: id,
          content: at === SHOWN ? [{ type: 'text', text: resultTextOf(at) }, picture] : resultTextOf(at),
        })),
      );
      return next();
    },
    leave: (text) =>
      readAndLeave('/chat/completions', {
        ...body(),
        model: model + SLOW,
        messages: [...messages, { role: 'user', content: text }],
        tool_choice: 'none',
        stream: true,
      }),
    use(name) {
      model = name;
    },
    text: () => text,
  };
};

const responsesAgent: MakeAgent = (firstModel) => {
  let model = firstModel;
  const client = new OpenAI({ apiKey: gateway.key, baseURL: gateway.base_url, maxRetries: 0 });
  const cached = (text: string) => [{ type: 'input_text', text, prompt_cache_breakpoint: { mode: 'explicit' } }];
  const input: object[] = [
    { role: 'system', content: cached(SYSTEM) },
    { role: 'user', content: cached(FILES.join('\n')) },
  ];
  const body = () => ({
    model,
    input,
    tools: TOOLS.map((tool) => ({ type: 'function', ...tool, parameters: SCHEMA, strict: false })),
    reasoning: { effort: EFFORT },
    include: ['reasoning.encrypted_content'],
    max_output_tokens: OUTPUT_TOKENS,
    store: false,
  });
  let text = '';
  async function next(): Promise<Call[]> {
    const stream = client.responses.stream(body() as unknown as Parameters<typeof client.responses.stream>[0]);
    const response = await stream.finalResponse();
    text = response.output_text;
    input.push(...response.output);
    return response.output.flatMap((item) =>
      item.type === 'function_call' ? [{ id: item.call_id, name: item.name }] : [],
    );
  }
  return {
    ask(text) {
      input.push({ role: 'user', content: text });
      return next();
    },
    answer(calls) {
      const picture = { type: 'input_image', image_url: `data:image/png;base64,${PICTURE}`, detail: 'auto' };
      input.push(
        ...calls.map(({ id }, at) => ({
          type: 'function_call_output',
          call_id: id,
          output: at === SHOWN ? [{ type: 'input_text', text: resultTextOf(at) }, picture] : resultTextOf(at),
        })),
      );
      return next();
    },
    leave: (text) =>
      readAndLeave('/responses', {
        ...body(),
        model: model + SLOW,
        input: [...input, { role: 'user', content: text }],
        tool_choice: 'none',
        stream: true,
      }),
    use(name) {
      model = name;
    },
    text: () => text,
  };
};

const messagesAgent: MakeAgent = (firstModel) => {
  let model = firstModel;
  const client = new Anthropic({ apiKey: gateway.key, baseURL: gateway.base_url.replace(/\/v1$/, ''), maxRetries: 0 });
  const messages: { role: 'user' | 'assistant'; content: string | object[] }[] = [];
  const first = { type: 'text', text: FILES.join('\n'), cache_control: CACHED };
  const body = () => ({
    model,
    system: [{ type: 'text', text: SYSTEM, cache_control: CACHED }],
    messages,
    tools: TOOLS.map((tool) => ({ ...tool, input_schema: SCHEMA })),
    thinking: { type: 'enabled', budget_tokens: 4_000 },
    max_tokens: OUTPUT_TOKENS,
  });
  let text = '';
  async function next(): Promise<Call[]> {
    const message = await client.messages
      .stream(body() as unknown as Parameters<typeof client.messages.stream>[0])
      .finalMessage();
    text = message.content.map((block) => (block.type === 'text' ? block.text : '')).join('');
    messages.push({ role: 'assistant', content: message.content });
    return message.content.flatMap((block) => (block.type === 'tool_use' ? [{ id: block.id, name: block.name }] : []));
  }
  const userOf = (text: string) => ({
    role: 'user' as const,
    content: messages.length === 0 ? [first, { type: 'text', text }] : text,
  });
  return {
    ask(text) {
      messages.push(userOf(text));
      return next();
    },
    answer(calls) {
      const picture = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: PICTURE } };
      messages.push({
        role: 'user',
        content: calls.map(({ id }, at) => ({
          type: 'tool_result',
          tool_use_id: id,
          content: at === SHOWN ? [{ type: 'text', text: resultTextOf(at) }, picture] : resultTextOf(at),
          ...(at === FAILED ? { is_error: true } : {}),
        })),
      });
      return next();
    },
    leave: (text) =>
      readAndLeave('/messages', {
        ...body(),
        model: model + SLOW,
        messages: [...messages, userOf(text)],
        tool_choice: { type: 'none' },
        stream: true,
      }),
    use(name) {
      model = name;
    },
    text: () => text,
  };
};

const agents = { chat: chatAgent, Responses: responsesAgent, Messages: messagesAgent } as const;

/** The request that an upstream received, in the form of its wire. */
interface ReceivedTurn {
  /** The conversation, turn by turn or item by item. */
  turns: JsonObject[];
  tools: string[];
  /** Opaque reasoning state, in order. */
  state: string[];
  /** The number of cache breakpoints in the prompt. */
  cached: number;
  results: string[];
  errors: number;
  pictures: number;
}

const count = (value: JsonValue | undefined, what: RegExp) => (JSON.stringify(value ?? null).match(what) ?? []).length;

const tellers: Record<WireName, (body: JsonObject) => ReceivedTurn> = {
  anthropic(body) {
    const turns = array(body['messages']).map(object);
    const blocks = turns.flatMap(({ content }) => (typeof content === 'string' ? [] : array(content).map(object)));
    const results = blocks.filter(({ type }) => type === 'tool_result');
    return {
      turns,
      tools: array(body['tools']).map((tool) => String(object(tool)['name'])),
      state: blocks.filter(({ type }) => type === 'thinking').map(({ signature }) => String(signature)),
      cached: count(body, /"cache_control"/g),
      results: results.map((block) => JSON.stringify(block)),
      errors: results.filter(({ is_error }) => is_error === true).length,
      pictures: count(results, /"type":"image"/g),
    };
  },
  responses(body) {
    const turns = array(body['input']).map(object);
    const results = turns.filter(({ type }) => type === 'function_call_output');
    return {
      turns,
      tools: array(body['tools']).map((tool) => String(object(tool)['name'])),
      state: turns.filter(({ type }) => type === 'reasoning').map(({ encrypted_content: state }) => String(state)),
      cached: count(body, /"prompt_cache_breakpoint"/g),
      results: results.map((item) => JSON.stringify(item)),
      errors: 0,
      pictures: count(results, /"type":"input_image"/g),
    };
  },
  gemini(body) {
    const turns = array(body['contents']).map(object);
    const parts = turns.flatMap(({ parts: turnParts }) => array(turnParts).map(object));
    const results = parts.filter(({ functionResponse }) => functionResponse !== undefined);
    const declared = array(body['tools']).flatMap((tool) => array(object(tool)['functionDeclarations']));
    return {
      turns,
      tools: declared.map((tool) => String(object(tool)['name'])),
      state: parts.flatMap(({ thoughtSignature: signature }) => (signature === undefined ? [] : [String(signature)])),
      cached: 0,
      results: results.map((part) => JSON.stringify(part)),
      errors: count(results, /"response":\{"error"/g),
      pictures: count(turns, /"mimeType":"image\/png"/g),
    };
  },
};

const BYPASS = Buffer.from('skip_thought_signature_validator').toString('base64');

async function usedUsd(): Promise<number> {
  const { data } = (await (await gateway.call('GET', '/key')).json()) as { data: { usage: number } };
  return data.usage;
}

async function heldUsd(): Promise<number> {
  const text = await (await fetch(`${gateway.url}/metrics`)).text();
  return Number(/^gateway_ledger_held_usd(?:{.*})? (.+)$/m.exec(text)?.[1]);
}

async function generation(id: string): Promise<JsonObject> {
  for (let nth = 0; nth < 100; nth += 1) {
    const response = await gateway.call('GET', `/generation?id=${id}`);
    if (response.status === 200) return ((await response.json()) as { data: JsonObject }).data;
    await sleep(50);
  }
  throw new Error(`no record of ${id}`);
}

describe.each(Object.keys(agents) as (keyof typeof agents)[])('an agent that speaks the %s API', (api) => {
  test.each(Object.keys(WIRES) as WireName[])('works over the %s wire', async (wire) => {
    const start = proxy.passed.length;
    const tell = () => proxy.passed.slice(start).map(({ body }) => tellers[wire](body));
    const agent = agents[api](`agent/${wire}`);

    const calls = await agent.ask('Look at the files.');
    expect(calls.map(({ name }) => name)).toEqual(TOOLS.map(({ name }) => name));
    expect(new Set(calls.map(({ id }) => id)).size).toBe(TOOL_COUNT);
    expect(await agent.answer(calls)).toEqual([]);
    expect(agent.text()).toContain(`${resultTextOf(0)}; ${resultTextOf(FAILED)}; ${resultTextOf(SHOWN)}`);

    const before = await usedUsd();
    const left = await generation(await agent.leave(LONG));
    expect(left).toMatchObject({ cancelled: true, streamed: true });
    expect(Number(left['tokens_completion'])).toBeGreaterThan(0);
    expect(Number(left['tokens_completion'])).toBeLessThan(300);
    expect(await heldUsd()).toBe(0);
    expect(await usedUsd()).toBeCloseTo(before + Number(left['total_cost']), 9);

    const more = await agent.ask('Go on with the rest.');
    expect(more).toHaveLength(TOOL_COUNT);
    const known = new Set(calls.map(({ id }) => id));
    expect(more.filter(({ id }) => known.has(id))).toEqual([]);
    expect(await agent.answer(more)).toEqual([]);
    expect(agent.text()).toContain(resultTextOf(TOOL_COUNT - 1));

    // Nothing was refused or sent twice.
    const passed = proxy.passed.slice(start);
    expect(passed.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
    expect(passed.map((one) => one.left)).toEqual([false, false, true, false, false]);
    const [first, second, third, fourth, fifth] = tell() as [
      ReceivedTurn,
      ReceivedTurn,
      ReceivedTurn,
      ReceivedTurn,
      ReceivedTurn,
    ];
    for (const request of [first, second, fourth, fifth]) expect(request.tools).toEqual(TOOLS.map(({ name }) => name));
    // All earlier turns are sent unchanged, so prompts stay cached.
    for (const [earlier, later] of [
      [first, second],
      [second, third],
      [second, fourth],
      [fourth, fifth],
    ] as const) {
      expect(later.turns.slice(0, earlier.turns.length)).toEqual(earlier.turns);
    }
    expect(second.results).toHaveLength(TOOL_COUNT);
    for (const [at, result] of fifth.results.slice(TOOL_COUNT).entries()) expect(result).toContain(resultTextOf(at));
    expect(second.pictures).toBe(1);
    if (api === 'Messages' && wire !== 'responses') expect(second.errors).toBe(1);
    if (wire !== 'gemini') expect(first.cached).toBe(2);
    // Each turn's own state is sent from the first time on.
    expect(first.state).toEqual([]);
    expect(second.state.length).toBeGreaterThan(0);
    expect(fourth.state.slice(0, second.state.length)).toEqual(second.state);
    expect(fifth.state.length).toBeGreaterThan(second.state.length);
    for (const state of fifth.state) {
      expect(state).not.toMatch(/^gw1\./);
      expect(state).not.toBe(BYPASS);
    }
  });

  test('continues over another wire at every step, and never sends a wire the state of another', async () => {
    const start = proxy.passed.length;
    const agent = agents[api]('agent/anthropic');
    const calls = await agent.ask('Look at the files.');
    agent.use('agent/gemini');
    expect(await agent.answer(calls)).toEqual([]);
    agent.use('agent/responses');
    const more = await agent.ask('Go on.');
    expect(more).toHaveLength(TOOL_COUNT);
    agent.use('agent/anthropic');
    expect(await agent.answer(more)).toEqual([]);
    agent.use('agent/gemini');
    const last = await agent.ask('And the rest.');
    agent.use('agent/responses');
    expect(await agent.answer(last)).toEqual([]);
    expect(agent.text()).toContain(resultTextOf(TOOL_COUNT - 1));

    // The sandbox refuses signatures of others: then the request would have been sent twice.
    const passed = proxy.passed.slice(start);
    expect(passed.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 200]);
    const wires: WireName[] = ['anthropic', 'gemini', 'responses', 'anthropic', 'gemini', 'responses'];
    const requests = passed.map(({ body }, nth) => tellers[wires[nth]!](body));
    for (const { tools } of requests) expect(tools).toEqual(TOOLS.map(({ name }) => name));
    // Each wire receives its own state unchanged.
    expect(requests.map(({ state }) => state.length)).toEqual([0, 1, 0, 1, 0, 1]);
    expect(requests[1]!.state).toEqual([BYPASS]);
    expect(requests[5]!.state[0]).toMatch(/^gAAAA/);
    expect(JSON.stringify(passed[3]!.body)).not.toContain('redacted_thinking');
    expect(requests[5]!.results).toHaveLength(3 * TOOL_COUNT);
    expect(JSON.stringify(passed.map(({ body }) => body))).not.toContain('gw1.');
  });
});

test('a turn continues in the chat API with its content from the Messages API', async () => {
  const start = proxy.passed.length;
  const ask = async (path: string, body: object) => {
    const response = await gateway.call('POST', path, { model: 'agent/responses', max_tokens: OUTPUT_TOKENS, ...body });
    expect(response.status).toBe(200);
    return (await response.json()) as JsonObject;
  };
  const question = { role: 'user', content: 'Say something.' };
  const thinking = { type: 'enabled', budget_tokens: 4_000, display: 'summarized' };
  const { content } = await ask('/messages', { messages: [question], thinking });
  const [thought, text] = array(content).map(object) as [JsonObject, JsonObject];
  expect(thought['signature']).toMatch(/^gw1\./);
  const reasoningDetails = [
    { type: 'reasoning.text', text: thought['thinking'], signature: thought['signature'], format: null },
    { type: 'reasoning.encrypted', data: 'gw1.of.another', format: 'anthropic-claude-v1' },
  ];
  const turn = { role: 'assistant', content: text['text'], reasoning_details: reasoningDetails };
  await ask('/chat/completions', { messages: [question, turn, question] });
  const [, next] = proxy.passed.slice(start).map(({ body }) => tellers.responses(body));
  expect(next?.state).toEqual([expect.stringMatching(/^gAAAA/)]);
});
