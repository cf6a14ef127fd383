import Type from 'typebox';
import { createSecret, describeKey, keyState, parseExpiry, UNUSED } from '../../accounts/key.ts';
import { GatewayError } from '../../errors.ts';
import { setVersion } from '../../http/preconditions.ts';
import type { Server } from '../../http/server.ts';
import { errors } from '../../schemas/error.ts';
import { CreateKeyBody, Key } from '../../schemas/key.ts';
import { toNano } from '../../schemas/money.ts';
import { checkStorable } from '../../schemas/text.ts';
import type { Queries } from '../../storage/database.ts';
import { keyStore } from '../../storage/keys.ts';
import { organizationStore } from '../../storage/organizations.ts';
import { actorOf, type Change, ownUserOf, principalOf } from '../change.ts';
import { workspaceOfNew } from '../workspaces/require-workspace.ts';
import { checkMode, checkRoomOf } from './member-keys.ts';

export interface CreateKeyDependencies {
  change: Change;
}

/** The member who will own the key. Locks the membership, so that a removal either includes the key or precedes it. */
async function creatorOf(tx: Queries, organizationId: string, userId: string): Promise<string> {
  const member = await organizationStore(tx).lockMember({ organization_id: organizationId, user_id: userId });
  if (!member) throw new GatewayError(400, `creator_user_id ${userId} is not a member of this organization`);
  return userId;
}

/** Serves `POST /keys`. The secret is only in this answer. */
export function createKey(server: Server, { change }: CreateKeyDependencies): void {
  server.route({
    method: 'POST',
    url: '/keys',
    config: { access: 'management', forMembers: true },
    schema: {
      operationId: 'createKey',
      tags: ['API keys'],
      summary: 'Creates an API key.',
      body: CreateKeyBody,
      response: {
        201: Type.Object({ data: Key, key: Type.String({ description: 'The secret; shown only once.' }) }),
        ...errors(400, 401, 403, 409, 429, 500),
      },
    },
    handler: async (request, reply) => {
      const { body } = request;
      const { name, creator_user_id, workspace_id } = body;
      checkStorable({ name, creator_user_id, workspace_id, 'external.user': body.external?.user });
      const caller = principalOf(request);
      const { organization_id, user_id } = caller;
      const ownUser = ownUserOf(caller);
      if (ownUser !== undefined && creator_user_id !== undefined && creator_user_id !== ownUser) {
        throw new GatewayError(403, 'Members make keys for themselves alone; leave creator_user_id out');
      }
      checkMode(caller, body.budget_mode);
      const creator = creator_user_id ?? user_id;
      const { secret, hash, label } = createSecret();
      const key = await change(actorOf(request), async ({ tx, at, audit, announce }) => {
        const workspaceId = await workspaceOfNew(tx, caller, workspace_id);
        const creatorId = creator === null ? null : await creatorOf(tx, organization_id, creator);
        if (ownUser !== undefined) {
          await checkRoomOf(tx, { organization_id, workspace_id: workspaceId, user_id: ownUser });
        }
        const made = await keyStore(tx).insert({
          hash,
          label,
          organization_id,
          workspace_id: workspaceId,
          creator_user_id: creatorId,
          name,
          is_management: false,
          disabled: false,
          limit_nano: typeof body.limit === 'number' ? toNano(body.limit) : null,
          limit_reset: body.limit_reset ?? null,
          include_byok_in_limit: body.include_byok_in_limit ?? false,
          budget_mode: body.budget_mode ?? null,
          external_user: body.external?.user ?? null,
          expires_at: typeof body.expires_at === 'string' ? parseExpiry(body.expires_at, Date.parse(at)) : null,
          created_at: at,
          updated_at: null,
          // The member chooses the name, so settings of rate limits must not apply to it.
          made_by: ownUser === undefined ? null : 'session',
        });
        await audit({
          action: 'create',
          resource_type: 'api_key',
          resource_id: hash,
          before: null,
          after: keyState(made),
        });
        announce({ topic: 'key_made', id: hash });
        return made;
      });
      setVersion(reply, key.version);
      return reply.code(201).send({ data: describeKey(key, UNUSED, Date.parse(key.created_at)), key: secret });
    },
  });
}
