import { setImmediate as nextTurn } from 'node:timers/promises';
import Type from 'typebox';
import { GatewayError } from '../../errors.ts';
import { checkGuardrail, describeGuardrail, guardrailSettings } from '../../guardrails/guardrail.ts';
import { setVersion } from '../../http/preconditions.ts';
import type { Server } from '../../http/server.ts';
import { errors } from '../../schemas/error.ts';
import { CreateGuardrailBody, Guardrail } from '../../schemas/guardrail.ts';
import { isStorable } from '../../schemas/text.ts';
import type { Queries } from '../../storage/database.ts';
import { guardrailStore } from '../../storage/guardrails.ts';
import { organizationStore } from '../../storage/organizations.ts';
import { actorOf, type Change } from '../change.ts';
import { type NameSources, namesOf } from './found-guardrail.ts';

/** The workspace a new guardrail is filed under, which nobody deletes meanwhile. No 404 is declared here: a wrong id in a body is a wrong body. */
async function workspaceOf(tx: Queries, organization_id: string, id: string | undefined): Promise<string> {
  const organizations = organizationStore(tx);
  const found = await (id === undefined
    ? organizations.findDefaultWorkspace(organization_id)
    : isStorable(id) && organizations.lockWorkspace({ organization_id, id }));
  if (!found) throw new GatewayError(400, `workspace_id ${id ?? ''} is not a workspace of this organization`);
  return found.id;
}

/** Serves `POST /guardrails`. Until it is assigned, it holds for nobody. */
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
          workspace_id: await workspaceOf(tx, organization_id, workspace_id),
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
