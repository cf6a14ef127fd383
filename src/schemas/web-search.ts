/** Search services, by the names in requests. The first that is configured is the default. */
export const searchEngines = ['exa', 'firecrawl', 'parallel', 'searxng'] as const;
export type SearchEngine = (typeof searchEngines)[number];

/** The price of a search, in nano-USD, by the number of results. */
export interface SearchPrice {
  search_nano: number;
  /** Results that are included in the price. */
  results_included: number;
  /** Price of each further result. */
  result_nano: number;
}

/** The connection to a search engine. */
export interface EngineSettings {
  base_url: string;
  /** Never logged, never sent to a client. */
  api_key: string | undefined;
  price: SearchPrice;
}

/** The operator's settings of web search. */
export interface WebSettings {
  /** The engine for requests that name none, if the model's provider has no search of its own; undefined: none. */
  engine: SearchEngine | undefined;
  engines: ReadonlyMap<SearchEngine, EngineSettings>;
}
