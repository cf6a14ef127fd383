import fc from 'fast-check';
import { expect, test } from 'vitest';
import { endpoint, type Known, model, planned, refused, tagsOf } from '../../test/routing/routing-fixture.ts';
import { inTier } from '../../test/tier.ts';
import type { ChatRequest, ProviderPreferences } from '../schemas/inner.ts';
import { type Sort, sorts } from './model-variant.ts';
import { type Candidate, healthId, NoEndpoint, type Plan, type PlanContext, tagOf } from './plan.ts';

const tags = ['alpha', 'alpha/turbo', 'beta', 'beta/eu', 'gamma'] as const;
const names = [...tags, 'Alpha AI', 'BETA', 'nobody', 'alpha/flex'];

/** Two models whose endpoints differ in everything that a rule uses. */
const models = fc.tuple(fc.constant('a/one'), fc.constant('a/two')).chain((ids) =>
  fc.tuple(
    ...ids.map((id) =>
      fc
        .uniqueArray(fc.constantFrom(...tags), { minLength: 1 })
        .chain((chosen) => fc.tuple(...chosen.map((tag) => endpointOf(id, tag))))
        .map((endpoints) => model(id, endpoints)),
    ),
  ),
);

function endpointOf(id: string, tag: string) {
  return fc
    .record({
      price: fc.constantFrom(undefined, 0, 1, 2, 2, 5),
      quantization: fc.constantFrom('fp8', 'fp4', 'bf16'),
      supported_parameters: fc.constantFrom(undefined, [], ['tools'], ['tools', 'seed', 'structured_outputs']),
      max_completion_tokens: fc.constantFrom(undefined, 50, 500),
      flex: fc.boolean(),
    })
    .map(({ price, flex, ...facts }) =>
      endpoint(id, tag.split('/')[0] ?? '', price, {
        tag,
        ...facts,
        ...(flex && price !== undefined
          ? { service_tiers: { flex: { pricing: { prompt: price / 2, completion: price / 2 } } } }
          : {}),
      }),
    );
}

const list = fc.option(fc.array(fc.constantFrom(...names), { maxLength: 3 }), { nil: undefined });
const sort = fc.option(fc.constantFrom<Sort>(...sorts), { nil: undefined });
const requests: fc.Arbitrary<Partial<ChatRequest>> = fc
  .record({
    provider: fc.record(
      {
        order: list,
        only: list,
        ignore: list,
        allow_fallbacks: fc.boolean(),
        sort: fc.oneof(sort, fc.record({ by: fc.constantFrom(...sorts), partition: fc.constantFrom('model', 'none') })),
        zdr: fc.boolean(),
        data_collection: fc.constantFrom('allow', 'deny'),
        quantizations: fc.constantFrom(undefined, ['fp8'], ['bf16']),
        max_price: fc.constantFrom(undefined, { prompt: 2e-6 }),
        require_parameters: fc.boolean(),
        preferred_min_throughput: fc.constantFrom(undefined, 20),
      },
      { requiredKeys: [] },
    ),
    tools: fc.constantFrom(undefined, [{ type: 'function' as const, function: { name: 'f' } }]),
    seed: fc.constantFrom(undefined, 1),
    max_tokens: fc.constantFrom(undefined, 40, 400),
    service_tier: fc.constantFrom(undefined, 'flex', 'default', 'priority'),
  })
  .map((request) => request as unknown as Partial<ChatRequest>);

const states: fc.Arbitrary<Known> = fc.record({
  cooling: fc.dictionary(fc.constantFrom('alpha|a/one', 'beta|a/one', 'beta|a/two'), fc.constant(2_000)),
  outages: fc.subarray(['alpha|a/one', 'gamma|a/one', 'alpha|a/two']),
  performance: fc.dictionary(
    fc.constantFrom('alpha|a/one', 'beta|a/one'),
    fc.integer({ min: 1, max: 99 }).map((p50) => ({ throughput: { p50, p75: p50, p90: p50, p99: p50 } })),
  ),
});

const contexts: fc.Arbitrary<Partial<PlanContext>> = fc.record({
  draw: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
  default_sort: sort,
  sticky: fc.constantFrom<PlanContext['sticky']>(undefined, ({ endpoint: { tag } }) => tag === 'beta'),
  prefers: fc.constantFrom<PlanContext['prefers']>(undefined, ({ provider: { slug } }) => slug === 'gamma'),
});

const situations = fc.record({ models, request: requests, known: states, context: contexts });
type Situation = typeof situations extends fc.Arbitrary<infer T> ? T : never;

function outcome({ models, request, known, context }: Situation): Plan {
  try {
    return planned(request, { models, known, ...context });
  } catch (error) {
    if (error instanceof NoEndpoint) return error.plan;
    throw error;
  }
}

function isMeant(lists: readonly string[], candidate: Candidate, serviceTier: unknown): boolean {
  const { provider, endpoint, tier } = candidate;
  const own = tagOf(candidate).toLowerCase();
  const plain = [provider.slug, provider.name.toLowerCase(), endpoint.tag];
  return lists.some((names) => {
    const name = names.toLowerCase();
    return (
      name === own ||
      ((tier === undefined || serviceTier === 'flex' || serviceTier === 'priority') && plain.includes(name))
    );
  });
}

