import type { FastifyReply, onRequestHookHandler } from 'fastify';
import { hashSecret } from '../../accounts/key.ts';
import { GatewayError } from '../../errors.ts';
import { formOf, queryOf } from '../../http/page-routes.ts';
import { sendPage } from '../../http/pages/html.ts';
import { linkPage, signedInPage, signInPage } from '../../http/pages/sign-in.ts';
import type { Authenticate } from '../../http/principal.ts';
import type { Server } from '../../http/server.ts';
import { returnPath } from '../../http/site.ts';
import type { PageSessions, SignedInUser } from './page-sessions.ts';

export interface SignInPagesDependencies {
  sessions: PageSessions;
  authenticate: Authenticate;
  issuer_host: string | undefined;
  /** Whether the console is where people go after the sign-in. */
  has_console: boolean;
  /** Counts an attempt of a client; throws if it exceeds the limit. */
  limitSignIns: onRequestHookHandler;
}

const SIGN_IN = '/sign-in';

/** The length of a one-time code is 43. */
const CODE_CHARS_MAX = 100;

/** Redirects a browser, which then uses GET. A path becomes relative, since a proxy may serve the gateway below a path of its own. */
export function goTo(reply: FastifyReply, address: string): FastifyReply {
  return reply
    .code(303)
    .header('location', address.startsWith('/') ? relativeTo(reply.request.url, address) : address)
    .send();
}

/** The address of a path of this gateway, relative to the path of a page. */
function relativeTo(url: string, path: string): string {
  const depth = (url.split('?', 1)[0] ?? '/').split('/').length - 2;
  return `${depth > 0 ? '../'.repeat(depth) : './'}${path.slice(1)}`;
}

/** The address of the sign-in page that returns to `path`. */
export function signInAddress(path: string): string {
  return `${SIGN_IN}?${new URLSearchParams({ return_to: path })}`;
}

async function userOfKey(authenticate: Authenticate, secret: string): Promise<SignedInUser> {
  const { kind, organization_id, user_id, key_hash } = await authenticate(secret);
  if (kind !== 'management') throw new GatewayError(403, 'This is an API key; enter a management key.');
  if (user_id === null) throw new GatewayError(403, 'This management key belongs to no user.');
  return {
    organization_id,
    user_id,
    by: key_hash === null ? 'environment' : { key_hash, secret_hash: hashSecret(secret) },
  };
}

/** Serves `GET|POST /sign-in` for management keys, and `POST /sign-out`. */
export function signInPages(server: Server, dependencies: SignInPagesDependencies): void {
  const { sessions, authenticate, issuer_host, has_console, limitSignIns } = dependencies;

  server.route({
    method: 'GET',
    url: SIGN_IN,
    exposeHeadRoute: false,
    config: { access: 'open' },
    handler: async (request, reply) => {
      const query = queryOf(request);
      const returnTo = returnPath(query.get('return_to'));
      const code = query.get('code');
      // Only the form uses the code: programs that open links in advance must not use it up.
      if (code !== undefined) return sendPage(reply, 200, linkPage(code.slice(0, CODE_CHARS_MAX), returnTo));
      const session = await sessions.find(request, reply);
      if (session && returnTo !== undefined) return goTo(reply, returnTo);
      if (session) return sendPage(reply, 200, signedInPage(session, has_console));
      return sendPage(reply, 200, signInPage({ return_to: returnTo, issuer_host }));
    },
  });

  server.route({
    method: 'POST',
    url: SIGN_IN,
    config: { access: 'open' },
    onRequest: limitSignIns,
    handler: async (request, reply) => {
      const form = formOf(request);
      const returnTo = returnPath(form.get('return_to'));
      const again = (status: number, error: string) =>
        sendPage(reply, status, signInPage({ return_to: returnTo, issuer_host, error }));
      const secret = form.get('management_key')?.trim();
      const code = form.get('code');
      if (code === undefined && (secret === undefined || secret === '')) return again(400, 'Enter a management key.');
      try {
        const user = code === undefined ? await userOfKey(authenticate, secret ?? '') : await sessions.userOfCode(code);
        await sessions.start(request, reply, user);
      } catch (error) {
        if (!(error instanceof GatewayError) || (error.status !== 401 && error.status !== 403)) throw error;
        return again(error.status, error.status === 401 ? 'This key is not valid.' : error.message);
      }
      return goTo(reply, returnTo ?? (has_console ? '/' : SIGN_IN));
    },
  });

  server.route({
    method: 'POST',
    url: '/sign-out',
    config: { access: 'open' },
    handler: async (request, reply) => {
      await sessions.end(request, reply, formOf(request).get('form_token'));
      return goTo(reply, SIGN_IN);
    },
  });
}
