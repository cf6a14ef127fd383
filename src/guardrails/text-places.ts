/**
 * How a text may be changed. `text`: it may be rewritten. `link`: an id that appears in several places and may be replaced
 * by the same id everywhere. `pinned`: a name or address that would be invalid if changed. `json`:
 * JSON text whose strings, names and numbers may be rewritten one by one.
 */
export type TextKind = 'text' | 'link' | 'pinned' | 'json';

/** The position of a text in a request or answer. */
export interface Place {
  /** Path in the inner language, such as `messages[0].content[1].text`. */
  field: string;
  kind: TextKind;
  /** Number of the run: texts of one run follow each other and a model reads them as one text. */
  run?: number;
}

/** Called with each text and its place. Returns the text to write there, usually the same. */
export type Visit = (text: string, place: Place) => string;
