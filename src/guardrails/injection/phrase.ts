/** A phrase, as the rules are written: how its words follow each other in the line of a reading. */
export interface PhraseDraft {
  /** What it is an instance of. */
  pattern: string;
  /** A line without one of these is not searched. */
  needs: string;
  phrases: readonly string[];
  /** Developers say it of their own work as well: it does not count where it is asked how something is done. */
  is_common?: boolean;
  /** The text itself says this as well, where small and large letters differ. */
  spelled?: RegExp;
}

/** Up to so many words, within a sentence. */
export const gap = (wordsMax: number) => `(?: [^ .]{1,40}){0,${wordsMax}}`;

/** One of these words or phrases. */
export const one = (words: string) => ` (?:${words})`;

/** Up to so many of these words. */
export const upTo = (wordsMax: number, words: string) => `(?: (?:${words})){0,${wordsMax}}`;
