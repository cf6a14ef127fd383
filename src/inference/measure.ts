import { limits } from '../limits.ts';
import type { Measure } from './admission.ts';
import type { PreparedAttempt } from './attempt.ts';
import { estimatePrompt } from './meter.ts';
import type { Tokenizer } from './tokenizer.ts';
import { type Exposure, exposureOf, mediaOf, promptTokens, textBytes, textOf } from './worst-case.ts';

/** Our count against a tokenizer's, where it is not wrong by more than a quarter. */
export const ESTIMATE_MARGIN = 1.25;

/** The longest token of the vocabularies that we count with is so many spaces. */
export const TOKEN_BYTES_MAX = 128;

/** A UTF-16 unit in UTF-8. */
export const UTF8_BYTES_MAX = 3;

/** How a chat attempt is measured. */
export function createMeasure(tokenizer: Tokenizer): Measure<PreparedAttempt> {
  /**
   * What the attempt may cost by its bytes, of which each is a token at most; in soft mode, what it will cost by our count.
   * `count` knows it better at a price, where it can; `floor` is what it may still cost then.
   */
  return (prepared, output_tokens, mode) => {
    const least_tokens = prepared.dialect.facts.leastOutput(prepared.encoded.body, prepared.request);
    if (mode === 'soft') {
      const text = Math.ceil(estimatePrompt(prepared.request) * ESTIMATE_MARGIN);
      const exposure = exposureOf(prepared, { text, image: 0, audio: 0 }, output_tokens);
      return { exposure, floor: () => exposure, least_tokens, count: async () => undefined };
    }
    const media = mediaOf(prepared);
    const exposureFor = (text_tokens: number) =>
      exposureOf(prepared, promptTokens(prepared, text_tokens, media), output_tokens);
    const bytes = textBytes(prepared, media);
    const exposure = exposureFor(bytes);
    return {
      exposure,
      least_tokens,
      floor: () => exposureFor(Math.floor(bytes / TOKEN_BYTES_MAX)),
      async count(): Promise<Exposure | undefined> {
        // More than is counted, whatever its characters are.
        if (bytes > limits.tokenized_chars_max * UTF8_BYTES_MAX) return undefined;
        const tokens = await tokenizer.count(textOf(prepared, media), prepared.candidate);
        return tokens === undefined || tokens >= bytes ? undefined : exposureFor(tokens);
      },
    };
  };
}
