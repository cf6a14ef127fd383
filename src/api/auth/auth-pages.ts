import { createVault } from '../../accounts/vault.ts';
import { createIssuer, type IssuerSettings, type SendToIssuer } from '../../http/issuer.ts';
import { servePages, type TranslateError } from '../../http/page-routes.ts';
import type { Authenticate } from '../../http/principal.ts';
import { createRateLimit, limitClients } from '../../http/rate-limit.ts';
import type { Server } from '../../http/server.ts';
import type { Site } from '../../http/site.ts';
import type { TrustedProxies } from '../../http/trusted-proxies.ts';
import { limits } from '../../limits.ts';
import type { Queries } from '../../storage/database.ts';
import { keyStore } from '../../storage/keys.ts';
import { setupStore } from '../../storage/setup.ts';
import type { AuthenticateOptions } from '../authenticate.ts';
import type { Change } from '../change.ts';
import { consentPages } from './consent-pages.ts';
import { endSession } from './end-session.ts';
import { getSession } from './get-session.ts';
import { ISSUER_CALLBACK, issuerPages } from './issuer-pages.ts';
import { createPageSessions, type PageSessions } from './page-sessions.ts';
import type { ProvisionRules } from './provision.ts';
import { signInPages } from './sign-in-pages.ts';

export interface AuthPagesDependencies {
  queries: Queries;
  change: Change;
  authenticate: Authenticate;
  /** `GATEWAY_SECRET`. */
  secret: string;
  management_key: string | undefined;
  public_origin: string | undefined;
  proxies: TrustedProxies;
  has_console: boolean;
  issuer: (Omit<IssuerSettings, 'redirect_uri'> & Omit<ProvisionRules, 'organization_id'>) | undefined;
  /** Where new users from the issuer are added. */
  sendToIssuer: SendToIssuer;
  organization_id: string;
  translate?: TranslateError | undefined;
  isRevokedHere: AuthenticateOptions['isRevokedHere'];
  clock: { nowMs(): number; monotonicMs(): number };
}

/** Serves all pages: consent, signing in and out, and the redirects to and from the issuer; and the operations on the caller's session. */
export async function authPages(server: Server, dependencies: AuthPagesDependencies): Promise<PageSessions> {
  const { queries, change, authenticate, secret, management_key, public_origin, clock } = dependencies;
  const site: Site = { public_origin };
  const countSignIn = createRateLimit(limits.sign_ins_per_minute, clock, 'attempts to sign in');
  const limitSignIns = limitClients(countSignIn, dependencies.proxies);
  const issuer =
    dependencies.issuer &&
    createIssuer(
      { ...dependencies.issuer, redirect_uri: `${public_origin}${ISSUER_CALLBACK}` },
      clock.monotonicMs,
      dependencies.sendToIssuer,
    );
  const sessions = createPageSessions({
    queries,
    change,
    site,
    secret,
    management_key,
    issuer_configured: issuer !== undefined,
    findKey: async (hash) => {
      const key = await keyStore(queries).findByHash(hash);
      return key && dependencies.isRevokedHere(key) ? undefined : key;
    },
    now: clock.nowMs,
  });
  await servePages(server, { site, translate: dependencies.translate }, (scope) => {
    consentPages(scope, { sessions, queries, change });
    const { has_console } = dependencies;
    signInPages(scope, { sessions, authenticate, issuer_host: issuer?.host, has_console, limitSignIns });
    if (issuer === undefined || dependencies.issuer === undefined) return;
    const { provision, allowed_email_domains } = dependencies.issuer;
    const rules = { organization_id: dependencies.organization_id, provision, allowed_email_domains };
    const vault = createVault(secret);
    issuerPages(scope, {
      issuer,
      rules,
      sessions,
      change,
      vault,
      site,
      has_console,
      limitSignIns,
      now: clock.nowMs,
    });
  });
  await server.register(
    (scope, _options, done) => {
      const api = scope as unknown as Server;
      getSession(api, setupStore(queries));
      endSession(api, { sessions });
      done();
    },
    { prefix: '/api/v1' },
  );
  return sessions;
}
