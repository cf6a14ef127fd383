import { describe, expect, test } from 'vitest';
import { ONE, PROVIDERS, TWO } from '../../test/routing/routing-fixture.ts';
import type { Model } from '../catalog/model.ts';
import type { Provider } from '../providers/provider.ts';
import type { ProviderPreferences } from '../schemas/inner.ts';
import { createHealth, type Health } from './health.ts';
import type { OwnCredential } from './own-credential.ts';
import { healthId, plan } from './plan.ts';

describe('own credentials', () => {
  const own = (id: string, provider: string, over: Partial<OwnCredential> = {}): OwnCredential => ({
    id,
    version: 1,
    provider,
    label: 'l',
    name: null,
    is_fallback: false,
    allow_shared_fallback: true,
    sort_order: 0,
    allowed_models: null,
    allowed_api_key_hashes: null,
    allowed_user_ids: null,
    declared_zdr: null,
    is_byok_only: false,
    unusable: undefined,
    secret: () => 's',
    ...over,
  });
  const planned = (
    credentials: OwnCredential[],
    provider?: ProviderPreferences,
    { models = [ONE], health = createHealth(), draw = 0 }: { models?: Model[]; health?: Health; draw?: number } = {},
  ) => {
    const request = { messages: [{ role: 'user' as const, content: 'x' }], ...(provider ? { provider } : {}) };
    const result = plan(request, {
      models,
      provider: (slug) =>
        slug === 'gamma' ? ({ ...PROVIDERS['gamma'], is_own_only: true } as Provider) : PROVIDERS[slug],
      health,
      now_ms: 1000,
      draw,
      allow_unpriced: true,
      own: credentials,
      caller: { key_hash: 'k', user_id: 'u' },
    });
    return { ...result, names: result.attempts.map((one) => `${one.own?.id ?? 'shared'}@${one.endpoint.tag}`) };
  };
  const SHARED = ['shared@beta', 'shared@beta/turbo', 'shared@alpha'];

  test.each<[string, OwnCredential[], ProviderPreferences | undefined, string[]]>([
    ['are used before all others', [own('1', 'alpha')], undefined, ['1@alpha', ...SHARED]],
    [
      'are used at every endpoint of their provider',
      [own('1', 'beta')],
      undefined,
      ['1@beta', '1@beta/turbo', ...SHARED],
    ],
    [
      'are used in sort_order at each endpoint',
      [own('2', 'beta', { sort_order: 2 }), own('1', 'beta', { sort_order: 1 })],
      { ignore: ['alpha', 'beta/turbo'] },
      ['1@beta', '2@beta', 'shared@beta'],
    ],
    [
      'keep the order of the client',
      [own('1', 'alpha'), own('2', 'beta')],
      { order: ['alpha'], ignore: ['beta/turbo'] },
      ['1@alpha', '2@beta', 'shared@alpha', 'shared@beta'],
    ],
    ['are used last as fallbacks', [own('1', 'alpha', { is_fallback: true })], undefined, [...SHARED, '1@alpha']],
    ['enable a provider without another credential', [own('1', 'gamma')], { only: ['gamma'] }, ['1@gamma']],
    [
      'exclude the shared endpoints of every provider',
      [own('1', 'alpha', { allow_shared_fallback: false })],
      undefined,
      ['1@alpha'],
    ],
    [
      'exclude them if one of two does',
      [own('1', 'alpha'), own('2', 'alpha', { allow_shared_fallback: false })],
      undefined,
      ['1@alpha', '2@alpha'],
    ],
    [
      'exclude nothing as fallbacks',
      [own('1', 'alpha', { is_fallback: true, allow_shared_fallback: false })],
      undefined,
      [...SHARED, '1@alpha'],
    ],
    [
      'exclude nothing if the client selects other providers',
      [own('1', 'alpha', { allow_shared_fallback: false })],
      { only: ['beta'] },
      ['shared@beta', 'shared@beta/turbo'],
    ],
    ['of other keys are ignored', [own('1', 'alpha', { allowed_api_key_hashes: ['x'] })], undefined, SHARED],
    ['of other users are ignored', [own('1', 'alpha', { allowed_user_ids: ['x'] })], undefined, SHARED],
    ['for other models are ignored', [own('1', 'alpha', { allowed_models: ['a/two'] })], undefined, SHARED],
    ['of providers that do not serve the model change nothing', [own('1', 'nobody')], undefined, SHARED],
    [
      'without fallbacks: those of the first endpoint',
      [own('1', 'beta'), own('2', 'beta')],
      { allow_fallbacks: false },
      ['1@beta', '2@beta'],
    ],
  ])('%s', (_title, credentials, preferences, expected) => {
    expect(planned(credentials, preferences).names).toEqual(expected);
  });

  test.each<[string, Partial<OwnCredential>, string[]]>([
    ['for every model', {}, ['1@alpha', 'shared@beta', 'shared@beta/turbo']],
    ['for models outside its list', { allowed_models: ['a/two'] }, ['shared@beta', 'shared@beta/turbo']],
    ['for keys that may not use it', { allowed_api_key_hashes: ['x'] }, ['shared@beta', 'shared@beta/turbo']],
  ])("exclude the gateway's own account at their provider if is_byok_only is set, %s", (_title, over, expected) => {
    const { names, candidates } = planned([own('1', 'alpha', { is_byok_only: true, ...over })]);
    expect(names).toEqual(expected);
    expect(candidates.find((one) => one.endpoint.tag === 'alpha' && !one.own)?.excluded?.reason).toContain(
      "excludes the gateway's own account",
    );
  });

  test.each<[boolean | null, string[]]>([
    [true, ['1@alpha', '1@beta']],
    [null, ['1@beta']],
    [false, []],
  ])('whose owner declares zero retention (%s) serve calls that require it, or do not', (declared, names) => {
    const kept = (slug: string) => ({
      ...(PROVIDERS[slug] as Provider),
      data_policy: { training: false as const, retention_days: slug === 'beta' ? 0 : 30 },
    });
    const credentials = ['alpha', 'beta'].map((slug) => own('1', slug, { declared_zdr: declared }));
    const context = {
      models: [ONE],
      provider: kept,
      health: createHealth(),
      now_ms: 1000,
      draw: 0,
      allow_unpriced: true,
      own: credentials,
      caller: { key_hash: 'k', user_id: 'u' },
    };
    const request = { messages: [{ role: 'user' as const, content: 'x' }], provider: { zdr: true } };
    const attempts = plan(request, context).attempts.filter((one) => one.endpoint.tag !== 'beta/turbo');
    expect(attempts.flatMap((one) => (one.own ? `1@${one.endpoint.tag}` : [])).sort()).toEqual(names);
    expect(attempts.some((one) => !one.own && one.endpoint.tag === 'alpha')).toBe(false);
  });

  test('are drawn by endpoint, and used in sort_order at each endpoint', () => {
    const three = [own('3', 'beta', { sort_order: 3 }), own('1', 'beta', { sort_order: 1 }), own('2', 'alpha')];
    const at = (draw: number, provider?: ProviderPreferences) => planned(three, provider, { draw });
    for (const draw of [0, 0.4, 0.8, 0.99]) {
      const { names, attempts } = at(draw, { only: ['beta'], ignore: ['beta/turbo'] });
      expect(names).toEqual(['1@beta', '3@beta', 'shared@beta']);
      expect(attempts[0]?.because).toEqual(['own_credential', 'price']);
    }
    // Prices of 100, 200 and 300, whatever the number of credentials.
    const total = 1 + 1 / 4 + 1 / 9;
    expect(
      at(0)
        .attempts.slice(0, 5)
        .map(({ weight }) => weight),
    ).toEqual([
      expect.closeTo(1 / total),
      undefined,
      expect.closeTo(1 / 4 / total),
      undefined,
      expect.closeTo(1 / 9 / total),
    ]);
    expect(at(0.99).names[0]).toBe('2@alpha');
  });

  test('exclude shared endpoints for each model separately', () => {
    const closed = own('1', 'beta', { allow_shared_fallback: false });
    expect(planned([closed], undefined, { models: [ONE, TWO] }).names).toEqual([
      '1@beta',
      '1@beta/turbo',
      'shared@alpha',
    ]);
  });

  test('that are unusable have a reason, and the funnel counts endpoints, not credentials', () => {
    const dead = own('1', 'alpha', { unusable: 'it is dead', allow_shared_fallback: false });
    try {
      planned([dead, own('2', 'alpha', { is_fallback: true, unusable: 'it is dead too' })]);
      expect.unreachable();
    } catch (error) {
      expect(error).toMatchObject({ status: 404 });
      const { candidates, funnel } = (error as { plan: ReturnType<typeof plan> }).plan;
      expect(candidates.map(({ excluded }) => excluded?.reason)).toContain('it is dead too');
      expect(funnel.map(({ endpoint_count: endpointCount }) => endpointCount)).toEqual(
        funnel.map(({ step }) => (step === 'Filter by Own Credentials' ? 0 : 3)),
      );
    }
  });

  test('that fail move back at their endpoint alone, and a rotated one starts without failures', () => {
    const health = createHealth();
    const [one, two] = [own('1', 'beta'), own('2', 'alpha')];
    const [first] = planned([one, two]).attempts;
    if (first === undefined) throw new Error('nothing is planned');
    health.failed(healthId(first), 'credential', undefined, 1000);
    expect(planned([one, two], undefined, { health }).names.slice(0, 3)).toEqual(['1@beta/turbo', '2@alpha', '1@beta']);
    expect(planned([own('3', 'beta')], undefined, { health }).names[0]).toBe('3@beta');
    expect(planned([], undefined, { health }).names).toEqual(SHARED);
    expect(planned([own('1', 'beta', { version: 2 }), two], undefined, { health }).names[0]).toBe('1@beta');
  });
});
