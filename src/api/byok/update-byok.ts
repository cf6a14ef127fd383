import Type from 'typebox';
import { describeByok, labelOfCredential, placeOf } from '../../accounts/byok.ts';
import type { Vault } from '../../accounts/vault.ts';
import type { Catalog } from '../../catalog/catalog.ts';
import { checkVersion, setVersion } from '../../http/preconditions.ts';
import type { Server } from '../../http/server.ts';
import { ByokCredential, UpdateByokBody } from '../../schemas/byok.ts';
import { errors } from '../../schemas/error.ts';
import { byokStore } from '../../storage/byok.ts';
import { actorOf, type Change } from '../change.ts';
import { ByokParams, requireByok } from './get-byok.ts';
import { checkSettings } from './scope.ts';

export interface UpdateByokDependencies {
  change: Change;
  /** Includes models of providers that are enabled only for callers with their own credential. */
  wholeCatalog: () => Catalog;
  vault: Vault;
}

/** Serves `PATCH /byok/{id}`. A new `key` replaces the old one; running calls keep the old one. */
export function updateByok(server: Server, { change, wholeCatalog, vault }: UpdateByokDependencies): void {
  server.route({
    method: 'PATCH',
    url: '/byok/:id',
    config: { access: 'management' },
    schema: {
      operationId: 'updateByok',
      tags: ['BYOK'],
      summary: 'Changes a credential of your own provider account, or rotates its secret.',
      params: ByokParams,
      body: UpdateByokBody,
      response: { 200: Type.Object({ data: ByokCredential }), ...errors(400, 401, 403, 404, 409, 429, 500) },
    },
    handler: async (request, reply) => {
      const { key } = request.body;
      const changed = await change(actorOf(request), async ({ tx, at, actor, audit, announce }) => {
        const { organization_id } = actor;
        const which = { organization_id, id: request.params.id };
        const store = byokStore(tx);
        const before = await requireByok(which, store.lock);
        checkVersion(request, before.version);
        const settings = await checkSettings(request.body, { tx, organization_id, catalog: wholeCatalog(), before });
        const rotated =
          key === undefined ? {} : { sealed: vault.seal(key, placeOf(before)), label: labelOfCredential(key) };
        const after = await store.update(which, { ...settings, ...rotated, updated_at: at });
        await audit({
          action: key === undefined ? 'update' : 'rotate',
          resource_type: 'byok_credential',
          resource_id: before.id,
          before: describeByok(before),
          after: describeByok(after),
        });
        announce({ topic: 'policy', id: before.workspace_id });
        return after;
      });
      setVersion(reply, changed.version);
      return { data: describeByok(changed) };
    },
  });
}
