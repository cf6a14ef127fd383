import type { Quirks } from '../quirks.ts';

/** The quirks that a model's name implies: models that think accept their thinking back (https://docs.cohere.com/docs/reasoning). */
export function cohereModelQuirks(upstreamModel: string): Quirks {
  return /reasoning|command-a-plus/.test(upstreamModel) ? { replay_reasoning: 'thinking_part' } : {};
}
