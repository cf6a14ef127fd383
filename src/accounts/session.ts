import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { limits } from '../limits.ts';

/** A sign-in to the pages as it is stored: everything but the cookie's secret. */
export interface StoredSession {
  /** Stays the same when the cookie's secret is replaced. */
  id: string;
  token_hash: string;
  previous_hash: string | null;
  organization_id: string;
  user_id: string;
  /** What it was signed in with, as `keyCredential` and its siblings write it. */
  credential: string;
  created_at: string;
  rotated_at: string;
  expires_at: string;
}

/** The credential of a session that a stored key has opened, by the key's hash. */
export const keyCredential = (key_hash: string): string => `key:${key_hash}`;

/** The credential of a session that an OpenID Connect issuer has opened. */
export const ISSUER_CREDENTIAL = 'issuer';

/** The credential of a session that the environment's management key has opened: says which, and only to who has the gateway's secret. */
export function environmentCredential(management_key: string, secret: string): string {
  return `environment:${createHmac('sha256', secret).update(`session of ${management_key}`).digest('hex')}`;
}

/** The stored key that a session lives and dies with; undefined when it has none. */
export function keyOfCredential(credential: string): string | undefined {
  return credential.startsWith('key:') ? credential.slice('key:'.length) : undefined;
}

/** What a cookie's secret is stored under. */
export function hashToken(token: string): string {
  return createHash('sha256').update(token).digest('hex');
}

/** Makes the secret of a cookie, the only place that does. */
export function createToken(): { token: string; token_hash: string } {
  const token = randomBytes(32).toString('base64url');
  return { token, token_hash: hashToken(token) };
}

/** Whether a secret is one that a browser's session has at this moment, and whether it should get a new one. */
export function judgeSession(
  session: StoredSession,
  token_hash: string,
  now: number,
): 'live' | 'rotation due' | 'superseded' | 'over' {
  if (Date.parse(session.expires_at) <= now) return 'over';
  const age_ms = now - Date.parse(session.rotated_at);
  if (session.token_hash !== token_hash) return age_ms <= limits.session_overlap_ms ? 'superseded' : 'over';
  return age_ms >= limits.session_rotation_ms ? 'rotation due' : 'live';
}

/** What the forms of a browser's session carry, so that no other site can make one. */
export function formToken(session_id: string, secret: string): string {
  return createHmac('sha256', secret).update(`form of ${session_id}`).digest('base64url');
}

/** Compares a form's token with the session's in a time that tells nothing. */
export function isFormToken(given: string, session_id: string, secret: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(given), digest(formToken(session_id, secret)));
}
