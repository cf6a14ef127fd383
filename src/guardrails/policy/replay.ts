import type { ChatRequest } from '../../schemas/inner.ts';
import { createNumbering } from '../redaction.ts';
import { requestTexts } from '../requests/request-texts.ts';
import { type Screener, screen } from '../requests/screen.ts';
import type { TextKind } from '../text-places.ts';
import type { FilterAction, FilterSet } from './filter-set.ts';
import { filterName } from './verdict.ts';

/** Examples that a replay returns. */
const REPLAY_EXAMPLES_MAX = 100;

/** The action that filters would have taken on a request. */
export type ReplayedAction = 'blocked' | 'redacted' | 'flagged';

/** The actions that filters would have taken on logged requests. */
export interface Replay {
  /** Requests that were checked. */
  requests: number;
  blocked: number;
  redacted: number;
  flagged: number;
  /** The matches of each filter, even if another filter refused the request. */
  filters: { filter: string; label: string; action: FilterAction; requests: number; findings: number }[];
  /** The first requests with matches, without the matched text. */
  examples: { generation_id: string; action: ReplayedAction; filters: string[] }[];
  /** Whether all selected requests were checked. */
  is_complete: boolean;
}

export interface ReplayOptions extends Pick<Screener, 'pause' | 'analyze'> {
  set: FilterSet;
  /** Whether the time limit is over. */
  isLate(): boolean;
}

/** The placeholder of media in a logged request. */
const MEDIA_STUB = /^\[[\w/.+-]+, \d+ (?:bytes(?:, sha256 [0-9a-f]{64})?|characters)\]$/;

const RANK: Readonly<Record<ReplayedAction, number>> = { blocked: 2, redacted: 1, flagged: 0 };

/** Runs filters on logged requests and reports the actions they would have taken. Changes nothing and reports no matched text. */
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
  const report: Replay = {
    requests: 0,
    blocked: 0,
    redacted: 0,
    flagged: 0,
    filters,
    examples: [],
    is_complete: true,
  };
  // With `flag` as the only action, a request that would be blocked is checked to its end.
  const lenient: FilterSet = { ...set, filters: set.filters.map((filter) => ({ ...filter, action: 'flag' as const })) };
  const screener: Screener = { set: lenient, guardrails: [], numbering: createNumbering(), pause, analyze };
  for await (const { id, request } of requests) {
    if (isLate()) return { ...report, is_complete: false };
    report.requests += 1;
    const { matches: texts } = await screen(
      (visit) =>
        requestTexts(request, {
          visit: (text, place) => (MEDIA_STUB.test(text) ? text : visit(text, place)),
          keeps_signatures: true,
        }),
      screener,
    );
    const hits = new Set<number>();
    let action: ReplayedAction | undefined;
    for (const { findings, kind } of texts) {
      for (const { filter } of findings) {
        const one = filters[filter];
        if (one === undefined) continue;
        one.findings += 1;
        hits.add(filter);
        const done = actionOn(one.action, kind);
        if (action === undefined || RANK[done] > RANK[action]) action = done;
      }
    }
    for (const filter of hits) filters[filter]!.requests += 1;
    if (action === undefined) continue;
    report[action] += 1;
    if (report.examples.length >= REPLAY_EXAMPLES_MAX) continue;
    const labels = [...hits].sort((a, b) => a - b).map((filter) => filters[filter]!.label);
    report.examples.push({ generation_id: id, action, filters: labels });
  }
  return report;
}

/** The action of a filter on a match in a text of this kind. */
function actionOn(action: FilterAction, kind: TextKind): ReplayedAction {
  if (action === 'flag') return 'flagged';
  // An id can be replaced by another.
  if (kind === 'link') return 'redacted';
  return action === 'block' || kind === 'pinned' ? 'blocked' : 'redacted';
}
