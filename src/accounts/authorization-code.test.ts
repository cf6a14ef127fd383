import { describe, expect, test } from 'vitest';
import {
  answerTo,
  codeExpiry,
  createCode,
  hashCode,
  judgeExchange,
  parseCallback,
  parseChallenge,
  type StoredCode,
} from './authorization-code.ts';

const NOW = Date.parse('2026-11-21T10:00:00.000Z');
// RFC 7636, appendix B.
const verifier = 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk';
const challenge = 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM';

const code = (changes: Partial<StoredCode> = {}): StoredCode => ({
  code_hash: 'h',
  organization_id: 'o',
  workspace_id: 'w',
  user_id: 'u',
  made_by: 'key',
  asker_key_hash: null,
  asker_secret_hash: null,
  app_id: 1,
  callback_url: 'https://app.example/',
  code_challenge: challenge,
  code_challenge_method: 'S256',
  key_label: 'app.example',
  limit_nano: null,
  limit_reset: null,
  key_expires_at: null,
  failures: 0,
  created_at: '2026-11-21T09:59:00.000Z',
  expires_at: '2026-11-21T10:09:00.000Z',
  used_at: null,
  ...changes,
});

test('codes are 32 random bytes, stored as their SHA-256', () => {
  const [one, other] = [createCode(), createCode()];
  expect(one.code).toMatch(/^[\w-]{43}$/);
  expect(one.code).not.toBe(other.code);
  expect(one.code_hash).toBe(hashCode(one.code));
  expect(hashCode('abc')).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
});

describe('a callback', () => {
  test.each([
    ['https://app.example', 'https://app.example/', 'https://app.example', 'app.example'],
    ['https://APP.example:443/a?b=c', 'https://app.example/a?b=c', 'https://app.example', 'app.example'],
    ['https://app.example:3000/a', 'https://app.example:3000/a', 'https://app.example:3000', 'app.example:3000'],
    ['https://127.0.0.1:3000/', 'https://127.0.0.1:3000/', 'https://127.0.0.1:3000', '127.0.0.1:3000'],
    [
      'https://localhost:3000/?code_x=1',
      'https://localhost:3000/?code_x=1',
      'https://localhost:3000',
      'localhost:3000',
    ],
  ])('%s is valid', (text, href, origin, host) => {
    expect(parseCallback(text)).toEqual({ href, origin, host });
  });

  test.each([
    'https://app.example:80/',
    'https://app.example:3001/',
    'HTTP://app.example/',
    '//app.example/',
    '/callback',
    'https://',
    'https://app.example\\@evil.example/',
    'https://[::1]:3000/',
    'https://a,b.example/',
    "https://a'.example/",
    'https://-a.example/',
    'https://app.example/%0d%0a?code=1',
    'https://app.example/?%63ode=1',
    'https://bücher.example/',
    'https://user@app.example/',
    'https://good.example:443@app.example/',
    'https://:word@app.example/',
  ])('%s is invalid', (text) => {
    expect(() => parseCallback(text)).toThrow(/^callback_url /);
  });

  test('keeps its query unchanged, and the answer is appended, encoded', () => {
    const callback = 'https://app.example/cb?a=%20b+c&d';
    expect(answerTo(callback, { code: 'x-_', state: 'a&b=c#d é' })).toBe(
      'https://app.example/cb?a=%20b+c&d&code=x-_&state=a%26b%3Dc%23d+%C3%A9',
    );
    expect(answerTo('https://app.example/cb', { error: 'access_denied' })).toBe(
      'https://app.example/cb?error=access_denied',
    );
    expect(answerTo('https://app.example/?', { code: 'x' })).toBe('https://app.example/?code=x');
  });
});

describe('a challenge', () => {
  test('without a method is plain, and a missing challenge is null', () => {
    expect(parseChallenge({ code_challenge: verifier })).toEqual({
      code_challenge: verifier,
      code_challenge_method: 'plain',
    });
    expect(parseChallenge({})).toEqual({ code_challenge: null, code_challenge_method: null });
  });

  test('of the method plain must have 43 to 128 unreserved characters', () => {
    for (const length of [43, 128]) expect(() => parseChallenge({ code_challenge: '~'.repeat(length) })).not.toThrow();
    for (const length of [42, 129]) expect(() => parseChallenge({ code_challenge: '~'.repeat(length) })).toThrow();
    expect(() => parseChallenge({ code_challenge: `${'a'.repeat(42)}/` })).toThrow();
  });
});

describe('an exchange', () => {
  test.each<[string, Partial<StoredCode>, Parameters<typeof judgeExchange>[1], ReturnType<typeof judgeExchange>]>([
    ['the verifier of S256', {}, { code_verifier: verifier }, 'granted'],
    ['the verifier and its method', {}, { code_verifier: verifier, code_challenge_method: 'S256' }, 'granted'],
    ['the challenge as verifier', {}, { code_verifier: challenge }, 'wrong'],
    ['no verifier', {}, {}, 'wrong'],
    ['another method', {}, { code_verifier: verifier, code_challenge_method: 'plain' }, 'method'],
    [
      'a plain verifier',
      { code_challenge: verifier, code_challenge_method: 'plain' },
      { code_verifier: verifier },
      'granted',
    ],
    [
      'a plain verifier that is too long',
      { code_challenge: verifier, code_challenge_method: 'plain' },
      { code_verifier: `${verifier}a` },
      'wrong',
    ],
    ['no verifier, without a challenge', { code_challenge: null, code_challenge_method: null }, {}, 'granted'],
    [
      'a verifier, without a challenge',
      { code_challenge: null, code_challenge_method: null },
      { code_verifier: verifier },
      'wrong',
    ],
    [
      'a method, without a challenge',
      { code_challenge: null, code_challenge_method: null },
      { code_challenge_method: 'S256' },
      'method',
    ],
    ['a used code', { used_at: '2026-11-21T09:59:30.000Z' }, { code_verifier: verifier }, 'void'],
    ['four failures', { failures: 4 }, { code_verifier: verifier }, 'granted'],
    ['five failures', { failures: 5 }, { code_verifier: verifier }, 'void'],
    ['its last millisecond', { expires_at: '2026-11-21T10:00:00.001Z' }, { code_verifier: verifier }, 'granted'],
    ['its end', { expires_at: '2026-11-21T10:00:00.000Z' }, { code_verifier: verifier }, 'expired'],
  ])('with %s', (_title, changes, proof, verdict) => {
    expect(judgeExchange(code(changes), proof, NOW)).toBe(verdict);
  });

  test('is possible for ten minutes, and not after the expiry of the key', () => {
    expect(codeExpiry(NOW, null)).toBe('2026-11-21T10:10:00.000Z');
    expect(codeExpiry(NOW, '2027-01-01T00:00:00.000Z')).toBe('2026-11-21T10:10:00.000Z');
    expect(codeExpiry(NOW, '2026-11-21T10:00:30.000Z')).toBe('2026-11-21T10:00:30.000Z');
  });
});
