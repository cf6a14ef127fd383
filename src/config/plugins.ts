import { toNano } from '../schemas/money.ts';
import type { OcrSettings } from '../schemas/ocr.ts';
import {
  type EngineSettings,
  type SearchEngine,
  type SearchPrice,
  searchEngines,
  type WebSettings,
} from '../schemas/web-search.ts';
import { ConfigError } from './config-error.ts';
import type { EngineSection, OcrSection } from './file-schema.ts';
import { type Environment, expand, variable } from './providers.ts';
import type { Path, ReadFile } from './read-file.ts';

/** Settings of plugins and server tools. */
export interface PluginsConfig {
  file_parser: {
    /** The engine that reads images of pages; undefined if there is none. */
    ocr: OcrSettings | undefined;
  };
  web: WebSettings;
}

interface EngineDefaults {
  base_url?: string;
  /** The variable of its key, or of its address if it has no key. */
  variable: string;
  /** List prices, if the operator sets no others. */
  price: SearchPrice;
}

/** https://docs.mistral.ai/capabilities/document_ai/basic_ocr; https://mistral.ai/pricing: 2 USD for a thousand pages. */
const OCR = {
  base_url: 'https://api.mistral.ai/v1',
  variable: 'MISTRAL_API_KEY',
  model: 'mistral-ocr-latest',
  page_nano: 2_000_000,
};

const CREDIT_NANO = 5_333_334;

const defaults: Readonly<Record<SearchEngine, EngineDefaults>> = {
  exa: {
    base_url: 'https://api.exa.ai',
    variable: 'EXA_API_KEY',
    // https://exa.ai/docs/reference/pricing
    price: { search_nano: 7_000_000, results_included: 10, result_nano: 1_000_000 },
  },
  firecrawl: {
    base_url: 'https://api.firecrawl.dev',
    variable: 'FIRECRAWL_API_KEY',
    // https://docs.firecrawl.dev/billing: 2 credits for every ten results and 1 for each page that is read; at the price of the
    // smallest plan, 16 USD for 3,000 (https://www.firecrawl.dev/pricing).
    price: { search_nano: 2 * CREDIT_NANO, results_included: 0, result_nano: (CREDIT_NANO * 6) / 5 + 1 },
  },
  parallel: {
    base_url: 'https://api.parallel.ai',
    variable: 'PARALLEL_API_KEY',
    // https://docs.parallel.ai/getting-started/pricing
    price: { search_nano: 5_000_000, results_included: 10, result_nano: 1_000_000 },
  },
  // A server of the operator's own.
  searxng: { variable: 'SEARXNG_URL', price: { search_nano: 0, results_included: 0, result_nano: 0 } },
};

const PLAIN_ADDRESS = 'must be a URL that starts with http:// or https://, without user, query or fragment';
const PLAIN_KEY = 'must be plain ASCII without white space, because it is sent in a header';

/** Reads the section `plugins` and the variables of search engines. One whose key is not set is off, with a warning. */
export function readPlugins(
  environment: Environment,
  file: ReadFile | undefined,
): { plugins: PluginsConfig; warnings: string[] } {
  const section = file?.value.plugins?.web;
  const warnings: string[] = [];
  const engines = new Map<SearchEngine, EngineSettings>();
  for (const engine of searchEngines) {
    const settings = engineSettings(engine, section?.engines?.[engine], environment, file);
    if (settings === undefined) continue;
    if ('unset' in settings) warnings.push(`The search engine ${engine} is off: ${settings.unset} is not set`);
    else engines.set(engine, settings);
  }
  const named = section?.engine;
  if (named !== undefined && !engines.has(named)) {
    warnings.push(
      `plugins.web.engine names ${named}, which is not configured: set its key or address, or remove the setting`,
    );
  }
  const engine = named ?? searchEngines.find((one) => engines.has(one));
  const ocr = ocrSettings(file?.value.plugins?.file_parser?.ocr, environment, file);
  if (ocr !== undefined && 'unset' in ocr) warnings.push(`The engine mistral-ocr is off: ${ocr.unset} is not set`);
  const fileParser = { ocr: ocr === undefined || 'unset' in ocr ? undefined : ocr };
  return {
    plugins: { file_parser: fileParser, web: { engine: engine && engines.has(engine) ? engine : undefined, engines } },
    warnings,
  };
}

