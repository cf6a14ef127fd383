import { nativeOf } from '../../providers/openai-responses/wire.ts';
import type { ChatChunk, Native, RunWriter, ShownRun, SlotEvent } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';

/** Prefix of ids of items of the gateway's own tools, by which they are recognized in later requests. */
export const OWN_ITEM = 'ws_gateway_';

function chunkOf(n: number, slot: Omit<SlotEvent, 'n'>): ChatChunk {
  return { delta: {}, ext: { slot: { n, ...slot } } };
}

/** A shown run, with its ordinal and item. */
interface RunItem extends ShownRun {
  at: number;
  n: number;
  id: string;
}

/** Writes runs as items of OpenAI's web search tool (https://platform.openai.com/docs/guides/tools-web-search, "Output and citations"). */
export function createRunWriter(takeSlot: () => number, stem: string): RunWriter {
  let shown: RunItem[] = [];
  let count = 0;
  const blockOf = ({ id, query, name }: RunItem, status: string): Native => {
    const action: JsonObject = name === 'web_fetch' ? { type: 'open_page', url: query } : { type: 'search', query };
    return nativeOf({ type: 'web_search_call', id, status, action });
  };
  const event = (name: string) => ({ raw: { type: `response.web_search_call.${name}` } });
  const opening = (item: RunItem): ChatChunk[] => [
    chunkOf(item.n, { open: { kind: 'native', native: blockOf(item, 'in_progress') }, ...event('in_progress') }),
    chunkOf(item.n, event('searching')),
  ];
  return {
    begin(runs) {
      shown = runs.flatMap((run, at): RunItem[] => {
        if (run === undefined) return [];
        count += 1;
        return [{ ...run, at, n: takeSlot(), id: `${OWN_ITEM}${stem}${count}` }];
      });
      // Only one block is open at a time.
      return shown.slice(0, 1).flatMap(opening);
    },
    end: (results) =>
      shown.flatMap((item, nth) => {
        const status = results[item.at]?.has_failed === true ? 'failed' : 'completed';
        const close = chunkOf(item.n, { close: { native: blockOf(item, status) } });
        return [...(nth === 0 ? [] : opening(item)), chunkOf(item.n, event('completed')), close];
      }),
  };
}
