import Type from 'typebox';
import { describeGuardrail } from '../../guardrails/policy/guardrail.ts';
import type { Server } from '../../http/server.ts';
import { errors } from '../../schemas/error.ts';
import { Guardrail } from '../../schemas/guardrail.ts';
import { PageOf, PageQuery, pageOf } from '../../schemas/page.ts';
import type { GuardrailStore } from '../../storage/guardrails.ts';
import type { OrganizationStore } from '../../storage/organizations.ts';
import { principalOf } from '../change.ts';
import { queriedWorkspace } from '../workspaces/require-workspace.ts';

export interface ListGuardrailsDependencies {
  guardrails: GuardrailStore;
  organizations: OrganizationStore;
}

/** Serves `GET /guardrails`: those of one workspace, by default the default workspace. */
export function listGuardrails(server: Server, { guardrails, organizations }: ListGuardrailsDependencies): void {
  server.route({
    method: 'GET',
    url: '/guardrails',
    config: { access: 'management' },
    schema: {
      operationId: 'listGuardrails',
      tags: ['Guardrails'],
      summary: 'Lists the guardrails of a workspace.',
      querystring: Type.Object({
        ...PageQuery,
        workspace_id: Type.Optional(Type.String({ description: 'Default: the default workspace.' })),
      }),
      response: { 200: PageOf(Guardrail), ...errors(400, 401, 403, 404, 429, 500) },
    },
    handler: async (request) => {
      const { organization_id } = principalOf(request);
      const { workspace_id: id } = request.query;
      const workspaceId = await queriedWorkspace(organizations, principalOf(request), id);
      const page = pageOf(request.query);
      const { data, total_count } = await guardrails.listBy({ organization_id, workspace_id: workspaceId }, page);
      return { data: data.map(describeGuardrail), total_count };
    },
  });
}
