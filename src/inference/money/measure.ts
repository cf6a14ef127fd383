import { inTurns } from '../../http/in-turns.ts';
import { limits } from '../../limits.ts';
import type { PreparedAttempt } from '../attempt/prepare-attempt.ts';
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

/** Our estimate is off by at most a quarter of a tokenizer's count. */
export const ESTIMATE_MARGIN = 1.25;

/** The longest token of the vocabularies: a run of spaces. */
export const TOKEN_BYTES_MAX = 128;

/** The most UTF-8 bytes of a UTF-16 unit. */
export const UTF8_BYTES_MAX = 3;

/** The measure of an attempt whose cost a tokenizer cannot bound more tightly. */
export function fixedMeasure(exposure: WorstCaseCost, leastTokens = 0): Measured {
  return { exposure, floor: () => exposure, least_tokens: leastTokens, count: async () => undefined };
}

/**
 * Measures chat attempts by their bytes, each of which is at most one token; in soft mode by our estimate. `count` is a tighter bound by
 * a tokenizer, if there is one, and `floor` its lowest result. Long media are read in slices, with other requests served in between.
 */
export function createMeasure(tokenizer: Tokenizer): Measure<PreparedAttempt> {
  const leastOf = ({ dialect, encoded, request }: PreparedAttempt) => dialect.facts.leastOutput(encoded.body, request);

  function byBytes(prepared: PreparedAttempt, outputTokens: number, media: Media): Measured {
    const exposureFor = (textTokens: number) =>
      exposureOf(prepared, promptTokens(prepared, textTokens, media), outputTokens);
    const bytes = textBytes(prepared, media);
    const exposure = exposureFor(bytes);
    return {
      exposure,
      least_tokens: leastOf(prepared),
      floor: () => exposureFor(Math.floor(bytes / TOKEN_BYTES_MAX)),
      async count(): Promise<WorstCaseCost | undefined> {
        // Too long for the tokenizer, whatever its characters are.
        if (bytes > limits.tokenized_chars_max * UTF8_BYTES_MAX) return undefined;
        const text = (await inTurns(textSteps(prepared, media)))!;
        const tokens = await tokenizer.count(text, prepared.candidate);
        return tokens === undefined || tokens >= bytes ? undefined : exposureFor(tokens);
      },
    };
  }

  return (prepared, outputTokens, mode) => {
    if (mode === 'soft') {
      const text = Math.ceil(estimatePrompt(prepared.request) * ESTIMATE_MARGIN);
      return fixedMeasure(exposureOf(prepared, { text, image: 0, audio: 0 }, outputTokens), leastOf(prepared));
    }
    if (typeof prepared.payload === 'string') return byBytes(prepared, outputTokens, mediaOf(prepared));
    return inTurns(mediaSteps(prepared)).then((media) => byBytes(prepared, outputTokens, media!));
  };
}
