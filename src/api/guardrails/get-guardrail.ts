import Type from 'typebox';
import { describeGuardrail } from '../../guardrails/policy/guardrail.ts';
import { setVersion } from '../../http/preconditions.ts';
import type { Server } from '../../http/server.ts';
import { errors } from '../../schemas/error.ts';
import { Guardrail, GuardrailParams } from '../../schemas/guardrail.ts';
import type { GuardrailStore } from '../../storage/guardrails.ts';
import { principalOf } from '../change.ts';
import { requireGuardrail } from './require-guardrail.ts';

/** Serves `GET /guardrails/{id}`. */
export function getGuardrail(server: Server, { guardrails }: { guardrails: GuardrailStore }): void {
  server.route({
    method: 'GET',
    url: '/guardrails/:id',
    config: { access: 'management' },
    schema: {
      operationId: 'getGuardrail',
      tags: ['Guardrails'],
      summary: 'Returns a guardrail.',
      params: GuardrailParams,
      response: { 200: Type.Object({ data: Guardrail }), ...errors(401, 403, 404, 429, 500) },
    },
    handler: async (request, reply) => {
      const { organization_id } = principalOf(request);
      const stored = await requireGuardrail({ organization_id, id: request.params.id }, guardrails.find);
      setVersion(reply, stored.version);
      return { data: describeGuardrail(stored) };
    },
  });
}
