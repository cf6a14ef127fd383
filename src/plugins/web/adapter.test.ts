import { describe, expect, test } from 'vitest';
import { GatewayError } from '../../errors.ts';
import type { Call } from '../../inference/call.ts';
import type { CallResources } from '../../inference/tools/server-tools.ts';
import type { Quirks } from '../../providers/quirks.ts';
import type { Candidate } from '../../routing/plan.ts';
import type { ChatRequest, Message, Wire } from '../../schemas/inner.ts';
import type { EngineSettings, SearchEngine } from '../../schemas/web-search.ts';
import { createWebAdapter } from './adapter.ts';
import type { SearchResult } from './engine.ts';
import type { WebSearch } from './search.ts';

const PRICE = { search_nano: 5, results_included: 10, result_nano: 1 };
const engine: EngineSettings = { base_url: 'http://engine', api_key: undefined, price: PRICE };
const RESULTS: SearchResult[] = [
  { url: 'https://a.com/', title: 'A', content: 'about a' },
  { url: 'https://b.com/', title: 'B', content: 'secret' },
];

function searching(engines: SearchEngine[] = ['exa', 'parallel'], results: SearchResult[] = RESULTS) {
  const queries: string[] = [];
  const search: WebSearch = {
    settings: () => ({ engine: engines[0], engines: new Map(engines.map((one) => [one, engine])) }),
    async search(one, query) {
      queries.push(`${one}: ${query}`);
      return { results, cost_nano: 5, engine: one };
    },
  };
  return { search, queries };
}

function candidate(
  dialect: Wire,
  nativeSearch?: Quirks['native_search'],
  webSearch: number | undefined = 10,
): Candidate {
  const pricing = webSearch === undefined ? {} : { web_search: webSearch };
  const quirks = nativeSearch === undefined ? {} : { native_search: nativeSearch };
  const row = {
    model: { id: 'm' },
    endpoint: { quirks, pricing, upstream_model: 'm' },
    provider: { name: 'P', dialect },
    excluded: undefined,
  };
  return row as unknown as Candidate;
}

function callOf(request: Partial<ChatRequest>, more: Partial<Call> = {}): Call {
  const messages = [
    { role: 'system', content: 'Be kind.' },
    { role: 'user', content: 'What  is\nnew?' },
  ];
  const cancellation = { cancelled: false, cancel() {}, onCancel: () => () => {} };
  return { request: { messages, ...request }, stages: [], cancellation, ...more } as unknown as Call;
}

/** Pays for everything, and keeps the pages that may be cited. */
function resourcesOf(): CallResources {
  return { candidates: [], fees: { spend: async (_fee, run) => (await run()).value }, sources: [] };
}

const toolOf = (parameters: object) =>
  ({ tools: [{ type: 'gateway:web_search', parameters }] }) as Partial<ChatRequest>;
function fitted(request: Partial<ChatRequest>, to: Candidate, engines?: SearchEngine[]) {
  const call = callOf(request);
  const adapter = createWebAdapter(searching(engines).search, () => 0).create(call, resourcesOf())!;
  return adapter.fit(call.request, to);
}
const refusal = (message: RegExp) => expect.objectContaining({ status: 400, message: expect.stringMatching(message) });

