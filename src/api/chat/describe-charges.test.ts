import { describe, expect, test } from 'vitest';
import { generation } from '../../../test/generation-fixture.ts';
import type { AttemptRecord, ChargeLine } from '../../ledger/records.ts';
import { describeCharges } from './describe-charges.ts';

const [plain] = generation({ id: 'g' }).attempts;
const attempt = (costNano: number, charges: ChargeLine[], over: Partial<AttemptRecord> = {}): AttemptRecord => ({
  ...plain!,
  endpoint_id: 'acme|a/one',
  cost_nano: costNano,
  charges,
  ...over,
});
const shown = (costNano: number, attempts: AttemptRecord[], byokCostNano = 0) =>
  describeCharges(
    generation({ id: 'g', cost_nano: costNano, byok_cost_nano: byokCostNano, attempts, endpoint_id: 'last|a/one' }),
  ).map(
    ({ class: name, units, unit_price, discount, amount, attempt: nth, endpoint_id, is_byok }) =>
      [nth, endpoint_id, name, units, unit_price, discount, amount, is_byok] as const,
  );
const line: ChargeLine = { class: 'in_uncached', units: 3, unit_price_pico: 250_000 };

describe('the cost of a generation, line by line', () => {
  test('a line has units, list price and amount', () => {
    expect(shown(750, [attempt(750, [line])])).toEqual([
      [1, 'acme|a/one', 'in_uncached', 3, '0.00000025', 0, '0.00000075', false],
    ]);
  });

  test('a discount is deducted exactly, and the single rounding is a line of its own', () => {
    const charges = [{ ...line, unit_price_pico: 1, discount_ppm: 1 }];
    expect(shown(1, [attempt(1, charges)])).toEqual([
      [1, 'acme|a/one', 'in_uncached', 3, '0.000000000001', 0.000001, '0.000000000002999997', false],
      [1, 'acme|a/one', 'rounding', 1, '0.000000000997000003', 0, '0.000000000997000003', false],
    ]);
  });

  test('an attempt with unknown outcome has one line, of its possible cost', () => {
    expect(shown(5_000, [attempt(5_000, [], { estimated: true })])).toEqual([
      [1, 'acme|a/one', 'unknown_outcome', 1, '0.000005', 0, '0.000005', false],
    ]);
  });

  test('an attempt that ran when the process ended has such a line too', () => {
    expect(shown(5_750, [attempt(750, [line])])[1]).toEqual([
      2,
      'last|a/one',
      'unknown_outcome',
      1,
      '0.000005',
      0,
      '0.000005',
      false,
    ]);
    expect(shown(0, [], 5_000)).toEqual([[1, 'last|a/one', 'unknown_outcome', 1, '0.000005', 0, '0.000005', true]]);
  });

  test('an attempt with the organization’s own credential is marked and is not part of the cost', () => {
    expect(shown(750, [attempt(500, [{ ...line, units: 2 }], { is_byok: true }), attempt(750, [line])], 500)).toEqual([
      [1, 'acme|a/one', 'in_uncached', 2, '0.00000025', 0, '0.0000005', true],
      [2, 'acme|a/one', 'in_uncached', 3, '0.00000025', 0, '0.00000075', false],
    ]);
  });

  test('an amount above the bound of a charge is deducted again', () => {
    const charges = [{ class: 'in_uncached', units: 1_000_000_000, unit_price_pico: 2_000_000_000_000_000 }];
    expect(shown(1e15, [attempt(1e15, charges)])[1]).toEqual([
      1,
      'acme|a/one',
      'bound',
      1,
      '-1999999000000',
      0,
      '-1999999000000',
      false,
    ]);
  });

  test('an attempt without cost has no lines, and neither has an old record', () => {
    const { charges: _charges, ...before } = attempt(0, []);
    expect(shown(0, [attempt(0, []), before])).toEqual([]);
  });
});
