import { GatewayError } from '../../errors.ts';
import { isStorable } from '../../schemas/text.ts';
import type { Actor } from '../../storage/audit.ts';
import type { Announcement } from '../../storage/change-feed.ts';
import {
  type AssignmentStore,
  assignmentStore,
  type FormerAssignment,
  guardrailStore,
} from '../../storage/guardrails.ts';
import { workspaceStore } from '../../storage/workspaces.ts';
import type { Change, Work } from '../change.ts';
import { requireGuardrail } from './require-guardrail.ts';

/** A kind of assignee: how assignees are looked up and locked, and where their assignments are stored. */
export interface AssigneeKind {
  /** The field of the body, for errors. */
  field: 'key_hashes' | 'member_user_ids';
  /** The name of an assignee's id in the audit log. */
  audited_as: 'key_hash' | 'user_id';
  /** The topic under which a change of an assignee is announced. */
  topic: Announcement['topic'];
  /** Locks the existing ones among these until the transaction ends, and returns them. */
  lock(store: AssignmentStore, organizationId: string, assignees: readonly string[]): Promise<ReadonlySet<string>>;
  find: 'findKeys' | 'findMembers';
  insert: 'insertKeys' | 'insertMembers';
  delete: 'deleteKeys' | 'deleteMembers';
  deleteAll: 'deleteAllKeys' | 'deleteAllMembers';
}

/** API keys of the organization, in any workspace. Management keys are excluded, since they call no model. */
export const keyAssignees: AssigneeKind = {
  field: 'key_hashes',
  audited_as: 'key_hash',
  topic: 'keys',
  lock: (store, organizationId, hashes) => store.lockKeys(organizationId, hashes),
  find: 'findKeys',
  insert: 'insertKeys',
  delete: 'deleteKeys',
  deleteAll: 'deleteAllKeys',
};

/** Members of the organization. */
export const memberAssignees: AssigneeKind = {
  field: 'member_user_ids',
  audited_as: 'user_id',
  topic: 'policy',
  lock: (store, organizationId, userIds) => store.lockMembers(organizationId, userIds),
  find: 'findMembers',
  insert: 'insertMembers',
  delete: 'deleteMembers',
  deleteAll: 'deleteAllMembers',
};

interface AssignmentRequest {
  kind: AssigneeKind;
  guardrail_id: string;
  assignees: readonly string[];
}

/** Locks the guardrail and its assignees, and returns them with their current assignments. Throws a 404 for the first that does not exist. */
async function hold({ tx, actor }: Work, { kind, guardrail_id, assignees: requested }: AssignmentRequest) {
  const { organization_id } = actor;
  const guardrail = await requireGuardrail({ organization_id, id: guardrail_id }, guardrailStore(tx).lock);
  const store = assignmentStore(tx);
  await store.takeTurn();
  const existing = await kind.lock(store, organization_id, requested.filter(isStorable));
  const index = requested.findIndex((assignee) => !existing.has(assignee));
  if (index >= 0) throw new GatewayError(404, `${kind.field}[${index}] was not found in this organization`);
  const assignees = [...new Set(requested)];
  const former = new Map(
    (await store[kind.find]({ organization_id }, assignees)).map((former) => [former.assignee, former]),
  );
  return { guardrail, store, assignees, former };
}

async function auditUnassigned({ audit }: Work, kind: AssigneeKind, former: FormerAssignment): Promise<void> {
  await audit({
    action: 'unassign',
    resource_type: 'guardrail_assignment',
    resource_id: former.id,
    before: { guardrail_id: former.guardrail_id, [kind.audited_as]: former.assignee },
    after: null,
  });
}

/** Assigns a guardrail, in place of an assignee's former one. Resolves to the number of new assignments. */
export function assign(change: Change, actor: Actor, request: AssignmentRequest): Promise<number> {
  return change(actor, async (work) => {
    const { guardrail, store, assignees, former } = await hold(work, request);
    const { kind } = request;
    const joining = assignees.filter((assignee) => former.get(assignee)?.guardrail_id !== guardrail.id);
    if (joining.length === 0) return 0;
    const leaving = joining.flatMap((assignee) => former.get(assignee) ?? []);
    const left = leaving.length === 0 ? [] : await store[kind.delete](leaving.map(({ id }) => id));
    const ids = await store[kind.insert]({
      organization_id: actor.organization_id,
      guardrail_id: guardrail.id,
      assignees: joining,
      assigned_by: actor.user_id,
      created_at: work.at,
    });
    for (const [index, assignee] of joining.entries()) {
      const previous = left.find((former) => former.assignee === assignee);
      if (previous) await auditUnassigned(work, kind, previous);
      work.announce({ topic: kind.topic, id: assignee });
      await work.audit({
        action: 'assign',
        resource_type: 'guardrail_assignment',
        resource_id: ids[index] ?? '',
        before: null,
        after: { guardrail_id: guardrail.id, [kind.audited_as]: assignee },
      });
    }
    work.announce({ topic: 'policy', id: guardrail.id });
    return joining.length;
  });
}

/** Unassigns a guardrail; assignees without it are ignored. Resolves to the number of removed assignments. */
export function unassign(change: Change, actor: Actor, request: AssignmentRequest): Promise<number> {
  return change(actor, async (work) => {
    const { guardrail, store, former } = await hold(work, request);
    const leaving = [...former.values()].filter(({ guardrail_id }) => guardrail_id === guardrail.id);
    if (leaving.length === 0) return 0;
    const left = await store[request.kind.delete](leaving.map(({ id }) => id));
    for (const former of left) await auditUnassigned(work, request.kind, former);
    work.announce({ topic: 'policy', id: guardrail.id });
    return left.length;
  });
}

/** Unassigns a locked guardrail from all assignees, and from the workspaces that it is the default of. */
export async function unassignAll(work: Work, guardrailId: string): Promise<void> {
  const store = assignmentStore(work.tx);
  for (const kind of [keyAssignees, memberAssignees]) {
    for (const former of await store[kind.deleteAll](guardrailId)) await auditUnassigned(work, kind, former);
  }
  for (const resourceId of await workspaceStore(work.tx).dropGuardrail(guardrailId, work.at)) {
    await work.audit({
      action: 'update',
      resource_type: 'workspace',
      resource_id: resourceId,
      before: { default_guardrail_id: guardrailId },
      after: { default_guardrail_id: null },
    });
  }
}
