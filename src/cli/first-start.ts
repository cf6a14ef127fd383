import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { createSecret } from '../accounts/key.ts';
import type { Config } from '../config.ts';
import type { Clock } from '../inference/call.ts';
import type { Database } from '../storage/database.ts';
import { type Home, organizationStore } from '../storage/organizations.ts';

/** The file of the first keys if they are not printed, in the format of a shell (`. data/first-keys.env`). */
const KEYS_FILE = 'first-keys.env';

/** The keys that a first start created. They cannot be read again. */
export interface FirstKeys {
  /** Undefined if none of this kind was created. */
  management_key: string | undefined;
  api_key: string | undefined;
  /** The file with the keys; undefined if the keys are to be printed. */
  file: string | undefined;
}

const now = (clock: Clock) => new Date(clock.nowMs()).toISOString();

/** Creates the first organization, unless it exists. */
export function firstHome(database: Database, clock: Clock): Promise<Home> {
  return organizationStore(database.queries).insertFirst({ at: now(clock) });
}

/**
 * Creates the first keys, unless they exist: the management key unless the environment sets one, and an ordinary key as
 * configured. Undefined if none was created. They cannot be read again: call it when nothing can fail any more before they are
 * shown.
 */
export async function firstKeys(
  { management_key: own, first_keys, data_dir }: Config,
  database: Database,
  { home, clock }: { home: Home; clock: Clock },
): Promise<FirstKeys | undefined> {
  const isOffered = first_keys.ordinary === 'on' || (first_keys.ordinary === 'auto' && own === undefined);
  const management = own === undefined ? createSecret() : undefined;
  const ordinary = isOffered ? { ...createSecret(), limit_nano: first_keys.limit_nano ?? null } : undefined;
  const file = first_keys.are_printed ? undefined : join(data_dir, KEYS_FILE);
  const at = now(clock);
  let created: FirstKeys | undefined;
  await organizationStore(database.queries).insertFirstKeys(
    { at, home, offered: { management, ordinary } },
    (stored) => {
      created = {
        management_key: stored.management ? management?.secret : undefined,
        api_key: stored.ordinary ? ordinary?.secret : undefined,
        file,
      };
      if (file !== undefined) appendFileSync(file, envText(created, at), { mode: 0o600, flush: true });
    },
  );
  return created;
}

/** Appended: in a shell the last assignment counts, and the file may have the keys of an earlier store. */
function envText({ management_key, api_key }: FirstKeys, at: string): string {
  return [
    `# The first keys of Model Gateway, created at ${at}. Store them safely, then delete this file.`,
    ...(management_key === undefined ? [] : [`MANAGEMENT_KEY=${management_key}`]),
    ...(api_key === undefined ? [] : [`GATEWAY_KEY=${api_key}`]),
    '',
  ].join('\n');
}
