/**
 * The loop of the gateway's own tools, through a running gateway, a scripted model and a stand-in of a search engine.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { limits } from '../src/limits.ts';
import { startGateway, type TestGateway } from './harness.ts';
import { describeStores } from './ledger/store-variants.ts';
import { type SearchStandIn, startSearchEngine } from './search-engine.ts';
import { type ScriptedModel, startScriptedModel } from './wires/scripted-model.ts';

const PAGES = [
  { url: 'https://a.example/one', title: 'One', text: 'The first page.' },
  { url: 'https://b.example/two?x=1', title: 'Two', text: 'The second page.' },
];
const SEARCH = { type: 'gateway:web_search', parameters: { max_results: 2 } };
const WEATHER = { type: 'function', function: { name: 'weather', parameters: { type: 'object', properties: {} } } };
const search = (query = 'news') => ({ name: 'web_search', args: { query } });

/** 100 tokens in, 10 out at 1 and 10 USD a million: 0.0002 USD a turn; a search is 0.01. */
const TURN_USD = 0.0002;
const SEARCH_USD = 0.01;

let model: ScriptedModel;
let other: ScriptedModel;
let engine: SearchStandIn;
let gateway: TestGateway;

const yamlOf = () =>
  JSON.stringify({
    bundled_catalog: false,
    timeouts: { upstream_headers_ms_max: 3_000, upstream_first_token_ms_max: 3_000, upstream_idle_ms_max: 2_000 },
    plugins: { web: { engines: { exa: { api_key: 'k', base_url: engine.url, price_per_search_usd: SEARCH_USD } } } },
    providers: {
      one: { name: 'One', dialect: 'openai-chat', base_url: model.url },
      two: { name: 'Two', dialect: 'openai-chat', base_url: other.url },
    },
    models: {
      'test/tools': {
        context_length: 100_000,
        endpoints: ['one', 'two'].map((provider, at) => ({
          provider,
          upstream_model: 'scripted',
          pricing: { prompt: 1 + at, completion: 10 + 10 * at },
          max_completion_tokens: 1_000,
        })),
      },
    },
  });

beforeAll(async () => {
  [model, other, engine] = await Promise.all([startScriptedModel(), startScriptedModel(), startSearchEngine(PAGES)]);
  gateway = await startGateway({ yaml: yamlOf() });
});
beforeEach(() => {
  model.follow();
  other.follow();
  engine.searches.length = 0;
  engine.before = () => Promise.resolve();
});
afterAll(async () => {
  await gateway.stop();
  await Promise.all([model.stop(), other.stop(), engine.stop()]);
});

interface Usage {
  cost: number;
  prompt_tokens: number;
  completion_tokens: number;
  server_tool_use?: { web_search_requests: number };
  server_tool_use_details?: Record<string, number>;
}
interface Citation {
  url_citation: { url: string; title: string; content: string; start_index: number; end_index: number };
}
interface ReceivedAnswer {
  id: string;
  status: number;
  text: string;
  calls: { id: string; function: { name: string; arguments: string } }[];
  annotations: Citation[];
  finish_reason: string | null;
  usage: Usage;
  metadata: { pipeline?: { type: string; name: string; data: Record<string, unknown> }[]; attempts: unknown[] };
  error?: { code: number; message: string };
}

const WANTS = { 'x-gateway-experimental-metadata': 'enabled' };

