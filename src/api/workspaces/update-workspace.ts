import Type from 'typebox';
import { describeWorkspace, workspaceSettings } from '../../accounts/workspace.ts';
import { checkVersion, setVersion } from '../../http/preconditions.ts';
import type { Server } from '../../http/server.ts';
import { errors } from '../../schemas/error.ts';
import { UpdateWorkspaceBody, Workspace, WorkspaceParams } from '../../schemas/workspace.ts';
import { guardrailStore } from '../../storage/guardrails.ts';
import { workspaceStore } from '../../storage/workspaces.ts';
import { actorOf, type Change } from '../change.ts';
import { checkDefaultGuardrail, checkLoggedKeys, requireWorkspace, withFreeSlug } from './require-workspace.ts';

const ALL = { offset: 0, limit: Number.MAX_SAFE_INTEGER };

/** Serves `PATCH /workspaces/{id}`. */
export function updateWorkspace(server: Server, { change }: { change: Change }): void {
  server.route({
    method: 'PATCH',
    url: '/workspaces/:id',
    config: { access: 'management' },
    schema: {
      operationId: 'updateWorkspace',
      tags: ['Workspaces'],
      summary: 'Changes a workspace.',
      params: WorkspaceParams,
      body: UpdateWorkspaceBody,
      response: { 200: Type.Object({ data: Workspace }), ...errors(400, 401, 403, 404, 409, 429, 500) },
    },
    handler: async (request, reply) => {
      const settings = workspaceSettings(request.body);
      const changed = await withFreeSlug(settings.slug, () =>
        change(actorOf(request), async ({ tx, at, actor, audit, announce }) => {
          const { organization_id } = actor;
          const store = workspaceStore(tx);
          const before = await requireWorkspace({ organization_id, id_or_slug: request.params.id }, store.lock);
          checkVersion(request, before.version);
          await checkLoggedKeys(tx, organization_id, settings.io_logging_api_key_ids, before.io_logging_api_key_ids);
          await checkDefaultGuardrail(tx, organization_id, settings.default_guardrail_id, before.default_guardrail_id);
          const after = await store.update(before.id, { ...settings, updated_at: at }, before.default_guardrail_id);
          await audit({
            action: 'update',
            resource_type: 'workspace',
            resource_id: before.id,
            before: describeWorkspace(before),
            after: describeWorkspace(after),
          });
          announce({ topic: 'policy', id: before.id });
          // Its guardrails follow this setting, also for keys of other workspaces.
          if (after.include_byok_in_budgets !== before.include_byok_in_budgets) {
            const { data } = await guardrailStore(tx).listBy({ organization_id, workspace_id: before.id }, ALL);
            for (const { id } of data) announce({ topic: 'policy', id });
          }
          return after;
        }),
      );
      setVersion(reply, changed.version);
      return { data: describeWorkspace(changed) };
    },
  });
}
