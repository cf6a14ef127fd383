import { nativeOf } from '../../providers/anthropic-messages/wire.ts';
import type { ChatChunk, Native, RunResult, RunWriter, ShownRun, SlotEvent } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';

/** Prefix of ids of blocks of the gateway's own tools, by which they are recognized in later requests. */
export const OWN_BLOCK = 'srvtoolu_gateway_';

function chunkOf(n: number, slot: Omit<SlotEvent, 'n'>): ChatChunk {
  return { delta: {}, ext: { slot: { n, ...slot } } };
}

/** A shown run, with its ordinal and block. */
interface RunBlock extends ShownRun {
  at: number;
  n: number;
  id: string;
}

const inputOf = ({ name, query }: RunBlock): JsonObject => (name === 'web_fetch' ? { url: query } : { query });

const useOf = ({ id, name }: RunBlock, input: JsonObject): Native =>
  nativeOf({ type: 'server_tool_use', id, name, input });

function resultOf({ id, name, query }: RunBlock, { sources, has_failed }: RunResult): Native {
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
    return nativeOf({ type: 'web_fetch_tool_result', tool_use_id: id, content });
  }
  const content =
    has_failed === true
      ? { type: 'web_search_tool_result_error', error_code: 'unavailable' }
      : // Fields that only Anthropic can read are empty, so that a returned result is not mistaken for one of Anthropic's.
        sources.map(({ url, title }) => ({
          type: 'web_search_result',
          url,
          title,
          encrypted_content: '',
          page_age: null,
        }));
  return nativeOf({ type: 'web_search_tool_result', tool_use_id: id, content });
}

/** Writes runs as blocks of Anthropic's web search tool (https://platform.claude.com/docs/en/agents-and-tools/tool-use/web-search-tool). */
export function createRunWriter(takeSlot: () => number, stem: string): RunWriter {
  let shown: RunBlock[] = [];
  let count = 0;
  const opening = (block: RunBlock): ChatChunk[] => [
    chunkOf(block.n, {
      open: { kind: 'native', native: useOf(block, {}) },
      raw: { type: 'input_json_delta', partial_json: JSON.stringify(inputOf(block)) },
    }),
    chunkOf(block.n, { close: { native: useOf(block, inputOf(block)) } }),
  ];
  return {
    begin(runs) {
      shown = runs.flatMap((run, at): RunBlock[] => {
        if (run === undefined) return [];
        count += 1;
        return [{ ...run, at, n: takeSlot(), id: `${OWN_BLOCK}${stem}${count}` }];
      });
      return shown.flatMap(opening);
    },
    end: (results) =>
      shown.flatMap((block) => {
        const native = resultOf(block, results[block.at]!);
        return [chunkOf(takeSlot(), { open: { kind: 'native', native }, close: { native } })];
      }),
  };
}
