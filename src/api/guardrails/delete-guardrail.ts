import { describeGuardrail } from '../../guardrails/policy/guardrail.ts';
import { checkVersion } from '../../http/preconditions.ts';
import type { Server } from '../../http/server.ts';
import { errors } from '../../schemas/error.ts';
import { GuardrailParams } from '../../schemas/guardrail.ts';
import { Deleted } from '../../schemas/page.ts';
import { guardrailStore } from '../../storage/guardrails.ts';
import { actorOf, type Change } from '../change.ts';
import { unassignAll } from './assign.ts';
import { requireGuardrail } from './require-guardrail.ts';

/** Serves `DELETE /guardrails/{id}`. Also deletes its assignments. */
export function deleteGuardrail(server: Server, { change }: { change: Change }): void {
  server.route({
    method: 'DELETE',
    url: '/guardrails/:id',
    config: { access: 'management' },
    schema: {
      operationId: 'deleteGuardrail',
      tags: ['Guardrails'],
      summary: 'Deletes a guardrail and its assignments.',
      params: GuardrailParams,
      response: { 200: Deleted, ...errors(401, 403, 404, 409, 429, 500) },
    },
    handler: async (request) => {
      await change(actorOf(request), async (work) => {
        const { tx, actor, audit, announce } = work;
        const store = guardrailStore(tx);
        const which = { organization_id: actor.organization_id, id: request.params.id };
        const stored = await requireGuardrail(which, store.lock);
        checkVersion(request, stored.version);
        await unassignAll(work, stored.id);
        await store.delete(stored.id);
        const before = describeGuardrail(stored);
        await audit({ action: 'delete', resource_type: 'guardrail', resource_id: stored.id, before, after: null });
        announce({ topic: 'policy', id: stored.id });
      });
      return { deleted: true as const };
    },
  });
}
