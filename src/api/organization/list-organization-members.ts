import Type from 'typebox';
import type { Server } from '../../http/server.ts';
import { errors } from '../../schemas/error.ts';
import { OrganizationMember } from '../../schemas/organization.ts';
import { PageOf, PageQuery, pageOf } from '../../schemas/page.ts';
import type { MemberStore } from '../../storage/members.ts';
import { principalOf } from '../change.ts';

/** Serves `GET /organization/members`. */
export function listOrganizationMembers(server: Server, { members }: { members: MemberStore }): void {
  server.route({
    method: 'GET',
    url: '/organization/members',
    config: { access: 'management' },
    schema: {
      operationId: 'listOrganizationMembers',
      tags: ['Organization'],
      summary: 'Lists the members of the organization.',
      querystring: Type.Object(PageQuery),
      response: { 200: PageOf(OrganizationMember), ...errors(400, 401, 403, 429, 500) },
    },
    handler: async (request) => {
      const page = await members.listOrganization(principalOf(request).organization_id, pageOf(request.query));
      return { ...page, data: page.data.map((member) => ({ ...member, email: member.email ?? '' })) };
    },
  });
}
