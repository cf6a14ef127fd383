import type { StoredKey } from '../../accounts/key.ts';
import { GatewayError } from '../../errors.ts';
import type { Principal } from '../../http/principal.ts';
import { limits } from '../../limits.ts';
import type { BudgetMode } from '../../schemas/budget.ts';
import type { UpdateKeyBody } from '../../schemas/key.ts';
import type { Queries } from '../../storage/database.ts';
import { keyStore } from '../../storage/keys.ts';
import { ownUserOf } from '../change.ts';

/** Throws a 403 if a member wants the `soft` mode, which also loosens the budgets of its workspace, its guardrails and the organization. */
export function checkMode(caller: Principal, mode: BudgetMode | null | undefined): void {
  if (ownUserOf(caller) === undefined || mode !== 'soft') return;
  throw new GatewayError(403, 'Only administrators can set budget_mode to soft; leave it out');
}

/**
 * Throws a 403 for a change of a key that is not the caller's decision. What an administrator set of a key that it made, such as its limit,
 * stands: the member may disable the key. The same holds for keys made with another key, whose grant bounds them.
 */
export function checkMayChange(
  caller: Principal,
  key: Pick<StoredKey, 'made_by'>,
  { disabled, ...others }: UpdateKeyBody,
): void {
  if (ownUserOf(caller) === undefined) return;
  const isDisabledAlone = disabled !== false && Object.keys(others).length === 0;
  if (key.made_by !== 'session' && !isDisabledAlone) {
    throw new GatewayError(
      403,
      'You did not make this key: you may disable or delete it; ask an administrator for other changes',
    );
  }
  checkMode(caller, others.budget_mode);
}

/** Throws a 403 if a member wants the secret of a key that it did not make: whoever has the secret spends what the key may. */
export function checkMayRotate(caller: Principal, key: Pick<StoredKey, 'made_by'>): void {
  if (ownUserOf(caller) === undefined || key.made_by === 'session') return;
  throw new GatewayError(
    403,
    'You did not make this key: you may disable or delete it, or end its previous secret; ask an administrator to rotate it',
  );
}

/**
 * Throws a 409 if a member may make no further key in its sessions, in this workspace. Disabled and expired keys count. Call it with the
 * membership locked, so that the keys of two requests count for each other.
 */
export async function checkRoomOf(
  tx: Queries,
  whose: { organization_id: string; workspace_id: string; user_id: string },
): Promise<void> {
  if ((await keyStore(tx).countOfSessions(whose)) < limits.member_keys_max) return;
  throw new GatewayError(
    409,
    `You have made ${limits.member_keys_max} keys in this workspace, which is the maximum; delete keys that you no longer use`,
  );
}
