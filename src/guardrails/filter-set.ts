import { limits } from '../limits.ts';
import type { BoundGuardrail, BuiltinFilter } from '../schemas/guardrail.ts';
import { BuiltinScanner, type ScannedSlug, scannedSlugs } from './detect/builtins.ts';
import type { Finding, Span } from './finding.ts';
import { findInjections } from './injection.ts';
import { compilePattern } from './pattern.ts';

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
  /**
   * Everything that the other filters find in a text, in order of `start`. Findings whose action is redact do not overlap
   * each other: where several do, one stands for them all. Those that block or flag are told as they were found.
   */
  find(text: string): Finding[];
  /**
   * The first offset from which a match might still begin or grow when more text comes: findings that end at or before it
   * are final, and so is the absence of others there. A finding that reaches over it is not.
   */
  heldFrom(text: string): number;
  /** So many characters before a text that was held back must be kept in front of it for `find` to see what a match stands beside. */
  readonly context_chars: number;
}

/** The labels of refusals and the placeholders of the public service (api-facts 8.4). */
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

type Detector = (text: string) => Span[];

function customDetector(pattern: string): Detector {
  const compiled = compilePattern(pattern);
  return (text) => {
    const found: Span[] = [];
    const matcher = compiled.matcher(text);
    while (matcher.find())
      if (matcher.end() > matcher.start()) found.push({ start: matcher.start(), end: matcher.end() });
    return found;
  };
}

/** Findings in order; of redactions that overlap, one that reaches over them all and is of the longest. */
function resolved(findings: Finding[], filters: readonly ActiveFilter[]): Finding[] {
  findings.sort((a, b) => a.start - b.start || b.end - a.end || a.filter - b.filter);
  const kept: Finding[] = [];
  let last: { finding: Finding; longest: number } | undefined;
  for (const finding of findings) {
    if (filters[finding.filter]?.action !== 'redact') kept.push(finding);
    else if (last === undefined || finding.start >= last.finding.end) {
      last = { finding: { ...finding }, longest: finding.end - finding.start };
      kept.push(last.finding);
    } else {
      last.finding.end = Math.max(last.finding.end, finding.end);
      if (finding.end - finding.start > last.longest) {
        last.longest = finding.end - finding.start;
        last.finding.filter = finding.filter;
      }
    }
  }
  return kept;
}

const isScanned = (slug: FilterSlug | undefined): slug is ScannedSlug =>
  scannedSlugs.some((scanned) => scanned === slug);

function createFilterSet(filters: readonly ActiveFilter[]): FilterSet {
  const analyzed: number[] = [];
  const indexes = new Map<FilterSlug, number>();
  const detecting: { index: number; detect: Detector }[] = [];
  for (const [index, { slug, pattern }] of filters.entries()) {
    if (slug !== undefined) indexes.set(slug, index);
    if (slug === 'person-name' || slug === 'address') analyzed.push(index);
    else if (slug === 'regex-prompt-injection') detecting.push({ index, detect: findInjections });
    else if (pattern !== undefined) detecting.push({ index, detect: customDetector(pattern) });
  }
  const scanned = [...indexes.keys()].filter(isScanned);
  const scanner = scanned.length === 0 ? undefined : new BuiltinScanner(scanned, ['US']);
  return {
    filters,
    analyzed,
    find(text) {
      const findings: Finding[] = [];
      scanner?.scan(text, (slug, start, end) => findings.push({ start, end, filter: indexes.get(slug)! }));
      for (const { index, detect } of detecting) {
        for (const span of detect(text)) findings.push({ ...span, filter: index });
      }
      return findings.length === 0 ? findings : resolved(findings, filters);
    },
    heldFrom(text) {
      const scanned_from = scanner?.heldFrom(text) ?? text.length;
      return detecting.length === 0
        ? scanned_from
        : Math.min(scanned_from, Math.max(0, text.length - limits.filter_match_chars_max));
    },
    context_chars: limits.filter_context_chars,
  };
}

const sets = new WeakMap<readonly BoundGuardrail[], { set: FilterSet | undefined }>();

/** The filters of guardrails that hold together; undefined where they have none. Made once for the same array. */
export function filterSetOf(guardrails: readonly BoundGuardrail[]): FilterSet | undefined {
  const known = sets.get(guardrails);
  if (known !== undefined) return known.set;
  const filters = activeFilters(guardrails);
  const set = filters.length === 0 ? undefined : createFilterSet(filters);
  sets.set(guardrails, { set });
  return set;
}
