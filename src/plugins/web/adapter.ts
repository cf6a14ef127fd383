import { GatewayError, invalidField } from '../../errors.ts';
import { CallCancelled } from '../../inference/attempt/exchange.ts';
import type { Call } from '../../inference/call.ts';
import { wireOf } from '../../inference/plan/planner.ts';
import type { Adapter, CallAdapter, Fitted } from '../../inference/prepare/adapters.ts';
import { limits } from '../../limits.ts';
import type { Report } from '../../providers/dialect.ts';
import type { Candidate } from '../../routing/plan.ts';
import type { ChatRequest, InnerTool, Message, Native, ServerTool, ToolChoice } from '../../schemas/inner.ts';
import type { SearchEngine } from '../../schemas/web-search.ts';
import { WEB_SEARCH } from '../asked.ts';
import { type SearchWish, searchWish } from '../wishes.ts';
import { isSearch, isVendorSearch, searchBeforeOf, vendorOptions } from './asks.ts';
import type { SearchResult } from './engine.ts';
import { type NativeSearch, nativeSearch } from './native.ts';
import { searchMessage } from './results.ts';
import { searchCost, type WebSearch } from './search.ts';
import { isXSearch, requireXSearch } from './search-wire.ts';

/** Stands for the engine of a search that cannot run. */
export const NO_ENGINE = 'none';

/** How an endpoint gets what was searched for: by itself, or by an engine. */
type Way = { native: NativeSearch } | { engine: SearchEngine };

const SET_UP =
  'configure one in gateway.yaml (plugins.web.engines) or with EXA_API_KEY, FIRECRAWL_API_KEY, PARALLEL_API_KEY or SEARXNG_URL';

/** How a wish is fulfilled at an endpoint. Throws a 400 where it is not, naming what to change. */
function wayOf(
  wish: SearchWish,
  { request, candidate, field }: { request: ChatRequest; candidate: Candidate; field: string },
  { settings }: WebSearch,
): Way {
  const { engine, engines } = settings();
  if (wish.engine === 'auto' || wish.engine === 'native') {
    const native = nativeSearch(candidate, wish, request);
    if (typeof native !== 'string') return { native };
    const name = `${candidate.model.id} at ${candidate.provider.name}`;
    if (wish.engine === 'native')
      throw invalidField(`${field}.engine`, `must not be native: ${name} cannot serve it: ${native}`);
    if (engine !== undefined) return { engine };
    const because = `cannot be served by ${name} (${native}), and this gateway has no search engine: ${SET_UP}`;
    throw invalidField(field, field === 'model' ? `must not end in :online, which ${because}` : because);
  }
  if (engines.has(wish.engine)) return { engine: wish.engine };
  throw invalidField(
    `${field}.engine`,
    `must be an engine that this gateway has configured, and ${wish.engine} is not: ${SET_UP}`,
  );
}

/** Options for an engine, with the usual ones where nothing is said. */
export function searchOptions(wish: SearchWish, maxResults = wish.max_results ?? limits.web_results_default) {
  const bySize = wish.context_size && limits.web_result_chars_by_size[wish.context_size];
  const maxCharacters = wish.max_characters ?? bySize ?? limits.web_result_chars_default;
  return { max_results: maxResults, max_characters: maxCharacters, domains: wish.domains, location: wish.location };
}

/** What is searched for before a call: what its user said last. */
function queryOf(messages: readonly Message[]): string {
  const last = messages.findLast(({ role }) => role === 'user')?.content ?? '';
  const text =
    typeof last === 'string' ? last : last.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join(' ');
  return text
    .slice(0, limits.web_query_chars_max * 2)
    .replace(/\s+/g, ' ')
    .trim()
    .slice(0, limits.web_query_chars_max)
    .toWellFormed();
}

interface Found {
  query: string;
  results: SearchResult[];
  at_ms: number;
}

/** The engine's results in front of what the user said last, so that what was said before stays the same for prompt caches. */
function withResults(messages: readonly Message[], found: Found, prompt: string | undefined): Message[] {
  const at = messages.findLastIndex(({ role }) => role === 'user');
  const content = searchMessage({ ...found, prompt }, found.at_ms);
  const message: Message = { role: 'system', content };
  return at === -1 ? [...messages, message] : [...messages.slice(0, at), message, ...messages.slice(at)];
}

/** A request in the making. */
interface Fitting {
  request: ChatRequest;
  tools: InnerTool[];
  choice: ToolChoice | undefined;
  report: Report[];
}

