/** Output filters through a running gateway, as clients of every API see them. */
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { dialects } from '../../src/providers/dialects.ts';
import type { Wire } from '../../src/schemas/inner.ts';
import type { JsonObject } from '../../src/schemas/json.ts';
import { startGateway, type TestGateway } from '../harness.ts';
import { bytesOf, type ModelOutput } from '../leak-streams.ts';

const wires: readonly Wire[] = [...dialects.keys()];
const SECRET = '4111 1111 1111 1111';
const output: ModelOutput = {
  reasoning: ['They paid with 4111 11', '11 1111 1111, I see.'],
  text: ['The card is 4111', ' 1111 1111 1', '111. Anything else?'],
  args: ['{"card":"4111 1111', ' 1111 1111","n":1}'],
};

let upstream: Server;
let gateway: TestGateway;
/** The received bodies, and whether the gateway closed the connection of an endless answer. */
let bodies: JsonObject[] = [];
let hungUp = 0;

/** A provider of the wire that is first in the path. The answer of the model `endless` never ends. */
function answer(path: string, body: JsonObject, response: ServerResponse): void {
  const [, wire] = path.split('/') as [string, Wire];
  const type = wire === 'bedrock-converse' ? 'application/vnd.amazon.eventstream' : 'text/event-stream';
  if (body['model'] === 'endless') {
    response.writeHead(200, { 'content-type': type });
    const chunk = (content: string) =>
      `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta: { content } }] })}\n\n`;
    response.write(chunk('The card is 4111 1111') + chunk(' 1111 1111. And'));
    const timer = setInterval(() => response.write(chunk(' on')), 5);
    response.on('close', () => {
      clearInterval(timer);
      hungUp += 1;
    });
    return;
  }
  if (body['model'] === 'failing') {
    response.writeHead(400, { 'content-type': 'application/json' });
    const failedGeneration = '{"card": "4111 1111 1111 1111"}';
    const error = {
      message: `Failed to call a function: ${failedGeneration}`,
      code: 'tool_use_failed',
      failed_generation: failedGeneration,
    };
    response.end(JSON.stringify({ error }));
    return;
  }
  if (body['model'] === 'unreadable') {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ choices: {}, texts: ['The card is 4111 11', '11 1111 1111.'] }));
    return;
  }
  if (body['model'] === 'steps') {
    const isLast = (body['messages'] as { role: string }[]).some(({ role }) => role === 'tool');
    const tools = (body['tools'] ?? []) as { function: { name: string } }[];
    const chunk = (delta: object, finishReason: string | null = null) =>
      `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: finishReason }] })}\n\n`;
    const called = {
      index: 0,
      id: 'call_1',
      type: 'function',
      function: { name: tools[0]?.function.name, arguments: '{}' },
    };
    const text = isLast ? 'And 5500-0000-0000-0004.' : 'The card is 4111 1111 1111 1111';
    response.writeHead(200, { 'content-type': type });
    response.write(
      text
        .match(/.{1,3}/g)!
        .map((content) => chunk({ content }))
        .join(''),
    );
    response.end(
      `${isLast ? chunk({}, 'stop') : chunk({ tool_calls: [called] }) + chunk({}, 'tool_calls')}data: [DONE]\n\n`,
    );
    return;
  }
  if (body['model'] === 'broken') {
    const message = { role: 'assistant', content: '```json\n{"card": "4111 1111 1111 1111",}\n```' };
    const usage = { prompt_tokens: 3, completion_tokens: 9, total_tokens: 12 };
    response.setHeader('content-type', 'application/json');
    response.end(
      JSON.stringify({
        object: 'chat.completion',
        created: 1,
        choices: [{ index: 0, message, finish_reason: 'stop' }],
        usage,
      }),
    );
    return;
  }
  if (body['model'] === 'form') {
    const content = '{"to":"[ADDRESS_1]","card":4111111111111111,"note":"Card:\\n4111 1111 1111 1111"}';
    const chunk = (delta: object, finishReason: string | null = null) =>
      `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: finishReason }] })}\n\n`;
    response.writeHead(200, { 'content-type': type });
    response.write([...content].map((piece) => chunk({ content: piece })).join(''));
    response.end(`${chunk({}, 'stop')}data: [DONE]\n\n`);
    return;
  }
  if (body['model'] === 'echo') {
    const lastMessage = (body['messages'] as { content: string }[]).at(-1)!.content;
    const content = `You wrote: ${lastMessage} Again: \\[credit_card\\_1\\]. [CREDIT_CARD_2] stays.`;
    const args = '{"card":"[CREDIT_CARD_1]"}';
    const call = { index: 0, id: 'call_1', type: 'function', function: { name: 'send', arguments: '' } };
    const chunk = (delta: object, finishReason: string | null = null) =>
      `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: finishReason }] })}\n\n`;
    if (body['stream'] === true) {
      response.writeHead(200, { 'content-type': type });
      for (const piece of content.match(/.{1,3}/g)!) response.write(chunk({ content: piece }));
      response.write(chunk({ tool_calls: [call] }));
      for (const piece of args.match(/.{1,3}/g)!) {
        response.write(chunk({ tool_calls: [{ index: 0, function: { arguments: piece } }] }));
      }
      response.end(`${chunk({}, 'tool_calls')}data: [DONE]\n\n`);
      return;
    }
    const message = { role: 'assistant', content };
    const choices = [{ index: 0, message, finish_reason: 'stop' }];
    const usage = { prompt_tokens: 3, completion_tokens: 9, total_tokens: 12 };
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ object: 'chat.completion', created: 1, choices, usage }));
    return;
  }
  if (body['stream'] === true || wire === 'gemini-generate-content' || wire === 'bedrock-converse') {
    response.writeHead(200, { 'content-type': type });
    response.end(bytesOf(wire, output));
    return;
  }
  const message = { role: 'assistant', content: output.text.join(''), reasoning_content: output.reasoning.join('') };
  const call = { id: 'call_1', type: 'function', function: { name: 'send', arguments: output.args.join('') } };
  response.setHeader('content-type', 'application/json');
  response.end(
    JSON.stringify({
      object: 'chat.completion',
      created: 1,
      choices: [{ index: 0, message: { ...message, tool_calls: [call] }, finish_reason: 'tool_calls' }],
      usage: { prompt_tokens: 3, completion_tokens: 9, total_tokens: 12 },
    }),
  );
}

