import type { BoundGuardrail } from '../../schemas/guardrail.ts';
import { scannedSlugs } from '../detect/builtins.ts';
import type { Finding } from '../finding.ts';
import { withLines } from '../streams/json-tokens.ts';
import type { Finder, Hit } from '../streams/stream-filter.ts';
import { type FilterSet, filterSetOf } from './filter-set.ts';

const isScanned = (slug: string) => scannedSlugs.some((scanned) => scanned === slug);

interface Known {
  phone_regions: readonly string[] | undefined;
  set: FilterSet | undefined;
}
const sets = new WeakMap<readonly BoundGuardrail[], Known>();

/**
 * The filters that hold for answers: those of guardrails that say so. An answer gives no orders, so prompt injection is not
 * looked for in it. Undefined where there are none; made once for the same arrays (`phone_regions`: see `filterSetOf`).
 */
export function outputFiltersOf(
  guardrails: readonly BoundGuardrail[],
  phoneRegions?: readonly string[],
): FilterSet | undefined {
  const known = sets.get(guardrails);
  if (known !== undefined && known.phone_regions === phoneRegions) return known.set;
  const holding = guardrails
    .filter((one) => one.content_filter_output === true)
    .map((one) => {
      const builtins = one.content_filter_builtins?.filter(({ slug }) => slug !== 'regex-prompt-injection');
      return builtins === undefined ? one : { ...one, content_filter_builtins: builtins };
    });
  const set = holding.length === 0 ? undefined : filterSetOf(holding, phoneRegions);
  sets.set(guardrails, { phone_regions: phoneRegions, set });
  return set;
}

/**
 * What every match of the scanned filters has in it: a digit, a colon or an at sign, or what may be read as one. Letters of
 * Latin scripts and the marks of prose are none of it.
 */
const MAY_MATCH = /[0-9@:\u00a0-\u00bf]|[^\0-\u024f\u2013\u2014\u2018-\u201f\u2022\u2026]/g;

/** No number that is looked for has fewer digits, but for addresses, which have dots between them. */
const NUMBER_DIGITS_MIN = 7;
const ADDRESS_DOTS = 3;

/** Whether something of the scanned filters may lie behind an offset: most numbers of a log or of data are none of it. */
function mayLieBehind(text: string, from: number): boolean {
  let [digits, dots, colons] = [0, 0, 0];
  for (let at = from; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    if (unit >= 0x80 || unit === 0x40) return true;
    if (unit >= 0x30 && unit <= 0x39) digits += 1;
    else if (unit === 0x2e) dots += 1;
    else if (unit === 0x3a) colons += 1;
  }
  return digits >= NUMBER_DIGITS_MIN || colons > 1 || (dots >= ADDRESS_DOTS && digits > ADDRESS_DOTS);
}

/** A longer word is no match from its beginning on (a name in an address of mail: RFC 5321, section 4.5.3.1). */
const WORD_CHARS_MAX = 64;

/** Where the word begins that a text of prose ends with, and what may stand before a number beside it; not before `from`. */
function wordStart(text: string, known: number): number {
  const from = Math.max(known, text.length - WORD_CHARS_MAX);
  let at = text.length;
  for (;;) {
    while (at > from && text.charCodeAt(at - 1) > 0x20) at -= 1;
    let before = at;
    while (before > from && text.charCodeAt(before - 1) <= 0x20) before -= 1;
    const mark = text.charCodeAt(before - 1);
    // An opening parenthesis or bracket, or a plus: a telephone number may follow.
    if (before <= from || (mark !== 0x28 && mark !== 0x2b && mark !== 0x5b)) return at;
    at = before;
  }
}

/** The filters as what finds in an answer; `found` hears of each finding once. */
export function finderOf(
  set: Pick<FilterSet, 'filters' | 'find' | 'heldFrom' | 'growsFrom' | 'context_chars'>,
  found: (finding: Finding) => void,
): Finder {
  const hitOf = (finding: Finding): Hit & { finding: Finding } => {
    const { start, end } = finding;
    const { action, placeholder } = set.filters[finding.filter]!;
    if (action === 'block') return { start, end, finding, ends: true };
    return action === 'redact' ? { start, end, finding, text: placeholder } : { start, end, finding };
  };
  const is_scanned = set.filters.every(({ slug }) => slug !== undefined && isScanned(slug));
  // Most of prose is plain: what is not looked into costs next to nothing. What is settled begins no match any more.
  const isPlain = (text: string, from: number) => {
    if (!is_scanned) return false;
    MAY_MATCH.lastIndex = from;
    return !MAY_MATCH.test(text);
  };
  const isQuiet = (text: string, from: number) => is_scanned && !mayLieBehind(text, from);
  const finder: Finder = {
    context_chars: set.context_chars,
    find: (text, from) => {
      if (isPlain(text, from) || isQuiet(text, from)) return [];
      const findings = set.find(text);
      return findings.length === 0 ? [] : findings.map(hitOf);
    },
    heldFrom(text, from) {
      if (isPlain(text, from)) return wordStart(text, from);
      return isQuiet(text, from) ? set.growsFrom(text, from) : set.heldFrom(text, from);
    },
    settled(hit) {
      const { finding } = hit as Partial<ReturnType<typeof hitOf>>;
      if (finding !== undefined) found(finding);
    },
  };
  const isPattern = ({ filter }: Finding) => set.filters[filter]?.pattern !== undefined;
  if (!set.filters.some(({ pattern }) => pattern !== undefined)) return finder;
  const find = (text: string) => set.find(withLines(text)).filter(isPattern).map(hitOf);
  const heldFrom = (text: string, from: number) => set.heldFrom(withLines(text), from);
  return { ...finder, written: { ...finder, find, heldFrom } };
}
