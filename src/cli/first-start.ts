import { createSecret } from '../accounts/key.ts';
import type { Config } from '../config.ts';
import type { Clock } from '../inference/call.ts';
import type { Database } from '../storage/database.ts';
import { type Home, organizationStore } from '../storage/organizations.ts';

/**
 * Makes the first organization, unless somebody did. Gives back the management key that was made with it: nobody can
 * read it again. None is made where the environment names one.
 */
export async function firstStart(
  config: Config,
  database: Database,
  clock: Clock,
): Promise<{ home: Home; management_key: string | undefined }> {
  const made = config.management_key === undefined ? createSecret() : undefined;
  const { created, ...home } = await organizationStore(database.queries).insertFirst({
    at: new Date(clock.now_ms()).toISOString(),
    management: made && { hash: made.hash, label: made.label },
  });
  return { home, management_key: created ? made?.secret : undefined };
}
