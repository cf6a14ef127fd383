import { codeState } from '../../accounts/authorization-code.ts';
import { describeByok } from '../../accounts/byok.ts';
import { keyState, type StoredKey } from '../../accounts/key.ts';
import { GatewayError } from '../../errors.ts';
import { isStorable } from '../../schemas/text.ts';
import { authorizationCodeStore } from '../../storage/authorization-codes.ts';
import { byokStore } from '../../storage/byok.ts';
import { assignmentStore } from '../../storage/guardrails.ts';
import { keyStore } from '../../storage/keys.ts';
import { memberStore } from '../../storage/members.ts';
import { sessionStore } from '../../storage/sessions.ts';
import type { Work } from '../change.ts';
import { probeKeyHash } from '../keys/keep-probe-key.ts';

/** The member to remove, and the member who gets the ordinary keys; undefined: they are disabled. */
export interface Removal {
  user_id: string;
  hand_keys_to: string | undefined;
}

/** What happened to the member's keys and sessions. */
export interface Removed {
  keys_disabled: number;
  keys_handed_over: number;
  sessions_ended: number;
}

/** Locks the members of the organization until the transaction ends, and checks the removal. */
async function holdMember({ tx, actor }: Work, { user_id, hand_keys_to }: Removal) {
  const { organization_id } = actor;
  const named = [user_id, hand_keys_to].filter((id) => id !== undefined).filter(isStorable);
  const roles = await memberStore(tx).lockForRoles(organization_id, named);
  const role = roles.get(user_id);
  if (role === undefined) throw new GatewayError(404, 'Member not found');
  if (role === 'admin' && [...roles.values()].filter((other) => other === 'admin').length === 1) {
    throw new GatewayError(400, 'The last administrator cannot be removed; make another member one first');
  }
  if (hand_keys_to === user_id) throw new GatewayError(400, 'The keys cannot be handed to the member who is removed');
  if (hand_keys_to !== undefined && !roles.has(hand_keys_to)) {
    throw new GatewayError(400, `The keys cannot be handed to ${hand_keys_to}: not a member`);
  }
  return { role };
}

/** Disables or hands over keys. Management keys are never handed over, since the removed member may know their secrets. */
async function takeKeys(work: Work, { user_id, hand_keys_to }: Removal): Promise<Omit<Removed, 'sessions_ended'>> {
  const { tx, at, actor, audit, announce } = work;
  const { organization_id } = actor;
  const store = keyStore(tx);
  await assignmentStore(tx).takeTurn();
  // Nobody can call with the key of probes, which has no secret.
  const keys = (await store.lockOf({ organization_id, user_id })).filter(
    ({ hash }) => hash !== probeKeyHash(organization_id),
  );
  const auditChange = (before: StoredKey, change: Partial<StoredKey>) => {
    announce({ topic: 'keys', id: before.hash });
    const after = keyState({ ...before, ...change });
    return audit({
      action: 'update',
      resource_type: 'api_key',
      resource_id: before.hash,
      before: keyState(before),
      after,
    });
  };
  const handed = hand_keys_to === undefined ? [] : keys.filter(({ is_management }) => !is_management);
  const disabled = keys.filter((key) => !key.disabled && !handed.includes(key));
  if (hand_keys_to !== undefined) {
    const change = { creator_user_id: hand_keys_to };
    await store.updateAll({ organization_id, hashes: handed.map(({ hash }) => hash) }, { ...change, updated_at: at });
    for (const key of handed) await auditChange(key, change);
  }
  await store.updateAll(
    { organization_id, hashes: disabled.map(({ hash }) => hash) },
    { disabled: true, updated_at: at },
  );
  for (const key of disabled) await auditChange(key, { disabled: true });
  return { keys_disabled: disabled.length, keys_handed_over: handed.length };
}

/** Ends the sessions, one-time links and pending authorization codes of a member, and returns the number of the sessions and links. */
export async function endSignIns({ tx, actor, audit }: Work, userId: string): Promise<number> {
  const { organization_id } = actor;
  const sessions = await sessionStore(tx).deleteOf({ organization_id, user_id: userId });
  for (const id of sessions) {
    await audit({
      action: 'sign-out',
      resource_type: 'session',
      resource_id: id,
      before: { user_id: userId },
      after: null,
    });
  }
  for (const code of await authorizationCodeStore(tx).deleteWaiting({ organization_id, user_id: userId })) {
    await audit({
      action: 'delete',
      resource_type: 'authorization_code',
      resource_id: code.code_hash,
      before: codeState(code),
      after: null,
    });
  }
  return sessions.length;
}

/** Removes the member from the guardrails and the credentials that name them. */
async function dropNames(work: Work, userId: string): Promise<void> {
  const { tx, at, actor, audit, announce } = work;
  const { organization_id } = actor;
  const assignments = assignmentStore(tx);
  const held = await assignments.findMembers({ organization_id }, [userId]);
  const left = held.length === 0 ? [] : await assignments.deleteMembers(held.map(({ id }) => id));
  for (const { id: resourceId, guardrail_id } of left) {
    const before = { guardrail_id, user_id: userId };
    await audit({
      action: 'unassign',
      resource_type: 'guardrail_assignment',
      resource_id: resourceId,
      before,
      after: null,
    });
    announce({ topic: 'policy', id: guardrail_id });
  }
  const byok = byokStore(tx);
  for (const { id } of await byok.listNaming({ organization_id, user_id: userId })) {
    const before = await byok.lock({ organization_id, id });
    if (!before?.allowed_user_ids?.includes(userId)) continue;
    // An empty list allows nobody, not everybody.
    const allowedUserIds = before.allowed_user_ids.filter((id) => id !== userId);
    const after = await byok.update({ organization_id, id }, { allowed_user_ids: allowedUserIds, updated_at: at });
    await audit({
      action: 'update',
      resource_type: 'byok_credential',
      resource_id: id,
      before: describeByok(before),
      after: describeByok(after),
    });
    announce({ topic: 'policy', id: before.workspace_id });
  }
}

/**
 * Removes a member with everything that the membership gave: sessions, pending codes, memberships of workspaces, named guardrails and
 * credentials, and keys, which are disabled or handed over. The user record stays, so that signing in does not restore the membership. Throws a
 * 404 if there is no such member, a 400 for the last administrator.
 */
export async function removeMember(work: Work, removal: Removal): Promise<Removed> {
  const { tx, actor, audit, announce } = work;
  const { organization_id } = actor;
  const { user_id } = removal;
  const { role } = await holdMember(work, removal);
  const keys = await takeKeys(work, removal);
  const sessionsEnded = await endSignIns(work, user_id);
  await dropNames(work, user_id);
  const members = memberStore(tx);
  for (const member of await members.deleteFromWorkspaces({ organization_id, user_id })) {
    await audit({
      action: 'delete',
      resource_type: 'workspace_member',
      resource_id: member.id,
      before: member,
      after: null,
    });
  }
  await members.deleteFromOrganization({ organization_id, user_id });
  const removed = { ...keys, sessions_ended: sessionsEnded };
  await audit({
    action: 'delete',
    resource_type: 'user',
    resource_id: user_id,
    before: { role },
    after: { ...removed, keys_handed_to: removal.hand_keys_to ?? null },
  });
  announce({ topic: 'policy', id: user_id });
  return removed;
}
