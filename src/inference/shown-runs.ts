import type { ChatChunk, Native, RequestExt, SlotEvent } from '../schemas/inner.ts';
import type { JsonObject } from '../schemas/json.ts';
import type { ServerTool } from './server-tools.ts';
import { shortName } from './tool-rules.ts';
import type { ToolRun } from './tool-runs.ts';

/** Ids of what the gateway's tools did begin so: what comes back in a conversation is known by them. */
export const OWN_ITEM = 'ws_gateway_';
export const OWN_BLOCK = 'srvtoolu_gateway_';

/** How the runs of tools look in one answer, in the API of its client. */
export interface ShownRuns {
  /** Runs begin. Each list is what is told at once. */
  begin(calls: readonly { tool: ServerTool; args: JsonObject }[]): ChatChunk[];
  /** They are over. */
  end(runs: readonly ToolRun[]): ChatChunk[];
}

const NOTHING: ShownRuns = { begin: () => [], end: () => [] };

function told(n: number, slot: Omit<SlotEvent, 'n'>): ChatChunk {
  return { delta: {}, ext: { slot: { n, ...slot } } };
}

/** What is shown of a run, where anything is: its place among the others, and its query. */
interface Shown {
  at: number;
  n: number;
  id: string;
  query: string;
  name: string;
}

/** An item of OpenAI's own tool for searches (https://platform.openai.com/docs/guides/tools-web-search, "Output and citations"). */
function itemsOf(takeSlot: () => number, stem: string): ShownRuns {
  let shown: Shown[] = [];
  let counted = 0;
  const blockOf = ({ id, query, name }: Shown, status: string): Native => {
    const action: JsonObject = name === 'web_fetch' ? { type: 'open_page', url: query } : { type: 'search', query };
    return { type: 'native', wire: 'openai-responses', block: { type: 'web_search_call', id, status, action } };
  };
  const event = (name: string) => ({ raw: { type: `response.web_search_call.${name}` } });
  const opening = (one: Shown): ChatChunk[] => [
    told(one.n, { open: { kind: 'native', native: blockOf(one, 'in_progress') }, ...event('in_progress') }),
    told(one.n, event('searching')),
  ];
  return {
    begin(calls) {
      shown = calls.flatMap(({ tool, args }, at): Shown[] => {
        const query = tool.query?.(args);
        if (query === undefined) return [];
        counted += 1;
        return [{ at, n: takeSlot(), id: `${OWN_ITEM}${stem}${counted}`, query, name: shortName(tool.type) }];
      });
      // One block is open at a time.
      return shown.slice(0, 1).flatMap(opening);
    },
    end: (runs) =>
      shown.flatMap((one, nth) => {
        const status = runs[one.at]?.outcome.has_failed === true ? 'failed' : 'completed';
        const close = told(one.n, { close: { native: blockOf(one, status) } });
        return [...(nth === 0 ? [] : opening(one)), told(one.n, event('completed')), close];
      }),
  };
}

/** Blocks of Anthropic's tool for searches (https://platform.claude.com/docs/en/agents-and-tools/tool-use/web-search-tool). */
function blocksOf(takeSlot: () => number, stem: string): ShownRuns {
  let shown: Shown[] = [];
  let counted = 0;
  const native = (block: JsonObject): Native => ({ type: 'native', wire: 'anthropic-messages', block });
  const use = ({ id, name }: Shown, input: JsonObject) => native({ type: 'server_tool_use', id, name, input });
  const inputOf = ({ name, query }: Shown): JsonObject => (name === 'web_fetch' ? { url: query } : { query });
  const asking = (one: Shown): ChatChunk[] => [
    told(one.n, {
      open: { kind: 'native', native: use(one, {}) },
      raw: { type: 'input_json_delta', partial_json: JSON.stringify(inputOf(one)) },
    }),
    told(one.n, { close: { native: use(one, inputOf(one)) } }),
  ];
  function resultOf({ id, name, query }: Shown, { outcome }: ToolRun): JsonObject {
    const { sources, has_failed } = outcome;
    if (name === 'web_fetch') {
      const [page] = sources;
      const content: JsonObject =
        has_failed === true || page === undefined
          ? { type: 'web_fetch_tool_result_error', error_code: 'unavailable' }
          : {
              type: 'web_fetch_result',
              url: page.url || query,
              content: {
                type: 'document',
                source: { type: 'text', media_type: 'text/plain', data: page.content },
                title: page.title,
              },
              retrieved_at: null,
            };
      return { type: 'web_fetch_tool_result', tool_use_id: id, content };
    }
    const content =
      has_failed === true
        ? { type: 'web_search_tool_result_error', error_code: 'unavailable' }
        : // What only Anthropic could read is empty: what comes back so is known to be none of theirs.
          sources.map(({ url, title }) => ({
            type: 'web_search_result',
            url,
            title,
            encrypted_content: '',
            page_age: null,
          }));
    return { type: 'web_search_tool_result', tool_use_id: id, content };
  }
  return {
    begin(calls) {
      shown = calls.flatMap(({ tool, args }, at): Shown[] => {
        const query = tool.query?.(args);
        if (query === undefined) return [];
        counted += 1;
        return [{ at, n: takeSlot(), id: `${OWN_BLOCK}${stem}${counted}`, query, name: shortName(tool.type) }];
      });
      return shown.flatMap(asking);
    },
    end: (runs) =>
      shown.flatMap((one) => {
        const block = native(resultOf(one, runs[one.at]!));
        return [told(takeSlot(), { open: { kind: 'native', native: block }, close: { native: block } })];
      }),
  };
}

/** How the runs of one answer are shown: chat clients see nothing of them but what the model says. */
export function shownRuns(
  client: RequestExt['client'] | undefined,
  { takeSlot, generation_id }: { takeSlot: () => number; generation_id: string },
): ShownRuns {
  const stem = generation_id.replace(/^gen-/, '').replaceAll('-', '');
  if (client === 'responses') return itemsOf(takeSlot, stem);
  return client === 'messages' ? blocksOf(takeSlot, stem) : NOTHING;
}
