import Type from 'typebox';
import { isUsable } from '../../accounts/key.ts';
import { GatewayError } from '../../errors.ts';
import type { Server } from '../../http/server.ts';
import { errors } from '../../schemas/error.ts';
import { MembersBody, WorkspaceParams } from '../../schemas/workspace.ts';
import type { Queries } from '../../storage/database.ts';
import { keyStore } from '../../storage/keys.ts';
import { memberStore } from '../../storage/members.ts';
import { workspaceStore } from '../../storage/workspaces.ts';
import { actorOf, type Change } from '../change.ts';
import { rolesOf } from './add-workspace-members.ts';
import { requireWorkspace } from './require-workspace.ts';

/** Which of these users own an active key of the workspace. Locks their keys, so that none is enabled concurrently. */
async function ownersOf(
  tx: Queries,
  which: { organization_id: string; workspace_id: string; user_ids: readonly string[]; at: string },
): Promise<Set<string>> {
  const { organization_id, workspace_id, user_ids, at } = which;
  const keys = keyStore(tx);
  const owners = new Set<string>();
  for (const { hash, creator_user_id } of await keys.listBy({ organization_id, workspace_id })) {
    if (creator_user_id === null || !user_ids.includes(creator_user_id)) continue;
    const key = await keys.lock({ organization_id, hash });
    if (key && isUsable(key, Date.parse(at))) owners.add(creator_user_id);
  }
  return owners;
}

/** Serves `POST /workspaces/{id}/members/remove`. Ignores users who are not members. */
export function removeWorkspaceMembers(server: Server, { change }: { change: Change }): void {
  server.route({
    method: 'POST',
    url: '/workspaces/:id/members/remove',
    config: { access: 'management' },
    schema: {
      operationId: 'removeWorkspaceMembers',
      tags: ['Workspaces'],
      summary: 'Removes members from a workspace.',
      description:
        'A member who owns active API keys in the workspace cannot be removed (400). Nobody can be removed from the default workspace (400).',
      params: WorkspaceParams,
      body: MembersBody,
      response: {
        200: Type.Object({ removed_count: Type.Integer() }),
        ...errors(400, 401, 403, 404, 409, 429, 500),
      },
    },
    handler: (request) =>
      change(actorOf(request), async ({ tx, at, actor, audit, announce }) => {
        const { organization_id } = actor;
        const { user_ids } = request.body;
        const workspace = await requireWorkspace(
          { organization_id, id_or_slug: request.params.id },
          workspaceStore(tx).lock,
        );
        const members = memberStore(tx);
        await rolesOf(members.findRoles, organization_id, user_ids);
        if (workspace.is_default) {
          throw new GatewayError(400, 'Every member of the organization belongs to the default workspace');
        }
        const owners = await ownersOf(tx, { organization_id, workspace_id: workspace.id, user_ids, at });
        const index = user_ids.findIndex((userId) => owners.has(userId));
        if (index >= 0) throw new GatewayError(400, `user_ids[${index}] owns active API keys in this workspace`);
        const which = { organization_id, workspace_id: workspace.id, is_default: false };
        const leaving = [...(await members.findBy(which, [...new Set(user_ids)])).values()];
        if (leaving.length === 0) return { removed_count: 0 };
        await members.delete(leaving.map(({ id }) => id));
        for (const before of leaving) {
          await audit({
            action: 'delete',
            resource_type: 'workspace_member',
            resource_id: before.id,
            before,
            after: null,
          });
        }
        announce({ topic: 'policy', id: workspace.id });
        return { removed_count: leaving.length };
      }),
  });
}
