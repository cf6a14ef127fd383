import { describe, expect, test } from 'vitest';
import {
  endpoint,
  type Known,
  model,
  ONE,
  planned,
  speed,
  TWO,
  tagsOf,
  wait,
} from '../../test/routing/routing-fixture.ts';
import type { ProviderPreferences } from '../schemas/inner.ts';
import type { Plan, PlanContext } from './plan.ts';

/** Prices 1, 2 and 3 at three providers, and one more endpoint at the price of the last. */
const GRADED = model('a/x', [
  endpoint('a/x', 'alpha', 1),
  endpoint('a/x', 'beta', 2),
  endpoint('a/x', 'gamma', 3),
  endpoint('a/x', 'beta', 3, { tag: 'beta/slow' }),
]);

/** How often each endpoint comes first, over evenly spaced draws. */
function shares(of: (draw: number) => Plan, times = 1_000): Record<string, number> {
  const counts: Record<string, number> = {};
  for (let n = 0; n < times; n += 1) {
    const [first = ''] = tagsOf(of((n + 0.5) / times));
    counts[first] = (counts[first] ?? 0) + 1 / times;
  }
  return counts;
}

const weights = ({ candidates }: Plan) => candidates.map(({ weight }) => weight);

describe('the draw', () => {
  test('follows the inverse square of the price, and the others are in order of price', () => {
    const total = 1 + 1 / 4 + 1 / 9 + 1 / 9;
    const drawnShares = shares((draw) => planned({}, { models: [GRADED], draw }));
    expect(drawnShares['alpha']).toBeCloseTo(1 / total, 2);
    expect(drawnShares['beta']).toBeCloseTo(1 / 4 / total, 2);
    expect(drawnShares['gamma']).toBeCloseTo(1 / 9 / total, 2);
    expect(drawnShares['beta/slow']).toBeCloseTo(1 / 9 / total, 2);
    const drawn = planned({}, { models: [GRADED], draw: 0.9 });
    expect(tagsOf(drawn)).toEqual(['gamma', 'alpha', 'beta', 'beta/slow']);
    expect(drawn.attempts.map(({ because }) => because)).toEqual([['drawn', 'price'], ['price'], ['price'], ['price']]);
    expect(weights(drawn).reduce<number>((sum, weight) => sum + (weight ?? 0), 0)).toBeCloseTo(1);
  });

  test('equals the public example: A nine times as often as C, then C, and B last after its outage', () => {
    const three = model('a/x', [endpoint('a/x', 'alpha', 1), endpoint('a/x', 'beta', 2), endpoint('a/x', 'gamma', 3)]);
    const known = { outages: ['beta|a/x'] };
    const drawnShares = shares((draw) => planned({}, { models: [three], known, draw }));
    expect((drawnShares['alpha'] ?? 0) / (drawnShares['gamma'] ?? 1)).toBeCloseTo(9, 1);
    const one = planned({}, { models: [three], known });
    expect(tagsOf(one)).toEqual(['alpha', 'gamma', 'beta']);
    expect(one.attempts.at(-1)?.because).toEqual(['price', 'recent_outage']);
  });

  test('is even among free endpoints, and never selects priced ones beside them', () => {
    const free = model('a/x', [endpoint('a/x', 'alpha', 0), endpoint('a/x', 'beta', 0), endpoint('a/x', 'gamma', 1)]);
    expect(shares((draw) => planned({}, { models: [free], draw }))).toEqual({
      alpha: expect.closeTo(0.5),
      beta: expect.closeTo(0.5),
    });
  });

  test('never selects an endpoint without a known price beside a priced one', () => {
    const drawnShares = shares((draw) => planned({}, { draw, allow_unpriced: true }));
    expect(Object.keys(drawnShares)).not.toContain('gamma');
    expect(tagsOf(planned({}, { allow_unpriced: true })).at(-1)).toBe('gamma');
  });

  test.each<[string, Partial<PlanContext> & { known?: Known }, ProviderPreferences | undefined]>([
    ['a sort', {}, { sort: 'price' }],
    ['an order', {}, { order: ['gamma'] }],
    ['a default sort', { default_sort: 'price' }, undefined],
    ['a single endpoint', {}, { only: ['alpha'] }],
    ['cooling endpoints alone', { known: { cooling: { 'alpha|a/x': 5_000 } } }, { only: ['alpha'] }],
  ])('is skipped with %s', (_title, context, provider) => {
    const planFor = (draw: number) =>
      planned({ ...(provider && { provider }) }, { models: [GRADED], draw, ...context });
    expect(tagsOf(planFor(0.99))).toEqual(tagsOf(planFor(0)));
    expect(weights(planFor(0.99)).every((weight) => weight === undefined)).toBe(true);
  });
});

