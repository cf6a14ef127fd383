import type { ServerTool, ServerTools } from '../../inference/tools/server-tools.ts';
import type { InnerTool, ServerTool as RequestedTool } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { DATETIME, WEB_FETCH, WEB_SEARCH } from '../requested-tools.ts';
import { isSearch } from '../web/requested-search.ts';
import type { WebSearch } from '../web/search.ts';
import { datetimeTool } from './datetime.ts';
import { fetchTool, type PageReaders } from './web-fetch.ts';
import { searchTool } from './web-search.ts';

function isGatewayTool(tool: InnerTool): boolean {
  return tool.type === WEB_FETCH || tool.type === DATETIME || isSearch(tool);
}

/** Creates the gateway's tools that a call requests. */
export function createServerTools(search: WebSearch, reading: PageReaders): ServerTools {
  const makers: Readonly<Record<string, (parameters: JsonObject) => ServerTool | undefined>> = {
    [WEB_SEARCH]: (parameters) => searchTool(parameters, search),
    [WEB_FETCH]: (parameters) => fetchTool(parameters, reading),
    [DATETIME]: datetimeTool,
  };
  return ({ request }) => {
    if (request.tools?.some(isGatewayTool) !== true) return undefined;
    /** One tool of each kind per call: tools count their uses. */
    const created = new Map<string, ServerTool>();
    return {
      of(tool) {
        if (!Object.hasOwn(makers, tool.type)) return undefined;
        const { type, parameters = {} } = tool as RequestedTool;
        const key = `${type} ${String(parameters['engine'])}`;
        const before = created.get(key);
        if (before !== undefined) return before;
        const one = makers[type]!(parameters);
        if (one !== undefined) created.set(key, one);
        return one;
      },
    };
  };
}
