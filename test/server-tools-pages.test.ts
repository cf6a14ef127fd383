/** Fetched pages, the time and slow searches through the gateway's tools, over the client APIs. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import Anthropic from '@anthropic-ai/sdk';
import type OpenAI from 'openai';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { startGateway, type TestGateway } from './harness.ts';
import { checkedFetch, openaiOf, refuseWarnings } from './sdks/sdk-gateway.ts';
import { type SearchStandIn, startSearchEngine } from './search-engine.ts';
import { type ScriptedModel, startScriptedModel } from './wires/scripted-model.ts';

const PAGES = [{ url: 'https://a.example/one', title: 'One', text: 'Write to:\n123-45-6789\nor "444-55-6666"' }];
const SEARCH_USD = 0.01;
const TURN_USD = 0.0002;

const site = createServer((_request, response) => {
  response.writeHead(200, { 'content-type': 'text/html' });
  response.end('<title>Tides</title><p>High water is at noon.</p>');
});
let page: string;
let model: ScriptedModel;
let engine: SearchStandIn;
let gateway: TestGateway;
let openai: OpenAI;
let anthropic: Anthropic;

refuseWarnings();
beforeAll(async () => {
  await new Promise<void>((resolve) => site.listen(0, '127.0.0.1', resolve));
  const { port } = site.address() as AddressInfo;
  page = `http://127.0.0.1:${port}/tides`;
  [model, engine] = await Promise.all([startScriptedModel(), startSearchEngine(PAGES)]);
  gateway = await startGateway({
    yaml: JSON.stringify({
      bundled_catalog: false,
      media: { private_hosts: [`127.0.0.1:${port}`] },
      timeouts: { heartbeat_first_ms: 100, heartbeat_ms: 100 },
      plugins: { web: { engines: { exa: { api_key: 'k', base_url: engine.url, price_per_search_usd: SEARCH_USD } } } },
      providers: { one: { name: 'One', dialect: 'openai-chat', base_url: model.url } },
      models: {
        'test/tools': {
          context_length: 100_000,
          endpoints: [{ provider: 'one', upstream_model: 'scripted', pricing: { prompt: 1, completion: 10 } }],
        },
      },
    }),
  });
  openai = openaiOf(gateway);
  const baseURL = gateway.base_url.replace(/\/v1$/, '');
  anthropic = new Anthropic({ baseURL, apiKey: gateway.key, fetch: checkedFetch, maxRetries: 0 });
});
beforeEach(() => {
  engine.searches.length = 0;
  engine.before = () => Promise.resolve();
});
afterAll(async () => {
  await gateway.stop();
  await Promise.all([model.stop(), engine.stop()]);
  site.closeAllConnections();
  site.close();
});

const toolTexts = (nth: number) =>
  model.requests[nth]!.messages.filter(({ role }) => role === 'tool').map(({ content }) => JSON.parse(content));
const fetchTurns = () =>
  model.follow(
    { text: 'I look.', calls: [{ name: 'web_fetch', args: { url: page } }] },
    { text: `🌊 At noon: [Tides](${page}).` },
  );

describe.each([false, true])('streamed: %s', (stream) => {
  test('a page that was read is shown on Responses, and cited in place', async () => {
    fetchTurns();
    const body = { model: 'test/tools', input: 'Hi', tools: [{ type: 'gateway:web_fetch' }], store: false, stream };
    let answer: OpenAI.Responses.Response | undefined;
    if (stream) {
      const events = await openai.responses.create(body as never);
      for await (const event of events as unknown as AsyncIterable<OpenAI.Responses.ResponseStreamEvent>) {
        if (event.type === 'response.completed') answer = event.response;
      }
    } else answer = (await openai.responses.create(body as never)) as OpenAI.Responses.Response;
    const { output } = answer!;
    expect(output.map(({ type }) => type)).toEqual(['message', 'web_search_call', 'message']);
    expect(output[1]).toMatchObject({ status: 'completed', action: { type: 'open_page', url: page } });
    const [part] = (output[2] as OpenAI.Responses.ResponseOutputMessage)
      .content as OpenAI.Responses.ResponseOutputText[];
    const [cited] = part!.annotations as OpenAI.Responses.ResponseOutputText.URLCitation[];
    expect([...part!.text].slice(cited!.start_index, cited!.end_index).join('')).toBe(`[Tides](${page})`);
    expect(toolTexts(1)).toEqual([
      expect.objectContaining({ url: page, title: 'Tides', content: 'High water is at noon.', status: 'completed' }),
    ]);
  });

  test('a page that was read is shown on Messages with its content, and the turn may be sent back', async () => {
    fetchTurns();
    const body = {
      model: 'test/tools',
      max_tokens: 100,
      messages: [{ role: 'user', content: 'Hi' }],
      tools: [{ type: 'gateway:web_fetch' }],
    };
    const send = async (request: object) =>
      stream
        ? await anthropic.messages.stream(request as never).finalMessage()
        : await anthropic.messages.create(request as never);
    const { content, usage } = (await send(body)) as Anthropic.Message;
    expect(content.map(({ type }) => type)).toEqual(['text', 'server_tool_use', 'web_fetch_tool_result', 'text']);
    expect(content[1]).toMatchObject({ name: 'web_fetch', input: { url: page } });
    expect(content[2]).toMatchObject({
      content: { type: 'web_fetch_result', url: page, content: { source: { data: 'High water is at noon.' } } },
    });
    if (!stream) expect(usage.server_tool_use).toMatchObject({ web_fetch_requests: 1 });
    model.follow({ text: 'Again.' });
    const next = [...body.messages, { role: 'assistant', content }, { role: 'user', content: 'And now?' }];
    expect(((await send({ ...body, messages: next })) as Anthropic.Message).content).toMatchObject([
      { text: 'Again.' },
    ]);
  });

  test('the time tool costs only its turns, and is not shown', async () => {
    model.follow({ calls: [{ name: 'datetime', args: '' }] }, { text: 'It is late.' });
    const tools = [{ type: 'openrouter:datetime', timezone: 'Asia/Tokyo' }];
    const response = await gateway.call('POST', '/responses', { model: 'test/tools', input: 'Hi', tools, stream });
    const text = await response.text();
    expect(text).toContain('It is late.');
    expect(text).not.toContain('web_search_call');
    expect(toolTexts(1)).toEqual([
      { timezone: 'Asia/Tokyo', datetime: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:]{8}\+09:00$/) },
    ]);
    const read = await gateway.call('GET', `/generation?id=${response.headers.get('x-generation-id')}`);
    expect(((await read.json()) as { data: { total_cost: number } }).data.total_cost).toBeCloseTo(2 * TURN_USD, 9);
  });
});

test.each([
  ['/chat/completions', { messages: [{ role: 'user', content: 'What news?' }] }],
  ['/responses', { input: 'What news?' }],
  ['/messages', { max_tokens: 50, messages: [{ role: 'user', content: 'What news?' }] }],
  ['/completions', { prompt: 'What news?' }],
])('%s searches before the call if the model is named with :online', async (path, body) => {
  model.follow({ text: 'None.' });
  const response = await gateway.call('POST', path, { model: 'test/tools:floor:online', ...body });
  const { usage } = (await response.json()) as { usage: { cost: number } };
  expect(usage.cost).toBeCloseTo(TURN_USD + SEARCH_USD, 9);
  expect(engine.searches).toMatchObject([{ query: 'What news?' }]);
  expect(model.requests[0]!.messages.map(({ role }) => role)).toEqual(['system', 'user']);
});

test('a stream has heartbeats during a long search', async () => {
  engine.before = () => sleep(500);
  model.follow({ text: 'I look.', calls: [{ name: 'web_search', args: { query: 'x' } }] }, { text: 'Done.' });
  const response = await gateway.call('POST', '/chat/completions', {
    model: 'test/tools',
    messages: [{ role: 'user', content: 'Hi' }],
    tools: [{ type: 'gateway:web_search' }],
    stream: true,
  });
  const frames = (await response.text()).split('\n\n');
  const beats = frames.flatMap((frame, at) => (frame.startsWith(': ') ? [at] : []));
  const looked = frames.findIndex((frame) => frame.includes('ok.'));
  const done = frames.findIndex((frame) => frame.includes('Don'));
  expect(beats.filter((at) => at > looked && at < done).length).toBeGreaterThanOrEqual(2);
  expect(frames.at(-2)).toBe('data: [DONE]');
});

test('guardrails of the caller apply to results of tools in any quoting', async () => {
  const authorization = `Bearer ${gateway.management_key}`;
  const manage = async (path: string, body: object) => {
    const answer = await gateway.call('POST', path, body, { authorization });
    return (await answer.json()) as { key: string; data: { id: string; hash: string } };
  };
  const { key, data } = await manage('/keys', { name: 'filtered' });
  const filters = [{ pattern: '\\b\\d{3}-\\d{2}-\\d{4}\\b', action: 'redact', label: 'NUMBER' }];
  const guardrail = await manage('/guardrails', { name: 'numbers', content_filters: filters });
  await manage(`/guardrails/${guardrail.data.id}/assignments/keys`, { key_hashes: [data.hash] });
  model.follow({ calls: [{ name: 'web_search', args: { query: 'x' } }] }, { text: 'Done.' });
  const body = {
    model: 'test/tools',
    messages: [{ role: 'user', content: 'Hi' }],
    tools: [{ type: 'gateway:web_search' }],
  };
  await gateway.call('POST', '/chat/completions', body, { authorization: `Bearer ${key}` });
  const [{ results }] = toolTexts(1);
  expect(results[0].content).toBe('Write to:\n[NUMBER]\nor "[NUMBER]"');
});
