import { GatewayError } from '../../errors.ts';
import { limits } from '../../limits.ts';
import { ServiceFailed, type Services } from '../../providers/transport/services.ts';
import { parseServiceJson } from '../../schemas/json-structure.ts';
import type { EngineSettings, SearchEngine, SearchPrice, WebSettings } from '../../schemas/web-search.ts';
import { isAllowed } from './domains.ts';
import type { EngineWire, SearchOptions, SearchResult } from './engine.ts';
import { engineWires } from './engines.ts';

/** Tries of one web search. */
const WEB_SEARCH_TRIES_MAX = 2;
/** A search engine's answer. */
const WEB_SEARCH_BYTES_MAX = 8 * 1024 * 1024;

/** The result of a search. */
export interface SearchOutcome {
  results: SearchResult[];
  cost_nano: number;
  engine: SearchEngine;
}

/** Searches the web with the configured engines. */
export interface WebSearch {
  settings(): WebSettings;
  /** Rejects with a `GatewayError` 502 or 503, or with the reason of the signal. Nothing is charged then. */
  search(engine: SearchEngine, query: string, options: SearchOptions, signal: AbortSignal): Promise<SearchOutcome>;
}

/** The cost of a search for `maxResults` results, in nano-dollars. */
export function searchCost({ search_nano, results_included, result_nano }: SearchPrice, maxResults: number): number {
  return search_nano + Math.max(0, maxResults - results_included) * result_nano;
}

/** `settings` is called for each search, so that a reload takes effect at once. */
export function createWebSearch(services: Services, settings: () => WebSettings): WebSearch {
  async function ask(engine: SearchEngine, query: string, options: SearchOptions, signal: AbortSignal) {
    const engineSettings = settings().engines.get(engine);
    if (engineSettings === undefined) throw failed(engine, 'it is not configured', 502);
    const wire = engineWires[engine];
    const request = wire.request(query, options, engineSettings);
    const until = AbortSignal.timeout(limits.web_search_ms_max);
    for (let tries = 1; ; tries += 1) {
      const isLast = tries === WEB_SEARCH_TRIES_MAX;
      const answer = await services
        .ask({
          ...request,
          bytes_max: WEB_SEARCH_BYTES_MAX,
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
      return { engineSettings, wire, answer };
    }
  }

  return {
    settings,
    async search(engine, query, options, signal) {
      const { engineSettings, wire, answer } = await ask(engine, query, options, signal);
      const { status } = answer;
      if (status !== 200) {
        const reason = wire.refusal?.(status) ?? refusalOf(status);
        throw failed(engine, reason, status === 429 ? 503 : 502);
      }
      const results = resultsOf(wire, answer.body, options);
      if (results === undefined) throw failed(engine, 'its answer is not a list of results', 502);
      return { results, cost_nano: costOf(engineSettings, options), engine };
    },
  };
}

function costOf({ price }: EngineSettings, { max_results }: SearchOptions): number {
  return searchCost(price, max_results);
}

/** An error that names the engine and the reason, without address, key or query. */
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

/** The allowed pages of an answer in order, without duplicates. Undefined if it is not an answer of this engine. */
function resultsOf(wire: EngineWire, body: Buffer, options: SearchOptions): SearchResult[] | undefined {
  let entries: unknown[] | undefined;
  try {
    entries = wire.read(parseServiceJson(body.toString('utf8')));
  } catch {
    return undefined;
  }
  if (entries === undefined) return undefined;
  const results = new Map<string, SearchResult>();
  for (const one of entries) {
    if (typeof one !== 'object' || one === null) continue;
    const fields = wire.result(one as Record<string, unknown>);
    const url = pageOf(fields.url);
    if (url === undefined || !isAllowed(options.domains, url)) continue;
    const key = url.href.replace(/#.*$/, '');
    if (results.has(key)) continue;
    const title = plainText(fields.title, limits.web_title_chars_max).replace(/\s+/g, ' ').trim();
    const published = plainText(fields.published, limits.date_chars_max).trim();
    results.set(key, {
      url: url.href,
      title: title === '' ? url.hostname : title,
      content: plainText(fields.content, options.max_characters).trim(),
      ...(published === '' ? {} : { published }),
    });
    if (results.size === options.max_results) break;
  }
  return [...results.values()];
}

/** An http(s) URL that may be shown: without credentials, of bounded length. */
function pageOf(value: unknown): URL | undefined {
  if (typeof value !== 'string' || value.length > limits.web_url_chars_max) return undefined;
  const url = URL.parse(value);
  if (url === null || !/^https?:$/.test(url.protocol) || url.username !== '' || url.password !== '') return undefined;
  return url.href.length > limits.web_url_chars_max ? undefined : url;
}

/** Invisible characters: controls, direction marks, tags. Joiners stay. */
const INVISIBLE = /(?![\t\n\r\u200c\u200d])[\p{Cc}\p{Cf}]/gu;

/** Cleans and cuts untrusted text. Empty if it is not a string. */
export function plainText(value: unknown, charsMax: number): string {
  if (typeof value !== 'string') return '';
  // Cut before cleaning too, to bound the work on a huge text.
  const clean = value
    .slice(0, charsMax * 2)
    .replace(INVISIBLE, '')
    .toWellFormed();
  if (clean.length <= charsMax) return clean;
  const isSplit = (clean.charCodeAt(charsMax - 1) & 0xfc00) === 0xd800;
  return clean.slice(0, isSplit ? charsMax - 1 : charsMax);
}
