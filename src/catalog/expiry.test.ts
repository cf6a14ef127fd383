import { expect, test } from 'vitest';
import { daysLeft, expiryWarnings } from './expiry.ts';

const noon = Date.parse('2026-11-21T12:00:00Z');

test.each([
  ['2026-11-20', -1],
  ['2026-11-21', 0],
  ['2026-11-22', 1],
  ['2026-12-21', 30],
])('at noon of the 21st, %s is %i days away', (date, days) => {
  expect(daysLeft(date, noon)).toBe(days);
});

test('the last day is over at midnight UTC, not before', () => {
  expect(daysLeft('2026-11-21', Date.parse('2026-11-21T23:59:59.999Z'))).toBe(0);
  expect(daysLeft('2026-11-21', Date.parse('2026-11-22T00:00:00Z'))).toBe(-1);
});

test('models with a last day have one warning each, before and after it', () => {
  const models = [
    { id: 'acme/stays', expiration_date: null },
    { id: 'acme/goes', expiration_date: '2026-11-21' },
    { id: 'acme/goes', expiration_date: '2026-11-21' },
    { id: 'acme/gone', expiration_date: '2026-01-31' },
  ];
  expect(expiryWarnings(models, noon)).toEqual([
    {
      type: 'model_expires',
      model: 'acme/goes',
      expiration_date: '2026-11-21',
      message: 'acme/goes may be removed after 2026-11-21, in 1 day',
    },
    {
      type: 'model_expired',
      model: 'acme/gone',
      expiration_date: '2026-01-31',
      message: 'acme/gone may be removed at any time: its last day was 2026-01-31',
    },
  ]);
});
