import Type from 'typebox';
import type { Server } from '../../http/server.ts';
import type { Recorder } from '../../ledger/recorder.ts';
import { errors } from '../../schemas/error.ts';
import { SpendingLimit } from '../../schemas/key-policy.ts';
import { PageOf, PageQuery, pageOf } from '../../schemas/page.ts';
import { budgetStore, type SetBudget } from '../../storage/budgets.ts';
import type { Queries } from '../../storage/database.ts';
import { principalOf } from '../change.ts';
import { previewLimits } from './preview-limits.ts';

export interface ListBudgetsDependencies {
  queries: Queries;
  recorder: Pick<Recorder, 'flush' | 'preview'>;
}

/** The id of the assignee is the end of the budget's subject. */
function assigneeOf({ subject, key_name, user_name, workspace_name }: SetBudget): SpendingLimit['assignee'] {
  const id = subject.slice(subject.lastIndexOf(':') + 1);
  if (subject.startsWith('key:')) return { type: 'key', id, name: key_name };
  if (subject.startsWith('user:')) return { type: 'member', id, name: user_name };
  if (subject.startsWith('workspace:')) return { type: 'workspace', id, name: workspace_name };
  return { type: 'organization', id, name: null };
}

/** Serves `GET /budgets`: all spending limits of the organization with their current windows. */
export function listBudgets(server: Server, { queries, recorder }: ListBudgetsDependencies): void {
  server.route({
    method: 'GET',
    url: '/budgets',
    config: { access: 'management' },
    schema: {
      operationId: 'listBudgets',
      tags: ['Accounting'],
      summary:
        'Lists the spending limits of keys, guardrails, workspaces and the organization, with spent, held and left.',
      description:
        'A limit of a guardrail is listed once for each key, member and workspace that it applies to. Ordered by what sets the limit.',
      querystring: Type.Object({
        ...PageQuery,
        scope: Type.Optional(
          Type.Enum(['key', 'guardrail', 'workspace', 'organization'] as const, {
            description: 'Only limits that this sets.',
          }),
        ),
        workspace_id: Type.Optional(
          Type.String({ description: 'Only limits of this workspace and of keys in it, in the form of its id.' }),
        ),
        api_key_hash: Type.Optional(Type.String({ description: 'Only limits that are set for this key.' })),
        guardrail_id: Type.Optional(Type.String({ description: 'Only limits that this guardrail sets.' })),
      }),
      response: { 200: PageOf(SpendingLimit), ...errors(400, 401, 403, 429, 500, 503) },
    },
    handler: async (request) => {
      const { organization_id } = principalOf(request);
      const { scope, workspace_id, api_key_hash: keyHash, guardrail_id } = request.query;
      const filter = { organization_id, scope, workspace_id, key_hash: keyHash, guardrail_id };
      const { data, total_count } = await budgetStore(queries).listBy(filter, pageOf(request.query));
      const { amounts } = await previewLimits(recorder, data);
      return {
        total_count,
        data: data.flatMap((budget): SpendingLimit[] => {
          const state = amounts.get(budget.id);
          if (state === undefined) return [];
          const { scope: setBy, label, reset_interval, include_byok } = budget;
          return [
            {
              scope: setBy,
              label,
              assignee: assigneeOf(budget),
              guardrail_id: budget.guardrail_id,
              guardrail_name: budget.guardrail_name,
              workspace_id: budget.workspace_id,
              reset_interval: reset_interval === 'never' ? null : reset_interval,
              include_byok,
              ...state,
            },
          ];
        }),
      };
    },
  });
}
