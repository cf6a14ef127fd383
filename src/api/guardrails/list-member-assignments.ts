import Type from 'typebox';
import type { Server } from '../../http/server.ts';
import { errors } from '../../schemas/error.ts';
import { MemberAssignment } from '../../schemas/guardrail.ts';
import { PageOf, PageQuery, pageOf } from '../../schemas/page.ts';
import type { AssignmentStore } from '../../storage/guardrails.ts';
import { principalOf } from '../change.ts';

/** Serves `GET /guardrails/assignments/members`: all of the organization. */
export function listMemberAssignments(server: Server, { assignments }: { assignments: AssignmentStore }): void {
  server.route({
    method: 'GET',
    url: '/guardrails/assignments/members',
    config: { access: 'management' },
    schema: {
      operationId: 'listMemberAssignments',
      tags: ['Guardrails'],
      summary: 'Lists all assignments of guardrails to members.',
      querystring: Type.Object(PageQuery),
      response: { 200: PageOf(MemberAssignment), ...errors(400, 401, 403, 429, 500) },
    },
    handler: (request) =>
      assignments.listMembers({ organization_id: principalOf(request).organization_id }, pageOf(request.query)),
  });
}
