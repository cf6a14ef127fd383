import { describeByok } from '../../accounts/byok.ts';
import { isUsable, type StoredKey } from '../../accounts/key.ts';
import { describeBudget, describeWorkspace, type StoredWorkspace } from '../../accounts/workspace.ts';
import { GatewayError } from '../../errors.ts';
import { describeGuardrail } from '../../guardrails/policy/guardrail.ts';
import { checkVersion } from '../../http/preconditions.ts';
import type { Server } from '../../http/server.ts';
import { turnOwner } from '../../inference/reasoning/vault.ts';
import { errors } from '../../schemas/error.ts';
import { Deleted } from '../../schemas/page.ts';
import { WorkspaceParams } from '../../schemas/workspace.ts';
import type { AuditEntry } from '../../storage/audit.ts';
import { byokStore } from '../../storage/byok.ts';
import { assignmentStore, guardrailStore } from '../../storage/guardrails.ts';
import { keyStore } from '../../storage/keys.ts';
import { memberStore } from '../../storage/members.ts';
import { reasoningStateStore } from '../../storage/reasoning-states.ts';
import { workspaceStore } from '../../storage/workspaces.ts';
import { actorOf, type Change, type Work } from '../change.ts';
import { unassignAll } from '../guardrails/assign.ts';
import { deleteKeys } from '../keys/delete-keys.ts';
import { requireWorkspace } from './require-workspace.ts';

const ALL = { offset: 0, limit: Number.MAX_SAFE_INTEGER };

/** The number of keys that are accepted now, considering also their ancestors in the workspace. */
function countActive(keys: readonly StoredKey[], now: number): number {
  const active = new Set<string>();
  const known = new Set(keys.map(({ hash }) => hash));
  // The number of a key is greater than that of its parent.
  for (const key of [...keys].sort((a, b) => a.id - b.id)) {
    const { hash, parent_hash } = key;
    const isOrphan = parent_hash === null || !known.has(parent_hash);
    if (isUsable(key, now) && (isOrphan || active.has(parent_hash))) active.add(hash);
  }
  return active.size;
}

/** Deletes the keys of a workspace. Throws if one of them is active. */
async function deleteKeysOf(work: Work, { id: workspaceId, organization_id }: StoredWorkspace): Promise<void> {
  await assignmentStore(work.tx).takeTurn();
  // Lock the keys before reading them: a concurrent request may enable or delete one.
  const keys = await keyStore(work.tx).lockAll({ organization_id, workspace_id: workspaceId });
  const active = countActive(keys, Date.parse(work.at));
  if (active > 0) {
    const [noun, pronoun] = active === 1 ? ['key', 'it'] : ['keys', 'them'];
    throw new GatewayError(400, `The workspace has ${active} active API ${noun}; disable or delete ${pronoun} first`);
  }
  await deleteKeys(work, keys);
}

/** Locks each of the records that `list` returns. Omits those that were deleted meanwhile. */
async function held<T extends { id: string }>(
  list: readonly T[],
  lock: (id: string) => Promise<T | undefined>,
): Promise<T[]> {
  const records: T[] = [];
  for (const { id } of list) {
    const record = await lock(id);
    if (record) records.push(record);
  }
  return records;
}

/** The locked guardrails of a workspace, so that they cannot be assigned any more. */
async function heldGuardrails({ tx }: Work, { id: workspaceId, organization_id }: StoredWorkspace) {
  const store = guardrailStore(tx);
  const { data } = await store.listBy({ organization_id, workspace_id: workspaceId }, ALL);
  return held(data, (id) => store.lock({ organization_id, id }));
}

/** Adds audit entries for everything that is deleted with the workspace. */
async function auditContents(work: Work, { id: workspaceId, organization_id }: StoredWorkspace): Promise<void> {
  const { tx } = work;
  const byok = byokStore(tx);
  const { data: credentials } = await byok.listBy({ organization_id, workspace_id: workspaceId }, ALL);
  for (const credential of await held(credentials, (id) => byok.lock({ organization_id, id }))) {
    await auditDeleted(work, 'byok_credential', credential.id, describeByok(credential));
  }
  for (const budget of await workspaceStore(tx).listBudgets(workspaceId)) {
    await auditDeleted(work, 'workspace_budget', budget.id, describeBudget(budget));
  }
  const members = await memberStore(tx).listBy({ organization_id, workspace_id: workspaceId, is_default: false }, ALL);
  for (const member of members.data) await auditDeleted(work, 'workspace_member', member.id, member);
}

function auditDeleted(
  work: Work,
  resourceType: AuditEntry['resource_type'],
  resourceId: string,
  before: object,
): Promise<void> {
  return work.audit({ action: 'delete', resource_type: resourceType, resource_id: resourceId, before, after: null });
}

/**
 * Serves `DELETE /workspaces/{id}`. Refuses the default workspace, and one with active keys. Inactive keys (disabled, expired) are deleted
 * with it, and so are members, budgets, guardrails, credentials and session affinity. Spending stays on record.
 */
export function deleteWorkspace(server: Server, { change, secret }: { change: Change; secret: string }): void {
  server.route({
    method: 'DELETE',
    url: '/workspaces/:id',
    config: { access: 'management' },
    schema: {
      operationId: 'deleteWorkspace',
      tags: ['Workspaces'],
      summary: 'Deletes a workspace.',
      description:
        'The default workspace, and one with active API keys (neither disabled nor expired), cannot be deleted (400). Keys that ' +
        'are not active are deleted with it, as are its budgets, members, guardrails and BYOK credentials.',
      params: WorkspaceParams,
      response: { 200: Deleted, ...errors(400, 401, 403, 404, 409, 429, 500) },
    },
    handler: async (request) => {
      await change(actorOf(request), async (work) => {
        const { tx, actor, announce } = work;
        const { organization_id } = actor;
        const store = workspaceStore(tx);
        const stored = await requireWorkspace({ organization_id, id_or_slug: request.params.id }, store.lock);
        checkVersion(request, stored.version);
        if (stored.is_default) throw new GatewayError(400, 'The default workspace cannot be deleted');
        // Lock guardrails before keys, the order in which assignments lock them; otherwise a deadlock would abort both.
        const guardrails = await heldGuardrails(work, stored);
        await deleteKeysOf(work, stored);
        for (const guardrail of guardrails) {
          await unassignAll(work, guardrail.id);
          await auditDeleted(work, 'guardrail', guardrail.id, describeGuardrail(guardrail));
          announce({ topic: 'policy', id: guardrail.id });
        }
        await auditContents(work, stored);
        await store.delete(stored.id);
        await reasoningStateStore(tx).deleteBy(turnOwner(secret, stored.id));
        await auditDeleted(work, 'workspace', stored.id, describeWorkspace(stored));
        announce({ topic: 'policy', id: stored.id });
        announce({ topic: 'workspace_gone', id: stored.id });
      });
      return { deleted: true as const };
    },
  });
}
