/**
 * Answers of an upstream of the Messages wire for a client of the same API through a running gateway: headers,
 * conversations, counts.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { tokenCounter } from '../../src/providers/anthropic-messages/token-counter.ts';
import type { JsonObject } from '../../src/schemas/json.ts';
import { type MessagesUpstream, startMessagesUpstream } from './messages-upstream.ts';

let site: MessagesUpstream;
beforeAll(async () => {
  site = await startMessagesUpstream({ headers: { 'Anthropic-Beta': 'operators-own-2026-01-01' } });
});
afterAll(() => site.stop());

const model = 'anthropic/claude';
const hello = { role: 'user', content: 'Hello' };

async function send(body: object, headers: Record<string, string> = {}, path = '/messages') {
  const response = await site.gateway.call(
    'POST',
    path,
    { model, max_tokens: 100, messages: [hello], ...body },
    headers,
  );
  const text = await response.text();
  expect([response.status, text]).toEqual([200, expect.anything()]);
  const { headers: sent, body: received, path: reached } = site.last();
  return { answer: text, headers: sent, body: JSON.parse(received) as JsonObject, path: reached };
}

describe('the header anthropic-beta', () => {
  test.each(['anthropic-beta', 'x-anthropic-beta'])(
    'is sent upstream as %s, beside the operator’s values',
    async (name) => {
      const { headers } = await send(
        {},
        { [name]: 'files-api-2025-04-14, fast-mode-2026-02-01,interleaved-thinking-2025-05-14' },
      );
      expect(headers['anthropic-beta']).toBe(
        'operators-own-2026-01-01,files-api-2025-04-14,interleaved-thinking-2025-05-14',
      );
      expect(headers).not.toHaveProperty('x-anthropic-beta');
    },
  );

  test("the operator's values are sent without it, and the client's version of the API is not sent", async () => {
    const { headers } = await send({}, { 'anthropic-version': '2099-01-01' });
    expect([headers['anthropic-beta'], headers['anthropic-version']]).toEqual([
      'operators-own-2026-01-01',
      '2023-06-01',
    ]);
  });

  test('excluded features are reported', async () => {
    const response = await site.gateway.call(
      'POST',
      '/messages',
      { model, max_tokens: 10, messages: [hello] },
      { 'anthropic-beta': 'fast-mode-2026-02-01', 'x-gateway-experimental-metadata': 'enabled' },
    );
    expect(await response.text()).toContain('fast-mode-2026-02-01 is not allowed');
  });
});

test('a conversation with turns that the gateway remembers is sent as its client writes it', async () => {
  const cacheControl = { type: 'ephemeral' };
  const tools = [{ name: 'f', input_schema: { type: 'object' } }];
  const thought = { type: 'thinking', thinking: 'hm', signature: 'S' };
  const call = { type: 'tool_use', id: 'toolu_1', name: 'f', input: {} };
  const body = {
    model: 'claude',
    stop_reason: 'tool_use',
    stop_sequence: null,
    usage: { input_tokens: 5, output_tokens: 2 },
  };
  site.answer({
    id: 'msg_2',
    type: 'message',
    role: 'assistant',
    ...body,
    content: [thought, { type: 'text', text: 'a' }, call],
  });
  await send({ tools });
  site.answer(undefined);
  const result = { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'x' }] };
  for (const content of [
    [thought, { type: 'text', text: 'a' }, { ...call, cache_control: cacheControl }],
    [thought, { type: 'text', text: 'a', cache_control: cacheControl }, call],
    [{ type: 'text', text: 'a', cache_control: cacheControl }, call],
    [call],
  ]) {
    const messages = [hello, { role: 'assistant', content }, result];
    expect((await send({ tools, messages })).body['messages']).toEqual(messages);
  }
});

test('future types of blocks and their counts pass to the client, and the blocks pass back', async () => {
  const block = { type: 'hologram_result', tool_use_id: 'x', content: { light: [1, null] } };
  const usage = {
    input_tokens: 5,
    output_tokens: 9,
    cache_creation_input_tokens: 3,
    cache_creation: { ephemeral_5m_input_tokens: 3, ephemeral_1h_input_tokens: 0, ephemeral_24h_input_tokens: 0 },
    output_tokens_details: { thinking_tokens: 4, hologram_tokens: 1 },
    server_tool_use: { web_search_requests: 1, web_fetch_requests: 0, hologram_requests: 2 },
  };
  const upstreamMessage = { id: 'msg_3', type: 'message', role: 'assistant', model: 'claude', stop_sequence: null };
  site.answer({ ...upstreamMessage, stop_reason: 'end_turn', usage, content: [block, { type: 'text', text: 'a' }] });
  const { answer } = await send({});
  site.answer(undefined);
  const message = JSON.parse(answer) as { content: JsonObject[]; usage: JsonObject };
  expect(message.content[0]).toEqual(block);
  expect(message.usage).toMatchObject(usage);
  const messages = [hello, { role: 'assistant', content: message.content }, hello];
  expect((await send({ messages })).body['messages']).toEqual(messages);
});

test('a block of unknown type is refused in a client’s content, and one of known type without its fields everywhere', async () => {
  const refused = async (role: string, block: object) => {
    const messages = [{ role, content: [block] }];
    const response = await site.gateway.call('POST', '/messages', { model, max_tokens: 10, messages });
    return [response.status, ((await response.json()) as { error: { message: string } }).error.message];
  };
  expect(await refused('user', { type: 'hologram' })).toEqual([
    400,
    expect.stringMatching(/^messages\[0\]\.content\[0\]\.type must be one of/),
  ]);
  expect(await refused('assistant', { type: 'text' })).toEqual([400, 'messages[0].content[0].text is required']);
  expect(await refused('assistant', { type: 'native' })).toEqual([400, expect.stringContaining('content[0]')]);
});

test('64-bit ids in arguments of tools are unchanged in both directions', async () => {
  const input = '{"id":12345678901234567890,"list":[-9223372036854775808]}';
  const call = (id: string) => `{"type":"tool_use","id":"${id}","name":"f","input":${input}}`;
  const search = `{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":${input}}`;
  const result = '{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"x"}]}';
  const messages = `[{"role":"user","content":"Hello"},{"role":"assistant","content":[${search},${call('toolu_1')}]},${result}]`;
  const head = '{"id":"msg_5","type":"message","role":"assistant","model":"claude","stop_sequence":null';
  const usage = '"usage":{"input_tokens":5,"output_tokens":2}';
  site.answer(`${head},"stop_reason":"tool_use",${usage},"content":[${search},${call('toolu_2')}]}`);
  for (const limit of [undefined, 1]) {
    const key = limit === undefined ? site.gateway.key : await keyWith(limit);
    const response = await fetch(`${site.gateway.base_url}/messages`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      // A byte order mark is skipped, as everywhere.
      body: `${limit === undefined ? '' : '\uFEFF'}{"model":"${model}","max_tokens":50,"messages":${messages}}`,
    });
    expect(await response.text()).toContain(`"content":[${search},${call('toolu_2')}]`);
    expect(site.last().body).toContain(`"messages":${messages}`);
  }
  site.answer(undefined);
});

test("tools are sent as they were declared, including the type of the client's own", async () => {
  const inputSchema = { type: 'object', properties: {} };
  const tools = [
    {
      type: 'custom',
      name: 'f',
      input_schema: inputSchema,
      allowed_callers: ['direct'],
      strict: true,
      description: 'd',
    },
    {
      name: 'g',
      input_schema: inputSchema,
      input_examples: [{ a: 1 }],
      cache_control: { type: 'ephemeral', ttl: '1h' },
    },
    { type: 'mcp_toolset', mcp_server_name: 'm' },
  ];
  expect((await send({ tools })).body['tools']).toEqual(tools);
});

test('a bound of zero tokens fills the cache, and the answer is empty', async () => {
  const upstreamMessage = {
    id: 'msg_4',
    type: 'message',
    role: 'assistant',
    model: 'claude',
    stop_sequence: null,
    content: [],
  };
  site.answer({ ...upstreamMessage, stop_reason: 'max_tokens', usage: { input_tokens: 5, output_tokens: 0 } });
  for (const key of [site.gateway.key, await keyWith(1)]) {
    const { body, answer } = await send({ max_tokens: 0 }, { authorization: `Bearer ${key}` });
    expect(body['max_tokens']).toBe(0);
    expect(JSON.parse(answer)).toMatchObject({ content: [], stop_reason: 'max_tokens', usage: { output_tokens: 0 } });
  }
  site.answer(undefined);
});

describe('a request to count tokens', () => {
  test('is sent to its own address with the fields that it may have', async () => {
    const prompt = {
      system: 'Be brief.',
      tools: [{ name: 'f', input_schema: { type: 'object' } }],
      tool_choice: { type: 'auto' },
      thinking: { type: 'adaptive' },
      output_config: { effort: 'low' },
      context_management: { edits: [{ type: 'x' }] },
    };
    const { path, body, answer, headers } = await send(
      { ...prompt, metadata: { user_id: 'u' }, stream: true, temperature: 1, service_tier: 'auto', session_id: 's' },
      { 'anthropic-beta': 'context-management-2025-06-27' },
      '/messages/count_tokens',
    );
    expect(path).toBe('/v1/messages/count_tokens');
    expect(body).toEqual({ model: 'claude', messages: [hello], ...prompt });
    expect(headers['anthropic-beta']).toContain('context-management-2025-06-27');
    expect(JSON.parse(answer)).toEqual({ input_tokens: 7 });
  });

  test('uses a model of its own on Vertex AI', () => {
    const encoded = {
      method: 'POST' as const,
      path: '/models/claude-x:rawPredict',
      headers: {},
      body: { anthropic_version: 'vertex-2023-10-16', max_tokens: 5, messages: [] },
      report: [],
      state: {},
    };
    const countRequest = tokenCounter.request(encoded, { upstream_model: 'claude-x', quirks: { google_cloud: true } });
    expect(countRequest.path).toBe('/models/count-tokens:rawPredict');
    expect(countRequest.body).toEqual({ anthropic_version: 'vertex-2023-10-16', model: 'claude-x', messages: [] });
  });

  test('is sent to Vertex AI, unless something must be fetched first', async () => {
    const vertex = await startMessagesUpstream({ quirks: { google_cloud: true } });
    try {
      const count = async (content: unknown) => {
        const body = { model, messages: [{ role: 'user', content }] };
        const response = await vertex.gateway.call('POST', '/messages/count_tokens', body);
        return response.json();
      };
      const image = { type: 'image', source: { type: 'url', url: 'https://a.example/b.png' } };
      expect(await count([image])).toEqual({ input_tokens: expect.any(Number), estimated: true });
      expect(vertex.requestCount()).toBe(0);
      expect(await count('Hello')).toEqual({ input_tokens: 7 });
      expect(vertex.last().path).toBe('/v1/models/count-tokens:rawPredict');
      expect(JSON.parse(vertex.last().body)).toMatchObject({ model: 'claude', anthropic_version: 'vertex-2023-10-16' });
    } finally {
      await vertex.stop();
    }
  });

  test('that is refused has an id for its client as well', async () => {
    const headers = { authorization: 'Bearer sk-unknown' };
    const response = await site.gateway.call('POST', '/messages/count_tokens', { model, messages: [hello] }, headers);
    expect([response.status, response.headers.get('request-id')]).toEqual([401, expect.stringMatching(/./)]);
  });

  test.each([[{}], [{ input_tokens: -1 }], [{ input_tokens: 1.5 }], [[]], [{ input_tokens: '7' }]])(
    '%j is not a count',
    (body) => {
      expect(() => tokenCounter.read(body as never)).toThrow(expect.objectContaining({ failure: 'invalid_response' }));
    },
  );
});

/** A key with this limit in USD. */
async function keyWith(limit: number): Promise<string> {
  const made = await fetch(`${site.gateway.base_url}/keys`, {
    method: 'POST',
    headers: { authorization: `Bearer ${site.gateway.management_key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'bounded', limit }),
  });
  return ((await made.json()) as { key: string }).key;
}

test('a spend limit lowers the output bound, but not below the thinking budget of the client', async () => {
  const thinking = { type: 'enabled', budget_tokens: 2000 };
  const ask = { max_tokens: 4000, thinking };
  const { body } = await send(ask, { authorization: `Bearer ${await keyWith(0.003)}` });
  expect(body['thinking']).toEqual(thinking);
  expect(body['max_tokens']).toBeGreaterThan(2000);
  expect(body['max_tokens']).toBeLessThan(3000);
  const headers = { authorization: `Bearer ${await keyWith(0.0015)}` };
  const refused = await site.gateway.call('POST', '/messages', { model, messages: [hello], ...ask }, headers);
  expect(refused.status).toBe(402);
});

test('a caller with a spend limit has a bounded number of searches', async () => {
  const key = await keyWith(1000);
  const tools = [
    { type: 'web_search_20250305', name: 'web_search' },
    { type: 'bash_20250124', name: 'bash' },
  ];
  const { body } = await send({ tools }, { authorization: `Bearer ${key}` });
  expect(body['tools']).toEqual([{ ...tools[0], max_uses: 10 }, tools[1]]);
  expect((await send({ tools })).body['tools']).toEqual(tools);
});
