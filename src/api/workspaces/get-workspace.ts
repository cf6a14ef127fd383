import Type from 'typebox';
import { describeWorkspace } from '../../accounts/workspace.ts';
import { setVersion } from '../../http/preconditions.ts';
import type { Server } from '../../http/server.ts';
import { errors } from '../../schemas/error.ts';
import { Workspace, WorkspaceParams } from '../../schemas/workspace.ts';
import type { OrganizationStore } from '../../storage/organizations.ts';
import type { WorkspaceStore } from '../../storage/workspaces.ts';
import { principalOf } from '../change.ts';
import { visibleWorkspace } from './require-workspace.ts';

/** Serves `GET /workspaces/{id}`. */
export function getWorkspace(
  server: Server,
  { workspaces, organizations }: { workspaces: WorkspaceStore; organizations: OrganizationStore },
): void {
  server.route({
    method: 'GET',
    url: '/workspaces/:id',
    config: { access: 'management', forMembers: true },
    schema: {
      operationId: 'getWorkspace',
      tags: ['Workspaces'],
      summary: 'Returns a workspace.',
      params: WorkspaceParams,
      response: { 200: Type.Object({ data: Workspace }), ...errors(401, 403, 404, 429, 500) },
    },
    handler: async (request, reply) => {
      const stored = await visibleWorkspace(organizations, workspaces, principalOf(request), request.params.id);
      setVersion(reply, stored.version);
      return { data: describeWorkspace(stored) };
    },
  });
}
