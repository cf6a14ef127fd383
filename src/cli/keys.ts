import { setTimeout as sleep } from 'node:timers/promises';
import { createSecret, keyState, type StoredKey } from '../accounts/key.ts';
import { previousSecret, type Rotation } from '../accounts/key-secrets.ts';
import type { Work } from '../api/change.ts';
import { endPreviousSecret, rotateSecret } from '../api/keys/rotate-secret.ts';
import { type Config, loadConfig } from '../config.ts';
import { GatewayError } from '../errors.ts';
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
       model-gateway keys rotate KEY [--grace-seconds N] [--keep current|previous] [--json] [--config FILE]
       model-gateway keys end-previous-secret KEY [--config FILE]
       model-gateway keys revoke --on-this-node KEY [--undo] [--config FILE]

create prints the new key, once and alone, so that a shell can keep it:
  GATEWAY_KEY=$(${commandName()} keys create --name laptop --limit 5)

rotate prints a new secret of the key in the same way. The older secret stays valid for --grace-seconds (default ${limits.key_grace_default_seconds}, at
most ${limits.key_grace_seconds_max}; 0: it ends at once), or until end-previous-secret. If the previous secret of the last rotation is still valid, --keep
says which of the two older secrets stays valid. The key keeps its hash, limits and usage.

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

/** The one key with a hash or a label, also the label of its previous secret. Throws a `Refusal` if there is none. */
async function keyNamed(store: OpenStore, named: string): Promise<StoredKey> {
  const matches = (await keysOf(store)).filter(({ hash, label, previous_label: previous }) =>
    [hash, label, previous].includes(named),
  );
  const [key] = matches;
  if (key === undefined) throw new Refusal("No key has this hash or label. 'keys list' shows the keys.");
  if (matches.length > 1) throw new Refusal('Several keys have this label; use the hash of the key.');
  return key;
}

/** Changes the one key with a hash or a label. Throws a `Refusal` if there is none, or if the change is refused. */
async function changeKey<T>(
  store: OpenStore,
  named: string,
  run: (work: Work, key: StoredKey) => Promise<T>,
): Promise<T> {
  const { organization_id, hash } = await keyNamed(store, named);
  try {
    return await store.change(store.actor, async (work) => {
      const key = await keyStore(work.tx).lock({ organization_id, hash });
      if (key === undefined) throw new Refusal('The key was deleted in the meantime.');
      return run(work, key);
    });
  } catch (error) {
    throw error instanceof GatewayError ? new Refusal(`${error.message}.`) : error;
  }
}

/** Disables a locked key. */
async function disable({ tx, at, audit, announce }: Work, before: StoredKey): Promise<void> {
  const { organization_id, hash } = before;
  if (before.disabled) return;
  const after = await keyStore(tx).update({ organization_id, hash }, { disabled: true, updated_at: at });
  await audit({
    action: 'update',
    resource_type: 'api_key',
    resource_id: hash,
    before: keyState(before),
    after: keyState(after),
  });
  announce({ topic: 'keys', id: hash });
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
function shownKey(key: StoredKey, now: number) {
  const { hash, label, name, is_management, disabled, limit_nano, limit_reset, workspace_id, created_at } = key;
  const limit = limit_nano === null ? null : toUsd(limit_nano);
  const previous = previousSecret(key, now);
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
    rotated_at: key.rotated_at,
    previous_secret_expires_at: previous?.expires_at ?? null,
    previous_secret_last_used_at: previous?.used_at ?? null,
  };
}

/** A new secret in the output of `create --json` and `rotate --json`. */
interface Made {
  key: string;
  data: ReturnType<typeof shownKey>;
}

const madeIn = ({ database }: OpenStore, { secret, key }: { secret: string; key: StoredKey }): Made => ({
  key: secret,
  data: shownKey(key, database.clock.nowMs()),
});

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

function wantedRotation({ 'grace-seconds': grace, keep }: { 'grace-seconds'?: string; keep?: string }): Rotation {
  const seconds = grace === undefined ? limits.key_grace_default_seconds : /^\d{1,9}$/.test(grace) ? Number(grace) : -1;
  if (seconds < 0 || seconds > limits.key_grace_seconds_max) {
    throw new UsageError(
      `--grace-seconds must be an integer from 0 to ${limits.key_grace_seconds_max}, not '${grace}'.`,
    );
  }
  if (keep !== undefined && keep !== 'current' && keep !== 'previous') {
    throw new UsageError('--keep must be current or previous.');
  }
  return { grace_seconds: seconds, keep };
}

/** `model-gateway keys create|list|disable|rotate|end-previous-secret`: works on the configured store, whether or not the gateway runs. `revoke` works without it. */
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
        'grace-seconds': text,
        keep: text,
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
    const print = (value: Made) => {
      if (values.json) printJson(value);
      else process.stdout.write(`${value.key}\n`);
      return 0;
    };
    if (command === 'create' && named === undefined) {
      const wanted = wantedKey(values);
      return print(await withStore(config, async (store) => madeIn(store, await create(store, wanted))));
    }
    if (command === 'list' && named === undefined) {
      const onlyGranted = values['made-by-applications'];
      const list = async (store: OpenStore) => {
        const keys = (await keysOf(store)).filter((key) => !onlyGranted || key.made_by !== null);
        if (values.json) printJson(keys.map((key) => shownKey(key, store.database.clock.nowMs())));
        else for (const key of keys) process.stdout.write(lineOf(key, { showsGrantor: onlyGranted }));
      };
      await withStore(config, list);
      return 0;
    }
    if (named === undefined || rest.length > 0) throw new UsageError();
    if (command === 'revoke' && values['on-this-node']) {
      await revokeOnThisNode(config, named, !values.undo);
      return 0;
    }
    if (command === 'rotate') {
      const rotation = wantedRotation(values);
      const rotate = (work: Work, key: StoredKey) => rotateSecret(work, key, rotation);
      return print(await withStore(config, async (store) => madeIn(store, await changeKey(store, named, rotate))));
    }
    if (command !== 'disable' && command !== 'end-previous-secret') throw new UsageError();
    const change = command === 'disable' ? disable : endPreviousSecret;
    await withStore(config, (store) => changeKey<unknown>(store, named, change));
    return 0;
  },
};