/** What of a wish an endpoint's own search decides by itself: told, for the client asked for something else. */
function undecided(wish: SearchWish, { tool }: NativeSearch, field: string): Report[] {
  const isBounded = tool?.block['max_uses'] !== undefined;
  const names = [
    wish.max_results === undefined ? undefined : 'max_results',
    wish.max_characters === undefined ? undefined : 'max_characters',
    wish.max_uses === undefined || isBounded ? undefined : 'max_uses',
    wish.search_prompt === undefined ? undefined : 'search_prompt',
  ];
  const reason = "the provider's own search decides it";
  return names.flatMap((name) => (name === undefined ? [] : [{ kind: 'dropped', field: `${field}.${name}`, reason }]));
}

/** Puts an endpoint's own search in the place of a tool; undefined: beside them all. */
function makeNative(fitting: Fitting, { tool, choice, fields }: NativeSearch, at: number | undefined): void {
  if (at === undefined) {
    if (tool !== undefined) fitting.tools.push(tool);
  } else {
    fitting.tools.splice(at, 1, ...(tool === undefined ? [] : [tool]));
    const isChosen = typeof fitting.choice === 'object' && fitting.choice.type === WEB_SEARCH;
    if (isChosen) fitting.choice = choice;
    if (isChosen && choice === undefined) {
      fitting.report.push({
        kind: 'dropped',
        field: 'tool_choice',
        reason: 'this provider decides by itself when it searches',
      });
    }
  }
  fitting.request = { ...fitting.request, ...fields };
}

/** Leaves searches to endpoints that search themselves, and does the others with the operator's engines. */
export function createWebAdapter(search: WebSearch, nowMs: () => number): Adapter {
  return (call): CallAdapter | undefined => {
    const plugin = searchBeforeOf(call.request);
    const hasTools = call.request.tools?.some((tool) => isSearch(tool) || isXSearch(tool)) === true;
    if (plugin === undefined && !hasTools && call.request['x_search_filter'] == null) return undefined;
    let found: Found | undefined;

    /** The plugin's one search, where the endpoint does not search. */
    async function before(engine: SearchEngine, wish: SearchWish): Promise<void> {
      found = await searchBefore(call, { engine, wish, search, now_ms: nowMs() });
    }

    return {
      ready(candidate, isBeside) {
        if (plugin === undefined || found !== undefined || plugin.isTakenBy(candidate)) return undefined;
        const { request } = call;
        const way = wayOf(plugin.wish, { request, candidate, field: plugin.field }, search);
        if ('native' in way) return undefined;
        return isBeside ? Promise.resolve() : before(way.engine, plugin.wish);
      },
      fit(request, candidate) {
        requireXSearch(request, candidate);
        const fitting: Fitting = {
          request,
          tools: [...(request.tools ?? [])],
          choice: request.tool_choice ?? undefined,
          report: [],
        };
        for (let at = 0; at < fitting.tools.length; at += 1) fitTool(fitting, at, candidate, search);
        if (plugin !== undefined && !plugin.isTakenBy(candidate)) {
          if (fitting.request.web_search_options != null) fitting.request = { ...request, web_search_options: null };
          const way = wayOf(plugin.wish, { request, candidate, field: plugin.field }, search);
          if ('engine' in way) {
            const messages =
              found === undefined || found.query === ''
                ? request.messages
                : withResults(request.messages, found, plugin.wish.search_prompt);
            fitting.request = { ...fitting.request, messages };
          } else if (!fitting.tools.some((tool) => isVendorSearch(tool) || isGoogleSearch(tool))) {
            makeNative(fitting, way.native, undefined);
            fitting.report.push(...undecided(plugin.wish, way.native, plugin.field));
          }
        }
        if (candidate.endpoint.quirks.native_search === 'openai') raiseEffort(fitting);
        return done(fitting);
      },
    };
  };
}

/** OpenAI's models do not search with the least effort (https://platform.openai.com/docs/guides/tools-web-search, "Limitations"). */
function raiseEffort(fitting: Fitting): void {
  const { request, tools, report } = fitting;
  if (request.web_search_options == null && !tools.some(isVendorSearch)) return;
  const reason = 'minimal: this model does not search with this effort; low was sent';
  if (request.reasoning?.effort === 'minimal') {
    fitting.request = { ...fitting.request, reasoning: { ...request.reasoning, effort: 'low' } };
    report.push({ kind: 'changed', field: 'reasoning.effort', reason });
  }
  if (request.reasoning_effort === 'minimal') {
    fitting.request = { ...fitting.request, reasoning_effort: 'low' };
    report.push({ kind: 'changed', field: 'reasoning_effort', reason });
  }
}

function isGoogleSearch(tool: InnerTool): boolean {
  return tool.type === 'native' && 'googleSearch' in (tool as Native).block;
}

function done({ request, tools, choice, report }: Fitting): Fitted {
  const { tool_choice: _, ...rest } = request;
  const made: ChatRequest = { ...rest, tools: tools.length === 0 ? null : tools };
  if (choice !== undefined && tools.length > 0) made.tool_choice = choice;
  return { request: made, report };
}

