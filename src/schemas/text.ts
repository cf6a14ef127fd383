import { invalidField } from '../errors.ts';

/** What is said of a text that is not storable, behind its field's name. */
export const UNSTORABLE = 'must be text without NUL characters or lone surrogates';

/** Whether every store keeps a text as it is: PostgreSQL takes no NUL, and UTF-8 has no lone surrogates. */
export function isStorable(text: string): boolean {
  return text.isWellFormed() && !text.includes('\u0000');
}

/** Throws a 400 that names the first of these fields whose text is not storable. */
export function checkStorable(texts: Readonly<Record<string, string | null | undefined>>): void {
  for (const field in texts) if (!isStorable(texts[field] ?? '')) throw invalidField(field, UNSTORABLE);
}

/** Lower case of A to Z and nothing else: Unicode has other letters whose lower case is one of these, so that two addresses would be one. */
export function lowerAscii(text: string): string {
  return text.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
}
