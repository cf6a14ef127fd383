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
 * The filters for answers: those of guardrails with `content_filter_output`. Prompt injection is not searched in answers.
 * Undefined if there are none. Cached by the array (`phoneRegions`: see `filterSetOf`).
 */
export function outputFiltersOf(
  guardrails: readonly BoundGuardrail[],
  phoneRegions?: readonly string[],
): FilterSet | undefined {
  const known = sets.get(guardrails);
  if (known !== undefined && known.phone_regions === phoneRegions) return known.set;
  const outputGuardrails = guardrails
    .filter((one) => one.content_filter_output === true)
    .map((one) => {
      const builtins = one.content_filter_builtins?.filter(({ slug }) => slug !== 'regex-prompt-injection');
      return builtins === undefined ? one : { ...one, content_filter_builtins: builtins };
    });
  const set = outputGuardrails.length === 0 ? undefined : filterSetOf(outputGuardrails, phoneRegions);
  sets.set(guardrails, { phone_regions: phoneRegions, set });
  return set;
}

/**
 * Characters of which every match of the scanned filters has one: a digit, a colon or an at sign, or a character folded to one.
 * Letters of Latin scripts and punctuation are excluded.
 */
const MAY_MATCH = /[0-9@:\u00a0-\u00bf]|[^\0-\u024f\u2013\u2014\u2018-\u201f\u2022\u2026]/g;

/** The fewest digits of a number that filters match, except IP addresses, which have dots. */
const NUMBER_DIGITS_MIN = 7;
const ADDRESS_DOTS = 3;

/** Whether the text after an offset may contain a match of the scanned filters. Most numbers in logs and data cannot be one. */
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

/** Longer words are not a match from their start (local part of an email address: RFC 5321, section 4.5.3.1). */
const WORD_CHARS_MAX = 64;

/** The start of the last word of a text, including an opening bracket or plus before it. Not before `known`. */
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

/** The filters as a `Finder` for answers. `onFinding` is called once for each finding. */
export function finderOf(
  set: Pick<FilterSet, 'filters' | 'find' | 'heldFrom' | 'growsFrom' | 'context_chars'>,
  onFinding: (finding: Finding) => void,
): Finder {
  const hitOf = (finding: Finding): Hit & { finding: Finding } => {
    const { start, end } = finding;
    const { action, placeholder } = set.filters[finding.filter]!;
    if (action === 'block') return { start, end, finding, ends: true };
    return action === 'redact' ? { start, end, finding, text: placeholder } : { start, end, finding };
  };
  const areAllScanned = set.filters.every(({ slug }) => slug !== undefined && isScanned(slug));
  // Most prose is plain and skips the filters at almost no cost. Settled text starts no match.
  const isPlain = (text: string, from: number) => {
    if (!areAllScanned) return false;
    MAY_MATCH.lastIndex = from;
    return !MAY_MATCH.test(text);
  };
  const isQuiet = (text: string, from: number) => areAllScanned && !mayLieBehind(text, from);
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
      if (finding !== undefined) onFinding(finding);
    },
  };
  const isPattern = ({ filter }: Finding) => set.filters[filter]?.pattern !== undefined;
  if (!set.filters.some(({ pattern }) => pattern !== undefined)) return finder;
  const find = (text: string) => set.find(withLines(text)).filter(isPattern).map(hitOf);
  const heldFrom = (text: string, from: number) => set.heldFrom(withLines(text), from);
  return { ...finder, written: { ...finder, find, heldFrom } };
}
