/**
 * Web search through the whole gateway, against a stand-in for the engines and an upstream that reports its request.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import OpenAI from 'openai';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { startGateway, type TestGateway } from './harness.ts';
import { ENGINE_KEY, type SearchEngines, startSearchEngines } from './search-engines.ts';

interface Message {
  role: string;
  content: string;
}
type Sent = Record<string, unknown> & { messages: Message[]; tools?: Record<string, unknown>[]; stream?: boolean };
/** The members of answers and errors that the tests read. */
interface Answer {
  id: string;
  choices: {
    message: {
      content: string;
      annotations?: { url_citation: { url: string; start_index: number; end_index: number } }[];
    };
    text: string;
  }[];
  usage: { cost: number; server_tool_use?: { web_search_requests: number } };
  gateway_metadata: {
    pipeline?: { name: string; data: Record<string, unknown> }[];
    endpoints: { adjusted?: object[] };
  };
  error: { message: string; metadata?: Record<string, unknown> };
}
const METADATA = { 'x-gateway-experimental-metadata': 'enabled' };
const LINK = 'See [news.example.com](https://news.example.com/rivers) \u{1F30D}.';

let engines: SearchEngines;
let gateway: TestGateway;
let unsearched: TestGateway;
let openai: OpenAI;
const sent: Sent[] = [];
const site = createServer((request, response) => void answer(request, response));

const ARGUMENTS: Record<string, object> = {
  web_search: { query: 'length of the Isen' },
  web_fetch: { url: 'http://127.0.0.1/secret' },
  datetime: {},
};

/** One call of each declared tool of the gateway. */
function callsOf({ tools = [] }: Sent) {
  return tools.flatMap((tool, at) => {
    const { name } = (tool as { function: { name: string } }).function;
    const call = { id: `call_${at}`, type: 'function', function: { name, arguments: JSON.stringify(ARGUMENTS[name]) } };
    return name in ARGUMENTS ? [call] : [];
  });
}

/** Answers with a link to the first page, on the wires of chat and of Anthropic. */
async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  const body = JSON.parse(Buffer.concat(parts).toString()) as Sent;
  sent.push(body);
  if (body.messages.some(({ role, content }) => role === 'user' && content === 'slowly')) await sleep(300);
  // A model that may call tools calls each once, and then answers.
  const called = body.messages.some(({ role }) => role === 'tool');
  const toolCalls = called || request.url === '/messages' ? [] : callsOf(body);
  if (request.url === '/messages') {
    const usage = { input_tokens: 10, output_tokens: 10, server_tool_use: { web_search_requests: 1 } };
    const content = [{ type: 'text', text: LINK }];
    const answer = {
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      model: 'm',
      content,
      stop_reason: 'end_turn',
      stop_sequence: null,
      usage,
    };
    return void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
  }
  const usage = { prompt_tokens: 10, completion_tokens: 10, total_tokens: 20 };
  if (body.stream !== true) {
    const message =
      toolCalls.length > 0
        ? { role: 'assistant', content: null, tool_calls: toolCalls }
        : { role: 'assistant', content: LINK };
    const choices = [{ index: 0, message, finish_reason: toolCalls.length > 0 ? 'tool_calls' : 'stop' }];
    const answer = { id: 'c', object: 'chat.completion', created: 1, model: 'm', choices, usage };
    return void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const chunk = (delta: object, more: object = {}) =>
    response.write(
      `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: null, ...more }] })}\n\n`,
    );
  if (toolCalls.length > 0) {
    chunk({ tool_calls: toolCalls.map((one, index) => ({ index, ...one })) });
    chunk({}, { finish_reason: 'tool_calls' });
  } else {
    for (const piece of LINK.match(/.{1,7}/gu)!) chunk({ content: piece });
    chunk({}, { finish_reason: 'stop' });
  }
  response.end(
    `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [], usage })}\n\ndata: [DONE]\n\n`,
  );
}

