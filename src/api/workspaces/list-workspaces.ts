import Type from 'typebox';
import { describeWorkspace } from '../../accounts/workspace.ts';
import type { Server } from '../../http/server.ts';
import { errors } from '../../schemas/error.ts';
import { PageOf, PageQuery, pageOf } from '../../schemas/page.ts';
import { Workspace } from '../../schemas/workspace.ts';
import type { WorkspaceStore } from '../../storage/workspaces.ts';
import { ownUserOf, principalOf } from '../change.ts';

/** Serves `GET /workspaces`. */
export function listWorkspaces(server: Server, { workspaces }: { workspaces: WorkspaceStore }): void {
  server.route({
    method: 'GET',
    url: '/workspaces',
    config: { access: 'management', forMembers: true },
    schema: {
      operationId: 'listWorkspaces',
      tags: ['Workspaces'],
      summary: 'Lists the workspaces of the organization.',
      querystring: Type.Object(PageQuery),
      response: { 200: PageOf(Workspace), ...errors(400, 401, 403, 429, 500) },
    },
    handler: async (request) => {
      const caller = principalOf(request);
      const whose = { organization_id: caller.organization_id, member_user_id: ownUserOf(caller) };
      const { data, total_count } = await workspaces.listBy(whose, pageOf(request.query));
      return { data: data.map(describeWorkspace), total_count };
    },
  });
}
