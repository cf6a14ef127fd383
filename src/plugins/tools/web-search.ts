import { GatewayError, invalidField } from '../../errors.ts';
import type { ServerTool } from '../../inference/tools/server-tools.ts';
import { limits } from '../../limits.ts';
import type { JsonObject } from '../../schemas/json.ts';
import type { Stage } from '../../schemas/routing-metadata.ts';
import type { SearchEngine } from '../../schemas/web-search.ts';
import { WEB_SEARCH } from '../requested-tools.ts';
import { readSearchOptions } from '../tool-options.ts';
import { engineOptions, NO_ENGINE } from '../web/adapter.ts';
import { AS_DATA, resultsText } from '../web/results.ts';
import { searchCost, type WebSearch } from '../web/search.ts';

function queryOf(args: JsonObject): string {
  const { query } = args;
  return typeof query === 'string' ? query.replace(/\s+/g, ' ').trim() : '';
}

const declaration: ServerTool['declaration'] = {
  type: 'function',
  function: {
    name: 'web_search',
    description:
      'Searches the web, and gives pages with what stands on them. After what you take from a page, name it as a markdown link to ' +
      'its url, with its domain as the text of the link.',
    parameters: {
      type: 'object',
      properties: { query: { type: 'string', description: 'What to search for, as one asks a search engine.' } },
      required: ['query'],
    },
  },
};

/** The tool in place of a search that cannot run: calling it fails with the reason. */
function failingSearch(reason: string): ServerTool {
  return {
    type: WEB_SEARCH,
    declaration,
    cost_nano_max: 0,
    max_uses: 1,
    query: queryOf,
    run(_args, { call }) {
      call.stages.push({
        type: 'plugin',
        name: 'web-search',
        summary: `no search ran: ${reason}`,
        data: { searches: 0 },
      });
      throw new GatewayError(400, `The web cannot be searched. Tell the user so, with this reason: ${reason}`);
    },
  };
}

/** The search tool of one call, with its chosen engine. */
export function searchTool(parameters: JsonObject, search: WebSearch): ServerTool | undefined {
  if (parameters['engine'] === NO_ENGINE) return failingSearch(String(parameters['reason']));
  const webOptions = readSearchOptions(parameters, 'parameters');
  const engine = webOptions.engine as SearchEngine;
  const settings = search.settings().engines.get(engine);
  if (settings === undefined) return undefined;
  const most = Math.min(webOptions.max_results ?? limits.web_results_default, webOptions.max_total_results);
  /** Results of all searches so far, including those reserved by running searches. */
  let reserved = 0;
  /** The number of results returned to the model, which are numbered. */
  let returned = 0;
  let stage: Stage | undefined;
  return {
    type: WEB_SEARCH,
    declaration,
    cost_nano_max: searchCost(settings.price, most),
    ...(webOptions.max_uses === undefined ? {} : { max_uses: webOptions.max_uses }),
    query: queryOf,
    async run(args, { call, signal, now_ms }) {
      const query = queryOf(args);
      if (query === '') throw invalidField('query', 'must be a string that is not empty');
      const resultsWanted = Math.min(most, webOptions.max_total_results - reserved);
      if (resultsWanted <= 0) {
        throw new GatewayError(
          400,
          `No more searches: ${webOptions.max_total_results} results were returned, which is the maximum`,
        );
      }
      reserved += resultsWanted;
      const options = engineOptions(webOptions, resultsWanted);
      const { results, cost_nano } = await search.search(engine, query, options, signal).catch((error: unknown) => {
        reserved -= resultsWanted;
        throw error;
      });
      const first = returned + 1;
      returned += results.length;
      reserved -= resultsWanted - results.length;
      // One stage for all searches of the call.
      if (stage === undefined) {
        stage = { type: 'plugin', name: 'web-search', data: { engine, searches: 0, results: 0 } };
        call.stages.push(stage);
      }
      const { searches, results: before } = stage.data as { searches: number; results: number };
      stage.data = { engine, searches: searches + 1, results: before + results.length };
      const answer = {
        note: AS_DATA,
        query,
        searched_at: new Date(now_ms).toISOString(),
        results: resultsText(results, first),
      };
      return {
        content: JSON.stringify(answer),
        sources: results.map(({ url, title, content }) => ({ url, title, content })),
        cost_nano,
        counts: { web_search: 1 },
      };
    },
  };
}
