import type { Endpoint } from '../../catalog/model.ts';
import { searchEndpoint } from '../../catalog/search-endpoint.ts';
import { GatewayError, invalidField } from '../../errors.ts';
import { wireOf } from '../../inference/plan/planner.ts';
import type { Preparation } from '../../inference/prepare/adapters.ts';
import { searchWires } from '../../providers/native-search.ts';
import type { Provider } from '../../providers/provider.ts';
import type { Candidate } from '../../routing/plan.ts';
import type { ChatRequest, InnerTool, Native, ServerTool } from '../../schemas/inner.ts';
import { WEB_SEARCH } from '../asked.ts';
import { type SearchWish, searchWish } from '../wishes.ts';
import { isVendorSearch, searchBeforeOf, vendorOptions } from './asks.ts';
import { nativeSearch } from './native.ts';

/** xAI's own tool, which searches X. */
export function isXSearch(tool: InnerTool): boolean {
  return tool.type === 'native' && (tool as Native).block['type'] === 'x_search';
}

/** The field by which a request asks for a search of X; undefined: it does not. */
function xSearchField({ x_search_filter, tools }: ChatRequest): string | undefined {
  if (x_search_filter != null) return 'x_search_filter';
  const at = tools?.findIndex(isXSearch) ?? -1;
  return at === -1 ? undefined : `tools[${at}]`;
}

/** A filter that says nothing restricts nothing. */
function isEmpty({ x_search_filter: filter }: ChatRequest): boolean {
  return filter != null && Object.values(filter).every((value) => value == null);
}

/** Throws a 400 where an endpoint would answer without the search of X that was asked for. */
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

/** A tool's wish; undefined: it is none that another form could serve, or one that is refused later. */
function wishOf(tool: InnerTool, at: number): SearchWish | undefined {
  try {
    if (tool.type === WEB_SEARCH) return searchWish((tool as ServerTool).parameters ?? {}, `tools[${at}].parameters`);
    return isVendorSearch(tool) ? searchWish(vendorOptions(tool.block), `tools[${at}]`) : undefined;
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    return undefined;
  }
}

/** Whether a request searches at an endpoint that can; undefined: it asks for no search. */
function searchesAt(
  request: ChatRequest,
): ((candidate: Pick<Candidate, 'endpoint' | 'provider'>) => boolean) | undefined {
  const { tools, web_search_options } = request;
  const searchesX = xSearchField(request) !== undefined;
  const before = searchBeforeOf(request);
  if (!searchesX && before === undefined && !tools?.length && web_search_options == null) return undefined;
  const wishes = (tools ?? []).flatMap((tool, at) => wishOf(tool, at) ?? []);
  if (before !== undefined) wishes.push(before.wish);
  const isOwn = tools?.some((tool) => isVendorSearch(tool) && tool.wire === searchWires.openai) === true;
  if (!searchesX && wishes.length === 0 && !isOwn) return undefined;
  const native = wishes.filter(({ engine }) => engine === 'auto' || engine === 'native');
  return (candidate) =>
    isOwn ||
    (searchesX && candidate.endpoint.quirks.x_search === true) ||
    native.some((wish) => typeof nativeSearch(candidate, wish, request) !== 'string');
}

/** Has calls that search go over the wire on which their providers search. A call that does not is the same call. */
export function createSearchWire(): Preparation {
  const known = new WeakMap<Endpoint, { endpoint: Endpoint | undefined }>();

  function searching(endpoint: Endpoint, provider: Provider): Endpoint | undefined {
    let found = known.get(endpoint);
    if (found === undefined) {
      found = { endpoint: searchEndpoint(endpoint, provider) };
      known.set(endpoint, found);
    }
    return found.endpoint;
  }

  return (call) => {
    const searches = searchesAt(call.request);
    if (searches === undefined) return call;
    return {
      ...call,
      endpointFor(endpoint, provider) {
        const other = searching(endpoint, provider);
        return other !== undefined && searches({ endpoint: other, provider }) ? other : endpoint;
      },
    };
  };
}
