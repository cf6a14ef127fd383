import Type from 'typebox';
import { describeByok, type StoredByok } from '../../accounts/byok.ts';
import { GatewayError } from '../../errors.ts';
import { setVersion } from '../../http/preconditions.ts';
import type { Server } from '../../http/server.ts';
import { ByokCredential } from '../../schemas/byok.ts';
import { errors } from '../../schemas/error.ts';
import { isStorable } from '../../schemas/text.ts';
import type { ByokId, ByokStore } from '../../storage/byok.ts';
import { principalOf } from '../change.ts';

/** The path of one credential. */
export const ByokParams = Type.Object({ id: Type.String({ description: 'Identity of the credential.' }) });

/** The credential that `find` returns for an id of the organization. Throws a 404 if there is none. */
export async function requireByok(
  which: ByokId,
  find: (which: ByokId) => Promise<StoredByok | undefined>,
): Promise<StoredByok> {
  const stored = isStorable(which.id) ? await find(which) : undefined;
  if (stored === undefined) throw new GatewayError(404, 'BYOK credential not found');
  return stored;
}

/** Serves `GET /byok/{id}`. */
export function getByok(server: Server, { byok }: { byok: ByokStore }): void {
  server.route({
    method: 'GET',
    url: '/byok/:id',
    config: { access: 'management' },
    schema: {
      operationId: 'getByok',
      tags: ['BYOK'],
      summary: 'Returns a credential of your own provider account, without its secret.',
      params: ByokParams,
      response: { 200: Type.Object({ data: ByokCredential }), ...errors(401, 403, 404, 429, 500) },
    },
    handler: async (request, reply) => {
      const { organization_id } = principalOf(request);
      const stored = await requireByok({ organization_id, id: request.params.id }, byok.find);
      setVersion(reply, stored.version);
      return { data: describeByok(stored) };
    },
  });
}
