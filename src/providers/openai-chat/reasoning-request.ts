import type { ReasoningEffort } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { effortOf, nearestOf } from '../shared/reasoning-effort.ts';
import { type Encoding, tell } from './encoding.ts';

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
  } else if (field === 'thinking' || field === 'thinking_effort') {
    const hasDegrees = field === 'thinking_effort';
    if (hasDegrees && effort !== 'none') body['reasoning_effort'] ??= nearestEffort(encoding, effort, told);
    if (!hasDegrees && effort !== 'none' && request.reasoning?.enabled !== true) {
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

/** The effort itself, or the nearest one that the model takes. */
function nearestEffort(encoding: Encoding, effort: ReasoningEffort, told: string): string {
  const known = encoding.quirks.reasoning_efforts;
  const best = nearestOf(known, effort);
  if (best !== effort) tell(encoding, 'clamped', told, `the model takes ${known?.join(', ')}; sent ${best}`);
  return best;
}
