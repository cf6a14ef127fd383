import {
  type Callback,
  type Challenge,
  codeExpiry,
  codeState,
  createCode,
  type StoredCode,
} from '../../accounts/authorization-code.ts';
import { GatewayError } from '../../errors.ts';
import { limits } from '../../limits.ts';
import type { Actor } from '../../storage/audit.ts';
import { authorizationCodeStore } from '../../storage/authorization-codes.ts';
import { isUniqueViolation } from '../../storage/database.ts';
import { organizationStore } from '../../storage/organizations.ts';
import type { Change, Work } from '../change.ts';

/** A checked request for a code: its owner, its recipient, and the key that it will become. */
export interface CodeRequest
  extends Challenge,
    Pick<
      StoredCode,
      | 'workspace_id'
      | 'user_id'
      | 'asker_key_hash'
      | 'asker_secret_hash'
      | 'made_by'
      | 'key_label'
      | 'limit_nano'
      | 'limit_reset'
      | 'key_expires_at'
    > {
  /** Null if a person reads the code from a page. */
  callback: Callback | null;
}

/** Makes an authorization code. `readRequest` completes the request inside the transaction. The code is only in this answer. */
export async function issueCode(
  change: Change,
  actor: Actor,
  readRequest: (work: Work) => Promise<CodeRequest>,
): Promise<{ code: string; stored: StoredCode }> {
  try {
    return await change(actor, async (work) => insertCode(work, await readRequest(work)));
  } catch (error) {
    if (!isUniqueViolation(error)) throw error;
    throw new GatewayError(409, 'A code with this code_challenge is waiting for its exchange; use a fresh challenge', {
      cause: error,
    });
  }
}

async function insertCode(work: Work, request: CodeRequest): Promise<{ code: string; stored: StoredCode }> {
  const { tx, at, actor, audit } = work;
  const { organization_id } = actor;
  const { callback, user_id, code_challenge } = request;
  // Lock the membership, so that a removal either includes the code or precedes it.
  if (user_id !== null && !(await organizationStore(tx).lockMember({ organization_id, user_id }))) {
    throw new GatewayError(403, 'The user of this credential is no longer a member of the organization');
  }
  const codes = authorizationCodeStore(tx);
  await codes.sweep({ organization_id, code_challenge, at });
  if ((await codes.countWaiting({ organization_id, user_id, at })) >= limits.authorization_codes_waiting_max) {
    throw new GatewayError(409, 'Too many codes of this user are waiting for their exchange; try again in ten minutes');
  }
  const app = callback && { organization_id, origin: callback.origin, at };
  let appId = app && (await codes.appOf(app));
  if (app && appId === undefined) {
    await codes.sweepApps(app);
    appId = await codes.appOf(app);
  }
  if (appId === undefined) {
    throw new GatewayError(409, `This organization has ${limits.apps_max} applications, which is the maximum`);
  }
  const { code, code_hash } = createCode();
  const stored: StoredCode = {
    code_hash,
    organization_id,
    workspace_id: request.workspace_id,
    user_id,
    asker_key_hash: request.asker_key_hash,
    asker_secret_hash: request.asker_secret_hash,
    app_id: appId,
    callback_url: callback?.href ?? null,
    code_challenge,
    code_challenge_method: request.code_challenge_method,
    key_label: request.key_label,
    limit_nano: request.limit_nano,
    limit_reset: request.limit_reset,
    key_expires_at: request.key_expires_at,
    failures: 0,
    created_at: at,
    expires_at: codeExpiry(Date.parse(at), request.key_expires_at),
    used_at: null,
    made_by: request.made_by,
  };
  await codes.insert(stored);
  await audit({
    action: 'create',
    resource_type: 'authorization_code',
    resource_id: code_hash,
    before: null,
    after: codeState(stored),
  });
  return { code, stored };
}

/** The name of a key whose application states none. */
export function defaultLabel(callback: Callback): string {
  return callback.host.slice(0, limits.key_label_chars_max);
}
