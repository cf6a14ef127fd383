import { limits } from '../../limits.ts';
import type { BoundGuardrail, BuiltinFilter } from '../../schemas/guardrail.ts';
import { BuiltinScanner, type ScannedSlug, scannedSlugs } from '../detect/builtins.ts';
import type { Finding } from '../finding.ts';
import { findInjections } from '../injection/injection.ts';
import { CustomPatterns } from '../patterns/custom-patterns.ts';
import { type Redacted, settled } from '../streams/settled.ts';

export type FilterSlug = BuiltinFilter['slug'];
export type FilterAction = BuiltinFilter['action'];

/** One filter that holds for a caller: what all guardrails together say of a slug or a pattern. */
export interface ActiveFilter {
  /** What the gateway finds by itself. */
  slug?: FilterSlug;
  /** A pattern of the guardrail's owner. */
  pattern?: string;
  action: FilterAction;
  /** What it is called in messages. */
  label: string;
  /** What stands in place of what it finds. */
  placeholder: string;
  /** The guardrail whose action holds. */
  guardrail_id: string;
  guardrail_scope: BoundGuardrail['scope'];
}

/** The filters that hold for a caller, ready to find. */
export interface FilterSet {
  readonly filters: readonly ActiveFilter[];
  /** Those of `filters` that `find` does not look for: names and addresses, which an analyzer finds. */
  readonly analyzed: readonly number[];
  /** Makes ready to find, while others are served; undefined: it is. Who finds without it waits for all patterns at once. */
  prepare(pause: () => Promise<void>): Promise<void> | undefined;
  /**
   * Everything that the other filters find in a text, in order of `start`. Findings whose action is redact do not overlap
   * each other: where several do, one stands for them all. Those that block or flag are told as they were found.
   */
  find(text: string): Finding[];
  /**
   * The first offset from which a match might still begin or grow when more text comes: findings that end at or before it
   * are final, and so is the absence of others there. A finding that reaches over it is not. At or before `known`, any such
   * offset is told as soon as it is known not to lie behind: who has settled a text up to there asks for no more.
   */
  heldFrom(text: string, known?: number): number;
  /** The same of a text in which nothing is found behind `known`: told with less work. */
  growsFrom(text: string, known: number): number;
  /** So many characters before a text that was held back must be kept in front of it for `find` to see what a match stands beside. */
  readonly context_chars: number;
}

/** The labels of refusals and the placeholders of the public service. */
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

