/** A text as detectors read it: look-alikes of ASCII digits, letters, dashes and spaces are ASCII, invisible characters are removed. */
export interface Folded {
  readonly text: string;
  /** The offset of each character in the source. Undefined if the offsets are the same. */
  readonly origins?: Uint32Array;
}

const SKIPPED = 1;
const SURROGATE = 2;
const ZERO = 0x30;
const DOT = 0x2e;

/** Ranges of invisible and combining characters and of variation selectors. */
const UNSEEN: readonly (readonly [number, number])[] = [
  [0xad, 0xad],
  [0x300, 0x36f],
  [0x61c, 0x61c],
  [0x115f, 0x1160],
  [0x17b4, 0x17b5],
  [0x180b, 0x180e],
  [0x200b, 0x200f],
  [0x202a, 0x202e],
  [0x2060, 0x206f],
  [0x20d0, 0x20f0],
  [0x3164, 0x3164],
  [0xfe00, 0xfe0f],
  [0xfe20, 0xfe2f],
  [0xfeff, 0xfeff],
  [0xffa0, 0xffa0],
];
const DASHES = '\u2010\u2011\u2012\u2013\u2014\u2015\u2043\u2212\ufe58\ufe63';
const SPACES = '\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000';
const DOTS = '\u2024\ufe52\uff61';
const COLONS = '\u02d0\ua789\ufe13\ufe55';
/** A Japanese long vowel mark, also used as a dash in telephone numbers. */
const VOWEL_MARK = 0x30fc;

/** For each UTF-16 code unit its replacement, or `SKIPPED` or `SURROGATE`. 0 if it is unchanged. */
function tableOfUnits(): Uint16Array {
  const table = new Uint16Array(0x10000);
  const digit = /\p{Nd}/u;
  for (let unit = 0x660, value = 0; unit < 0xff00; unit += 1) {
    // Digits stand in rows of ten (Unicode standard, chapter 4.6).
    if ((unit >= 0xd800 && unit < 0xe000) || !digit.test(String.fromCharCode(unit))) value = 0;
    else {
      table[unit] = ZERO + (value % 10);
      value += 1;
    }
  }
  for (let unit = 0x2460; unit <= 0x2468; unit += 1) table[unit] = ZERO + 1 + unit - 0x2460;
  table[0x24ea] = ZERO;
  for (let unit = 0xff01; unit <= 0xff5e; unit += 1) table[unit] = unit - 0xfee0;
  const read = (units: string, as: string) => {
    for (const unit of units) table[unit.charCodeAt(0)] = as.charCodeAt(0);
  };
  read(DASHES, '-');
  read(SPACES, ' ');
  read(DOTS, '.');
  read(COLONS, ':');
  read('\ufe6b', '@');
  read('\ufe62', '+');
  for (const [first, last] of UNSEEN) table.fill(SKIPPED, first, last + 1);
  table.fill(SURROGATE, 0xd800, 0xdc00);
  return table;
}

let unitTable: Uint16Array | undefined;

const NOT_ASCII = /[^\0-\x7f]/;
const isDigit = (unit: number) => unit >= ZERO && unit <= ZERO + 9;

/** The digit of a surrogate pair (mathematical and segmented digits), -2 for an invisible character (tags), -1 for all others. */
function pairOf(high: number, low: number): number {
  if (high === 0xd835 && low >= 0xdfce && low <= 0xdfff) return (low - 0xdfce) % 10;
  if (high === 0xd83e && low >= 0xdff0 && low <= 0xdff9) return low - 0xdff0;
  if (high === 0xdb40 && low <= 0xdfff) return -2;
  return -1;
}

const isNear = (text: string, at: number, reach: number, is: (unit: number) => boolean) => {
  for (let step = 1; step <= reach; step += 1) {
    if (is(text.charCodeAt(at - step)) || is(text.charCodeAt(at + step))) return true;
  }
  return false;
};
const isSeen = (unit: number) => unit > 0x20 && unit < 0x80;
const isAlnum = (unit: number) => isDigit(unit) || (unit >= 0x40 && unit < 0x7f);

