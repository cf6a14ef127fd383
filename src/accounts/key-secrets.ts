import { GatewayError, invalidField } from '../errors.ts';

/** The names of a key and its secrets. The secrets themselves are not stored. */
export interface KeySecrets {
  /** The identity of the key, which it keeps: the SHA-256 of its first secret, in lower-case hex. */
  hash: string;
  /** The displayable part of the current secret. */
  label: string;
  /** The SHA-256 of the current secret; null: the key was never rotated, so `hash` is that. */
  secret_hash: string | null;
  /** The SHA-256 and the displayable part of the secret before the current one. */
  previous_secret_hash: string | null;
  previous_label: string | null;
  /** Until when the previous secret is valid; null: it is not, whatever the clocks of nodes show. */
  previous_secret_expires_at: string | null;
  /** When a request last used the previous secret; null: none did since it is the previous one. */
  previous_secret_used_at: string | null;
  /** When the current secret was made; null: with the key. */
  rotated_at: string | null;
}

/** The end of a previous secret that was ended at once. */
const ENDED = new Date(0).toISOString();

/** The state of the secrets of a key that was never rotated. */
export const NEVER_ROTATED = {
  secret_hash: null,
  previous_secret_hash: null,
  previous_label: null,
  previous_secret_expires_at: null,
  previous_secret_used_at: null,
  rotated_at: null,
} as const satisfies Partial<KeySecrets>;

/**
 * Until when a secret with this SHA-256 is valid: null for the current one, which is valid as long as its key, a moment, maybe past, for the
 * previous one. Undefined if it is neither.
 */
export function secretEnd(key: KeySecrets, digest: string): string | null | undefined {
  if (digest === (key.secret_hash ?? key.hash)) return null;
  return digest === key.previous_secret_hash ? (key.previous_secret_expires_at ?? ENDED) : undefined;
}

/** Whether a secret with this SHA-256 belongs to a key and has not ended at a moment. */
export function isSecretValid(key: KeySecrets, digest: string, now: number): boolean {
  const end = secretEnd(key, digest);
  return end === null || (end !== undefined && Date.parse(end) > now);
}

/** The previous secret of a key, if it is valid at a moment: its label, its end and its last use. */
export function previousSecret(key: KeySecrets, now: number) {
  const { previous_label: label, previous_secret_expires_at: expiresAt } = key;
  if (label === null || expiresAt === null || Date.parse(expiresAt) <= now) return undefined;
  return { label, expires_at: expiresAt, used_at: key.previous_secret_used_at };
}

/** A requested rotation. */
export interface Rotation {
  /** For how long one older secret stays valid. 0: none does. */
  grace_seconds: number;
  /** Which older secret stays valid, if the previous one of the last rotation still is. */
  keep: 'current' | 'previous' | undefined;
}

/**
 * What a rotation changes of a key. At most two secrets are valid at a time: the new one, and one older one. If two older ones are valid, the
 * request must say which one stays, because programs use both. Throws a `GatewayError` if the key cannot be rotated so.
 */
export function rotatedSecrets(
  key: KeySecrets & { expires_at: string | null },
  { grace_seconds, keep }: Rotation,
  made: { hash: string; label: string; at: string },
): Omit<KeySecrets, 'hash'> {
  const now = Date.parse(made.at);
  if (key.expires_at !== null && Date.parse(key.expires_at) <= now) {
    throw new GatewayError(409, 'This API key has expired, and an expiry cannot be changed; make a new key');
  }
  if (grace_seconds === 0 && keep !== undefined) {
    throw invalidField('keep', 'must be left out with grace_seconds 0, after which no older secret works');
  }
  const previous = previousSecret(key, now);
  if (previous === undefined && keep === 'previous') {
    throw new GatewayError(409, 'No previous secret of this API key works any more; leave keep out');
  }
  if (previous !== undefined && keep === undefined && grace_seconds > 0) {
    throw new GatewayError(
      409,
      `The previous secret ${previous.label} of this API key works until ${previous.expires_at}, and only one older secret may stay valid: ` +
        `send keep "current" (${key.label} stays, the previous secret ends at once), keep "previous" (the reverse), or grace_seconds 0 (both end)`,
    );
  }
  const end = now + grace_seconds * 1_000;
  const keyEnd = key.expires_at === null ? end : Date.parse(key.expires_at);
  const kept =
    keep === 'previous'
      ? {
          previous_secret_hash: key.previous_secret_hash,
          previous_label: key.previous_label,
          previous_secret_used_at: key.previous_secret_used_at,
        }
      : {
          previous_secret_hash: key.secret_hash ?? key.hash,
          previous_label: key.label,
          previous_secret_used_at: null,
        };
  return {
    secret_hash: made.hash,
    label: made.label,
    ...kept,
    previous_secret_expires_at: grace_seconds === 0 ? null : new Date(Math.min(end, keyEnd)).toISOString(),
    rotated_at: made.at,
  };
}
