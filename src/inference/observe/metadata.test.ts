import { expect, test } from 'vitest';
import { endpoint, model, PROVIDERS } from '../../../test/routing/routing-fixture.ts';
import type { Candidate, Plan } from '../../routing/plan.ts';
import type { Call } from '../call.ts';
import { type RoutingFacts, routingMetadata } from './metadata.ts';

const ONE = model('a/one', [
  endpoint('a/one', 'alpha', 1_000_000),
  endpoint('a/one', 'beta', 2_000_000),
  endpoint('a/one', 'gamma', 3_000_000),
  endpoint('a/one', 'beta', 4_000_000, { tag: 'beta/turbo' }),
]);
const [alpha, beta, gamma, turbo] = ONE.endpoints.map(
  (one): Candidate => ({ model: ONE, endpoint: one, provider: PROVIDERS[one.provider]!, excluded: undefined }),
) as [Candidate, Candidate, Candidate, Candidate];

const plan: Plan = {
  requested: 'a/one',
  strategy: 'direct',
  sort: 'price',
  candidates: [
    alpha,
    { ...gamma, excluded: { step: 'Filter by Data Policy', reason: 'its provider may train on data' } },
    Object.assign(beta, { weight: 0.75, because: ['order'] }),
    turbo,
  ],
  attempts: [beta, alpha],
  funnel: [{ step: 'Initial Endpoints', endpoint_count: 4 }],
};
const facts: RoutingFacts = {
  call: { api_type: 'completions', request: { messages: [], max_tokens: 10 }, stages: [] } as unknown as Call,
  plan,
  requested: 'a/one:floor',
  attempts: [],
  selected: undefined,
  report: [],
};
const available = (over: Partial<RoutingFacts> = {}) => {
  const { endpoints } = routingMetadata({ ...facts, ...over }) as {
    endpoints: { available: Record<string, unknown>[] };
  };
  return endpoints.available;
};

test('endpoints are in the order of the plan, followed by the others', () => {
  expect(available().map(({ endpoint_id, position }) => [endpoint_id, position])).toEqual([
    ['beta|a/one', 1],
    ['alpha|a/one', 2],
    ['beta/turbo|a/one', null],
  ]);
});

test('each has the public members, the reasons for its position and its expected cost', () => {
  expect(available({ selected: beta, usage: { in_uncached: 100, out_text: 3 } })[0]).toEqual({
    provider: 'Beta',
    model: 'a/one',
    selected: true,
    endpoint_id: 'beta|a/one',
    tag: 'beta',
    is_byok: false,
    position: 1,
    weight: 0.75,
    because: ['order'],
    expected_cost: 0.00022,
  });
});

test('the public members are present with and without attempts', () => {
  expect(routingMetadata(facts)).toMatchObject({
    requested: 'a/one:floor',
    strategy: 'direct',
    region: null,
    summary: 'available=3',
    attempt: 0,
    is_byok: false,
    endpoints: { total: 4 },
    attempts: [],
    sort: 'price',
    routing_funnel: plan.funnel,
    hold: null,
  });
  const attempts = [{ provider: 'Beta', model: 'a/one', status: 200, is_byok: false }];
  expect(routingMetadata({ ...facts, attempts, selected: beta })).toMatchObject({
    summary: 'available=3, selected=Beta',
    attempt: 1,
    attempts,
  });
});

test('excluded endpoints have their step and reason', () => {
  const { endpoints } = routingMetadata(facts) as { endpoints: { excluded: object[] } };
  expect(endpoints.excluded).toEqual([
    {
      provider: 'Gamma',
      model: 'a/one',
      endpoint_id: 'gamma|a/one',
      tag: 'gamma',
      is_byok: false,
      step: 'Filter by Data Policy',
      reason: 'its provider may train on data',
    },
  ]);
});

test('the hold has its budgets', () => {
  const routing = { strategy: 'direct', total: 1, plan: [], hold_nano: 5_000, held_in: ['key never'] };
  expect(routingMetadata({ ...facts, routing })).toMatchObject({ hold: { amount: 0.000005, budgets: ['key never'] } });
});
