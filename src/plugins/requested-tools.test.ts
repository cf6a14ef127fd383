import { describe, expect, test } from 'vitest';
import type { ChatRequest } from '../schemas/inner.ts';
import { withServerTools } from './requested-tools.ts';

const ask = (more: Record<string, unknown>) =>
  withServerTools({ messages: [{ role: 'user', content: 'Hi' }], ...more } as ChatRequest);
const refusal = (message: string) => expect.objectContaining({ status: 400, message });

describe('a tool of the gateway, under any of its names', () => {
  test.each([
    ['gateway:web_search', 'gateway:web_search'],
    ['openrouter:web_search', 'gateway:web_search'],
    ['web_search', 'gateway:web_search'],
    ['web_search_preview', 'gateway:web_search'],
    ['web_search_preview_2025_03_11', 'gateway:web_search'],
    ['web_search_2025_08_26', 'gateway:web_search'],
    ['openrouter:web_fetch', 'gateway:web_fetch'],
    ['openrouter:datetime', 'gateway:datetime'],
  ])('%s is %s', (type, name) => {
    expect(ask({ tools: [{ type }] }).tools).toEqual([{ type: name, parameters: {} }]);
  });

  test('has its options beside `type` or under `parameters`, which take precedence', () => {
    const [tool] = ask({ tools: [{ type: 'web_search', max_results: 3, max_uses: 2, parameters: { max_results: 4 } }] })
      .tools!;
    expect(tool).toEqual({ type: 'gateway:web_search', parameters: { max_results: 4, max_uses: 2 } });
  });

  test('leaves functions, native tools and unknown tools unchanged', () => {
    const own = { type: 'function', function: { name: 'web_search' } };
    const native = { type: 'native', wire: 'openai-responses', block: { type: 'web_search' } };
    const unknown = { type: 'gateway:image_generation' };
    const tools = [own, native, unknown, { type: 'gateway:datetime' }];
    expect(ask({ tools }).tools).toEqual([own, native, unknown, { type: 'gateway:datetime', parameters: {} }]);
  });

  test('may be declared once', () => {
    const tools = [{ type: 'gateway:web_search' }, { type: 'web_search' }];
    expect(() => ask({ tools })).toThrow(refusal('tools[1] must not be the same tool as tools[0]'));
  });

  test.each([
    [{ type: 'openrouter:web_search' }, { type: 'gateway:web_search' }],
    [{ type: 'function', function: { name: 'web_search' } }, { type: 'gateway:web_search' }],
    [{ type: 'function', function: { name: 'gateway:web_search' } }, { type: 'gateway:web_search' }],
    [
      { type: 'function', function: { name: 'mine' } },
      { type: 'function', function: { name: 'mine' } },
    ],
    ['auto', 'auto'],
  ])('is chosen by %j', (toolChoice, chosen) => {
    const tools = [{ type: 'gateway:web_search' }, { type: 'function', function: { name: 'mine' } }];
    expect(ask({ tools, tool_choice: toolChoice }).tool_choice).toEqual(chosen);
  });

  test("is not chosen if the choice names a provider's tool", () => {
    const toolChoice = { type: 'web_search' };
    const native = { type: 'native', wire: 'openai-responses', block: { type: 'web_search' } };
    expect(ask({ tools: [native, { type: 'gateway:datetime' }], tool_choice: toolChoice }).tool_choice).toBe(
      toolChoice,
    );
  });

  test("is not chosen if a client's function has that name", () => {
    const toolChoice = { type: 'function', function: { name: 'web_search' } };
    const tools = [{ type: 'gateway:web_search' }, { type: 'function', function: { name: 'web_search' } }];
    expect(ask({ tools, tool_choice: toolChoice }).tool_choice).toBe(toolChoice);
  });
});

test('a request without tools of the gateway is the same object', () => {
  const request = { messages: [], tools: [{ type: 'function', function: { name: 'f' } }], plugins: [{ id: 'web' }] };
  expect(withServerTools(request as unknown as ChatRequest)).toBe(request);
});

test('the plugin web-fetch adds the tool, unless it is disabled or the tool is declared', () => {
  const plugin = { id: 'web-fetch', max_uses: 3 };
  expect(ask({ plugins: [plugin] }).tools).toEqual([{ type: 'gateway:web_fetch', parameters: { max_uses: 3 } }]);
  expect(ask({ plugins: [{ ...plugin, enabled: false }] }).tools).toBeUndefined();
  expect(ask({ plugins: [plugin], tools: [{ type: 'gateway:web_fetch' }] }).tools).toHaveLength(1);
});

