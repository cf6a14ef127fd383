import { wireOf } from '../../inference/plan/planner.ts';
import { limits } from '../../limits.ts';
import { googleCombinesSearch, searchWires } from '../../providers/native-search.ts';
import type { Quirks } from '../../providers/quirks.ts';
import type { Candidate } from '../../routing/plan.ts';
import type { ChatRequest, Native, ToolChoice } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import type { SearchWish } from '../wishes.ts';
import { isSearch } from './asks.ts';
import type { DomainRule } from './domains.ts';
import type { UserLocation } from './engine.ts';

/** A search in the words of an endpoint that searches itself. */
export interface NativeSearch {
  /** Takes the tool's place; absent: the endpoint searches without one. */
  tool?: Native;
  /** How its wire is told to use it; absent: it cannot be. */
  choice?: ToolChoice;
  /** Fields of the request that say the rest. */
  fields?: Partial<ChatRequest>;
}

/** What a request wants beside a search, as far as searches are refused for it. */
interface Beside {
  functions: boolean;
  format: 'text' | 'json_object' | 'json_schema';
}

/** Tools of the client's, and those of the gateway's that a model calls, are functions; a search is none where it is the provider's. */
function besideOf({ tools, response_format }: ChatRequest): Beside {
  const format = response_format?.type;
  return {
    functions: tools?.some((tool) => tool.type !== 'native' && !isSearch(tool)) === true,
    format: format === 'json_object' || format === 'json_schema' ? format : 'text',
  };
}

interface Form {
  /** Its searches are in the price of its requests. */
  is_included?: true;
  /** A text: why it cannot carry the wish. */
  of(wish: SearchWish): NativeSearch | string;
  /** Why it does not search beside what else the request wants; undefined: it does. Absent: it always does. */
  refuses?(beside: Beside, candidate: Pick<Candidate, 'endpoint'>): string | undefined;
}

const NO_DOMAINS = 'it has no domain filter';

function hosts(rules: readonly DomainRule[]): string[] {
  return rules.map(({ host }) => host);
}

/** Rules that say no more than a host and all below it. */
function arePlain(rules: readonly DomainRule[]): boolean {
  return rules.every(({ below_alone, path }) => !below_alone && path === '');
}

function placed(location: UserLocation | undefined): JsonObject {
  return location === undefined ? {} : { user_location: { type: 'approximate', ...location } };
}

/** https://platform.openai.com/docs/guides/tools-web-search: at most 100 domains, each with all below it. */
function openAi({ domains, location, context_size }: SearchWish): NativeSearch | string {
  const { allowed, excluded } = domains;
  if (excluded.length > 0) return 'it cannot exclude domains';
  if (!arePlain(allowed)) return 'its domain filter supports neither wildcards nor paths';
  if (allowed.length > limits.native_domains_max.openai)
    return 'its domain filter does not accept this number of domains';
  const block: JsonObject = {
    type: 'web_search',
    ...(allowed.length === 0 ? {} : { filters: { allowed_domains: hosts(allowed) } }),
    ...placed(location),
    ...(context_size === undefined ? {} : { search_context_size: context_size }),
  };
  return { tool: { type: 'native', wire: searchWires.openai, block }, choice: { type: 'web_search' } };
}

/** https://docs.x.ai/docs/guides/tools/search-tools: one list of at most five domains. */
function xAi({ domains: { allowed, excluded } }: SearchWish): NativeSearch | string {
  if (allowed.length > 0 && excluded.length > 0) return 'it accepts one list of domains';
  if (!arePlain([...allowed, ...excluded])) return 'its domain filter supports neither wildcards nor paths';
  if (allowed.length + excluded.length > limits.native_domains_max.xai)
    return 'its domain filter does not accept this number of domains';
  const filters: JsonObject = {
    ...(allowed.length === 0 ? {} : { allowed_domains: hosts(allowed) }),
    ...(excluded.length === 0 ? {} : { excluded_domains: hosts(excluded) }),
  };
  const block: JsonObject = { type: 'web_search', ...(Object.keys(filters).length === 0 ? {} : { filters }) };
  return { tool: { type: 'native', wire: searchWires.xai, block }, choice: { type: 'web_search' } };
}

/**
 * https://platform.claude.com/docs/en/agents-and-tools/tool-use/web-search-tool: one list of domains, each with all below it; paths
 * are known, wildcards in them alone.
 */