describe('a sort', () => {
  const known: Known = {
    performance: {
      'alpha|a/x': { ...speed(50), ...wait(900), tool_success: 0.99 },
      'beta|a/x': { ...speed(90), ...wait(100), tool_success: 0.5 },
      'gamma|a/x': { ...speed(10), ...wait(400), tool_success: 0.995 },
    },
  };
  test.each<[string, ProviderPreferences, string[]]>([
    ['price', { sort: 'price' }, ['alpha', 'beta', 'gamma', 'beta/slow']],
    ['throughput', { sort: 'throughput' }, ['beta', 'alpha', 'gamma', 'beta/slow']],
    ['latency', { sort: 'latency' }, ['beta', 'gamma', 'alpha', 'beta/slow']],
    ['exacto: tool calls, and speed among similar ones', { sort: 'exacto' }, ['alpha', 'gamma', 'beta', 'beta/slow']],
    ['an object', { sort: { by: 'latency' } }, ['beta', 'gamma', 'alpha', 'beta/slow']],
    ['a sort behind an order', { sort: 'latency', order: ['alpha'] }, ['alpha', 'beta', 'gamma', 'beta/slow']],
  ])('by %s; endpoints without data are last', (_title, provider, expected) => {
    expect(tagsOf(planned({ provider }, { models: [GRADED], known }))).toEqual(expected);
  });

  test('of the request takes precedence over the default, and the plan names it', () => {
    const by = (provider?: ProviderPreferences) =>
      planned({ ...(provider && { provider }) }, { models: [GRADED], known, default_sort: 'throughput' });
    expect(tagsOf(by())[0]).toBe('beta');
    expect(by().sort).toBe('throughput');
    expect(tagsOf(by({ sort: 'price' }))[0]).toBe('alpha');
    expect(by({ sort: 'price' }).sort).toBe('price');
  });

  test('ignores a recent outage, and respects a cool-down', () => {
    const down = { outages: ['alpha|a/x'] };
    expect(tagsOf(planned({ provider: { sort: 'price' } }, { models: [GRADED], known: down }))[0]).toBe('alpha');
    const cooling = { cooling: { 'alpha|a/x': 9_000 } };
    const result = planned({ provider: { sort: 'price' } }, { models: [GRADED], known: cooling });
    expect(tagsOf(result).at(-1)).toBe('alpha');
    expect(result.attempts.at(-1)?.because).toEqual(['price', 'cooling_down']);
  });

  const two = model('a/two', [endpoint('a/two', 'alpha', 5, { tag: 'alpha/two' })]);
  const over: Known = { performance: { ...known.performance, 'alpha/two|a/two': speed(70) } };
  test.each<[string, Parameters<typeof planned>[0], string[]]>([
    ['none', { provider: { sort: { by: 'throughput', partition: 'none' } } }, ['beta', 'alpha/two', 'alpha', 'gamma']],
    [
      'model',
      { provider: { sort: { by: 'throughput', partition: 'model' } } },
      ['beta', 'alpha', 'gamma', 'beta/slow'],
    ],
    ['none, in its older form', { route: 'sort', provider: { sort: 'throughput' } }, ['beta', 'alpha/two', 'alpha']],
    [
      'model, beside the older form of none',
      { route: 'sort', provider: { sort: { by: 'throughput', partition: 'model' } } },
      ['beta', 'alpha', 'gamma', 'beta/slow'],
    ],
    ['model, in its older form', { route: 'fallback', provider: { sort: 'throughput' } }, ['beta', 'alpha', 'gamma']],
  ])('over several models, partition %s', (_title, request, expected) => {
    const tagList = tagsOf(planned(request, { models: [GRADED, two], known: over }));
    expect(tagList.slice(0, expected.length)).toEqual(expected);
    expect(tagList).toHaveLength(5);
  });

  test('in one list without a sort is one draw', () => {
    const first = (partition: string) =>
      tagsOf(planned({ provider: { sort: { by: null, partition } } }, { models: [two, GRADED] }))[0];
    expect([first('model'), first('none')]).toEqual(['alpha/two', 'alpha']);
  });

  test('in one list is one order: that of the first model’s name', () => {
    const variants = new Map([[GRADED, { sort: 'throughput' as const }]]);
    const by = (first: typeof two, second: typeof two) =>
      planned({ route: 'sort' }, { models: [first, second], variants, known: over });
    expect(tagsOf(by(GRADED, two))).toEqual(['beta', 'alpha/two', 'alpha', 'gamma', 'beta/slow']);
    expect(by(GRADED, two).attempts[1]?.because).toEqual(['throughput']);
    const plain = by(two, GRADED).attempts;
    expect(plain.every(({ because }) => because?.at(-1) === 'price')).toBe(true);
  });

  test('in one list without fallbacks is the first of all', () => {
    const provider = { sort: { by: 'throughput', partition: 'none' }, allow_fallbacks: false };
    expect(tagsOf(planned({ provider }, { models: [two, GRADED], known: over }))).toEqual(['beta']);
  });
});

