import type { ChatRequest, ReasoningEffort } from '../../schemas/inner.ts';

/** Weakest first, each with its share of the output bound (the public service's documentation, "Reasoning tokens"). */
const EFFORTS: readonly (readonly [ReasoningEffort, number])[] = [
  ['none', 0],
  ['minimal', 0.1],
  ['low', 0.2],
  ['medium', 0.5],
  ['high', 0.8],
  ['xhigh', 0.95],
  ['max', 1],
];

/** The reasoning effort of a request; undefined if it has none. A budget counts as its share of the output bound; `most` is the model's. */
export function effortOf(request: ChatRequest, outputMax: number | undefined): ReasoningEffort | undefined {
  const reasoning = request.reasoning;
  if (reasoning?.enabled === false) return 'none';
  const named = reasoning?.effort ?? request.reasoning_effort;
  if (named != null) return named;
  if (reasoning?.max_tokens != null) {
    const bound = request.max_completion_tokens ?? request.max_tokens ?? outputMax;
    return bound == null ? 'medium' : effortOfShare(reasoning.max_tokens / bound);
  }
  return reasoning?.enabled ? 'medium' : undefined;
}

/** The share of the output bound for an effort's budget; at least 5 % is left for the answer. */
export function shareOf(effort: ReasoningEffort): number {
  return Math.min(EFFORTS.find(([name]) => name === effort)?.[1] ?? 0, 0.95);
}

/** The effort whose share is closest to `share`. */
function effortOfShare(share: number): ReasoningEffort {
  let best = EFFORTS[1]!;
  for (const candidate of EFFORTS.slice(1, -1)) {
    if (Math.abs(candidate[1] - share) < Math.abs(best[1] - share)) best = candidate;
  }
  return best[0];
}

/** The effort if the model accepts it or its efforts are unknown, else the nearest accepted one; never `none` for another effort if avoidable. */
export function nearestOf(accepted: readonly string[] | undefined, effort: ReasoningEffort): string {
  if (accepted === undefined || accepted.length === 0 || accepted.includes(effort)) return effort;
  const levels = accepted.filter((name) => name !== 'none');
  const known = levels.length > 0 ? levels : accepted;
  const rank = (name: string): number => EFFORTS.findIndex(([candidate]) => candidate === name);
  const target = rank(effort);
  let best = known[0]!;
  for (const candidate of known) {
    if (Math.abs(rank(candidate) - target) < Math.abs(rank(best) - target)) best = candidate;
  }
  return best;
}
