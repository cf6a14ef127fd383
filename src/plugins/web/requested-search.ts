import { wireOf } from '../../inference/plan/planner.ts';
import { ONLINE } from '../../inference/plan/requested-models.ts';
import { dialectOf } from '../../providers/dialects.ts';
import { type Candidate, supports } from '../../routing/plan.ts';
import type { ChatRequest, InnerTool, Native } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { WEB_SEARCH } from '../requested-tools.ts';
import { readSearchOptions, type WebSearchOptions } from '../tool-options.ts';

/** Whether a tool is a provider's own search, declared in that provider's API. */
export function isVendorSearch(tool: InnerTool): tool is Native {
  if (tool.type !== 'native') return false;
  const { wire, block } = tool as Native;
  return dialectOf(wire).facts.isSearchTool(block);
}

/** Whether an entry of `tools` is a web search, by the gateway or a provider. */
export function isSearch(tool: InnerTool): boolean {
  return tool.type === WEB_SEARCH || isVendorSearch(tool);
}

/** The options of OpenAI's and Anthropic's tools that the gateway's tool has too. */
export function vendorOptions(block: JsonObject): JsonObject {
  const { max_uses, allowed_domains, blocked_domains, filters, user_location, search_context_size } = block;
  const options = { max_uses, allowed_domains, blocked_domains, filters, user_location, search_context_size };
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value != null)) as JsonObject;
}

/** A search that runs before a call. */
export interface SearchBefore {
  options: WebSearchOptions;
  field: string;
  /** Whether an endpoint accepts the request's own field for it. */
  isAcceptedBy(candidate: Pick<Candidate, 'endpoint' | 'provider'>): boolean;
}

/** The search that the plugin `web` or OpenAI's field `web_search_options` requests. */
export function searchBeforeOf({ plugins, web_search_options: options }: ChatRequest): SearchBefore | undefined {
  const at = plugins?.findIndex(({ id }) => id === 'web') ?? -1;
  const plugin = plugins?.[at];
  if (plugin !== undefined && plugin.enabled !== false) {
    const field = plugin === ONLINE ? 'model' : `plugins[${at}]`;
    return { options: readSearchOptions(plugin, field), field, isAcceptedBy: () => false };
  }
  if (options == null) return undefined;
  const field = 'web_search_options';
  return {
    options: readSearchOptions(options, field),
    field,
    isAcceptedBy: (candidate) =>
      dialectOf(wireOf(candidate)).facts.takesSearchOptions && supports(candidate.endpoint, field),
  };
}
