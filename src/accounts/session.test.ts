import { expect, test } from 'vitest';
import { limits } from '../limits.ts';
import { createToken, environmentCredential, formToken, hashToken, isFormToken, judgeSession } from './session.ts';

const START = Date.parse('2026-11-21T10:00:00.000Z');
const at = (ms: number) => new Date(START + ms).toISOString();
const session = {
  id: 'id',
  token_hash: 'now',
  previous_hash: 'before',
  organization_id: 'o',
  user_id: 'u',
  credential: 'issuer',
  created_at: at(0),
  rotated_at: at(0),
  expires_at: at(limits.session_ms_max),
};

test.each([
  ['now', 0, 'live'],
  ['now', limits.session_rotation_ms - 1, 'live'],
  ['now', limits.session_rotation_ms, 'rotation due'],
  ['now', limits.session_ms_max - 1, 'rotation due'],
  ['now', limits.session_ms_max, 'over'],
  ['before', limits.session_overlap_ms, 'superseded'],
  ['before', limits.session_overlap_ms + 1, 'over'],
])('the secret "%s" %i ms after the rotation is %s', (tokenHash, ms, state) => {
  expect(judgeSession(session, tokenHash, START + ms)).toBe(state);
});

test('a form token belongs to one session and one secret', () => {
  const token = formToken('id', 'secret');
  expect(isFormToken(token, 'id', 'secret')).toBe(true);
  expect(isFormToken(token, 'other', 'secret')).toBe(false);
  expect(isFormToken(token, 'id', 'other')).toBe(false);
  expect(isFormToken('', 'id', 'secret')).toBe(false);
});

test('cookie secrets are random, and the environment’s credential depends on the key and the secret', () => {
  const { token, token_hash } = createToken();
  expect(token).toMatch(/^[\w-]{43}$/);
  expect(token_hash).toBe(hashToken(token));
  expect(createToken().token).not.toBe(token);
  expect(environmentCredential('key', 'secret')).not.toBe(environmentCredential('key', 'other'));
  expect(environmentCredential('key', 'secret')).not.toBe(environmentCredential('other', 'secret'));
});
