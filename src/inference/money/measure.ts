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

function leastOf({ dialect, encoded, request }: PreparedAttempt): number {
  return dialect.facts.leastOutput(encoded.body, request);
}

/** An attempt measured by its bytes. A class and not closures: most attempts of callers with limits have one. */
class MeasuredByBytes implements Measured {
  readonly exposure: WorstCaseCost;
  readonly least_tokens: number;
  readonly #tokenizer: Tokenizer;
  readonly #prepared: PreparedAttempt;
  readonly #outputTokens: number;
  readonly #media: Media;
  readonly #bytes: number;

  constructor(tokenizer: Tokenizer, prepared: PreparedAttempt, outputTokens: number, media: Media) {
    this.#tokenizer = tokenizer;
    this.#prepared = prepared;
    this.#outputTokens = outputTokens;
    this.#media = media;
    this.#bytes = textBytes(prepared, media);
    this.exposure = this.#exposureFor(this.#bytes);
    this.least_tokens = leastOf(prepared);
  }

  #exposureFor(textTokens: number): WorstCaseCost {
    return exposureOf(this.#prepared, promptTokens(this.#prepared, textTokens, this.#media), this.#outputTokens);
  }

  floor(): WorstCaseCost {
    return this.#exposureFor(Math.floor(this.#bytes / TOKEN_BYTES_MAX));
  }

  async count(): Promise<WorstCaseCost | undefined> {
    // Too long for the tokenizer, whatever its characters are.
    if (this.#bytes > limits.tokenized_chars_max * UTF8_BYTES_MAX) return undefined;
    const text = (await inTurns(textSteps(this.#prepared, this.#media)))!;
    const tokens = await this.#tokenizer.count(text, this.#prepared.candidate);
    return tokens === undefined || tokens >= this.#bytes ? undefined : this.#exposureFor(tokens);
  }
}

/**
 * Measures chat attempts by their bytes, each of which is at most one token; in soft mode by our estimate. `count` is a tighter bound by
 * a tokenizer, if there is one, and `floor` its lowest result. Long media are read in slices, with other requests served in between.
 */
export function createMeasure(tokenizer: Tokenizer): Measure<PreparedAttempt> {
  return (prepared, outputTokens, mode) => {
    if (mode === 'soft') {
      const text = Math.ceil(estimatePrompt(prepared.request) * ESTIMATE_MARGIN);
      return fixedMeasure(exposureOf(prepared, { text, image: 0, audio: 0 }, outputTokens), leastOf(prepared));
    }
    if (typeof prepared.payload === 'string') {
      return new MeasuredByBytes(tokenizer, prepared, outputTokens, mediaOf(prepared));
    }
    return inTurns(mediaSteps(prepared)).then(
      (media) => new MeasuredByBytes(tokenizer, prepared, outputTokens, media!),
    );
  };
}
