import { setTimeout as sleep } from 'node:timers/promises';
import { createSecret, keyState, type StoredKey } from '../accounts/key.ts';
import { type Config, loadConfig } from '../config.ts';
import { limits } from '../limits.ts';
import type { LimitReset } from '../schemas/key.ts';
import { parseUsd, toUsd } from '../schemas/money.ts';
import { isStorable } from '../schemas/text.ts';
import { keyStore } from '../storage/keys.ts';
import { revokeLocally } from '../storage/local-revocations.ts';
import { type Command, common, printJson, Refusal, readArguments, UsageError } from './command.ts';
import { commandName } from './command-name.ts';
import { prepareDataDir } from './data-dir.ts';
import { oneLine } from './one-line.ts';
import { type OpenStore, withStore } from './with-store.ts';

const USAGE = `Usage: model-gateway keys create --name NAME [--limit USD [--limit-reset daily|weekly|monthly]] [--json] [--config FILE]
       model-gateway keys create --management [--name NAME] [--json] [--config FILE]
       model-gateway keys list [--made-by-applications] [--json] [--config FILE]
       model-gateway keys disable KEY [--config FILE]
       model-gateway keys revoke --on-this-node KEY [--undo] [--config FILE]

create prints the new key, once and alone, so that a shell can keep it:
  GATEWAY_KEY=$(${commandName()} keys create --name laptop --limit 5)

KEY is the hash of a key or its label. With --made-by-applications, list shows the keys that applications got by authorization
codes, and by whom: the hash of the parent key, session (a member, also for itself in the console), or unknown, for keys made
before parents were recorded, which are bound to no parent.

revoke does not need the store: gateways on this data directory refuse the key from then on, whatever the store says of it,
until --undo.
`;

const limitResets = ['daily', 'weekly', 'monthly'] as const satisfies readonly LimitReset[];

/** A key to be created. */
interface Wanted {
  name: string;
  is_management: boolean;
  limit_nano: number | null;
  limit_reset: LimitReset | null;
}

/** Creates a key in the default workspace, owned by the organization's owner. */
function create({ change, actor, home }: OpenStore, wanted: Wanted): Promise<{ secret: string; key: StoredKey }> {
  return change(actor, async ({ tx, at, audit, announce }) => {
    const { secret, hash, label } = createSecret();
    const key = await keyStore(tx).insert({
      hash,
      label,
      organization_id: home.organization_id,
      workspace_id: home.default_workspace_id,
      creator_user_id: home.owner_user_id,
      ...wanted,
      disabled: false,
      include_byok_in_limit: false,
      expires_at: null,
      created_at: at,
      updated_at: null,
    });
    const after = { ...keyState(key), is_management: wanted.is_management };
    await audit({ action: 'create', resource_type: 'api_key', resource_id: hash, before: null, after });
    announce({ topic: 'key_made', id: hash });
    return { secret, key };
  });
}

/** Who granted the key of an application or a member; undefined: an administrator created it. */
function grantedBy({ made_by, parent_hash }: StoredKey): string | undefined {
  if (made_by === null) return undefined;
  if (made_by !== 'key') return made_by;
  return parent_hash ?? 'environment';
}

const keysOf = ({ database, home }: Pick<OpenStore, 'database' | 'home'>): Promise<StoredKey[]> =>
  keyStore(database.queries).listBy({ organization_id: home.organization_id });

/** Disables the one key with a hash or a label. */
async function disable(store: OpenStore, named: string): Promise<void> {
  const matches = (await keysOf(store)).filter(({ hash, label }) => hash === named || label === named);
  const [key] = matches;
  if (key === undefined) throw new Refusal("No key has this hash or label. 'keys list' shows the keys.");
  if (matches.length > 1) throw new Refusal('Several keys have this label; use the hash of the key.');
  await store.change(store.actor, async ({ tx, at, audit, announce }) => {
    const which = { organization_id: key.organization_id, hash: key.hash };
    const keys = keyStore(tx);
    const before = await keys.lock(which);
    if (before === undefined || before.disabled) return;
    const after = await keys.update(which, { disabled: true, updated_at: at });
    await audit({
      action: 'update',
      resource_type: 'api_key',
      resource_id: key.hash,
      before: keyState(before),
      after: keyState(after),
    });
    announce({ topic: 'keys', id: key.hash });
  });
}

