import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import { isObject } from './wire.ts';

/**
 * Token probabilities in the wire's own form; undefined if there are none. Together and Fireworks also send the lists
 * of the older completions API: `tokens`, `token_logprobs` and `top_logprobs` (https://docs.together.ai/docs/logprobs).
 */
export function logprobsOf(logprobs: JsonValue): JsonValue | undefined {
  if (!isObject(logprobs) || !Object.values(logprobs).some((member) => member !== null)) return undefined;
  const { tokens, token_logprobs: tokenLogprobs, top_logprobs: topLogprobs } = logprobs;
  if (!Array.isArray(tokens) || logprobs['content'] != null) return logprobs;
  const numbers = Array.isArray(tokenLogprobs) ? tokenLogprobs : [];
  const tops = Array.isArray(topLogprobs) ? topLogprobs : [];
  const content = tokens.flatMap((token, i): JsonObject[] => {
    const logprob = numbers[i];
    if (typeof token !== 'string' || typeof logprob !== 'number') return [];
    const top = isObject(tops[i]) ? Object.entries(tops[i]) : [];
    return [{ token, logprob, bytes: null, top_logprobs: top.flatMap(([name, value]) => alternative(name, value)) }];
  });
  return { content };
}

function alternative(token: string, logprob: JsonValue | undefined): JsonObject[] {
  return typeof logprob === 'number' ? [{ token, logprob, bytes: null }] : [];
}
