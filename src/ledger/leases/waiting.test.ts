import { expect, test } from 'vitest';
import { limits } from '../../limits.ts';
import type { Budget } from '../../schemas/budget.ts';
import { LEASE_IDLE_MS } from './lease-book.ts';
import { Leases } from './leases.ts';

const budget = (id: string): Budget => ({
  id,
  scope: 'key',
  label: id,
  reset_interval: 'never',
  limit_nano: 1_000_000,
  include_byok: false,
});
function make() {
  const time = { ms: 0 };
  const leases = new Leases({ now: () => time.ms, monotonic: () => time.ms, onNeed() {}, isStoreAway: () => false });
  leases.open();
  return { leases, time };
}
const ask = (id: string, budgets: Budget[], fullNano: number, leastNano = fullNano) => ({
  id,
  budgets,
  is_byok: false,
  full_nano: fullNano,
  least_nano: leastNano,
});
const state = (budgetId: string, lease: number, over = {}) => ({
  budget_id: budgetId,
  window_start: '',
  lease,
  leased: lease,
  spent: 0,
  free: 500_000,
  claimed: false,
  claims: false,
  ...over,
});

test('a remembered refusal does not apply to a request that already holds the amount', async () => {
  const { leases } = make();
  const a = budget('a');
  leases.registered([{ budget_id: 'a', window_start: '', amount: 1_000 }]);
  const hold = leases.reserve(ask('1', [a], 1_000), undefined);
  if (hold instanceof Promise) throw new Error('waits');
  const other = leases.reserve(ask('2', [a], 500), undefined) as Promise<unknown>;
  const refused = expect(other).rejects.toMatchObject({ status: 402 });
  leases.freeze([], 1, true);
  leases.applied([], 1, [state('a', 1_000, { free: 0 })]);
  await refused;
  const again = leases.reserve(ask('1', [a], 2_000, 600), hold) as Promise<{ granted_nano: number }>;
  leases.freeze([], 2, true);
  leases.applied([], 2, [state('a', 1_000, { free: 0 })]);
  expect((await again).granted_nano).toBe(1_000);
});

test('a lease for which a request waits is not forgotten', async () => {
  const { leases, time } = make();
  for (let i = 0; i < limits.leases_remembered; i++)
    leases.book.addPending([{ budget_id: `b${i}`, window_start: '', amount: 0, cover: 0 }]);
  time.ms += LEASE_IDLE_MS + 1;
  const waiting = leases.reserve(ask('1', [budget('b1')], 100), undefined) as Promise<{ granted_nano: number }>;
  waiting.catch(() => {});
  leases.applied([], 1, []);
  leases.freeze([], 2, true);
  leases.applied([], 2, [state('b1', 200)]);
  expect((await waiting).granted_nano).toBe(100);
});

test('a budget that was sufficient when another was requested is requested next, not refused', async () => {
  const { leases } = make();
  const [k, w] = [budget('k'), budget('w')];
  leases.registered([{ budget_id: 'w', window_start: '', amount: 1_000 }]);
  const waiting = leases.reserve(ask('1', [k, w], 800), undefined) as Promise<{ granted_nano: number }>;
  waiting.catch(() => {});
  leases.freeze([], 1, true);
  void leases.reserve(ask('2', [w], 500), undefined);
  leases.applied([], 1, [state('k', 1_600)]);
  const requests = leases.freeze([], 2, true);
  expect(requests).toMatchObject([{ budget_id: 'w', want: 300 }]);
  leases.applied([], 2, [state('w', 1_600)]);
  expect((await waiting).granted_nano).toBe(800);
});

test.each(['an answer reports', 'a watch reports'])(
  'a request that accepts less takes it before it is returned for a claim that %s',
  async (by) => {
    const { leases } = make();
    const a = budget('a');
    const waiting = leases.reserve(ask('1', [a], 1_222, 803), undefined) as Promise<{ granted_nano: number }>;
    const claimed = by.startsWith('an answer');
    leases.freeze([], 1, true);
    leases.applied([], 1, [state('a', 946, { free: 0, leased: 3_417, claimed })]);
    if (!claimed)
      leases.watched({
        wanted: [{ budget_id: 'a', window_start: '' }],
        scarce: [],
        keeps_leases: true,
        nodes: 4,
        now: 0,
      });
    expect(leases.freeze([], 2, true)).toEqual([]);
    expect((await waiting).granted_nano).toBe(946);
  },
);

