import { expect, test } from 'vitest';
import type { Hold } from './hold.ts';
import { LeaseBook } from './lease-book.ts';

const BUDGET = {
  id: 'key:a:never',
  scope: 'key',
  label: 'the limit of this API key',
  reset_interval: 'never',
  limit_nano: 1_000,
  include_byok: true,
} as const;

test('a hold with a negative corrected amount and no cost leaves nothing pending', () => {
  const book = new LeaseBook(() => 0);
  const lease = book.of(BUDGET.id, '');
  const line = { budget: BUDGET, window_start: '', lease, amount: -30, share: -30, granted: 0 };
  lease.held = -30;
  const hold: Hold = { id: 'gen-1', lines: [line], granted_nano: 0 };
  expect(book.settle(hold, () => 0)).toEqual([]);
  expect(lease).toMatchObject({ held: 0, pending: 0, spent: 0 });
});
