import type { FastifyReply, onRequestHookHandler } from 'fastify';
import { GatewayError } from '../../errors.ts';
import { formOf, queryOf } from '../../http/page-routes.ts';
import { sendPage } from '../../http/pages/html.ts';
import { signedInPage, signInPage } from '../../http/pages/sign-in.ts';
import type { Authenticate } from '../../http/principal.ts';
import type { Server } from '../../http/server.ts';
import { returnPath } from '../../http/site.ts';
import type { PageSessions, SignedInUser } from './page-sessions.ts';

export interface SignInPagesDependencies {
  sessions: PageSessions;
  authenticate: Authenticate;
  issuer_host: string | undefined;
  /** Counts an attempt of a client; throws if it exceeds the limit. */
  limitSignIns: onRequestHookHandler;
}

const SIGN_IN = '/sign-in';

/** Redirects a browser, which then uses GET. */
export function goTo(reply: FastifyReply, address: string): FastifyReply {
  return reply.code(303).header('location', address).send();
}

/** The address of the sign-in page that returns to `path`. */
export function signInAddress(path: string): string {
  return `${SIGN_IN}?${new URLSearchParams({ return_to: path })}`;
}

async function userOfKey(authenticate: Authenticate, secret: string): Promise<SignedInUser> {
  const { kind, organization_id, user_id, key_hash } = await authenticate(secret);
  if (kind !== 'management') throw new GatewayError(403, 'This is an API key; enter a management key.');
  if (user_id === null) throw new GatewayError(403, 'This management key belongs to no user.');
  return { organization_id, user_id, by: key_hash === null ? 'environment' : { key_hash } };
}

/** Serves `GET|POST /sign-in` for management keys, and `POST /sign-out`. */
export function signInPages(server: Server, dependencies: SignInPagesDependencies): void {
  const { sessions, authenticate, issuer_host, limitSignIns } = dependencies;

  server.route({
    method: 'GET',
    url: SIGN_IN,
    exposeHeadRoute: false,
    config: { access: 'open' },
    handler: async (request, reply) => {
      const returnTo = returnPath(queryOf(request).get('return_to'));
      const session = await sessions.find(request, reply);
      if (session && returnTo !== undefined) return goTo(reply, returnTo);
      return sendPage(reply, 200, session ? signedInPage(session) : signInPage({ return_to: returnTo, issuer_host }));
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
      if (secret === undefined || secret === '') return again(400, 'Enter a management key.');
      try {
        await sessions.start(request, reply, await userOfKey(authenticate, secret));
      } catch (error) {
        if (!(error instanceof GatewayError) || (error.status !== 401 && error.status !== 403)) throw error;
        return again(error.status, error.status === 401 ? 'This key is not valid.' : error.message);
      }
      return goTo(reply, returnTo ?? SIGN_IN);
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
