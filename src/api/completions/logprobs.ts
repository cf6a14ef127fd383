import type { JsonValue } from '../../schemas/json.ts';

interface TokenLogprob {
  token: string;
  logprob: number;
  top_logprobs?: { token: string; logprob: number }[];
}

/** Log probabilities in the form of legacy completions: one array per property. */
export interface CompletionLogprobs {
  tokens: string[];
  token_logprobs: number[];
  /** The most likely tokens at each position, including the chosen one. */
  top_logprobs: Record<string, number>[];
  /** The offset of each token, in characters. */
  text_offset: number[];
}

function charsOf(text: string): number {
  let chars = 0;
  for (const _ of text) chars += 1;
  return chars;
}

/** Converts log probabilities of chat, chunk by chunk. Offsets continue over chunks. */
export function createLogprobs(): (chatLogprobs: JsonValue | undefined) => CompletionLogprobs | null {
  let offset = 0;
  return (chatLogprobs) => {
    const content = (chatLogprobs as { content?: TokenLogprob[] | null } | null | undefined)?.content;
    if (!Array.isArray(content)) return null;
    const converted: CompletionLogprobs = { tokens: [], token_logprobs: [], top_logprobs: [], text_offset: [] };
    for (const { token, logprob, top_logprobs } of content) {
      converted.tokens.push(token);
      converted.token_logprobs.push(logprob);
      converted.top_logprobs.push({
        ...Object.fromEntries((top_logprobs ?? []).map((top) => [top.token, top.logprob])),
        [token]: logprob,
      });
      converted.text_offset.push(offset);
      offset += charsOf(token);
    }
    return converted;
  };
}
