import { limits } from '../../limits.ts';
import type { BoundGuardrail, BuiltinFilter } from '../../schemas/guardrail.ts';
import { BuiltinScanner, type ScannedSlug, scannedSlugs } from '../detect/builtins.ts';
import type { Finding } from '../finding.ts';
import { findInjections } from '../injection/injection.ts';
import { CustomPatterns } from '../patterns/custom-patterns.ts';
import { type Redacted, settled } from '../streams/settled.ts';

/** Sets of filters that stay compiled. */
const FILTER_SETS_MAX = 64;
/**
 * Characters that the filter of a stream holds back for one match. A longer match is found only if the text contains it whole.
 */
const FILTER_MATCH_CHARS_MAX = 320;
/** Characters before a held match that are held as well: beside the replacement they could match something else. */
const FILTER_BESIDE_CHARS_MAX = 640;
const FILTER_BESIDE_LOOKS_MAX = 24;

export type FilterSlug = BuiltinFilter['slug'];
export type FilterAction = BuiltinFilter['action'];

/** One filter of a caller: the combined setting of all guardrails for a slug or a pattern. */
export interface ActiveFilter {
  /** The built-in filter. */
  slug?: FilterSlug;
  /** A pattern of the guardrail's owner. */
  pattern?: string;
  action: FilterAction;
  /** Its name in messages. */
  label: string;
  /** The text that replaces a match. */
  placeholder: string;
  /** The guardrail whose action applies. */
  guardrail_id: string;
  guardrail_scope: BoundGuardrail['scope'];
}

/** The filters that apply to a call. */
export interface FilterSet {
  readonly filters: readonly ActiveFilter[];
  /** Indexes of the filters that `find` ignores: names and addresses, which an analyzer finds. */
  readonly analyzed: readonly number[];
  /** Compiles the patterns in parts, with pauses. `find` without it compiles all at once. Undefined if nothing is left to compile. */
  prepare(pause: () => Promise<void>): Promise<void> | undefined;
  /**
   * All findings of the other filters in a text, in order of `start`. Findings that redact do not overlap: overlapping ones are
   * joined. Findings that block or flag are returned unchanged.
   */
  find(text: string): Finding[];
  /**
   * The first offset at which a match could still start or grow when more text follows: findings that end at or before it
   * are final, and no others can appear there. A finding that extends over it is not final. `known`: offset up to which the caller
   * has settled the text. If the result is at or before it, the exact value is not computed.
   */
  heldFrom(text: string, known?: number): number;
  /** The same for a text without findings after `known`, at less cost. */
  growsFrom(text: string, known: number): number;
  /** The number of characters before a held text that `find` needs as context. */
  readonly context_chars: number;
}

/** Labels in refusals and placeholders, as in the public API. */
const BUILTINS: Readonly<Record<FilterSlug, { label: string; placeholder: string }>> = {
  email: { label: 'Email address', placeholder: '[EMAIL]' },
  phone: { label: 'Phone number', placeholder: '[PHONE]' },
  ssn: { label: 'Social Security number', placeholder: '[SSN]' },
  'credit-card': { label: 'Credit card number', placeholder: '[CREDIT_CARD]' },
  'ip-address': { label: 'IP address', placeholder: '[IP_ADDRESS]' },
  'person-name': { label: 'PERSON', placeholder: '[PERSON_NAME]' },
  address: { label: 'LOCATION', placeholder: '[ADDRESS]' },
  'regex-prompt-injection': { label: 'Prompt injection', placeholder: '[PROMPT_INJECTION]' },
};

const RANK: Readonly<Record<FilterAction, number>> = { block: 2, redact: 1, flag: 0 };

/** The filters of all guardrails of a call: for each slug or pattern the strictest action, from the first guardrail that sets it. */
function activeFilters(guardrails: readonly BoundGuardrail[]): ActiveFilter[] {
  const byKey = new Map<string, ActiveFilter>();
  const add = (key: string, filter: ActiveFilter) => {
    const before = byKey.get(key);
    if (before === undefined || RANK[filter.action] > RANK[before.action]) byKey.set(key, filter);
  };
  for (const { id, scope, content_filter_builtins, content_filters } of guardrails) {
    const source = { guardrail_id: id, guardrail_scope: scope };
    for (const { slug, action, label } of content_filter_builtins ?? []) {
      const named = label ? { label, placeholder: `[${label}]` } : BUILTINS[slug];
      add(`slug ${slug}`, { slug, action, ...named, ...source });
    }
    for (const { pattern, action, label } of content_filters ?? []) {
      const named = label ? { label, placeholder: `[${label}]` } : { label: '[BLOCKED]', placeholder: '[REDACTED]' };
      add(`pattern ${pattern}`, { pattern, action, ...named, ...source });
    }
  }
  return [...byKey.values()];
}

/** Matches filters independently of their guardrails: shared by all guardrails with the same filters. */
interface Engine {
  prepare(pause: () => Promise<void>): Promise<void> | undefined;
  /** Reports all matches, unordered. `onMatch` receives the index of the filter in the engine's list. */
  scan(text: string, onMatch: (at: number, start: number, end: number, pattern?: string) => void): void;
  heldFrom(text: string): number;
}

const isScanned = (slug: string): slug is ScannedSlug => scannedSlugs.some((scanned) => scanned === slug);

