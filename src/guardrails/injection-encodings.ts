import { limits } from '../limits.ts';
import type { Places } from './injection-places.ts';

/** What a stretch of a text says once it is decoded. */
export interface DecodedStretch {
  start: number;
  end: number;
  decoded: string;
  pattern: 'base64_injection' | 'hex_injection' | 'hidden_characters';
}

/** So much is decoded first: what is no text shows in it. */
const PROBE_CHARS = 64;
/** Lines of base64 are 64 or 76 characters long (RFC 1421 and 2045), and go on in the next one. */
const WRAPPED_CHARS_MIN = 60;

/** What of the stretches that may be encoded is text; at most so many characters in all. */
export function* decodedStretches(text: string, places: Places): Generator<DecodedStretch> {
  let left = limits.injection_decoded_chars_max;
  for (const stretch of stretchesOf(text, places)) {
    const decoded = stretch.decode(text.slice(stretch.start, Math.min(stretch.end, stretch.start + left)));
    if (decoded === undefined) continue;
    const { start, end, pattern } = stretch;
    yield { start, end, pattern, decoded };
    left -= Math.min(left, end - start);
    if (left === 0) return;
  }
}

interface Stretch extends Pick<DecodedStretch, 'start' | 'end' | 'pattern'> {
  decode(code: string): string | undefined;
}

function* stretchesOf(text: string, { packed, numbers, tags }: Places): Generator<Stretch> {
  for (let at = 0; at < packed.length; at += 2) {
    const start = packed[at] ?? 0;
    let end = packed[at + 1] ?? 0;
    while (end - start >= WRAPPED_CHARS_MIN && isNextLine(text, end, packed[at + 2])) {
      at += 2;
      end = packed[at + 1] ?? end;
    }
    if (isHex(text, start, end)) yield { start, end, pattern: 'hex_injection', decode: fromHex };
    else yield { start, end: afterPadding(text, end), pattern: 'base64_injection', decode: fromBase64 };
  }
  for (let at = 0; at < numbers.length; at += 2) {
    yield { start: numbers[at] ?? 0, end: numbers[at + 1] ?? 0, pattern: 'hex_injection', decode: fromNumbers };
  }
  for (let at = 0; at < tags.length; at += 2) {
    yield { start: tags[at] ?? 0, end: tags[at + 1] ?? 0, pattern: 'hidden_characters', decode: fromTags };
  }
}

function afterPadding(text: string, end: number): number {
  const [padding = ''] = /^={0,2}/.exec(text.slice(end, end + 2)) ?? [];
  return end + padding.length;
}

function isNextLine(text: string, end: number, next: number | undefined): boolean {
  return next !== undefined && next - end <= 2 && /^\r?\n$/.test(text.slice(end, next));
}

function isHex(text: string, start: number, end: number): boolean {
  return /^(?:0x)?[0-9a-f]+$/i.test(text.slice(start, Math.min(end, start + PROBE_CHARS)));
}

/** A slice that does not begin where a group of four does says something else: each beginning is tried. */
function fromBase64(code: string): string | undefined {
  for (let skipped = 0; skipped < 4; skipped += 1) {
    const probe = Buffer.from(code.slice(skipped, skipped + PROBE_CHARS), 'base64');
    if (textOf(probe) === undefined) continue;
    const decoded = textOf(Buffer.from(code.slice(skipped), 'base64'));
    if (decoded !== undefined) return decoded;
  }
  return undefined;
}

function fromHex(code: string): string | undefined {
  return textOf(Buffer.from(code.replace(/^0x/i, '').replace(/\s/g, ''), 'hex'));
}

/** Groups of two hexadecimal digits, with or without a prefix; or the numbers of characters. */
function fromNumbers(code: string): string | undefined {
  const groups = code.match(/[0-9a-z]+/gi) ?? [];
  const plain = groups.map((group) => group.replace(/^(?:0x|x|u00|u)/i, ''));
  if (plain.every((group) => /^[0-9a-f]{2}$/i.test(group))) {
    const decoded = textOf(Buffer.from(plain.join(''), 'hex'));
    if (decoded !== undefined) return decoded;
  }
  if (plain.every((group) => /^[01]{8}$/.test(group))) {
    return textOf(Buffer.from(plain.map((group) => Number.parseInt(group, 2))));
  }
  const codes = groups.map(Number);
  return codes.every((number) => number >= 9 && number < 127) ? textOf(Buffer.from(codes)) : undefined;
}

/** Tag characters are ASCII, moved (Unicode, block Tags). */
function fromTags(code: string): string | undefined {
  const units = [...code].map((tag) => String.fromCharCode((tag.codePointAt(0) ?? 0) - 0xe0000));
  return units.join('');
}

const TRAILING_HALF = /\ufffd{1,3}$/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: asks whether bytes are no text
const NO_TEXT = /[\0-\x08\x0e-\x1f\x7f\ufffd]/;

/** Bytes as a text; undefined: they are none. A character at the end may be cut. */
function textOf(bytes: Buffer): string | undefined {
  // UTF-16, as PowerShell takes it: every other byte is zero.
  const is_wide = bytes.length >= 8 && bytes[1] === 0 && bytes[3] === 0 && bytes[5] === 0;
  const text = (is_wide ? bytes.toString('utf16le') : bytes.toString('utf8')).replace(TRAILING_HALF, '');
  return text.length < 6 || NO_TEXT.test(text) ? undefined : text;
}
