import type { Span } from '../finding.ts';
import { isDigit, isGluedLeft, isHex, isWord, wordsBefore } from './chars.ts';
import { gaps, type NumberRun } from './number-run.ts';

/** Labels after which four numbers are not an address. */
const VERSION_BEFORE =
  /(?:\b(?:version|ver|v|release|build|section|sect?|chapter|clause|article|figure|fig|table|rev)\.?|§) ?[#:]? ?$/i;
const PRODUCT_BEFORE = /(?:^|[\s"'(;])[A-Z][A-Za-z]{2,20}\/$/;
/** The end of a word, with at most one space or sign after it. */
const NAMED = /[A-Za-z§.][ #:/]?$|^[#:] $/;
const UNDERSCORE = 0x5f;

const isByte = (run: NumberRun, index: number) => {
  const size = run.size(index);
  return size > 0 && size < 4 && Number(run.number(index, index)) < 256;
};

/** The IPv4 address that starts with a group of digits. */
export function ipv4At(run: NumberRun, first: number): Span | undefined {
  for (let index = first; index < first + 3; index += 1) if (run.gap(index) !== gaps.dot) return undefined;
  if (run.gap(first - 1) === gaps.dot || run.gap(first + 3) === gaps.dot) return undefined;
  for (let index = first; index < first + 4; index += 1) if (!isByte(run, index)) return undefined;
  const { text } = run;
  const [start, end] = [run.start(first), run.end(first + 3)];
  const next = text.charCodeAt(end);
  if (isGluedLeft(text, start) && text.charCodeAt(start - 1) !== UNDERSCORE) return undefined;
  if (isWord(next) && next !== UNDERSCORE) return undefined;
  // Fast path: no label can precede.
  if (!NAMED.test(text.slice(Math.max(0, start - 2), start))) return { start, end };
  const before = wordsBefore(text, start);
  if (VERSION_BEFORE.test(before)) return undefined;
  // `Chrome/120.0.0.0` in user agents.
  if (PRODUCT_BEFORE.test(before) && text.slice(start, end).endsWith('.0.0.0')) return undefined;
  return { start, end };
}

const COLON = 0x3a;
const DOT = 0x2e;
const IPV6_CHARS_MAX = 45;
const ZONE = /^%[a-z\d][\w.-]{0,15}/i;
const IPV4 = /^(?:\d{1,3}\.){3}\d{1,3}$/;
const EUI64 = /^(?:[\da-f]{2}:){7}[\da-f]{2}$/i;

function isIpv6(text: string): boolean {
  const halves = text.split('::');
  if (halves.length > 2) return false;
  let count = 0;
  let hasDigit = false;
  const parts = halves.map((half) => (half === '' ? [] : half.split(':')));
  for (const [side, groups] of parts.entries()) {
    for (const [index, group] of groups.entries()) {
      const isLast = side === parts.length - 1 && index === groups.length - 1;
      if (isLast && IPV4.test(group)) {
        if (group.split('.').some((byte) => Number(byte) > 255)) return false;
        count += 2;
        hasDigit = true;
        continue;
      }
      if (!/^[\da-f]{1,4}$/i.test(group)) return false;
      hasDigit ||= /\d/.test(group);
      count += 1;
    }
  }
  // `abc::def` without digits and with few groups is a name in source code.
  if (halves.length === 2) return count < 8 && count > 0 && (hasDigit || count > 2);
  return count === 8 && !EUI64.test(text);
}

const SLICE = /^(?:[\w)\]]\[|,.?|.,)?\d*::\d*$/;

/** The IPv6 address whose first colon is at an offset. */
export function ipv6At(text: string, colon: number): Span | undefined {
  let start = colon;
  while (start > colon - 4 && isHex(text.charCodeAt(start - 1))) start -= 1;
  const before = text.charCodeAt(start - 1);
  const beyond = text.charCodeAt(start - 2);
  // A colon before the address ends a label (`ip:fe80::1`) or belongs to a longer sequence.
  if (before === COLON ? beyond === COLON || isHex(beyond) : isGluedLeft(text, start)) return undefined;
  if (before === DOT && isDigit(beyond)) return undefined;
  let end = colon;
  let colons = 0;
  let isDouble = false;
  for (; end - start <= IPV6_CHARS_MAX; end += 1) {
    const unit = text.charCodeAt(end);
    if (unit === COLON) {
      isDouble ||= end > colon && text.charCodeAt(end - 1) === COLON;
      colons += 1;
    } else if (!isHex(unit) && unit !== DOT) break;
  }
  while (text.charCodeAt(end - 1) === DOT) end -= 1;
  // A single colon after an address is punctuation.
  if (text.charCodeAt(end - 1) === COLON && text.charCodeAt(end - 2) !== COLON) {
    end -= 1;
    colons -= 1;
  }
  if (end <= colon || (!isDouble && colons !== 7 && colons !== 6)) return undefined;
  if (isWord(text.charCodeAt(end)) || !isIpv6(text.slice(start, end))) return undefined;
  // `x[::2]` and `x[:, 1::2]` are slices of arrays.
  if (text.charAt(end) === ']' && SLICE.test(text.slice(Math.max(0, start - 2), end))) return undefined;
  const zone = ZONE.exec(text.slice(end, end + 18))?.[0] ?? '';
  return { start, end: end + zone.length };
}

const TAIL_CHARS = 46;
const ZONE_CHARS_MAX = 16;
const ZONE_TAIL = /%[\w.-]{0,16}$/;

/** The start of an IPv6 address that may continue after the end of a folded text. */
export function ipv6HeldFrom(text: string): number {
  const { length } = text;
  const tail = text.slice(-1 - ZONE_CHARS_MAX);
  const zone = tail.includes('%') ? ZONE_TAIL.exec(tail)?.index : undefined;
  const end = zone === undefined ? length : length - tail.length + zone;
  let from = end;
  while (from > 0 && end - from < TAIL_CHARS) {
    const unit = text.charCodeAt(from - 1);
    if (unit !== COLON && unit !== DOT && !isHex(unit)) break;
    from -= 1;
  }
  return from;
}
