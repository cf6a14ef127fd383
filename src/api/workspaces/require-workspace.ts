import type { StoredWorkspace } from '../../accounts/workspace.ts';
import { GatewayError, invalidField } from '../../errors.ts';
import type { Principal } from '../../http/principal.ts';
import { resolveEntries } from '../../schemas/entries.ts';
import { isStorable } from '../../schemas/text.ts';
import type { Queries } from '../../storage/database.ts';
import { isUniqueViolation } from '../../storage/database.ts';
import { guardrailStore } from '../../storage/guardrails.ts';
import { type OrganizationStore, organizationStore } from '../../storage/organizations.ts';
import { type WorkspaceName, type WorkspaceStore, workspaceStore } from '../../storage/workspaces.ts';
import { ownUserOf } from '../change.ts';

/** The workspace that `find` returns for an id or slug of the caller's organization. Throws a 404 if there is none. */
export async function requireWorkspace(
  which: WorkspaceName,
  find: (which: WorkspaceName) => Promise<StoredWorkspace | undefined>,
): Promise<StoredWorkspace> {
  const stored = await find(which);
  if (stored === undefined) throw new GatewayError(404, 'Workspace not found');
  return stored;
}

/** Whether a caller may see and use a workspace: members only their own. The default workspace has all members of the organization. */
export async function mayUse(
  organizations: Pick<OrganizationStore, 'isWorkspaceMember'>,
  caller: Principal,
  { id, is_default }: { id: string; is_default: boolean },
): Promise<boolean> {
  const userId = ownUserOf(caller);
  return userId === undefined || is_default || organizations.isWorkspaceMember({ workspace_id: id, user_id: userId });
}

/** The workspace that a path names and its caller may see. Throws a 404 if there is none. */
export async function visibleWorkspace(
  organizations: OrganizationStore,
  workspaces: Pick<WorkspaceStore, 'find'>,
  caller: Principal,
  idOrSlug: string,
): Promise<StoredWorkspace> {
  const which = { organization_id: caller.organization_id, id_or_slug: idOrSlug };
  const stored = await requireWorkspace(which, workspaces.find);
  if (!(await mayUse(organizations, caller, stored))) throw new GatewayError(404, 'Workspace not found');
  return stored;
}

/**
 * The workspace of a new resource, locked against deletion; the default one if the body names none. Throws a 400 for an invalid id, since
 * the specification has no 404 there.
 */
export async function workspaceOfNew(tx: Queries, caller: Principal, id: string | undefined): Promise<string> {
  const organizations = organizationStore(tx);
  const { organization_id } = caller;
  const workspace = await (id === undefined
    ? organizations.findDefaultWorkspace(organization_id)
    : isStorable(id) && organizations.lockWorkspace({ organization_id, id }));
  if (!workspace || !(await mayUse(organizations, caller, workspace)))
    throw new GatewayError(400, `workspace_id ${id ?? ''} is not a workspace of this organization`);
  return workspace.id;
}

/** The workspace that a query names, the default one if it names none. Throws a 404 if there is none. */
export async function queriedWorkspace(
  organizations: OrganizationStore,
  caller: Principal,
  id: string | undefined,
): Promise<string> {
  const { organization_id } = caller;
  const workspace = await (id === undefined
    ? organizations.findDefaultWorkspace(organization_id)
    : isStorable(id) && organizations.findWorkspace({ organization_id, id }));
  if (!workspace || !(await mayUse(organizations, caller, workspace)))
    throw new GatewayError(404, 'workspace_id: workspace not found');
  return workspace.id;
}

/** Runs a write that sets a slug. A taken slug is a 400, since the specification has no 409 for it. */
export async function withFreeSlug<T>(slug: string | undefined, write: () => Promise<T>): Promise<T> {
  try {
    return await write();
  } catch (error) {
    if (!isUniqueViolation(error)) throw error;
    throw new GatewayError(400, `slug ${slug ?? ''} is used by another workspace of this organization`);
  }
}

/** Throws a 400 for ids in `io_logging_api_key_ids` that are no keys of the organization. Stored ids are accepted, since a key may have been deleted. */
export async function checkLoggedKeys(
  tx: Queries,
  organizationId: string,
  ids: readonly number[] | null | undefined,
  stored: readonly number[] | null = null,
): Promise<void> {
  if (!ids || ids.length === 0) return;
  const known = new Set(await workspaceStore(tx).findKeyIds(organizationId, ids));
  resolveEntries({
    field: 'io_logging_api_key_ids',
    entries: ids,
    stored,
    resolve: (id) => (known.has(id) ? id : undefined),
    what: 'the id of an API key of this organization',
  });
}

/** Throws a 400 for a `default_guardrail_id` that is no guardrail of the organization. Locks the new and the former default. */
export async function checkDefaultGuardrail(
  tx: Queries,
  organizationId: string,
  id: string | null | undefined,
  before: string | null = null,
): Promise<void> {
  if (id === undefined || id === before) return;
  const { lock } = guardrailStore(tx);
  if (before !== null) await lock({ organization_id: organizationId, id: before });
  if (id !== null && (await lock({ organization_id: organizationId, id })) === undefined) {
    throw invalidField('default_guardrail_id', 'must be the id of a guardrail of this organization');
  }
}