/** The answer that a client of chat completions receives, whole or streamed. */
async function ask(stream: boolean, body: object, key?: string, at = gateway): Promise<ReceivedAnswer> {
  const request = {
    model: 'test/tools',
    provider: { order: ['one', 'two'] },
    messages: [{ role: 'user', content: 'Hi' }],
    stream,
    ...body,
  };
  const headers = key === undefined ? WANTS : { ...WANTS, authorization: `Bearer ${key}` };
  const response = await at.call('POST', '/chat/completions', request, headers);
  const id = response.headers.get('x-generation-id') ?? '';
  if (!stream || response.status !== 200) {
    const answer = (await response.json()) as {
      choices?: [
        {
          message: Partial<ReceivedAnswer> & { content?: string; tool_calls?: ReceivedAnswer['calls'] };
          finish_reason: string;
        },
      ];
      usage: Usage;
      gateway_metadata?: ReceivedAnswer['metadata'];
      error?: NonNullable<ReceivedAnswer['error']>;
    };
    const message = answer.choices?.[0].message ?? {};
    return {
      id,
      status: response.status,
      text: message.content ?? '',
      calls: message.tool_calls ?? [],
      annotations: message.annotations ?? [],
      finish_reason: answer.choices?.[0].finish_reason ?? null,
      usage: answer.usage,
      metadata: answer.gateway_metadata ?? { attempts: [] },
      ...(answer.error === undefined ? {} : { error: answer.error }),
    };
  }
  const received: ReceivedAnswer = {
    id,
    status: response.status,
    text: '',
    calls: [],
    annotations: [],
    finish_reason: null,
    usage: { cost: 0, prompt_tokens: 0, completion_tokens: 0 },
    metadata: { attempts: [] },
  };
  const frames = (await response.text()).split('\n\n').filter((frame) => frame.startsWith('data: {'));
  for (const frame of frames) {
    const chunk = JSON.parse(frame.slice(6));
    if (chunk.usage) received.usage = chunk.usage;
    if (chunk.gateway_metadata) received.metadata = chunk.gateway_metadata;
    if (chunk.error) received.error = chunk.error;
    const [choice] = chunk.choices;
    if (choice === undefined) continue;
    received.text += choice.delta.content ?? '';
    if (choice.finish_reason) {
      expect(received.finish_reason, 'one finish').toBeNull();
      received.finish_reason = choice.finish_reason;
    }
    received.annotations.push(...(choice.delta.annotations ?? []));
    for (const call of choice.delta.tool_calls ?? []) {
      received.calls[call.index] ??= { id: call.id, function: { name: call.function.name, arguments: '' } };
      received.calls[call.index]!.function.arguments += call.function.arguments ?? '';
    }
  }
  return received;
}

interface GenerationRecord {
  outcome: string;
  total_cost: number;
  charges: { class: string; amount: string }[];
  provider_responses: unknown[];
}

async function record(id: string, at = gateway) {
  const response = await at.call('GET', `/generation?id=${id}`);
  return ((await response.json()) as { data: GenerationRecord }).data;
}

const slice = (text: string, { start_index, end_index }: { start_index: number; end_index: number }) =>
  [...text].slice(start_index, end_index).join('');