/** Whether folding a unit can change a match: dashes, spaces and brackets can beside digits, invisible characters beside ASCII. */
function matters(text: string, at: number, unit: number, read: number): boolean {
  if (read === SURROGATE) return pairOf(unit, text.charCodeAt(at + 1)) !== -1;
  if (unit === VOWEL_MARK) return isNear(text, at, 1, isDigit);
  if (read === 0) return false;
  if (read === SKIPPED) return isNear(text, at, 1, isSeen);
  return read === DOT || isAlnum(read) || isNear(text, at, 2, isDigit);
}

/** The offset of the first character that must be folded. The length of the text if there is none. */
function firstChange(text: string, table: Uint16Array): number {
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    if (unit < 0x80) continue;
    const read = table[unit]!;
    if ((read !== 0 || unit === VOWEL_MARK) && matters(text, at, unit, read)) return at;
  }
  return text.length;
}

/** Folds a text for detectors. Most texts need no folding and are returned unchanged, at little cost. */
export function fold(text: string): Folded {
  if (!NOT_ASCII.test(text)) return { text };
  unitTable ??= tableOfUnits();
  const { length } = text;
  const first = firstChange(text, unitTable);
  if (first === length) return { text };
  const parts: string[] = [];
  let origins: Uint32Array | undefined;
  let count = 0;
  /** Start of the unchanged text that is not copied yet. */
  let from = 0;
  let last = -1;
  const pass = (to: number) => {
    if (to === from) return;
    parts.push(text.slice(from, to));
    if (origins !== undefined) for (let at = from; at < to; at += 1) origins[count + at - from] = at;
    count += to - from;
    last = text.charCodeAt(to - 1);
  };
  /** Replaces `width` units at an offset by one unit, or removes them. */
  const replace = (at: number, width: number, unit: number | undefined) => {
    pass(at);
    from = at + width;
    if (width !== 1 || unit === undefined) origins ??= identity(length + 1, count);
    if (unit === undefined) return;
    parts.push(String.fromCharCode(unit));
    if (origins !== undefined) origins[count] = at;
    count += 1;
    last = unit;
  };
  for (let at = first; at < length; at += 1) {
    const unit = text.charCodeAt(at);
    if (unit < 0x80) continue;
    const read = unitTable[unit]!;
    if (read === 0) {
      if (unit === VOWEL_MARK && isDigit(from < at ? text.charCodeAt(at - 1) : last)) replace(at, 1, 0x2d);
    } else if (read === SURROGATE) {
      const value = pairOf(unit, text.charCodeAt(at + 1));
      if (value === -1) continue;
      replace(at, 2, value < 0 ? undefined : ZERO + value);
      at += 1;
    } else replace(at, 1, read === SKIPPED ? undefined : read);
  }
  if (from === 0) return { text };
  pass(length);
  const folded = parts.join('');
  if (origins === undefined) return { text: folded };
  origins[count] = length;
  return { text: folded, origins: origins.subarray(0, count + 1) };
}

/** An array of offsets of which the first `known` are the identity. */
function identity(length: number, known: number): Uint32Array {
  const numbers = new Uint32Array(length);
  for (let at = 0; at < known; at += 1) numbers[at] = at;
  return numbers;
}

/** The source offset of an offset in a folded text. */
export function originOf({ origins }: Folded, at: number): number {
  return origins === undefined ? at : origins[at]!;
}

/** The source offset of an end in a folded text, before any invisible characters that follow it. */
export function endOrigin({ origins }: Folded, end: number, text: string): number {
  if (origins === undefined || end === 0) return end;
  const last = origins[end - 1]!;
  const isPair = (text.charCodeAt(last) & 0xfc00) === 0xd800 && (text.charCodeAt(last + 1) & 0xfc00) === 0xdc00;
  return last + (isPair && origins[end] !== last + 1 ? 2 : 1);
}