beforeAll(async () => {
  engines = await startSearchEngines();
  await new Promise<void>((resolve) => void site.listen(0, '127.0.0.1', resolve));
  const baseUrl = `http://127.0.0.1:${(site.address() as AddressInfo).port}`;
  const pricing = { prompt: 1, completion: 1 };
  const row = (provider: string, more: object = {}) => ({
    context_length: 200_000,
    endpoints: [{ provider, upstream_model: 'm', pricing: { ...pricing, ...more } }],
  });
  const engine = (name: string) => ({ base_url: `${engines.origin}/${name}`, api_key: ENGINE_KEY });
  const file = (plugins: object) => ({
    bundled_catalog: false,
    ledger: { journal_sync: 'os' },
    providers: {
      chat: { dialect: 'openai-chat', base_url: baseUrl },
      claude: { dialect: 'anthropic-messages', base_url: baseUrl, quirks: { native_search: 'anthropic' } },
    },
    models: {
      'test/chat': row('chat'),
      'test/claude': row('claude', { web_search: 0.01 }),
      'test/unpriced': row('claude'),
    },
    plugins,
  });
  const web = {
    engine: 'exa',
    engines: {
      exa: { ...engine('exa'), price_per_search_usd: 0.005 },
      firecrawl: engine('firecrawl'),
      parallel: engine('parallel'),
      searxng: { url: `${engines.origin}/searxng` },
    },
  };
  gateway = await startGateway({ yaml: JSON.stringify(file({ web })) });
  unsearched = await startGateway({ yaml: JSON.stringify(file({})) });
  openai = new OpenAI({ baseURL: gateway.base_url, apiKey: gateway.key, maxRetries: 0 });
});
afterEach(() => {
  sent.length = 0;
  engines.requests.length = 0;
});
afterAll(async () => {
  await gateway.stop();
  await unsearched.stop();
  await engines.stop();
  site.close();
});

const QUESTION = 'How long is the river Isen?';
const question = (more: object) => ({ model: 'test/chat', messages: [{ role: 'user', content: QUESTION }], ...more });
async function call(body: object, { to = gateway, path = '/chat/completions' } = {}) {
  const response = await to.call('POST', path, body, METADATA);
  return { status: response.status, body: (await response.json()) as Answer };
}
/** The part of the search that the model received. */
const shown = (): Record<string, unknown> & { results: Record<string, unknown>[] } => {
  const message = sent[0]!.messages.find(({ role, content }) => role === 'system' && content.includes('"results"'))!;
  return JSON.parse(message.content.slice(message.content.indexOf('{"note"')));
};

