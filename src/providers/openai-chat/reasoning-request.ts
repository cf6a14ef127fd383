import type { ReasoningEffort } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { effortOf, nearestOf } from '../shared/reasoning-effort.ts';
import { addReport, type Encoding } from './encoding.ts';

/** Writes the reasoning settings into the upstream's field. `exclude` is not sent: the gateway hides the reasoning itself. */
export function encodeReasoning(encoding: Encoding, body: JsonObject): void {
  const { request, endpoint, quirks } = encoding;
  const effort = effortOf(request, endpoint.max_completion_tokens);
  if (effort === undefined) return;
  const field = quirks.reasoning_field ?? 'reasoning_effort';
  const source = request.reasoning == null ? 'reasoning_effort' : 'reasoning';
  if (field === 'none' || quirks.refused_parameters?.includes(field)) {
    addReport(encoding, 'dropped', source, `${endpoint.provider} has no such option for this model`);
  } else if (field === 'reasoning') {
    const { exclude: _hidden, ...reasoning } = request.reasoning ?? { effort };
    body['reasoning'] = reasoning as JsonObject;
  } else if (field === 'thinking' || field === 'thinking_effort') {
    const hasDegrees = field === 'thinking_effort';
    if (hasDegrees && effort !== 'none') body['reasoning_effort'] ??= nearestEffort(encoding, effort, source);
    if (!hasDegrees && effort !== 'none' && request.reasoning?.enabled !== true) {
      addReport(encoding, 'changed', source, 'the model’s thinking is on or off, without degrees');
    }
    // A value in the upstream's own field takes precedence.
    body['thinking'] ??= { type: effort === 'none' ? 'disabled' : 'enabled' };
  } else if (field === 'enable_thinking') {
    body['enable_thinking'] ??= effort !== 'none';
    const budget = request.reasoning?.max_tokens;
    if (budget != null && effort !== 'none') body['thinking_budget'] ??= budget;
  } else {
    body['reasoning_effort'] = nearestEffort(encoding, effort, source);
  }
}

/** The effort, or the nearest one that the model accepts. */
function nearestEffort(encoding: Encoding, effort: ReasoningEffort, field: string): string {
  const known = encoding.quirks.reasoning_efforts;
  const best = nearestOf(known, effort);
  if (best !== effort) addReport(encoding, 'clamped', field, `the model accepts ${known?.join(', ')}; sent ${best}`);
  return best;
}
