import type { ChatRequest, ReasoningEffort } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { type Encoding, tell } from './encoding.ts';

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

/** Writes the reasoning wish in the upstream's own way. `exclude` stays here: the gateway hides, the journal keeps. */
export function encodeReasoning(encoding: Encoding, body: JsonObject): void {
  const { request, endpoint, quirks } = encoding;
  const effort = effortOf(request, endpoint.max_completion_tokens);
  if (effort === undefined) return;
  const field = quirks.reasoning_field ?? 'reasoning_effort';
  const told = request.reasoning == null ? 'reasoning_effort' : 'reasoning';
  if (field === 'none' || quirks.refused_parameters?.includes(field)) {
    tell(encoding, 'dropped', told, `${endpoint.provider} has no such option for this model`);
  } else if (field === 'reasoning') {
    const { exclude: _hidden, ...wish } = request.reasoning ?? { effort };
    body['reasoning'] = wish as JsonObject;
  } else if (field === 'thinking') {
    if (effort !== 'none' && request.reasoning?.enabled !== true) {
      tell(encoding, 'changed', told, 'the model’s thinking is on or off, without degrees');
    }
    // A client that speaks the upstream's own field knows better.
    body['thinking'] ??= { type: effort === 'none' ? 'disabled' : 'enabled' };
  } else if (field === 'enable_thinking') {
    body['enable_thinking'] ??= effort !== 'none';
    const budget = request.reasoning?.max_tokens;
    if (budget != null && effort !== 'none') body['thinking_budget'] ??= budget;
  } else {
    body['reasoning_effort'] = nearestEffort(encoding, effort, told);
  }
}

function effortOf(request: ChatRequest, most: number | undefined): ReasoningEffort | undefined {
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

/** The effort whose share of the output is closest to the asked one. */
function effortOfShare(share: number): ReasoningEffort {
  let best = EFFORTS[1]!;
  for (const candidate of EFFORTS.slice(1, -1)) {
    if (Math.abs(candidate[1] - share) < Math.abs(best[1] - share)) best = candidate;
  }
  return best[0];
}

function nearestEffort(encoding: Encoding, effort: ReasoningEffort, told: string): string {
  const known = encoding.quirks.reasoning_efforts;
  if (known === undefined || known.length === 0 || known.includes(effort)) return effort;
  const rank = (name: string): number => EFFORTS.findIndex(([candidate]) => candidate === name);
  const wanted = rank(effort);
  let best = known[0]!;
  for (const candidate of known) {
    if (Math.abs(rank(candidate) - wanted) < Math.abs(rank(best) - wanted)) best = candidate;
  }
  tell(encoding, 'clamped', told, `the model takes ${known.join(', ')}; sent ${best}`);
  return best;
}
