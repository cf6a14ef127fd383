import Type from 'typebox';
import { describeWorkspace, workspaceSettings } from '../../accounts/workspace.ts';
import { setVersion } from '../../http/preconditions.ts';
import type { Server } from '../../http/server.ts';
import { errors } from '../../schemas/error.ts';
import { CreateWorkspaceBody, Workspace } from '../../schemas/workspace.ts';
import { memberStore } from '../../storage/members.ts';
import { workspaceStore } from '../../storage/workspaces.ts';
import { actorOf, type Change } from '../change.ts';
import { checkDefaultGuardrail, checkLoggedKeys, withFreeSlug } from './require-workspace.ts';

/** Serves `POST /workspaces`. Its creator is its first member. */
export function createWorkspace(server: Server, { change }: { change: Change }): void {
  server.route({
    method: 'POST',
    url: '/workspaces',
    config: { access: 'management' },
    schema: {
      operationId: 'createWorkspace',
      tags: ['Workspaces'],
      summary: 'Creates a workspace.',
      body: CreateWorkspaceBody,
      response: { 201: Type.Object({ data: Workspace }), ...errors(400, 401, 403, 409, 429, 500) },
    },
    handler: async (request, reply) => {
      const { name, slug } = request.body;
      const settings = workspaceSettings(request.body);
      const made = await withFreeSlug(slug, () =>
        change(actorOf(request), async ({ tx, at, actor, audit }) => {
          const { organization_id, user_id } = actor;
          await checkLoggedKeys(tx, organization_id, settings.io_logging_api_key_ids);
          await checkDefaultGuardrail(tx, organization_id, settings.default_guardrail_id);
          const stored = await workspaceStore(tx).insert({
            ...settings,
            name,
            slug,
            organization_id,
            created_by: user_id,
            created_at: at,
          });
          const members = memberStore(tx);
          const role =
            user_id === null ? undefined : (await members.lockRoles(organization_id, [user_id])).get(user_id);
          if (user_id !== null && role !== undefined) {
            await members.insert({ workspace_id: stored.id, user_id, role, created_at: at });
          }
          const after = describeWorkspace(stored);
          await audit({ action: 'create', resource_type: 'workspace', resource_id: stored.id, before: null, after });
          return stored;
        }),
      );
      setVersion(reply, made.version);
      return reply.code(201).send({ data: describeWorkspace(made) });
    },
  });
}
