import { wireOf } from '../../inference/plan/planner.ts';
import { ONLINE } from '../../inference/plan/requested-models.ts';
import { dialectOf } from '../../providers/dialects.ts';
import { type Candidate, supports } from '../../routing/plan.ts';
import type { ChatRequest, InnerTool, Native } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { WEB_SEARCH } from '../asked.ts';
import { type SearchWish, searchWish } from '../wishes.ts';

/** A provider's own search tool, as a client of that provider's API declares it. */
export function isVendorSearch(tool: InnerTool): tool is Native {
  if (tool.type !== 'native') return false;
  const { wire, block } = tool as Native;
  return dialectOf(wire).facts.isSearchTool(block);
}

/** Whether an entry of `tools` asks for a search of the web, whoever makes it. */
export function isSearch(tool: InnerTool): boolean {
  return tool.type === WEB_SEARCH || isVendorSearch(tool);
}

/** What OpenAI and Anthropic call the options of their tools that ours has as well. */
export function vendorOptions(block: JsonObject): JsonObject {
  const { max_uses, allowed_domains, blocked_domains, filters, user_location, search_context_size } = block;
  const options = { max_uses, allowed_domains, blocked_domains, filters, user_location, search_context_size };
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value != null)) as JsonObject;
}

/** A search that is made for a call whatever its model does. */
export interface SearchBefore {
  wish: SearchWish;
  field: string;
  /** Whether an endpoint takes the request's own field for it. */
  isTakenBy(candidate: Pick<Candidate, 'endpoint' | 'provider'>): boolean;
}

/** What the plugin `web` asks for, where it is on, or OpenAI's field `web_search_options`. */
export function searchBeforeOf({ plugins, web_search_options: options }: ChatRequest): SearchBefore | undefined {
  const at = plugins?.findIndex(({ id }) => id === 'web') ?? -1;
  const plugin = plugins?.[at];
  if (plugin !== undefined && plugin.enabled !== false) {
    const field = plugin === ONLINE ? 'model' : `plugins[${at}]`;
    return { wish: searchWish(plugin, field), field, isTakenBy: () => false };
  }
  if (options == null) return undefined;
  const field = 'web_search_options';
  return {
    wish: searchWish(options, field),
    field,
    isTakenBy: (candidate) =>
      dialectOf(wireOf(candidate)).facts.takesSearchOptions && supports(candidate.endpoint, field),
  };
}
