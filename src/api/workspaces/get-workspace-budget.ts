import { describeBudget } from '../../accounts/workspace.ts';
import { GatewayError } from '../../errors.ts';
import type { Server } from '../../http/server.ts';
import { errors } from '../../schemas/error.ts';
import { BudgetParams, OneBudget } from '../../schemas/workspace.ts';
import type { WorkspaceStore } from '../../storage/workspaces.ts';
import { principalOf } from '../change.ts';
import { requireWorkspace } from './require-workspace.ts';

/** Serves `GET /workspaces/{id}/budgets/{interval}`. */
export function getWorkspaceBudget(server: Server, { workspaces }: { workspaces: WorkspaceStore }): void {
  server.route({
    method: 'GET',
    url: '/workspaces/:id/budgets/:interval',
    config: { access: 'management' },
    schema: {
      operationId: 'getWorkspaceBudget',
      tags: ['Workspaces'],
      summary: 'Returns the budget of a workspace for one interval.',
      params: BudgetParams,
      response: { 200: OneBudget, ...errors(400, 401, 403, 404, 429, 500) },
    },
    handler: async (request) => {
      const { organization_id } = principalOf(request);
      const { id, interval } = request.params;
      const workspace = await requireWorkspace({ organization_id, id_or_slug: id }, workspaces.find);
      const budgets = await workspaces.listBudgets(workspace.id);
      const budget = budgets.find(({ reset_interval }) => reset_interval === interval);
      if (!budget) throw new GatewayError(404, `The workspace has no ${interval} budget`);
      return { data: describeBudget(budget), include_byok_in_budgets: workspace.include_byok_in_budgets };
    },
  });
}
