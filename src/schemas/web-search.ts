/** Services that search the web for the gateway, by the names that requests call them, the first that is set up being the default. */
export const searchEngines = ['exa', 'firecrawl', 'parallel', 'searxng'] as const;
export type SearchEngine = (typeof searchEngines)[number];

/** What one search costs, in nano-USD: by how many results are asked for. */
export interface SearchPrice {
  search_nano: number;
  /** So many results are in it. */
  results_included: number;
  /** Each of the others. */
  result_nano: number;
}

/** How one engine is reached. */
export interface EngineSettings {
  base_url: string;
  /** Never logged, never sent to a client. */
  api_key: string | undefined;
  price: SearchPrice;
}

/** What the operator has set up of web search. */
export interface WebSettings {
  /** What searches where nobody names an engine and the model's provider does not search itself; undefined: nothing does. */
  engine: SearchEngine | undefined;
  engines: ReadonlyMap<SearchEngine, EngineSettings>;
}
