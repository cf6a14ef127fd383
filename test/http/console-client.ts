import { createSignInPath } from '../../src/api/auth/sign-in-code.ts';
import { withStore } from '../../src/cli/with-store.ts';
import { loadConfig } from '../../src/config.ts';
import { identityStore } from '../../src/storage/identities.ts';
import type { TestGateway } from '../harness.ts';

/** The body of an answer of any type. */
type Json = Record<string, never>;

/**
 * Makes a one-time link as `model-gateway console` does: for a new member with this role, or for the owner if none is
 * given.
 */
export async function signInLink(gateway: TestGateway, member?: { email: string; role: 'admin' | 'member' }) {
  const { data_dir, database_url: url } = gateway;
  const config = loadConfig({ GATEWAY_DATA_DIR: data_dir, ...(url === undefined ? {} : { DATABASE_URL: url }) });
  return withStore(config, ({ change, actor, home }) =>
    change(actor, async (work) => {
      const { organization_id } = home;
      let userId = home.owner_user_id;
      if (member !== undefined) {
        const { email, role } = member;
        const known = await identityStore(work.tx).findByEmail(email);
        const named = { name: email, email, first_name: null, last_name: null, issuer: null, subject: null };
        userId =
          known?.id ?? (await identityStore(work.tx).insertMember(named, { organization_id, role, at: work.at }));
      }
      return { path: await createSignInPath(work, { organization_id, user_id: userId }), user_id: userId };
    }),
  );
}

/** A browser's session, as a script of a page uses it. */
export interface ConsoleClient {
  cookie: string;
  form_token: string;
  user_id: string;
  /** Calls an operation with the cookie, and for changes with the token. */
  call(
    method: string,
    path: string,
    body?: object,
    headers?: Record<string, string>,
  ): Promise<{ status: number; body: Json }>;
}

/** Uses up a one-time link, as the form of its page does. */
export async function followLink(gateway: TestGateway, path: string): Promise<Response> {
  const code = new URL(path, gateway.url).searchParams.get('code') ?? '';
  return fetch(`${gateway.url}/sign-in`, {
    method: 'POST',
    redirect: 'manual',
    headers: { origin: gateway.url },
    body: new URLSearchParams({ code }),
  });
}

/** Signs in by a one-time link. */
export async function consoleClient(
  gateway: TestGateway,
  member?: { email: string; role: 'admin' | 'member' },
): Promise<ConsoleClient> {
  const { path, user_id } = await signInLink(gateway, member);
  const answer = await followLink(gateway, path);
  const cookie = answer.headers.get('set-cookie')?.split(';', 1)[0] ?? '';
  const client: ConsoleClient = {
    cookie,
    form_token: '',
    user_id,
    async call(method, path, body, headers = {}) {
      const response = await fetch(`${gateway.base_url}${path}`, {
        method,
        headers: {
          cookie,
          ...(method === 'GET' ? {} : { origin: gateway.url, 'x-form-token': client.form_token }),
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      return { status: response.status, body: (await response.json()) as Json };
    },
  };
  const session = await client.call('GET', '/session');
  client.form_token = (session.body['data'] as { form_token?: string } | undefined)?.form_token ?? '';
  return client;
}