function anthropic({ domains: { allowed, excluded }, location, max_uses }: SearchWish): NativeSearch | string {
  if (allowed.length > 0 && excluded.length > 0) return 'it accepts one list of domains';
  const rules = [...allowed, ...excluded];
  if (rules.some(({ below_alone }) => below_alone)) return 'its domain filter supports no wildcards before domains';
  const texts = (list: readonly DomainRule[]) => list.map(({ text }) => text);
  const block: JsonObject = {
    type: 'web_search_20250305',
    name: 'web_search',
    max_uses: max_uses ?? limits.web_searches_assumed,
    ...(allowed.length === 0 ? {} : { allowed_domains: texts(allowed) }),
    ...(excluded.length === 0 ? {} : { blocked_domains: texts(excluded) }),
    ...placed(location),
  };
  const choice = { type: 'function' as const, function: { name: 'web_search' } };
  return { tool: { type: 'native', wire: searchWires.anthropic, block }, choice };
}

/** https://ai.google.dev/gemini-api/docs/google-search */
function google({ domains: { allowed, excluded } }: SearchWish): NativeSearch | string {
  if (allowed.length + excluded.length > 0) return NO_DOMAINS;
  return { tool: { type: 'native', wire: searchWires.google, block: { googleSearch: {} } } };
}

function googleRefuses({ functions, format }: Beside, { endpoint }: Pick<Candidate, 'endpoint'>): string | undefined {
  if (googleCombinesSearch(endpoint) || (!functions && format === 'text')) return undefined;
  return functions
    ? 'it does not search in a request with functions'
    : 'it does not search in a request with a JSON format';
}

/** `web_search_options` (https://platform.openai.com/docs/guides/tools-web-search, "Chat Completions"). */
function optionsOf({ context_size, location }: SearchWish): JsonObject {
  const { timezone: _, ...place } = location ?? {};
  return {
    ...(context_size === undefined ? {} : { search_context_size: context_size }),
    ...(location === undefined ? {} : { user_location: { type: 'approximate', approximate: place } }),
  };
}

function searchModel(wish: SearchWish): NativeSearch | string {
  const { allowed, excluded } = wish.domains;
  return allowed.length + excluded.length > 0 ? NO_DOMAINS : { fields: { web_search_options: optionsOf(wish) } };
}

/** https://docs.perplexity.ai/guides/search-domain-filters: at most 20 domains, those that are left out with a minus. */
function perplexity(wish: SearchWish): NativeSearch | string {
  const { allowed, excluded } = wish.domains;
  if (allowed.length > 0 && excluded.length > 0) return 'it accepts one list of domains';
  if (!arePlain([...allowed, ...excluded])) return 'its domain filter supports neither wildcards nor paths';
  const filter = [...hosts(allowed), ...hosts(excluded).map((host) => `-${host}`)];
  if (filter.length > limits.native_domains_max.perplexity)
    return 'its domain filter does not accept this number of domains';
  const options = optionsOf(wish);
  return {
    fields: {
      ...(Object.keys(options).length === 0 ? {} : { web_search_options: options }),
      ...(filter.length === 0 ? {} : { search_domain_filter: filter }),
    },
  };
}

const forms: Readonly<Record<NonNullable<Quirks['native_search']>, Form>> = {
  openai: {
    of: openAi,
    // "Web Search cannot be used with JSON mode."
    refuses: ({ format }) =>
      format === 'json_object' ? 'it does not search in a request with the format json_object' : undefined,
  },
  xai: { of: xAi },
  anthropic: { of: anthropic },
  google: { of: google, refuses: googleRefuses },
  search_model: { of: searchModel },
  perplexity: { is_included: true, of: perplexity },
};

/**
 * The search of an endpoint's own; a text: why it has none that would do. One whose searches have no known price is not asked for
 * them: they would cost nothing here.
 */
export function nativeSearch(
  candidate: Pick<Candidate, 'endpoint' | 'provider'>,
  wish: SearchWish,
  request: ChatRequest,
): NativeSearch | string {
  const { endpoint } = candidate;
  const { native_search: name } = endpoint.quirks;
  if (name === undefined || searchWires[name] !== wireOf(candidate)) return 'it does not search the web by itself';
  const form = forms[name];
  const found = form.refuses?.(besideOf(request), candidate) ?? form.of(wish);
  if (typeof found === 'string' || form.is_included || endpoint.pricing.web_search !== undefined) return found;
  return 'the price of its searches is not known';
}
