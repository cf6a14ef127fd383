import { randomUUID } from 'node:crypto';
import { createToken, SIGN_IN_CODE_CREDENTIAL } from '../../accounts/session.ts';
import { GatewayError } from '../../errors.ts';
import { limits } from '../../limits.ts';
import { organizationStore } from '../../storage/organizations.ts';
import { sessionStore } from '../../storage/sessions.ts';
import type { Work } from '../change.ts';

/** Stores a one-time code that signs this member in, and returns the path of its link. The store has the SHA-256 of the code. */
export async function createSignInPath(
  { tx, at, audit }: Work,
  whose: { organization_id: string; user_id: string },
): Promise<string> {
  if (!(await organizationStore(tx).lockMember(whose))) {
    throw new GatewayError(403, 'This user is not a member of the organization.');
  }
  const { token, token_hash } = createToken();
  const id = randomUUID();
  const expiresAt = new Date(Date.parse(at) + limits.sign_in_code_ms_max).toISOString();
  const times = { created_at: at, rotated_at: at, expires_at: expiresAt };
  await sessionStore(tx).insert({
    id,
    token_hash,
    previous_hash: null,
    ...whose,
    credential: SIGN_IN_CODE_CREDENTIAL,
    ...times,
  });
  const after = { user_id: whose.user_id, by: 'link', expires_at: expiresAt };
  await audit({ action: 'create', resource_type: 'session', resource_id: id, before: null, after });
  return `/sign-in?code=${token}`;
}
