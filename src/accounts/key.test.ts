import fc from 'fast-check';
import { expect, test } from 'vitest';
import { GatewayError } from '../errors.ts';
import { toNano, toUsd } from '../schemas/money.ts';
import {
  createSecret,
  describeKey,
  hashSecret,
  isUsable,
  type KeyUsage,
  parseExpiry,
  type StoredKey,
  windowStarts,
} from './key.ts';
import { NEVER_ROTATED } from './key-secrets.ts';

const NOW = Date.parse('2026-11-21T10:00:00Z');

function stored(over: Partial<StoredKey> = {}): StoredKey {
  return {
    id: 7,
    hash: 'h',
    organization_id: 'o',
    workspace_id: 'w',
    creator_user_id: 'u',
    name: 'n',
    label: 'l',
    is_management: false,
    disabled: false,
    limit_nano: null,
    limit_reset: null,
    budget_mode: null,
    parent_hash: null,
    made_by: null,
    external_user: null,
    ...NEVER_ROTATED,
    include_byok_in_limit: false,
    expires_at: null,
    created_at: '2026-11-01T00:00:00.000Z',
    updated_at: null,
    version: 1,
    ...over,
  };
}

const spent: KeyUsage = {
  usage: { total: 4_000_000_000, daily: 1_000_000_000, weekly: 2_000_000_000, monthly: 3_000_000_000 },
  byok_usage: { total: 400_000_000, daily: 100_000_000, weekly: 200_000_000, monthly: 300_000_000 },
};

test('a secret is 64 random hex digits after the prefix; its hash and label do not reveal it', () => {
  const { secret, hash, label } = createSecret();
  expect(secret).toMatch(/^sk-gw-v1-[0-9a-f]{64}$/);
  expect(hash).toMatch(/^[0-9a-f]{64}$/);
  expect(hash).toBe(hashSecret(secret));
  expect(label).toBe(`${secret.slice(0, 12)}...${secret.slice(-3)}`);
  expect(label).toMatch(/^sk-gw-v1-[0-9a-f]{3}\.\.\.[0-9a-f]{3}$/);
  expect(createSecret().secret).not.toBe(secret);
});

test('the hash is SHA-256 of the whole secret, in lower-case hex', () => {
  expect(hashSecret('abc')).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
});

test.each([
  ['2026-11-21T10:00:00.000Z', '2026-11-21', '2026-11-16', '2026-11-01', 'a Saturday'],
  ['2026-11-16T00:00:00.000Z', '2026-11-16', '2026-11-16', '2026-11-01', 'a Monday, the start of its week'],
  ['2026-11-22T23:59:59.999Z', '2026-11-22', '2026-11-16', '2026-11-01', 'a Sunday, the end of its week'],
  ['2026-11-23T00:00:00.000Z', '2026-11-23', '2026-11-23', '2026-11-01', 'the next Monday'],
  ['2026-12-01T00:00:00.000Z', '2026-12-01', '2026-11-30', '2026-12-01', 'a week across the end of the month'],
  ['2027-01-01T00:00:00.000Z', '2027-01-01', '2026-12-28', '2027-01-01', 'a week across the end of the year'],
  ['2028-02-29T12:00:00.000Z', '2028-02-29', '2028-02-28', '2028-02-01', 'a leap day'],
  ['2028-03-01T00:00:00.000Z', '2028-03-01', '2028-02-28', '2028-03-01', 'the day after the leap day'],
])('at %s the windows started on %s, %s, %s: %s', (moment, daily, weekly, monthly) => {
  expect(windowStarts(Date.parse(moment))).toEqual({ daily, weekly, monthly, at: Date.parse(moment) });
});

test.each([
  // limit, reset, includes BYOK, remaining
  [null, 'daily', true, null, 'without a limit there is no remaining amount'],
  [10, null, false, 6, 'without a reset all usage counts'],
  [10, null, true, 5.6, 'and all BYOK usage, if it is included'],
  [10, 'daily', false, 9, 'a daily limit counts the day'],
  [10, 'daily', true, 8.9, 'with BYOK'],
  [10, 'weekly', false, 8, 'a weekly limit counts the week'],
  [10, 'weekly', true, 7.8, 'with BYOK'],
  [10, 'monthly', false, 7, 'a monthly limit counts the month'],
  [10, 'monthly', true, 6.7, 'with BYOK'],
  [4, null, false, 0, 'exactly used up'],
  [1, null, false, 0, 'never below zero'],
  [0, 'daily', false, 0, 'a limit of zero is a limit'],
] as const)('limit %s, reset %s, BYOK included %s: %s remains: %s', (limit, limitReset, byok, remaining, _why) => {
  const limitNano = limit === null ? null : toNano(limit);
  const key = describeKey(
    stored({ limit_nano: limitNano, limit_reset: limitReset, include_byok_in_limit: byok }),
    spent,
    NOW,
  );
  expect(key.limit_remaining).toBe(remaining);
  expect(key.limit).toBe(limit);
});

