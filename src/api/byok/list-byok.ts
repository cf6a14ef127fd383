import Type from 'typebox';
import { describeByok } from '../../accounts/byok.ts';
import { GatewayError } from '../../errors.ts';
import type { Server } from '../../http/server.ts';
import { ByokCredential } from '../../schemas/byok.ts';
import { errors } from '../../schemas/error.ts';
import { PageOf, PageQuery, pageOf } from '../../schemas/page.ts';
import type { ByokStore } from '../../storage/byok.ts';
import type { OrganizationStore } from '../../storage/organizations.ts';
import { principalOf } from '../change.ts';
import { queriedWorkspace } from '../workspaces/require-workspace.ts';

export interface ListByokDependencies {
  byok: ByokStore;
  organizations: OrganizationStore;
  providerSlug: (slugOrName: string) => string | undefined;
}

/** Serves `GET /byok`: the credentials of all workspaces or one, and of all providers or one. */
export function listByok(server: Server, { byok, organizations, providerSlug }: ListByokDependencies): void {
  server.route({
    method: 'GET',
    url: '/byok',
    config: { access: 'management' },
    schema: {
      operationId: 'listByok',
      tags: ['BYOK'],
      summary: 'Lists the credentials of your own provider accounts.',
      querystring: Type.Object({
        ...PageQuery,
        workspace_id: Type.Optional(Type.String({ description: 'Default: all workspaces.' })),
        provider: Type.Optional(Type.String({ description: 'Slug or display name; default: all providers.' })),
      }),
      response: { 200: PageOf(ByokCredential), ...errors(400, 401, 403, 404, 429, 500) },
    },
    handler: async (request) => {
      const caller = principalOf(request);
      const { organization_id } = caller;
      const { workspace_id, provider } = request.query;
      if (workspace_id !== undefined) await queriedWorkspace(organizations, caller, workspace_id);
      const slug = provider === undefined ? undefined : providerSlug(provider);
      if (provider !== undefined && slug === undefined) {
        throw new GatewayError(400, `provider ${provider} is not known to this gateway`);
      }
      const { data, total_count } = await byok.listBy(
        { organization_id, workspace_id, provider: slug },
        pageOf(request.query),
      );
      return { data: data.map(describeByok), total_count };
    },
  });
}