describe('the plugin web', () => {
  test.each<[string, object]>([
    ['the plugin', { plugins: [{ id: 'web' }] }],
    ['the suffix', { model: 'test/chat:online' }],
    ['both', { model: 'test/chat:online', plugins: [{ id: 'web' }] }],
  ])('%s: it makes one search with the user’s words, and puts the pages into the prompt', async (_name, more) => {
    const answer = await call(question(more));
    expect(answer.body.choices[0]!.message.content).toBe(LINK);
    expect(engines.requests).toMatchObject([{ engine: 'exa', query: QUESTION, body: { numResults: 5 } }]);
    expect(shown().results).toHaveLength(5);
    expect(shown().results[0]).toMatchObject({
      number: 1,
      url: 'https://news.example.com/rivers',
      title: 'Rivers of gold',
    });
    expect(sent[0]!.messages.map(({ role }) => role)).toEqual(['system', 'user']);
    expect(answer.body.gateway_metadata.pipeline).toMatchObject([
      { type: 'plugin', name: 'web-search', data: { engine: 'exa', results: 5 } },
    ]);
  });

  test('is charged: the usage, the generation and its charges agree', async () => {
    const { body } = await call(question({ plugins: [{ id: 'web' }] }));
    expect(body.usage.cost).toBeCloseTo(0.005 + 20e-6, 9);
    expect(body.usage.server_tool_use).toEqual({ web_search_requests: 1 });
    const { data } = (await (await gateway.call('GET', `/generation?id=${body.id}`)).json()) as {
      data: { total_cost: number; web_search_engine: string };
    };
    expect(data.total_cost).toBeCloseTo(body.usage.cost, 9);
    expect(data.web_search_engine).toBe('exa');
  });

  test.each([false, true])(
    'is charged once for each of several prompts at any balance (stream: %s)',
    async (stream) => {
      const headers = { authorization: `Bearer ${gateway.management_key}` };
      // Two searches, and one answer at a time.
      const made = await gateway.call('POST', '/keys', { name: 'limited', limit: 0.0222 }, headers);
      const authorization = `Bearer ${((await made.json()) as { key: string }).key}`;
      const searchesBefore = engines.requests.length;
      const body = {
        model: 'test/chat',
        prompt: ['slowly', 'slowly'],
        max_tokens: 10_000,
        plugins: [{ id: 'web' }],
        stream,
      };
      const response = await gateway.call('POST', '/completions', body, { authorization });
      const text = await response.text();
      expect([response.status, text.match(/(?<="finish_reason":")\w+/g)?.sort()]).toEqual([200, ['error', 'stop']]);
      expect(engines.requests.length - searchesBefore).toBe(2);
      const key = (await (await gateway.call('GET', '/key', undefined, { authorization })).json()) as {
        data: { usage: number };
      };
      expect(key.data.usage).toBeCloseTo(0.01002, 9);
    },
  );

  test('is cited if the answer links to its pages', async () => {
    for (const stream of [false, true]) {
      const { text, annotations } = await readAnswer(stream);
      expect(text).toBe(LINK);
      const [cited] = annotations;
      expect(cited).toMatchObject({ url: 'https://news.example.com/rivers', title: 'Rivers of gold' });
      expect([...text].slice(cited!.start_index, cited!.end_index).join('')).toContain(
        'https://news.example.com/rivers',
      );
    }
  });

  async function readAnswer(stream: boolean) {
    const body = { model: 'test/chat:online', messages: [{ role: 'user' as const, content: QUESTION }] };
    let text = '';
    const annotations: { url: string; start_index: number; end_index: number }[] = [];
    type Noted = { annotations?: { url_citation: (typeof annotations)[number] }[] };
    if (!stream) {
      const { message } = (await openai.chat.completions.create(body)).choices[0]!;
      return {
        text: message.content!,
        annotations: ((message as Noted).annotations ?? []).map((one) => one.url_citation),
      };
    }
    for await (const { choices } of await openai.chat.completions.create({ ...body, stream: true })) {
      const delta = choices[0]?.delta;
      text += delta?.content ?? '';
      annotations.push(...((delta as Noted | undefined)?.annotations ?? []).map((one) => one.url_citation));
    }
    return { text, annotations };
  }

  test.each<[string, object]>([
    ['/responses', { model: 'test/chat:online', input: QUESTION }],
    ['/responses', { model: 'test/chat', input: QUESTION, plugins: [{ id: 'web' }] }],
    ['/messages', { model: 'test/chat:online', max_tokens: 100, messages: [{ role: 'user', content: QUESTION }] }],
    ['/completions', { model: 'test/chat:online', prompt: QUESTION }],
    ['/chat/completions', { model: 'test/chat:online', prompt: QUESTION }],
  ])('over %s, whole and streamed', async (path, body) => {
    for (const stream of [false, true]) {
      const response = await gateway.call('POST', path, { ...body, stream });
      const text = await response.text();
      expect(response.status, text).toBe(200);
      // In a stream the text may arrive in pieces.
      if (!stream) expect(text).toContain('https://news.example.com/rivers');
    }
    expect(engines.requests.map(({ query }) => query)).toEqual([QUESTION, QUESTION]);
    expect(shown().results).toHaveLength(5);
  });

  test('applies its options', async () => {
    const plugin = {
      id: 'web',
      engine: 'firecrawl',
      max_results: 2,
      include_domains: ['example.com'],
      exclude_domains: ['example.com/shop'],
      search_prompt: 'Use these.',
    };
    await call(question({ plugins: [plugin] }));
    expect(engines.requests).toMatchObject([
      { engine: 'firecrawl', body: { limit: 2, query: `${QUESTION} site:example.com -site:example.com/shop` } },
    ]);
    expect(shown().results.map(({ url }) => url)).toEqual([
      'https://news.example.com/rivers',
      'https://example.com/blog/one',
    ]);
    expect(sent[0]!.messages[0]!.content).toMatch(/^Use these\.\n\n\{"note"/);
  });

  test('searches nothing if it is disabled, also if the model has :online', async () => {
    await call(question({ model: 'test/chat:online', plugins: [{ id: 'web', enabled: false }] }));
    expect(engines.requests).toEqual([]);
    expect(sent[0]!.messages).toHaveLength(1);
  });

  test('leaves the search to an endpoint with native search', async () => {
    const { body } = await call(
      question({
        model: 'test/claude:online',
        plugins: [{ id: 'web', max_uses: 3, include_domains: ['example.com'] }],
      }),
    );
    expect(engines.requests).toEqual([]);
    expect(sent[0]!.tools).toEqual([
      { type: 'web_search_20250305', name: 'web_search', max_uses: 3, allowed_domains: ['example.com'] },
    ]);
    expect(body.usage.server_tool_use).toEqual({ web_search_requests: 1 });
    // An endpoint whose price is known.
    expect(body.usage.cost).toBeCloseTo(0.01 + 20e-6, 9);
  });

  test('searches itself if that endpoint cannot apply the filter, or has no price for the search', async () => {
    await call(question({ model: 'test/claude', plugins: [{ id: 'web', include_domains: ['*.example.com'] }] }));
    await call(question({ model: 'test/unpriced', plugins: [{ id: 'web' }] }));
    expect(engines.requests).toHaveLength(2);
    expect(sent.map(({ tools }) => tools)).toEqual([undefined, undefined]);
  });

  test('fails the call if it fails: nothing is sent, nothing is charged', async () => {
    for (const [query, status] of [
      ['refused', 502],
      ['busy', 503],
      ['broken', 502],
    ] as const) {
      const messages = [{ role: 'user', content: query }];
      const { status: answerStatus, body } = await call(question({ messages, plugins: [{ id: 'web' }] }));
      expect(answerStatus).toBe(status);
      expect(body.error.message).toMatch(/^The web search failed at exa: /);
      expect(JSON.stringify(body)).not.toContain(ENGINE_KEY);
    }
    expect(sent).toEqual([]);
    expect(gateway.log_lines.join('')).not.toContain(ENGINE_KEY);
  });
});

describe('a search that nothing can perform is a 400 with the setting to change', () => {
  test.each<[object, RegExp]>([
    [
      { model: 'test/chat:online' },
      /^model must not end in :online, which cannot be served by test\/chat at chat \(it does not search the web by itself\), and this gateway has no search engine: configure one in gateway\.yaml/,
    ],
    [{ plugins: [{ id: 'web' }] }, /^plugins\[0\] cannot be served/],
    [{ tools: [{ type: 'gateway:web_search' }] }, /^tools\[0\] cannot be served/],
    [{ tools: [{ type: 'web_search' }] }, /^tools\[0\] cannot be served/],
    [
      { plugins: [{ id: 'web', engine: 'exa' }] },
      /^plugins\[0\]\.engine must be an engine that this gateway has configured, and exa is not/,
    ],
  ])('%j without an engine', async (more, message) => {
    const { status, body } = await call(question(more), { to: unsearched });
    expect(body.error.message).toMatch(message);
    expect(status).toBe(400);
    expect(sent).toEqual([]);
  });

  test.each<[object, RegExp]>([
    [
      { plugins: [{ id: 'web', engine: 'native' }] },
      /^plugins\[0\]\.engine must not be native: test\/chat at chat cannot serve it: it does not search the web by itself$/,
    ],
    [{ model: 'test/unpriced', plugins: [{ id: 'web', engine: 'native' }] }, /the price of its searches is not known$/],
    [
      { tools: [{ type: 'gateway:web_search', parameters: { engine: 'native' } }] },
      /^tools\[0\]\.engine must not be native/,
    ],
  ])('%j', async (more, message) => {
    const { status, body } = await call(question(more));
    expect(body.error.message).toMatch(message);
    expect(status).toBe(400);
    expect(engines.requests).toEqual([]);
  });

  test('an endpoint with native search needs no engine', async () => {
    const { status } = await call(question({ model: 'test/claude:online' }), { to: unsearched });
    expect(status).toBe(200);
    // The first cannot search, and the second can.
    const models = ['test/chat:online', 'test/claude'];
    expect((await call({ messages: question({}).messages, models }, { to: unsearched })).status).toBe(200);
  });

  test.each<[string, object, string]>([
    [
      '/chat/completions',
      { tools: [{ type: 'gateway:web_search', parameters: { max_results: 99 } }] },
      'tools[0].parameters.max_results must be an integer from 1 to 25',
    ],
    [
      '/responses',
      { input: 'x', tools: [{ type: 'openrouter:web_search', max_results: 99 }] },
      'tools[0].max_results must be an integer from 1 to 25',
    ],
    [
      '/messages',
      { max_tokens: 9, tools: [{ type: 'gateway:web_search', max_results: 99 }] },
      'tools[0].max_results must be an integer from 1 to 25',
    ],
    [
      '/messages',
      { max_tokens: 9, plugins: [{ id: 'web', engine: 'x' }] },
      'plugins[0].engine must be one of auto, native, exa, firecrawl, parallel, searxng',
    ],
  ])('%s refuses %j', async (path, more, message) => {
    const { status, body } = await call(
      { ...question(more), ...(path === '/responses' ? { messages: undefined } : {}) },
      { path },
    );
    expect(body.error.message).toBe(message);
    expect(status).toBe(400);
  });
});

describe("a provider's own tool at another provider", () => {
  const vendors = [
    ['/responses', { input: QUESTION, tools: [{ type: 'web_search', search_context_size: 'low' }] }],
    [
      '/messages',
      {
        max_tokens: 100,
        messages: question({}).messages,
        tools: [{ type: 'web_search_20250305', name: 'web_search', max_uses: 2 }],
      },
    ],
  ] as const;
  test.each(vendors)('over %s is the tool of the gateway', async (path, body) => {
    const { status } = await call({ model: 'test/chat', ...body }, { path });
    expect(status).toBe(200);
    expect(sent[0]!.tools).toMatchObject([{ type: 'function', function: { name: 'web_search' } }]);
  });
  test.each(vendors)('over %s fails visibly for model and client if nothing can search', async (path, body) => {
    const { status, body: answer } = await call({ model: 'test/chat', ...body }, { path, to: unsearched });
    expect(status).toBe(200);
    expect(sent[0]!.tools).toMatchObject([{ type: 'function', function: { name: 'web_search' } }]);
    const toolResult = sent[1]!.messages.find(({ role }) => role === 'tool')?.content;
    expect(toolResult).toMatch(/cannot be searched.*no search engine.*EXA_API_KEY/);
    const failed = path === '/responses' ? '"type":"web_search_call"' : '"type":"web_search_tool_result_error"';
    expect(JSON.stringify(answer)).toContain(failed);
    expect(JSON.stringify(answer)).toContain(path === '/responses' ? '"status":"failed"' : '"unavailable"');
    expect(answer.gateway_metadata.pipeline).toContainEqual(
      expect.objectContaining({ name: 'web-search', data: { searches: 0 } }),
    );
  });
  test.each([
    ['/responses', vendors[0][1], { type: 'web_search' }],
    ['/responses', vendors[0][1], 'required'],
    ['/messages', vendors[1][1], { type: 'tool', name: 'web_search' }],
    ['/messages', vendors[1][1], { type: 'any' }],
  ])('over %s is a 400 if it is forced, and nothing can search', async (path, body, toolChoice) => {
    const { status, body: answer } = await call(
      { model: 'test/chat', ...body, tool_choice: toolChoice },
      { path, to: unsearched },
    );
    expect(status).toBe(400);
    expect(answer.error.message).toMatch(/tools\[0\].* cannot be served .*EXA_API_KEY/);
    expect(sent).toHaveLength(0);
  });
  test('is unchanged at its own provider', async () => {
    const [path, body] = vendors[1];
    await call({ model: 'test/claude', ...body }, { path });
    expect(sent[0]!.tools).toEqual(body.tools);
  });
  test("becomes Anthropic's if OpenAI's is requested there", async () => {
    const [path, body] = vendors[0];
    await call({ model: 'test/claude', ...body }, { path });
    expect(sent[0]!.tools).toMatchObject([{ type: 'web_search_20250305', name: 'web_search' }]);
  });
});

describe('the tools of the gateway', () => {
  const tools = [
    { type: 'gateway:web_search', parameters: { max_results: 2, allowed_domains: ['example.com'] } },
    { type: 'gateway:web_fetch' },
    { type: 'gateway:datetime', parameters: { timezone: 'Europe/Zurich' } },
  ];
  const results = () =>
    sent
      .at(-1)!
      .messages.filter(({ role }) => role === 'tool')
      .map(({ content }) => JSON.parse(content) as Record<string, unknown>);

  test.each<[string, object]>([
    ['/chat/completions', question({ tools })],
    ['/responses', { model: 'test/chat', input: QUESTION, tools }],
    ['/messages', { model: 'test/chat', max_tokens: 100, messages: question({}).messages, tools }],
  ])('over %s run, whole and streamed, and the model receives their results', async (path, body) => {
    for (const stream of [false, true]) {
      sent.length = 0;
      engines.requests.length = 0;
      const response = await gateway.call('POST', path, { ...body, stream });
      const text = await response.text();
      expect(response.status, text).toBe(200);
      expect(sent).toHaveLength(2);
      expect(engines.requests).toMatchObject([{ engine: 'exa', query: 'length of the Isen', body: { numResults: 2 } }]);
      const [search, page, time] = results();
      expect(search).toMatchObject({
        note: expect.stringContaining('quoted as data'),
        query: 'length of the Isen',
        results: [
          { number: 1, url: 'https://news.example.com/rivers' },
          { number: 2, url: 'https://example.com/blog/one' },
        ],
      });
      expect(page).toEqual({
        url: 'http://127.0.0.1/secret',
        status: 'failed',
        error: 'its host does not resolve to a public address',
      });
      expect(time).toEqual({
        datetime: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*\+0[12]:00$/),
        timezone: 'Europe/Zurich',
      });
      if (!stream) expect(text).toContain('"web_search_requests":1');
    }
  });

  test('are paid with the call', async () => {
    const { body } = await call(question({ tools }));
    expect(body.choices[0]!.message.content).toBe(LINK);
    expect(body.usage.cost).toBeCloseTo(0.005 + 40e-6, 9);
    const data = { engine: 'exa', searches: 1, results: 2 };
    expect(body.gateway_metadata.pipeline).toContainEqual({ type: 'plugin', name: 'web-search', data });
    expect(body.choices[0]!.message.annotations).toMatchObject([
      { url_citation: { url: 'https://news.example.com/rivers' } },
    ]);
  });

  test('that fail report the reason to the model, and the call continues', async () => {
    const { parameters } = tools[0] as { parameters: object };
    ARGUMENTS['web_search'] = { query: 'busy' };
    try {
      const { status, body } = await call(question({ tools: [{ type: 'web_search', parameters }] }));
      expect(status).toBe(200);
      expect(body.usage.cost).toBeCloseTo(40e-6, 9);
      const [{ content }] = sent[1]!.messages.filter(({ role }) => role === 'tool') as [Message];
      expect(content).toContain('The web search failed at exa: it limits the rate of requests at the moment');
    } finally {
      ARGUMENTS['web_search'] = { query: 'length of the Isen' };
    }
  });
});
