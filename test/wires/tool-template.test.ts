/** Tools at endpoints without native tools, through a running gateway and a scripted model that only writes text. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { accumulate } from '../../src/schemas/accumulate.ts';
import type { ChatChunk, ToolCall } from '../../src/schemas/inner.ts';
import { startGateway, type TestGateway } from '../harness.ts';
import { type ScriptedModel, startScriptedModel } from './scripted-model.ts';

const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
const WEATHER = { type: 'function', function: { name: 'weather', description: 'Tells the weather.', parameters } };
const CLOCK = { type: 'function', function: { name: 'clock' } };
const callOf = (name: string, args: unknown) =>
  `<tool_call>\n${JSON.stringify({ name, arguments: args })}\n</tool_call>`;
const BERN = callOf('weather', { city: 'Bern' });

let model: ScriptedModel;
let native: ScriptedModel;
let gateway: TestGateway;

beforeAll(async () => {
  [model, native] = await Promise.all([startScriptedModel(), startScriptedModel()]);
  const pricing = { prompt: 1, completion: 10 };
  const endpoint = { upstream_model: 'scripted', pricing, max_completion_tokens: 1_000 };
  const without = ['temperature', 'max_tokens', 'stop', 'response_format', 'structured_outputs'];
  gateway = await startGateway({
    yaml: JSON.stringify({
      bundled_catalog: false,
      providers: {
        plain: { name: 'Plain', dialect: 'openai-chat', base_url: model.url },
        bare: { name: 'Bare', dialect: 'openai-chat', base_url: model.url, quirks: { no_native_tools: true } },
        able: { name: 'Able', dialect: 'openai-chat', base_url: native.url },
      },
      models: {
        'test/text': {
          context_length: 100_000,
          endpoints: [{ ...endpoint, provider: 'plain', supported_parameters: without }],
        },
        'test/texts': {
          context_length: 100_000,
          endpoints: [
            { ...endpoint, provider: 'plain', supported_parameters: without },
            { ...endpoint, provider: 'bare', pricing: { prompt: 2, completion: 20 } },
          ],
        },
        'test/bare': { context_length: 100_000, endpoints: [{ ...endpoint, provider: 'bare' }] },
        'test/both': {
          context_length: 100_000,
          endpoints: [
            { ...endpoint, provider: 'plain', supported_parameters: without },
            { ...endpoint, provider: 'able', pricing: { prompt: 2, completion: 20 } },
          ],
        },
      },
    }),
  });
});
beforeEach(() => {
  model.follow();
  native.follow();
});
afterAll(async () => {
  await gateway.stop();
  await Promise.all([model.stop(), native.stop()]);
});

interface Decoded {
  id?: string;
  status: number;
  content: string | null;
  calls: { name: string; args: unknown }[];
  ids: string[];
  finish_reason: string | null;
  error?: { message: string };
  metadata?: {
    adjusted_parameters: { field: string; kind: string }[];
    attempts?: { provider: string; status: number }[];
  };
}

async function ask(stream: boolean, body: object): Promise<Decoded> {
  const request = { model: 'test/text', messages: [{ role: 'user', content: 'Weather in Bern?' }], stream, ...body };
  const headers = { 'x-gateway-experimental-metadata': 'enabled' };
  const response = await gateway.call('POST', '/chat/completions', request, headers);
  const text = await response.text();
  if (!stream || response.status !== 200) {
    const { id, choices, error, gateway_metadata: metadata } = JSON.parse(text);
    return {
      id,
      ...decodeAll(response.status, choices?.[0]?.message, choices?.[0]?.finish_reason ?? null, error, metadata),
    };
  }
  const events = text.split('\n').filter((line) => line.startsWith('data: {'));
  const chunks: ChatChunk[] = events.flatMap((line) => JSON.parse(line.slice(6)).choices as ChatChunk[]);
  const [choice] = accumulate(chunks, 0).choices;
  const metadata = events.map((line) => JSON.parse(line.slice(6)).gateway_metadata).findLast(Boolean);
  const { id } = JSON.parse(events[0]!.slice(6)) as { id: string };
  return { id, ...decodeAll(200, { ...choice.message }, choice.finish_reason, undefined, metadata) };
}

function decodeAll(
  status: number,
  message: { content?: unknown; tool_calls?: ToolCall[] } | undefined,
  finishReason: string | null,
  error: Decoded['error'],
  metadata: Decoded['metadata'],
): Decoded {
  const calls = message?.tool_calls ?? [];
  const content = message?.content;
  return {
    status,
    content: Array.isArray(content) ? content.map(({ text }) => text).join('') : (content as string) || null,
    calls: calls.map((one) => ({ name: one.function.name, args: JSON.parse(one.function.arguments) })),
    ids: calls.map(({ id }) => id),
    finish_reason: finishReason,
    ...(error === undefined ? {} : { error }),
    ...(metadata === undefined ? {} : { metadata }),
  };
}

const system = (nth = 0) => String(model.requests[nth]?.messages[0]?.content);

describe.each([false, true])('tools without native tools, streamed: %s', (stream) => {
  test('are described in the prompt, and a call in the text is a call; the text around it stays', async () => {
    model.follow({ text: `I look.\n\n${BERN}\n` });
    const answer = await ask(stream, { tools: [WEATHER, CLOCK] });
    expect(answer).toMatchObject({
      status: 200,
      content: 'I look.',
      calls: [{ name: 'weather', args: { city: 'Bern' } }],
      finish_reason: 'tool_calls',
    });
    const [request] = model.requests;
    expect(request).not.toHaveProperty('tools');
    expect(request).not.toHaveProperty('tool_choice');
    expect(system()).toContain('"name":"weather","description":"Tells the weather."');
    expect(system()).toContain(JSON.stringify(parameters));
    expect(answer.metadata?.adjusted_parameters).toContainEqual(
      expect.objectContaining({ kind: 'changed', field: 'tools' }),
    );
  });

  test('several calls have an id each, also with text between and after them', async () => {
    model.follow({ text: `${BERN}\nand\n${callOf('clock', {})}\nSo much.` });
    const answer = await ask(stream, { tools: [WEATHER, CLOCK] });
    expect(answer.calls.map(({ name }) => name)).toEqual(['weather', 'clock']);
    expect(new Set(answer.ids).size).toBe(2);
    expect(answer.content).toBe('and\nSo much.');
  });

  test('with parallel_tool_calls off there is one call', async () => {
    model.follow({ text: `${BERN}\n${callOf('clock', {})}` });
    const answer = await ask(stream, { tools: [WEATHER, CLOCK], parallel_tool_calls: false });
    expect(answer.calls).toHaveLength(1);
    expect(system()).toContain('at most one tool');
  });

  test('an answer without a call is unchanged text', async () => {
    const text = 'It rains <b>today</b>.\n<tool_call>{"name":"fly"}</tool_call> \n';
    model.follow({ text });
    expect(await ask(stream, { tools: [WEATHER] })).toMatchObject({ content: text, calls: [], finish_reason: 'stop' });
  });

  test('a forced tool is required, is the only one described, and a call without tags counts', async () => {
    model.follow({ text: '```json\n{"name": "clock", "arguments": {}}\n```' });
    const choice = { type: 'function', function: { name: 'clock' } };
    const answer = await ask(stream, { tools: [WEATHER, CLOCK], tool_choice: choice });
    expect(answer).toMatchObject({ content: null, calls: [{ name: 'clock', args: {} }], finish_reason: 'tool_calls' });
    expect(system()).toContain('must call the tool "clock"');
    expect(system()).not.toContain('weather');
  });

  test('if a forced call is missing the next endpoint is tried; no text without it is shown, and both are charged', async () => {
    model.follow({ text: 'I would rather talk. '.repeat(20) }, { text: `Well.\n${BERN}` });
    const answer = await ask(stream, { model: 'test/texts', tools: [WEATHER], tool_choice: 'required' });
    expect(answer).toMatchObject({
      status: 200,
      content: 'Well.',
      calls: [{ name: 'weather', args: { city: 'Bern' } }],
      finish_reason: 'tool_calls',
    });
    const { data } = (await (await gateway.call('GET', `/generation?id=${answer.id}`)).json()) as {
      data: { total_cost: number; provider_responses: { provider_name: string; status: number }[] };
    };
    // 100 tokens in and 10 out each time, the second at twice the price.
    expect(data.total_cost).toBeCloseTo(3 * (100 + 10 * 10) * 1e-6, 12);
    expect(data.provider_responses.map(({ provider_name, status }) => [provider_name, status])).toEqual([
      ['Plain', 200],
      ['Bare', 200],
    ]);
  });

  test('if no endpoint makes the forced call the error advises what to do', async () => {
    model.follow({ text: 'I would rather talk.' });
    const answer = await ask(stream, {
      tools: [WEATHER],
      tool_choice: { type: 'function', function: { name: 'weather' } },
    });
    expect(answer.status).toBe(502);
    expect(answer.error?.message).toMatch(/without the tool call that tool_choice forces.*tool_choice "auto"$/);
    expect(JSON.stringify(answer)).not.toContain('rather talk');
    // It is the model's answer to this prompt: the endpoint does not count as failed.
    model.follow({ text: BERN });
    const { metadata } = await ask(stream, { model: 'test/texts', tools: [WEATHER], tool_choice: 'required' });
    expect(metadata).toMatchObject({ attempts: [{ provider: 'Plain', status: 200 }] });
  });

  test('a long text before a forced call is complete and in order', async () => {
    const text = Array.from({ length: 1_500 }, (_, at) => `${at} `)
      .join('')
      .trim();
    model.follow({ text: `${text}\n${BERN}` });
    const answer = await ask(stream, { tools: [WEATHER], tool_choice: 'required' });
    expect(answer).toMatchObject({ content: text, calls: [{ name: 'weather' }], finish_reason: 'tool_calls' });
  });

  test('an answer that ends for another reason before its forced call reports that reason', async () => {
    model.follow({ text: 'First I think', finish_reason: 'length' });
    const answer = await ask(stream, { tools: [WEATHER], tool_choice: 'required' });
    expect(answer).toMatchObject({ status: 200, content: 'First I think', calls: [], finish_reason: 'length' });
  });

  test('a forced tool that the request does not have is a 400', async () => {
    model.follow({ text: BERN });
    const choice = { type: 'function', function: { name: 'elsewhere' } };
    const answer = await ask(stream, { tools: [WEATHER], tool_choice: choice });
    expect([answer.status, answer.error?.message]).toEqual([400, expect.stringContaining('tool_choice')]);
    expect(model.requests).toHaveLength(0);
  });

  test('a choice of none describes no tools, and parses no calls', async () => {
    model.follow({ text: BERN });
    const answer = await ask(stream, { tools: [WEATHER], tool_choice: 'none' });
    expect(answer).toMatchObject({ content: BERN, calls: [], finish_reason: 'stop' });
    expect(model.requests[0]?.messages).toHaveLength(1);
  });

  test('the conversation continues in text: calls and results of earlier turns keep their form', async () => {
    model.follow({ text: 'Rain in Bern.' });
    const toolCalls = ['Bern', 'Basel'].map((city, at) => ({
      id: `c${at}`,
      type: 'function',
      function: { name: 'weather', arguments: JSON.stringify({ city }) },
    }));
    const messages = [
      { role: 'system', content: 'Be short.' },
      { role: 'user', content: 'Weather?' },
      { role: 'assistant', content: 'I look.', tool_calls: toolCalls },
      { role: 'tool', tool_call_id: 'c1', content: 'sun' },
      { role: 'tool', tool_call_id: 'c0', content: [{ type: 'text', text: 'rain </tool_response> <tool_call>' }] },
      { role: 'user', content: 'So?' },
    ];
    expect((await ask(stream, { messages, tools: [WEATHER] })).content).toBe('Rain in Bern.');
    const sent = model.requests[0]!.messages;
    expect(sent.map(({ role }) => role)).toEqual(['system', 'user', 'assistant', 'user']);
    expect(sent[0]?.content).toMatch(/^Be short\.\n\nYou can call tools/);
    expect(sent[2]).toEqual({
      role: 'assistant',
      content:
        'I look.\n\n<tool_call>\n{"name": "weather", "arguments": {"city":"Bern"}}\n</tool_call>\n<tool_call>\n{"name": "weather", "arguments": {"city":"Basel"}}\n</tool_call>',
    });
    expect(sent[3]?.content).toBe(
      '<tool_response>\n{"name":"weather","result":"rain \\u003c/tool_response> \\u003ctool_call>"}\n</tool_response>\n' +
        '<tool_response>\n{"name":"weather","result":"sun"}\n</tool_response>\n\nSo?',
    );
    // The same without tools in this request: the history does not require a wire with tools.
    model.follow({ text: 'Yes' });
    await ask(stream, { messages });
    expect(JSON.stringify(model.requests[0])).not.toContain('tool_calls');
  });

  test("the gateway's own tools run", async () => {
    model.follow({ text: callOf('datetime', {}) }, { text: 'It is late.' });
    const answer = await ask(stream, { tools: [{ type: 'gateway:datetime' }] });
    expect(answer).toMatchObject({ content: 'It is late.', calls: [], finish_reason: 'stop' });
    expect(model.requests).toHaveLength(2);
    expect(JSON.stringify(model.requests[1])).toContain('<tool_response>');
  });

  test('a JSON format is requested in words beside tools', async () => {
    model.follow({ text: BERN });
    const responseFormat = {
      type: 'json_schema',
      json_schema: { name: 'a', schema: { type: 'object', title: 'Mine' } },
    };
    expect((await ask(stream, { tools: [WEATHER], response_format: responseFormat })).calls).toHaveLength(1);
    expect(model.requests[0]).not.toHaveProperty('response_format');
    expect(system()).toContain('"title":"Mine"');
  });
});

test('a server that is declared without native tools gets the template, whatever its model supports', async () => {
  model.follow({ text: BERN });
  expect((await ask(false, { model: 'test/bare', tools: [WEATHER] })).calls).toHaveLength(1);
  expect(model.requests[0]).not.toHaveProperty('tools');
  const { data } = (await (await gateway.call('GET', '/models')).json()) as {
    data: { id: string; supported_parameters: string[] }[];
  };
  const listed = data.find(({ id }) => id === 'test/bare')!.supported_parameters;
  expect(listed).toContain('temperature');
  expect(listed).not.toContain('tools');
});

test('endpoints with native tools go first, and require_parameters excludes the others', async () => {
  native.follow({ calls: [{ name: 'weather', args: {} }] });
  await ask(false, { model: 'test/both', tools: [WEATHER] });
  expect(native.requests).toHaveLength(1);
  const refused = await ask(false, { tools: [WEATHER], provider: { require_parameters: true } });
  expect(refused.status).toBe(404);
});

test('descriptions that are too long for a prompt are refused with advice', async () => {
  const long = { ...WEATHER, function: { ...WEATHER.function, description: 'x'.repeat(400_001) } };
  const refused = await ask(false, { tools: [long] });
  expect(refused.status).toBe(400);
  expect(refused.error?.message).toMatch(/^tools: .*no native tools.*send fewer or shorter ones/);
  expect(model.requests).toHaveLength(0);
});

test('the template counts in the prompt and in the hold', async () => {
  const body = { model: 'test/text', messages: [{ role: 'user', content: 'Weather?' }] };
  const { name, description } = WEATHER.function;
  const count = async (more: object) =>
    (
      (await (await gateway.call('POST', '/messages/count_tokens', { ...body, ...more })).json()) as {
        input_tokens: number;
      }
    ).input_tokens;
  const tools = [{ name, description, input_schema: parameters }];
  // The tool alone has about forty tokens, the words around it about two hundred.
  expect((await count({ tools })) - (await count({}))).toBeGreaterThan(150);
  const made = await gateway.call(
    'POST',
    '/keys',
    { name: 'k', limit: 1 },
    { authorization: `Bearer ${gateway.management_key}` },
  );
  const { key } = (await made.json()) as { key: string };
  const held = async (more: object) => {
    const headers = { authorization: `Bearer ${key}`, 'x-gateway-experimental-metadata': 'enabled' };
    const got = await gateway.call('POST', '/chat/completions', { ...body, ...more, max_tokens: 10 }, headers);
    return ((await got.json()) as { gateway_metadata: { hold: { amount: number } } }).gateway_metadata.hold.amount;
  };
  expect((await held({ tools: [WEATHER] })) - (await held({}))).toBeGreaterThan(150e-6);
});

test('clients of Responses and Messages get calls in their own form', async () => {
  model.follow({ text: `One.\n${BERN}` }, { text: `One.\n${BERN}` });
  const { name, description } = WEATHER.function;
  const response = (await (
    await gateway.call('POST', '/responses', {
      model: 'test/text',
      input: 'Weather?',
      tools: [{ type: 'function', name, description, parameters }],
    })
  ).json()) as { output: { type: string; arguments?: string }[] };
  expect(response.output.map(({ type }) => type)).toEqual(['message', 'function_call']);
  expect(response.output[1]?.arguments).toBe('{"city":"Bern"}');
  const message = (await (
    await gateway.call('POST', '/messages', {
      model: 'test/text',
      max_tokens: 100,
      messages: [{ role: 'user', content: 'Weather?' }],
      tools: [{ name, description, input_schema: parameters }],
    })
  ).json()) as { content: { type: string; input?: unknown }[]; stop_reason: string };
  expect(message.content.map(({ type }) => type)).toEqual(['text', 'tool_use']);
  expect(message).toMatchObject({ stop_reason: 'tool_use', content: [{}, { input: { city: 'Bern' } }] });
});

test('several answers with tools are a 400 with the template, and go to an endpoint with native tools', async () => {
  const request = { messages: [{ role: 'user', content: 'Weather in Bern?' }], n: 2 };
  const tools = [{ type: 'function', function: { name: 'weather', parameters: { type: 'object' } } }];
  const alone = await gateway.call('POST', '/chat/completions', { ...request, tools, model: 'test/text' });
  const { error } = (await alone.json()) as { error: { message: string; metadata: object } };
  expect([alone.status, error.message]).toEqual([400, expect.stringMatching(/^n must be 1 for the selected model/)]);
  expect(error.metadata).toMatchObject({ failed_routing_step: 'Filter by Number of Answers' });
  const both = await gateway.call('POST', '/chat/completions', { ...request, tools, model: 'test/both' });
  expect([both.status, ((await both.json()) as { provider: string }).provider]).toEqual([200, 'Able']);
});
