import { expect, test } from 'vitest';
import { UNRESTRICTED } from './guardrail.ts';
import { type Restriction, restricted } from './restrictions.ts';

const nothing: Restriction = {
  id: 'g',
  ...UNRESTRICTED,
};
const endpoint = { canonical_slug: 'openai/gpt-5-20250807', provider_slug: 'azure', keeps_nothing: false };
const own = endpoint.canonical_slug;

test.each<[string, Partial<Restriction>[], string | undefined]>([
  ['no guardrail', [], undefined],
  ['a guardrail without restrictions', [{}], undefined],
  ['an allowed list with the model', [{ allowed_models: [own] }], undefined],
  ['an allowed list without the model', [{ allowed_models: ['openai/other'] }], 'model-not-allowed-by-guardrail'],
  [
    'two allowed lists, one of them without the model',
    [{ allowed_models: [own] }, { allowed_models: ['openai/other'] }],
    'model-not-allowed-by-guardrail',
  ],
  [
    'a model that is both allowed and ignored',
    [{ allowed_models: [own], ignored_models: [own] }],
    'model-ignored-by-guardrail',
  ],
  ['a model that the second guardrail ignores', [{}, { ignored_models: [own] }], 'model-ignored-by-guardrail'],
  ['an allowed list without the provider', [{ allowed_providers: ['openai'] }], 'provider-not-allowed-by-guardrail'],
  ['an allowed list with the provider', [{ allowed_providers: ['azure'] }], undefined],
  ['an ignored provider', [{ ignored_providers: ['azure'] }], 'provider-ignored-by-guardrail'],
  ['zero retention for the vendor', [{ enforce_zdr_openai: true }], 'zdr-violation-by-guardrail'],
  [
    'zero retention for another vendor',
    [{ enforce_zdr_anthropic: true, enforce_zdr_google: true, enforce_zdr_other: true }],
    undefined,
  ],
  ['zero retention for all', [{ enforce_zdr: true }], 'zdr-violation-by-guardrail'],
  ['zero retention for xAI alone', [{ enforce_zdr_xai: true }], undefined],
  ['zero retention for all but the vendor', [{ enforce_zdr: true, enforce_zdr_openai: false }], undefined],
])('%s', (_, guardrails, reason) => {
  const made = guardrails.map((over) => ({ ...nothing, ...over }));
  expect(restricted(made, endpoint)?.reason).toBe(reason);
});

test('the field of xAI applies to its models, and `enforce_zdr_other` if it is not set', () => {
  const grok = { ...endpoint, canonical_slug: 'x-ai/grok-4' };
  const reasonOf = (over: Partial<Restriction>) => restricted([{ ...nothing, ...over }], grok)?.reason;
  expect(reasonOf({ enforce_zdr_xai: true })).toBe('zdr-violation-by-guardrail');
  expect(reasonOf({ enforce_zdr_other: true })).toBe('zdr-violation-by-guardrail');
  expect(reasonOf({ enforce_zdr_other: true, enforce_zdr_xai: false })).toBeUndefined();
  expect(reasonOf({ enforce_zdr_openai: true })).toBeUndefined();
});

test('`enforce_zdr_other` applies to vendors without a field, and providers with zero retention pass', () => {
  const other = { ...endpoint, canonical_slug: 'acme/one' };
  const guardrails = [{ ...nothing, enforce_zdr_other: true }];
  expect(restricted(guardrails, other)).toEqual({ reason: 'zdr-violation-by-guardrail', guardrail_id: 'g' });
  expect(restricted(guardrails, { ...other, keeps_nothing: true })).toBeUndefined();
});
