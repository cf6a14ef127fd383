import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { limits } from '../limits.ts';

/** A stored sign-in to the pages: everything but the cookie's secret. */
export interface StoredSession {
  /** Stays the same when the cookie's secret is replaced. */
  id: string;
  token_hash: string;
  previous_hash: string | null;
  organization_id: string;
  user_id: string;
  /** The credential that it was opened with, as returned by `keyCredential` and the functions beside it. */
  credential: string;
  created_at: string;
  rotated_at: string;
  expires_at: string;
}

/** The credential of a session that was opened with a stored key: the key's hash, and the SHA-256 of the secret unless that is the hash. */
export function keyCredential({ key_hash, secret_hash }: { key_hash: string; secret_hash: string }): string {
  return secret_hash === key_hash ? `key:${key_hash}` : `key:${key_hash}:${secret_hash}`;
}

/** The credential of a session that was opened by an OpenID Connect issuer. */
export const ISSUER_CREDENTIAL = 'issuer';

/** The credential of a session that was opened with a one-time link. */
export const LINK_CREDENTIAL = 'link';

/** The credential of a stored one-time code: a row that opens nothing until a form replaces it by a session. */
export const SIGN_IN_CODE_CREDENTIAL = 'sign-in code';

/** The credential of a session that was opened with the environment's management key: identifies it only with the gateway's secret. */
export function environmentCredential(managementKey: string, secret: string): string {
  return `environment:${createHmac('sha256', secret).update(`session of ${managementKey}`).digest('hex')}`;
}

/** The stored key on which a session depends, and the secret of it; undefined if none. */
export function keyOfCredential(credential: string): { key_hash: string; secret_hash: string } | undefined {
  const [kind, keyHash, secretHash = keyHash] = credential.split(':');
  if (kind !== 'key' || keyHash === undefined || secretHash === undefined) return undefined;
  return { key_hash: keyHash, secret_hash: secretHash };
}

/** The stored form of a cookie's secret. */
export function hashToken(token: string): string {
  return createHash('sha256').update(token).digest('hex');
}

/** Creates the secret of a cookie; the only place that does. */
export function createToken(): { token: string; token_hash: string } {
  const token = randomBytes(32).toString('base64url');
  return { token, token_hash: hashToken(token) };
}

/** Whether a secret is valid for a session at a moment, and whether it should be replaced. */
export function judgeSession(
  session: StoredSession,
  tokenHash: string,
  now: number,
): 'live' | 'rotation due' | 'superseded' | 'over' {
  if (Date.parse(session.expires_at) <= now) return 'over';
  const ageMs = now - Date.parse(session.rotated_at);
  if (session.token_hash !== tokenHash) return ageMs <= limits.session_overlap_ms ? 'superseded' : 'over';
  return ageMs >= limits.session_rotation_ms ? 'rotation due' : 'live';
}

/** The token in the forms of a browser's session: no other site can create one. */
export function formToken(sessionId: string, secret: string): string {
  return createHmac('sha256', secret).update(`form of ${sessionId}`).digest('base64url');
}

/** Compares a form's token with the session's in constant time. */
export function isFormToken(token: string, sessionId: string, secret: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(token), digest(formToken(sessionId, secret)));
}
