import type { Quirks } from '../provider.ts';

/** What a model's name tells: those that think take their thoughts back (https://docs.cohere.com/docs/reasoning). */
export function cohereModelQuirks(upstream_model: string): Quirks {
  return /reasoning|command-a-plus/.test(upstream_model) ? { replay_reasoning: 'thinking_part' } : {};
}
