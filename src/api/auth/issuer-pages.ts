import type { FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify';
import type { Vault } from '../../accounts/vault.ts';
import { GatewayError } from '../../errors.ts';
import { clearCookie, readCookie, setCookie } from '../../http/cookies.ts';
import type { Issuer, PendingSignIn } from '../../http/issuer.ts';
import { queryOf } from '../../http/page-routes.ts';
import type { Server } from '../../http/server.ts';
import { returnPath, type Site } from '../../http/site.ts';
import { limits } from '../../limits.ts';
import type { Change } from '../change.ts';
import type { PageSessions } from './page-sessions.ts';
import { type ProvisionRules, userOf } from './provision.ts';
import { goTo } from './sign-in-pages.ts';

export interface IssuerPagesDependencies {
  issuer: Issuer;
  rules: ProvisionRules;
  sessions: PageSessions;
  change: Change;
  /** Seals the state that the browser holds while its person is at the issuer. */
  vault: Vault;
  site: Site;
  has_console: boolean;
  /** Counts an attempt of a client; throws if it exceeds the limit. */
  limitSignIns: onRequestHookHandler;
  now: () => number;
}

/** The path of the redirect URI to register at the issuer, below `auth.public_url`. */
export const ISSUER_CALLBACK = '/sign-in/issuer/callback';

const COOKIE = 'gateway-sign-in';

interface Pending extends PendingSignIn {
  return_to?: string | undefined;
  until_ms: number;
}

/** Serves `GET /sign-in/issuer`, which redirects to the issuer, and the address that the issuer redirects back to. */
export function issuerPages(server: Server, dependencies: IssuerPagesDependencies): void {
  const { issuer, rules, sessions, change, vault, site, has_console, limitSignIns, now } = dependencies;

  const keep = (reply: FastifyReply, pending: Pending) => {
    const sealed = vault.seal(JSON.stringify(pending), COOKIE);
    // Browsers drop larger cookies; the person then gets an error page.
    const fits = sealed.length <= limits.cookie_bytes_max;
    const value = fits ? sealed : vault.seal(JSON.stringify({ ...pending, return_to: undefined }), COOKIE);
    setCookie(reply, site, { name: COOKIE, value, ms: limits.issuer_sign_in_ms_max });
  };

  const readPending = (request: FastifyRequest): Pending => {
    const again = () =>
      new GatewayError(400, 'This sign-in was started in another browser, or took too long. Start again.');
    const sealed = readCookie(request, site, COOKIE);
    if (sealed === undefined) throw again();
    let pending: Pending;
    try {
      pending = JSON.parse(vault.open(sealed, COOKIE)) as Pending;
    } catch {
      throw again();
    }
    if (pending.until_ms <= now()) throw again();
    return pending;
  };

  server.route({
    method: 'GET',
    url: '/sign-in/issuer',
    exposeHeadRoute: false,
    config: { access: 'open' },
    onRequest: limitSignIns,
    handler: async (request, reply) => {
      const returnTo = returnPath(queryOf(request).get('return_to'));
      const { url, pending } = await issuer.begin();
      keep(reply, { ...pending, return_to: returnTo, until_ms: now() + limits.issuer_sign_in_ms_max });
      return goTo(reply, url);
    },
  });

  server.route({
    method: 'GET',
    url: ISSUER_CALLBACK,
    exposeHeadRoute: false,
    config: { access: 'open' },
    onRequest: limitSignIns,
    handler: async (request, reply) => {
      const pending = readPending(request);
      clearCookie(reply, site, COOKIE);
      if (queryOf(request).get('state') !== pending.state) {
        throw new GatewayError(400, 'This answer of the sign-in service belongs to another attempt. Start again.');
      }
      const { url = '' } = request.raw;
      const identity = await issuer.complete(url.slice(url.indexOf('?')), pending);
      const userId = await userOf(change, identity, rules, request.id);
      const { organization_id } = rules;
      await sessions.start(request, reply, { organization_id, user_id: userId, by: 'issuer' });
      return goTo(reply, pending.return_to ?? (has_console ? '/' : '/sign-in'));
    },
  });
}
