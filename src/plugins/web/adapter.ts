import { GatewayError, invalidField } from '../../errors.ts';
import { CallCancelled } from '../../inference/attempt/upstream-call.ts';
import type { Call } from '../../inference/call.ts';
import { wireOf } from '../../inference/plan/planner.ts';
import type { Adapter, Fitted } from '../../inference/prepare/adapters.ts';
import type { CallResources } from '../../inference/tools/server-tools.ts';
import { limits } from '../../limits.ts';
import type { Report } from '../../providers/dialect.ts';
import type { Candidate } from '../../routing/plan.ts';
import type { ChatRequest, InnerTool, Message, Native, ServerTool, ToolChoice } from '../../schemas/inner.ts';
import type { SearchEngine } from '../../schemas/web-search.ts';
import { WEB_SEARCH } from '../requested-tools.ts';
import { readSearchOptions, type WebSearchOptions } from '../tool-options.ts';
import type { SearchResult } from './engine.ts';
import { type NativeSearch, nativeSearch } from './native.ts';
import { isSearch, isVendorSearch, searchBeforeOf, vendorOptions } from './requested-search.ts';
import { searchMessage } from './results.ts';
import { searchCost, type WebSearch } from './search.ts';
import { isXSearch, requireXSearch } from './search-wire.ts';

/** The content of one result by `search_context_size`, as the public service has it for Exa. */
const WEB_RESULT_CHARS_BY_SIZE = { low: 5_000, medium: 15_000, high: 30_000 } as const;

/** The engine name of a search that cannot run. */
export const NO_ENGINE = 'none';

/** How an endpoint searches: by itself, or through an engine. */
type SearchRoute = { native: NativeSearch } | { engine: SearchEngine };

const HOW_TO_CONFIGURE =
  'configure one in gateway.yaml (plugins.web.engines) or with EXA_API_KEY, FIRECRAWL_API_KEY, PARALLEL_API_KEY or SEARXNG_URL';

/** How a search runs at an endpoint. Throws a 400 that names what to change if it cannot run. */
function routeOf(
  options: WebSearchOptions,
  { request, candidate, field }: { request: ChatRequest; candidate: Candidate; field: string },
  { settings }: WebSearch,
): SearchRoute {
  const { engine, engines } = settings();
  if (options.engine === 'auto' || options.engine === 'native') {
    const native = nativeSearch(candidate, options, request);
    if (typeof native !== 'string') return { native };
    const name = `${candidate.model.id} at ${candidate.provider.name}`;
    if (options.engine === 'native')
      throw invalidField(`${field}.engine`, `must not be native: ${name} cannot serve it: ${native}`);
    if (engine !== undefined) return { engine };
    const because = `cannot be served by ${name} (${native}), and this gateway has no search engine: ${HOW_TO_CONFIGURE}`;
    throw invalidField(field, field === 'model' ? `must not end in :online, which ${because}` : because);
  }
  if (engines.has(options.engine)) return { engine: options.engine };
  throw invalidField(
    `${field}.engine`,
    `must be an engine that this gateway has configured, and ${options.engine} is not: ${HOW_TO_CONFIGURE}`,
  );
}

/** The options for an engine, with defaults. */
export function engineOptions(
  options: WebSearchOptions,
  maxResults = options.max_results ?? limits.web_results_default,
) {
  const bySize = options.context_size && WEB_RESULT_CHARS_BY_SIZE[options.context_size];
  const maxCharacters = options.max_characters ?? bySize ?? limits.web_result_chars_default;
  return {
    max_results: maxResults,
    max_characters: maxCharacters,
    domains: options.domains,
    location: options.location,
  };
}

/** The query of a search before a call: the user's last message. */
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

interface SearchOutcome {
  query: string;
  results: SearchResult[];
  at_ms: number;
}

/** Inserts the results before the user's last message, so that the earlier messages stay the same for prompt caches. */
function withResults(messages: readonly Message[], outcome: SearchOutcome, prompt: string | undefined): Message[] {
  const at = messages.findLastIndex(({ role }) => role === 'user');
  const content = searchMessage({ ...outcome, prompt }, outcome.at_ms);
  const message: Message = { role: 'system', content };
  return at === -1 ? [...messages, message] : [...messages.slice(0, at), message, ...messages.slice(at)];
}

