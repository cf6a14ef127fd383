import type { BoundGuardrail } from '../schemas/guardrail.ts';
import { type ActiveFilter, type FilterSet, filterSetOf } from './filter-set.ts';
import type { Finding } from './finding.ts';
import type { Finder } from './stream-filter.ts';

const sets = new WeakMap<readonly BoundGuardrail[], { set: FilterSet | undefined }>();

/**
 * The filters that hold for answers: those of guardrails that say so. An answer gives no orders, so prompt injection is not
 * looked for in it. Undefined where there are none; made once for the same array.
 */
export function outputFiltersOf(guardrails: readonly BoundGuardrail[]): FilterSet | undefined {
  const known = sets.get(guardrails);
  if (known !== undefined) return known.set;
  const holding = guardrails
    .filter((one) => one.content_filter_output === true)
    .map((one) => {
      const builtins = one.content_filter_builtins?.filter(({ slug }) => slug !== 'regex-prompt-injection');
      return builtins === undefined ? one : { ...one, content_filter_builtins: builtins };
    });
  const set = holding.length === 0 ? undefined : filterSetOf(holding);
  sets.set(guardrails, { set });
  return set;
}

/** The filters as what finds in an answer; `found` hears of each finding once. */
export function finderOf(set: FilterSet, found: (filter: ActiveFilter) => void): Finder {
  const hitOf = ({ start, end, filter }: Finding) => {
    const active = set.filters[filter]!;
    const told = { start, end, filter: active };
    if (active.action === 'block') return { ...told, ends: true as const };
    return active.action === 'redact' ? { ...told, text: active.placeholder } : told;
  };
  return {
    context_chars: set.context_chars,
    find: (text) => {
      const findings = set.find(text);
      return findings.length === 0 ? [] : findings.map(hitOf);
    },
    heldFrom: set.heldFrom,
    settled(hit) {
      const { filter } = hit as { filter?: ActiveFilter };
      if (filter !== undefined) found(filter);
    },
  };
}