function fitTool(fitting: Fitting, at: number, candidate: Candidate, search: WebSearch): void {
  const tool = fitting.tools[at]!;
  const field = `tools[${at}]`;
  if (tool.type === WEB_SEARCH) {
    const { parameters = {} } = tool as ServerTool;
    const wish = searchWish(parameters, `${field}.parameters`);
    const way = wayOf(wish, { request: fitting.request, candidate, field }, search);
    if ('native' in way) {
      makeNative(fitting, way.native, at);
      fitting.report.push(...undecided(wish, way.native, field));
    } else fitting.tools[at] = { type: WEB_SEARCH, parameters: { ...parameters, engine: way.engine } };
    return;
  }
  if (!isVendorSearch(tool)) return;
  if (tool.wire === wireOf(candidate)) {
    if (candidate.endpoint.quirks.native_search === 'openai') makeCurrent(fitting, tool, at);
    return;
  }
  try {
    const wish = searchWish(vendorOptions(tool.block), field);
    const way = wayOf(wish, { request: fitting.request, candidate, field }, search);
    if ('native' in way) makeNative(fitting, way.native, at);
    else fitting.tools[at] = { type: WEB_SEARCH, parameters: { ...vendorOptions(tool.block), engine: way.engine } };
    const to = 'native' in way ? "the provider's own search" : `a search by the gateway, with ${way.engine}`;
    fitting.report.push({ kind: 'changed', field, reason: `${String(tool.block['type'])} becomes ${to}` });
  } catch (error) {
    if (!(error instanceof GatewayError) || isForced(fitting, tool)) throw error;
    // Clients of these APIs declare it with every request: a model that wants to search is told why it cannot, and its client sees the failure.
    fitting.tools[at] = { type: WEB_SEARCH, parameters: { engine: NO_ENGINE, reason: error.message } };
    const reason = `${String(tool.block['type'])} cannot run at this endpoint: a model that calls it receives an error`;
    fitting.report.push({ kind: 'changed', field, reason });
  }
}

/** The older tool of OpenAI's has another price, which is not known here: the newer one takes its place, and its options. */
function makeCurrent(fitting: Fitting, { block, ...tool }: Native, at: number): void {
  const former = String(block['type']);
  if (!former.startsWith('web_search_preview')) return;
  fitting.tools[at] = { ...tool, block: { ...block, type: 'web_search' } };
  if (typeof fitting.choice === 'object' && fitting.choice.type === former) fitting.choice = { type: 'web_search' };
  fitting.report.push({
    kind: 'changed',
    field: `tools[${at}]`,
    reason: `${former} becomes web_search, which has a known price`,
  });
}

/** Whether the model must call this tool. */
function isForced({ choice, tools }: Fitting, { block }: Native): boolean {
  if (choice === 'required') return tools.length === 1;
  if (typeof choice !== 'object') return false;
  if (choice.type === 'function') return (choice as { function: { name: string } }).function.name === block['name'];
  return choice.type.startsWith('web_search');
}

/** What the caller's filters let pass of what was found: a page that must not go on is left out. */
async function screened({ screening }: Call, found: readonly SearchResult[]): Promise<SearchResult[]> {
  if (screening === undefined) return [...found];
  const passed: SearchResult[] = [];
  for (const one of found) {
    try {
      const said = [one.url, one.title, one.content, one.published ?? ''];
      const [url = '', title = '', content = '', published = ''] = await screening.texts(said, { isOptional: true });
      passed.push({ url, title, content, ...(one.published === undefined ? {} : { published }) });
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error;
    }
  }
  return passed;
}

async function searchBefore(
  call: Call,
  { engine, wish, search, now_ms }: { engine: SearchEngine; wish: SearchWish; search: WebSearch; now_ms: number },
): Promise<Found> {
  const query = queryOf(call.request.messages);
  if (query === '') return { query, results: [], at_ms: now_ms };
  const settings = search.settings().engines.get(engine);
  const { fees } = call;
  if (settings === undefined || fees === undefined) throw new Error('a search must be set up and paid');
  const options = searchOptions(wish);
  const gone = new AbortController();
  const unlisten = call.cancellation.onCancel(() => gone.abort(new CallCancelled({ may_be_billed: false })));
  try {
    const fee = { name: 'web_search', cost_nano_max: searchCost(settings.price, options.max_results) };
    const found = await fees.spend(fee, async () => {
      const { results, cost_nano } = await search.search(engine, query, options, gone.signal);
      return { value: results, cost_nano, counts: { web_search: 1 } };
    });
    const results = await screened(call, found);
    call.stages.push({
      type: 'plugin',
      name: 'web-search',
      summary: `${results.length} results of one search with ${engine}`,
      data: { engine, results: results.length },
    });
    call.sources ??= [];
    for (const { url, title, content } of results) call.sources.push({ url, title, content });
    return { query, results, at_ms: now_ms };
  } finally {
    unlisten();
  }
}
