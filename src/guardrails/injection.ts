/** A place that tries to take a model over (UTF-16 offsets, end exclusive), and what it looks like. */
export interface Injection {
  start: number;
  end: number;
  pattern: string;
}

const IGNORE =
  /\b(?:ignore|disregard|forget)\s{1,3}(?:(?:all|any|the|your|my|of)\s{1,3}){0,4}(?:previous|prior|above|earlier)\s{1,3}(?:instructions?|prompts?|rules)\b/gi;

/** What in a text tries to take a model over, in order of `start`. */
export function findInjections(text: string): Injection[] {
  return [...text.matchAll(IGNORE)].map((match) => ({
    start: match.index,
    end: match.index + match[0].length,
    pattern: 'ignore_previous_instructions',
  }));
}
