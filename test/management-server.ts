import { GatewayError } from '../src/errors.ts';
import { createServer, type Server } from '../src/http/server.ts';
import type { Database } from '../src/storage/database.ts';
import { organizationStore } from '../src/storage/organizations.ts';

/** The real shell over a store with a fresh home, where `management` and `ordinary` are the two credentials there are. */
export async function managementServer(database: Database, at: string) {
  const home = await organizationStore(database.queries).insertFirst({ at, management: undefined });
  const server: Server = createServer({
    logger: false,
    body_bytes_max: 1024 * 1024,
    authenticate: (secret) => {
      if (secret !== 'management' && secret !== 'ordinary') throw new GatewayError(401, 'Invalid API key');
      return {
        kind: secret === 'management' ? 'management' : 'key',
        key_hash: null,
        key_id: null,
        organization_id: home.organization_id,
        workspace_id: home.default_workspace_id,
        user_id: home.owner_user_id,
      };
    },
  });
  const call = async (method: 'GET' | 'POST', url: string, body?: unknown, credential = 'management') => {
    const answer = await server.inject({
      method,
      url,
      headers: {
        ...(credential === '' ? {} : { authorization: `Bearer ${credential}` }),
        ...(typeof body === 'string' ? { 'content-type': 'application/json' } : {}),
      },
      ...(body === undefined ? {} : { payload: body as object | string }),
    });
    return { status: answer.statusCode, body: answer.json() as Record<string, never> };
  };
  return { server, home, call };
}
