import { expect, test } from 'vitest';
import { limits } from '../../limits.ts';
import type { Budget } from '../../schemas/budget.ts';
import type { Watched } from '../settle.ts';
import { LEASE_IDLE_MS } from './lease-book.ts';
import { Leases } from './leases.ts';

const NOON = Date.parse('2026-11-21T12:00:00Z');
const PLENTY = 1_000_000;

function budget(id: string, resetInterval: Budget['reset_interval'] = 'never'): Budget {
  return { id, scope: 'key', label: id, reset_interval: resetInterval, limit_nano: PLENTY, include_byok: false };
}

function watched(over: Partial<Watched> = {}): Watched {
  return { wanted: [], scarce: [], keeps_leases: true, nodes: 4, now: 0, ...over };
}

/** A node whose store grants twice the amount that a request needs and has `free` left. */
function make() {
  const time = { ms: NOON };
  const leases = new Leases({ now: () => time.ms, monotonic: () => time.ms, onNeed() {}, isStoreAway: () => false });
  leases.open();
  leases.watched(watched());
  let batch = 0;
  let ordinal = 0;
  return {
    leases,
    time,
    /** One call of this budget without a cost; it leaves a lease of 200. */
    use: async (used: Budget, free: number = PLENTY): Promise<void> => {
      ordinal += 1;
      const full = { full_nano: 100, least_nano: 100 };
      const reserved = leases.reserve({ id: `${ordinal}`, budgets: [used], is_byok: false, ...full }, undefined);
      batch += 1;
      const windows = leases.freeze([], batch, true).map(({ budget_id, window_start, own, returned, want }) => {
        const lease = own - returned + 2 * want;
        return { budget_id, window_start, lease, leased: lease, spent: 0, free, claimed: false, claims: false };
      });
      leases.applied([], batch, windows);
      leases.book.settle(await reserved, () => 0);
    },
    /** The amounts that the next batch returns, by budget, if the watch requests them. */
    returned: (over: Partial<Watched> = {}): Record<string, number> => {
      if (!leases.watched(watched(over))) return {};
      batch += 1;
      const requests = leases.freeze([], batch, true);
      const states = requests.map(({ budget_id, window_start, own, returned }) => {
        const lease = own - returned;
        return { budget_id, window_start, lease, leased: lease, spent: 0, free: PLENTY, claimed: false, claims: false };
      });
      leases.applied([], batch, states);
      return Object.fromEntries(requests.map(({ budget_id, returned }) => [budget_id, returned]));
    },
  };
}

test('an unused lease is kept if its window has plenty left, and the next call needs no request', async () => {
  const { leases, time, use, returned } = make();
  await use(budget('a'));
  for (let at = 0; at < 3; at++) {
    time.ms += 12_000;
    expect(returned()).toEqual({});
  }
  const again = { id: 'again', budgets: [budget('a')], is_byok: false, full_nano: 100, least_nano: 100 };
  expect(leases.reserve(again, undefined)).not.toBeInstanceOf(Promise);
});

test('a lease that is unused for long is returned in one batch with those due within a minute', async () => {
  const { time, use, returned } = make();
  await use(budget('first'));
  time.ms += 50_000;
  await use(budget('second'));
  time.ms += 30_000;
  await use(budget('third'));
  time.ms += limits.lease_kept_ms - 80_001;
  expect(returned()).toEqual({});
  time.ms += 250;
  expect(returned()).toEqual({ first: 200, second: 200 });
});

test('a lease of a window with little left is returned soon: after the answer to a batch or after a watch', async () => {
  const { time, use, returned } = make();
  await use(budget('little'), 8 * 200 - 1);
  await use(budget('enough'), 8 * 200);
  time.ms += LEASE_IDLE_MS - 1;
  expect(returned()).toEqual({});
  time.ms += 250;
  expect(returned()).toEqual({ little: 200 });
  time.ms += 250;
  expect(returned({ scarce: [{ budget_id: 'enough', window_start: '' }] })).toEqual({ enough: 200 });
});

test('a lease that another node needs is returned immediately, however recently it was used', async () => {
  const { use, returned } = make();
  await use(budget('a'));
  await use(budget('b'));
  expect(returned({ wanted: [{ budget_id: 'a', window_start: '' }] })).toEqual({ a: 200 });
});

test('a lease above its limit is returned with the next batch', async () => {
  const { leases, use } = make();
  await use(budget('a'), -1);
  expect(leases.freeze([], 9, true)).toMatchObject([{ budget_id: 'a', returned: 200 }]);
});

test('no lease is kept while an older version may run, and none of an earlier run', async () => {
  const { leases, time, use, returned } = make();
  await use(budget('a'));
  leases.registered([
    { budget_id: 'a', window_start: '', amount: 200 },
    { budget_id: 'old', window_start: '', amount: 300 },
  ]);
  await use(budget('a'));
  time.ms += LEASE_IDLE_MS;
  expect(returned()).toMatchObject({ old: 300 });
  await use(budget('b'));
  time.ms += LEASE_IDLE_MS;
  expect(returned({ keeps_leases: false })).toMatchObject({ b: 200 });
});

test('a lease of a past window is returned soon', async () => {
  const { time, use, returned } = make();
  time.ms = Date.parse('2026-11-21T23:59:58Z');
  await use(budget('day', 'daily'));
  await use(budget('month', 'monthly'));
  time.ms += LEASE_IDLE_MS;
  expect(returned()).toEqual({ day: 200 });
});

test('a node with more leases than its bound returns the unused ones', async () => {
  const { leases, time, use, returned } = make();
  for (let index = 0; index < 3; index++) await use(budget(`${index}`));
  for (let index = 0; index < limits.leases_kept; index++) leases.book.of(`other ${index}`, '');
  time.ms += LEASE_IDLE_MS;
  expect(Object.keys(returned())).toHaveLength(3);
});

test('one batch returns at most a thousand leases, and the next batches the rest', () => {
  const { leases } = make();
  leases.registered(Array.from({ length: 2_500 }, (_, at) => ({ budget_id: `${at}`, window_start: '', amount: 1 })));
  leases.drain();
  const sizes: number[] = [];
  for (let number = 1; number < 5; number++) {
    const requests = leases.freeze([], number, true);
    const rest = { lease: 0, leased: 0, spent: 0, free: 1, claimed: false, claims: false };
    const states = requests.map(({ budget_id, window_start }) => ({ budget_id, window_start, ...rest }));
    leases.applied([], number, states);
    sizes.push(requests.length);
  }
  expect(sizes).toEqual([1_000, 1_000, 500, 0]);
});
