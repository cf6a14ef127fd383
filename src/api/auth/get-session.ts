import Type from 'typebox';
import { GatewayError } from '../../errors.ts';
import type { Server } from '../../http/server.ts';
import { errors } from '../../schemas/error.ts';
import { Session } from '../../schemas/session.ts';
import { principalOf } from '../change.ts';

/** Serves `GET /session`: who is signed in, with which role. */
export function getSession(server: Server, { isDemo }: { isDemo: () => Promise<boolean> }): void {
  server.route({
    method: 'GET',
    url: '/session',
    config: { access: 'management', forMembers: true },
    schema: {
      operationId: 'getSession',
      tags: ['Sessions'],
      summary: 'Returns the session of the signed-in person.',
      description:
        'Sessions are opened by the sign-in page and sent as a cookie. A session may use the management operations with the rights of its ' +
        'member; a request that changes something also needs `x-form-token`.',
      response: { 200: Type.Object({ data: Session }), ...errors(401, 403, 429, 500) },
    },
    handler: async (request) => {
      const { session, organization_id, user_id } = principalOf(request);
      if (session === undefined) throw new GatewayError(403, 'Keys have no session; sign in at /sign-in');
      const { role, user_name, user_email, expires_at, form_token } = session;
      return {
        data: {
          organization_id,
          user_id: user_id ?? '',
          user_name,
          user_email,
          role,
          is_demo: await isDemo(),
          expires_at,
          form_token,
        },
      };
    },
  });
}
