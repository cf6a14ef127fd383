import type { ChatRequest, ReasoningEffort } from '../../schemas/inner.ts';

/** Weakest first; the share of the output bound that each stands for (the public service's documentation, "Reasoning tokens"). */
const EFFORTS: readonly (readonly [ReasoningEffort, number])[] = [
  ['none', 0],
  ['minimal', 0.1],
  ['low', 0.2],
  ['medium', 0.5],
  ['high', 0.8],
  ['xhigh', 0.95],
  ['max', 1],
];

/** How hard a request wishes the model to think; undefined: it says nothing. A budget counts as its share of the output. */
export function effortOf(request: ChatRequest, most: number | undefined): ReasoningEffort | undefined {
  const wish = request.reasoning;
  if (wish?.enabled === false) return 'none';
  const named = wish?.effort ?? request.reasoning_effort;
  if (named != null) return named;
  if (wish?.max_tokens != null) {
    const bound = request.max_completion_tokens ?? request.max_tokens ?? most;
    return bound == null ? 'medium' : effortOfShare(wish.max_tokens / bound);
  }
  return wish?.enabled ? 'medium' : undefined;
}

/** The share of the output bound that an effort stands for as a budget; some is always left for the answer. */
export function shareOf(effort: ReasoningEffort): number {
  return Math.min(EFFORTS.find(([name]) => name === effort)?.[1] ?? 0, 0.95);
}

/** The effort whose share of the output is closest to the asked one. */
function effortOfShare(share: number): ReasoningEffort {
  let best = EFFORTS[1]!;
  for (const candidate of EFFORTS.slice(1, -1)) {
    if (Math.abs(candidate[1] - share) < Math.abs(best[1] - share)) best = candidate;
  }
  return best[0];
}

/** The effort itself where the model takes it or nobody knows, else the nearest that it takes; a wish to think stays one. */
export function nearestOf(taken: readonly string[] | undefined, effort: ReasoningEffort): string {
  if (taken === undefined || taken.length === 0 || taken.includes(effort)) return effort;
  const levels = taken.filter((name) => name !== 'none');
  const known = levels.length > 0 ? levels : taken;
  const rank = (name: string): number => EFFORTS.findIndex(([candidate]) => candidate === name);
  const wanted = rank(effort);
  let best = known[0]!;
  for (const candidate of known) {
    if (Math.abs(rank(candidate) - wanted) < Math.abs(rank(best) - wanted)) best = candidate;
  }
  return best;
}
