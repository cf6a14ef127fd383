import { createSecret } from '../accounts/key.ts';
import type { Config } from '../config.ts';
import type { Clock } from '../inference/call.ts';
import type { Database } from '../storage/database.ts';
import { type Home, organizationStore } from '../storage/organizations.ts';

const now = (clock: Clock) => new Date(clock.now_ms()).toISOString();

/** Makes the first organization, unless somebody did. */
export function firstHome(database: Database, clock: Clock): Promise<Home> {
  return organizationStore(database.queries).insertFirst({ at: now(clock) });
}

/**
 * Makes the first management key, unless somebody did, or the environment names one. Nobody can read it again: call it when
 * nothing is left that could fail before it is shown.
 */
export async function firstKey(
  { management_key }: Config,
  database: Database,
  { home, clock }: { home: Home; clock: Clock },
): Promise<string | undefined> {
  if (management_key !== undefined) return undefined;
  const { secret, ...key } = createSecret();
  const is_stored = await organizationStore(database.queries).insertFirstKey({ at: now(clock), home, key });
  return is_stored ? secret : undefined;
}