describe('an endpoint with its own search gets the form of its wire', () => {
  const location = { type: 'approximate', city: 'Bern', country: 'ch', timezone: 'Europe/Zurich' };
  const place = { type: 'approximate', city: 'Bern', country: 'CH', timezone: 'Europe/Zurich' };
  test.each<[string, Wire, NonNullable<Quirks['native_search']>, object, object]>([
    [
      'OpenAI',
      'openai-responses',
      'openai',
      { allowed_domains: ['a.com'], user_location: location, search_context_size: 'high' },
      {
        type: 'web_search',
        filters: { allowed_domains: ['a.com'] },
        user_location: place,
        search_context_size: 'high',
      },
    ],
    [
      'xAI',
      'openai-responses',
      'xai',
      { excluded_domains: ['a.com'] },
      { type: 'web_search', filters: { excluded_domains: ['a.com'] } },
    ],
    [
      'Anthropic',
      'anthropic-messages',
      'anthropic',
      { excluded_domains: ['a.com/blog'], max_uses: 2, user_location: location },
      {
        type: 'web_search_20250305',
        name: 'web_search',
        max_uses: 2,
        blocked_domains: ['a.com/blog'],
        user_location: place,
      },
    ],
    ['Google', 'gemini-generate-content', 'google', {}, { googleSearch: {} }],
  ])('%s', (_name, wire, native, parameters, block) => {
    const { request, report } = fitted(toolOf(parameters), candidate(wire, native));
    expect(request.tools).toEqual([{ type: 'native', wire, block }]);
    expect(report).toEqual([]);
  });

  test('models that search by a field of the request get no tool', () => {
    const { request } = fitted(
      toolOf({ user_location: location, search_context_size: 'low' }),
      candidate('openai-chat', 'search_model'),
    );
    expect(request.tools).toBeNull();
    expect(request.web_search_options).toEqual({
      search_context_size: 'low',
      user_location: { type: 'approximate', approximate: { city: 'Bern', country: 'CH' } },
    });
    const sonar = fitted(toolOf({ allowed_domains: ['a.com'] }), candidate('openai-chat', 'perplexity', undefined));
    expect(sonar.request['search_domain_filter']).toEqual(['a.com']);
    expect(
      fitted(toolOf({ excluded_domains: ['a.com'] }), candidate('openai-chat', 'perplexity')).request[
        'search_domain_filter'
      ],
    ).toEqual(['-a.com']);
  });

  test.each<[Wire, NonNullable<Quirks['native_search']>, unknown]>([
    ['openai-responses', 'openai', { type: 'web_search' }],
    ['anthropic-messages', 'anthropic', { type: 'function', function: { name: 'web_search' } }],
    ['gemini-generate-content', 'google', undefined],
  ])('over %s its tool choice is translated', (wire, native, choice) => {
    const { request, report } = fitted(
      { ...toolOf({}), tool_choice: { type: 'gateway:web_search' } },
      candidate(wire, native),
    );
    expect(request.tool_choice).toEqual(choice);
    expect(report).toHaveLength(choice === undefined ? 1 : 0);
  });
});

test('options that its search ignores are reported', () => {
  const options = toolOf({ max_results: 3, max_characters: 100, max_uses: 2 });
  const reported = (to: Candidate) => fitted(options, to).report.map(({ kind, field }) => `${kind} ${field}`);
  expect(reported(candidate('openai-responses', 'openai'))).toEqual([
    'dropped tools[0].max_results',
    'dropped tools[0].max_characters',
    'dropped tools[0].max_uses',
  ]);
  expect(reported(candidate('anthropic-messages', 'anthropic'))).toHaveLength(2);
});

describe('a search that an endpoint cannot express runs in the gateway, or is refused if it must be native', () => {
  const both = { allowed_domains: ['a.com'], excluded_domains: ['b.com'] };
  test.each<[Wire, Quirks['native_search'], object, RegExp]>([
    ['openai-responses', 'openai', { excluded_domains: ['a.com'] }, /cannot exclude domains/],
    ['openai-responses', 'openai', { allowed_domains: ['*.a.com'] }, /neither wildcards nor paths/],
    [
      'openai-responses',
      'openai',
      { allowed_domains: Array.from({ length: 101 }, (_, at) => `a${at}.com`) },
      /does not accept this number/,
    ],
    ['openai-responses', 'xai', both, /one list of domains/],
    [
      'openai-responses',
      'xai',
      { allowed_domains: ['a.com', 'b.com', 'c.com', 'd.com', 'e.com', 'f.com'] },
      /does not accept this number/,
    ],
    ['anthropic-messages', 'anthropic', both, /one list of domains/],
    ['anthropic-messages', 'anthropic', { allowed_domains: ['*.a.com'] }, /no wildcards/],
    ['gemini-generate-content', 'google', { allowed_domains: ['a.com'] }, /no domain filter/],
    ['openai-chat', 'search_model', { allowed_domains: ['a.com'] }, /no domain filter/],
    ['openai-chat', 'perplexity', { allowed_domains: ['a.com/x'] }, /neither wildcards nor paths/],
    ['openai-chat', 'openai', {}, /does not search the web by itself/],
    ['openai-chat', undefined, {}, /does not search the web by itself/],
  ])('%s, %s: %j', (wire, native, parameters, why) => {
    const to = candidate(wire, native);
    expect(fitted(toolOf(parameters), to).request.tools).toEqual([
      { type: 'gateway:web_search', parameters: { ...parameters, engine: 'exa' } },
    ]);
    expect(() => fitted(toolOf({ ...parameters, engine: 'native' }), to)).toThrow(refusal(why));
    expect(() => fitted(toolOf(parameters), to, [])).toThrow(refusal(/no search engine: configure one/));
  });

  test('searches without a known price are not used', () => {
    const to = candidate('anthropic-messages', 'anthropic', undefined);
    (to.endpoint as { pricing: object }).pricing = {};
    expect(fitted(toolOf({}), to).request.tools).toMatchObject([{ type: 'gateway:web_search' }]);
    expect(() => fitted(toolOf({ engine: 'native' }), to)).toThrow(refusal(/price of its searches is not known/));
  });

  test("a named engine takes precedence over the endpoint's search", () => {
    const to = candidate('anthropic-messages', 'anthropic');
    expect(fitted(toolOf({ engine: 'parallel' }), to).request.tools).toMatchObject([
      { parameters: { engine: 'parallel' } },
    ]);
    expect(() => fitted(toolOf({ engine: 'searxng' }), to)).toThrow(
      refusal(/^tools\[0\]\.engine must be an engine that this gateway has configured/),
    );
  });
});

