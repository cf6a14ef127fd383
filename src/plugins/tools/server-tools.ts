import type { ServerTool, ServerTools } from '../../inference/tools/server-tools.ts';
import type { ServerTool as AskedTool, InnerTool } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { DATETIME, WEB_FETCH, WEB_SEARCH } from '../asked.ts';
import { isSearch } from '../web/asks.ts';
import type { WebSearch } from '../web/search.ts';
import { datetimeTool } from './datetime.ts';
import { fetchTool, type PageReading } from './web-fetch.ts';
import { searchTool } from './web-search.ts';

function isOurs(tool: InnerTool): boolean {
  return tool.type === WEB_FETCH || tool.type === DATETIME || isSearch(tool);
}

/** The gateway's tools of a call, as its request asks for them. */
export function createServerTools(search: WebSearch, reading: PageReading): ServerTools {
  const makers: Readonly<Record<string, (parameters: JsonObject) => ServerTool | undefined>> = {
    [WEB_SEARCH]: (parameters) => searchTool(parameters, search),
    [WEB_FETCH]: (parameters) => fetchTool(parameters, reading),
    [DATETIME]: datetimeTool,
  };
  return ({ request }) => {
    if (request.tools?.some(isOurs) !== true) return undefined;
    /** One of each for the whole call: they count what they did. */
    const made = new Map<string, ServerTool>();
    return {
      of(tool) {
        if (!Object.hasOwn(makers, tool.type)) return undefined;
        const { type, parameters = {} } = tool as AskedTool;
        const key = `${type} ${String(parameters['engine'])}`;
        const before = made.get(key);
        if (before !== undefined) return before;
        const one = makers[type]!(parameters);
        if (one !== undefined) made.set(key, one);
        return one;
      },
    };
  };
}
