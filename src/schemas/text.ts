/** Whether every store keeps a text as it is: PostgreSQL takes no NUL, and UTF-8 has no lone surrogates. */
export function isStorable(text: string): boolean {
  return text.isWellFormed() && !text.includes('\u0000');
}
