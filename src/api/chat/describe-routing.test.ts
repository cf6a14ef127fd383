import { describe, expect, test } from 'vitest';
import { generation, noHold } from '../../../test/generation-fixture.ts';
import { attempt, down, recorders } from '../../../test/ledger/recorder-fixture.ts';
import type { RoutingRecord } from '../../ledger/records.ts';
import { openDatabase } from '../../storage/database.ts';
import { generationStore } from '../../storage/generations.ts';
import { ledgerStore } from '../../storage/ledger.ts';
import { describeRouting, isRouter } from './describe-routing.ts';

const ROUTING: RoutingRecord = {
  strategy: 'fallback',
  total: 4,
  plan: [
    { id: 'alpha', weight: 0.9, because: ['drawn'], expected_nano: 1_500 },
    { id: 'beta/turbo|b/other', tier: 'flex', byok_id: 'own' },
  ],
  excluded: { 'Filter by Data Policy': ['gamma', 'delta|b/other'] },
  hold_nano: 2_000,
  held_in: ['key never'],
};
const of = (over: Parameters<typeof generation>[0]) =>
  describeRouting(generation({ model: 'a/one', routing: ROUTING, ...over }));

test('the plan has full endpoint ids, and marks the endpoint that answered', () => {
  expect(of({ id: 'g', endpoint_id: 'alpha|a/one', outcome: 'completed' })).toEqual({
    strategy: 'fallback',
    sort: null,
    endpoints: {
      total: 4,
      planned: [
        {
          endpoint_id: 'alpha|a/one',
          service_tier: null,
          byok_id: null,
          weight: 0.9,
          because: ['drawn'],
          expected_cost: 0.0000015,
          selected: true,
        },
        {
          endpoint_id: 'beta/turbo|b/other',
          service_tier: 'flex',
          byok_id: 'own',
          weight: null,
          because: [],
          expected_cost: null,
          selected: false,
        },
      ],
      excluded: [
        { endpoint_id: 'gamma|a/one', step: 'Filter by Data Policy' },
        { endpoint_id: 'delta|b/other', step: 'Filter by Data Policy' },
      ],
    },
    hold: { amount: 0.000002, budgets: ['key never'] },
    pipeline: [],
  });
});

test('no endpoint is selected if none answered', () => {
  const routing = of({ id: 'g', endpoint_id: 'alpha|a/one', outcome: 'failed' });
  expect(routing?.endpoints.planned.some(({ selected }) => selected)).toBe(false);
});

test('an old record has no routing', () => {
  expect(describeRouting(generation({ id: 'g' }))).toBeNull();
});

test.each([
  ['auto', true],
  ['free', true],
  ['fallback', false],
  ['latest', false],
])('whether a router chose the model, with strategy %s: %s', (strategy, expected) => {
  expect(isRouter({ ...ROUTING, strategy })).toBe(expected);
});

describe('after a crash', () => {
  const { asKilled, freshDir, start, stop } = recorders(() => openDatabase({}));

  test('the routing of a finished call is available, and that of a running one is not', async () => {
    const database = await openDatabase({});
    const store = ledgerStore(database.queries, database.engine);
    const dir = freshDir();
    // The store receives nothing before the process ended.
    let isDeaf = true;
    const first = await start({ ...store, settle: (batch) => (isDeaf ? down() : store.settle(batch)) }, dir);
    const finished = generation({ id: 'gen-1', model: 'a/one', routing: ROUTING });
    for (const id of ['gen-1', 'gen-2']) await first.attempt(attempt(id));
    await first.outcome(finished, noHold('gen-1'));
    const second = await start(store, asKilled(dir));
    await second.flush();
    const { findById } = generationStore(database.queries);
    const { organization_id } = finished;
    const [known, unknown] = [
      await findById({ organization_id, id: 'gen-1' }),
      await findById({ organization_id, id: 'gen-2' }),
    ];
    expect(known && describeRouting(known)).toEqual(describeRouting(finished));
    expect(unknown).toMatchObject({ outcome: 'unknown' });
    expect(unknown && describeRouting(unknown)).toBeNull();
    await stop(second);
    isDeaf = false;
    await stop(first);
    await database.close();
  });
});