beforeAll(async () => {
  upstream = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = JSON.parse(Buffer.concat(chunks).toString() || '{}') as JsonObject;
      bodies.push(body);
      answer(request.url ?? '', body, response);
    });
  });
  await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve));
});
afterAll(() => {
  upstream.closeAllConnections();
  upstream.close();
});

beforeAll(async () => {
  const { port } = upstream.address() as AddressInfo;
  const pricing = { prompt: 1, completion: 1 };
  const providers = Object.fromEntries(
    wires.map((wire) => [
      `at-${wire}`,
      { name: wire, dialect: wire, base_url: `http://127.0.0.1:${port}/${wire}`, api_key: 'k' },
    ]),
  );
  const models = Object.fromEntries(
    wires.map((wire) => [
      `acme/${wire}`,
      { endpoints: [{ provider: `at-${wire}`, upstream_model: 'claude-sonnet-4-5', pricing }] },
    ]),
  );
  const at = (upstreamModel: string) => ({
    endpoints: [{ provider: 'at-openai-chat', upstream_model: upstreamModel, pricing }],
  });
  gateway = await startGateway({
    yaml: JSON.stringify({
      bundled_catalog: false,
      providers,
      models: {
        ...models,
        ...Object.fromEntries(
          ['endless', 'echo', 'failing', 'unreadable', 'steps', 'broken', 'form'].map((name) => [
            `acme/${name}`,
            at(name),
          ]),
        ),
      },
    }),
  });
});
afterAll(() => gateway.stop());

/** The guardrails of the running test. */
let heldIds: string[] = [];
beforeEach(() => {
  bodies = [];
  hungUp = 0;
});
afterEach(async () => {
  const authorization = `Bearer ${gateway.management_key}`;
  for (const id of heldIds) {
    const deletion = await gateway.call('DELETE', `/guardrails/${id}`, undefined, { authorization });
    expect(deletion.ok).toBe(true);
  }
  heldIds = [];
});

async function hold(settings: object): Promise<string> {
  const authorization = `Bearer ${gateway.management_key}`;
  const made = await gateway.call('POST', '/guardrails', { name: 'g', ...settings }, { authorization });
  const { data } = (await made.json()) as { data: { id: string } };
  const keyHashes = [gateway.key_hash];
  const held = await gateway.call(
    'POST',
    `/guardrails/${data.id}/assignments/keys`,
    { key_hashes: keyHashes },
    { authorization },
  );
  expect(held.ok).toBe(true);
  heldIds.push(data.id);
  return data.id;
}
const cards = (action: 'redact' | 'block', more: object = {}) => ({
  content_filter_builtins: [{ slug: 'credit-card', action }],
  content_filter_output: true,
  ...more,
});

