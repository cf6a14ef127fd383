/**
 * A request with a session does nothing once its person is signed out, removed or no administrator any more, or the key that opened the
 * session is revoked, however slowly its body arrives: operations that change nothing are no exception. See docs/threat-model.md.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createSecret } from '../../src/accounts/key.ts';
import { openDatabase } from '../../src/storage/database.ts';
import { keyStore } from '../../src/storage/keys.ts';
import { organizationStore } from '../../src/storage/organizations.ts';
import { startGateway, type TestGateway } from '../harness.ts';
import { consoleClient } from '../http/console-client.ts';
import { rawClient } from './raw-http.ts';

let gateway: TestGateway;
let database: Awaited<ReturnType<typeof openDatabase>>;
beforeAll(async () => {
  gateway = await startGateway();
  database = await openDatabase({ data_dir: gateway.data_dir });
});
afterAll(async () => {
  await database.close();
  await gateway.stop();
});

type Session = Pick<Awaited<ReturnType<typeof consoleClient>>, 'cookie' | 'form_token'>;

/** What a session may send with a body: some read, some change, some are for administrators. */
const REQUESTS: [path: string, body: object][] = [
  ['/analytics/query', { metrics: ['request_count'] }],
  ['/guardrails/test', { guardrail: { content_filters: [] }, text: 'x' }],
  ['/provider-credentials/sandbox/test', {}],
  ['/ledger/verify', {}],
  ['/keys', { name: 'late' }],
];

/** Sends the heads of all requests and the first bytes of their bodies; `finish` sends the rest and returns the statuses. */
async function begin({ cookie, form_token }: Session) {
  const clients = await Promise.all(
    REQUESTS.map(async ([path, body]) => {
      const client = await rawClient(gateway.url);
      const text = JSON.stringify(body);
      const head = [
        `POST /api/v1${path} HTTP/1.1`,
        `host: ${new URL(gateway.url).host}`,
        `origin: ${gateway.url}`,
        `cookie: ${cookie}`,
        `x-form-token: ${form_token}`,
        'content-type: application/json',
        `content-length: ${text.length}`,
      ];
      client.send(`${head.join('\r\n')}\r\n\r\n${text.slice(0, 1)}`);
      return { client, rest: text.slice(1) };
    }),
  );
  return () =>
    Promise.all(
      clients.map(async ({ client, rest }) => {
        client.send(rest);
        const [answer] = await client.answers(1);
        client.socket.destroy();
        return answer?.status;
      }),
    );
}

/** A session that was opened with a management key, and its end with that key. */
async function keySession(): Promise<Session & { revoke(): Promise<unknown> }> {
  const { secret, hash, label } = createSecret();
  const { user_id, organization_id } = await database.queries
    .selectFrom('organization_members')
    .selectAll()
    .where('role', '=', 'admin')
    .executeTakeFirstOrThrow();
  const workspace = await organizationStore(database.queries).findDefaultWorkspace(organization_id);
  const at = new Date().toISOString();
  await keyStore(database.queries).insert({
    hash,
    label,
    organization_id,
    workspace_id: workspace?.id ?? '',
    creator_user_id: user_id,
    name: 'opens a session',
    is_management: true,
    disabled: false,
    limit_nano: null,
    limit_reset: null,
    include_byok_in_limit: false,
    expires_at: null,
    created_at: at,
    updated_at: null,
  });
  const answer = await fetch(`${gateway.url}/sign-in`, {
    method: 'POST',
    redirect: 'manual',
    headers: { origin: gateway.url },
    body: new URLSearchParams({ management_key: secret }),
  });
  const cookie = answer.headers.get('set-cookie')?.split(';', 1)[0] ?? '';
  const session = await fetch(`${gateway.base_url}/session`, { headers: { cookie } });
  const { data } = (await session.json()) as { data: { form_token: string } };
  const keys = database.queries.updateTable('api_keys').where('hash', '=', hash);
  return { cookie, form_token: data.form_token, revoke: () => keys.set({ disabled: true }).execute() };
}

const members = (userId: string) => database.queries.updateTable('organization_members').where('user_id', '=', userId);
const MANAGEMENT = () => ({ authorization: `Bearer ${gateway.management_key}` });

const ENDS: [string, (email: string) => Promise<{ session: Session; end(): Promise<unknown> }>, number[]][] = [
  [
    'signed out',
    async (email) => {
      const session = await consoleClient(gateway, { email, role: 'admin' });
      return { session, end: () => session.call('DELETE', '/session') };
    },
    [401, 401, 401, 401, 401],
  ],
  [
    'removed',
    async (email) => {
      const session = await consoleClient(gateway, { email, role: 'admin' });
      const path = `/organization/members/${session.user_id}`;
      return { session, end: () => gateway.call('DELETE', path, undefined, MANAGEMENT()) };
    },
    [401, 401, 401, 401, 401],
  ],
  [
    // The first one answers a member for its own calls.
    'no administrator any more',
    async (email) => {
      const session = await consoleClient(gateway, { email, role: 'admin' });
      return { session, end: () => members(session.user_id).set({ role: 'member' }).execute() };
    },
    [200, 403, 403, 403, 201],
  ],
  [
    'without the key that opened the session',
    async () => {
      const session = await keySession();
      return { session, end: session.revoke };
    },
    [401, 401, 401, 401, 401],
  ],
];

test.each(ENDS)('a person who is %s is refused, with the rights of then', async (what, open, statuses) => {
  const { session, end } = await open(`${what.replaceAll(' ', '-')}@example.com`);
  const inTime = await begin(session);
  expect((await inTime()).slice(0, 2)).toEqual([200, 200]);
  const finish = await begin(session);
  await sleep(400);
  await end();
  expect(await finish()).toEqual(statuses);
});

test('a change that began at once is refused too, since its transaction checks the key that opened its session', async () => {
  const session = await keySession();
  const finish = await begin(session);
  await sleep(100);
  await session.revoke();
  expect((await finish()).at(-1)).toBe(401);
});
