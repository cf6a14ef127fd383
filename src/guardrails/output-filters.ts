import type { BoundGuardrail } from '../schemas/guardrail.ts';
import { type FilterSet, filterSetOf } from './filter-set.ts';
import type { Finding } from './finding.ts';
import type { Finder, Hit } from './stream-filter.ts';

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
export function finderOf(
  set: Pick<FilterSet, 'filters' | 'find' | 'heldFrom' | 'context_chars'>,
  found: (finding: Finding) => void,
): Finder {
  const hitOf = (finding: Finding): Hit & { finding: Finding } => {
    const { start, end } = finding;
    const { action, placeholder } = set.filters[finding.filter]!;
    if (action === 'block') return { start, end, finding, ends: true };
    return action === 'redact' ? { start, end, finding, text: placeholder } : { start, end, finding };
  };
  return {
    context_chars: set.context_chars,
    find: (text) => {
      const findings = set.find(text);
      return findings.length === 0 ? [] : findings.map(hitOf);
    },
    heldFrom: set.heldFrom,
    settled(hit) {
      const { finding } = hit as Partial<ReturnType<typeof hitOf>>;
      if (finding !== undefined) found(finding);
    },
  };
}
