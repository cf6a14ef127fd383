import Type from 'typebox';
import { describeBudget } from '../../accounts/workspace.ts';
import type { Server } from '../../http/server.ts';
import { errors } from '../../schemas/error.ts';
import { IncludeByokInBudgets, WorkspaceBudget, WorkspaceParams } from '../../schemas/workspace.ts';
import type { WorkspaceStore } from '../../storage/workspaces.ts';
import { principalOf } from '../change.ts';
import { requireWorkspace } from './require-workspace.ts';

/** Serves `GET /workspaces/{id}/budgets`, the longest interval first. */
export function listWorkspaceBudgets(server: Server, { workspaces }: { workspaces: WorkspaceStore }): void {
  server.route({
    method: 'GET',
    url: '/workspaces/:id/budgets',
    config: { access: 'management' },
    schema: {
      operationId: 'listWorkspaceBudgets',
      tags: ['Workspaces'],
      summary: 'Lists the budgets of a workspace.',
      params: WorkspaceParams,
      response: {
        200: Type.Object({ data: Type.Array(WorkspaceBudget), include_byok_in_budgets: IncludeByokInBudgets }),
        ...errors(401, 403, 404, 429, 500),
      },
    },
    handler: async (request) => {
      const { organization_id } = principalOf(request);
      const workspace = await requireWorkspace({ organization_id, id_or_slug: request.params.id }, workspaces.find);
      const budgets = await workspaces.listBudgets(workspace.id);
      return { data: budgets.map(describeBudget), include_byok_in_budgets: workspace.include_byok_in_budgets };
    },
  });
}
