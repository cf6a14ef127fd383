import { describe, expect, test } from 'vitest';
import { readPlugins } from './plugins.ts';
import { readConfigFile } from './read-file.ts';

const read = (environment: Record<string, string>, plugins?: object) => {
  const file = plugins && readConfigFile('gateway.yaml', JSON.stringify({ plugins }));
  const { plugins: parsed, warnings } = readPlugins(environment, file);
  return { web: parsed.web, warnings };
};
const KEYS = { EXA_API_KEY: 'e', FIRECRAWL_API_KEY: 'f', PARALLEL_API_KEY: 'p', SEARXNG_URL: 'http://localhost:8888/' };

describe('search engines', () => {
  test('none is configured by default', () => {
    expect(read({})).toEqual({ web: { engine: undefined, engines: new Map() }, warnings: [] });
  });

  test('each is enabled by its variable alone, and the first of them is the default', () => {
    const { web, warnings } = read(KEYS);
    expect(warnings).toEqual([]);
    expect(web.engine).toBe('exa');
    expect([...web.engines].map(([engine, { base_url, api_key }]) => [engine, base_url, api_key])).toEqual([
      ['exa', 'https://api.exa.ai', 'e'],
      ['firecrawl', 'https://api.firecrawl.dev', 'f'],
      ['parallel', 'https://api.parallel.ai', 'p'],
      ['searxng', 'http://localhost:8888', undefined],
    ]);
    expect(web.engines.get('exa')?.price).toEqual({
      search_nano: 7_000_000,
      results_included: 10,
      result_nano: 1_000_000,
    });
    expect(read({ SEARXNG_URL: 'http://s' }).web.engine).toBe('searxng');
  });

  test('the file sets the default, the price, another address and another key', () => {
    const exa = { api_key: '\u0024{MY_KEY}', base_url: 'http://exa.internal/', price_per_search_usd: 0.001 };
    const { web } = read({ ...KEYS, MY_KEY: 'mine' }, { web: { engine: 'parallel', engines: { exa } } });
    expect(web.engine).toBe('parallel');
    expect(web.engines.get('exa')).toMatchObject({ base_url: 'http://exa.internal', api_key: 'mine' });
    const price = web.engines.get('exa')!.price;
    expect(price.search_nano).toBe(1_000_000);
    expect(Math.max(0, 25 - price.results_included) * price.result_nano).toBe(0);
  });

  test('a self-hosted engine needs no key, and one of a service needs one', () => {
    expect(read({}, { web: { engines: { searxng: { url: 'http://s' } } } }).web.engine).toBe('searxng');
    const keyless = read({}, { web: { engines: { exa: {} } } });
    expect(keyless.web.engines.size).toBe(0);
    expect(keyless.warnings).toEqual(['The search engine exa is off: EXA_API_KEY is not set']);
  });

  test('a named but unconfigured engine is a warning', () => {
    const { web, warnings } = read({}, { web: { engine: 'exa', engines: { exa: { api_key: '\u0024{NO_KEY}' } } } });
    expect(web.engine).toBeUndefined();
    expect(warnings).toEqual([
      'The search engine exa is off: NO_KEY is not set',
      'plugins.web.engine names exa, which is not configured: set its key or address, or remove the setting',
    ]);
  });

  test.each<[Record<string, string>, object | undefined, RegExp]>([
    [{ SEARXNG_URL: 'localhost:8888' }, undefined, /^SEARXNG_URL must be a URL that starts with http/],
    [{ EXA_API_KEY: 'two words' }, undefined, /^EXA_API_KEY must be plain ASCII without white space/],
    [{}, { web: { engines: { searxng: { url: 'ftp://s' } } } }, /plugins\.web\.engines\.searxng\.url must be a URL/],
    [{}, { web: { engine: 'bing' } }, /plugins\.web\.engine must be one of exa, firecrawl, parallel, searxng/],
    [
      {},
      { web: { engines: { exa: { price_per_search_usd: -1 } } } },
      /price_per_search_usd must be an amount of USD, 0 or more/,
    ],
  ])('%j with %j is refused', (environment, plugins, message) => {
    expect(() => read(environment, plugins)).toThrow(message);
  });
});
