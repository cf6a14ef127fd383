import { randomUUID } from 'node:crypto';
import { createSecret } from '../../src/accounts/key.ts';
import { createChange } from '../../src/api/change.ts';
import { GatewayError } from '../../src/errors.ts';
import { createServer } from '../../src/http/create-server.ts';
import type { AuthenticateSession, Principal } from '../../src/http/principal.ts';
import type { Server } from '../../src/http/server.ts';
import { localChangeFeed } from '../../src/storage/change-feed.ts';
import type { Database, Queries } from '../../src/storage/database.ts';
import { keyStore, type NewKey } from '../../src/storage/keys.ts';
import { organizationStore } from '../../src/storage/organizations.ts';
import { sessionStore } from '../../src/storage/sessions.ts';

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/**
 * The real HTTP server over a store with a fresh organization, where `management` and `ordinary` are the only
 * credentials, and `foreign` is the management credential of another organization. Tests may change `principals`.
 */
export async function managementServer(database: Database, at: string, limitManagement?: (caller: string) => void) {
  const home = await organizationStore(database.queries).insertFirst({ at });
  const foreign = await otherOrganization(database, at);
  const changes = localChangeFeed();
  const principals: Record<'management' | 'ordinary' | 'foreign', Principal> & Record<string, Principal> = {
    management: principalOf('management', home),
    ordinary: principalOf('key', home),
    foreign: principalOf('management', foreign),
  };
  /** Set by tests that have pages. */
  const sessions: { principal?: AuthenticateSession } = {};
  const server: Server = createServer({
    logger: false,
    body_bytes_max: 1024 * 1024,
    limitManagement,
    authenticateSession: async (request, reply) => sessions.principal?.(request, reply),
    authenticate: (secret) => {
      const principal = principals[secret];
      if (principal === undefined) throw new GatewayError(401, 'Invalid API key');
      return principal;
    },
  });
  const call = async (
    method: Method,
    url: string,
    body?: unknown,
    credential = 'management',
    headers: Record<string, string> = {},
  ) => {
    const answer = await server.inject({
      method,
      url,
      headers: {
        ...(credential === '' ? {} : { authorization: `Bearer ${credential}` }),
        ...(typeof body === 'string' ? { 'content-type': 'application/json' } : {}),
        ...headers,
      },
      ...(body === undefined ? {} : { payload: body as object | string }),
    });
    return { status: answer.statusCode, body: answer.json() as Record<string, never>, headers: answer.headers };
  };
  /** Stores a key without an owner, in the default workspace and without a limit. */
  const addKey = (over: Partial<NewKey> = {}, queries: Queries = database.queries) => {
    const { hash, label } = createSecret();
    return keyStore(queries).insert({
      hash,
      label,
      organization_id: home.organization_id,
      workspace_id: home.default_workspace_id,
      creator_user_id: null,
      name: 'a key',
      is_management: false,
      disabled: false,
      limit_nano: null,
      limit_reset: null,
      include_byok_in_limit: false,
      expires_at: null,
      created_at: at,
      updated_at: null,
      ...over,
    });
  };
  /** The principal of a session of a member; by default the owner. */
  const sessionOf = async (role: 'admin' | 'member', userId = home.owner_user_id): Promise<Principal> => {
    const id = randomUUID();
    const { organization_id } = home;
    const expiresAt = new Date(Date.parse(at) + 3_600_000).toISOString();
    const times = { created_at: at, rotated_at: at, expires_at: expiresAt };
    const whose = { organization_id, user_id: userId, credential: 'link' };
    await sessionStore(database.queries).insert({ id, token_hash: id, previous_hash: null, ...whose, ...times });
    const session = { id, role, user_name: '', user_email: null, form_token: '', expires_at: expiresAt };
    return { ...principalOf('management', home), user_id: userId, session };
  };
  const now = () => Date.parse(at);
  const change = createChange({ database, changes, now });
  return { server, sessions, home, foreign, principals, call, changes, now, change, addKey, sessionOf };
}

interface Organization {
  organization_id: string;
  default_workspace_id: string;
  owner_user_id: string;
}

function principalOf(kind: Principal['kind'], organization: Organization): Principal {
  return {
    kind,
    key_hash: null,
    key_id: null,
    organization_id: organization.organization_id,
    workspace_id: organization.default_workspace_id,
    user_id: organization.owner_user_id,
    budgets: [],
    guardrails: [],
    budget_mode: null,
  };
}

/** A second organization in the same store, whose records nobody else may see. */
async function otherOrganization({ queries }: Database, at: string): Promise<Organization> {
  const made = {
    organization_id: randomUUID(),
    default_workspace_id: randomUUID(),
    owner_user_id: randomUUID(),
  };
  const { organization_id, owner_user_id: userId, default_workspace_id } = made;
  await queries.insertInto('organizations').values({ id: organization_id, name: 'Foreign', created_at: at }).execute();
  await queries
    .insertInto('users')
    .values({
      id: userId,
      name: 'Stranger',
      email: null,
      created_at: at,
      first_name: null,
      last_name: null,
      issuer: null,
      subject: null,
    })
    .execute();
  await queries
    .insertInto('organization_members')
    .values({ id: randomUUID(), organization_id, user_id: userId, role: 'admin', created_at: at, seq: 900_001 })
    .execute();
  const home = await organizationStore(queries).findDefaultWorkspace(organization_id);
  if (home) throw new Error('the other organization is made twice');
  const pattern = await queries.selectFrom('workspaces').selectAll().where('is_default', '=', true).executeTakeFirst();
  if (!pattern) throw new Error('the home has no default workspace');
  await queries
    .insertInto('workspaces')
    .values({
      ...pattern,
      id: default_workspace_id,
      organization_id,
      created_by: userId,
      io_logging_api_key_ids: null,
      seq: 900_001,
    })
    .execute();
  return made;
}
