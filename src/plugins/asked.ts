import { invalidField } from '../errors.ts';
import { limits } from '../limits.ts';
import type { ChatRequest, InnerTool, ServerTool, ToolChoice } from '../schemas/inner.ts';
import type { JsonObject } from '../schemas/json.ts';
import { datetimeWish, fetchWish, searchWish } from './wishes.ts';

/** The gateway's tools, by the one name that everything behind the doors calls them. */
export const WEB_SEARCH = 'gateway:web_search';
export const WEB_FETCH = 'gateway:web_fetch';
export const DATETIME = 'gateway:datetime';

/** Every name that clients call them by; those without a prefix are the public service's shorthands. */
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

/** What is checked of each tool's options. Throws a 400 that names the field. */
const CHECKS: Readonly<Record<string, (told: JsonObject, path: string) => unknown>> = {
  [WEB_SEARCH]: searchWish,
  [WEB_FETCH]: fetchWish,
  [DATETIME]: datetimeWish,
};

/** Options stand flat beside the type, or under `parameters`; there they go before the flat ones. */
function optionsOf(tool: ServerTool, at: number): { parameters: JsonObject; path: string } {
  const { type: _, parameters, ...flat } = tool as unknown as JsonObject;
  if (parameters == null) return { parameters: flat, path: `tools[${at}]` };
  if (typeof parameters !== 'object' || Array.isArray(parameters)) {
    throw invalidField(`tools[${at}].parameters`, 'must be an object');
  }
  return { parameters: { ...flat, ...parameters }, path: `tools[${at}].parameters` };
}

/**
 * The request with the gateway's tools and plugins under one name and checked, whichever way its client asked for them; the same request
 * where it asks for none. Throws a 400 that names the field and the rule.
 */
export function withAskedTools(request: ChatRequest): ChatRequest {
  const plugins = request.plugins ?? [];
  const pages = plugins.findIndex(({ id, enabled }) => id === 'web-fetch' && enabled !== false);
  const hasOurs = request.tools?.some(({ type }) => nameOf(type) !== undefined) === true;
  for (const [at, plugin] of plugins.entries()) {
    if (plugin.id === 'web' && plugin.enabled !== false) searchWish(plugin, `plugins[${at}]`);
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
    fetchWish(parameters, `plugins[${pages}]`);
    if (!seen.has(WEB_FETCH)) tools.push({ type: WEB_FETCH, parameters });
  }
  if (tools.length > limits.tools_max) throw invalidField('tools', `must have at most ${limits.tools_max} items`);
  const choice = choiceOf(request, seen);
  return { ...request, tools, ...(choice === undefined ? {} : { tool_choice: choice }) };
}

/** The choice of one of the gateway's tools, by the name that it has here; the Messages API names tools as it names functions. */
function choiceOf(
  { tool_choice: choice, tools }: ChatRequest,
  seen: ReadonlyMap<string, number>,
): ToolChoice | undefined {
  if (typeof choice !== 'object' || choice === null) return undefined;
  if (choice.type !== 'function') {
    const type = nameOf(choice.type);
    // What the client's own API calls so is a provider's tool, unless it stands among those of the gateway.
    return type === undefined || !seen.has(type) ? undefined : { type };
  }
  const { name } = (choice as { function: { name: string } }).function;
  const type = nameOf(name) ?? nameOf(`gateway:${name}`);
  const isTheirs = tools?.some(
    (tool) => tool.type === 'function' && (tool as { function: { name: string } }).function.name === name,
  );
  return type === undefined || isTheirs === true || !seen.has(type) ? undefined : { type };
}
