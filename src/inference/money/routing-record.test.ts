import { expect, test } from 'vitest';
import { endpoint, model, PROVIDERS } from '../../../test/routing/routing-fixture.ts';
import type { Hold } from '../../ledger/leases/hold.ts';
import { LeaseBook } from '../../ledger/leases/lease-book.ts';
import type { OwnCredential } from '../../routing/own-credential.ts';
import type { Candidate, Plan } from '../../routing/plan.ts';
import type { Call } from '../call.ts';
import { ROUTING_RECORDED_MAX, routingRecord } from './generation.ts';

const MANY = model(
  'a/many',
  Array.from({ length: 30 }, (_, at) =>
    endpoint('a/many', 'alpha', 1_000_000, { tag: `alpha/${at}`, id: `alpha/${at}|a/many` }),
  ),
);
const OTHER = model('a/other', [endpoint('a/other', 'beta', 2_000_000)]);

const candidate = (of: typeof MANY, at: number, over: Partial<Candidate> = {}): Candidate => ({
  model: of,
  endpoint: of.endpoints[at]!,
  provider: PROVIDERS[of.endpoints[at]!.provider]!,
  excluded: undefined,
  ...over,
});
const planOf = (attempts: Candidate[], leftOut: Candidate[] = []): Plan => ({
  requested: 'a/many',
  strategy: 'direct',
  candidates: [...attempts, ...leftOut],
  attempts,
  funnel: [],
});
const call = { api_type: 'completions', request: { messages: [], max_tokens: 100 }, stages: [] } as unknown as Call;
const nothing: Hold = { id: 'g', lines: [], granted_nano: 0 };
const USAGE = { in_uncached: 10, out_text: 5 };

test('endpoints are in order with weight and expected cost, with their model unless it is that of the record', () => {
  const attempts = [
    candidate(MANY, 1, { weight: 0.123456, because: ['drawn'] }),
    candidate(OTHER, 0, { own: { id: 'b' } as OwnCredential, tier: 'flex', because: [] }),
  ];
  expect(routingRecord({ call, plan: planOf(attempts), hold: nothing }, 'a/many', USAGE)).toEqual({
    strategy: 'direct',
    total: 2,
    plan: [
      { id: 'alpha/1', weight: 0.123, because: ['drawn'], expected_nano: 110_000 },
      { id: 'beta|a/other', tier: 'flex', byok_id: 'b', expected_nano: 220_000 },
    ],
  });
});

test('excluded endpoints are grouped by step, including those excluded at their attempt', () => {
  const excluded = { step: 'Encode', reason: 'r' };
  const attempts = [candidate(MANY, 0, { excluded }), candidate(MANY, 1)];
  const leftOut = [candidate(MANY, 2, { excluded: { step: 'Filter by Data Policy', reason: 'r' } })];
  const { plan, excluded: steps } = routingRecord(
    { call, plan: planOf(attempts, leftOut), hold: nothing },
    'a/many',
    null,
  );
  expect(plan.map(({ id }) => id)).toEqual(['alpha/1']);
  expect(steps).toEqual({ Encode: ['alpha/0'], 'Filter by Data Policy': ['alpha/2'] });
});

test('the lists and the record are bounded', () => {
  const place = { weight: 1 / 3, because: ['order', 'recent_outage'] as const };
  const attempts = MANY.endpoints.slice(0, 16).map((_one, at) => candidate(MANY, at, place));
  const excluded = { step: 'Filter by Allowed Providers', reason: 'r' };
  const leftOut = MANY.endpoints.slice(16).map((_one, at) => candidate(MANY, 16 + at, { excluded }));
  const record = routingRecord({ call, plan: planOf(attempts, leftOut), hold: nothing }, 'a/many', USAGE);
  expect(record.total).toBe(30);
  expect(record.plan).toHaveLength(ROUTING_RECORDED_MAX);
  expect(Object.values(record.excluded ?? {}).flat()).toHaveLength(ROUTING_RECORDED_MAX);
  expect(JSON.stringify(record).length).toBeLessThan(1_000);
});

test('the hold names its budgets', () => {
  const budget = { id: 'i', label: 'l', limit_nano: 1, include_byok: false };
  const lease = new LeaseBook(() => 0).of('i', '');
  const line = { window_start: '', lease, amount: 7, share: 0 };
  const hold: Hold = {
    id: 'g',
    granted_nano: 7,
    lines: [
      { ...line, granted: 7, budget: { ...budget, scope: 'key', reset_interval: 'never' } },
      { ...line, granted: 0, budget: { ...budget, scope: 'workspace', reset_interval: 'daily' } },
    ],
  };
  const record = routingRecord({ call, plan: planOf([candidate(MANY, 0)]), hold }, 'a/many', USAGE);
  expect(record).toMatchObject({ hold_nano: 7, held_in: ['key never'] });
});

test('a call that is not chat has no expected cost', () => {
  const vectors = { ...call, api_type: 'embeddings' as const };
  const record = routingRecord({ call: vectors, plan: planOf([candidate(MANY, 0)]), hold: nothing }, 'a/many', USAGE);
  expect(record.plan).toEqual([{ id: 'alpha/0' }]);
});
