import type { BudgetMode } from '../schemas/budget.ts';
import type { StoredCode } from './authorization-code.ts';
import { isUsable, type StoredKey } from './key.ts';

/** What a key that an application gets may spend, and how long it lives. */
export interface Grant
  extends Pick<StoredCode, 'limit_nano' | 'limit_reset'>,
    Pick<StoredKey, 'include_byok_in_limit' | 'expires_at'> {}

/** What was requested of the new key; a null limit and a null expiry: nothing was. */
export type RequestedGrant = Omit<Grant, 'include_byok_in_limit'>;

/** Why a key is refused now, by itself or by one that it was made with; undefined: it is accepted. `lineage`: the key, its parent, and so on. */
export function keyRefusal(
  lineage: readonly Pick<StoredKey, 'disabled' | 'expires_at'>[],
  now: number,
): string | undefined {
  for (const [distance, key] of lineage.entries()) {
    if (isUsable(key, now)) continue;
    const which = distance === 0 ? 'This API key' : 'The API key that this key was made with';
    return `${which} ${key.disabled ? 'is disabled' : 'has expired'}`;
  }
  return undefined;
}

/**
 * The grant of a key that is made with others: it expires with the first of `lineage`, and its limit is at most that of the
 * nearest which has one, which is also its limit if none was requested. Without any key in `lineage` the request is granted.
 */
export function boundGrant(requested: RequestedGrant, lineage: readonly StoredKey[]): Grant {
  const expiries = [requested, ...lineage].flatMap(({ expires_at }) => expires_at ?? []);
  const expires_at = expiries.reduce<string | null>(
    (first, one) => (first === null || Date.parse(one) < Date.parse(first) ? one : first),
    null,
  );
  const limited = lineage.find(({ limit_nano }) => limit_nano !== null);
  if (limited === undefined || limited.limit_nano === null) {
    return { ...requested, include_byok_in_limit: false, expires_at };
  }
  const { limit_nano, limit_reset, include_byok_in_limit } = limited;
  if (requested.limit_nano === null) return { limit_nano, limit_reset, include_byok_in_limit, expires_at };
  const least = Math.min(requested.limit_nano, limit_nano);
  return { limit_nano: least, limit_reset: requested.limit_reset, include_byok_in_limit, expires_at };
}

/** The budget mode of a key and its parents: strict if one of them is strict. */
export function lineageBudgetMode(lineage: readonly Pick<StoredKey, 'budget_mode'>[]): BudgetMode | null {
  const modes = lineage.map(({ budget_mode }) => budget_mode);
  if (modes.includes('strict')) return 'strict';
  // As the gateway's settings say, which may be strict.
  return modes.includes(null) ? null : 'soft';
}
