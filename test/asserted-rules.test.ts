/**
 * Rules of money and streams that the running code asserts: each assertion fails on a fault, and its call fails closed.
 */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type AssertedRule, brokenRule, watchRules } from '../src/errors.ts';
import { LaterChunks } from '../src/inference/body.ts';
import type { Hold } from '../src/ledger/leases/hold.ts';
import { LeaseBook } from '../src/ledger/leases/lease-book.ts';
import { Leases } from '../src/ledger/leases/leases.ts';
import type { Budget } from '../src/schemas/budget.ts';
import { generation } from './generation-fixture.ts';
import { startGateway } from './harness.ts';
import { attempt, recorders } from './ledger/recorder-fixture.ts';
import { describeStores } from './ledger/store-variants.ts';

const broken: AssertedRule[] = [];
let unwatch: () => void;
beforeEach(() => {
  broken.length = 0;
  unwatch = watchRules((rule) => broken.push(rule));
});
afterEach(() => unwatch());

const budget: Budget = {
  id: 'b',
  scope: 'key',
  label: 'the limit of this API key',
  reset_interval: 'never',
  limit_nano: 1_000,
  include_byok: true,
};

test('keeps a hold that is larger than all holds of its lease when its request ends', () => {
  const book = new LeaseBook(() => 0);
  const lease = book.of(budget.id, '');
  lease.held = 20;
  const hold: Hold = {
    id: 'gen-1',
    lines: [{ budget, window_start: '', lease, amount: 30, share: 0, granted: 30 }],
    granted_nano: 30,
  };
  expect(book.settle(hold, () => 5)).toEqual([{ budget_id: 'b', window_start: '', amount: 5, cover: 5 }]);
  expect([lease.held, lease.pending]).toEqual([20, 5]);
  expect(broken).toEqual(['held_not_negative']);
});

test('refuses a grant that exceeds its lease, and reserves nothing', () => {
  const leases = new Leases({ now: () => 0, monotonic: () => 0, onNeed() {}, isStoreAway: () => false });
  leases.open();
  const lease = leases.book.of(budget.id, '');
  // The fault: the rest is checked before it is taken.
  let reads = 0;
  Object.defineProperty(lease, 'stored', { get: () => (reads++ === 0 ? 100 : 0) });
  const ask = { id: 'gen-1', budgets: [budget], is_byok: false, full_nano: 50, least_nano: 50 };
  expect(() => leases.reserve(ask, undefined)).toThrow('Internal Server Error');
  expect(lease.held).toBe(0);
  expect(broken).toEqual(['grant_within_lease']);
});

describeStores('the recorder', ({ open }) => {
  const { setUp } = recorders(open);

  test('settles a request once', async () => {
    const { recorder } = await setUp();
    const begun = attempt('g1');
    await recorder.attempt(begun);
    await recorder.outcome(generation({ id: 'g1', cost_nano: 7 }), begun.hold);
    expect(broken).toEqual([]);
    await recorder.outcome(generation({ id: 'g2', cost_nano: 8 }), begun.hold);
    expect(broken).toEqual(['settled_once']);
    expect([recorder.find('g1')?.cost_nano, recorder.find('g2')]).toEqual([7, undefined]);
  });
});

test('ends the stream with a fault if a chunk arrives after the charge of its attempt', () => {
  const metered: unknown[] = [];
  const later = { ended: false, ready: () => undefined, read: () => [{ delta: { content: 'more' } }] };
  const charged = {
    call: { generation_id: 'gen-1' },
    charge: undefined as unknown,
    meter: { chunk: (one: unknown) => metered.push(one) },
  };
  const view = { show: (chunks: unknown) => chunks };
  const parts = { clock: { monotonicMs: () => 0 } };
  const chunks = new LaterChunks(
    ...([{}, charged, { later }, view, parts] as unknown as ConstructorParameters<typeof LaterChunks>),
  );
  expect(chunks.read()).toMatchObject({ type: 'chunks' });
  charged.charge = {};
  expect(() => chunks.read()).toThrow('Internal Server Error');
  expect([metered.length, broken]).toEqual([1, ['no_chunk_after_settlement']]);
});

describe('a broken rule', () => {
  test('is counted in a metric that starts at zero', async () => {
    const gateway = await startGateway();
    const counted = async () =>
      (await (await fetch(new URL('/metrics', gateway.base_url))).text()).match(
        /gateway_broken_rules_total\{rule="settled_once"\} (\d+)/,
      )?.[1];
    try {
      expect(await counted()).toBe('0');
      brokenRule('settled_once', { generation: 'gen-1' });
      brokenRule('settled_once', { generation: 'gen-2' });
      expect(await counted()).toBe('2');
    } finally {
      await gateway.stop();
    }
  });
});