describe('a preferred performance', () => {
  const known: Known = {
    performance: {
      'alpha|a/x': { ...speed(10), ...wait(3_000) },
      'beta|a/x': { ...speed(50), ...wait(1_000) },
    },
  };
  test.each<[string, ProviderPreferences, string[]]>([
    ['throughput', { preferred_min_throughput: 40 }, ['beta', 'gamma', 'beta/slow', 'alpha']],
    ['throughput of a percentile', { preferred_min_throughput: { p90: 40 } }, ['beta', 'gamma', 'beta/slow', 'alpha']],
    ['throughput at all percentiles', { preferred_min_throughput: 5 }, ['alpha', 'beta', 'gamma', 'beta/slow']],
    ['latency, in seconds', { preferred_max_latency: 2 }, ['beta', 'gamma', 'beta/slow', 'alpha']],
    [
      'latency that no endpoint reaches',
      { preferred_max_latency: { p50: 0.5 } },
      ['gamma', 'beta/slow', 'alpha', 'beta'],
    ],
  ])('%s: endpoints that miss it move back, and unknown ones do not', (_title, provider, expected) => {
    expect(tagsOf(planned({ provider }, { models: [GRADED], known }))).toEqual(expected);
  });

  test('is checked for each percentile separately', () => {
    const uneven = { throughput: { p50: 90, p75: 60, p90: 30, p99: 10 } };
    const of = (preferredMinThroughput: object) =>
      tagsOf(
        planned(
          { provider: { preferred_min_throughput: preferredMinThroughput as never } },
          { models: [GRADED], known: { performance: { 'alpha|a/x': uneven } } },
        ),
      )[0];
    expect(of({ p50: 80, p90: 30 })).toBe('alpha');
    expect(of({ p50: 80, p90: 31 })).not.toBe('alpha');
    expect(of({ p50: null, p99: 11 })).not.toBe('alpha');
  });

  test('can move a later model to the front, and excludes none', () => {
    const provider = { preferred_max_latency: 2, only: ['alpha'] };
    const result = planned({ provider }, { models: [GRADED, TWO], known });
    expect(result.attempts.map((one) => one.model.id)).toEqual(['a/two', 'a/x']);
    expect(result.attempts[1]?.because).toEqual(['price', 'below_preferred']);
  });

  test('is ignored with an order', () => {
    const provider = { preferred_max_latency: 2, order: ['alpha'] };
    expect(tagsOf(planned({ provider }, { models: [GRADED], known }))[0]).toBe('alpha');
  });
});

describe('a conversation', () => {
  const sticky: PlanContext['sticky'] = ({ endpoint: { tag } }) => tag === 'gamma';
  const at = (request: Parameters<typeof planned>[0], known: Known = {}, more: Partial<PlanContext> = {}) =>
    planned(request, { models: [GRADED], known, sticky, ...more });

  test('continues at its endpoint without a draw', () => {
    const result = at({}, {}, { draw: 0.5 });
    expect(tagsOf(result)).toEqual(['gamma', 'alpha', 'beta', 'beta/slow']);
    expect(result.attempts[0]?.because).toEqual(['sticky', 'price']);
    expect(weights(result).every((weight) => weight === undefined)).toBe(true);
  });
  test.each<[string, Parameters<typeof planned>[0], Known]>([
    ['an order', { provider: { order: ['beta'] } }, {}],
    ['a sort', { provider: { sort: 'price' } }, {}],
    ['a cool-down of its endpoint', {}, { cooling: { 'gamma|a/x': 2_000 } }],
    ['an outage of its endpoint', {}, { outages: ['gamma|a/x'] }],
    ['a filter', { provider: { ignore: ['gamma'] } }, {}],
  ])('moves to another endpoint with %s', (_title, request, known) => {
    expect(tagsOf(at(request, known))[0]).not.toBe('gamma');
  });
  test('does not change the candidates behind an order', () => {
    expect(tagsOf(at({ provider: { order: ['beta'] } }))).toEqual(['beta', 'beta/slow', 'alpha', 'gamma']);
  });
  test('prefers the endpoint of its opaque state to that of its cache', () => {
    const result = at({}, {}, { prefers: ({ endpoint: { tag } }) => tag === 'beta' });
    expect(tagsOf(result)[0]).toBe('beta');
    expect(result.attempts[0]?.because).toEqual(['state', 'price']);
  });
});

