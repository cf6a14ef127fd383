import type { JsonValue } from '../../schemas/json.ts';
import type { EngineSettings } from '../../schemas/web-search.ts';
import type { DomainRules } from './domains.ts';

/** The approximate location of the user. */
export interface UserLocation {
  city?: string;
  region?: string;
  /** Two letters, in upper case. */
  country?: string;
  timezone?: string;
}

/** The bounds of a search. */
export interface SearchOptions {
  max_results: number;
  /** Characters of one result's content. */
  max_characters: number;
  domains: DomainRules;
  location?: UserLocation | undefined;
}

/** One page of the results. */
export interface SearchResult {
  url: string;
  title: string;
  content: string;
  /** The date in the engine's format. */
  published?: string;
}

/** One request to an engine. */
export interface EngineRequest {
  method: 'GET' | 'POST';
  url: string;
  headers: Record<string, string>;
  body?: string;
}

/** The requests and answers of one engine. Pure. */
export interface EngineWire {
  request(query: string, options: SearchOptions, settings: EngineSettings): EngineRequest;
  /** The unchecked results. Undefined if the body is not an answer of this engine. */
  read(body: JsonValue): unknown[] | undefined;
  /** The unchecked fields of one result. */
  result(entry: Record<string, unknown>): { [Member in keyof SearchResult]?: unknown };
  /** The reason of a refusal, if the status alone is not clear. */
  refusal?(status: number): string | undefined;
}
