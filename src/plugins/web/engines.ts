import { limits } from '../../limits.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import type { EngineSettings, SearchEngine } from '../../schemas/web-search.ts';
import type { DomainRule, DomainRules } from './domains.ts';
import type { EngineRequest, EngineWire, UserLocation } from './engine.ts';

/** Characters of a query that engines with a limit of their own accept. */
const FIRECRAWL_QUERY_CHARS_MAX = 500;
const PARALLEL_QUERY_CHARS_MAX = 200;
const SEARXNG_QUERY_CHARS_MAX = 1_000;
/** Domains that an engine gets. */
const WEB_DOMAINS_SENT_MAX = 100;
/** Operators for domains in one query. */
const WEB_OPERATORS_MAX = 10;

function post(url: string, headers: Record<string, string>, body: JsonObject): EngineRequest {
  const all = { 'content-type': 'application/json', accept: 'application/json', ...headers };
  return { method: 'POST', url, headers: all, body: JSON.stringify(body) };
}

function member(body: JsonValue | undefined, name: string): JsonValue | undefined {
  return typeof body === 'object' && body !== null && !Array.isArray(body) ? body[name] : undefined;
}

function listAt(body: JsonValue, ...names: string[]): unknown[] | undefined {
  const list = names.reduce<JsonValue | undefined>(member, body);
  return Array.isArray(list) ? list : undefined;
}

function joined(parts: unknown): string {
  return Array.isArray(parts) ? parts.filter((part) => typeof part === 'string').join('\n…\n') : '';
}

function cut(text: string, chars: number): string {
  return text.length <= chars ? text : text.slice(0, chars).toWellFormed();
}

function texts(rules: readonly DomainRule[]): string[] {
  return rules.slice(0, WEB_DOMAINS_SENT_MAX).map(({ text }) => text);
}

/**
 * Adds the rules to the query as operators of search engines, as many as fit. Results are checked against the rules
 * again, so a rule that operators cannot express may be left out, but none may be narrowed.
 */
function withOperators(query: string, { allowed, excluded }: DomainRules, charsMax: number): string {
  const sites = allowed.slice(0, WEB_OPERATORS_MAX).map(({ host, path }) => `site:${host}${path}`);
  const without = excluded
    .filter(({ below_alone }) => !below_alone)
    .slice(0, WEB_OPERATORS_MAX)
    .map(({ host, path }) => `-site:${host}${path}`);
  const operators = [sites.join(' OR '), ...without];
  // A part of the allowed hosts would exclude the others.
  if (allowed.length > WEB_OPERATORS_MAX) operators.shift();
  let extendedQuery = query;
  for (const operator of operators) {
    if (operator === '' || extendedQuery.length + operator.length + 1 > charsMax) continue;
    extendedQuery = `${extendedQuery} ${operator}`;
  }
  return cut(extendedQuery, charsMax);
}

function placeOf({ city, region, country }: UserLocation = {}): string {
  return [city, region, country].filter((part) => part !== undefined).join(',');
}

/** https://exa.ai/docs/reference/search */
const exa: EngineWire = {
  request(query, { max_results, max_characters, domains, location }, settings) {
    return post(`${settings.base_url}/search`, keyHeader(settings), {
      query: cut(query, limits.web_query_chars_max),
      type: 'auto',
      numResults: max_results,
      contents: { text: { maxCharacters: max_characters } },
      ...(domains.allowed.length === 0 ? {} : { includeDomains: texts(domains.allowed) }),
      ...(domains.excluded.length === 0 ? {} : { excludeDomains: texts(domains.excluded) }),
      ...(location?.country === undefined ? {} : { userLocation: location.country }),
    });
  },
  read: (body) => listAt(body, 'results'),
  result: ({ url, title, text, highlights, publishedDate }) => ({
    url,
    title,
    content: typeof text === 'string' && text !== '' ? text : joined(highlights),
    published: publishedDate,
  }),
};

function keyHeader({ api_key }: EngineSettings): Record<string, string> {
  return api_key === undefined ? {} : { 'x-api-key': api_key };
}

