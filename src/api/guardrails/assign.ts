import { GatewayError } from '../../errors.ts';
import { isStorable } from '../../schemas/text.ts';
import type { Actor } from '../../storage/audit.ts';
import {
  type AssignmentStore,
  assignmentStore,
  type FormerAssignment,
  guardrailStore,
} from '../../storage/guardrails.ts';
import { workspaceStore } from '../../storage/workspaces.ts';
import type { Change, Work } from '../change.ts';
import { foundGuardrail } from './found-guardrail.ts';

/** What guardrails are assigned to: how assignees are found and held, and where their assignments are. */
export interface AssigneeKind {
  /** The field of the body, as errors name it. */
  field: 'key_hashes' | 'member_user_ids';
  /** What an assignee is called in the audit. */
  audited_as: 'key_hash' | 'user_id';
  /** Holds those that there are until the transaction ends. */
  lock(store: AssignmentStore, organizationId: string, assignees: readonly string[]): Promise<ReadonlySet<string>>;
  find: 'findKeys' | 'findMembers';
  insert: 'insertKeys' | 'insertMembers';
  delete: 'deleteKeys' | 'deleteMembers';
  deleteAll: 'deleteAllKeys' | 'deleteAllMembers';
}

/** API keys of the organization, of whatever workspace: a guardrail is only filed under one. Management keys call no model. */
export const keyAssignees: AssigneeKind = {
  field: 'key_hashes',
  audited_as: 'key_hash',
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
  lock: (store, organizationId, userIds) => store.lockMembers(organizationId, userIds),
  find: 'findMembers',
  insert: 'insertMembers',
  delete: 'deleteMembers',
  deleteAll: 'deleteAllMembers',
};

interface Wanted {
  kind: AssigneeKind;
  guardrail_id: string;
  assignees: readonly string[];
}

/** The guardrail and its assignees, all of them held, and the assignments that they have; 404 names the first that is not there. */
async function hold({ tx, actor }: Work, { kind, guardrail_id, assignees: given }: Wanted) {
  const { organization_id } = actor;
  const guardrail = await foundGuardrail({ organization_id, id: guardrail_id }, guardrailStore(tx).lock);
  const store = assignmentStore(tx);
  await store.takeTurn();
  const found = await kind.lock(store, organization_id, given.filter(isStorable));
  const index = given.findIndex((assignee) => !found.has(assignee));
  if (index >= 0) throw new GatewayError(404, `${kind.field}[${index}] was not found in this organization`);
  const assignees = [...new Set(given)];
  const former = new Map((await store[kind.find]({ organization_id }, assignees)).map((one) => [one.assignee, one]));
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

/** Assigns a guardrail; an assignee that holds another one leaves that. Gives how many hold it now that did not before. */
export function assign(change: Change, actor: Actor, wanted: Wanted): Promise<number> {
  return change(actor, async (work) => {
    const { guardrail, store, assignees, former } = await hold(work, wanted);
    const { kind } = wanted;
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
      const before = left.find((one) => one.assignee === assignee);
      if (before) await auditUnassigned(work, kind, before);
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

/** Takes a guardrail from assignees; those that do not hold it are passed over. Gives how many held it. */
export function unassign(change: Change, actor: Actor, wanted: Wanted): Promise<number> {
  return change(actor, async (work) => {
    const { guardrail, store, former } = await hold(work, wanted);
    const leaving = [...former.values()].filter(({ guardrail_id }) => guardrail_id === guardrail.id);
    if (leaving.length === 0) return 0;
    const left = await store[wanted.kind.delete](leaving.map(({ id }) => id));
    for (const one of left) await auditUnassigned(work, wanted.kind, one);
    work.announce({ topic: 'policy', id: guardrail.id });
    return left.length;
  });
}

/** Takes a guardrail that is held from all its assignees, and from the workspaces that it holds for. */
export async function unassignAll(work: Work, guardrailId: string): Promise<void> {
  const store = assignmentStore(work.tx);
  for (const kind of [keyAssignees, memberAssignees]) {
    for (const one of await store[kind.deleteAll](guardrailId)) await auditUnassigned(work, kind, one);
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
