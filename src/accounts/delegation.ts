import type { BudgetMode } from '../schemas/budget.ts';
import type { StoredCode } from './authorization-code.ts';
import { isUsable, type StoredKey } from './key.ts';

/** The limits and the expiry of a key that an application receives. */
export interface Grant
  extends Pick<StoredCode, 'limit_nano' | 'limit_reset'>,
    Pick<StoredKey, 'include_byok_in_limit' | 'expires_at'> {}

/** The requested limits of the new key. A null limit or expiry was not requested. */
export type RequestedGrant = Omit<Grant, 'include_byok_in_limit'>;

/** A key whose validity is checked. `secret_end`: the end of the previous secret, with which it was called; `expires_at` is not later then. */
export type CheckedKey = Pick<StoredKey, 'disabled' | 'expires_at'> & { secret_end?: string };

/** Why a key is refused, because of itself or of a key that it was made with; undefined if it is accepted. `lineage`: the key, its parent, and so on. */
export function keyRefusal(lineage: readonly CheckedKey[], now: number): string | undefined {
  for (let distance = 0; distance < lineage.length; distance += 1) {
    const key = lineage[distance]!;
    if (isUsable(key, now)) continue;
    if (!key.disabled && key.secret_end !== undefined && Date.parse(key.secret_end) <= now) {
      return 'This secret of the API key was replaced and is no longer valid; use the new secret';
    }
    const which = distance === 0 ? 'This API key' : 'The API key that this key was made with';
    return `${which} ${key.disabled ? 'is disabled' : 'has expired'}`;
  }
  return undefined;
}

/**
 * The grant of a key that is made with others: it expires with the first of `lineage`. Its limit is at most that of the nearest
 * key that has one, and equal to it if none was requested. Without a lineage the request is granted.
 */
export function boundGrant(requested: RequestedGrant, lineage: readonly StoredKey[]): Grant {
  const expiries = [requested, ...lineage].flatMap(({ expires_at }) => expires_at ?? []);
  const expiresAt = expiries.reduce<string | null>(
    (first, expiry) => (first === null || Date.parse(expiry) < Date.parse(first) ? expiry : first),
    null,
  );
  const limited = lineage.find(({ limit_nano }) => limit_nano !== null);
  if (limited === undefined || limited.limit_nano === null) {
    return { ...requested, include_byok_in_limit: false, expires_at: expiresAt };
  }
  const { limit_nano, limit_reset, include_byok_in_limit } = limited;
  if (requested.limit_nano === null) return { limit_nano, limit_reset, include_byok_in_limit, expires_at: expiresAt };
  const least = Math.min(requested.limit_nano, limit_nano);
  return { limit_nano: least, limit_reset: requested.limit_reset, include_byok_in_limit, expires_at: expiresAt };
}

/** The budget mode of a key and its parents: strict if one of them is strict; null: that of the gateway's settings. */
export function lineageBudgetMode(lineage: readonly Pick<StoredKey, 'budget_mode'>[]): BudgetMode | null {
  const modes = lineage.map(({ budget_mode }) => budget_mode);
  if (modes.includes('strict')) return 'strict';
  // The mode of the gateway's settings may be strict.
  return modes.includes(null) ? null : 'soft';
}
