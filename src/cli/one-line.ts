/** Characters that end a line, move a cursor or change the direction of writing. Not the joiners, which letters and emoji need. */
const INVISIBLE = /(?![\u200c\u200d])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** A text as one line that is safe on a terminal: names may come from anybody, for example from an application. */
export function oneLine(text: string): string {
  return text.replace(INVISIBLE, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`);
}
