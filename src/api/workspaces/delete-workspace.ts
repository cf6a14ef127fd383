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
import { foundWorkspace } from './found-workspace.ts';

const ALL = { offset: 0, limit: Number.MAX_SAFE_INTEGER };

/** How many keys are accepted at a moment: by themselves, and by those of the workspace that they were made with. */
function countActive(keys: readonly StoredKey[], now: number): number {
  const active = new Set<string>();
  const known = new Set(keys.map(({ hash }) => hash));
  // A key's number is above its parent's.
  for (const key of [...keys].sort((a, b) => a.id - b.id)) {
    const { hash, parent_hash } = key;
    const isOrphan = parent_hash === null || !known.has(parent_hash);
    if (isUsable(key, now) && (isOrphan || active.has(parent_hash))) active.add(hash);
  }
  return active.size;
}

/** Deletes the keys of a workspace, none of which may be accepted any more. */
async function deleteKeysOf(work: Work, { id: workspaceId, organization_id }: StoredWorkspace): Promise<void> {
  await assignmentStore(work.tx).takeTurn();
  // Held, and read after that: somebody may just be enabling one, or deleting it.
  const found = await keyStore(work.tx).lockAll({ organization_id, workspace_id: workspaceId });
  const active = countActive(found, Date.parse(work.at));
  if (active > 0) {
    const [noun, pronoun] = active === 1 ? ['key', 'it'] : ['keys', 'them'];
    throw new GatewayError(400, `The workspace has ${active} active API ${noun}; disable or delete ${pronoun} first`);
  }
  await deleteKeys(work, found);
}

/** What `list` finds, each held by `lock` against every other change; what is gone by then is left out. */
async function held<T extends { id: string }>(
  list: readonly T[],
  lock: (id: string) => Promise<T | undefined>,
): Promise<T[]> {
  const found: T[] = [];
  for (const { id } of list) {
    const one = await lock(id);
    if (one) found.push(one);
  }
  return found;
}

/** The guardrails of a workspace, to which nobody can assign anything any more. */
async function heldGuardrails({ tx }: Work, { id: workspaceId, organization_id }: StoredWorkspace) {
  const store = guardrailStore(tx);
  const { data } = await store.listBy({ organization_id, workspace_id: workspaceId }, ALL);
  return held(data, (id) => store.lock({ organization_id, id }));
}

/** Leaves what else goes with a workspace, each thing with what it was. */
async function auditContents(work: Work, { id: workspaceId, organization_id }: StoredWorkspace): Promise<void> {
  const { tx } = work;
  const byok = byokStore(tx);
  const { data: credentials } = await byok.listBy({ organization_id, workspace_id: workspaceId }, ALL);
  for (const one of await held(credentials, (id) => byok.lock({ organization_id, id }))) {
    await auditGone(work, 'byok_credential', one.id, describeByok(one));
  }
  for (const budget of await workspaceStore(tx).listBudgets(workspaceId)) {
    await auditGone(work, 'workspace_budget', budget.id, describeBudget(budget));
  }
  const members = await memberStore(tx).listBy({ organization_id, workspace_id: workspaceId, is_default: false }, ALL);
  for (const member of members.data) await auditGone(work, 'workspace_member', member.id, member);
}

function auditGone(
  work: Work,
  resourceType: AuditEntry['resource_type'],
  resourceId: string,
  before: object,
): Promise<void> {
  return work.audit({ action: 'delete', resource_type: resourceType, resource_id: resourceId, before, after: null });
}

/**
 * Serves `DELETE /workspaces/{id}`. Its guards: not the default workspace, and not one with a key that still opens the
 * door. Keys that do not (disabled, expired) go with it, as do its members, budgets, guardrails and credentials, and what is
 * remembered of its conversations; what was spent stays.
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
        const stored = await foundWorkspace({ organization_id, id_or_slug: request.params.id }, store.lock);
        checkVersion(request, stored.version);
        if (stored.is_default) throw new GatewayError(400, 'The default workspace cannot be deleted');
        // Before its keys, as when a guardrail is assigned to keys: two who wait for each other are both given up.
        const guardrails = await heldGuardrails(work, stored);
        await deleteKeysOf(work, stored);
        for (const guardrail of guardrails) {
          await unassignAll(work, guardrail.id);
          await auditGone(work, 'guardrail', guardrail.id, describeGuardrail(guardrail));
          announce({ topic: 'policy', id: guardrail.id });
        }
        await auditContents(work, stored);
        await store.delete(stored.id);
        await reasoningStateStore(tx).deleteBy(turnOwner(secret, stored.id));
        await auditGone(work, 'workspace', stored.id, describeWorkspace(stored));
        announce({ topic: 'policy', id: stored.id });
        announce({ topic: 'workspace_gone', id: stored.id });
      });
      return { deleted: true as const };
    },
  });
}
