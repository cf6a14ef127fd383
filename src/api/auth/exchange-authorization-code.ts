import type { onRequestHookHandler } from 'fastify';
import Type from 'typebox';
import {
  type ChallengeMethod,
  codeState,
  hashCode,
  judgeExchange,
  type Proof,
  type StoredCode,
  type Verdict,
} from '../../accounts/authorization-code.ts';
import { boundGrant } from '../../accounts/delegation.ts';
import { createSecret, keyState } from '../../accounts/key.ts';
import { GatewayError } from '../../errors.ts';
import type { Server } from '../../http/server.ts';
import { limits } from '../../limits.ts';
import { ExchangeAuthCodeBody } from '../../schemas/authorization-code.ts';
import { errors } from '../../schemas/error.ts';
import { authorizationCodeStore } from '../../storage/authorization-codes.ts';
import type { Queries } from '../../storage/database.ts';
import { keyStore } from '../../storage/keys.ts';
import { organizationStore } from '../../storage/organizations.ts';
import type { Change, Work } from '../change.ts';
import { checkRoomOf } from '../keys/member-keys.ts';
import { checkRoom, holdLineage } from './delegate.ts';

export interface ExchangeAuthorizationCodeDependencies {
  queries: Queries;
  change: Change;
  /** Counts an exchange of a client; throws if it exceeds the limit. */
  limitExchanges: onRequestHookHandler;
  /** Whether API keys may make codes. Called for each request, since a reload may change it. */
  mayKeysMakeCodes: () => boolean;
}

const invalidCode = () => new GatewayError(403, 'Invalid code or code_verifier');
const invalidMethod = () => new GatewayError(400, 'Invalid code_challenge_method');

const REFUSED: Record<Exclude<Verdict, 'granted'>, () => GatewayError> = {
  wrong: invalidCode,
  void: invalidCode,
  expired: () => new GatewayError(403, 'Authorization code expired'),
  method: invalidMethod,
};

function methodOf({ code_challenge_method }: ExchangeAuthCodeBody): ChallengeMethod | null {
  if (code_challenge_method == null) return null;
  if (code_challenge_method !== 'S256' && code_challenge_method !== 'plain') throw invalidMethod();
  return code_challenge_method;
}

/**
 * Exchanges a code for a key, or returns why not. The rights of the key are derived here, from the current rights of its ancestors. A wrong
 * verifier is counted although the answer is an error.
 */
async function exchange(
  { tx, at, audit, announce }: Work,
  pending: StoredCode,
  proof: Proof,
): Promise<{ secret: string } | { refused: Exclude<Verdict, 'granted'> }> {
  const { code_hash: codeHash } = pending;
  const codes = authorizationCodeStore(tx);
  // The member before the code, as in removals.
  if (!(await isStillMember(tx, pending))) return { refused: 'void' };
  const code = await codes.lock(codeHash);
  if (!code) return { refused: 'void' };
  const lineage = await holdLineage(tx, code, Date.parse(at));
  if (lineage === undefined) return { refused: 'void' };
  const verdict = judgeExchange(code, proof, Date.parse(at));
  if (verdict === 'wrong') await codes.countFailure(codeHash);
  if (verdict !== 'granted') return { refused: verdict };
  await checkRoom(tx, lineage);
  const { organization_id, workspace_id, user_id } = code;
  if (code.made_by === 'session' && user_id !== null) await checkRoomOf(tx, { organization_id, workspace_id, user_id });
  await codes.use(codeHash, at);
  const { limit_nano, limit_reset, key_expires_at: expiresAt } = code;
  const { secret, hash, label } = createSecret();
  const key = await keyStore(tx).insert({
    hash,
    label,
    organization_id,
    workspace_id,
    creator_user_id: user_id,
    name: code.key_label,
    is_management: false,
    disabled: false,
    ...boundGrant({ limit_nano, limit_reset, expires_at: expiresAt }, lineage),
    created_at: at,
    updated_at: null,
    parent_hash: lineage[0]?.hash ?? null,
    made_by: code.made_by,
  });
  await audit({
    action: 'exchange',
    resource_type: 'authorization_code',
    resource_id: codeHash,
    before: codeState(code),
    after: { ...codeState({ ...code, used_at: at }), key_hash: hash },
  });
  await audit({ action: 'create', resource_type: 'api_key', resource_id: hash, before: null, after: keyState(key) });
  announce({ topic: 'key_made', id: hash });
  return { secret };
}

/** Whether the user is still a member. Locks the membership, so that a removal either includes the new key or precedes it. */
async function isStillMember(tx: Queries, { organization_id, user_id }: StoredCode): Promise<boolean> {
  if (user_id === null) return true;
  return (await organizationStore(tx).lockMember({ organization_id, user_id })) !== undefined;
}

/** Serves `POST /auth/keys`. Concurrent exchanges of one code make one key, whose secret is only in this answer. */
export function exchangeAuthorizationCode(server: Server, dependencies: ExchangeAuthorizationCodeDependencies): void {
  const { queries, change, limitExchanges, mayKeysMakeCodes } = dependencies;
  server.route({
    method: 'POST',
    url: '/auth/keys',
    config: { access: 'open' },
    // The operation needs no authentication.
    bodyLimit: limits.form_bytes_max,
    onRequest: limitExchanges,
    schema: {
      operationId: 'exchangeAuthorizationCode',
      tags: ['Authorization code'],
      summary: 'Exchanges an authorization code for an API key.',
      description:
        'A code can be exchanged once. After a wrong verifier (403) it can be tried again, up to five times. A code with a challenge requires its verifier; a code without one refuses any.',
      body: ExchangeAuthCodeBody,
      response: {
        200: Type.Object({
          key: Type.String({ description: 'The secret; shown only once.' }),
          user_id: Type.Union([Type.String(), Type.Null()], { description: 'The user to whom the key belongs.' }),
        }),
        ...errors(400, 403, 409, 429, 500),
      },
    },
    handler: async (request, reply) => {
      const { body } = request;
      const codeChallengeMethod = methodOf(body);
      const code = await authorizationCodeStore(queries).find(hashCode(body.code));
      if (!code || (code.made_by === 'key' && !mayKeysMakeCodes())) throw invalidCode();
      const { organization_id, user_id } = code;
      const made = await change(
        { organization_id, actor: 'callback', key_hash: null, user_id, request_id: request.id },
        (work) =>
          exchange(work, code, {
            code_verifier: body.code_verifier ?? undefined,
            code_challenge_method: codeChallengeMethod,
          }),
      );
      if ('refused' in made) throw REFUSED[made.refused]();
      return reply.header('cache-control', 'no-store').send({ key: made.secret, user_id });
    },
  });
}
