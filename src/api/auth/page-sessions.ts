import { randomUUID } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { isUsable, type StoredKey } from '../../accounts/key.ts';
import { isSecretValid } from '../../accounts/key-secrets.ts';
import {
  createToken,
  environmentCredential,
  formToken,
  hashToken,
  ISSUER_CREDENTIAL,
  isFormToken,
  judgeSession,
  keyCredential,
  keyOfCredential,
  LINK_CREDENTIAL,
} from '../../accounts/session.ts';
import { GatewayError } from '../../errors.ts';
import { clearCookie, readCookie, setCookie } from '../../http/cookies.ts';
import type { AuthenticateSession, ConfirmSession, Principal } from '../../http/principal.ts';
import { checkSameSite, type Site } from '../../http/site.ts';
import { limits } from '../../limits.ts';
import type { Actor } from '../../storage/audit.ts';
import type { Queries } from '../../storage/database.ts';
import { organizationStore } from '../../storage/organizations.ts';
import { sessionStore } from '../../storage/sessions.ts';
import type { Change } from '../change.ts';

const COOKIE = 'gateway-session';

/** The session of a person who is signed in. */
export interface PageSession {
  id: string;
  organization_id: string;
  user_id: string;
  user_name: string;
  user_email: string | null;
  /** The stored key that opened it; null if none did. */
  key_hash: string | null;
  /** The SHA-256 of the secret of that key; null if no key did. */
  secret_hash: string | null;
  /** The role in the organization. */
  role: 'admin' | 'member';
  expires_at: string;
  /** The token that forms on the person's pages must contain. */
  form_token: string;
}

/** The credential of a sign-in: a stored key (its hash, and that of the secret), a one-time code (its hash), the environment's management key, or the issuer. */
export type SignInBy = { key_hash: string; secret_hash: string } | { code_hash: string } | 'environment' | 'issuer';

/** The sessions of the pages. */
export interface PageSessions {
  /** The session of a request; undefined if there is none. Rotates an old session's secret, except for a form, whose answer may not arrive. */
  find(request: FastifyRequest, reply: FastifyReply): Promise<PageSession | undefined>;
  /** The session of a form, which must come from one of the session's own pages. Throws a 403 otherwise. */
  findForm(request: FastifyRequest, reply: FastifyReply, formToken: string | undefined): Promise<PageSession>;
  /** Signs a user in, and replaces the browser's current session. */
  start(request: FastifyRequest, reply: FastifyReply, user: SignedInUser): Promise<void>;
  /** Signs out; throws as `findForm`. Also ends a session whose key is disabled, since the key may be enabled again. */
  end(request: FastifyRequest, reply: FastifyReply, formToken: string | undefined): Promise<void>;
  /** Ends the session of an identified caller, or all sessions of its member. */
  endFor(request: FastifyRequest, reply: FastifyReply, caller: Principal, isEverywhere: boolean): Promise<void>;
  /** The user of a one-time code; throws a 403 if it is unknown, used or expired. `start` uses it up. */
  userOfCode(code: string): Promise<SignedInUser>;
  /** The caller of an API request with a session, with the rights of its member now. Throws a 403 for a request of another site. */
  principal: AuthenticateSession;
  /** The caller of a request that takes long, with its rights now. The cookie may have another secret by then. */
  confirm: ConfirmSession;
}

const USED_LINK = 'This link is used or expired. Print a new one with: model-gateway console';

/** A user whose credential was checked. */
export interface SignedInUser {
  organization_id: string;
  user_id: string;
  by: SignInBy;
}

export interface PageSessionsOptions {
  queries: Queries;
  change: Change;
  site: Site;
  /** Key of form tokens and of the fingerprint of the environment's key; the same on all nodes. */
  secret: string;
  /** The management key of the environment. */
  management_key: string | undefined;
  issuer_configured: boolean;
  findKey: (hash: string) => Promise<StoredKey | undefined>;
  now: () => number;
}

/** The actor of a page, for the audit log. */
export function pageActor(request: FastifyRequest, who: { organization_id: string; user_id: string }): Actor {
  const { organization_id, user_id } = who;
  return { organization_id, actor: 'page', key_hash: null, user_id, request_id: request.id };
}

