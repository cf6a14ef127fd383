/** What ends a line, moves a cursor or turns the direction of writing. Not the joiners, which letters and emoji need. */
const UNSEEN = /(?![\u200c\u200d])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** A text as one line that is safe on a terminal: names come from whoever made the thing, such as an application that a user let in. */
export function oneLine(text: string): string {
  return text.replace(UNSEEN, (unseen) => `\\u{${unseen.codePointAt(0)?.toString(16)}}`);
}
