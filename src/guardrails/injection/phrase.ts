/** A rule as written: the phrases that match in the line of a reading. */
export interface PhraseDraft {
  /** The family of injections. */
  pattern: string;
  /** A line without one of these is not searched. */
  needs: string;
  phrases: readonly string[];
  /** Developers also use the phrase for their own work: it does not count in a question of how something is done. */
  isCommon?: boolean;
  /** The source text must match this too, with case. */
  spelled?: RegExp;
}

/** Up to `wordsMax` words, within a sentence. */
export const gap = (wordsMax: number) => `(?: [^ .]{1,40}){0,${wordsMax}}`;

/** One of these words or phrases. */
export const one = (words: string) => ` (?:${words})`;

/** Up to `wordsMax` of these words. */
export const upTo = (wordsMax: number, words: string) => `(?: (?:${words})){0,${wordsMax}}`;