const send = {
  type: 'function' as const,
  function: { name: 'send', parameters: { type: 'object', properties: { card: { type: 'string' } } } },
};
const messages = [{ role: 'user' as const, content: 'Which card?' }];
const openai = () => new OpenAI({ baseURL: gateway.base_url, apiKey: gateway.key, maxRetries: 0 });
const anthropic = () => new Anthropic({ baseURL: `${gateway.url}/api`, apiKey: gateway.key, maxRetries: 0 });

async function generation(id: string): Promise<JsonObject> {
  const response = await gateway.call('GET', `/generation?id=${id}`);
  return ((await response.json()) as { data: JsonObject }).data;
}

describe.each(wires)('over %s', (wire) => {
  const model = `acme/${wire}`;
  beforeEach(() => hold(cards('redact')));

  test('the chat client receives placeholders in text, reasoning and arguments', async () => {
    const stream = openai().chat.completions.stream({ model, messages, tools: [send] });
    let reasoning = '';
    stream.on('chunk', (chunk) => {
      reasoning += (chunk.choices[0]?.delta as { reasoning?: string } | undefined)?.reasoning ?? '';
    });
    const { choices } = await stream.finalChatCompletion();
    const { message, finish_reason } = choices[0]!;
    expect(message.content).toBe('The card is [CREDIT_CARD]. Anything else?');
    expect(reasoning).toBe('They paid with [CREDIT_CARD], I see.');
    const [call] = message.tool_calls as unknown as { function: { arguments: string } }[];
    expect(JSON.parse(call!.function.arguments)).toEqual({ card: '[CREDIT_CARD]', n: 1 });
    expect(finish_reason).toBe('tool_calls');
  });

  test('clients of Messages and Responses receive placeholders as well', async () => {
    const message = await anthropic()
      .messages.stream({
        model,
        messages,
        max_tokens: 4_000,
        tools: [{ name: 'send', input_schema: { type: 'object', properties: {} } }],
      })
      .finalMessage();
    const blocks = message.content.map((block) =>
      block.type === 'text' ? block.text : block.type === 'tool_use' ? block.input : block.type,
    );
    expect(blocks).toContain('The card is [CREDIT_CARD]. Anything else?');
    expect(blocks).toContainEqual({ card: '[CREDIT_CARD]', n: 1 });
    const stream = openai().responses.stream({
      model,
      input: 'Which card?',
      tools: [{ type: 'function', name: 'send', parameters: send.function.parameters, strict: false }],
    });
    const events: unknown[] = [];
    for await (const event of stream) events.push(event);
    const response = await stream.finalResponse();
    expect(response.output_text).toBe('The card is [CREDIT_CARD]. Anything else?');
    const call = response.output.find((item) => item.type === 'function_call');
    expect(JSON.parse(call?.arguments ?? '')).toEqual({ card: '[CREDIT_CARD]', n: 1 });
    expect(JSON.stringify([message, response, events])).not.toMatch(/4111|1111/);
  });
});

test('whole answers are filtered as well, in all APIs, and the record names the filters', async () => {
  await hold(cards('redact'));
  const model = 'acme/openai-chat';
  const calls: [string, object][] = [
    ['/chat/completions', { messages, tools: [send] }],
    ['/completions', { prompt: 'Which card?' }],
    ['/responses', { input: 'Which card?' }],
    ['/messages', { messages, max_tokens: 99 }],
  ];
  for (const [path, body] of calls) {
    const response = await gateway.call(
      'POST',
      path,
      { model, ...body },
      { 'X-Gateway-Experimental-Metadata': 'enabled' },
    );
    const text = await response.text();
    expect(response.status, text).toBe(200);
    expect(text).toContain('The card is [CREDIT_CARD]. Anything else?');
    expect(text).not.toMatch(/4111|1111 1111/);
    const stage = { type: 'guardrail', name: 'content-filter', guardrail_scope: 'api-key', data: { in: 'answer' } };
    expect((JSON.parse(text) as JsonObject)['gateway_metadata']).toMatchObject({ pipeline: [stage] });
    const id = response.headers.get('x-generation-id')!;
    const record = await generation(id);
    expect(JSON.stringify(record)).not.toMatch(/4111[ -]?1111/);
    expect(JSON.stringify(record)).toContain('credit-card');
  }
});

