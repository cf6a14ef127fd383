import Type from 'typebox';
import { parseCallback, parseChallenge } from '../../accounts/authorization-code.ts';
import { parseExpiry } from '../../accounts/key.ts';
import type { Principal } from '../../http/principal.ts';
import type { Server } from '../../http/server.ts';
import { AuthorizationCode, CreateAuthCodeBody } from '../../schemas/authorization-code.ts';
import { errors } from '../../schemas/error.ts';
import { toNano } from '../../schemas/money.ts';
import { checkStorable } from '../../schemas/text.ts';
import { organizationStore } from '../../storage/organizations.ts';
import { actorOf, type Change, principalOf, type Work } from '../change.ts';
import { type CodeRequest, defaultLabel, issueCode } from './issue-code.ts';

export interface CreateAuthorizationCodeDependencies {
  change: Change;
}

/** An ordinary key asks for its own workspace, a management key, which belongs to none, for the default one. */
async function workspaceOf({ tx }: Work, principal: Principal): Promise<string> {
  if (principal.kind === 'key') return principal.workspace_id;
  const workspace = await organizationStore(tx).findDefaultWorkspace(principal.organization_id);
  if (!workspace) throw new Error('an organization without a default workspace');
  return workspace.id;
}

function readBody(
  body: CreateAuthCodeBody,
): (work: Work) => Omit<CodeRequest, 'workspace_id' | 'user_id' | 'asker_key_hash'> {
  const callback = parseCallback(body.callback_url);
  const challenge = parseChallenge(body);
  const { key_label = defaultLabel(callback), limit, usage_limit_type, expires_at } = body;
  checkStorable({ key_label });
  return ({ at }) => ({
    callback,
    ...challenge,
    key_label,
    limit_nano: limit === undefined ? null : toNano(limit),
    limit_reset: usage_limit_type ?? null,
    key_expires_at: typeof expires_at === 'string' ? parseExpiry(expires_at, Date.parse(at)) : null,
  });
}

/** Serves `POST /auth/keys/code`. The code is in this answer and nowhere else. */
export function createAuthorizationCode(server: Server, { change }: CreateAuthorizationCodeDependencies): void {
  server.route({
    method: 'POST',
    url: '/auth/keys/code',
    config: { access: 'any' },
    schema: {
      operationId: 'createAuthorizationCode',
      tags: ['Authorization code'],
      summary: 'Creates an authorization code, which an application exchanges for a key of the caller.',
      description:
        'The key will belong to the user of the calling key and to its workspace; to the default workspace when a management key calls. A code dies with the calling key. 409: a code with the same challenge is waiting in this organization, or too many codes of this user are.',
      body: CreateAuthCodeBody,
      response: { 200: Type.Object({ data: AuthorizationCode }), ...errors(400, 401, 409, 500) },
    },
    handler: async (request, reply) => {
      const read = readBody(request.body);
      const principal = principalOf(request);
      const { code, stored } = await issueCode(change, actorOf(request), async (work) => ({
        ...read(work),
        workspace_id: await workspaceOf(work, principal),
        user_id: principal.user_id,
        asker_key_hash: principal.key_hash,
      }));
      const { app_id, created_at } = stored;
      if (app_id === null) throw new Error('an authorization code for a callback without an application');
      return reply.header('cache-control', 'no-store').send({ data: { id: code, app_id, created_at } });
    },
  });
}