function ocrSettings(
  section: OcrSection | undefined,
  environment: Environment,
  file: ReadFile | undefined,
): OcrSettings | { unset: string } | undefined {
  if (section === undefined || file === undefined) return undefined;
  const place: Path = ['plugins', 'file_parser', 'ocr'];
  const key = expanded(section.api_key, environment) ?? { text: variable(environment, OCR.variable) };
  if (key.unset !== undefined) return { unset: key.unset };
  if (key.text === undefined && section.base_url === undefined) return { unset: OCR.variable };
  const address = expanded(section.base_url, environment) ?? { text: OCR.base_url };
  if (address.unset !== undefined) return { unset: address.unset };
  const baseUrl = plainAddress(address.text ?? '');
  if (baseUrl === undefined) throw file.wrong([...place, 'base_url'], PLAIN_ADDRESS);
  if (key.text !== undefined && !/^[\x21-\x7e]+$/.test(key.text)) throw file.wrong([...place, 'api_key'], PLAIN_KEY);
  const usd = section.price_per_page_usd;
  const pageNano = usd === undefined ? OCR.page_nano : toNano(usd);
  // A key for Mistral is not sent to another host.
  const apiKey = section.api_key === undefined && section.base_url !== undefined ? undefined : key.text;
  return { base_url: baseUrl, api_key: apiKey, model: section.model ?? OCR.model, page_nano: pageNano };
}

function engineSettings(
  engine: SearchEngine,
  section: EngineSection | undefined,
  environment: Environment,
  file: ReadFile | undefined,
): EngineSettings | { unset: string } | undefined {
  const { base_url: usual, variable: name, price } = defaults[engine];
  const place: Path = ['plugins', 'web', 'engines', engine];
  const value = variable(environment, name);
  if (section === undefined && value === undefined) return undefined;
  const isKeyed = usual !== undefined;
  const key = expanded(section?.api_key, environment) ?? (isKeyed ? { text: value } : { text: undefined });
  if (key.unset !== undefined) return { unset: key.unset };
  if (isKeyed && key.text === undefined && section?.base_url === undefined) return { unset: name };
  const address = expanded(section?.base_url ?? section?.url, environment) ?? { text: usual ?? value };
  if (address.unset !== undefined) return { unset: address.unset };
  if (address.text === undefined) return { unset: name };
  const wrong = (path: Path, expectation: string) =>
    file !== undefined && section !== undefined
      ? file.wrong(path, expectation)
      : new ConfigError(`${name} ${expectation}`);
  const baseUrl = plainAddress(address.text);
  if (baseUrl === undefined) {
    throw wrong([...place, section?.url === undefined ? 'base_url' : 'url'], PLAIN_ADDRESS);
  }
  if (key.text !== undefined && !/^[\x21-\x7e]+$/.test(key.text)) {
    throw wrong([...place, 'api_key'], PLAIN_KEY);
  }
  const usd = section?.price_per_search_usd;
  return {
    base_url: baseUrl,
    api_key: key.text,
    price:
      usd === undefined
        ? price
        : { search_nano: toNano(usd), results_included: Number.MAX_SAFE_INTEGER, result_nano: 0 },
  };
}

function expanded(
  text: string | undefined,
  environment: Environment,
): { text: string | undefined; unset?: string | undefined } | undefined {
  return text === undefined ? undefined : expand(text, environment);
}

function plainAddress(address: string): string | undefined {
  const url = URL.parse(address);
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password || url.search || url.hash)
    return undefined;
  return address.replace(/\/+$/, '');
}
