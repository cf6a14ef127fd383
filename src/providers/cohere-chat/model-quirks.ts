import type { Quirks } from '../quirks.ts';

/** What a model's name tells: those that think take their thoughts back (https://docs.cohere.com/docs/reasoning). */
export function cohereModelQuirks(upstreamModel: string): Quirks {
  return /reasoning|command-a-plus/.test(upstreamModel) ? { replay_reasoning: 'thinking_part' } : {};
}