test('without the option answers are unchanged', async () => {
  await hold({ content_filter_builtins: [{ slug: 'credit-card', action: 'redact' }] });
  const response = await gateway.call('POST', '/chat/completions', {
    model: 'acme/openai-chat',
    messages,
    stream: true,
  });
  expect(await response.text()).toContain(' 1111 1111 1');
});

test('the error message of a provider is filtered, whole and streamed', async () => {
  await hold(cards('redact'));
  for (const stream of [false, true]) {
    const response = await gateway.call('POST', '/chat/completions', { model: 'acme/failing', messages, stream });
    const text = await response.text();
    expect(text).toContain('[CREDIT_CARD]');
    expect(text).toContain('failed_generation');
    expect(text).not.toMatch(/4111|1111/);
  }
});

test('an answer that cannot be decoded is shown in the error only if answers are not filtered', async () => {
  const failure = async () => {
    const response = await gateway.call('POST', '/chat/completions', { model: 'acme/unreadable', messages });
    const { error } = (await response.json()) as { error: { code: number; metadata: JsonObject } };
    return [error.code, error.metadata];
  };
  expect(await failure()).toEqual([502, { provider_name: 'openai-chat', raw: expect.stringContaining('4111 11') }]);
  await hold(cards('redact'));
  expect(await failure()).toEqual([502, { provider_name: 'openai-chat' }]);
});

test('every step of an answer with tools of the gateway is filtered, and each match is counted once', async () => {
  await hold(cards('redact'));
  const chatBody = { model: 'acme/steps', messages, tools: [{ type: 'gateway:datetime' }] };
  const stream = await gateway.call('POST', '/chat/completions', { ...chatBody, stream: true });
  const text = await stream.text();
  expect(bodies).toHaveLength(2);
  const streamedText = text
    .split('\n\n')
    .filter((event) => event.startsWith('data: {'))
    .flatMap((event) => (JSON.parse(event.slice(6)) as { choices: { delta: { content?: string } }[] }).choices)
    .map(({ delta }) => delta.content ?? '')
    .join('');
  expect(streamedText).toBe('The card is [CREDIT_CARD]\n\nAnd [CREDIT_CARD].');
  expect(text).not.toMatch(/4111|5500/);
  const record = JSON.stringify(await generation(stream.headers.get('x-generation-id')!));
  expect(record).toContain('"in":"answer"');
  expect(record).not.toMatch(/4111 |5500-/);
});

test('repaired JSON is filtered', async () => {
  await hold(cards('redact'));
  const chatBody = { model: 'acme/broken', messages, response_format: { type: 'json_object' } };
  const response = await gateway.call('POST', '/chat/completions', {
    ...chatBody,
    plugins: [{ id: 'response-healing' }],
  });
  const { choices } = (await response.json()) as { choices: { message: { content: string } }[] };
  expect(JSON.parse(choices[0]!.message.content)).toEqual({ card: '[CREDIT_CARD]' });
});