const search = (options: Record<string, unknown>) => ({ tools: [{ type: 'gateway:web_search', parameters: options }] });
const plugin = (options: Record<string, unknown>) => ({ plugins: [{ id: 'web', ...options }] });

describe('options', () => {
  test.each<[Record<string, unknown>, string]>([
    [search({ max_results: 0 }), 'tools[0].parameters.max_results must be an integer from 1 to 25'],
    [search({ max_results: 26 }), 'tools[0].parameters.max_results must be an integer from 1 to 25'],
    [search({ max_results: 2.5 }), 'tools[0].parameters.max_results must be an integer from 1 to 25'],
    [search({ max_results: '5' }), 'tools[0].parameters.max_results must be an integer from 1 to 25'],
    [search({ max_characters: 100_001 }), 'tools[0].parameters.max_characters must be an integer from 1 to 100000'],
    [search({ max_uses: 0 }), 'tools[0].parameters.max_uses must be an integer from 1 to 50'],
    [search({ max_total_results: -1 }), 'tools[0].parameters.max_total_results must be an integer from 1 to 1000'],
    [
      search({ engine: 'bing' }),
      'tools[0].parameters.engine must be one of auto, native, exa, firecrawl, parallel, searxng',
    ],
    [
      search({ search_context_size: 'huge' }),
      'tools[0].parameters.search_context_size must be one of low, medium, high',
    ],
    [search({ allowed_domains: 'example.com' }), 'tools[0].parameters.allowed_domains must be an array of domains'],
    [
      search({ excluded_domains: ['ok.com', 'no domain'] }),
      'tools[0].parameters.excluded_domains[1] must be a domain such as example.com, *.example.com or example.com/blog',
    ],
    [search({ user_location: 'Bern' }), 'tools[0].parameters.user_location must be an object'],
    [
      search({ user_location: { country: 'Switzerland' } }),
      'tools[0].parameters.user_location.country must be a country code of two letters (ISO 3166-1)',
    ],
    [
      search({ user_location: { type: 'approximate', approximate: { timezone: 'Mars' } } }),
      'tools[0].parameters.user_location.approximate.timezone must be an IANA time zone such as Europe/Berlin',
    ],
    [{ tools: [{ type: 'web_search', max_results: 99 }] }, 'tools[0].max_results must be an integer from 1 to 25'],
    [{ tools: [{ type: 'web_search', parameters: [] }] }, 'tools[0].parameters must be an object'],
    [plugin({ max_results: 0 }), 'plugins[0].max_results must be an integer from 1 to 25'],
    [plugin({ engine: 'x' }), 'plugins[0].engine must be one of auto, native, exa, firecrawl, parallel, searxng'],
    [
      plugin({ include_domains: [7] }),
      'plugins[0].include_domains[0] must be a domain such as example.com, *.example.com or example.com/blog',
    ],
    [
      plugin({ search_prompt: 'x'.repeat(10_001) }),
      'plugins[0].search_prompt must be a string of at most 10000 characters',
    ],
    [
      { plugins: [{ id: 'web-fetch', max_content_tokens: 0 }] },
      'plugins[0].max_content_tokens must be an integer from 1 to 100000',
    ],
    [{ tools: [{ type: 'gateway:web_fetch', max_uses: 51 }] }, 'tools[0].max_uses must be an integer from 1 to 50'],
    [
      { tools: [{ type: 'gateway:datetime', parameters: { timezone: 'Europe/Atlantis' } }] },
      'tools[0].parameters.timezone must be an IANA time zone such as Europe/Berlin',
    ],
    [
      { tools: [{ type: 'gateway:datetime', timezone: '+01:00' }] },
      'tools[0].timezone must be an IANA time zone such as Europe/Berlin',
    ],
  ])('%j: a 400 that names the field and the rule', (request, message) => {
    expect(() => ask(request)).toThrow(refusal(message));
  });

  test('of a disabled plugin are not checked, and null means not set', () => {
    expect(() => ask(plugin({ enabled: false, max_results: 99 }))).not.toThrow();
    const nulls = {
      engine: null,
      max_results: null,
      allowed_domains: null,
      user_location: null,
      search_context_size: null,
    };
    expect(() => ask(search(nulls))).not.toThrow();
  });
});
