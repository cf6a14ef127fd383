import type { Places } from './places.ts';

/** The part of one text that is decoded. */
const INJECTION_DECODED_CHARS_MAX = 256 * 1024;

/** A stretch of a text and its decoded form. */
export interface DecodedStretch {
  start: number;
  end: number;
  decoded: string;
  pattern: 'base64_injection' | 'hex_injection' | 'hidden_characters';
}

/** Decoded first: most data that is not text shows in this many characters. */
const PROBE_CHARS = 64;
/** Wrapped lines of base64 have 64 or 76 characters (RFC 1421 and 2045). */
const WRAPPED_CHARS_MIN = 60;

/** Decodes the possibly encoded stretches that are text, up to a total number of characters. */
export function* decodedStretches(text: string, places: Places): Generator<DecodedStretch> {
  let remaining = INJECTION_DECODED_CHARS_MAX;
  for (const stretch of stretchesOf(text, places)) {
    const decoded = stretch.decode(text.slice(stretch.start, Math.min(stretch.end, stretch.start + remaining)));
    if (decoded === undefined) continue;
    const { start, end, pattern } = stretch;
    yield { start, end, pattern, decoded };
    remaining -= Math.min(remaining, end - start);
    if (remaining === 0) return;
  }
}

interface Stretch extends Pick<DecodedStretch, 'start' | 'end' | 'pattern'> {
  decode(code: string): string | undefined;
}

function* stretchesOf(text: string, { packed, numbers, tags }: Places): Generator<Stretch> {
  for (let at = 0; at < packed.length; at += 2) {
    const start = packed[at] ?? 0;
    let end = packed[at + 1] ?? 0;
    if (end - start >= WRAPPED_CHARS_MIN) {
      end = afterLines(text, end);
      while ((packed[at + 2] ?? end) < end) at += 2;
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

const NEXT_LINE = /\r?\n[\w+/-]{1,100}(?!\w)/y;

function afterLines(text: string, from: number): number {
  for (let end = from; ; end = NEXT_LINE.lastIndex) {
    NEXT_LINE.lastIndex = end;
    if (!NEXT_LINE.test(text)) return end;
  }
}

function isHex(text: string, start: number, end: number): boolean {
  return /^(?:0x)?[0-9a-f]+$/i.test(text.slice(start, Math.min(end, start + PROBE_CHARS)));
}

/** Tries all four alignments: a slice of base64 may start within a group of four. */
function fromBase64(code: string): string | undefined {
  for (let skipped = 0; skipped < 4; skipped += 1) {
    if (!beginsAsText(code, skipped)) continue;
    const probe = Buffer.from(code.slice(skipped, skipped + PROBE_CHARS), 'base64');
    if (textOf(probe) === undefined) continue;
    const decoded = textOf(Buffer.from(code.slice(skipped), 'base64'));
    if (decoded !== undefined) return decoded;
  }
  return undefined;
}

/** Enough bytes to exclude most names and paths, which look like base64 but decode to control characters or invalid UTF-8. */
const FIRST_BYTES = 9;

const SEXTETS = new Uint8Array(128);
for (const [value, sign] of [...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'].entries()) {
  SEXTETS[sign.charCodeAt(0)] = value;
}
SEXTETS[0x2d] = 62;
SEXTETS[0x5f] = 63;

function beginsAsText(code: string, from: number): boolean {
  let bits = 0;
  let value = 0;
  let bytes = 0;
  let toFollow = 0;
  let zeros = 0;
  for (let at = from; at < code.length && bytes < FIRST_BYTES; at += 1) {
    value = ((value << 6) | (SEXTETS[code.charCodeAt(at)] ?? 0)) & 0xffff;
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    const byte = (value >> bits) & 0xff;
    bytes += 1;
    if (toFollow > 0) {
      if ((byte & 0xc0) !== 0x80) return false;
      toFollow -= 1;
    } else if (byte === 0 && bytes % 2 === 0) zeros += 1;
    else if (byte < 9 || (byte > 13 && byte < 32) || byte === 0x7f || (byte & 0xc0) === 0x80 || byte > 0xf4)
      return false;
    else if (byte >= 0xc0) toFollow = byte >= 0xf0 ? 3 : byte >= 0xe0 ? 2 : 1;
  }
  return zeros === 0 || zeros >= bytes >> 1;
}

/** Whether hexadecimal can start as text: neither with control characters nor with continuation bytes. */
function hexBeginsAsText(code: string): boolean {
  const from = code[1] === 'x' || code[1] === 'X' ? 2 : 0;
  for (let byte = 0; byte < FIRST_BYTES; byte += 1) {
    const high = Number.parseInt(code[from + 2 * byte] ?? '2', 16);
    const low = code[from + 2 * byte + 1] ?? '0';
    if (high >= 0xc) return true;
    const isZero = high === 0 && low === '0' && byte % 2 === 1;
    if (high > 7 || high === 1 || (high === 0 && !isZero && !'9aAdD'.includes(low))) return false;
  }
  return true;
}

function fromHex(code: string): string | undefined {
  if (!hexBeginsAsText(code)) return undefined;
  return textOf(Buffer.from(code.replace(/^0x/i, '').replace(/\s/g, ''), 'hex'));
}

/** Decodes groups of two hexadecimal digits, with or without a prefix, groups of binary digits, or character codes. */
function fromNumbers(code: string): string | undefined {
  const isLong = code.length > PROBE_CHARS;
  // A cut group would decode to another character.
  if (isLong && fromGroups(code.slice(0, PROBE_CHARS).replace(/[0-9a-z]+$/i, '')) === undefined) return undefined;
  return fromGroups(code);
}

function fromGroups(code: string): string | undefined {
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

/** Tag characters are shifted ASCII (Unicode, block Tags). */
function fromTags(code: string): string | undefined {
  const units = [...code].map((tag) => String.fromCharCode((tag.codePointAt(0) ?? 0) - 0xe0000));
  return units.join('');
}

const TRAILING_HALF = /\ufffd{1,3}$/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: detects bytes that are not text
const NO_TEXT = /[\0-\x08\x0e-\x1f\x7f\ufffd]/;

/** Decodes bytes as text. Undefined if they are not text. A character at the end may be cut. */
function textOf(bytes: Buffer): string | undefined {
  // UTF-16, which PowerShell accepts: every other byte is zero.
  const isWide = bytes.length >= 8 && bytes[1] === 0 && bytes[3] === 0 && bytes[5] === 0;
  const text = (isWide ? bytes.toString('utf16le') : bytes.toString('utf8')).replace(TRAILING_HALF, '');
  return text.length < 6 || NO_TEXT.test(text) ? undefined : text;
}