function forbidden(candidate: Candidate, { request }: Situation): boolean {
  const { provider: wanted = {}, service_tier: serviceTier } = request as {
    provider?: ProviderPreferences;
    service_tier?: string;
  };
  const { provider, endpoint } = candidate;
  const {
    only,
    ignore,
    zdr,
    data_collection: dataCollection,
    quantizations,
    require_parameters: requireParameters,
  } = wanted ?? {};
  const price = (candidate.tier ? endpoint.service_tiers?.[candidate.tier]?.pricing : endpoint.pricing)?.prompt;
  return (
    price === undefined ||
    (only?.length ? !isMeant(only, candidate, serviceTier) : false) ||
    (ignore?.length ? isMeant(ignore, candidate, serviceTier) : false) ||
    (zdr === true && provider.slug !== 'alpha') ||
    (dataCollection === 'deny' && provider.slug !== 'alpha') ||
    (quantizations?.includes('fp8') === true && endpoint.quantization !== 'fp8') ||
    (quantizations?.includes('bf16') === true && endpoint.quantization !== 'bf16') ||
    (wanted?.max_price != null && price > 2) ||
    (requireParameters === true && request.seed != null && endpoint.supported_parameters?.includes('seed') === false) ||
    (requireParameters === true && request.tools != null && endpoint.supported_parameters?.includes('tools') === false)
  );
}

const runs = { numRuns: inTier(150, 1_500) };

test('a plan is a permutation of the allowed candidates, and exactly the others have a reason', () => {
  fc.assert(
    fc.property(situations, (situation) => {
      const { attempts, candidates } = outcome(situation);
      expect(new Set(attempts).size).toBe(attempts.length);
      for (const candidate of candidates) {
        const isTried = attempts.includes(candidate);
        if (isTried) expect(forbidden(candidate, situation)).toBe(false);
        if (attempts.length > 0) expect(candidate.excluded === undefined).toBe(isTried);
        expect(candidate.because !== undefined).toBe(isTried);
      }
    }),
    runs,
  );
});

test('an excluded candidate violates its rule, or gives way to another of its model', () => {
  fc.assert(
    fc.property(situations, (situation) => {
      const { candidates, attempts } = outcome(situation);
      const softly = ['Filter by Tool Compatibility', 'Filter by Output Tokens', 'Filter by Service Tier'];
      for (const candidate of candidates) {
        const step = candidate.excluded?.step;
        if (step === undefined || /^Limit|Order$/.test(step)) continue;
        if (!softly.includes(step)) expect(forbidden(candidate, situation)).toBe(true);
        else if (attempts.length > 0 && situation.request.provider?.allow_fallbacks !== false) {
          expect(attempts.some((one) => one.model === candidate.model)).toBe(true);
        }
      }
    }),
    runs,
  );
});

test('the order of the client is kept: named endpoints come first, in its order', () => {
  fc.assert(
    fc.property(situations, (situation) => {
      const { provider, service_tier: serviceTier } = situation.request;
      const order = provider?.order ?? [];
      const { attempts } = outcome({
        ...situation,
        models: [situation.models[0] as Plan['attempts'][0]['model']] as never,
      });
      const place = (candidate: Candidate) => {
        const at = order.findIndex((name) => isMeant([name], candidate, serviceTier));
        return at === -1 ? order.length : at;
      };
      const places = order.length === 0 ? [] : attempts.map(place);
      expect(places).toEqual([...places].sort((a, b) => a - b));
      if (order.length > 0 && provider?.allow_fallbacks === false) expect(places).not.toContain(order.length);
    }),
    runs,
  );
});

test('the funnel never widens, ends at the number of candidates left, and names the step that excluded the last', () => {
  fc.assert(
    fc.property(situations, (situation) => {
      const { funnel, attempts, candidates } = outcome(situation);
      const counts = funnel.map(({ endpoint_count: endpointCount }) => endpointCount);
      expect(counts).toEqual([...counts].sort((a, b) => b - a));
      expect(counts[0]).toBe(candidates.length);
      for (const [at, { step, endpoint_count: endpointCount }] of funnel.entries()) {
        const before = counts[at - 1] ?? endpointCount;
        const leftOut = candidates.filter(({ excluded }) => excluded?.step === step).length;
        if (step !== 'Filter by Provider Order') expect(before - endpointCount).toBe(leftOut);
      }
      expect(counts.at(-1) === 0).toBe(attempts.length === 0);
    }),
    runs,
  );
});

test('without a sort order endpoints in a cool-down are last, and the weights of a draw have the sum one', () => {
  fc.assert(
    fc.property(situations, (situation) => {
      const { request, known } = situation;
      const { attempts, candidates } = outcome({ ...situation, models: [situation.models[1]] as never });
      const shares = candidates.flatMap(({ weight }) => weight ?? []);
      if (shares.length > 0) expect(shares.reduce((sum, one) => sum + one, 0)).toBeCloseTo(1);
      const plain = request.provider?.order === undefined && request.service_tier !== 'priority';
      if (!plain) return;
      const cooling = attempts.map((one) => (known.cooling?.[healthId(one)] === undefined ? 0 : 1));
      expect(cooling).toEqual([...cooling].sort());
    }),
    runs,
  );
});

test('every 404 names the constraint that the caller can change', () => {
  const priced = model('a/one', [endpoint('a/one', 'beta', 1)]);
  for (const name of ['only', 'order'] as const) {
    const provider = { [name]: ['nobody'], allow_fallbacks: false };
    expect(refused({ provider }, { models: [priced] }).metadata).toMatchObject({
      constraint: { field: `provider.${name}`, detail: expect.any(String) },
    });
  }
  expect(tagsOf(planned({}, { models: [priced] }))).toEqual(['beta']);
});
