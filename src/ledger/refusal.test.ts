import { beforeEach, expect, test } from 'vitest';
import { GatewayError } from '../errors.ts';
import { limits } from '../limits.ts';
import type { Budget } from '../schemas/budget.ts';
import type { Hold } from './leases/hold.ts';
import { Leases } from './leases/leases.ts';

let now = 0;
let requests = 0;
let leases: Leases;

beforeEach(() => {
  now = 0;
  requests = 0;
  leases = new Leases({ now: () => now, monotonic: () => now, onNeed: () => requests++, isStoreAway: () => false });
  leases.open();
});

function budget(id: string): Budget {
  return { id, scope: 'key', label: `limit of ${id}`, reset_interval: 'never', limit_nano: 1_000, include_byok: true };
}

/** The rejection of the promise, or the hold. */
function outcomeOf(reserve: () => Hold | Promise<Hold>): Promise<Hold | GatewayError> {
  return (async () => reserve())().catch((error: unknown) => {
    if (error instanceof GatewayError) return error;
    throw error;
  });
}

const ask = (fullNano: number, ...budgets: Budget[]) => ({
  id: 'g',
  budgets,
  is_byok: false,
  full_nano: fullNano,
  least_nano: fullNano,
});

/** The answer to a batch: for each budget, the remaining amount in the store and the leases of other nodes. */
function answer(number: number, standing: Record<string, { free: number; elsewhere: number }>): void {
  leases.freeze([], number, true);
  const windows = Object.entries(standing).map(([budgetId, { free, elsewhere }]) => ({
    ...{
      budget_id: budgetId,
      window_start: '',
      lease: 0,
      leased: elsewhere,
      spent: 1_000 - free - elsewhere,
      free,
      claimed: false,
      claims: false,
    },
  }));
  leases.applied([], number, windows);
}

const STANDING = { plenty: { free: 0, elsewhere: 900 }, empty: { free: 0, elsewhere: 0 } };

test('the refusal names the empty budget, not one with money at other nodes', async () => {
  const outcome = outcomeOf(() => leases.reserve(ask(50, budget('plenty'), budget('empty')), undefined));
  answer(1, STANDING);
  expect(await outcome).toMatchObject({ status: 402, message: expect.stringContaining('limit of empty') });
});

test('a refusal applies for a moment to requests of as much from the same budget, without a query, and to no others', async () => {
  const first = outcomeOf(() => leases.reserve(ask(50, budget('plenty'), budget('empty')), undefined));
  answer(1, STANDING);
  await first;
  requests = 0;
  expect(await outcomeOf(() => leases.reserve(ask(50, budget('empty')), undefined))).toMatchObject({ status: 402 });
  expect(requests).toBe(0);
  void outcomeOf(() => leases.reserve(ask(49, budget('empty')), undefined));
  expect(requests).toBe(1);
  void outcomeOf(() => leases.reserve(ask(50, budget('plenty')), undefined));
  expect(requests).toBe(2);
  now += limits.refusal_ms;
  void outcomeOf(() => leases.reserve(ask(50, budget('empty')), undefined));
  expect(requests).toBe(3);
});

test('a request gets a 503, not a 402, if the store does not answer', async () => {
  const outcome = outcomeOf(() => leases.reserve(ask(50, budget('empty')), undefined));
  leases.freeze([], 1, true);
  now += limits.store_read_ms_max;
  leases.expire();
  expect(await outcome).toMatchObject({ status: 503 });
});

test('a store slower than the wait for other nodes is still awaited', async () => {
  const outcome = outcomeOf(() => leases.reserve(ask(50, budget('plenty')), undefined));
  leases.freeze([], 1, true);
  now += limits.store_read_ms_max - 1;
  leases.expire();
  expect(leases.waiting).toBe(1);
  now += 1;
  leases.expire();
  expect(leases.waiting).toBe(0);
  await outcome;
});

/** The remaining store wait of a request, by the clock of the ledger. */
function storeWait(leftMs: number) {
  let begun: number | undefined;
  const counted: number[] = [];
  return {
    counted,
    remainingMs: () => leftMs,
    begin: () => {
      begun = now;
    },
    end: () => void counted.push(now - (begun ?? Number.NaN)),
  };
}

test('a request that already waited for the store waits only for the rest of its bound', async () => {
  const wait = storeWait(300);
  const outcome = outcomeOf(() => leases.reserve({ ...ask(50, budget('plenty')), store_wait: wait }, undefined));
  leases.freeze([], 1, true);
  now += 299;
  leases.expire();
  expect(leases.waiting).toBe(1);
  now += 1;
  leases.expire();
  expect(await outcome).toMatchObject({ status: 503, headers: { 'retry-after': '1' } });
  expect(wait.counted).toEqual([300]);
});

test('a request that has used up its store wait is refused without a query', async () => {
  const wait = storeWait(0);
  const reserve = () => leases.reserve({ ...ask(50, budget('plenty')), store_wait: wait }, undefined);
  expect(await outcomeOf(reserve)).toMatchObject({ status: 503 });
  expect([requests, leases.waiting, wait.counted]).toEqual([0, 0, []]);
});

test('the wait for other nodes does not count as wait for the store', async () => {
  const wait = storeWait(300);
  const outcome = outcomeOf(() => leases.reserve({ ...ask(50, budget('plenty')), store_wait: wait }, undefined));
  now += 200;
  answer(1, STANDING);
  now += limits.recall_wait_ms - 201;
  leases.expire();
  expect([leases.waiting, wait.counted]).toEqual([1, [200]]);
  now += 1;
  leases.expire();
  expect(await outcome).toMatchObject({ status: 402 });
  expect(wait.counted).toEqual([200]);
});

test('a request gets a 402 if the store answered and other nodes did not return enough', async () => {
  const outcome = outcomeOf(() => leases.reserve(ask(50, budget('plenty')), undefined));
  answer(1, STANDING);
  now += limits.recall_wait_ms;
  leases.expire();
  expect(await outcome).toMatchObject({ status: 402, message: expect.stringContaining('running requests') });
});
