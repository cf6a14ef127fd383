import Type from 'typebox';
import { describeWorkspace } from '../../accounts/workspace.ts';
import { setVersion } from '../../http/preconditions.ts';
import type { Server } from '../../http/server.ts';
import { errors } from '../../schemas/error.ts';
import { Workspace, WorkspaceParams } from '../../schemas/workspace.ts';
import type { WorkspaceStore } from '../../storage/workspaces.ts';
import { principalOf } from '../change.ts';
import { requireWorkspace } from './require-workspace.ts';

/** Serves `GET /workspaces/{id}`. */
export function getWorkspace(server: Server, { workspaces }: { workspaces: WorkspaceStore }): void {
  server.route({
    method: 'GET',
    url: '/workspaces/:id',
    config: { access: 'management' },
    schema: {
      operationId: 'getWorkspace',
      tags: ['Workspaces'],
      summary: 'Returns a workspace.',
      params: WorkspaceParams,
      response: { 200: Type.Object({ data: Workspace }), ...errors(401, 403, 404, 429, 500) },
    },
    handler: async (request, reply) => {
      const { organization_id } = principalOf(request);
      const stored = await requireWorkspace({ organization_id, id_or_slug: request.params.id }, workspaces.find);
      setVersion(reply, stored.version);
      return { data: describeWorkspace(stored) };
    },
  });
}
