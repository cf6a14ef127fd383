import { describeBudget } from '../../accounts/workspace.ts';
import type { Server } from '../../http/server.ts';
import { errors } from '../../schemas/error.ts';
import { Deleted } from '../../schemas/page.ts';
import { BudgetParams } from '../../schemas/workspace.ts';
import { workspaceStore } from '../../storage/workspaces.ts';
import { actorOf, type Change } from '../change.ts';
import { requireWorkspace } from './require-workspace.ts';

/** Serves `DELETE /workspaces/{id}/budgets/{interval}`. Succeeds also if there is none. */
export function deleteWorkspaceBudget(server: Server, { change }: { change: Change }): void {
  server.route({
    method: 'DELETE',
    url: '/workspaces/:id/budgets/:interval',
    config: { access: 'management' },
    schema: {
      operationId: 'deleteWorkspaceBudget',
      tags: ['Workspaces'],
      summary: 'Deletes the budget of a workspace for one interval.',
      params: BudgetParams,
      response: { 200: Deleted, ...errors(400, 401, 403, 404, 409, 429, 500) },
    },
    handler: (request) =>
      change(actorOf(request), async ({ tx, at, actor, audit, announce }) => {
        const { id, interval } = request.params;
        const store = workspaceStore(tx);
        const workspace = await requireWorkspace(
          { organization_id: actor.organization_id, id_or_slug: id },
          store.lock,
        );
        const budgets = await store.listBudgets(workspace.id);
        const old = budgets.find(({ reset_interval }) => reset_interval === interval);
        if (old) {
          await store.deleteBudget({ workspace_id: workspace.id, interval, at });
          const before = describeBudget(old);
          await audit({
            action: 'delete',
            resource_type: 'workspace_budget',
            resource_id: old.id,
            before,
            after: null,
          });
          announce({ topic: 'policy', id: workspace.id });
        }
        return { deleted: true as const };
      }),
  });
}
