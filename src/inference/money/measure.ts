import { inTurns } from '../../http/in-turns.ts';
import { limits } from '../../limits.ts';
import type { PreparedAttempt } from '../attempt/attempt.ts';
import type { Measure, Measured } from './admission.ts';
import { estimatePrompt } from './meter.ts';
import type { Tokenizer } from './tokenizer.ts';
import {
  exposureOf,
  type Media,
  mediaOf,
  mediaSteps,
  promptTokens,
  textBytes,
  textSteps,
  type WorstCaseCost,
} from './worst-case.ts';

/** Our count against a tokenizer's, where it is not wrong by more than a quarter. */
export const ESTIMATE_MARGIN = 1.25;

/** The longest token of the vocabularies that we count with is so many spaces. */
export const TOKEN_BYTES_MAX = 128;

/** A UTF-16 unit in UTF-8. */
export const UTF8_BYTES_MAX = 3;

/** How a chat attempt is measured. */
export function createMeasure(tokenizer: Tokenizer): Measure<PreparedAttempt> {
  const leastOf = ({ dialect, encoded, request }: PreparedAttempt) => dialect.facts.leastOutput(encoded.body, request);

  function byBytes(prepared: PreparedAttempt, output_tokens: number, media: Media): Measured {
    const exposureFor = (text_tokens: number) =>
      exposureOf(prepared, promptTokens(prepared, text_tokens, media), output_tokens);
    const bytes = textBytes(prepared, media);
    const exposure = exposureFor(bytes);
    return {
      exposure,
      least_tokens: leastOf(prepared),
      floor: () => exposureFor(Math.floor(bytes / TOKEN_BYTES_MAX)),
      async count(): Promise<WorstCaseCost | undefined> {
        // More than is counted, whatever its characters are.
        if (bytes > limits.tokenized_chars_max * UTF8_BYTES_MAX) return undefined;
        // It is always wanted.
        const text = (await inTurns(textSteps(prepared, media)))!;
        const tokens = await tokenizer.count(text, prepared.candidate);
        return tokens === undefined || tokens >= bytes ? undefined : exposureFor(tokens);
      },
    };
  }

  /**
   * What the attempt may cost by its bytes, of which each is a token at most; in soft mode, what it will cost by our count.
   * `count` knows it better at a price, where it can; `floor` is what it may still cost then. Long media are looked at with others served
   * in between.
   */
  return (prepared, output_tokens, mode) => {
    if (mode === 'soft') {
      const text = Math.ceil(estimatePrompt(prepared.request) * ESTIMATE_MARGIN);
      const exposure = exposureOf(prepared, { text, image: 0, audio: 0 }, output_tokens);
      return { exposure, floor: () => exposure, least_tokens: leastOf(prepared), count: async () => undefined };
    }
    if (typeof prepared.payload === 'string') return byBytes(prepared, output_tokens, mediaOf(prepared));
    // They are always wanted.
    return inTurns(mediaSteps(prepared)).then((media) => byBytes(prepared, output_tokens, media!));
  };
}
