import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { GatewayError, invalidField } from '../errors.ts';
import { limits } from '../limits.ts';
import type { LimitReset } from '../schemas/key.ts';
import { toUsd } from '../schemas/money.ts';

/** How a challenge is computed from its verifier (RFC 7636, section 4.2). */
export type ChallengeMethod = 'S256' | 'plain';

/** A stored authorization code: everything but the code itself. */
export interface StoredCode {
  code_hash: string;
  organization_id: string;
  workspace_id: string;
  user_id: string | null;
  /** The stored key that requested it, directly or by a sign-in to the pages. The code is invalid once that key is. */
  asker_key_hash: string | null;
  /** The SHA-256 of the secret of that key with which it was requested: the code ends with it. It is null if that is unknown, or without a key. */
  asker_secret_hash: string | null;
  /** null if no application receives the code: a person reads it from a page. */
  app_id: number | null;
  callback_url: string | null;
  code_challenge: string | null;
  code_challenge_method: ChallengeMethod | null;
  key_label: string;
  limit_nano: number | null;
  limit_reset: LimitReset | null;
  key_expires_at: string | null;
  failures: number;
  created_at: string;
  expires_at: string;
  used_at: string | null;
  /** `key`: an API key created it and is the parent of the new key; `session`: a signed-in member approved it. */
  made_by: 'key' | 'session';
}

/** The callback of an application: its address, and the application's identity. */
export interface Callback {
  href: string;
  /** Identifies the application; safe as a source in a content security policy. */
  origin: string;
  /** Shown to people; also the name of an application that sends none. */
  host: string;
}

/** A challenge with its method; both null if the request has none. */
export interface Challenge {
  code_challenge: string | null;
  code_challenge_method: ChallengeMethod | null;
}

/** The parameters of an exchange, in addition to the code. */
export interface Proof {
  code_verifier?: string | undefined;
  code_challenge_method?: ChallengeMethod | null | undefined;
}

/** The result of an exchange. `wrong` counts against the code; `void` and `method` do not. */
export type Verdict = 'granted' | 'wrong' | 'void' | 'expired' | 'method';

