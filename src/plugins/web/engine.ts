import type { JsonValue } from '../../schemas/json.ts';
import type { EngineSettings } from '../../schemas/web-search.ts';
import type { DomainRules } from './domains.ts';

/** Where somebody is who asks, as far as they tell. */
export interface UserLocation {
  city?: string;
  region?: string;
  /** Two letters, in upper case. */
  country?: string;
  timezone?: string;
}

/** What a search is to find. */
export interface SearchOptions {
  max_results: number;
  /** Of one result's content. */
  max_characters: number;
  domains: DomainRules;
  location?: UserLocation | undefined;
}

/** One page that was found. */
export interface SearchResult {
  url: string;
  title: string;
  content: string;
  /** As the engine tells it. */
  published?: string;
}

/** One request to an engine. */
export interface EngineRequest {
  method: 'GET' | 'POST';
  url: string;
  headers: Record<string, string>;
  body?: string;
}

/** How one engine is asked, and what its answers say. Pure. */
export interface EngineWire {
  request(query: string, options: SearchOptions, settings: EngineSettings): EngineRequest;
  /** The results as they stand there, unchecked; undefined: it is no answer of this engine. */
  read(body: JsonValue): unknown[] | undefined;
  /** One of them; undefined: it is none. */
  result(found: Record<string, unknown>): { [Member in keyof SearchResult]?: unknown };
  /** Why it refused, where its status alone does not tell. */
  refusal?(status: number): string | undefined;
}