test('a lease that other nodes need is returned with the batch of the last outcome, and not before', () => {
  const { leases } = make();
  leases.registered([{ budget_id: 'a', window_start: '', amount: 1_000 }]);
  const hold = leases.reserve(ask('1', [budget('a')], 1_000), undefined);
  if (hold instanceof Promise) throw new Error('waits');
  leases.watched({ wanted: [{ budget_id: 'a', window_start: '' }], scarce: [], keeps_leases: true, nodes: 2, now: 0 });
  leases.book.settle(hold, () => 300);
  expect(leases.freeze([], 1, false)).toEqual([]);
  expect(leases.freeze([], 1, true)).toMatchObject([{ budget_id: 'a', returned: 700 }]);
});

test('a claim of a batch with a lost answer is withdrawn, also if no request waits any more', async () => {
  const { leases, time } = make();
  const waiting = leases.reserve(ask('1', [budget('a')], 800), undefined) as Promise<unknown>;
  const refused = expect(waiting).rejects.toMatchObject({ status: 402 });
  leases.freeze([], 1, true);
  leases.applied([], 1, [state('a', 0, { leased: 900, free: 0, claimed: true })]);
  expect(leases.freeze([], 2, true)).toMatchObject([{ need: 800 }]);
  time.ms += limits.recall_wait_ms + 1;
  leases.expire();
  await refused;
  leases.alreadyApplied([], []);
  expect(leases.freeze([], 3, true)).toMatchObject([{ budget_id: 'a', withdraws: true }]);
});

test('no request exceeds the largest possible limit', () => {
  const { leases } = make();
  for (let index = 0; index < 100; index++)
    void (leases.reserve(ask(`g${index}`, [budget('k')], Number.MAX_SAFE_INTEGER), undefined) as Promise<unknown>);
  const most = limits.usd_max * 1e9;
  expect(leases.freeze([], 1, true)).toMatchObject([{ need: most, want: most, slack: most }]);
});

test('a hold of zero whose lease was forgotten is charged to the current lease', () => {
  const { leases, time } = make();
  const [b, other] = [budget('b'), budget('other')];
  const hold = leases.reserve(ask('1', [b], 0), undefined);
  if (hold instanceof Promise) throw new Error('waits');
  for (let i = 0; i < limits.leases_remembered; i++)
    leases.book.addPending([{ budget_id: `b${i}`, window_start: '', amount: 0, cover: 0 }]);
  time.ms += LEASE_IDLE_MS + 1;
  leases.applied([], 1, []);
  expect(leases.book.find('b', '')).toBeUndefined();
  leases.registered([
    { budget_id: 'b', window_start: '', amount: 1_000 },
    { budget_id: 'other', window_start: '', amount: 1_000 },
  ]);
  expect(leases.reserve(ask('1', [b, other], 700), hold)).toBe(hold);
  expect(leases.book.find('b', '')?.held).toBe(700);
  const charges = leases.book.settle(hold, () => 300);
  expect(charges.map(({ budget_id, amount }) => [budget_id, amount])).toEqual([
    ['b', 300],
    ['other', 300],
  ]);
  expect(leases.book.find('b', '')).toMatchObject({ held: 0, pending: 300 });
});

test('a budget without a charge is not in the charges', () => {
  const { leases } = make();
  leases.registered([{ budget_id: 'a', window_start: '', amount: 1_000 }]);
  const [a, own] = [budget('a'), { ...budget('own'), include_byok: true }];
  const hold = leases.reserve(ask('1', [a, own], 0), undefined);
  if (hold instanceof Promise) throw new Error('waits');
  const charges = leases.book.settle(hold, (line) => (line.budget.include_byok ? 5 : 0));
  expect(charges).toEqual([{ budget_id: 'own', window_start: '', amount: 5, cover: 0 }]);
});
