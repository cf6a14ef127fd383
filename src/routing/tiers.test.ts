import { describe, expect, test } from 'vitest';
import { endpoint, model, planned, speed, tagsOf } from '../../test/routing/routing-fixture.ts';
import type { ProviderPreferences } from '../schemas/inner.ts';
import { healthId } from './candidate.ts';
import { FLEX_TIERS, type ModelVariant, PRIORITY_TIERS } from './model-variant.ts';

const list = (price: number) => ({ pricing: { prompt: price, completion: price } });
const ONE = model('a/x', [
  endpoint('a/x', 'alpha', 100, { service_tiers: { flex: list(50), priority: list(200) } }),
  endpoint('a/x', 'beta', 80, { service_tiers: { flex: list(60) } }),
  endpoint('a/x', 'gamma', 90),
]);
const NITRO: ModelVariant = { sort: 'throughput', tiers: PRIORITY_TIERS };
const FLOOR: ModelVariant = { sort: 'price', tiers: FLEX_TIERS };

function tags(
  serviceTier: string | undefined,
  provider?: ProviderPreferences,
  variant?: ModelVariant,
  models = [ONE],
): string[] {
  const request = { ...(serviceTier ? { service_tier: serviceTier } : {}), ...(provider ? { provider } : {}) };
  const known = { performance: { 'alpha|a/x': speed(10), 'beta|a/x': speed(30), 'gamma|a/x': speed(20) } };
  const variants = variant && new Map(models.map((one) => [one, variant]));
  return tagsOf(planned(request, { models, known, variants }));
}

describe('service tiers', () => {
  test.each<[string, ReturnType<typeof tags>, string[]]>([
    ['are not used unless requested', tags(undefined), ['beta', 'gamma', 'alpha']],
    ['default is no tier', tags('default'), ['beta', 'gamma', 'alpha']],
    ['flex: only endpoints that have it, by price', tags('flex'), ['alpha/flex', 'beta/flex']],
    [
      'flex, with all its endpoints excluded by a filter: the usual endpoints',
      tags('flex', { only: ['gamma'] }),
      ['gamma'],
    ],
    ['priority: first, then the others', tags('priority'), ['alpha/priority', 'beta', 'gamma', 'alpha']],
    ['fast is an alias of priority', tags('fast'), ['alpha/priority', 'beta', 'gamma', 'alpha']],
    ['a base slug names no tier', tags(undefined, { only: ['alpha'] }), ['alpha']],
    ['a full slug names one tier', tags(undefined, { only: ['alpha/flex'] }), ['alpha/flex']],
    ['in order', tags(undefined, { order: ['beta/flex', 'gamma'] }), ['beta/flex', 'gamma', 'beta', 'alpha']],
    ['a base slug includes the requested tier', tags('flex', { only: ['beta'] }), ['beta/flex']],
    [':floor includes flex', tags(undefined, undefined, FLOOR), ['alpha/flex', 'beta/flex', 'beta', 'gamma', 'alpha']],
    [':nitro includes priority', tags(undefined, undefined, NITRO), ['beta', 'gamma', 'alpha', 'alpha/priority']],
    [':floor with an order includes none', tags(undefined, { order: ['alpha'] }, FLOOR), ['alpha', 'beta', 'gamma']],
    [':floor with tier default includes none', tags('default', undefined, FLOOR), ['beta', 'gamma', 'alpha']],
    [
      'an explicit sort takes precedence over that of the variant',
      tags(undefined, { sort: 'price' }, NITRO),
      ['beta', 'gamma', 'alpha', 'alpha/priority'],
    ],
  ])('%s', (_title, actual, expected) => {
    expect(actual).toEqual(expected);
  });

  test('are requested only from endpoints that have them', () => {
    const sends = (serviceTier: string | undefined, provider?: ProviderPreferences) =>
      Object.fromEntries(
        planned(
          { ...(serviceTier ? { service_tier: serviceTier } : {}), ...(provider ? { provider } : {}) },
          { models: [ONE] },
        ).attempts.map(({ endpoint: { tag }, tier, sends }) => [tier ? `${tag}/${tier}` : tag, sends]),
      );
    expect(sends(undefined, { only: ['alpha/flex'] })).toEqual({ 'alpha/flex': { service_tier: 'flex' } });
    expect(sends('flex')).toEqual({ 'alpha/flex': undefined, 'beta/flex': undefined });
    expect(sends('fast')).toEqual({
      'alpha/priority': { service_tier: 'priority' },
      alpha: { service_tier: null },
      beta: { service_tier: null },
      gamma: { service_tier: null },
    });
  });

  test('have their own prices and failures', () => {
    const cheap = { only: ['alpha', 'alpha/flex'], max_price: { prompt: 0.00006 } };
    expect(tags(undefined, cheap)).toEqual(['alpha/flex']);
    const [flex] = planned({ service_tier: 'flex' }, { models: [ONE] }).attempts;
    expect(flex && healthId(flex)).toBe('alpha|a/x flex');
  });
});

test('a provider’s name does not include its tiers', () => {
  const one = model('a/x', [
    endpoint('a/x', 'alpha', 4, { service_tiers: { flex: { pricing: { prompt: 2, completion: 2 } } } }),
    endpoint('a/x', 'beta', 5),
  ]);
  const by = (provider: ProviderPreferences) => tagsOf(planned({ provider }, { models: [one] }));
  expect(by({ order: ['alpha', 'beta', 'alpha/flex'] })).toEqual(['alpha', 'beta', 'alpha/flex']);
  expect(by({ order: ['alpha/flex'], ignore: ['Alpha AI'] })).toEqual(['alpha/flex', 'beta']);
  expect(by({ only: ['alpha'] })).toEqual(['alpha']);
});
