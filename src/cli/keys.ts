import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { createSecret, keyState, type StoredKey } from '../accounts/key.ts';
import { type Config, type Environment, loadConfig } from '../config.ts';
import { limits } from '../limits.ts';
import { isStorable } from '../schemas/text.ts';
import { keyStore } from '../storage/keys.ts';
import { revokeLocally } from '../storage/local-revocations.ts';
import { prepareDataDir } from './data-dir.ts';
import { oneLine } from './one-line.ts';
import { type OpenStore, withStore } from './with-store.ts';

const USAGE = `Usage: model-gateway keys create --management [--name NAME] [--config FILE]
       model-gateway keys create --name NAME [--config FILE]
       model-gateway keys list [--made-by-applications] [--config FILE]
       model-gateway keys disable KEY [--config FILE]
       model-gateway keys revoke --on-this-node KEY [--undo] [--config FILE]

KEY is the hash of a key or its label. A key that create makes is shown once, by create alone. With --made-by-applications,
list shows the keys that applications got by authorization codes, and by whom: the hash of the parent key, session, or
unknown, for keys made before parents were recorded, which are bound to no parent.

revoke does not need the store: gateways on this data directory refuse the key from then on, whatever the
store says of it, until --undo.
`;

/** Makes a key in the default workspace, owned by the organization's owner. Gives its secret. */
function create({ change, actor, home }: OpenStore, name: string, is_management: boolean): Promise<string> {
  return change(actor, async ({ tx, at, audit }) => {
    const { secret, hash, label } = createSecret();
    const made = await keyStore(tx).insert({
      hash,
      label,
      organization_id: home.organization_id,
      workspace_id: home.default_workspace_id,
      creator_user_id: home.owner_user_id,
      name,
      is_management,
      disabled: false,
      limit_nano: null,
      limit_reset: null,
      include_byok_in_limit: false,
      expires_at: null,
      created_at: at,
      updated_at: null,
    });
    const after = { ...keyState(made), is_management };
    await audit({ action: 'create', resource_type: 'api_key', resource_id: hash, before: null, after });
    return secret;
  });
}

/** Who granted a key that an application has; undefined: an administrator made it. */
function grantedBy({ made_by, parent_hash }: StoredKey): string | undefined {
  if (made_by === null) return undefined;
  if (made_by !== 'key') return made_by;
  return parent_hash ?? 'environment';
}

const keysOf = ({ database, home }: Pick<OpenStore, 'database' | 'home'>): Promise<StoredKey[]> =>
  keyStore(database.queries).listBy({ organization_id: home.organization_id });

/** Disables the one key of a hash or a label; says which, or why none. */
async function disable(store: OpenStore, named: string): Promise<string | undefined> {
  const found = (await keysOf(store)).filter(({ hash, label }) => hash === named || label === named);
  const [key] = found;
  if (key === undefined) return 'There is no key of this hash or label.';
  if (found.length > 1) return 'Several keys have this label; name one by its hash.';
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
  return undefined;
}

function lineOf(key: StoredKey, columns: { granted_by: boolean }): string {
  const kind = key.is_management ? 'management' : 'key';
  const state = key.disabled ? 'disabled' : 'enabled';
  const granted_by = columns.granted_by ? `${grantedBy(key) ?? ''}  ` : '';
  return `${key.hash}  ${kind.padEnd(10)}  ${state.padEnd(8)}  ${key.label}  ${granted_by}${oneLine(key.name)}\n`;
}

/** Returns when the gateways that run have seen it. */
async function revokeOnThisNode({ data_dir }: Config, name: string, is_revoked: boolean): Promise<number> {
  prepareDataDir(data_dir);
  const refusal = revokeLocally(data_dir, name, is_revoked);
  if (refusal !== undefined) {
    process.stderr.write(`${refusal}\n`);
    return 1;
  }
  await sleep(2 * limits.local_revocations_look_ms);
  process.stdout.write(
    is_revoked
      ? 'Gateways on this data directory refuse the key from now on. Disable it in the store as well, when that answers.\n'
      : 'What the store says of the key counts again on this node.\n',
  );
  return 0;
}

/** `model-gateway keys create|list|disable`: on the configured store, whether the gateway runs or not; `revoke`: without it. */
export async function runKeys(args: string[], environment: Environment): Promise<number> {
  const { positionals, values } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      config: { type: 'string' },
      help: { type: 'boolean', short: 'h', default: false },
      'made-by-applications': { type: 'boolean', default: false },
      management: { type: 'boolean', default: false },
      name: { type: 'string' },
      'on-this-node': { type: 'boolean', default: false },
      undo: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    process.stdout.write(USAGE);
    return 0;
  }
  const [command, named, ...rest] = positionals;
  const config = loadConfig(environment, values.config === undefined ? {} : { config_file: values.config });
  const name = values.name?.trim() ?? (values.management ? 'Management key' : '');
  if (command === 'create' && named === undefined) {
    if (name === '' || name.length > limits.key_name_chars_max || !isStorable(name)) {
      process.stderr.write(`--name must be a text of 1 to ${limits.key_name_chars_max} characters\n`);
      return 2;
    }
    process.stdout.write(`${await withStore(config, (store) => create(store, name, values.management))}\n`);
    return 0;
  }
  if (command === 'list' && named === undefined) {
    const granted_by = values['made-by-applications'];
    const keys = (await withStore(config, keysOf)).filter((key) => !granted_by || key.made_by !== null);
    for (const key of keys) process.stdout.write(lineOf(key, { granted_by }));
    return 0;
  }
  if (command === 'revoke' && named !== undefined && rest.length === 0 && values['on-this-node']) {
    return revokeOnThisNode(config, named, !values.undo);
  }
  if (command !== 'disable' || named === undefined || rest.length > 0) {
    process.stderr.write(USAGE);
    return 2;
  }
  const refusal = await withStore(config, (store) => disable(store, named));
  if (refusal === undefined) return 0;
  process.stderr.write(`${refusal}\n`);
  return 1;
}
