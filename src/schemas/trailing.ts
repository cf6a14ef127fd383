/** The length of a text without the given character at its end. Reads a long run once, which `/=+$/` does not. */
export function lengthWithout(text: string, character: string): number {
  let end = text.length;
  while (end > 0 && text[end - 1] === character) end -= 1;
  return end;
}
