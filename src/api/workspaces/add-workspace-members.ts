import Type from 'typebox';
import { GatewayError } from '../../errors.ts';
import type { Server } from '../../http/server.ts';
import { errors } from '../../schemas/error.ts';
import { isStorable } from '../../schemas/text.ts';
import { MembersBody, WorkspaceMember, WorkspaceParams } from '../../schemas/workspace.ts';
import { type MemberStore, memberStore } from '../../storage/members.ts';
import { workspaceStore } from '../../storage/workspaces.ts';
import { actorOf, type Change } from '../change.ts';
import { requireWorkspace } from './require-workspace.ts';

/** The roles of users in the organization, which `find` returns. Throws a 404 for the first who is not a member. */
export async function rolesOf(
  find: MemberStore['findRoles'],
  organizationId: string,
  userIds: readonly string[],
): Promise<Map<string, WorkspaceMember['role']>> {
  const storable = userIds.filter(isStorable);
  const roles = storable.length === 0 ? new Map() : await find(organizationId, storable);
  const index = userIds.findIndex((userId) => !roles.has(userId));
  if (index >= 0) throw new GatewayError(404, `user_ids[${index}] is not a member of this organization`);
  return roles;
}

/** Serves `POST /workspaces/{id}/members/add`. Roles are those of the organization; a membership with an old role is updated. */
export function addWorkspaceMembers(server: Server, { change }: { change: Change }): void {
  server.route({
    method: 'POST',
    url: '/workspaces/:id/members/add',
    config: { access: 'management' },
    schema: {
      operationId: 'addWorkspaceMembers',
      tags: ['Workspaces'],
      summary: 'Adds members of the organization to a workspace.',
      description:
        'Each gets the role that they have in the organization. The default workspace already contains every member.',
      params: WorkspaceParams,
      body: MembersBody,
      response: {
        200: Type.Object({
          added_count: Type.Integer({
            description: 'Memberships that were created, or updated because the role in the organization changed.',
          }),
          data: Type.Array(WorkspaceMember),
        }),
        ...errors(400, 401, 403, 404, 409, 429, 500),
      },
    },
    handler: (request) =>
      change(actorOf(request), async ({ tx, at, actor, audit, announce }) => {
        const { organization_id } = actor;
        // The lock of the workspace prevents concurrent requests from adding the same user twice.
        const workspace = await requireWorkspace(
          { organization_id, id_or_slug: request.params.id },
          workspaceStore(tx).lock,
        );
        const members = memberStore(tx);
        const userIds = [...new Set(request.body.user_ids)];
        // Lock the roles, or a concurrent change would leave the old role here.
        const roles = await rolesOf(members.lockRoles, organization_id, request.body.user_ids);
        const which = { organization_id, workspace_id: workspace.id, is_default: workspace.is_default };
        const known = await members.findBy(which, userIds);
        const data: WorkspaceMember[] = [];
        let addedCount = 0;
        for (const userId of userIds) {
          const role = roles.get(userId) ?? 'member';
          const before = known.get(userId) ?? null;
          if (before?.role === role) {
            data.push(before);
            continue;
          }
          if (before) await members.updateRole(before.id, role);
          const after = before
            ? { ...before, role }
            : await members.insert({ workspace_id: workspace.id, user_id: userId, role, created_at: at });
          data.push(after);
          addedCount += 1;
          const action = before ? ('update' as const) : ('create' as const);
          await audit({ action, resource_type: 'workspace_member', resource_id: after.id, before, after });
        }
        if (addedCount > 0) announce({ topic: 'policy', id: workspace.id });
        return { added_count: addedCount, data };
      }),
  });
}
