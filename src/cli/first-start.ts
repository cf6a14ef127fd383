import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { createSecret } from '../accounts/key.ts';
import type { Config } from '../config.ts';
import type { Clock } from '../inference/call.ts';
import type { Database } from '../storage/database.ts';
import { type Home, organizationStore } from '../storage/organizations.ts';

/** Holds the first keys where they are not printed; a shell can read it (`. data/first-keys.env`). */
const KEYS_FILE = 'first-keys.env';

/** The keys that a first start made. Nobody can read them again. */
export interface FirstKeys {
  /** Undefined: none was made of this kind. */
  management_key: string | undefined;
  api_key: string | undefined;
  /** The file that holds them; undefined: they are to be printed. */
  file: string | undefined;
}

const now = (clock: Clock) => new Date(clock.now_ms()).toISOString();

/** Makes the first organization, unless somebody did. */
export function firstHome(database: Database, clock: Clock): Promise<Home> {
  return organizationStore(database.queries).insertFirst({ at: now(clock) });
}

/**
 * Makes the first keys, unless somebody did: the management key unless the environment names one, and an ordinary key as the
 * settings say. Undefined: none was made. Nobody can read them again: call it when nothing is left that could fail before they
 * are shown.
 */
export async function firstKeys(
  { management_key: own, first_keys, data_dir }: Config,
  database: Database,
  { home, clock }: { home: Home; clock: Clock },
): Promise<FirstKeys | undefined> {
  const is_offered = first_keys.ordinary === 'on' || (first_keys.ordinary === 'auto' && own === undefined);
  const management = own === undefined ? createSecret() : undefined;
  const ordinary = is_offered ? { ...createSecret(), limit_nano: first_keys.limit_nano ?? null } : undefined;
  const file = first_keys.are_printed ? undefined : join(data_dir, KEYS_FILE);
  const at = now(clock);
  let made: FirstKeys | undefined;
  await organizationStore(database.queries).insertFirstKeys(
    { at, home, offered: { management, ordinary } },
    (stored) => {
      made = {
        management_key: stored.management ? management?.secret : undefined,
        api_key: stored.ordinary ? ordinary?.secret : undefined,
        file,
      };
      if (file !== undefined) appendFileSync(file, envText(made, at), { mode: 0o600, flush: true });
    },
  );
  return made;
}

/** Later lines count: the directory may have served another store before. */
function envText({ management_key, api_key }: FirstKeys, at: string): string {
  return [
    `# The first keys of Model Gateway, made at ${at}. Store them safely, then delete this file.`,
    ...(management_key === undefined ? [] : [`MANAGEMENT_KEY=${management_key}`]),
    ...(api_key === undefined ? [] : [`GATEWAY_KEY=${api_key}`]),
    '',
  ].join('\n');
}
