import { isUtf8 } from 'node:buffer';

/** The form of UTF-16 that the bytes of a text file have, by their byte order mark or by two letters of ASCII at their beginning. */
export function wideForm([a, b, c, d]: Buffer): 'utf-16le' | 'utf-16be' | undefined {
  if ((a === 0xff && b === 0xfe) || (a && b === 0 && c && d === 0)) return 'utf-16le';
  if ((a === 0xfe && b === 0xff) || (a === 0 && b && c === 0 && d)) return 'utf-16be';
  return undefined;
}

/**
 * What the bytes of a text file say, without a byte order mark: UTF-8, UTF-16, or else what editors and spreadsheets of Windows
 * write (windows-1252). A UTF-8 character that is broken stays a replacement character.
 */
export function decodeText(bytes: Buffer): string {
  const wide = wideForm(bytes);
  if (wide !== undefined) return new TextDecoder(wide).decode(bytes);
  const text = new TextDecoder().decode(bytes);
  // Where a letter beyond ASCII was read, what was not is a broken one, and no other encoding.
  const is_utf8 = !text.includes('\ufffd') || isUtf8(bytes) || /[^\0-\x7f\ufffd]/.test(text);
  return is_utf8 ? text : new TextDecoder('windows-1252').decode(bytes);
}
