import Type from 'typebox';
import type { Server } from '../../http/server.ts';
import { AuditEvent, resourceTypes } from '../../schemas/audit.ts';
import { errors } from '../../schemas/error.ts';
import { PageOf, PageQuery, pageOf } from '../../schemas/page.ts';
import { isStorable } from '../../schemas/text.ts';
import type { AuditStore } from '../../storage/audit.ts';
import { principalOf } from '../change.ts';

/** Serves `GET /audit`: who changed what, the newest first. */
export function listAudit(server: Server, { audit }: { audit: AuditStore }): void {
  server.route({
    method: 'GET',
    url: '/audit',
    config: { access: 'management' },
    schema: {
      operationId: 'listAudit',
      tags: ['Audit'],
      summary: 'Lists the changes made with management keys, newest first.',
      querystring: Type.Object({
        ...PageQuery,
        resource_type: Type.Optional(Type.Enum(resourceTypes)),
        resource_id: Type.Optional(Type.String()),
        actor_user_id: Type.Optional(Type.String()),
        before: Type.Optional(
          Type.String({
            description: 'Only events older than the one with this id: pages by it do not move when events are added.',
          }),
        ),
      }),
      response: { 200: PageOf(AuditEvent), ...errors(400, 401, 403, 429, 500) },
    },
    handler: (request) => {
      const { organization_id } = principalOf(request);
      const { resource_type, resource_id, actor_user_id, before } = request.query;
      if (![resource_id, actor_user_id, before].every((text) => isStorable(text ?? ''))) {
        return { data: [], total_count: 0 };
      }
      return audit.listBy(
        { organization_id, resource_type, resource_id, actor_user_id, before },
        pageOf(request.query),
      );
    },
  });
}
