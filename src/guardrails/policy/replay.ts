import { limits } from '../../limits.ts';
import type { ChatRequest } from '../../schemas/inner.ts';
import { createNumbering } from '../redaction.ts';
import { requestTexts } from '../requests/request-texts.ts';
import { type Screener, screen } from '../requests/screen.ts';
import type { TextKind } from '../text-places.ts';
import type { FilterAction, FilterSet } from './filter-set.ts';
import { filterName } from './verdict.ts';

/** What filters would have done with a request. */
export type ReplayedAction = 'blocked' | 'redacted' | 'flagged';

/** What filters would have done with requests that were kept. */
export interface Replay {
  /** That were looked at. */
  requests: number;
  blocked: number;
  redacted: number;
  flagged: number;
  /** The matches of each filter, even if another filter refused the request. */
  filters: { filter: string; label: string; action: FilterAction; requests: number; findings: number }[];
  /** Requests in which something was found, the first of them: never what. */
  examples: { generation_id: string; action: ReplayedAction; filters: string[] }[];
  /** All that were to be looked at were. */
  is_complete: boolean;
}

export interface ReplayOptions extends Pick<Screener, 'pause' | 'analyze'> {
  set: FilterSet;
  /** Whether the time for it is over. */
  isLate(): boolean;
}

/** What stands in a kept request where media was. */
const MEDIA_STUB = /^\[[\w/.+-]+, \d+ (?:bytes(?:, sha256 [0-9a-f]{64})?|characters)\]$/;

const RANK: Readonly<Record<ReplayedAction, number>> = { blocked: 2, redacted: 1, flagged: 0 };

/** Tries filters on requests that were kept, and tells what they would have done: nothing is changed, nothing that was found is told. */
export async function replay(
  requests: AsyncIterable<{ id: string; request: ChatRequest }>,
  { set, pause, analyze, isLate }: ReplayOptions,
): Promise<Replay> {
  const filters = set.filters.map((filter) => ({
    filter: filterName(filter),
    label: filter.label,
    action: filter.action,
    requests: 0,
    findings: 0,
  }));
  const told: Replay = {
    requests: 0,
    blocked: 0,
    redacted: 0,
    flagged: 0,
    filters,
    examples: [],
    is_complete: true,
  };
  // A request that must not go on is looked at to its end all the same.
  const lenient: FilterSet = { ...set, filters: set.filters.map((filter) => ({ ...filter, action: 'flag' as const })) };
  const screener: Screener = { set: lenient, guardrails: [], numbering: createNumbering(), pause, analyze };
  for await (const { id, request } of requests) {
    if (isLate()) return { ...told, is_complete: false };
    told.requests += 1;
    const { found } = await screen(
      (visit) =>
        requestTexts(request, {
          visit: (text, place) => (MEDIA_STUB.test(text) ? text : visit(text, place)),
          keeps_signatures: true,
        }),
      screener,
    );
    const hits = new Set<number>();
    let action: ReplayedAction | undefined;
    for (const { findings, kind } of found) {
      for (const { filter } of findings) {
        const one = filters[filter];
        if (one === undefined) continue;
        one.findings += 1;
        hits.add(filter);
        const done = doneBy(one.action, kind);
        if (action === undefined || RANK[done] > RANK[action]) action = done;
      }
    }
    for (const filter of hits) filters[filter]!.requests += 1;
    if (action === undefined) continue;
    told[action] += 1;
    if (told.examples.length >= limits.replay_examples_max) continue;
    const labels = [...hits].sort((a, b) => a - b).map((filter) => filters[filter]!.label);
    told.examples.push({ generation_id: id, action, filters: labels });
  }
  return told;
}

/** What a filter does with what it found in such a place. */
function doneBy(action: FilterAction, kind: TextKind): ReplayedAction {
  if (action === 'flag') return 'flagged';
  // An id may be another.
  if (kind === 'link') return 'redacted';
  return action === 'block' || kind === 'pinned' ? 'blocked' : 'redacted';
}
