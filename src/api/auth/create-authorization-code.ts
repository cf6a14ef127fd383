import Type from 'typebox';
import { parseCallback, parseChallenge } from '../../accounts/authorization-code.ts';
import { boundGrant } from '../../accounts/delegation.ts';
import { parseExpiry } from '../../accounts/key.ts';
import { GatewayError, invalidField } from '../../errors.ts';
import type { Principal } from '../../http/principal.ts';
import type { Server } from '../../http/server.ts';
import { AuthorizationCode, CreateAuthCodeBody } from '../../schemas/authorization-code.ts';
import { errors } from '../../schemas/error.ts';
import { toNano } from '../../schemas/money.ts';
import { checkStorable } from '../../schemas/text.ts';
import { organizationStore } from '../../storage/organizations.ts';
import { actorOf, type Change, principalOf, type Work } from '../change.ts';
import { workspaceOfNew } from '../workspaces/require-workspace.ts';
import { checkRoom, holdLineage } from './delegate.ts';
import { type CodeRequest, defaultLabel, issueCode } from './issue-code.ts';

export interface CreateAuthorizationCodeDependencies {
  change: Change;
  /** Whether API keys may make codes. Called for each request, since a reload may change it. */
  mayKeysMakeCodes: () => boolean;
}

/** The workspace of a code: that of an ordinary key; for a management key, which has none, the default one. */
async function workspaceOf({ tx }: Work, principal: Principal, requested: string | undefined): Promise<string> {
  if (principal.kind === 'key') {
    if (requested === undefined || requested === principal.workspace_id) return principal.workspace_id;
    throw invalidField('workspace_id', 'must be the workspace of the calling key, or be left out');
  }
  if (requested !== undefined) return workspaceOfNew(tx, principal, requested);
  const workspace = await organizationStore(tx).findDefaultWorkspace(principal.organization_id);
  if (!workspace) throw new Error('an organization without a default workspace');
  return workspace.id;
}

function readBody(
  body: CreateAuthCodeBody,
): (work: Work) => Omit<CodeRequest, 'workspace_id' | 'user_id' | 'asker_key_hash' | 'asker_secret_hash' | 'made_by'> {
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

/** Bounds a checked request by what the calling key may grant. The code states what the new key will have, and does not outlive the calling key. */
async function boundRequest(
  work: Work,
  principal: Principal,
  requested: ReturnType<ReturnType<typeof readBody>>,
  workspaceId: string | undefined,
) {
  const { tx, at, actor } = work;
  const madeBy = 'key' as const;
  const asker = { asker_key_hash: principal.key_hash, asker_secret_hash: principal.secret_hash ?? null };
  const code = { organization_id: actor.organization_id, ...asker, made_by: madeBy };
  const lineage = await holdLineage(tx, code, Date.parse(at));
  // The key was revoked after authentication.
  if (lineage === undefined) throw new GatewayError(401, 'Invalid API key');
  await checkRoom(tx, lineage);
  const { limit_nano, limit_reset, key_expires_at: expiresAt } = requested;
  const grant = boundGrant({ limit_nano, limit_reset, expires_at: expiresAt }, lineage);
  return {
    ...requested,
    limit_nano: grant.limit_nano,
    limit_reset: grant.limit_reset,
    key_expires_at: grant.expires_at,
    workspace_id: await workspaceOf(work, principal, workspaceId),
    user_id: principal.user_id,
    ...asker,
    made_by: madeBy,
  };
}

/** Serves `POST /auth/keys/code`. The code is only in this answer. */
export function createAuthorizationCode(server: Server, dependencies: CreateAuthorizationCodeDependencies): void {
  const { change, mayKeysMakeCodes } = dependencies;
  server.route({
    method: 'POST',
    url: '/auth/keys/code',
    config: { access: 'any' },
    schema: {
      operationId: 'createAuthorizationCode',
      tags: ['Authorization code'],
      summary: 'Creates an authorization code, which an application exchanges for a key of the caller.',
      description:
        'The new key belongs to the user and the workspace of the calling key; with a management key, to the default workspace. It is a child of the calling key: its limit and expiry do not exceed those of its parent, its calls also count against the limits, rates and guardrails of the parent, and it ends with the parent, as the code does. 403: the operator does not allow API keys to make codes, or the calling key has too many ancestors. 409: too many keys descend from the calling key, a code with the same challenge is waiting in this organization, or too many codes of this user are waiting.',
      body: CreateAuthCodeBody,
      response: { 200: Type.Object({ data: AuthorizationCode }), ...errors(400, 401, 403, 409, 500) },
    },
    handler: async (request, reply) => {
      if (!mayKeysMakeCodes()) {
        throw new GatewayError(
          403,
          'API keys may not make authorization codes here (auth.codes_by_api_key); let a member approve the application at /auth',
        );
      }
      const read = readBody(request.body);
      const principal = principalOf(request);
      const { code, stored } = await issueCode(change, actorOf(request), (work) =>
        boundRequest(work, principal, read(work), request.body.workspace_id),
      );
      const { app_id, created_at } = stored;
      if (app_id === null) throw new Error('an authorization code for a callback without an application');
      return reply.header('cache-control', 'no-store').send({ data: { id: code, app_id, created_at } });
    },
  });
}
