import type { JsonValue } from '../../schemas/json.ts';

interface TokenLogprob {
  token: string;
  logprob: number;
  top_logprobs?: { token: string; logprob: number }[];
}

/** Log probabilities in the form of legacy completions: one array a property. */
export interface CompletionLogprobs {
  tokens: string[];
  token_logprobs: number[];
  /** The likeliest tokens of each place, the one that was taken among them. */
  top_logprobs: Record<string, number>[];
  /** Where each token begins, in characters. */
  text_offset: number[];
}

function charsOf(text: string): number {
  let chars = 0;
  for (const _ of text) chars += 1;
  return chars;
}

/** Converts what chat answers tell, piece by piece: offsets go on from one piece to the next. */
export function createLogprobs(): (given: JsonValue | undefined) => CompletionLogprobs | null {
  let offset = 0;
  return (given) => {
    const content = (given as { content?: TokenLogprob[] | null } | null | undefined)?.content;
    if (!Array.isArray(content)) return null;
    const told: CompletionLogprobs = { tokens: [], token_logprobs: [], top_logprobs: [], text_offset: [] };
    for (const { token, logprob, top_logprobs } of content) {
      told.tokens.push(token);
      told.token_logprobs.push(logprob);
      told.top_logprobs.push({
        ...Object.fromEntries((top_logprobs ?? []).map((one) => [one.token, one.logprob])),
        [token]: logprob,
      });
      told.text_offset.push(offset);
      offset += charsOf(token);
    }
    return told;
  };
}
