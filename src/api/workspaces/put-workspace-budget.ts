import { checkBudget, describeBudget } from '../../accounts/workspace.ts';
import type { Server } from '../../http/server.ts';
import { errors } from '../../schemas/error.ts';
import { BudgetBody, BudgetParams, OneBudget } from '../../schemas/workspace.ts';
import { workspaceStore } from '../../storage/workspaces.ts';
import { actorOf, type Change } from '../change.ts';
import { requireWorkspace } from './require-workspace.ts';

/** Serves `PUT /workspaces/{id}/budgets/{interval}`. */
export function putWorkspaceBudget(server: Server, { change }: { change: Change }): void {
  server.route({
    method: 'PUT',
    url: '/workspaces/:id/budgets/:interval',
    config: { access: 'management' },
    schema: {
      operationId: 'putWorkspaceBudget',
      tags: ['Workspaces'],
      summary: 'Sets the budget of a workspace for one interval.',
      description: 'A budget of a shorter interval must be lower: lifetime, monthly, weekly, daily.',
      params: BudgetParams,
      body: BudgetBody,
      response: { 200: OneBudget, ...errors(400, 401, 403, 404, 409, 429, 500) },
    },
    handler: (request) =>
      change(actorOf(request), async ({ tx, at, actor, audit, announce }) => {
        const { id, interval } = request.params;
        const store = workspaceStore(tx);
        // Budgets are checked against each other, so the workspace is locked.
        const workspace = await requireWorkspace(
          { organization_id: actor.organization_id, id_or_slug: id },
          store.lock,
        );
        const budgets = await store.listBudgets(workspace.id);
        const limitNano = checkBudget(budgets, { interval, limit_usd: request.body.limit_usd });
        const old = budgets.find(({ reset_interval }) => reset_interval === interval);
        const made = await store.putBudget({ workspace_id: workspace.id, interval, limit_nano: limitNano, at });
        const wanted = request.body.include_byok_in_budgets ?? workspace.include_byok_in_budgets;
        if (wanted !== workspace.include_byok_in_budgets) {
          await store.update(workspace.id, { include_byok_in_budgets: wanted, updated_at: at });
        }
        const data = describeBudget(made);
        const answer = { data, include_byok_in_budgets: wanted };
        await audit({
          action: old ? 'update' : 'create',
          resource_type: 'workspace_budget',
          resource_id: made.id,
          before: old ? { ...describeBudget(old), include_byok_in_budgets: workspace.include_byok_in_budgets } : null,
          after: { ...data, include_byok_in_budgets: wanted },
        });
        announce({ topic: 'policy', id: workspace.id });
        return answer;
      }),
  });
}