describe.each([false, true])('streamed: %s', (stream) => {
  test('runs the tools that the model calls, returns the results to it, and gives one answer', async () => {
    model.follow({ text: 'Let me look.', calls: [search()] }, { text: '🌍 [One](https://a.example/one) says so.' });
    const answer = await ask(stream, { tools: [SEARCH] });
    expect(answer).toMatchObject({
      status: 200,
      text: 'Let me look.\n\n🌍 [One](https://a.example/one) says so.',
      calls: [],
      finish_reason: 'stop',
    });
    expect(engine.searches).toMatchObject([{ query: 'news', numResults: 2 }]);
    const [first, second] = model.requests;
    expect(first!.tools!.map((tool) => tool.function.name)).toEqual(['web_search']);
    expect(second!.messages.slice(-2)).toMatchObject([
      { role: 'assistant', content: 'Let me look.', tool_calls: [{ id: 'call_0_0' }] },
      { role: 'tool', tool_call_id: 'call_0_0' },
    ]);
    expect(second!.messages.at(-1)!.content).toContain('The second page.');
  });

  test('charges all steps and fees once: usage, record and charges are the same', async () => {
    model.follow({ calls: [search('a'), search('b')] }, { calls: [search('c')] }, { text: 'Done.' });
    const answer = await ask(stream, { tools: [SEARCH] });
    expect(answer.usage).toMatchObject({
      prompt_tokens: 300,
      completion_tokens: 30,
      server_tool_use: { web_search_requests: 3 },
      server_tool_use_details: { web_search_requests: 3, tool_calls_requested: 3, tool_calls_executed: 3 },
    });
    expect(answer.usage.cost).toBeCloseTo(3 * TURN_USD + 3 * SEARCH_USD, 9);
    const data = await record(answer.id);
    expect(data).toMatchObject({
      total_cost: answer.usage.cost,
      tokens_prompt: 300,
      tokens_completion: 30,
      num_search_results: 6,
      web_search_engine: 'exa',
      finish_reason: 'stop',
    });
    const sum = data.charges.reduce((total, { amount }) => total + Number(amount), 0);
    expect(sum).toBeCloseTo(answer.usage.cost, 12);
    expect(data.charges.filter((line) => line.class === 'web_search')).toHaveLength(3);
    expect(data.provider_responses).toHaveLength(3);
    expect(answer.metadata.pipeline).toMatchObject([
      { type: 'server_tools', name: 'server-tools', data: { mode: 'sdk', tools: ['gateway:web_search'] } },
      { type: 'plugin', name: 'web-search', data: { engine: 'exa', searches: 3, results: 6 } },
    ]);
  });

  test('cites with offsets into the final text', async () => {
    const text =
      '😀 First [a](https://a.example/one), then https://b.example/two?x=1. And [c](https://c.example/) is unknown.';
    model.follow({ text: '𝒲ait…', calls: [search()] }, { text });
    const answer = await ask(stream, { tools: [SEARCH] });
    expect(answer.annotations.map(({ url_citation: one }) => [one.url, slice(answer.text, one)])).toEqual([
      ['https://a.example/one', '[a](https://a.example/one)'],
      ['https://b.example/two?x=1', 'https://b.example/two?x=1'],
    ]);
  });

  test('lists all sources without positions if the answer cites none', async () => {
    model.follow({ calls: [search()] }, { text: 'I know it.' });
    const { annotations } = await ask(stream, { tools: [SEARCH] });
    expect(annotations.map(({ url_citation: { url, end_index } }) => [url, end_index])).toEqual(
      PAGES.map(({ url }) => [url, 0]),
    );
  });

  test("moves the provider's own citations behind the text that precedes them", async () => {
    const urlCitation = { url: 'https://p.example', title: 'P', start_index: 0, end_index: 4 };
    model.follow(
      { text: '😀!', calls: [search()] },
      { text: 'Well', annotations: [{ type: 'url_citation', url_citation: urlCitation }] },
    );
    const answer = await ask(stream, { tools: [SEARCH] });
    expect(answer.annotations).toHaveLength(1);
    expect(slice(answer.text, answer.annotations[0]!.url_citation)).toBe('Well');
  });

  test("returns the client its own calls, also beside one of the gateway's, which does not run then", async () => {
    model.follow({ text: 'Both.', calls: [search(), { name: 'weather', args: { city: 'Rome' } }] });
    const answer = await ask(stream, { tools: [SEARCH, WEATHER] });
    expect(answer).toMatchObject({
      text: 'Both.',
      finish_reason: 'tool_calls',
      calls: [{ id: 'call_0_1', function: { name: 'weather', arguments: '{"city":"Rome"}' } }],
    });
    expect(engine.searches).toHaveLength(0);
    expect(answer.usage.cost).toBeCloseTo(TURN_USD, 9);
  });

  test('runs its tools first and returns the calls of a later step to the client', async () => {
    model.follow({ calls: [search()] }, { calls: [{ name: 'weather', args: {} }] });
    const answer = await ask(stream, { tools: [SEARCH, WEATHER] });
    expect(answer).toMatchObject({ finish_reason: 'tool_calls', calls: [{ function: { name: 'weather' } }] });
    expect(engine.searches).toHaveLength(1);
  });

  test("declares its tool under another name if the client's has that one", async () => {
    const mine = { type: 'function', function: { name: 'web_search', parameters: { type: 'object', properties: {} } } };
    model.follow({ calls: [{ name: 'gateway_web_search', args: { query: 'x' } }] }, { calls: [search('mine')] });
    const answer = await ask(stream, { tools: [mine, SEARCH] });
    expect(model.requests[0]!.tools!.map((tool) => tool.function.name)).toEqual(['web_search', 'gateway_web_search']);
    expect(engine.searches).toMatchObject([{ query: 'x' }]);
    expect(answer.calls).toMatchObject([{ function: { name: 'web_search', arguments: '{"query":"mine"}' } }]);
  });

  test('ends after max_tool_calls calls, with a request for an answer without tools', async () => {
    model.script = ({ tool_choice }) => (tool_choice === 'none' ? { text: 'Enough.' } : { calls: [search()] });
    const answer = await ask(stream, { tools: [SEARCH], max_tool_calls: 2 });
    expect(answer).toMatchObject({ text: 'Enough.', finish_reason: 'stop' });
    expect(engine.searches).toHaveLength(2);
    expect(model.requests.map(({ tool_choice }) => tool_choice ?? 'auto')).toEqual(['auto', 'auto', 'none']);
  });

  test('runs at most the bound of calls of one turn, and reports the others to the model', async () => {
    model.follow({ calls: Array.from({ length: 4 }, () => search()) }, { text: 'Ok' });
    const answer = await ask(stream, { tools: [SEARCH], max_tool_calls: 3 });
    expect(engine.searches).toHaveLength(3);
    expect(model.requests[1]!.messages.at(-1)!.content).toContain('has already called 3 tools');
    expect(answer.usage.server_tool_use_details).toMatchObject({ tool_calls_requested: 4, tool_calls_executed: 3 });
  });

  test('never runs more than the maximum', async () => {
    model.script = ({ tool_choice }) => (tool_choice === 'none' ? { text: 'Stop' } : { calls: [search()] });
    await ask(stream, { tools: [{ ...SEARCH, parameters: { max_results: 1 } }], max_tool_calls: 1_000 });
    expect(engine.searches).toHaveLength(limits.server_tool_calls_max);
  });

  test('ends with the text of a model that calls in the last step', async () => {
    model.script = () => ({ text: 'More', calls: [search()] });
    const answer = await ask(stream, { tools: [SEARCH], max_tool_calls: 1 });
    expect(answer).toMatchObject({ text: 'More\n\nMore', finish_reason: 'stop', calls: [] });
    expect(engine.searches).toHaveLength(1);
  });

  test('informs the model when a tool has no uses left', async () => {
    const tool = { type: 'gateway:web_search', parameters: { max_uses: 1 } };
    model.follow({ calls: [search()] }, { calls: [search()] }, { text: 'Ok' });
    await ask(stream, { tools: [tool] });
    expect(engine.searches).toHaveLength(1);
    expect(model.requests[2]!.messages.at(-1)!.content).toContain('called 1 times');
  });

  test.each<[object, number]>([
    [{ type: 'step_count_is', step_count: 2 }, 2],
    [{ type: 'has_tool_call', tool_name: 'web_search' }, 1],
    [{ type: 'has_tool_call', tool_name: 'gateway:web_search' }, 1],
    [{ type: 'max_tokens_used', max_tokens: 300 }, 3],
    [{ type: 'max_cost', max_cost_in_dollars: 0.02 }, 2],
    [{ type: 'finish_reason_is', reason: 'tool_calls' }, 1],
  ])('ends its loop if %j applies', async (condition, searches) => {
    model.script = ({ tool_choice }) => (tool_choice === 'none' ? { text: 'Stop' } : { calls: [search()] });
    const answer = await ask(stream, { tools: [SEARCH], stop_server_tools_when: [condition], max_tool_calls: 1 });
    expect(answer.text).toBe('Stop');
    expect(engine.searches).toHaveLength(searches);
  });

  test('forces a tool by its type, for the first step only', async () => {
    model.follow({ calls: [search()] }, { text: 'Ok' });
    await ask(stream, { tools: [SEARCH], tool_choice: { type: 'gateway:web_search' } });
    expect(model.requests.map(({ tool_choice }) => tool_choice)).toEqual([
      { type: 'function', function: { name: 'web_search' } },
      undefined,
    ]);
  });

  test('runs nothing for a client that allows no tool, whatever the model calls', async () => {
    model.follow({ text: 'No.', calls: [search()] });
    const answer = await ask(stream, { tools: [SEARCH], tool_choice: 'none' });
    expect(answer).toMatchObject({ text: 'No.', calls: [], finish_reason: 'stop' });
    expect(engine.searches).toHaveLength(0);
    expect(answer.usage.cost).toBeCloseTo(TURN_USD, 9);
  });

  test.each([
    (list: object) => ({ type: 'allowed_tools', allowed_tools: list }),
    (list: object) => ({ type: 'allowed_tools', ...list }),
  ])('may be among the allowed tools, and is forced for the first step only', async (choice) => {
    const other = { type: 'function', function: { name: 'other', parameters: { type: 'object', properties: {} } } };
    model.follow({ calls: [search()] }, { text: 'Found.' });
    const answer = await ask(stream, {
      tools: [other, SEARCH, WEATHER],
      tool_choice: choice({
        mode: 'required',
        tools: [{ type: 'openrouter:web_search' }, { type: 'function', function: { name: 'weather' } }],
      }),
    });
    expect(answer.text).toBe('Found.');
    const names = model.requests.map(({ tools = [] }) => tools.map(({ function: { name } }) => name));
    expect(names).toEqual([
      ['web_search', 'weather'],
      ['web_search', 'weather'],
    ]);
    expect(model.requests.map(({ tool_choice }) => tool_choice)).toEqual(['required', 'auto']);
  });

  test('reports the error of a call to the model', async () => {
    model.follow(
      {
        calls: [
          { name: 'web_search', args: '[1' },
          { name: 'web_search', args: {} },
        ],
      },
      { text: 'Ok' },
    );
    const answer = await ask(stream, { tools: [SEARCH] });
    expect(answer.text).toBe('Ok');
    const [broken, empty] = model.requests[1]!.messages.slice(-2);
    expect(broken!.content).toContain('not a JSON object');
    expect(empty!.content).toContain('query');
    expect(answer.usage.cost).toBeCloseTo(2 * TURN_USD, 9);
  });

  test('continues at another endpoint if a later step fails before its first content', async () => {
    model.script = (_request, nth) => (nth === 0 ? { text: 'Look.', calls: [search()] } : { status: 503 });
    other.follow({ text: 'From the other.' });
    const answer = await ask(stream, { tools: [SEARCH] });
    expect(answer).toMatchObject({ text: 'Look.\n\nFrom the other.', finish_reason: 'stop' });
    expect(other.requests[0]!.messages.at(-1)).toMatchObject({ role: 'tool' });
    expect(answer.usage.cost).toBeCloseTo(TURN_USD + SEARCH_USD + 2 * TURN_USD, 9);
    expect((await record(answer.id)).total_cost).toBe(answer.usage.cost);
  });

  test('fails if no endpoint makes the next step, and charges the earlier ones', async () => {
    model.script = (_request, nth) => (nth === 0 ? { text: 'Look.', calls: [search()] } : { status: 503 });
    other.script = () => ({ status: 500 });
    const answer = await ask(stream, { tools: [SEARCH] });
    expect(answer.error?.code ?? answer.status).toBeGreaterThanOrEqual(500);
    const data = await record(answer.id);
    expect(data).toMatchObject({ outcome: 'failed', finish_reason: 'error' });
    expect(data.total_cost).toBeCloseTo(TURN_USD + SEARCH_USD, 9);
  });

  test('shows nothing of its tools to a call without them', async () => {
    model.follow({ calls: [search()] });
    const own = { type: 'function', function: { name: 'web_search', parameters: { type: 'object', properties: {} } } };
    const answer = await ask(stream, { tools: [own] });
    expect(answer).toMatchObject({ finish_reason: 'tool_calls', calls: [{ function: { name: 'web_search' } }] });
    expect(answer.usage.server_tool_use_details).toBeUndefined();
    expect(answer.metadata.pipeline).toBeUndefined();
  });

  test('searches before a call with the plugin web, charges the search, and cites its results', async () => {
    model.follow({ text: 'Per [a](https://a.example/one).' });
    const answer = await ask(stream, { plugins: [{ id: 'web', max_results: 2 }] });
    expect(answer.annotations.map(({ url_citation: one }) => slice(answer.text, one))).toEqual([
      '[a](https://a.example/one)',
    ]);
    expect(answer.usage.cost).toBeCloseTo(TURN_USD + SEARCH_USD, 9);
    expect((await record(answer.id)).total_cost).toBe(answer.usage.cost);
  });

  describe('within a spend limit', () => {
    async function keyWith(limit: number): Promise<{ key: string; usage(): Promise<number> }> {
      const headers = { authorization: `Bearer ${gateway.management_key}`, 'content-type': 'application/json' };
      const body = JSON.stringify({ name: 'limited', limit });
      const made = await fetch(`${gateway.base_url}/keys`, { method: 'POST', headers, body });
      const { key, data } = (await made.json()) as { key: string; data: { hash: string } };
      return {
        key,
        async usage() {
          for (let tries = 0; ; tries += 1) {
            const read = await fetch(`${gateway.base_url}/keys/${data.hash}`, { headers });
            const { usage } = ((await read.json()) as { data: { usage: number } }).data;
            if (usage > 0 || tries > 40) return usage;
            await sleep(50);
          }
        },
      };
    }

    test('spends exactly its usage', async () => {
      const { key, usage } = await keyWith(1);
      model.follow({ calls: [search(), search()] }, { text: 'Ok' });
      const answer = await ask(stream, { tools: [SEARCH], max_tokens: 20 }, key);
      expect(answer.usage.cost).toBeCloseTo(2 * TURN_USD + 2 * SEARCH_USD, 9);
      await expect.poll(usage).toBeCloseTo(answer.usage.cost, 9);
    });

    test('skips a tool that cannot be paid for, and lets the model end', async () => {
      const { key, usage } = await keyWith(0.008);
      model.script = ({ tool_choice }) => (tool_choice === 'none' ? { text: 'Unpaid.' } : { calls: [search()] });
      const answer = await ask(stream, { tools: [SEARCH], max_tokens: 20 }, key);
      expect(answer.text).toBe('Unpaid.');
      expect(engine.searches).toHaveLength(0);
      expect(answer.usage.cost).toBeCloseTo(2 * TURN_USD, 9);
      await expect.poll(usage).toBeCloseTo(answer.usage.cost, 9);
    });

    test('ends with the text so far if the next step cannot be paid for', async () => {
      const { key, usage } = await keyWith(0.0103);
      model.follow({ text: 'So far.', calls: [search()] });
      const answer = await ask(stream, { tools: [SEARCH], max_tokens: 20 }, key);
      expect(answer).toMatchObject({ text: 'So far.', finish_reason: 'length' });
      expect(answer.usage.cost).toBeCloseTo(TURN_USD + SEARCH_USD, 9);
      expect(await record(answer.id)).toMatchObject({ outcome: 'completed', finish_reason: 'length' });
      await expect.poll(usage).toBeCloseTo(answer.usage.cost, 9);
    });

    test('is a 402 if there is no text yet', async () => {
      const { key, usage } = await keyWith(0.0103);
      model.follow({ calls: [search()] });
      const answer = await ask(stream, { tools: [SEARCH], max_tokens: 20 }, key);
      expect(answer.error?.code).toBe(402);
      await expect.poll(usage).toBeCloseTo(TURN_USD + SEARCH_USD, 9);
    });
  });
});