/** A request while it is fitted to an endpoint. */
interface FittingRequest {
  request: ChatRequest;
  tools: InnerTool[];
  choice: ToolChoice | undefined;
  report: Report[];
}

/** Reports options that an endpoint's own search ignores. */
function ignoredOptions(options: WebSearchOptions, { tool }: NativeSearch, field: string): Report[] {
  const isBounded = tool?.block['max_uses'] !== undefined;
  const names = [
    options.max_results === undefined ? undefined : 'max_results',
    options.max_characters === undefined ? undefined : 'max_characters',
    options.max_uses === undefined || isBounded ? undefined : 'max_uses',
    options.search_prompt === undefined ? undefined : 'search_prompt',
  ];
  const reason = "the provider's own search decides it";
  return names.flatMap((name) => (name === undefined ? [] : [{ kind: 'dropped', field: `${field}.${name}`, reason }]));
}

/** Replaces the tool at an index by the endpoint's own search. Adds it if the index is undefined. */
function makeNative(fitting: FittingRequest, { tool, choice, fields }: NativeSearch, at: number | undefined): void {
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

/** Uses the search of endpoints that have one, and the operator's engines for others. */
export function createWebAdapter(search: WebSearch, nowMs: () => number): Adapter {
  const create: Adapter['create'] = (call, resources) => {
    const plugin = searchBeforeOf(call.request);
    const hasTools = call.request.tools?.some((tool) => isSearch(tool) || isXSearch(tool)) === true;
    if (plugin === undefined && !hasTools && call.request['x_search_filter'] == null) return undefined;
    let outcome: SearchOutcome | undefined;

    /** Runs the plugin's search, once per call. */
    async function before(engine: SearchEngine, options: WebSearchOptions): Promise<void> {
      outcome = await searchBefore(call, resources, { engine, options, search, now_ms: nowMs() });
    }

    return {
      ready(candidate, isBeside) {
        if (plugin === undefined || outcome !== undefined || plugin.isAcceptedBy(candidate)) return undefined;
        const { request } = call;
        const route = routeOf(plugin.options, { request, candidate, field: plugin.field }, search);
        if ('native' in route) return undefined;
        return isBeside ? Promise.resolve() : before(route.engine, plugin.options);
      },
      fit(request, candidate) {
        requireXSearch(request, candidate);
        const fitting: FittingRequest = {
          request,
          tools: [...(request.tools ?? [])],
          choice: request.tool_choice ?? undefined,
          report: [],
        };
        for (let at = 0; at < fitting.tools.length; at += 1) fitTool(fitting, at, candidate, search);
        if (plugin !== undefined && !plugin.isAcceptedBy(candidate)) {
          if (fitting.request.web_search_options != null) fitting.request = { ...request, web_search_options: null };
          const route = routeOf(plugin.options, { request, candidate, field: plugin.field }, search);
          if ('engine' in route) {
            const messages =
              outcome === undefined || outcome.query === ''
                ? request.messages
                : withResults(request.messages, outcome, plugin.options.search_prompt);
            fitting.request = { ...fitting.request, messages };
          } else if (!fitting.tools.some((tool) => isVendorSearch(tool) || isGoogleSearch(tool))) {
            makeNative(fitting, route.native, undefined);
            fitting.report.push(...ignoredOptions(plugin.options, route.native, plugin.field));
          }
        }
        if (candidate.endpoint.quirks.native_search === 'openai') raiseEffort(fitting);
        return done(fitting);
      },
    };
  };
  return { of: 'search', create };
}

/** OpenAI's models do not search with the least effort (https://platform.openai.com/docs/guides/tools-web-search, "Limitations"). */
function raiseEffort(fitting: FittingRequest): void {
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

function done({ request, tools, choice, report }: FittingRequest): Fitted {
  const { tool_choice: _, ...rest } = request;
  const made: ChatRequest = { ...rest, tools: tools.length === 0 ? null : tools };
  if (choice !== undefined && tools.length > 0) made.tool_choice = choice;
  return { request: made, report };
}

function fitTool(fitting: FittingRequest, at: number, candidate: Candidate, search: WebSearch): void {
  const tool = fitting.tools[at]!;
  const field = `tools[${at}]`;
  if (tool.type === WEB_SEARCH) {
    const { parameters = {} } = tool as ServerTool;
    const options = readSearchOptions(parameters, `${field}.parameters`);
    const route = routeOf(options, { request: fitting.request, candidate, field }, search);
    if ('native' in route) {
      makeNative(fitting, route.native, at);
      fitting.report.push(...ignoredOptions(options, route.native, field));
    } else fitting.tools[at] = { type: WEB_SEARCH, parameters: { ...parameters, engine: route.engine } };
    return;
  }
  if (!isVendorSearch(tool)) return;
  if (tool.wire === wireOf(candidate)) {
    if (candidate.endpoint.quirks.native_search === 'openai') makeCurrent(fitting, tool, at);
    return;
  }
  try {
    const options = readSearchOptions(vendorOptions(tool.block), field);
    const route = routeOf(options, { request: fitting.request, candidate, field }, search);
    if ('native' in route) makeNative(fitting, route.native, at);
    else fitting.tools[at] = { type: WEB_SEARCH, parameters: { ...vendorOptions(tool.block), engine: route.engine } };
    const to = 'native' in route ? "the provider's own search" : `a search by the gateway, with ${route.engine}`;
    fitting.report.push({ kind: 'changed', field, reason: `${String(tool.block['type'])} becomes ${to}` });
  } catch (error) {
    if (!(error instanceof GatewayError) || isForced(fitting, tool)) throw error;
    // Clients of these APIs declare the tool in every request, so the request is not refused: a call of the tool fails with the reason.
    fitting.tools[at] = { type: WEB_SEARCH, parameters: { engine: NO_ENGINE, reason: error.message } };
    const reason = `${String(tool.block['type'])} cannot run at this endpoint: a model that calls it receives an error`;
    fitting.report.push({ kind: 'changed', field, reason });
  }
}

/** Replaces OpenAI's older tool, whose price is not known, by the current one with the same options. */
function makeCurrent(fitting: FittingRequest, { block, ...tool }: Native, at: number): void {
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
function isForced({ choice, tools }: FittingRequest, { block }: Native): boolean {
  if (choice === 'required') return tools.length === 1;
  if (typeof choice !== 'object') return false;
  if (choice.type === 'function') return (choice as { function: { name: string } }).function.name === block['name'];
  return choice.type.startsWith('web_search');
}

/** Applies the caller's filters to results. A page that they refuse is left out. */
async function screened({ screening }: Call, results: readonly SearchResult[]): Promise<SearchResult[]> {
  if (screening === undefined) return [...results];
  const passed: SearchResult[] = [];
  for (const one of results) {
    try {
      const texts = [one.url, one.title, one.content, one.published ?? ''];
      const [url = '', title = '', content = '', published = ''] = await screening.texts(texts, { isOptional: true });
      passed.push({ url, title, content, ...(one.published === undefined ? {} : { published }) });
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error;
    }
  }
  return passed;
}

async function searchBefore(
  call: Call,
  { fees, sources }: CallResources,
  {
    engine,
    options,
    search,
    now_ms,
  }: { engine: SearchEngine; options: WebSearchOptions; search: WebSearch; now_ms: number },
): Promise<SearchOutcome> {
  const query = queryOf(call.request.messages);
  if (query === '') return { query, results: [], at_ms: now_ms };
  const settings = search.settings().engines.get(engine);
  if (settings === undefined) throw new Error(`the search engine ${engine} is not set up`);
  const bounds = engineOptions(options);
  const controller = new AbortController();
  const unsubscribe = call.cancellation.onCancel(() => controller.abort(new CallCancelled({ may_be_billed: false })));
  try {
    const fee = { name: 'web_search', cost_nano_max: searchCost(settings.price, bounds.max_results) };
    const pages = await fees.spend(fee, async () => {
      const { results, cost_nano } = await search.search(engine, query, bounds, controller.signal);
      return { value: results, cost_nano, counts: { web_search: 1 } };
    });
    const results = await screened(call, pages);
    call.stages.push({
      type: 'plugin',
      name: 'web-search',
      summary: `${results.length} results of one search with ${engine}`,
      data: { engine, results: results.length },
    });
    for (const { url, title, content } of results) sources.push({ url, title, content });
    return { query, results, at_ms: now_ms };
  } finally {
    unsubscribe();
  }
}
