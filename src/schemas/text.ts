import { invalidField } from '../errors.ts';

/** The rule for storable texts, which follows the name of the field. */
export const UNSTORABLE = 'must be text without NUL characters or lone surrogates';

/** Whether every store can hold a text unchanged: PostgreSQL accepts no NUL, and UTF-8 no lone surrogates. */
export function isStorable(text: string): boolean {
  return text.isWellFormed() && !text.includes('\u0000');
}

/** Throws a 400 that names the first of these fields whose text is not storable. */
export function checkStorable(texts: Readonly<Record<string, string | null | undefined>>): void {
  for (const field in texts) if (!isStorable(texts[field] ?? '')) throw invalidField(field, UNSTORABLE);
}

/** Lowers the letters A to Z only: other letters of Unicode have an ASCII lower case too, which would make two addresses equal. */
export function lowerAscii(text: string): string {
  return text.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
}
