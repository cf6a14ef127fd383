import Type from 'typebox';
import { GatewayError } from '../../errors.ts';
import type { Server } from '../../http/server.ts';
import { errors } from '../../schemas/error.ts';
import { principalOf } from '../change.ts';
import type { PageSessions } from './page-sessions.ts';

/** Serves `DELETE /session`: signs the person out, here or everywhere. */
export function endSession(server: Server, { sessions }: { sessions: PageSessions }): void {
  server.route({
    method: 'DELETE',
    url: '/session',
    config: { access: 'management', forMembers: true },
    schema: {
      operationId: 'endSession',
      tags: ['Sessions'],
      summary: 'Ends the session of the signed-in person, or all sessions of that person.',
      querystring: Type.Object({
        everywhere: Type.Optional(
          Type.Enum(['true', 'false'] as const, { description: 'Whether to end the sessions in other browsers, too.' }),
        ),
      }),
      response: { 200: Type.Object({ deleted: Type.Literal(true) }), ...errors(400, 401, 403, 429, 500) },
    },
    handler: async (request, reply) => {
      const caller = principalOf(request);
      if (caller.session === undefined) throw new GatewayError(403, 'Keys have no session');
      await sessions.endFor(request, reply, caller, request.query.everywhere === 'true');
      return { deleted: true as const };
    },
  });
}
