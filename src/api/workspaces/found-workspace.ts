import type { StoredWorkspace } from '../../accounts/workspace.ts';
import { GatewayError, invalidField } from '../../errors.ts';
import { resolveEntries } from '../../schemas/entries.ts';
import { isStorable } from '../../schemas/text.ts';
import type { Queries } from '../../storage/database.ts';
import { isUniqueViolation } from '../../storage/database.ts';
import { guardrailStore } from '../../storage/guardrails.ts';
import { type OrganizationStore, organizationStore } from '../../storage/organizations.ts';
import { type WorkspaceName, workspaceStore } from '../../storage/workspaces.ts';

/** What `ask` finds under an id or a slug of the caller's organization, or 404. */
export async function foundWorkspace(
  which: WorkspaceName,
  ask: (which: WorkspaceName) => Promise<StoredWorkspace | undefined>,
): Promise<StoredWorkspace> {
  const stored = await ask(which);
  if (stored === undefined) throw new GatewayError(404, 'Workspace not found');
  return stored;
}

/**
 * The workspace that something new belongs to, which nobody deletes meanwhile; the default one where the body names none. A
 * wrong id in a body is a wrong body: a 400, since the specification lists no 404 there.
 */
export async function workspaceOfNew(tx: Queries, organizationId: string, id: string | undefined): Promise<string> {
  const organizations = organizationStore(tx);
  const found = await (id === undefined
    ? organizations.findDefaultWorkspace(organizationId)
    : isStorable(id) && organizations.lockWorkspace({ organization_id: organizationId, id }));
  if (!found) throw new GatewayError(400, `workspace_id ${id ?? ''} is not a workspace of this organization`);
  return found.id;
}

/** The workspace that a query asks about, or 404; the default one where it names none. */
export async function workspaceAsked(
  organizations: OrganizationStore,
  organizationId: string,
  id: string | undefined,
): Promise<string> {
  const found = await (id === undefined
    ? organizations.findDefaultWorkspace(organizationId)
    : isStorable(id) && organizations.findWorkspace({ organization_id: organizationId, id }));
  if (!found) throw new GatewayError(404, 'workspace_id: workspace not found');
  return found.id;
}

/** Runs a write that may take a slug which somebody else took a moment ago. A taken slug is a 400: the specification declares no 409 for it. */
export async function withFreeSlug<T>(slug: string | undefined, write: () => Promise<T>): Promise<T> {
  try {
    return await write();
  } catch (error) {
    if (!isUniqueViolation(error)) throw error;
    throw new GatewayError(400, `slug ${slug ?? ''} is used by another workspace of this organization`);
  }
}

/** Refuses integer ids of `io_logging_api_key_ids` that are no keys of the organization. Those that are kept already may stay: a key may be gone. */
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

/** Refuses a `default_guardrail_id` that is no guardrail of the organization; holds the one that is, and the one that was. */
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
