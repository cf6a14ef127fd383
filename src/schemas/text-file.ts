import { isUtf8 } from 'node:buffer';

/** Whether the bytes of a text file are UTF-16, by the byte order mark or two initial ASCII letters; undefined if not. */
export function wideForm([a, b, c, d]: Buffer): 'utf-16le' | 'utf-16be' | undefined {
  if ((a === 0xff && b === 0xfe) || (a && b === 0 && c && d === 0)) return 'utf-16le';
  if ((a === 0xfe && b === 0xff) || (a === 0 && b && c === 0 && d)) return 'utf-16be';
  return undefined;
}

/**
 * The text of a file, without a byte order mark: UTF-8, UTF-16, or else windows-1252, which Windows editors and spreadsheets write.
 * Broken UTF-8 sequences become replacement characters.
 */
export function decodeText(bytes: Buffer): string {
  const wide = wideForm(bytes);
  if (wide !== undefined) return new TextDecoder(wide).decode(bytes);
  const text = new TextDecoder().decode(bytes);
  // If any non-ASCII letter was decoded, the file is UTF-8 with broken sequences.
  const isValid = !text.includes('\ufffd') || isUtf8(bytes) || /[^\0-\x7f\ufffd]/.test(text);
  return isValid ? text : new TextDecoder('windows-1252').decode(bytes);
}