function lineOf(key: StoredKey, columns: { showsGrantor: boolean }): string {
  const kind = key.is_management ? 'management' : 'key';
  const state = key.disabled ? 'disabled' : 'enabled';
  const grantor = columns.showsGrantor ? `${grantedBy(key) ?? ''}  ` : '';
  return `${key.hash}  ${kind.padEnd(10)}  ${state.padEnd(8)}  ${key.label}  ${grantor}${oneLine(key.name)}\n`;
}

/** Resolves when the running gateways have read the list. */
async function revokeOnThisNode({ data_dir }: Config, name: string, isRevoked: boolean): Promise<void> {
  prepareDataDir(data_dir);
  const refusal = revokeLocally(data_dir, name, isRevoked);
  if (refusal !== undefined) throw new Refusal(refusal);
  await sleep(2 * limits.local_revocations_look_ms);
  process.stdout.write(
    isRevoked
      ? 'Gateways on this data directory refuse the key from now on. Disable it in the store as well, as soon as the store answers.\n'
      : 'This node follows the store for this key again.\n',
  );
}

/** A key in the output of `list --json` and `create --json`. */
function shownKey(key: StoredKey) {
  const { hash, label, name, is_management, disabled, limit_nano, limit_reset, workspace_id, created_at } = key;
  const limit = limit_nano === null ? null : toUsd(limit_nano);
  return {
    hash,
    label,
    name,
    is_management,
    disabled,
    limit,
    limit_reset,
    workspace_id,
    created_at,
    granted_by: grantedBy(key) ?? null,
  };
}

function wantedKey(values: { name?: string; management: boolean; limit?: string; 'limit-reset'?: string }): Wanted {
  const { management: isManagement, limit, 'limit-reset': reset } = values;
  const name = values.name?.trim() ?? (isManagement ? 'Management key' : '');
  if (name === '' || name.length > limits.key_name_chars_max || !isStorable(name)) {
    throw new UsageError(`--name must be a text of 1 to ${limits.key_name_chars_max} characters.`);
  }
  const limitNano = limit === undefined ? null : parseUsd(limit);
  if (limitNano === undefined)
    throw new UsageError(`--limit must be an amount of USD such as 5 or 0.50, not '${limit}'.`);
  if (limitNano !== null && isManagement) throw new UsageError('Management keys cannot call models: remove --limit.');
  const limitReset = reset === undefined ? null : limitResets.find((interval) => interval === reset);
  if (limitReset === undefined || (limitReset !== null && limitNano === null)) {
    throw new UsageError('--limit-reset must be daily, weekly or monthly, beside a --limit.');
  }
  return { name, is_management: isManagement, limit_nano: limitNano, limit_reset: limitReset };
}

/** `model-gateway keys create|list|disable`: works on the configured store, whether or not the gateway runs. `revoke` works without it. */
export const keysCommand: Command = {
  usage: USAGE,
  async run(args, environment) {
    const flag = { type: 'boolean', default: false } as const;
    const text = { type: 'string' } as const;
    const { positionals, values } = readArguments({
      args,
      allowPositionals: true,
      options: {
        ...common,
        limit: text,
        'limit-reset': text,
        'made-by-applications': flag,
        management: flag,
        name: text,
        'on-this-node': flag,
        undo: flag,
      },
    });
    const [command, named, ...rest] = positionals;
    const config = loadConfig(environment, { config_file: values.config });
    if (command === 'create' && named === undefined) {
      const wanted = wantedKey(values);
      const { secret, key } = await withStore(config, (store) => create(store, wanted));
      if (values.json) printJson({ key: secret, data: shownKey(key) });
      else process.stdout.write(`${secret}\n`);
      return 0;
    }
    if (command === 'list' && named === undefined) {
      const onlyGranted = values['made-by-applications'];
      const keys = (await withStore(config, keysOf)).filter((key) => !onlyGranted || key.made_by !== null);
      if (values.json) printJson(keys.map(shownKey));
      else for (const key of keys) process.stdout.write(lineOf(key, { showsGrantor: onlyGranted }));
      return 0;
    }
    if (named === undefined || rest.length > 0) throw new UsageError();
    if (command === 'revoke' && values['on-this-node']) {
      await revokeOnThisNode(config, named, !values.undo);
      return 0;
    }
    if (command !== 'disable') throw new UsageError();
    await withStore(config, (store) => disable(store, named));
    return 0;
  },
};