test('the price for ranking is that of the prompt length, less the discount', () => {
  const long = { price_tiers: [{ prompt_tokens_over: 100, price: { prompt: 90, completion: 90 } }] };
  const priced = model('a/x', [
    endpoint('a/x', 'alpha', 10, long),
    endpoint('a/x', 'beta', 20),
    endpoint('a/x', 'gamma', 30, { pricing: { prompt: 30, completion: 30, discount: 0.5 } }),
  ]);
  const ask = (chars: number, maxPrice?: number) => {
    const provider = maxPrice === undefined ? {} : { max_price: { prompt: maxPrice / 1e6 } };
    return tagsOf(
      planned({ messages: [{ role: 'user', content: 'x'.repeat(chars) }], provider }, { models: [priced] }),
    );
  };
  expect(ask(400)).toEqual(['alpha', 'gamma', 'beta']);
  expect(ask(404)).toEqual(['gamma', 'beta', 'alpha']);
  expect(ask(404, 15)).toEqual(['gamma']);
  expect(ask(400, 15)).toEqual(['alpha', 'gamma']);
});

test('an endpoint that a prompt probably does not fit is ranked lower', () => {
  const tight = model('a/x', [
    endpoint('a/x', 'alpha', 1, { context_length: 1_000 }),
    endpoint('a/x', 'beta', 9, { context_length: 100_000 }),
  ]);
  const ask = (chars: number, maxTokens?: number) =>
    planned(
      { messages: [{ role: 'user', content: 'x'.repeat(chars) }], ...(maxTokens ? { max_tokens: maxTokens } : {}) },
      { models: [tight] },
    );
  expect(tagsOf(ask(100))).toEqual(['alpha', 'beta']);
  expect(tagsOf(ask(8_000))).toEqual(['beta', 'alpha']);
  expect(ask(8_000).attempts[1]?.because).toEqual(['price', 'prompt_may_not_fit']);
  expect(tagsOf(ask(2_000, 900))).toEqual(['beta', 'alpha']);
});

test('endpoints that are not tried have a reason', () => {
  const first = planned({ provider: { allow_fallbacks: false } }, { models: [GRADED] });
  expect(first.candidates.filter(({ excluded }) => excluded?.step === 'Limit to First')).toHaveLength(3);
  expect(tagsOf(planned({ provider: { order: ['beta'], allow_fallbacks: false } }, { models: [ONE] }))).toEqual([
    'beta',
    'beta/turbo',
  ]);
});

test('the reasons that move an endpoint back have a fixed order of severity', () => {
  const prefers: PlanContext['prefers'] = ({ endpoint: { tag } }) => tag !== 'alpha/state';
  const tags = ['alpha/state', 'alpha/tight', 'alpha/outage', 'alpha/slow', 'alpha/cooling'];
  const at = (tag: string, place: number) =>
    endpoint('a/x', 'alpha', 9 - place, { tag, context_length: tag === 'alpha/tight' ? 10 : 1_000 });
  const result = planned(
    { messages: [{ role: 'user', content: 'x'.repeat(80) }], provider: { preferred_max_latency: 1 } },
    {
      models: [
        model(
          'a/x',
          [...tags].reverse().map((tag) => at(tag, tags.indexOf(tag))),
        ),
      ],
      known: {
        outages: ['alpha/outage|a/x'],
        performance: { 'alpha/slow|a/x': wait(2_000) },
        cooling: { 'alpha/cooling|a/x': 5_000 },
      },
      prefers,
    },
  );
  expect(tagsOf(result)).toEqual(tags);
});
