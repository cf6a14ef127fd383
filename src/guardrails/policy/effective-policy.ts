import type { BoundGuardrail } from '../../schemas/guardrail.ts';
import type { EffectivePolicy } from '../../schemas/key-policy.ts';
import { demandsZdr } from './restrictions.ts';

/** An author of each group of models that a guardrail has a field for; any other author is in the last one. */
const GROUPS = { anthropic: 'anthropic', openai: 'openai', google: 'google', xai: 'x-ai', other: '' } as const;

type ListField = 'allowed_models' | 'ignored_models' | 'allowed_providers' | 'ignored_providers';

/** The members that all of these lists have; null if none is set. */
function intersection(lists: readonly (readonly string[] | null)[]): string[] | null {
  const [first, ...others] = lists.filter((list) => list !== null);
  if (first === undefined) return null;
  return [...new Set(first)].filter((name) => others.every((list) => list.includes(name)));
}

/** The rules that several guardrails make together, as calls are checked: see `restricted` and `filterSetOf`. Pure. */
export function effectivePolicy(bound: readonly BoundGuardrail[]): EffectivePolicy {
  // A guardrail may apply in several scopes.
  const guardrails = [...new Map(bound.map((guardrail) => [guardrail.id, guardrail])).values()];
  const allowed = (field: ListField) => intersection(guardrails.map((guardrail) => guardrail[field]));
  const ignored = (field: ListField) => [...new Set(guardrails.flatMap((guardrail) => guardrail[field] ?? []))];
  const isEnforced = (author: string) => guardrails.some((guardrail) => demandsZdr(guardrail, `${author}/`));
  return {
    allowed_models: allowed('allowed_models'),
    ignored_models: ignored('ignored_models'),
    allowed_providers: allowed('allowed_providers'),
    ignored_providers: ignored('ignored_providers'),
    zdr: {
      anthropic: isEnforced(GROUPS.anthropic),
      openai: isEnforced(GROUPS.openai),
      google: isEnforced(GROUPS.google),
      xai: isEnforced(GROUPS.xai),
      other: isEnforced(GROUPS.other),
    },
    filters: guardrails.flatMap((guardrail) => {
      const { id, content_filter_output: output, content_filter_reversible: reversible } = guardrail;
      const shared = { guardrail_id: id, filters_answers: output === true, is_reversible: reversible === true };
      return [
        ...(guardrail.content_filter_builtins ?? []).map(({ slug, action, label }) => ({
          filter: slug,
          action,
          label: label ?? null,
          ...shared,
        })),
        ...(guardrail.content_filters ?? []).map(({ action, label }) => ({
          filter: 'custom',
          action,
          label: label ?? null,
          ...shared,
        })),
      ];
    }),
  };
}