/** Makes the sessions: secrets in cookies, their SHA-256 in the store, a bounded lifetime, and an end with the credential that opened them. */
export function createPageSessions(options: PageSessionsOptions): PageSessions {
  const { queries, change, site, secret, management_key, now } = options;
  const environment = management_key === undefined ? undefined : environmentCredential(management_key, secret);

  const isCredentialGood = async (credential: string): Promise<boolean> => {
    const opener = keyOfCredential(credential);
    if (credential === ISSUER_CREDENTIAL) return options.issuer_configured;
    if (credential === LINK_CREDENTIAL) return true;
    if (opener === undefined) return credential === environment;
    const key = await options.findKey(opener.key_hash);
    return key?.is_management === true && isUsable(key, now()) && isSecretValid(key, opener.secret_hash, now());
  };

  const credentialOf = (by: SignInBy): string | undefined => {
    if (by === 'issuer') return ISSUER_CREDENTIAL;
    if (by === 'environment') return environment;
    return 'key_hash' in by ? keyCredential(by) : LINK_CREDENTIAL;
  };

  /** The session whose secret a request carries, valid or not. */
  const sessionOf = async (request: FastifyRequest) => {
    const token = readCookie(request, site, COOKIE);
    if (token === undefined || !/^[\w-]{43}$/.test(token)) return undefined;
    const tokenHash = hashToken(token);
    const session = await sessionStore(queries).find(tokenHash);
    return session && { session, token_hash: tokenHash };
  };

  const rotate = async (reply: FastifyReply, session: { id: string; expires_at: string }, tokenHash: string) => {
    const next = createToken();
    const at = new Date(now()).toISOString();
    const { id, expires_at } = session;
    const rotated = await sessionStore(queries).rotate({ id, token_hash: tokenHash, next_hash: next.token_hash, at });
    if (rotated) setCookie(reply, site, { name: COOKIE, value: next.token, ms: Date.parse(expires_at) - now() });
  };

  const find: PageSessions['find'] = async (request, reply) => {
    const match = await sessionOf(request);
    if (!match) return undefined;
    const { session, token_hash } = match;
    const state = judgeSession(session, token_hash, now());
    if (state === 'over' || !(await isCredentialGood(session.credential))) return undefined;
    if (state === 'rotation due' && request.method === 'GET') await rotate(reply, session, token_hash);
    const { id, organization_id, user_id, user_name, user_email, credential, expires_at } = session;
    return {
      id,
      organization_id,
      user_id,
      user_name,
      user_email,
      key_hash: keyOfCredential(credential)?.key_hash ?? null,
      secret_hash: keyOfCredential(credential)?.secret_hash ?? null,
      role: session.user_role === 'admin' ? 'admin' : 'member',
      expires_at,
      form_token: formToken(id, secret),
    };
  };

  const findForm: PageSessions['findForm'] = async (request, reply, formToken) => {
    const session = await find(request, reply);
    if (!session) throw new GatewayError(403, 'You are no longer signed in. Go back and reload the page.');
    if (formToken !== undefined && isFormToken(formToken, session.id, secret)) return session;
    throw new GatewayError(403, 'This page is out of date. Go back, reload it, and try again.');
  };

  const removeAll = (
    request: FastifyRequest,
    { organization_id, user_id }: { organization_id: string; user_id: string },
  ) =>
    change(pageActor(request, { organization_id, user_id }), async ({ tx, audit }) => {
      for (const id of await sessionStore(tx).deleteOf({ organization_id, user_id })) {
        await audit({
          action: 'sign-out',
          resource_type: 'session',
          resource_id: id,
          before: { user_id },
          after: null,
        });
      }
    });

  const remove = (request: FastifyRequest, session: { id: string; organization_id: string; user_id: string }) =>
    change(pageActor(request, session), async ({ tx, audit }) => {
      const { id, user_id } = session;
      if (!(await sessionStore(tx).delete(id))) return;
      await audit({ action: 'sign-out', resource_type: 'session', resource_id: id, before: { user_id }, after: null });
    });

  return {
    find,
    findForm,

    async start(request, reply, { organization_id, user_id, by }) {
      const former = await sessionOf(request);
      const { token, token_hash } = createToken();
      const credential = credentialOf(by);
      if (credential === undefined) throw new Error('signed in with a key that is no longer set in the environment');
      const actor = {
        ...pageActor(request, { organization_id, user_id }),
        key_hash: keyOfCredential(credential)?.key_hash ?? null,
      };
      await change(actor, async ({ tx, at, audit }) => {
        if (!(await organizationStore(tx).lockMember({ organization_id, user_id }))) {
          throw new GatewayError(403, 'The user of this key is no longer a member of the organization.');
        }
        const sessions = sessionStore(tx);
        if (typeof by === 'object' && 'code_hash' in by) {
          const code = await sessions.findCode({ token_hash: by.code_hash, at });
          if (code === undefined || !(await sessions.delete(code.id))) throw new GatewayError(403, USED_LINK);
        }
        if (former) await sessions.delete(former.session.id);
        const id = randomUUID();
        const expiresAt = new Date(Date.parse(at) + limits.session_ms_max).toISOString();
        const made = { id, token_hash, previous_hash: null, organization_id, user_id, credential };
        await sessions.insert({ ...made, created_at: at, rotated_at: at, expires_at: expiresAt });
        const method = typeof by === 'string' ? by : 'key_hash' in by ? 'key' : 'link';
        const after = { user_id, by: method, expires_at: expiresAt };
        await audit({ action: 'sign-in', resource_type: 'session', resource_id: id, before: null, after });
      });
      setCookie(reply, site, { name: COOKIE, value: token, ms: limits.session_ms_max });
    },

    async end(request, reply, formToken) {
      const session = (await find(request, reply))
        ? await findForm(request, reply, formToken)
        : (await sessionOf(request))?.session;
      if (session !== undefined) await remove(request, session);
      clearCookie(reply, site, COOKIE);
    },

    async endFor(request, reply, { organization_id, user_id, session }, isEverywhere) {
      if (user_id === null || session === undefined) throw new Error('a session without its user');
      const whose = { organization_id, user_id };
      await (isEverywhere ? removeAll(request, whose) : remove(request, { ...whose, id: session.id }));
      clearCookie(reply, site, COOKIE);
    },

    async userOfCode(code) {
      const at = new Date(now()).toISOString();
      const pending = await sessionStore(queries).findCode({ token_hash: hashToken(code), at });
      if (pending === undefined) throw new GatewayError(403, USED_LINK);
      const { organization_id, user_id } = pending;
      return { organization_id, user_id, by: { code_hash: hashToken(code) } };
    },

    async confirm(caller) {
      const { organization_id, user_id, session } = caller;
      if (user_id === null || session === undefined) throw new Error('a session without its user');
      const at = new Date(now()).toISOString();
      const open = await sessionStore(queries).findOpen({ organization_id, user_id, id: session.id, at });
      if (open === undefined || !(await isCredentialGood(open.credential))) {
        throw new GatewayError(401, 'This session has ended; sign in again');
      }
      return { ...caller, session: { ...session, role: open.role === 'admin' ? 'admin' : 'member' } };
    },

    async principal(request, reply) {
      const session = await find(request, reply);
      if (session === undefined) return undefined;
      const fetched = request.headers['sec-fetch-site'];
      if (fetched !== undefined && fetched !== 'same-origin' && fetched !== 'none') {
        throw new GatewayError(403, 'This request did not come from a page of this gateway.');
      }
      if (request.method !== 'GET' && request.method !== 'HEAD') {
        checkSameSite(request, site);
        const token = request.headers['x-form-token'];
        if (typeof token !== 'string' || !isFormToken(token, session.id, secret)) {
          throw new GatewayError(
            403,
            'This page is out of date: its x-form-token is missing or not that of the session. Reload it.',
          );
        }
      }
      const { organization_id, user_id, id, role, user_name, user_email, form_token, expires_at } = session;
      const workspace = await organizationStore(queries).findDefaultWorkspace(organization_id);
      if (workspace === undefined) throw new Error('an organization without a default workspace');
      return {
        kind: 'management',
        key_hash: null,
        key_id: null,
        organization_id,
        workspace_id: workspace.id,
        user_id,
        budgets: [],
        guardrails: [],
        budget_mode: null,
        session: { id, role, user_name, user_email, form_token, expires_at },
      };
    },
  };
}
