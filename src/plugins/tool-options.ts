import { invalidField } from '../errors.ts';
import { limits } from '../limits.ts';
import type { JsonObject, JsonValue } from '../schemas/json.ts';
import { type SearchEngine, searchEngines } from '../schemas/web-search.ts';
import { type DomainRule, type DomainRules, domainRule } from './web/domains.ts';
import type { UserLocation } from './web/engine.ts';

/** Results that one search can request (specification, "Limits"). */
const WEB_RESULTS_MAX = 25;
/** Results of all searches of one call (public service's schema, `max_total_results`). */
const WEB_RESULTS_TOTAL_DEFAULT = 50;
const WEB_RESULTS_TOTAL_MAX = 1_000;
/** One part of a searcher's location. */
const WEB_PLACE_CHARS_MAX = 100;
/** The words around the results of the plugin `web`, for a request that has its own. */
const WEB_PROMPT_CHARS_MAX = 10_000;
const WEB_PAGE_TOKENS_MAX = 100_000;
/** Characters of the text that introduces the results of the plugin `web`, if a request sets it. */
const WEB_RESULT_CHARS_MAX = 100_000;
/** Entries in one list of domains. */
const WEB_DOMAINS_MAX = 200;

/** Options of a web search, from a tool or a plugin. */
export interface WebSearchOptions {
  /** `auto`: the search of the model's provider if it has one, otherwise the operator's engine. */
  engine: 'auto' | 'native' | SearchEngine;
  /** Results of one search. Undefined for the default. */
  max_results: number | undefined;
  max_total_results: number;
  max_uses: number | undefined;
  /** Characters of one result. Undefined if not set. */
  max_characters: number | undefined;
  context_size: 'low' | 'medium' | 'high' | undefined;
  domains: DomainRules;
  location: UserLocation | undefined;
  /** Replaces the text that introduces the results of a plugin's search. */
  search_prompt: string | undefined;
}

export interface WebFetchOptions {
  max_uses: number | undefined;
  max_content_tokens: number | undefined;
  domains: DomainRules;
}

export interface DatetimeOptions {
  timezone: string;
}

const ENGINES = ['auto', 'native', ...searchEngines] as const;
const SIZES = ['low', 'medium', 'high'] as const;

function integer(options: JsonObject, name: string, path: string, max: number): number | undefined {
  const value = options[name];
  if (value == null) return undefined;
  if (typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= max) return value;
  throw invalidField(`${path}.${name}`, `must be an integer from 1 to ${max}`);
}

function text(options: JsonObject, name: string, path: string, charsMax: number): string | undefined {
  const value = options[name];
  if (value == null) return undefined;
  if (typeof value === 'string' && value.length <= charsMax) return value;
  throw invalidField(`${path}.${name}`, `must be a string of at most ${charsMax} characters`);
}

function oneOf<const T extends readonly string[]>(
  options: JsonObject,
  name: string,
  path: string,
  values: T,
): T[number] | undefined {
  const value = options[name];
  if (value == null) return undefined;
  if (values.some((one) => one === value)) return value as T[number];
  throw invalidField(`${path}.${name}`, `must be one of ${values.join(', ')}`);
}

/** The entries of the first of these lists that is set. */
function domains(options: JsonObject, path: string, ...names: string[]): DomainRule[] {
  const name = names.find((one) => options[one] != null);
  if (name === undefined) return [];
  const value = options[name];
  if (!Array.isArray(value)) throw invalidField(`${path}.${name}`, 'must be an array of domains');
  if (value.length > WEB_DOMAINS_MAX) {
    throw invalidField(`${path}.${name}`, `must have at most ${WEB_DOMAINS_MAX} items`);
  }
  return value.map((entry, at) => {
    const rule = typeof entry === 'string' ? domainRule(entry) : undefined;
    if (rule !== undefined) return rule;
    throw invalidField(
      `${path}.${name}[${at}]`,
      'must be a domain such as example.com, *.example.com or example.com/blog',
    );
  });
}

function asObject(value: JsonValue | undefined, path: string): JsonObject | undefined {
  if (value == null) return undefined;
  if (typeof value === 'object' && !Array.isArray(value)) return value;
  throw invalidField(path, 'must be an object');
}