describe('before a call', () => {
  const plugins = [{ id: 'web' }];
  const to = candidate('openai-chat');

  test('one search runs for all attempts', async () => {
    const { search, queries } = searching();
    const call = callOf({ plugins });
    const resources = resourcesOf();
    const adapter = createWebAdapter(search, () => 0).create(call, resources)!;
    for (let tries = 0; tries < 3; tries += 1) await adapter.ready!(to);
    expect(queries).toEqual(['exa: What is new?']);
    const { messages } = adapter.fit(call.request, to).request;
    expect(messages.map(({ role }) => role)).toEqual(['system', 'system', 'user']);
    expect(messages[1]!.content).toContain('1970-01-01T00:00:00.000Z');
    expect(resources.sources).toMatchObject([{ url: 'https://a.com/' }, { url: 'https://b.com/' }]);
    expect(call.stages).toMatchObject([{ type: 'plugin', name: 'web-search', data: { engine: 'exa', results: 2 } }]);
  });

  test('no search runs for a hedged attempt', async () => {
    const { search, queries } = searching();
    const call = callOf({ plugins });
    const adapter = createWebAdapter(search, () => 0).create(call, resourcesOf())!;
    expect(adapter.ready!(to, true)).toBeInstanceOf(Promise);
    expect(adapter.ready!(candidate('anthropic-messages', 'anthropic'), true)).toBeUndefined();
    expect(queries).toEqual([]);
  });

  test("pages are filtered by the caller's guardrails, and a blocked one is omitted", async () => {
    const { search } = searching();
    const screening = {
      async texts(texts: readonly string[]) {
        if (texts.includes('secret')) throw new GatewayError(403, 'blocked');
        return texts.map((text) => text.replace('about', '[REDACTED]'));
      },
      messages: async (messages: readonly Message[]) => [...messages],
    };
    const call = callOf({ plugins }, { screening });
    const resources = resourcesOf();
    const adapter = createWebAdapter(search, () => 0).create(call, resources)!;
    await adapter.ready!(to);
    const text = adapter.fit(call.request, to).request.messages[1]!.content as string;
    expect(text).toContain('[REDACTED] a');
    expect(text).not.toContain('secret');
    expect(resources.sources).toEqual([{ url: 'https://a.com/', title: 'A', content: '[REDACTED] a' }]);
  });

  test('URLs and dates of pages are filtered too', async () => {
    const page = { url: 'https://a.com/?of=jane', title: 'A', content: 'about a', published: 'by jane' };
    const { search } = searching(undefined, [page]);
    const screening = {
      texts: async (texts: readonly string[]) => texts.map((text) => text.replace('jane', '[NAME]')),
      messages: async (messages: readonly Message[]) => [...messages],
    };
    const call = callOf({ plugins }, { screening });
    const adapter = createWebAdapter(search, () => 0).create(call, resourcesOf())!;
    await adapter.ready!(to);
    const text = adapter.fit(call.request, to).request.messages[1]!.content as string;
    expect(text).toContain('https://a.com/?of=[NAME]');
    expect(text).toContain('by [NAME]');
    expect(text).not.toContain('jane');
  });

  test('a last message without text starts no search', async () => {
    const { search, queries } = searching();
    const image = { type: 'image_url' as const, image_url: { url: 'https://a.com/a.png' } };
    const call = callOf({ plugins, messages: [{ role: 'user', content: [image] }] });
    const adapter = createWebAdapter(search, () => 0).create(call, resourcesOf())!;
    await adapter.ready!(to);
    expect(queries).toEqual([]);
    expect(adapter.fit(call.request, to).request.messages).toBe(call.request.messages);
  });
});

test('a call without a search has no adapter', () => {
  const { search } = searching();
  const adapter = createWebAdapter(search, () => 0);
  expect(adapter.create(callOf({}), resourcesOf())).toBeUndefined();
  expect(
    adapter.create(
      callOf({ plugins: [{ id: 'web', enabled: false }], tools: [{ type: 'gateway:datetime' }] }),
      resourcesOf(),
    ),
  ).toBeUndefined();
});
