import { readFileSync } from 'node:fs';
import { request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../harness.ts';
import { consoleClient, followLink, signInLink } from './console-client.ts';

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway();
});
afterAll(() => gateway.stop());

const manage = async (method: string, path: string, body?: object) => {
  const headers = { authorization: `Bearer ${gateway.management_key}`, 'content-type': 'application/json' };
  const answer = await fetch(`${gateway.base_url}${path}`, {
    method,
    headers,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return (await answer.json()) as { data: never; key: string };
};

test('a one-time link opens one session: its page does not use it up, its form does, and a second use is refused', async () => {
  const { path } = await signInLink(gateway);
  for (const _ of [1, 2]) {
    const page = await fetch(`${gateway.url}${path}`);
    expect(page.status).toBe(200);
    expect(page.headers.get('cache-control')).toBe('no-store');
    expect(page.headers.get('set-cookie')).toBeNull();
  }
  const first = await followLink(gateway, path);
  expect([first.status, first.headers.get('location')]).toEqual([303, './']);
  expect(first.headers.get('set-cookie')).toMatch(/HttpOnly; SameSite=Lax/);
  const second = await followLink(gateway, path);
  expect(second.status).toBe(403);
  expect(await second.text()).toContain('This link is used or expired');
  expect(second.headers.get('set-cookie')).toBeNull();
});

test('the code of a link is in no log line and no audit entry, and is not a cookie', async () => {
  const { path } = await signInLink(gateway);
  const code = path.split('code=')[1] ?? '';
  await fetch(`${gateway.url}${path}`);
  await fetch(`${gateway.url}/nothing${path}`);
  const asCookie = await fetch(`${gateway.base_url}/session`, { headers: { cookie: `gateway-session=${code}` } });
  expect(asCookie.status).toBe(401);
  await followLink(gateway, path);
  expect(code).toMatch(/^[\w-]{43}$/);
  expect(gateway.log_lines.join('')).not.toContain(code);
  const admin = await consoleClient(gateway);
  expect(JSON.stringify(await admin.call('GET', '/audit?limit=100'))).not.toContain(code);
});

test('an administrator acts for the organization, and the audit names the person and the page', async () => {
  const admin = await consoleClient(gateway);
  expect((await admin.call('GET', '/session')).body['data']).toMatchObject({ role: 'admin', user_id: admin.user_id });
  const made = await admin.call('POST', '/keys', { name: 'by console' });
  expect(made.status).toBe(201);
  const { hash } = made.body['data'] as unknown as { hash: string };
  expect((await admin.call('PATCH', `/keys/${hash}`, { disabled: true })).status).toBe(200);
  const events = (await admin.call('GET', `/audit?resource_id=${hash}`)).body['data'];
  const by = { actor: 'page', actor_user_id: admin.user_id, actor_key_hash: null };
  expect(events).toMatchObject([
    { action: 'update', ...by },
    { action: 'create', ...by },
  ]);
  for (const path of ['/credits', '/activity', '/workspaces', '/organization/members', '/guardrails', '/byok']) {
    expect([path, (await admin.call('GET', path)).status]).toEqual([path, 200]);
  }
  expect((await admin.call('GET', '/key')).status).toBe(403);
});

test('a session cannot call models, and a key has no session', async () => {
  const admin = await consoleClient(gateway);
  const chat = await admin.call('POST', '/chat/completions', { model: 'sandbox/echo', messages: [] });
  expect(chat.status).toBe(401);
  expect((await gateway.call('GET', '/session')).status).toBe(403);
});

test('a change needs the token of its session and this origin, and another site can read nothing', async () => {
  const admin = await consoleClient(gateway);
  const other = await consoleClient(gateway);
  const change = async (headers: Record<string, string>) =>
    (await admin.call('POST', '/keys', { name: 'forged' }, headers)).status;
  expect(await change({ 'x-form-token': '' })).toBe(403);
  expect(await change({ 'x-form-token': other.form_token })).toBe(403);
  expect(await change({ origin: 'https://evil.example' })).toBe(403);
  expect(await change({ 'sec-fetch-site': 'cross-site' })).toBe(403);
  expect(await change({ 'sec-fetch-site': 'same-site' })).toBe(403);
  expect((await admin.call('GET', '/keys', undefined, { 'sec-fetch-site': 'cross-site' })).status).toBe(403);
  const keys = (await admin.call('GET', '/keys')).body['data'] as unknown as { name: string }[];
  expect(keys.filter(({ name }) => name === 'forged')).toEqual([]);
  // A wrong credential is refused with any cookie.
  expect((await admin.call('GET', '/keys', undefined, { authorization: 'Bearer wrong' })).status).toBe(401);
});

/** The operations that a member's session may use. */
const OF_MEMBERS = new Set([
  'listProviders',
  'listUsableModels',
  'getModel',
  'retrieveModel',
  'listEndpointHealth',
  'listEndpointPrices',
  'listFailingEndpoints',
  'listActivity',
  'getAnalyticsMeta',
  'queryAnalytics',
  'listGenerations',
  'listGenerationSessions',
  'getGeneration',
  'getGenerationContent',
  'listKeys',
  'createKey',
  'getKey',
  'getKeyPolicy',
  'explainKeyRoute',
  'updateKey',
  'rotateKey',
  'deletePreviousSecret',
  'deleteKey',
  'listWorkspaces',
  'getWorkspace',
  'listWorkspaceMembers',
  'getSession',
  'endSession',
]);

test('a member’s session is refused by every operation but those for members', async () => {
  const member = await consoleClient(gateway, { email: 'sweep@example.com', role: 'member' });
  const { paths } = JSON.parse(readFileSync(new URL('../../openapi.json', import.meta.url), 'utf8')) as {
    paths: Record<string, Record<string, { operationId: string; security?: object[] }>>;
  };
  const allowed: string[] = [];
  for (const [path, methods] of Object.entries(paths)) {
    for (const [method, { operationId, security }] of Object.entries(methods)) {
      const isPublic = security !== undefined && (security.length === 0 || security.length === 2);
      if (isPublic || operationId === 'endSession' || !path.startsWith('/api/v1/')) continue;
      const url = path.replace('/api/v1', '').replace(/\{[^}]*\}/g, 'nothing');
      const { status } = await member.call(method.toUpperCase(), url, method === 'get' ? undefined : {});
      if (status !== 401 && status !== 403) allowed.push(operationId);
    }
  }
  expect(new Set([...allowed, 'endSession'])).toEqual(OF_MEMBERS);
});

test('a member sees and changes only its own keys, in its own workspaces', async () => {
  const member = await consoleClient(gateway, { email: 'own@example.com', role: 'member' });
  const made = await member.call('POST', '/keys', { name: 'mine' });
  const { hash, creator_user_id } = made.body['data'] as unknown as { hash: string; creator_user_id: string };
  expect(creator_user_id).toBe(member.user_id);
  expect((await member.call('GET', '/keys')).body['data']).toMatchObject([{ name: 'mine' }]);
  expect((await member.call('PATCH', `/keys/${hash}`, { limit: 1 })).status).toBe(200);
  for (const [method, body] of [['GET'], ['PATCH', { disabled: true }], ['DELETE']] as const) {
    expect((await member.call(method, `/keys/${gateway.key_hash}`, body)).status).toBe(404);
  }
  const admin = await consoleClient(gateway);
  const foreign = { name: 'for another', creator_user_id: admin.user_id };
  expect((await member.call('POST', '/keys', foreign)).status).toBe(403);
  expect((await member.call('GET', `/activity?user_id=${admin.user_id}`)).status).toBe(403);
  const { id } = (await manage('POST', '/workspaces', { name: 'Closed', slug: 'closed' })).data as { id: string };
  for (const path of [`/workspaces/${id}`, `/workspaces/${id}/members`, `/keys?workspace_id=${id}`]) {
    expect([path, (await member.call('GET', path)).status]).toEqual([path, 404]);
  }
  expect((await member.call('POST', '/keys', { name: 'in', workspace_id: id })).status).toBe(400);
  expect((await member.call('GET', '/workspaces')).body).toMatchObject({ total_count: 1 });
  await manage('POST', `/workspaces/${id}/members/add`, { user_ids: [member.user_id] });
  expect((await member.call('GET', '/workspaces')).body).toMatchObject({ total_count: 2 });
  expect((await member.call('GET', `/workspaces/${id}/members`)).status).toBe(200);
  expect((await member.call('POST', '/keys', { name: 'in', workspace_id: id })).status).toBe(201);
  expect((await member.call('DELETE', `/keys/${hash}`)).status).toBe(200);
});

test('a request that began before a sign-out everywhere changes nothing after it', async () => {
  const admin = await consoleClient(gateway, { email: 'late@example.com', role: 'admin' });
  const body = JSON.stringify({ name: 'late' });
  const sent = request(`${gateway.base_url}/keys`, {
    method: 'POST',
    headers: {
      cookie: admin.cookie,
      origin: gateway.url,
      'x-form-token': admin.form_token,
      'content-type': 'application/json',
      'content-length': body.length,
    },
  });
  const status = new Promise((resolve, reject) => {
    sent.on('error', reject).on('response', (response) => {
      response.resume();
      resolve(response.statusCode);
    });
  });
  sent.flushHeaders();
  await sleep(200);
  expect((await admin.call('DELETE', '/session?everywhere=true')).status).toBe(200);
  sent.end(body);
  expect(await status).toBe(401);
});

test('a member cannot give itself more than an administrator granted', async () => {
  const member = await consoleClient(gateway, { email: 'granted@example.com', role: 'member' });
  const granted = { name: 'granted', limit: 1, creator_user_id: member.user_id, budget_mode: 'strict' };
  const { hash } = (await manage('POST', '/keys', granted)).data as { hash: string };
  const patch = async (which: string, body: object) => (await member.call('PATCH', `/keys/${which}`, body)).status;
  for (const body of [
    { limit: 1_000 },
    { limit: null },
    { limit_reset: 'daily' },
    { include_byok_in_limit: false },
    { budget_mode: null },
    { name: 'name of another key' },
    { disabled: true, limit: 2 },
  ]) {
    expect([body, await patch(hash, body)]).toEqual([body, 403]);
  }
  expect(await patch(hash, { disabled: true })).toBe(200);
  expect(await patch(hash, { disabled: false })).toBe(403);
  expect((await manage('GET', `/keys/${hash}`)).data).toMatchObject({ ...granted, disabled: true });
  // `soft` would loosen the budgets of the workspace and of guardrails.
  expect((await member.call('POST', '/keys', { name: 'loose', budget_mode: 'soft' })).status).toBe(403);
  const own = (await member.call('POST', '/keys', { name: 'own', limit: 1 })).body['data'] as unknown as {
    hash: string;
  };
  expect(await patch(own.hash, { budget_mode: 'soft' })).toBe(403);
  expect(await patch(own.hash, { limit: 2, name: 'mine', budget_mode: 'strict', disabled: true })).toBe(200);
  expect(await patch(own.hash, { disabled: false })).toBe(200);
});

test('a member who left a workspace has no keys there, and cannot enable one', async () => {
  const member = await consoleClient(gateway, { email: 'left@example.com', role: 'member' });
  const { id } = (await manage('POST', '/workspaces', { name: 'Left', slug: 'left' })).data as { id: string };
  const users = { user_ids: [member.user_id] };
  await manage('POST', `/workspaces/${id}/members/add`, users);
  const made = await member.call('POST', '/keys', { name: 'in', workspace_id: id });
  const { hash } = made.body['data'] as unknown as { hash: string };
  expect((await member.call('GET', `/keys/${hash}`)).status).toBe(200);
  await manage('PATCH', `/keys/${hash}`, { disabled: true });
  await manage('POST', `/workspaces/${id}/members/remove`, users);
  for (const [method, body] of [['GET'], ['PATCH', { disabled: false }], ['DELETE']] as const) {
    expect([method, (await member.call(method, `/keys/${hash}`, body)).status]).toEqual([method, 404]);
  }
  expect((await manage('GET', `/keys/${hash}`)).data).toMatchObject({ disabled: true });
});

test('a session ends with its sign-out, with a sign-out everywhere, and with the membership; each sign-out is in the audit', async () => {
  const who = { email: 'leaving@example.com', role: 'member' } as const;
  const [here, there, third] = [
    await consoleClient(gateway, who),
    await consoleClient(gateway, who),
    await consoleClient(gateway, who),
  ];
  const status = async ({ call }: typeof here) => (await call('GET', '/session')).status;
  expect((await here.call('DELETE', '/session', undefined, { 'x-form-token': '' })).status).toBe(403);
  expect((await here.call('DELETE', '/session')).status).toBe(200);
  expect([await status(here), await status(there)]).toEqual([401, 200]);
  expect((await there.call('DELETE', '/session?everywhere=true')).status).toBe(200);
  expect([await status(there), await status(third)]).toEqual([401, 401]);
  const admin = await consoleClient(gateway);
  const events = (await admin.call('GET', `/audit?resource_type=session&actor_user_id=${here.user_id}`)).body[
    'data'
  ] as unknown as { action: string }[];
  expect(events.map(({ action }) => action)).toEqual([
    'sign-out',
    'sign-out',
    'sign-out',
    'sign-in',
    'sign-in',
    'sign-in',
  ]);
  const again = await consoleClient(gateway, who);
  expect(
    (
      await fetch(`${gateway.base_url}/organization/members/${again.user_id}`, {
        method: 'DELETE',
        headers: { authorization: `Bearer ${gateway.management_key}` },
      })
    ).status,
  ).toBe(200);
  expect(await status(again)).toBe(401);
});
