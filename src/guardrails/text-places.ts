/**
 * What may become of a text. `text`: it may be rewritten. `link`: an id that stands in several places and may be another,
 * as long as it is the same everywhere. `pinned`: it names or points at something, and would name nothing when changed. `json`:
 * a text whose strings, names and numbers may be rewritten, each by itself.
 */
export type TextKind = 'text' | 'link' | 'pinned' | 'json';

/** Where a text stands. */
export interface Place {
  /** In the inner language, such as `messages[0].content[1].text`. */
  field: string;
  kind: TextKind;
  /** Texts of one run follow each other, and a model reads them as one. */
  run?: number;
}

/** Told every text in its place; gives the text that is to stand there, most often the same. */
export type Visit = (text: string, place: Place) => string;