/** Whether the runtime knows the time zone. */
function isTimeZone(name: string): boolean {
  try {
    // An offset such as "+01:00" is not a time zone.
    return /[A-Za-z]/.test(name) && new Intl.DateTimeFormat('en', { timeZone: name }) !== undefined;
  } catch {
    return false;
  }
}

function timeZone(options: JsonObject, path: string): string | undefined {
  const value = text(options, 'timezone', path, WEB_PLACE_CHARS_MAX);
  if (value === undefined || isTimeZone(value)) return value;
  throw invalidField(`${path}.timezone`, 'must be an IANA time zone such as Europe/Berlin');
}

function location(options: JsonObject, path: string): UserLocation | undefined {
  const outer = asObject(options['user_location'], `${path}.user_location`);
  if (outer === undefined) return undefined;
  const isNested = outer['approximate'] != null;
  const place = `${path}.user_location${isNested ? '.approximate' : ''}`;
  const fields = isNested ? (asObject(outer['approximate'], place) ?? {}) : outer;
  const country = text(fields, 'country', place, WEB_PLACE_CHARS_MAX)?.toUpperCase();
  if (country !== undefined && !/^[A-Z]{2}$/.test(country)) {
    throw invalidField(`${place}.country`, 'must be a country code of two letters (ISO 3166-1)');
  }
  const city = text(fields, 'city', place, WEB_PLACE_CHARS_MAX);
  const region = text(fields, 'region', place, WEB_PLACE_CHARS_MAX);
  const timezone = timeZone(fields, place);
  const location: UserLocation = {};
  if (city) location.city = city;
  if (region) location.region = region;
  if (country) location.country = country;
  if (timezone) location.timezone = timezone;
  return Object.keys(location).length === 0 ? undefined : location;
}

/** Reads the options of a search tool or of the plugin `web`. Throws a 400 that names the field below `path` and the rule. */
export function readSearchOptions(options: JsonObject, path: string): WebSearchOptions {
  const filters = asObject(options['filters'], `${path}.filters`);
  const allowed = domains(options, path, 'allowed_domains', 'include_domains');
  const excluded = domains(options, path, 'excluded_domains', 'exclude_domains', 'blocked_domains');
  return {
    engine: oneOf(options, 'engine', path, ENGINES) ?? 'auto',
    max_results: integer(options, 'max_results', path, WEB_RESULTS_MAX),
    max_total_results: integer(options, 'max_total_results', path, WEB_RESULTS_TOTAL_MAX) ?? WEB_RESULTS_TOTAL_DEFAULT,
    max_uses: integer(options, 'max_uses', path, limits.web_uses_max),
    max_characters: integer(options, 'max_characters', path, WEB_RESULT_CHARS_MAX),
    context_size: oneOf(options, 'search_context_size', path, SIZES),
    domains: {
      allowed:
        filters === undefined ? allowed : [...allowed, ...domains(filters, `${path}.filters`, 'allowed_domains')],
      excluded:
        filters === undefined
          ? excluded
          : [...excluded, ...domains(filters, `${path}.filters`, 'excluded_domains', 'blocked_domains')],
    },
    location: location(options, path),
    search_prompt: text(options, 'search_prompt', path, WEB_PROMPT_CHARS_MAX),
  };
}

/** Reads the options of the tool that reads pages. Throws like `readSearchOptions`. */
export function readFetchOptions(options: JsonObject, path: string): WebFetchOptions {
  return {
    max_uses: integer(options, 'max_uses', path, limits.web_uses_max),
    max_content_tokens: integer(options, 'max_content_tokens', path, WEB_PAGE_TOKENS_MAX),
    domains: {
      allowed: domains(options, path, 'allowed_domains', 'include_domains'),
      excluded: domains(options, path, 'blocked_domains', 'excluded_domains', 'exclude_domains'),
    },
  };
}

/** Reads the options of the tool for date and time. Throws like `readSearchOptions`. */
export function readDatetimeOptions(options: JsonObject, path: string): DatetimeOptions {
  return { timezone: timeZone(options, path) ?? 'UTC' };
}
