import { invalidField } from '../errors.ts';
import { limits } from '../limits.ts';
import type { JsonObject, JsonValue } from '../schemas/json.ts';
import { type SearchEngine, searchEngines } from '../schemas/web-search.ts';
import { type DomainRule, type DomainRules, domainRule } from './web/domains.ts';
import type { UserLocation } from './web/engine.ts';

/** What a request wants searched, whichever way it says so. */
export interface SearchWish {
  /** `auto`: the model's provider where it searches itself, else the operator's engine. */
  engine: 'auto' | 'native' | SearchEngine;
  /** Of one search; undefined: as many as are usual. */
  max_results: number | undefined;
  max_total_results: number;
  max_uses: number | undefined;
  /** Of one result. Undefined: nothing is said. */
  max_characters: number | undefined;
  context_size: 'low' | 'medium' | 'high' | undefined;
  domains: DomainRules;
  location: UserLocation | undefined;
  /** What takes the place of the words around the results that a plugin brings. */
  search_prompt: string | undefined;
}

export interface FetchWish {
  max_uses: number | undefined;
  max_content_tokens: number | undefined;
  domains: DomainRules;
}

export interface DatetimeWish {
  timezone: string;
}

const ENGINES = ['auto', 'native', ...searchEngines] as const;
const SIZES = ['low', 'medium', 'high'] as const;

function integer(told: JsonObject, name: string, path: string, max: number): number | undefined {
  const value = told[name];
  if (value == null) return undefined;
  if (typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= max) return value;
  throw invalidField(`${path}.${name}`, `must be an integer from 1 to ${max}`);
}

function text(told: JsonObject, name: string, path: string, charsMax: number): string | undefined {
  const value = told[name];
  if (value == null) return undefined;
  if (typeof value === 'string' && value.length <= charsMax) return value;
  throw invalidField(`${path}.${name}`, `must be a string of at most ${charsMax} characters`);
}

function oneOf<const T extends readonly string[]>(
  told: JsonObject,
  name: string,
  path: string,
  values: T,
): T[number] | undefined {
  const value = told[name];
  if (value == null) return undefined;
  if (values.some((one) => one === value)) return value as T[number];
  throw invalidField(`${path}.${name}`, `must be one of ${values.join(', ')}`);
}

/** The entries of the first of these lists that is there. */
function domains(told: JsonObject, path: string, ...names: string[]): DomainRule[] {
  const name = names.find((one) => told[one] != null);
  if (name === undefined) return [];
  const value = told[name];
  if (!Array.isArray(value)) throw invalidField(`${path}.${name}`, 'must be an array of domains');
  if (value.length > limits.web_domains_max) {
    throw invalidField(`${path}.${name}`, `must have at most ${limits.web_domains_max} items`);
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

/** Whether this runtime knows a time zone by this name. */
function isTimeZone(name: string): boolean {
  try {
    // A zone by its distance alone ("+01:00") has no rules.
    return /[A-Za-z]/.test(name) && new Intl.DateTimeFormat('en', { timeZone: name }) !== undefined;
  } catch {
    return false;
  }
}

function timeZone(told: JsonObject, path: string): string | undefined {
  const value = text(told, 'timezone', path, limits.web_place_chars_max);
  if (value === undefined || isTimeZone(value)) return value;
  throw invalidField(`${path}.timezone`, 'must be an IANA time zone such as Europe/Berlin');
}

function location(told: JsonObject, path: string): UserLocation | undefined {
  const outer = asObject(told['user_location'], `${path}.user_location`);
  if (outer === undefined) return undefined;
  const isNested = outer['approximate'] != null;
  const place = `${path}.user_location${isNested ? '.approximate' : ''}`;
  const given = isNested ? (asObject(outer['approximate'], place) ?? {}) : outer;
  const country = text(given, 'country', place, limits.web_place_chars_max)?.toUpperCase();
  if (country !== undefined && !/^[A-Z]{2}$/.test(country)) {
    throw invalidField(`${place}.country`, 'must be a country code of two letters (ISO 3166-1)');
  }
  const city = text(given, 'city', place, limits.web_place_chars_max);
  const region = text(given, 'region', place, limits.web_place_chars_max);
  const timezone = timeZone(given, place);
  const found: UserLocation = {};
  if (city) found.city = city;
  if (region) found.region = region;
  if (country) found.country = country;
  if (timezone) found.timezone = timezone;
  return Object.keys(found).length === 0 ? undefined : found;
}

/** The wish of a search tool or of the plugin `web`. Throws a 400 that names the field below `path`, and the rule. */
export function searchWish(told: JsonObject, path: string): SearchWish {
  const filters = asObject(told['filters'], `${path}.filters`);
  const allowed = domains(told, path, 'allowed_domains', 'include_domains');
  const excluded = domains(told, path, 'excluded_domains', 'exclude_domains', 'blocked_domains');
  return {
    engine: oneOf(told, 'engine', path, ENGINES) ?? 'auto',
    max_results: integer(told, 'max_results', path, limits.web_results_max),
    max_total_results:
      integer(told, 'max_total_results', path, limits.web_results_total_max) ?? limits.web_results_total_default,
    max_uses: integer(told, 'max_uses', path, limits.web_uses_max),
    max_characters: integer(told, 'max_characters', path, limits.web_result_chars_max),
    context_size: oneOf(told, 'search_context_size', path, SIZES),
    domains: {
      allowed:
        filters === undefined ? allowed : [...allowed, ...domains(filters, `${path}.filters`, 'allowed_domains')],
      excluded:
        filters === undefined
          ? excluded
          : [...excluded, ...domains(filters, `${path}.filters`, 'excluded_domains', 'blocked_domains')],
    },
    location: location(told, path),
    search_prompt: text(told, 'search_prompt', path, limits.web_prompt_chars_max),
  };
}

/** The wish of the tool that reads pages. Throws as `searchWish` does. */
export function fetchWish(told: JsonObject, path: string): FetchWish {
  return {
    max_uses: integer(told, 'max_uses', path, limits.web_uses_max),
    max_content_tokens: integer(told, 'max_content_tokens', path, limits.web_page_tokens_max),
    domains: {
      allowed: domains(told, path, 'allowed_domains', 'include_domains'),
      excluded: domains(told, path, 'blocked_domains', 'excluded_domains', 'exclude_domains'),
    },
  };
}

/** The wish of the tool that tells the time. Throws as `searchWish` does. */
export function datetimeWish(told: JsonObject, path: string): DatetimeWish {
  return { timezone: timeZone(told, path) ?? 'UTC' };
}
