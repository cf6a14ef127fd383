import { GatewayError } from '../../errors.ts';
import { limits } from '../../limits.ts';
import { ServiceFailed, type Services } from '../../providers/transport/services.ts';
import { parseServiceJson } from '../../schemas/json-structure.ts';
import type { EngineSettings, SearchEngine, SearchPrice, WebSettings } from '../../schemas/web-search.ts';
import { isAllowed } from './domains.ts';
import type { EngineWire, SearchOptions, SearchResult } from './engine.ts';
import { engineWires } from './engines.ts';

/** What came of a search. */
export interface SearchOutcome {
  results: SearchResult[];
  cost_nano: number;
  engine: SearchEngine;
}

/** Searches the web with the engines that the operator has set up. */
export interface WebSearch {
  settings(): WebSettings;
  /** Rejects with a `GatewayError` 502 or 503 that says what failed, or with the reason of the signal; then nothing is charged. */
  search(engine: SearchEngine, query: string, options: SearchOptions, signal: AbortSignal): Promise<SearchOutcome>;
}

/** What a search for so many results costs. */
export function searchCost({ search_nano, results_included, result_nano }: SearchPrice, maxResults: number): number {
  return search_nano + Math.max(0, maxResults - results_included) * result_nano;
}

/** `settings` is asked for each search, so that a reload takes effect at once. */
export function createWebSearch(services: Services, settings: () => WebSettings): WebSearch {
  async function ask(engine: SearchEngine, query: string, options: SearchOptions, signal: AbortSignal) {
    const found = settings().engines.get(engine);
    if (found === undefined) throw failed(engine, 'it is not configured', 502);
    const wire = engineWires[engine];
    const request = wire.request(query, options, found);
    const until = AbortSignal.timeout(limits.web_search_ms_max);
    for (let tries = 1; ; tries += 1) {
      const isLast = tries === limits.web_search_tries_max;
      const answer = await services
        .ask({
          ...request,
          bytes_max: limits.web_search_bytes_max,
          timeout_ms: limits.web_search_ms_max,
          signal: AbortSignal.any([signal, until]),
        })
        .catch((error: unknown) => {
          if (signal.aborted) throw signal.reason;
          if (until.aborted)
            throw failed(engine, `it did not answer within ${limits.web_search_ms_max} ms`, 502, error);
          if (!(error instanceof ServiceFailed)) throw error;
          if (isLast || /more than/.test(error.message)) throw failed(engine, error.message, 502, error);
          return undefined;
        });
      if (answer === undefined || (answer.status >= 500 && !isLast)) continue;
      return { found, wire, answer };
    }
  }

  return {
    settings,
    async search(engine, query, options, signal) {
      const { found, wire, answer } = await ask(engine, query, options, signal);
      const { status } = answer;
      if (status !== 200) {
        const reason = wire.refusal?.(status) ?? refusalOf(status);
        throw failed(engine, reason, status === 429 ? 503 : 502);
      }
      const results = resultsOf(wire, answer.body, options);
      if (results === undefined) throw failed(engine, 'its answer is not a list of results', 502);
      return { results, cost_nano: costOf(found, options), engine };
    },
  };
}

function costOf({ price }: EngineSettings, { max_results }: SearchOptions): number {
  return searchCost(price, max_results);
}

/** Says which engine and why, and nothing of its address, its key or the query. */
function failed(engine: SearchEngine, reason: string, status: 502 | 503, cause?: unknown): GatewayError {
  return new GatewayError(status, `The web search failed at ${engine}: ${reason}`, {
    metadata: { error_type: 'web_search_failed', engine },
    ...(status === 503 ? { headers: { 'retry-after': '1' } } : {}),
    cause,
  });
}

function refusalOf(status: number): string {
  if (status === 401 || status === 403) return 'it refuses the configured key';
  if (status === 402) return 'its account is out of credit';
  if (status === 429) return 'it limits the rate of requests at the moment';
  if (status >= 300 && status < 400) return `it redirects (status ${status}), which is not followed`;
  return status >= 500 ? `it failed (status ${status})` : `it refuses the search (status ${status})`;
}

/** The answer's pages in order, each once, that may be shown; undefined: it is not of this engine. */
function resultsOf(wire: EngineWire, body: Buffer, options: SearchOptions): SearchResult[] | undefined {
  let found: unknown[] | undefined;
  try {
    found = wire.read(parseServiceJson(body.toString('utf8')));
  } catch {
    return undefined;
  }
  if (found === undefined) return undefined;
  const results = new Map<string, SearchResult>();
  for (const one of found) {
    if (typeof one !== 'object' || one === null) continue;
    const told = wire.result(one as Record<string, unknown>);
    const url = pageOf(told.url);
    if (url === undefined || !isAllowed(options.domains, url)) continue;
    const key = url.href.replace(/#.*$/, '');
    if (results.has(key)) continue;
    const title = plainText(told.title, limits.web_title_chars_max).replace(/\s+/g, ' ').trim();
    const published = plainText(told.published, limits.date_chars_max).trim();
    results.set(key, {
      url: url.href,
      title: title === '' ? url.hostname : title,
      content: plainText(told.content, options.max_characters).trim(),
      ...(published === '' ? {} : { published }),
    });
    if (results.size === options.max_results) break;
  }
  return [...results.values()];
}

/** An http(s) address that a client may be shown: without a user name, and not longer than any page's. */
function pageOf(told: unknown): URL | undefined {
  if (typeof told !== 'string' || told.length > limits.web_url_chars_max) return undefined;
  const url = URL.parse(told);
  if (url === null || !/^https?:$/.test(url.protocol) || url.username !== '' || url.password !== '') return undefined;
  return url.href.length > limits.web_url_chars_max ? undefined : url;
}

/** Characters that say nothing to a reader, and may hide something: controls, marks of direction, tags. Those that join letters stay. */
const UNSEEN = /(?![\t\n\r\u200c\u200d])[\p{Cc}\p{Cf}]/gu;

/** A text of a stranger's, cut; empty where it is none. */
export function plainText(told: unknown, charsMax: number): string {
  if (typeof told !== 'string') return '';
  // Cut before as well, so that a huge text is not gone through.
  const clean = told
    .slice(0, charsMax * 2)
    .replace(UNSEEN, '')
    .toWellFormed();
  if (clean.length <= charsMax) return clean;
  const isSplit = (clean.charCodeAt(charsMax - 1) & 0xfc00) === 0xd800;
  return clean.slice(0, isSplit ? charsMax - 1 : charsMax);
}
