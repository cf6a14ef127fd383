import { expect, test } from 'vitest';
import { GatewayError } from '../errors.ts';
import {
  isSecretValid,
  type KeySecrets,
  NEVER_ROTATED,
  previousSecret,
  rotatedSecrets,
  secretEnd,
} from './key-secrets.ts';

const AT = '2026-11-21T10:00:00.000Z';
const after = (seconds: number) => new Date(Date.parse(AT) + seconds * 1_000).toISOString();
const made = (name: string, at = AT) => ({ hash: `hash of ${name}`, label: `label of ${name}`, at });
type Held = KeySecrets & { expires_at: string | null };
const first: Held = { ...NEVER_ROTATED, hash: 'hash of a', label: 'label of a', expires_at: null };
const rotate = (
  key: Held,
  wanted: Partial<Parameters<typeof rotatedSecrets>[1]>,
  next: ReturnType<typeof made>,
): Held => ({ ...key, ...rotatedSecrets(key, { grace_seconds: 60, keep: undefined, ...wanted }, next) });
/** Which of the secrets a, b and c are valid at a time. */
const valid = (key: Held, at: string) =>
  ['a', 'b', 'c'].filter((name) => isSecretValid(key, `hash of ${name}`, Date.parse(at))).join('');

test('a key that was never rotated has one secret, without an end of its own', () => {
  expect(secretEnd(first, 'hash of a')).toBeNull();
  expect(secretEnd(first, 'hash of b')).toBeUndefined();
  expect(valid(first, after(1e9))).toBe('a');
});

test('the previous secret is valid until the grace ends, and the key keeps its hash', () => {
  const key = rotate(first, {}, made('b'));
  expect(key).toMatchObject({ hash: 'hash of a', label: 'label of b', rotated_at: AT });
  expect([AT, after(59.999), after(60)].map((at) => valid(key, at))).toEqual(['ab', 'ab', 'b']);
  expect(previousSecret(key, Date.parse(AT))).toEqual({ label: 'label of a', expires_at: after(60), used_at: null });
  expect(previousSecret(key, Date.parse(after(60)))).toBeUndefined();
});

test('without a grace the previous secret is invalid at once, for any clock', () => {
  const key = rotate(first, { grace_seconds: 0 }, made('b'));
  expect(valid(key, '2000-01-01T00:00:00.000Z')).toBe('b');
  expect(key.previous_secret_expires_at).toBeNull();
});

test('the grace ends with the key', () => {
  const key = rotate({ ...first, expires_at: after(10) }, {}, made('b'));
  expect(key.previous_secret_expires_at).toBe(after(10));
});

test.each([
  ['current', 'bc'],
  ['previous', 'ac'],
] as const)('a rotation during a grace that keeps the %s secret leaves %s valid, with a new grace', (keep, left) => {
  const key = rotate(rotate(first, {}, made('b')), { keep, grace_seconds: 600 }, made('c', after(1)));
  expect(valid(key, after(600))).toBe(left);
  expect(valid(key, after(601))).toBe('c');
});

test('a rotation without a grace during a grace leaves one secret valid', () => {
  const key = rotate(rotate(first, {}, made('b')), { grace_seconds: 0 }, made('c', after(1)));
  expect(valid(key, after(1))).toBe('c');
});

test.each<[string, () => unknown, number, RegExp]>([
  [
    'during a grace without a choice of secret',
    () => rotate(rotate(first, {}, made('b')), {}, made('c', after(1))),
    409,
    /label of a of this API key works until 2026-11-21T10:01:00.000Z, .* keep "current" \(label of b stays/,
  ],
  [
    'that keeps a previous secret although there is none',
    () => rotate(first, { keep: 'previous' }, made('b')),
    409,
    /leave keep/,
  ],
  [
    'that keeps an expired previous secret',
    () => rotate(rotate(first, {}, made('b')), { keep: 'previous' }, made('c', after(60))),
    409,
    /leave keep out/,
  ],
  [
    'that keeps a secret without a grace',
    () => rotate(first, { grace_seconds: 0, keep: 'current' }, made('b')),
    400,
    /^keep /,
  ],
  ['of an expired key', () => rotate({ ...first, expires_at: AT }, {}, made('b')), 409, /has expired.*make a new key/],
])('a rotation %s is refused', (_what, run, status, message) => {
  try {
    run();
    expect.unreachable();
  } catch (error) {
    expect(error).toBeInstanceOf(GatewayError);
    expect(error).toMatchObject({ status, message: expect.stringMatching(message) });
  }
});

test('after a grace the next rotation needs no choice', () => {
  const key = rotate(rotate(first, {}, made('b')), {}, made('c', after(60)));
  expect(valid(key, after(60))).toBe('bc');
});
