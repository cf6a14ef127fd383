import Type from 'typebox';
import type { Server } from '../../http/server.ts';
import { errors } from '../../schemas/error.ts';
import { PageOf, PageQuery, pageOf } from '../../schemas/page.ts';
import { WorkspaceMember, WorkspaceParams } from '../../schemas/workspace.ts';
import type { MemberStore } from '../../storage/members.ts';
import type { OrganizationStore } from '../../storage/organizations.ts';
import type { WorkspaceStore } from '../../storage/workspaces.ts';
import { principalOf } from '../change.ts';
import { visibleWorkspace } from './require-workspace.ts';

export interface ListWorkspaceMembersDependencies {
  workspaces: WorkspaceStore;
  organizations: OrganizationStore;
  members: MemberStore;
}

/** Serves `GET /workspaces/{id}/members`. The default workspace has all members of the organization. */
export function listWorkspaceMembers(
  server: Server,
  { workspaces, organizations, members }: ListWorkspaceMembersDependencies,
): void {
  server.route({
    method: 'GET',
    url: '/workspaces/:id/members',
    config: { access: 'management', forMembers: true },
    schema: {
      operationId: 'listWorkspaceMembers',
      tags: ['Workspaces'],
      summary: 'Lists the members of a workspace.',
      params: WorkspaceParams,
      querystring: Type.Object(PageQuery),
      response: { 200: PageOf(WorkspaceMember), ...errors(400, 401, 403, 404, 429, 500) },
    },
    handler: async (request) => {
      const caller = principalOf(request);
      const { organization_id } = caller;
      const { id, is_default } = await visibleWorkspace(organizations, workspaces, caller, request.params.id);
      return members.listBy({ organization_id, workspace_id: id, is_default }, pageOf(request.query));
    },
  });
}
