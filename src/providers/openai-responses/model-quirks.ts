import type { Quirks } from '../quirks.ts';

/** Models that do not think and refuse requests for their reasoning (https://platform.openai.com/docs/models). */
const UNTHINKING = /^(?:openai[./])?(?:gpt-3|gpt-4|chatgpt-4|gpt-5(?:\.\d+)?-chat)/;

/** The quirks that an upstream model's name implies. */
export function responsesModelQuirks(upstreamModel: string): Quirks {
  return UNTHINKING.test(upstreamModel) ? { no_encrypted_reasoning: true } : {};
}