function createEngine(filters: readonly ActiveFilter[], phoneRegions: readonly string[]): Engine {
  const places = new Map(filters.map(({ slug }, at) => [slug, at]));
  const scanned = filters.flatMap(({ slug }) => (slug !== undefined && isScanned(slug) ? [slug] : []));
  const scanner = scanned.length === 0 ? undefined : new BuiltinScanner(scanned, phoneRegions);
  const custom = filters.flatMap(({ pattern }, at) => (pattern === undefined ? [] : [{ pattern, at }]));
  const customs = custom.length === 0 ? undefined : customsOf(custom.map(({ pattern }) => pattern));
  const injection = places.get('regex-prompt-injection');
  return {
    prepare: (pause) => customs?.prepare(pause),
    scan(text, onMatch) {
      scanner?.scan(text, (slug, start, end) => onMatch(places.get(slug)!, start, end));
      customs?.find(text, (index, start, end) => onMatch(custom[index]!.at, start, end));
      if (injection === undefined) return;
      for (const { start, end, pattern } of findInjections(text)) onMatch(injection, start, end, pattern);
    },
    heldFrom(text) {
      const from = Math.min(scanner?.heldFrom(text) ?? text.length, customs?.heldFrom(text) ?? text.length);
      return injection === undefined ? from : Math.min(from, Math.max(0, text.length - FILTER_MATCH_CHARS_MAX));
    },
  };
}

/** A cache of the most recently used values. */
function recentlyUsed<T>(): (key: string, create: () => T) => T {
  const all = new Map<string, T>();
  return (key, create) => {
    const one = all.get(key) ?? create();
    all.delete(key);
    all.set(key, one);
    const oldest = all.keys().next();
    if (all.size > FILTER_SETS_MAX && !oldest.done) all.delete(oldest.value);
    return one;
  };
}
const engineOf = recentlyUsed<Engine>();
const compiled = recentlyUsed<CustomPatterns>();

/** The compiled patterns. Requests and answers often share them. */
function customsOf(patterns: readonly string[]): CustomPatterns {
  return compiled(JSON.stringify(patterns), () => new CustomPatterns(patterns));
}

/** The default regions of telephone numbers without a calling code. */
const PHONE_REGIONS: readonly string[] = ['US'];

/** The result of scanning a text: its findings, and the redacted forms that were scanned again, round by round. */
interface ScannedText {
  text: string;
  findings: readonly Finding[];
  readings: readonly Redacted[];
}
const NOTHING_SCANNED: ScannedText = { text: '', findings: [], readings: [] };

function createFilterSet(filters: readonly ActiveFilter[], phoneRegions: readonly string[]): FilterSet {
  const analyzed: number[] = [];
  for (const [index, { slug }] of filters.entries()) {
    if (slug === 'person-name' || slug === 'address') analyzed.push(index);
  }
  const key = JSON.stringify([phoneRegions, filters.map(({ slug, pattern }) => [slug, pattern])]);
  const engine = () => engineOf(key, () => createEngine(filters, phoneRegions));
  /** The last scanned text: `heldFrom` and `find` are called in turn with the same text. */
  let last = NOTHING_SCANNED;
  const scanText = (text: string): ScannedText => {
    if (text === last.text) return last;
    const { scan } = engine();
    const raw = (source: string) => {
      const findings: Finding[] = [];
      scan(source, (filter, start, end, pattern) => {
        findings.push(pattern === undefined ? { start, end, filter } : { start, end, filter, pattern });
      });
      return findings;
    };
    const readings: Redacted[] = [];
    const findings = settled(text, raw, filters, (reading) => readings.push(reading));
    const result = { text, findings, readings };
    // Long texts are not cached.
    last = text.length > limits.filter_held_chars_max ? NOTHING_SCANNED : result;
    return result;
  };
  /** The first offset that can still change. A redaction can create a match with the text before it, so earlier offsets may be held too. */
  const growsFrom = (text: string, known: number): number => {
    const { heldFrom } = engine();
    const open = heldFrom(text);
    let from = open;
    for (let looks = 1; from > known; looks += 1) {
      const before = heldFrom(text.slice(0, from));
      if (before >= from) return from;
      from = before;
      // A long sequence of letters or digits has no such offset: only the open match itself is held.
      if (looks > FILTER_BESIDE_LOOKS_MAX || text.length - from > FILTER_BESIDE_CHARS_MAX) return open;
    }
    return from;
  };
  return {
    filters,
    analyzed,
    prepare: (pause) => engine().prepare(pause),
    find: (text) => scanText(text).findings.map((finding) => ({ ...finding })),
    heldFrom(text, known = 0) {
      const from = growsFrom(text, known);
      if (from <= known) return from;
      // Matches in the redacted forms can grow too, so each scanned form counts.
      return scanText(text).readings.reduce(
        (least, reading) => Math.min(least, reading.origin(growsFrom(reading.text, 0), 'start')),
        from,
      );
    },
    growsFrom,
    context_chars: limits.filter_context_chars,
  };
}

interface Known {
  phone_regions: readonly string[];
  set: FilterSet | undefined;
}
const sets = new WeakMap<readonly BoundGuardrail[], Known>();

/**
 * The filters of all guardrails of a call. Undefined if they have none. Cached by the array. `phoneRegions`:
 * countries (ISO 3166) whose national telephone numbers are found without a calling code.
 */
export function filterSetOf(
  guardrails: readonly BoundGuardrail[],
  phoneRegions: readonly string[] = PHONE_REGIONS,
): FilterSet | undefined {
  const known = sets.get(guardrails);
  if (known !== undefined && known.phone_regions === phoneRegions) return known.set;
  const filters = activeFilters(guardrails);
  const set = filters.length === 0 ? undefined : createFilterSet(filters, phoneRegions);
  sets.set(guardrails, { phone_regions: phoneRegions, set });
  return set;
}
