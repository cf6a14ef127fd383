import { expect, test } from 'vitest';
import { boundGrant, keyRefusal, lineageBudgetMode } from './delegation.ts';
import type { StoredKey } from './key.ts';
import { NEVER_ROTATED } from './key-secrets.ts';

const NOW = Date.parse('2026-11-21T10:00:00.000Z');
const SOON = '2026-11-22T00:00:00.000Z';
const LATE = '2027-11-22T00:00:00.000Z';
const key = (over: Partial<StoredKey> = {}): StoredKey => ({
  id: 1,
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
  include_byok_in_limit: false,
  expires_at: null,
  created_at: '2026-11-01T00:00:00.000Z',
  updated_at: null,
  version: 1,
  budget_mode: null,
  parent_hash: null,
  made_by: null,
  external_user: null,
  ...NEVER_ROTATED,
  ...over,
});
const NOTHING = { limit_nano: null, limit_reset: null, expires_at: null };

test('without a parent the request is granted unchanged', () => {
  const requested = { limit_nano: 7, limit_reset: 'daily', expires_at: LATE } as const;
  expect(boundGrant(requested, [])).toEqual({ ...requested, include_byok_in_limit: false });
});

test('an absent limit and expiry become those of the parent', () => {
  const parent = key({ limit_nano: 5, limit_reset: 'weekly', include_byok_in_limit: true, expires_at: SOON });
  const bounds = { limit_nano: 5, limit_reset: 'weekly', include_byok_in_limit: true, expires_at: SOON };
  expect(boundGrant(NOTHING, [parent])).toEqual(bounds);
  expect(boundGrant({ ...NOTHING, limit_reset: 'daily' }, [parent])).toEqual(bounds);
});

test('a limit above the parent’s is lowered to it, and the requested interval stays', () => {
  const parent = key({ limit_nano: 5, limit_reset: 'weekly' });
  const granted = (limitNano: number) =>
    boundGrant({ limit_nano: limitNano, limit_reset: null, expires_at: null }, [parent]);
  expect([granted(0), granted(4), granted(5), granted(6)].map(({ limit_nano }) => limit_nano)).toEqual([0, 4, 5, 5]);
  expect(granted(6).limit_reset).toBeNull();
});

test('a parent without a limit grants that of its nearest ancestor with one, and the earliest expiry', () => {
  const lineage = [
    key({ expires_at: LATE }),
    key({ limit_nano: 3 }),
    key({ limit_nano: 1, expires_at: SOON }),
    key({ is_management: true }),
  ];
  expect(boundGrant(NOTHING, lineage)).toMatchObject({ limit_nano: 3, expires_at: SOON });
  expect(boundGrant({ ...NOTHING, expires_at: '2026-11-21T12:00:00.000Z' }, lineage).expires_at).toBe(
    '2026-11-21T12:00:00.000Z',
  );
});

test('a key is refused together with any of its ancestors, and the refusal names the ancestor', () => {
  const good = key();
  expect(keyRefusal([], NOW)).toBeUndefined();
  expect(keyRefusal([good, good], NOW)).toBeUndefined();
  expect(keyRefusal([key({ disabled: true }), good], NOW)).toBe('This API key is disabled');
  const expired = key({ expires_at: '2026-11-21T10:00:00.000Z' });
  expect(keyRefusal([expired], NOW)).toBe('This API key has expired');
  expect(keyRefusal([good, good, expired], NOW)).toBe('The API key that this key was made with has expired');
  expect(keyRefusal([good, key({ disabled: true })], NOW)).toBe('The API key that this key was made with is disabled');
});

test.each([
  [[null], null],
  [['soft'], 'soft'],
  [['soft', 'strict', null], 'strict'],
  [['soft', null], null],
  [['soft', 'soft'], 'soft'],
] as const)('budget modes %j result in the strictest: %s', (modes, mode) => {
  expect(lineageBudgetMode(modes.map((budgetMode) => ({ budget_mode: budgetMode })))).toBe(mode);
});
