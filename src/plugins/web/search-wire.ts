import type { Endpoint } from '../../catalog/model.ts';
import { searchEndpoint } from '../../catalog/search-endpoint.ts';
import { GatewayError, invalidField } from '../../errors.ts';
import { wireOf } from '../../inference/plan/planner.ts';
import type { Preparation } from '../../inference/prepare/adapters.ts';
import { searchWires } from '../../providers/native-search.ts';
import type { Provider } from '../../providers/provider.ts';
import type { Candidate } from '../../routing/plan.ts';
import type { ChatRequest, InnerTool, Native, ServerTool } from '../../schemas/inner.ts';
import { WEB_SEARCH } from '../requested-tools.ts';
import { readSearchOptions, type WebSearchOptions } from '../tool-options.ts';
import { nativeSearch } from './native.ts';
import { isVendorSearch, searchBeforeOf, vendorOptions } from './requested-search.ts';

/** Whether a tool is xAI's search of X. */
export function isXSearch(tool: InnerTool): boolean {
  return tool.type === 'native' && (tool as Native).block['type'] === 'x_search';
}

/** The field that requests a search of X. Undefined if there is none. */
function xSearchField({ x_search_filter, tools }: ChatRequest): string | undefined {
  if (x_search_filter != null) return 'x_search_filter';
  const at = tools?.findIndex(isXSearch) ?? -1;
  return at === -1 ? undefined : `tools[${at}]`;
}

/** Whether the filter restricts nothing. */
function isEmpty({ x_search_filter: filter }: ChatRequest): boolean {
  return filter != null && Object.values(filter).every((value) => value == null);
}

/** Throws a 400 if an endpoint would answer without the requested search of X. */
export function requireXSearch(request: ChatRequest, candidate: Candidate): void {
  const field = xSearchField(request);
  if (field === undefined || (field === 'x_search_filter' && isEmpty(request))) return;
  const { endpoint, model, provider } = candidate;
  if (endpoint.quirks.x_search === true && wireOf(candidate) === searchWires.xai) return;
  const why = endpoint.quirks.x_search === true ? 'the price of its searches is not known' : 'it does not search X';
  throw invalidField(
    field,
    `cannot be served by ${model.id} at ${provider.name} (${why}): use an xAI model that searches X`,
  );
}

/** The options of a search tool. Undefined for other tools and for invalid options, which are refused later. */
function optionsOf(tool: InnerTool, at: number): WebSearchOptions | undefined {
  try {
    if (tool.type === WEB_SEARCH)
      return readSearchOptions((tool as ServerTool).parameters ?? {}, `tools[${at}].parameters`);
    return isVendorSearch(tool) ? readSearchOptions(vendorOptions(tool.block), `tools[${at}]`) : undefined;
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    return undefined;
  }
}

/** Returns whether a request searches at an endpoint. Undefined if it requests no search. */
function searchesAt(
  request: ChatRequest,
): ((candidate: Pick<Candidate, 'endpoint' | 'provider'>) => boolean) | undefined {
  const { tools, web_search_options } = request;
  const searchesX = xSearchField(request) !== undefined;
  const before = searchBeforeOf(request);
  if (!searchesX && before === undefined && !tools?.length && web_search_options == null) return undefined;
  const searches = (tools ?? []).flatMap((tool, at) => optionsOf(tool, at) ?? []);
  if (before !== undefined) searches.push(before.options);
  const isOwn = tools?.some((tool) => isVendorSearch(tool) && tool.wire === searchWires.openai) === true;
  if (!searchesX && searches.length === 0 && !isOwn) return undefined;
  const native = searches.filter(({ engine }) => engine === 'auto' || engine === 'native');
  return (candidate) =>
    isOwn ||
    (searchesX && candidate.endpoint.quirks.x_search === true) ||
    native.some((options) => typeof nativeSearch(candidate, options, request) !== 'string');
}

/** Routes calls with a search over the wire on which their provider searches. Other calls are returned unchanged. */
export function createSearchWire(): Preparation {
  const known = new WeakMap<Endpoint, { endpoint: Endpoint | undefined }>();

  function searchingEndpoint(endpoint: Endpoint, provider: Provider): Endpoint | undefined {
    let cached = known.get(endpoint);
    if (cached === undefined) {
      cached = { endpoint: searchEndpoint(endpoint, provider) };
      known.set(endpoint, cached);
    }
    return cached.endpoint;
  }

  return {
    of: 'search',
    prepare(call) {
      const searches = searchesAt(call.request);
      if (searches === undefined) return call;
      return {
        ...call,
        endpointFor(endpoint, provider) {
          const other = searchingEndpoint(endpoint, provider);
          return other !== undefined && searches({ endpoint: other, provider }) ? other : endpoint;
        },
      };
    },
  };
}
