import Type from 'typebox';
import type { Server } from '../../http/server.ts';
import { errors } from '../../schemas/error.ts';
import { PageOf, PageQuery, pageOf } from '../../schemas/page.ts';
import { WorkspaceMember, WorkspaceParams } from '../../schemas/workspace.ts';
import type { MemberStore } from '../../storage/members.ts';
import type { WorkspaceStore } from '../../storage/workspaces.ts';
import { principalOf } from '../change.ts';
import { requireWorkspace } from './require-workspace.ts';

export interface ListWorkspaceMembersDependencies {
  workspaces: WorkspaceStore;
  members: MemberStore;
}

/** Serves `GET /workspaces/{id}/members`. The default workspace has all members of the organization. */
export function listWorkspaceMembers(server: Server, { workspaces, members }: ListWorkspaceMembersDependencies): void {
  server.route({
    method: 'GET',
    url: '/workspaces/:id/members',
    config: { access: 'management' },
    schema: {
      operationId: 'listWorkspaceMembers',
      tags: ['Workspaces'],
      summary: 'Lists the members of a workspace.',
      params: WorkspaceParams,
      querystring: Type.Object(PageQuery),
      response: { 200: PageOf(WorkspaceMember), ...errors(400, 401, 403, 404, 429, 500) },
    },
    handler: async (request) => {
      const { organization_id } = principalOf(request);
      const { id, is_default } = await requireWorkspace(
        { organization_id, id_or_slug: request.params.id },
        workspaces.find,
      );
      return members.listBy({ organization_id, workspace_id: id, is_default }, pageOf(request.query));
    },
  });
}
