import Type from 'typebox';
import { checkGuardrail, describeGuardrail, guardrailSettings } from '../../guardrails/policy/guardrail.ts';
import { checkVersion, setVersion } from '../../http/preconditions.ts';
import type { Server } from '../../http/server.ts';
import { nextTurn } from '../../next-turn.ts';
import { errors } from '../../schemas/error.ts';
import { Guardrail, GuardrailParams, UpdateGuardrailBody } from '../../schemas/guardrail.ts';
import { guardrailStore } from '../../storage/guardrails.ts';
import { actorOf, type Change } from '../change.ts';
import { type NameSources, namesOf, requireGuardrail } from './require-guardrail.ts';

/** Serves `PATCH /guardrails/{id}`. Lists are replaced; null removes them. */
export function updateGuardrail(server: Server, { change, ...sources }: { change: Change } & NameSources): void {
  server.route({
    method: 'PATCH',
    url: '/guardrails/:id',
    config: { access: 'management' },
    schema: {
      operationId: 'updateGuardrail',
      tags: ['Guardrails'],
      summary: 'Changes a guardrail.',
      params: GuardrailParams,
      body: UpdateGuardrailBody,
      response: { 200: Type.Object({ data: Guardrail }), ...errors(400, 401, 403, 404, 409, 429, 500) },
    },
    handler: async (request, reply) => {
      await checkGuardrail(request.body, nextTurn);
      const changed = await change(actorOf(request), async ({ tx, at, actor, audit, announce }) => {
        const store = guardrailStore(tx);
        const which = { organization_id: actor.organization_id, id: request.params.id };
        const before = await requireGuardrail(which, store.lock);
        checkVersion(request, before.version);
        const settings = guardrailSettings(request.body, namesOf(sources), before);
        const after = await store.update(before.id, { ...settings, updated_at: at });
        await audit({
          action: 'update',
          resource_type: 'guardrail',
          resource_id: before.id,
          before: describeGuardrail(before),
          after: describeGuardrail(after),
        });
        announce({ topic: 'policy', id: before.id });
        return after;
      });
      setVersion(reply, changed.version);
      return { data: describeGuardrail(changed) };
    },
  });
}
