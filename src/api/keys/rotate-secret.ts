import { createSecret, keyState, type StoredKey } from '../../accounts/key.ts';
import { previousSecret, type Rotation, rotatedSecrets } from '../../accounts/key-secrets.ts';
import { GatewayError } from '../../errors.ts';
import { keyStore } from '../../storage/keys.ts';
import type { Work } from '../change.ts';
import { probeKeyHash } from './keep-probe-key.ts';

/** Gives a locked key a new secret. The key keeps its name, hash, limits, usage and all else. */
export async function rotateSecret(
  { tx, at, actor, audit, announce }: Work,
  key: StoredKey,
  rotation: Rotation,
): Promise<{ key: StoredKey; secret: string }> {
  const { organization_id } = actor;
  if (key.hash === probeKeyHash(organization_id)) {
    throw new GatewayError(409, 'This key pays for health probes; it has no secret, so it cannot be rotated');
  }
  const { secret, hash, label } = createSecret();
  const change = rotatedSecrets(key, rotation, { hash, label, at });
  const after = await keyStore(tx).update({ organization_id, hash: key.hash }, { ...change, updated_at: at });
  await audit({
    action: 'rotate',
    resource_type: 'api_key',
    resource_id: key.hash,
    before: keyState(key),
    after: keyState(after),
  });
  announce({ topic: 'keys', id: key.hash });
  announce({ topic: 'key_made', id: hash });
  return { key: after, secret };
}

/** Ends the previous secret of a locked key, if it is still valid. */
export async function endPreviousSecret({ tx, at, actor, audit, announce }: Work, key: StoredKey): Promise<StoredKey> {
  if (previousSecret(key, Date.parse(at)) === undefined) return key;
  const which = { organization_id: actor.organization_id, hash: key.hash };
  const after = await keyStore(tx).update(which, { previous_secret_expires_at: null, updated_at: at });
  await audit({
    action: 'update',
    resource_type: 'api_key',
    resource_id: key.hash,
    before: keyState(key),
    after: keyState(after),
  });
  announce({ topic: 'keys', id: key.hash });
  return after;
}