/** The filters of guardrails that hold together: of one slug or pattern the strictest action, and the first guardrail that says it. */
function activeFilters(guardrails: readonly BoundGuardrail[]): ActiveFilter[] {
  const found = new Map<string, ActiveFilter>();
  const add = (key: string, filter: ActiveFilter) => {
    const before = found.get(key);
    if (before === undefined || RANK[filter.action] > RANK[before.action]) found.set(key, filter);
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
  return [...found.values()];
}

/** What finds, without who wants to know: the same for all guardrails with the same filters. */
interface Engine {
  prepare(pause: () => Promise<void>): Promise<void> | undefined;
  /** Everything that is found, as it is found; `found` gets the place of the filter in the engine's list. */
  scan(text: string, found: (at: number, start: number, end: number, pattern?: string) => void): void;
  heldFrom(text: string): number;
}

const isScanned = (slug: string): slug is ScannedSlug => scannedSlugs.some((scanned) => scanned === slug);

function createEngine(filters: readonly ActiveFilter[], phoneRegions: readonly string[]): Engine {
  const places = new Map(filters.map(({ slug }, at) => [slug, at]));
  const scanned = filters.flatMap(({ slug }) => (slug !== undefined && isScanned(slug) ? [slug] : []));
  const scanner = scanned.length === 0 ? undefined : new BuiltinScanner(scanned, phoneRegions);
  const written = filters.flatMap(({ pattern }, at) => (pattern === undefined ? [] : [{ pattern, at }]));
  const customs = written.length === 0 ? undefined : customsOf(written.map(({ pattern }) => pattern));
  const injection = places.get('regex-prompt-injection');
  return {
    prepare: (pause) => customs?.prepare(pause),
    scan(text, found) {
      scanner?.scan(text, (slug, start, end) => found(places.get(slug)!, start, end));
      customs?.find(text, (index, start, end) => found(written[index]!.at, start, end));
      if (injection === undefined) return;
      for (const { start, end, pattern } of findInjections(text)) found(injection, start, end, pattern);
    },
    heldFrom(text) {
      const from = Math.min(scanner?.heldFrom(text) ?? text.length, customs?.heldFrom(text) ?? text.length);
      return injection === undefined ? from : Math.min(from, Math.max(0, text.length - limits.filter_match_chars_max));
    },
  };
}

/** What was used lately, by what it finds. */
function kept<T>(): (key: string, create: () => T) => T {
  const all = new Map<string, T>();
  return (key, create) => {
    const one = all.get(key) ?? create();
    all.delete(key);
    all.set(key, one);
    const oldest = all.keys().next();
    if (all.size > limits.filter_sets_max && !oldest.done) all.delete(oldest.value);
    return one;
  };
}
const engineOf = kept<Engine>();
const compiled = kept<CustomPatterns>();

/** What is looked for in requests and in answers is often the same. */
function customsOf(patterns: readonly string[]): CustomPatterns {
  return compiled(JSON.stringify(patterns), () => new CustomPatterns(patterns));
}

/** Where telephone numbers without a calling code are thought to be of, unless it is said. */
const PHONE_REGIONS: readonly string[] = ['US'];

/** A text that was read: what was found, and as what it was read again, round by round. */
interface Read {
  text: string;
  findings: readonly Finding[];
  readings: readonly Redacted[];
}
const NOTHING_READ: Read = { text: '', findings: [], readings: [] };

function createFilterSet(filters: readonly ActiveFilter[], phoneRegions: readonly string[]): FilterSet {
  const analyzed: number[] = [];
  for (const [index, { slug }] of filters.entries()) {
    if (slug === 'person-name' || slug === 'address') analyzed.push(index);
  }
  const key = JSON.stringify([phoneRegions, filters.map(({ slug, pattern }) => [slug, pattern])]);
  const engine = () => engineOf(key, () => createEngine(filters, phoneRegions));
  /** What was read last: who looks up to where a text is final finds in it next. */
  let last = NOTHING_READ;
  const read = (text: string): Read => {
    if (text === last.text) return last;
    const { scan } = engine();
    const raw = (read: string) => {
      const findings: Finding[] = [];
      scan(read, (filter, start, end, pattern) => {
        findings.push(pattern === undefined ? { start, end, filter } : { start, end, filter, pattern });
      });
      return findings;
    };
    const readings: Redacted[] = [];
    const findings = settled(text, raw, filters, (reading) => readings.push(reading));
    const found = { text, findings, readings };
    // A long text is not kept for the sake of the next.
    last = text.length > limits.filter_held_chars_max ? NOTHING_READ : found;
    return found;
  };
  /** What is redacted shows what stands before it in another light: from here back nothing touches it any more. */
  const growsFrom = (text: string, known: number): number => {
    const { heldFrom } = engine();
    const open = heldFrom(text);
    let from = open;
    for (let looks = 1; from > known; looks += 1) {
      const before = heldFrom(text.slice(0, from));
      if (before >= from) return from;
      from = before;
      // A long row of letters or numbers has no such place: what is open by itself is held alone.
      if (looks > limits.filter_beside_looks_max || text.length - from > limits.filter_beside_chars_max) return open;
    }
    return from;
  };
  return {
    filters,
    analyzed,
    prepare: (pause) => engine().prepare(pause),
    find: (text) => read(text).findings.map((finding) => ({ ...finding })),
    heldFrom(text, known = 0) {
      const from = growsFrom(text, known);
      if (from <= known) return from;
      // What was found beside others alone may go on as well: each text counts that was read.
      return read(text).readings.reduce(
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
 * The filters of guardrails that hold together; undefined where they have none. Made once for the same array. `phone_regions`:
 * countries (ISO 3166) whose telephone numbers are found as they are dialled there, without a calling code.
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
