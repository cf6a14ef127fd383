import Type from 'typebox';
import type { Server } from '../../http/server.ts';
import { errors } from '../../schemas/error.ts';
import { KeyAssignment } from '../../schemas/guardrail.ts';
import { PageOf, PageQuery, pageOf } from '../../schemas/page.ts';
import type { AssignmentStore } from '../../storage/guardrails.ts';
import { principalOf } from '../change.ts';

/** Serves `GET /guardrails/assignments/keys`: all of the organization. */
export function listKeyAssignments(server: Server, { assignments }: { assignments: AssignmentStore }): void {
  server.route({
    method: 'GET',
    url: '/guardrails/assignments/keys',
    config: { access: 'management' },
    schema: {
      operationId: 'listKeyAssignments',
      tags: ['Guardrails'],
      summary: 'Lists all assignments of guardrails to keys.',
      querystring: Type.Object(PageQuery),
      response: { 200: PageOf(KeyAssignment), ...errors(400, 401, 403, 429, 500) },
    },
    handler: (request) =>
      assignments.listKeys({ organization_id: principalOf(request).organization_id }, pageOf(request.query)),
  });
}