/** https://docs.firecrawl.dev/api-reference/endpoint/search: the query has at most 500 characters, and takes the operators of search engines. */
const firecrawl: EngineWire = {
  request(query, { max_results, domains, location }, { base_url, api_key }) {
    const place = placeOf(location);
    const headers: Record<string, string> = api_key === undefined ? {} : { authorization: `Bearer ${api_key}` };
    return post(`${base_url}/v2/search`, headers, {
      query: withOperators(cut(query, limits.web_query_chars_max), domains, FIRECRAWL_QUERY_CHARS_MAX),
      limit: max_results,
      sources: ['web'],
      scrapeOptions: { formats: ['markdown'], onlyMainContent: true },
      timeout: limits.web_search_ms_max,
      ...(location?.country === undefined ? {} : { country: location.country }),
      ...(place === '' ? {} : { location: place }),
    });
  },
  read: (body) => (member(body, 'success') === false ? undefined : listAt(body, 'data', 'web')),
  result: ({ url, title, description, markdown, metadata }) => ({
    url,
    title: title ?? member(metadata as JsonValue, 'title'),
    content: typeof markdown === 'string' && markdown !== '' ? markdown : description,
    published: member(metadata as JsonValue, 'publishedTime'),
  }),
};

/**
 * https://docs.parallel.ai/api-reference/search/search: domains without paths, and one list of them; a domain is with all below it
 * (https://docs.parallel.ai/resources/source-policy).
 */
const parallel: EngineWire = {
  request(query, { max_results, max_characters, domains, location }, settings) {
    const policy = sourcePolicy(domains);
    return post(`${settings.base_url}/v1/search`, keyHeader(settings), {
      objective: cut(query, limits.web_query_chars_max),
      search_queries: [cut(query, PARALLEL_QUERY_CHARS_MAX)],
      mode: 'basic',
      advanced_settings: {
        max_results,
        excerpt_settings: { max_chars_per_result: max_characters },
        ...(policy === undefined ? {} : { source_policy: policy }),
        ...(location?.country === undefined ? {} : { location: location.country.toLowerCase() }),
      },
    });
  },
  read: (body) => listAt(body, 'results'),
  result: ({ url, title, excerpts, publish_date }) => ({
    url,
    title,
    content: joined(excerpts),
    published: publish_date,
  }),
};

function sourcePolicy({ allowed, excluded }: DomainRules): JsonObject | undefined {
  const hosts = (rules: readonly DomainRule[]) => [...new Set(rules.map(({ host }) => host))];
  if (allowed.length > 0) return { include_domains: hosts(allowed).slice(0, WEB_DOMAINS_SENT_MAX) };
  // Only rules for whole domains: a host would exclude more than a path.
  const whole = excluded.filter(({ below_alone, path }) => !below_alone && path === '');
  return whole.length === 0 ? undefined : { exclude_domains: hosts(whole).slice(0, WEB_DOMAINS_SENT_MAX) };
}

/** https://docs.searxng.org/dev/search_api.html: a format that is not allowed in its settings is answered with 403. */
const searxng: EngineWire = {
  request(query, { domains }, { base_url, api_key }) {
    const extendedQuery = withOperators(cut(query, limits.web_query_chars_max), domains, SEARXNG_QUERY_CHARS_MAX);
    const parameters = new URLSearchParams({ q: extendedQuery, format: 'json' });
    const headers: Record<string, string> = { accept: 'application/json' };
    if (api_key !== undefined) headers['authorization'] = `Bearer ${api_key}`;
    return { method: 'GET', url: `${base_url}/search?${parameters.toString()}`, headers };
  },
  read: (body) => listAt(body, 'results'),
  result: ({ url, title, content, publishedDate }) => ({ url, title, content, published: publishedDate }),
  refusal: (status) => (status === 403 ? 'its settings do not allow the format json (search.formats)' : undefined),
};

/** The wires of the engines. */
export const engineWires: Readonly<Record<SearchEngine, EngineWire>> = { exa, firecrawl, parallel, searxng };
