import Type from 'typebox';
import { checkGuardrail, describeGuardrail, guardrailSettings } from '../../guardrails/policy/guardrail.ts';
import { setVersion } from '../../http/preconditions.ts';
import type { Server } from '../../http/server.ts';
import { nextTurn } from '../../next-turn.ts';
import { errors } from '../../schemas/error.ts';
import { CreateGuardrailBody, Guardrail } from '../../schemas/guardrail.ts';
import { guardrailStore } from '../../storage/guardrails.ts';
import { actorOf, type Change, principalOf } from '../change.ts';
import { workspaceOfNew } from '../workspaces/require-workspace.ts';
import { type NameSources, namesOf } from './require-guardrail.ts';

/** Serves `POST /guardrails`. A new guardrail has no effect until it is assigned. */
export function createGuardrail(server: Server, { change, ...sources }: { change: Change } & NameSources): void {
  server.route({
    method: 'POST',
    url: '/guardrails',
    config: { access: 'management' },
    schema: {
      operationId: 'createGuardrail',
      tags: ['Guardrails'],
      summary: 'Creates a guardrail.',
      body: CreateGuardrailBody,
      response: { 201: Type.Object({ data: Guardrail }), ...errors(400, 401, 403, 409, 429, 500) },
    },
    handler: async (request, reply) => {
      const { workspace_id, name, ...rest } = request.body;
      await checkGuardrail(request.body, nextTurn);
      const settings = guardrailSettings({ name, ...rest }, namesOf(sources));
      const made = await change(actorOf(request), async ({ tx, at, actor, audit, announce }) => {
        const { organization_id } = actor;
        const stored = await guardrailStore(tx).insert({
          ...settings,
          name,
          organization_id,
          workspace_id: await workspaceOfNew(tx, principalOf(request), workspace_id),
          created_at: at,
        });
        const after = describeGuardrail(stored);
        await audit({ action: 'create', resource_type: 'guardrail', resource_id: stored.id, before: null, after });
        announce({ topic: 'policy', id: stored.id });
        return stored;
      });
      setVersion(reply, made.version);
      return reply.code(201).send({ data: describeGuardrail(made) });
    },
  });
}