test('a stream that breaks in the middle of a later step ends with an error, and charges both', async () => {
  model.follow({ text: 'Look.', calls: [search()] }, { text: 'Half of', dies: true });
  const answer = await ask(true, { tools: [SEARCH], provider: { order: ['one'], allow_fallbacks: false } });
  expect(answer.text).toBe('Look.\n\nHalf of');
  expect(answer.error?.code).toBe(502);
  const data = await record(answer.id);
  expect(data.outcome).toBe('failed');
  expect(data.total_cost).toBe(answer.usage.cost);
  expect(answer.usage.cost).toBeGreaterThan(TURN_USD + SEARCH_USD);
});

test('runs several tools at once', async () => {
  let underWay = 0;
  let most = 0;
  engine.before = async () => {
    underWay += 1;
    most = Math.max(most, underWay);
    await sleep(100);
    underWay -= 1;
  };
  const calls = Array.from({ length: 3 }, (_, at) => search(`q${at}`));
  model.follow({ calls }, { text: 'Ok' });
  await ask(false, { tools: [SEARCH] });
  expect(most).toBe(3);
});

test.each([
  ['while a tool runs', { tools: [SEARCH] }, TURN_USD + SEARCH_USD, 1],
  ['while a search runs before its call', { plugins: [{ id: 'web' }] }, SEARCH_USD, 0],
])(
  'a client that disconnects %s ends everything, and pays for the work that had begun',
  async (_when, wants, cost, turns) => {
    let release = () => {};
    engine.before = () => new Promise<void>((resolve) => (release = resolve));
    model.follow({ text: 'Look.', calls: [search()] });
    const headers = { authorization: `Bearer ${gateway.management_key}`, 'content-type': 'application/json' };
    const made = await fetch(`${gateway.base_url}/keys`, {
      method: 'POST',
      headers,
      body: '{"name":"leaving","limit":1}',
    });
    const { key, data } = (await made.json()) as { key: string; data: { hash: string } };
    const leaving = new AbortController();
    const request = fetch(`${gateway.base_url}/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        model: 'test/tools',
        stream: true,
        provider: { order: ['one'] },
        messages: [{ role: 'user', content: 'Hi' }],
        ...wants,
      }),
      signal: leaving.signal,
    }).then(
      (response) => response.text(),
      () => {},
    );
    await expect.poll(() => engine.searches.length).toBe(1);
    leaving.abort();
    await request.catch(() => {});
    const spent = async () => {
      const read = await fetch(`${gateway.base_url}/keys/${data.hash}`, { headers });
      return ((await read.json()) as { data: { usage: number } }).data.usage;
    };
    await expect.poll(spent).toBeCloseTo(cost, 9);
    release();
    expect(model.requests).toHaveLength(turns);
  },
);

describeStores('many answers at once', ({ freshUrl }) => {
  test('never spend more than their limit, and their reported cost is the spending', {
    timeout: 180_000,
  }, async () => {
    const url = await freshUrl();
    const own = await startGateway({ yaml: yamlOf(), environment: url === undefined ? {} : { DATABASE_URL: url } });
    onTestFinished(() => own.stop());
    const LIMIT = 0.15;
    const headers = { authorization: `Bearer ${own.management_key}`, 'content-type': 'application/json' };
    const body = JSON.stringify({ name: 'crowded', limit: LIMIT });
    const made = await fetch(`${own.base_url}/keys`, { method: 'POST', headers, body });
    const { key, data } = (await made.json()) as { key: string; data: { hash: string } };
    model.script = async ({ messages, tool_choice }) => {
      await sleep(Math.random() * 10);
      const steps = messages.filter(({ role }) => role === 'assistant').length;
      return tool_choice === 'none' || steps > 2 ? { text: 'Ok' } : { text: 'So', calls: [search(), search()] };
    };
    engine.before = () => sleep(Math.random() * 10);
    const requests = Array.from({ length: 30 }, (_, at) =>
      ask(at % 2 === 0, { tools: [SEARCH], max_tokens: 20 }, key, own),
    );
    const answers = await Promise.all(requests);
    const spent = async () => {
      const read = await fetch(`${own.base_url}/keys/${data.hash}`, { headers });
      return ((await read.json()) as { data: { usage: number } }).data.usage;
    };
    const costs = await Promise.all(answers.map(async ({ id }) => (await record(id, own))?.total_cost ?? 0));
    const sum = costs.reduce((total, cost) => total + cost, 0);
    await expect.poll(spent).toBeCloseTo(sum, 9);
    // In nano-dollars: sums of floating-point dollars are not exact.
    expect(Math.round(sum * 1e9)).toBeLessThanOrEqual(LIMIT * 1e9);
    expect(sum).toBeGreaterThan(LIMIT / 2);
    for (const [at, { usage, status }] of answers.entries()) {
      if (status === 200) expect(usage.cost).toBeCloseTo(costs[at]!, 9);
    }
  });
});

test.each([
  ['/chat/completions', { messages: [{ role: 'user', content: 'Hi' }] }],
  ['/responses', { input: 'Hi' }],
  ['/messages', { max_tokens: 10, messages: [{ role: 'user', content: 'Hi' }] }],
])('%s refuses an invalid condition', async (path, body) => {
  const ask = (more: object) => gateway.call('POST', path, { model: 'test/tools', ...body, tools: [SEARCH], ...more });
  for (const more of [
    { max_tool_calls: 0 },
    { stop_server_tools_when: [{ type: 'step_count_is' }] },
    { stop_server_tools_when: [{ type: 'other' }] },
    { stop_server_tools_when: { type: 'step_count_is', step_count: 1 } },
  ]) {
    const response = await ask(more);
    expect(response.status).toBe(400);
    expect(await response.text()).toContain(Object.keys(more)[0]);
  }
});
