import { expect, test } from 'vitest';
import type { BoundGuardrail } from '../../schemas/guardrail.ts';
import { effectivePolicy } from './effective-policy.ts';
import { UNRESTRICTED } from './guardrail.ts';

let count = 0;
function guardrail(over: Partial<BoundGuardrail>): BoundGuardrail {
  count += 1;
  return { ...UNRESTRICTED, id: `guardrail ${count}`, scope: 'api-key', ...over };
}

test('allowed lists are intersected in the order of the first, and null lists allow everything', () => {
  const lists = [['a/1', 'a/2', 'a/3', 'a/1'], null, ['a/3', 'a/2'], ['a/2', 'a/4', 'a/3']];
  const policy = effectivePolicy(lists.map((list) => guardrail({ allowed_models: list })));
  expect(policy).toMatchObject({ allowed_models: ['a/2', 'a/3'], allowed_providers: null });
  const apart = effectivePolicy([
    guardrail({ allowed_providers: ['one'] }),
    guardrail({ allowed_providers: ['two'] }),
    guardrail({ allowed_providers: ['one', 'two'] }),
  ]);
  expect(apart.allowed_providers).toEqual([]);
});

test('ignored lists and zero retention are united, and an unset vendor field follows the general one', () => {
  const policy = effectivePolicy([
    guardrail({ ignored_models: ['a/1'], enforce_zdr_other: true }),
    guardrail({ ignored_models: ['a/2', 'a/1'], enforce_zdr: true, enforce_zdr_openai: false }),
  ]);
  expect(policy.ignored_models).toEqual(['a/1', 'a/2']);
  expect(policy.zdr).toEqual({ anthropic: true, openai: false, google: true, xai: true, other: true });
});

test('a guardrail that applies in two scopes counts once, and its patterns are not shown', () => {
  const shared = guardrail({
    content_filters: [{ pattern: 'hidden', action: 'block' }],
    content_filter_builtins: [{ slug: 'email', action: 'redact', label: 'MAIL' }],
    content_filter_output: true,
  });
  const { filters } = effectivePolicy([shared, { ...shared, scope: 'member' }]);
  const of = { guardrail_id: shared.id, filters_answers: true, is_reversible: false };
  expect(filters).toEqual([
    { filter: 'email', action: 'redact', label: 'MAIL', ...of },
    { filter: 'custom', action: 'block', label: null, ...of },
  ]);
});
