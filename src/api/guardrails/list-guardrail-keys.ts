import Type from 'typebox';
import type { Server } from '../../http/server.ts';
import { errors } from '../../schemas/error.ts';
import { GuardrailParams, KeyAssignment } from '../../schemas/guardrail.ts';
import { PageOf, PageQuery, pageOf } from '../../schemas/page.ts';
import type { AssignmentStore, GuardrailStore } from '../../storage/guardrails.ts';
import { principalOf } from '../change.ts';
import { requireGuardrail } from './require-guardrail.ts';

/** Serves `GET /guardrails/{id}/assignments/keys`. */
export function listGuardrailKeys(
  server: Server,
  { guardrails, assignments }: { guardrails: GuardrailStore; assignments: AssignmentStore },
): void {
  server.route({
    method: 'GET',
    url: '/guardrails/:id/assignments/keys',
    config: { access: 'management' },
    schema: {
      operationId: 'listGuardrailKeys',
      tags: ['Guardrails'],
      summary: 'Lists the keys that a guardrail is assigned to.',
      params: GuardrailParams,
      querystring: Type.Object(PageQuery),
      response: { 200: PageOf(KeyAssignment), ...errors(400, 401, 403, 404, 429, 500) },
    },
    handler: async (request) => {
      const { organization_id } = principalOf(request);
      const { id } = await requireGuardrail({ organization_id, id: request.params.id }, guardrails.find);
      return assignments.listKeys({ organization_id, guardrail_id: id }, pageOf(request.query));
    },
  });
}