describe('a block', () => {
  const model = 'acme/endless';
  beforeEach(() => hold(cards('block')));

  const says = { code: 403, message: 'Response blocked by content filter: Credit card number' };

  test('ends a chat stream at the start of the match, closes the upstream connection, and charges the generated part', async () => {
    const response = await gateway.call('POST', '/chat/completions', { model, messages, stream: true });
    const text = await response.text();
    const events = text.split('\n\n').filter((event) => event.startsWith('data: {'));
    const chunks = events.map((event) => JSON.parse(event.slice(6)) as { choices: JsonObject[]; usage?: JsonObject });
    const choices = chunks.flatMap((chunk) => chunk.choices);
    expect(choices.map(({ delta }) => (delta as JsonObject)['content']).join('')).toBe('The card is ');
    expect(choices.at(-1)).toMatchObject({ finish_reason: 'content_filter', error: says });
    expect(chunks.at(-1)!.usage!['completion_tokens']).toBeGreaterThan(0);
    await vi.waitFor(() => expect(hungUp).toBe(1), { timeout: 60_000 });
    const record = await generation(response.headers.get('x-generation-id')!);
    expect(record).toMatchObject({ cancelled: false });
    expect(record['total_cost']).toBeGreaterThan(0);
    expect(JSON.stringify(record)).toContain('blocked');
    expect(JSON.stringify(record)).not.toMatch(/4111[ -]?1111/);
  });

  test('ends a message with a refusal, and a response as incomplete', async () => {
    const message = await anthropic().messages.stream({ model, messages, max_tokens: 4_000 }).finalMessage();
    expect(message).toMatchObject({ stop_reason: 'refusal', content: [{ type: 'text', text: 'The card is ' }] });
    const response = await openai().responses.stream({ model, input: 'Which card?' }).finalResponse();
    expect(response).toMatchObject({ status: 'incomplete', incomplete_details: { reason: 'content_filter' } });
    expect(response.output_text).toBe('The card is ');
    const stream = await openai().completions.create({ model, prompt: 'Which card?', stream: true });
    const shownTexts: string[] = [];
    const finishes: (string | null | undefined)[] = [];
    for await (const { choices } of stream) {
      shownTexts.push(choices[0]?.text ?? '');
      finishes.push(choices[0]?.finish_reason);
    }
    expect(shownTexts.join('')).toBe('The card is ');
    expect(finishes).toContain('content_filter');
    await vi.waitFor(() => expect(hungUp).toBe(3), { timeout: 60_000 });
  });

  test('turns a whole answer into a 403 without its text, and charges it', async () => {
    const body = { model: 'acme/openai-chat', messages };
    const metadata = { 'X-Gateway-Experimental-Metadata': 'enabled' };
    const response = await gateway.call('POST', '/chat/completions', body, metadata);
    expect(response.status).toBe(403);
    const answered = (await response.json()) as JsonObject;
    expect(answered['error']).toMatchObject({
      ...says,
      metadata: { filter: 'credit-card', guardrail_scope: 'api-key' },
    });
    expect(answered['gateway_metadata']).toMatchObject({ pipeline: [{ data: { action: 'blocked', in: 'answer' } }] });
    expect(JSON.stringify(answered)).not.toContain('The card');
    const record = await generation(response.headers.get('x-generation-id')!);
    expect(record['total_cost']).toBeGreaterThan(0);
    expect(record['finish_reason']).toBe('content_filter');
    expect(JSON.stringify(record)).toContain('blocked');
  });
});

describe('the next turn', () => {
  test.each([
    ['anthropic-messages', '/messages'],
    ['anthropic-messages', '/chat/completions'],
    ['openai-responses', '/responses'],
    ['gemini-generate-content', '/chat/completions'],
  ] as const)('of %s through %s continues, and restored state is not shown', async (wire, path) => {
    await hold(cards('redact'));
    const model = `acme/${wire}`;
    const isResponses = path === '/responses';
    const tools =
      path === '/messages'
        ? [{ name: 'send', input_schema: { type: 'object', properties: {} } }]
        : isResponses
          ? [{ type: 'function', name: 'send', parameters: { type: 'object', properties: {} }, strict: false }]
          : [send];
    const bound = path === '/messages' ? { max_tokens: 4_000 } : {};
    const first = { model, tools, stream: true, ...bound };
    const chatBody = isResponses
      ? { ...first, input: [{ role: 'user', content: 'Which card?' }] }
      : { ...first, messages };
    const text = await (await gateway.call('POST', path, chatBody)).text();
    expect(text).not.toMatch(/4111|1111/);
    const turn = turnOf(path, text);
    const next = isResponses
      ? { ...chatBody, input: [{ role: 'user', content: 'Which card?' }, ...turn] }
      : { ...chatBody, messages: [...messages, ...turn] };
    const debug = path === '/chat/completions' ? { debug: { echo_upstream_body: true } } : {};
    const second = await gateway.call('POST', path, { ...next, ...debug });
    const answered = await second.text();
    expect(second.status, answered).toBe(200);
    expect(answered).not.toMatch(/4111|1111/);
    // A turn whose call was changed is a different turn, so nothing is restored for it.
    const sent = JSON.stringify(bodies[1]);
    expect(sent).not.toContain('4111');
    expect(sent).toContain('[CREDIT_CARD]');
  });
});