const CODE_BYTES = 32;
/** Ports that a callback may name (specification, section Limits). */
const PORTS = ['', '3000'];
// Host names as in certificates: without characters that have a meaning in a policy, a header or a page.
const HOST_NAME = /^(?:[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?\.)*[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.?$/;
/** Query parameters that the gateway adds to the callback; a callback that has them already would have them twice. */
const ADDED_PARAMETERS = ['code', 'error'];
// RFC 7636 section 4.2: the unpadded base64url of 32 bytes, whose last character has two unused bits.
const S256_CHALLENGE = /^[\w-]{42}[AEIMQUYcgkosw048]$/;
// Section 4.1: 43 to 128 unreserved characters.
const PLAIN_CHALLENGE = /^[\w.~-]{43,128}$/;

const sha256 = (text: string) => createHash('sha256').update(text).digest();

/** The stored form of a code: lower-case hex SHA-256. */
export function hashCode(code: string): string {
  return sha256(code).toString('hex');
}

/** Creates a code; the only place that does. The code is shown once; the hash is stored. */
export function createCode(): { code: string; code_hash: string } {
  const code = randomBytes(CODE_BYTES).toString('base64url');
  return { code, code_hash: hashCode(code) };
}

/** Parses a callback address: https, port 443 or 3000 (specification), no credentials, no fragment. Its query is kept. Throws a 400. */
export function parseCallback(text: string): Callback {
  const wrong = (rule: string) => new GatewayError(400, `callback_url ${rule}`);
  if (text.length > limits.callback_url_chars_max) {
    throw wrong(`must have at most ${limits.callback_url_chars_max} characters`);
  }
  // The parser drops white space and control characters and converts backslashes; the address must be called as it was checked.
  const url = /^[\x21-\x5b\x5d-\x7e]+$/.test(text) ? URL.parse(text) : null;
  if (url === null) throw wrong('must be an absolute URL');
  if (url.protocol !== 'https:') throw wrong('must start with https://');
  if (!PORTS.includes(url.port)) throw wrong('must be on port 443 or 3000');
  if (url.username !== '' || url.password !== '') throw wrong('must not contain credentials');
  if (text.includes('#')) throw wrong('must not have a fragment');
  if (!HOST_NAME.test(url.hostname)) {
    throw wrong('must name a host of letters, digits, dots and hyphens');
  }
  const added = ADDED_PARAMETERS.find((name) => url.searchParams.has(name));
  if (added !== undefined) throw wrong(`must not have ${added} in its query, because the gateway adds it`);
  return { href: url.href, origin: url.origin, host: url.host };
}

/** The callback with `answer` added to its query, which otherwise stays unchanged. */
export function answerTo(callbackUrl: string, answer: Readonly<Record<string, string>>): string {
  const url = new URL(callbackUrl);
  const added = new URLSearchParams(answer).toString();
  url.search = url.search.length > 1 ? `${url.search}&${added}` : added;
  return url.href;
}

/** Parses a challenge: without a method it is plain (RFC 7636, section 4.3). Throws a 400, also for a method without a challenge. */
export function parseChallenge(input: {
  code_challenge?: string | undefined;
  code_challenge_method?: string | undefined;
}): Challenge {
  const { code_challenge, code_challenge_method = 'plain' } = input;
  if (code_challenge_method !== 'S256' && code_challenge_method !== 'plain') {
    throw invalidField('code_challenge_method', 'must be S256 or plain');
  }
  if (code_challenge === undefined) {
    if (input.code_challenge_method === undefined) return { code_challenge: null, code_challenge_method: null };
    throw new GatewayError(400, 'code_challenge_method requires a code_challenge');
  }
  if (code_challenge_method === 'S256' && !S256_CHALLENGE.test(code_challenge)) {
    throw invalidField('code_challenge', 'must be the base64url of a SHA-256, without padding: 43 characters (S256)');
  }
  if (code_challenge_method === 'plain' && !PLAIN_CHALLENGE.test(code_challenge)) {
    throw invalidField('code_challenge', 'must be 43 to 128 letters, digits, dots, hyphens, _ or ~ (plain)');
  }
  return { code_challenge, code_challenge_method };
}

/** The expiry of a code: after `authorization_code_ms_max`, and never later than that of the key that it is for. */
export function codeExpiry(now: number, keyExpiresAt: string | null): string {
  const until = now + limits.authorization_code_ms_max;
  return new Date(keyExpiresAt === null ? until : Math.min(until, Date.parse(keyExpiresAt))).toISOString();
}

/** Compares SHA-256 hashes of both values in constant time, so that the time reveals nothing about either. */
function proves(codeVerifier: string, method: ChallengeMethod, codeChallenge: string): boolean {
  const challenge = method === 'plain' ? codeVerifier : sha256(codeVerifier).toString('base64url');
  return timingSafeEqual(sha256(challenge), sha256(codeChallenge));
}

/**
 * Decides an exchange. A code with a challenge requires its verifier; a code without one rejects any, so that nobody can
 * remove the challenge from a flow unnoticed (RFC 9700, section 2.1.1). A method is optional, and must be the code's.
 */
export function judgeExchange(code: StoredCode, proof: Proof, now: number): Verdict {
  if (code.used_at !== null || code.failures >= limits.authorization_code_failures_max) return 'void';
  if (Date.parse(code.expires_at) <= now) return 'expired';
  const { code_verifier, code_challenge_method } = proof;
  if (code_challenge_method != null && code_challenge_method !== code.code_challenge_method) return 'method';
  if (code.code_challenge === null || code.code_challenge_method === null) {
    return code_verifier === undefined ? 'granted' : 'wrong';
  }
  if (code_verifier === undefined) return 'wrong';
  return proves(code_verifier, code.code_challenge_method, code.code_challenge) ? 'granted' : 'wrong';
}

/** The state of a code in the audit log: its owner, and the key that it is for. */
export function codeState(code: StoredCode): Record<string, unknown> {
  return {
    app_id: code.app_id,
    callback_origin: code.callback_url === null ? null : new URL(code.callback_url).origin,
    code_challenge_method: code.code_challenge_method,
    workspace_id: code.workspace_id,
    user_id: code.user_id,
    key_label: code.key_label,
    limit: code.limit_nano === null ? null : toUsd(code.limit_nano),
    usage_limit_type: code.limit_reset,
    key_expires_at: code.key_expires_at,
    expires_at: code.expires_at,
    used_at: code.used_at,
    made_by: code.made_by,
  };
}
