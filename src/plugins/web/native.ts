import { wireOf } from '../../inference/plan/planner.ts';
import { limits } from '../../limits.ts';
import { googleCombinesSearch, searchWires } from '../../providers/native-search.ts';
import type { Quirks } from '../../providers/quirks.ts';
import type { Candidate } from '../../routing/plan.ts';
import type { ChatRequest, Native, ToolChoice } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import type { WebSearchOptions } from '../tool-options.ts';
import type { DomainRule } from './domains.ts';
import type { UserLocation } from './engine.ts';
import { isSearch } from './requested-search.ts';

/** Entries of a provider's own filter (their documentation: see `src/plugins/web/native.ts`). */
const NATIVE_DOMAINS_MAX = { openai: 100, xai: 5, perplexity: 20 } as const;

/** A search in the wire format of an endpoint that searches itself. */
export interface NativeSearch {
  /** Replaces the tool. Not set if the endpoint searches without a tool. */
  tool?: Native;
  /** The tool choice for it. Not set if the wire has none. */
  choice?: ToolChoice;
  /** Further fields of the request. */
  fields?: Partial<ChatRequest>;
}

/** Features of a request with which some endpoints refuse to search. */
interface OtherFeatures {
  functions: boolean;
  format: 'text' | 'json_object' | 'json_schema';
}

/** The client's tools and the gateway's other tools are functions on the wire; a provider's search is not. */
function otherFeatures({ tools, response_format }: ChatRequest): OtherFeatures {
  const format = response_format?.type;
  return {
    functions: tools?.some((tool) => tool.type !== 'native' && !isSearch(tool)) === true,
    format: format === 'json_object' || format === 'json_schema' ? format : 'text',
  };
}

interface Form {
  /** Set if the price of requests includes searches. */
  is_included?: true;
  /** The search for these options, or the reason why the wire cannot express them. */
  of(options: WebSearchOptions): NativeSearch | string;
  /** The reason why it does not search with other features of the request. Undefined if it does. */
  refuses?(beside: OtherFeatures, candidate: Pick<Candidate, 'endpoint'>): string | undefined;
}

const NO_DOMAINS = 'it has no domain filter';

function hosts(rules: readonly DomainRule[]): string[] {
  return rules.map(({ host }) => host);
}

/** Whether all rules are for a host and its subdomains. */
function arePlain(rules: readonly DomainRule[]): boolean {
  return rules.every(({ below_alone, path }) => !below_alone && path === '');
}

function placed(location: UserLocation | undefined): JsonObject {
  return location === undefined ? {} : { user_location: { type: 'approximate', ...location } };
}

/** https://platform.openai.com/docs/guides/tools-web-search: at most 100 domains, each with all below it. */
function openAi({ domains, location, context_size }: WebSearchOptions): NativeSearch | string {
  const { allowed, excluded } = domains;
  if (excluded.length > 0) return 'it cannot exclude domains';
  if (!arePlain(allowed)) return 'its domain filter supports neither wildcards nor paths';
  if (allowed.length > NATIVE_DOMAINS_MAX.openai) return 'its domain filter does not accept this number of domains';
  const block: JsonObject = {
    type: 'web_search',
    ...(allowed.length === 0 ? {} : { filters: { allowed_domains: hosts(allowed) } }),
    ...placed(location),
    ...(context_size === undefined ? {} : { search_context_size: context_size }),
  };
  return { tool: { type: 'native', wire: searchWires.openai, block }, choice: { type: 'web_search' } };
}

/** https://docs.x.ai/docs/guides/tools/search-tools: one list of at most five domains. */
function xAi({ domains: { allowed, excluded } }: WebSearchOptions): NativeSearch | string {
  if (allowed.length > 0 && excluded.length > 0) return 'it accepts one list of domains';
  if (!arePlain([...allowed, ...excluded])) return 'its domain filter supports neither wildcards nor paths';
  if (allowed.length + excluded.length > NATIVE_DOMAINS_MAX.xai)
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
function anthropic({ domains: { allowed, excluded }, location, max_uses }: WebSearchOptions): NativeSearch | string {
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
function google({ domains: { allowed, excluded } }: WebSearchOptions): NativeSearch | string {
  if (allowed.length + excluded.length > 0) return NO_DOMAINS;
  return { tool: { type: 'native', wire: searchWires.google, block: { googleSearch: {} } } };
}

function googleRefuses(
  { functions, format }: OtherFeatures,
  { endpoint }: Pick<Candidate, 'endpoint'>,
): string | undefined {
  if (googleCombinesSearch(endpoint) || (!functions && format === 'text')) return undefined;
  return functions
    ? 'it does not search in a request with functions'
    : 'it does not search in a request with a JSON format';
}

/** `web_search_options` (https://platform.openai.com/docs/guides/tools-web-search, "Chat Completions"). */
function optionsOf({ context_size, location }: WebSearchOptions): JsonObject {
  const { timezone: _, ...place } = location ?? {};
  return {
    ...(context_size === undefined ? {} : { search_context_size: context_size }),
    ...(location === undefined ? {} : { user_location: { type: 'approximate', approximate: place } }),
  };
}

function searchModel(options: WebSearchOptions): NativeSearch | string {
  const { allowed, excluded } = options.domains;
  return allowed.length + excluded.length > 0 ? NO_DOMAINS : { fields: { web_search_options: optionsOf(options) } };
}

/** https://docs.perplexity.ai/guides/search-domain-filters: at most 20 domains, those that are left out with a minus. */
function perplexity(options: WebSearchOptions): NativeSearch | string {
  const { allowed, excluded } = options.domains;
  if (allowed.length > 0 && excluded.length > 0) return 'it accepts one list of domains';
  if (!arePlain([...allowed, ...excluded])) return 'its domain filter supports neither wildcards nor paths';
  const filter = [...hosts(allowed), ...hosts(excluded).map((host) => `-${host}`)];
  if (filter.length > NATIVE_DOMAINS_MAX.perplexity) return 'its domain filter does not accept this number of domains';
  const searchFields = optionsOf(options);
  return {
    fields: {
      ...(Object.keys(searchFields).length === 0 ? {} : { web_search_options: searchFields }),
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
 * The endpoint's own search, or the reason why it cannot be used. A search without a known price is not used:
 * it would be billed as free.
 */
export function nativeSearch(
  candidate: Pick<Candidate, 'endpoint' | 'provider'>,
  options: WebSearchOptions,
  request: ChatRequest,
): NativeSearch | string {
  const { endpoint } = candidate;
  const { native_search: name } = endpoint.quirks;
  if (name === undefined || searchWires[name] !== wireOf(candidate)) return 'it does not search the web by itself';
  const form = forms[name];
  const search = form.refuses?.(otherFeatures(request), candidate) ?? form.of(options);
  if (typeof search === 'string' || form.is_included || endpoint.pricing.web_search !== undefined) return search;
  return 'the price of its searches is not known';
}
