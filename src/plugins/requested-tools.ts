import { invalidField } from '../errors.ts';
import { limits } from '../limits.ts';
import type { ChatRequest, InnerTool, ServerTool, ToolChoice } from '../schemas/inner.ts';
import type { JsonObject } from '../schemas/json.ts';
import { lookupTable } from '../schemas/lookup-table.ts';
import { readDatetimeOptions, readFetchOptions, readSearchOptions } from './tool-options.ts';

/** The internal names of the gateway's tools. Requests are normalized to them. */
export const WEB_SEARCH = 'gateway:web_search';
export const WEB_FETCH = 'gateway:web_fetch';
export const DATETIME = 'gateway:datetime';

/** The names that clients use. Names without a prefix are shorthands of the public API. */
const NAMES: ReadonlyMap<string, string> = new Map([
  [WEB_SEARCH, WEB_SEARCH],
  ['openrouter:web_search', WEB_SEARCH],
  ['web_search', WEB_SEARCH],
  ['web_search_preview', WEB_SEARCH],
  ['web_search_2025_08_26', WEB_SEARCH],
  [WEB_FETCH, WEB_FETCH],
  ['openrouter:web_fetch', WEB_FETCH],
  [DATETIME, DATETIME],
  ['openrouter:datetime', DATETIME],
]);

function nameOf(type: string): string | undefined {
  return NAMES.get(type) ?? (/^web_search_preview_\d/.test(type) ? WEB_SEARCH : undefined);
}

/** The checks of each tool's options. They throw a 400 that names the field. */
const CHECKS: Readonly<Record<string, (options: JsonObject, path: string) => unknown>> = lookupTable({
  [WEB_SEARCH]: readSearchOptions,
  [WEB_FETCH]: readFetchOptions,
  [DATETIME]: readDatetimeOptions,
});

/** The options of a tool: members beside `type` or of `parameters`, which take precedence. */
function optionsOf(tool: ServerTool, at: number): { parameters: JsonObject; path: string } {
  const { type: _, parameters, ...flat } = tool as unknown as JsonObject;
  if (parameters == null) return { parameters: flat, path: `tools[${at}]` };
  if (typeof parameters !== 'object' || Array.isArray(parameters)) {
    throw invalidField(`tools[${at}].parameters`, 'must be an object');
  }
  return { parameters: { ...flat, ...parameters }, path: `tools[${at}].parameters` };
}

/**
 * Normalizes the names of the gateway's tools and plugins in a request and checks their options. Returns the same request
 * if it uses none. Throws a 400 that names the field and the rule.
 */
export function withServerTools(request: ChatRequest): ChatRequest {
  const plugins = request.plugins ?? [];
  const pages = plugins.findIndex(({ id, enabled }) => id === 'web-fetch' && enabled !== false);
  const hasOurs = request.tools?.some(({ type }) => nameOf(type) !== undefined) === true;
  for (const [at, plugin] of plugins.entries()) {
    if (plugin.id === 'web' && plugin.enabled !== false) readSearchOptions(plugin, `plugins[${at}]`);
  }
  if (!hasOurs && pages === -1) return request;
  const seen = new Map<string, number>();
  const tools = (request.tools ?? []).map((tool, at): InnerTool => {
    const type = nameOf(tool.type);
    if (type === undefined) return tool;
    const { parameters, path } = optionsOf(tool as ServerTool, at);
    CHECKS[type]?.(parameters, path);
    const before = seen.get(type);
    if (before !== undefined) throw invalidField(`tools[${at}]`, `must not be the same tool as tools[${before}]`);
    seen.set(type, at);
    return { type, parameters };
  });
  if (pages !== -1) {
    const { id: _, enabled: __, ...parameters } = plugins[pages] as JsonObject;
    readFetchOptions(parameters, `plugins[${pages}]`);
    if (!seen.has(WEB_FETCH)) tools.push({ type: WEB_FETCH, parameters });
  }
  if (tools.length > limits.tools_max) throw invalidField('tools', `must have at most ${limits.tools_max} items`);
  const choice = choiceOf(request, seen);
  return { ...request, tools, ...(choice === undefined ? {} : { tool_choice: choice }) };
}

/** The choice of a tool of the gateway, with its internal name. The Messages API names tools like functions. */
function choiceOf(
  { tool_choice: choice, tools }: ChatRequest,
  seen: ReadonlyMap<string, number>,
): ToolChoice | undefined {
  if (typeof choice !== 'object' || choice === null) return undefined;
  if (choice.type !== 'function') {
    const type = nameOf(choice.type);
    // The name is that of a provider's tool, unless the request declares the gateway's.
    return type === undefined || !seen.has(type) ? undefined : { type };
  }
  const { name } = (choice as { function: { name: string } }).function;
  const type = nameOf(name) ?? nameOf(`gateway:${name}`);
  const isTheirs = tools?.some(
    (tool) => tool.type === 'function' && (tool as { function: { name: string } }).function.name === name,
  );
  return type === undefined || isTheirs === true || !seen.has(type) ? undefined : { type };
}
