import { isUsable, keyState } from '../../accounts/key.ts';
import { describeWorkspace } from '../../accounts/workspace.ts';
import { GatewayError } from '../../errors.ts';
import { checkVersion } from '../../http/preconditions.ts';
import type { Server } from '../../http/server.ts';
import { errors } from '../../schemas/error.ts';
import { Deleted } from '../../schemas/page.ts';
import { WorkspaceParams } from '../../schemas/workspace.ts';
import { keyStore } from '../../storage/keys.ts';
import { workspaceStore } from '../../storage/workspaces.ts';
import { actorOf, type Change } from '../change.ts';
import { foundWorkspace } from './found-workspace.ts';

/**
 * Serves `DELETE /workspaces/{id}`. Its guards: not the default workspace, and not one with a key that still opens the
 * door. Keys that do not (disabled, expired) go with it, as do its members, budgets, guardrails and credentials; what was
 * spent stays.
 */
export function deleteWorkspace(server: Server, { change }: { change: Change }): void {
  server.route({
    method: 'DELETE',
    url: '/workspaces/:id',
    config: { access: 'management' },
    schema: {
      operationId: 'deleteWorkspace',
      tags: ['Workspaces'],
      summary: 'Deletes a workspace.',
      description:
        'The default workspace, and one with active API keys (neither disabled nor expired), cannot be deleted (400). Keys that ' +
        'are not active are deleted with it, as are its budgets, members, guardrails and BYOK credentials.',
      params: WorkspaceParams,
      response: { 200: Deleted, ...errors(400, 401, 403, 404, 409, 429, 500) },
    },
    handler: async (request) => {
      await change(actorOf(request), async ({ tx, at, actor, audit, announce }) => {
        const { organization_id } = actor;
        const store = workspaceStore(tx);
        const stored = await foundWorkspace({ organization_id, id_or_slug: request.params.id }, store.lock);
        checkVersion(request, stored.version);
        if (stored.is_default) throw new GatewayError(400, 'The default workspace cannot be deleted');
        const keys = await keyStore(tx).listBy({ organization_id, workspace_id: stored.id });
        const active = keys.filter((key) => isUsable(key, Date.parse(at))).length;
        if (active > 0) {
          throw new GatewayError(
            400,
            `The workspace has ${active} active API ${active === 1 ? 'key' : 'keys'}; disable or delete ${active === 1 ? 'it' : 'them'} first`,
          );
        }
        for (const key of keys) {
          const which = { organization_id, hash: key.hash };
          await keyStore(tx).unassignGuardrails(which);
          await keyStore(tx).delete(which);
          await audit({
            action: 'delete',
            resource_type: 'api_key',
            resource_id: key.hash,
            before: keyState(key),
            after: null,
          });
          announce({ topic: 'keys', id: key.hash });
        }
        await store.delete(stored.id);
        const before = describeWorkspace(stored);
        await audit({ action: 'delete', resource_type: 'workspace', resource_id: stored.id, before, after: null });
        announce({ topic: 'policy', id: stored.id });
      });
      return { deleted: true as const };
    },
  });
}