test('the public record has exactly the specified fields, the key number and the budget mode', () => {
  expect(describeKey(stored(), spent, NOW)).toEqual({
    hash: 'h',
    id: 7,
    name: 'n',
    label: 'l',
    disabled: false,
    created_at: '2026-11-01T00:00:00.000Z',
    updated_at: null,
    expires_at: null,
    creator_user_id: 'u',
    workspace_id: 'w',
    limit: null,
    limit_remaining: null,
    limit_reset: null,
    include_byok_in_limit: false,
    usage: 4,
    usage_daily: 1,
    usage_weekly: 2,
    usage_monthly: 3,
    byok_usage: 0.4,
    byok_usage_daily: 0.1,
    byok_usage_weekly: 0.2,
    byok_usage_monthly: 0.3,
    budget_mode: null,
    parent_hash: null,
    external_user: null,
    last_used_at: null,
    rotated_at: null,
    previous_label: null,
    previous_secret_expires_at: null,
    previous_secret_last_used_at: null,
  });
});

test('the remaining amount uses the usage counted at admission, if that is known', () => {
  const counted = (limitNano: number | null) =>
    describeKey(stored({ limit_nano: limitNano }), { ...spent, counted: 2_500_000_000 }, NOW).limit_remaining;
  expect([counted(10_000_000_000), counted(1), counted(null)]).toEqual([7.5, 0, null]);
});

test('nano-USD below 2^23 USD are exact decimals and are read back as the same integer', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 2 ** 23 * 1e9 - 1 }), (nano) => {
      const shown = toUsd(nano);
      expect(toNano(shown)).toBe(nano);
      const digits = String(nano).padStart(10, '0');
      expect(Number(`${digits.slice(0, -9)}.${digits.slice(-9)}`)).toBe(shown);
    }),
  );
});

test.each([
  ['2027-01-31T00:00:00Z', '2027-01-31T00:00:00.000Z'],
  ['2027-01-31T00:00:00.5Z', '2027-01-31T00:00:00.500Z'],
  ['2027-01-31t00:00:00z', '2027-01-31T00:00:00.000Z'],
  ['2027-01-31T00:00:00+00:00', '2027-01-31T00:00:00.000Z'],
  ['2028-02-29T23:59:59.123456Z', '2028-02-29T23:59:59.123Z'],
])('expires_at %s is read as %s', (text, moment) => {
  expect(parseExpiry(text, NOW)).toBe(moment);
});

test.each([
  ['2027-01-31T00:00:00+01:00', 'must be in UTC', 'another time zone'],
  ['2027-01-31T00:00:00-00:00', 'must be in UTC', 'an unknown time zone (RFC 3339 section 4.3)'],
  ['2027-01-31T00:00:00', 'must be an ISO 8601', 'no time zone'],
  ['2027-01-31', 'must be an ISO 8601', 'no time'],
  ['2027-02-29T00:00:00Z', 'must be an ISO 8601', 'a day that does not exist'],
  ['2027-13-01T00:00:00Z', 'must be an ISO 8601', 'a month that does not exist'],
  ['2027-01-31T25:00:00Z', 'must be an ISO 8601', 'an hour that does not exist'],
  ['tomorrow', 'must be an ISO 8601', 'words'],
  ['', 'must be an ISO 8601', 'nothing'],
  ['2026-11-21T10:00:00Z', 'must be in the future', 'now'],
  ['2026-11-20T10:00:00Z', 'must be in the future', 'the past'],
])('expires_at %s is refused: %s (%s)', (text, message) => {
  expect(() => parseExpiry(text, NOW)).toThrow(GatewayError);
  expect(() => parseExpiry(text, NOW)).toThrow(message);
});

test('a key is usable until it expires, unless it is disabled', () => {
  expect(isUsable(stored(), NOW)).toBe(true);
  expect(isUsable(stored({ disabled: true }), NOW)).toBe(false);
  expect(isUsable(stored({ expires_at: '2026-11-21T10:00:00.001Z' }), NOW)).toBe(true);
  expect(isUsable(stored({ expires_at: '2026-11-21T10:00:00.000Z' }), NOW)).toBe(false);
});

test('a refused expiry is named in the violations too', () => {
  expect(() => parseExpiry('2020-01-01T00:00:00Z', Date.UTC(2026, 0, 1))).toThrow(
    expect.objectContaining({
      message: 'expires_at must be in the future',
      metadata: { violations: [{ path: 'expires_at', rule: 'must be in the future' }] },
    }),
  );
});
