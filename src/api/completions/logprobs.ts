import { asArray, asObject, asText } from '../../providers/shared/json-shape.ts';
import { append } from '../../schemas/append.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';

/** Tokens of a whole answer that are converted before other requests are served. */
const CONVERTED_TOKENS = 1_000;

/** Log probabilities in the form of legacy completions: one array per property. */
export interface CompletionLogprobs {
  tokens: string[];
  token_logprobs: (number | null)[];
  /** The most likely tokens at each position, including the chosen one. */
  top_logprobs: Record<string, number | null>[];
  /** The offset of each token, in characters. */
  text_offset: number[];
}

function charsOf(text: string): number {
  let chars = 0;
  for (const _ of text) chars += 1;
  return chars;
}

/** A JSON value if it is a number, otherwise null. */
function numberOf(value: JsonValue | undefined): number | null {
  return typeof value === 'number' ? value : null;
}

const contentOf = (chatLogprobs: JsonValue | undefined) => asObject(chatLogprobs)?.['content'];

/** Converts log probabilities of chat, chunk by chunk. Offsets continue over chunks. */
export function createLogprobs(): (chatLogprobs: JsonValue | undefined) => CompletionLogprobs | null {
  let offset = 0;
  return (chatLogprobs) => {
    const content = contentOf(chatLogprobs);
    if (!Array.isArray(content)) return null;
    const converted: CompletionLogprobs = { tokens: [], token_logprobs: [], top_logprobs: [], text_offset: [] };
    for (const entry of content) {
      const { token: sent, logprob: sentNumber, top_logprobs }: JsonObject = asObject(entry) ?? {};
      const token = asText(sent);
      const logprob = numberOf(sentNumber);
      const alternatives = asArray(top_logprobs).map((other) => asObject(other) ?? {});
      converted.tokens.push(token);
      converted.token_logprobs.push(logprob);
      converted.top_logprobs.push({
        ...Object.fromEntries(alternatives.map((other) => [asText(other['token']), numberOf(other['logprob'])])),
        [token]: logprob,
      });
      converted.text_offset.push(offset);
      offset += charsOf(token);
    }
    return converted;
  };
}

/** Converts those of a whole answer. Yields between many tokens. */
export function* wholeLogprobs(
  chatLogprobs: JsonValue | undefined,
): Generator<void, CompletionLogprobs | null, undefined> {
  const convert = createLogprobs();
  const content = contentOf(chatLogprobs);
  if (!Array.isArray(content) || content.length <= CONVERTED_TOKENS) return convert(chatLogprobs);
  const all: CompletionLogprobs = { tokens: [], token_logprobs: [], top_logprobs: [], text_offset: [] };
  for (let at = 0; at < content.length; at += CONVERTED_TOKENS) {
    const { tokens, token_logprobs, top_logprobs, text_offset } = convert({
      content: content.slice(at, at + CONVERTED_TOKENS),
    })!;
    append(all.tokens, tokens);
    append(all.token_logprobs, token_logprobs);
    append(all.top_logprobs, top_logprobs);
    append(all.text_offset, text_offset);
    yield;
  }
  return all;
}