/** The part of a streamed turn that a client keeps, followed by the result of its call. */
function turnOf(path: string, text: string): JsonObject[] {
  const events = text
    .split('\n')
    .filter((line) => line.startsWith('data: {'))
    .map((line) => JSON.parse(line.slice(6)) as JsonObject);
  if (path === '/responses') {
    const { response } = events.at(-1) as { response: { output: JsonObject[] } };
    const call = response.output.find(({ type }) => type === 'function_call')!;
    return [...response.output, { type: 'function_call_output', call_id: call['call_id']!, output: 'sent' }];
  }
  if (path === '/messages') {
    const content: JsonObject[] = [];
    for (const { type, index, content_block, delta } of events as unknown as Record<string, JsonObject>[]) {
      const at = Number(index);
      if (String(type) === 'content_block_start') content[at] = { ...content_block };
      if (String(type) !== 'content_block_delta') continue;
      const block = content[at]!;
      for (const field of ['text', 'thinking', 'signature'] as const) {
        if (delta![field] !== undefined) block[field] = `${block[field] ?? ''}${delta![field]}`;
      }
      if (delta!['partial_json'] !== undefined) block['json'] = `${block['json'] ?? ''}${delta!['partial_json']}`;
    }
    const blocks = content.map(({ json, ...block }) =>
      json === undefined ? block : { ...block, input: JSON.parse(String(json)) as JsonObject },
    );
    const { id } = blocks.find(({ type }) => type === 'tool_use')!;
    return [
      { role: 'assistant', content: blocks },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: id!, content: 'sent' }] },
    ];
  }
  const message: JsonObject = { role: 'assistant', content: '' };
  let call: { id: string; type: string; function: { name: string; arguments: string } } | undefined;
  for (const event of events as unknown as { choices: { delta: Record<string, JsonObject[]> }[] }[]) {
    const delta = event.choices[0]?.delta;
    message['content'] = `${message['content']}${delta?.['content'] ?? ''}`;
    for (const piece of (delta?.['tool_calls'] ?? []) as unknown as NonNullable<typeof call>[]) {
      call ??= { id: piece.id, type: 'function', function: { name: piece.function.name, arguments: '' } };
      call.function.arguments += piece.function.arguments ?? '';
    }
  }
  const toolCalls = [call!] as unknown as JsonObject[];
  return [
    // Many clients drop the reasoning, and the gateway restores it.
    { ...message, tool_calls: toolCalls },
    { role: 'tool', tool_call_id: call!.id, content: 'sent' },
  ];
}

describe('reversible redaction', () => {
  beforeEach(() => hold(cards('redact', { content_filter_output: null, content_filter_reversible: true })));

  const body = { model: 'acme/echo', messages: [{ role: 'user', content: `Pay with ${SECRET}.` }], tools: [send] };
  const expectedText = `You wrote: Pay with ${SECRET}. Again: ${SECRET}. [CREDIT_CARD_2] stays.`;

  test('restores for the client what the model never received, streamed and whole', async () => {
    const { choices } = await openai()
      .chat.completions.stream(body as never)
      .finalChatCompletion();
    const [choice] = choices;
    expect(choice!.message.content).toBe(expectedText);
    const [call] = choice!.message.tool_calls as unknown as { function: { arguments: string } }[];
    expect(JSON.parse(call!.function.arguments)).toEqual({ card: SECRET });
    const whole = (await (await gateway.call('POST', '/chat/completions', body)).json()) as {
      choices: { message: { content: string } }[];
    };
    expect(whole.choices[0]!.message.content).toBe(expectedText);
    const response = await openai()
      .responses.stream({ model: 'acme/echo', input: `Pay with ${SECRET}.` })
      .finalResponse();
    expect(response.output_text).toBe(expectedText);
    const message = await anthropic()
      .messages.stream({ ...body, tools: [], max_tokens: 99 } as never)
      .finalMessage();
    expect(message.content[0]).toMatchObject({ type: 'text', text: expectedText });
    expect(JSON.stringify(bodies)).not.toContain('4111');
    expect(JSON.stringify(bodies)).toContain('[CREDIT_CARD_1]');
  });
});

test('an answer that must be JSON stays JSON under filters, and with restored values', async () => {
  const address = { pattern: '12 [^.]*', action: 'redact', label: 'ADDRESS' };
  await hold(cards('redact', { content_filters: [address], content_filter_reversible: true }));
  const stream = openai().chat.completions.stream({
    model: 'acme/form',
    messages: [{ role: 'user', content: 'Fill in: 12 "High" Street,\nBoston.' }],
    response_format: { type: 'json_object' },
  });
  const { choices } = await stream.finalChatCompletion();
  expect(JSON.parse(choices[0]!.message.content!)).toEqual({
    to: '12 "High" Street,\nBoston',
    card: '[CREDIT_CARD]',
    note: 'Card:\n[CREDIT_CARD]',
  });
});
