import { randomUUID } from 'node:crypto';
import Type from 'typebox';
import { describeByok, labelOfCredential, placeOf } from '../../accounts/byok.ts';
import type { Vault } from '../../accounts/vault.ts';
import type { Catalog } from '../../catalog/catalog.ts';
import { GatewayError } from '../../errors.ts';
import { setVersion } from '../../http/preconditions.ts';
import type { Server } from '../../http/server.ts';
import { limits } from '../../limits.ts';
import { ByokCredential, CreateByokBody } from '../../schemas/byok.ts';
import { errors } from '../../schemas/error.ts';
import { byokStore } from '../../storage/byok.ts';
import { actorOf, type Change, principalOf } from '../change.ts';
import { workspaceOfNew } from '../workspaces/require-workspace.ts';
import { checkSettings } from './scope.ts';

export interface CreateByokDependencies {
  change: Change;
  /** Includes models of providers that are enabled only for callers with their own credential. */
  wholeCatalog: () => Catalog;
  /** The slug of a known provider, enabled or not, by slug or display name. */
  providerSlug: (slugOrName: string) => string | undefined;
  vault: Vault;
}

/** Serves `POST /byok`. The credential is encrypted before it is stored, and never in an answer or log. */
export function createByok(
  server: Server,
  { change, wholeCatalog, providerSlug, vault }: CreateByokDependencies,
): void {
  server.route({
    method: 'POST',
    url: '/byok',
    config: { access: 'management' },
    schema: {
      operationId: 'createByok',
      tags: ['BYOK'],
      summary: 'Stores a credential of your own account at a provider.',
      body: CreateByokBody,
      response: { 201: Type.Object({ data: ByokCredential }), ...errors(400, 401, 403, 409, 429, 500) },
    },
    handler: async (request, reply) => {
      const { body } = request;
      const provider = providerSlug(body.provider);
      if (provider === undefined) throw new GatewayError(400, `provider ${body.provider} is not known to this gateway`);
      const made = await change(actorOf(request), async ({ tx, at, actor, audit, announce }) => {
        const { organization_id } = actor;
        const { provider: _, workspace_id: wanted, ...rest } = body;
        const settings = await checkSettings(rest, { tx, organization_id, catalog: wholeCatalog() });
        const workspaceId = await workspaceOfNew(tx, principalOf(request), wanted);
        const store = byokStore(tx);
        if ((await store.count(workspaceId)) >= limits.byok_credentials_max) {
          throw new GatewayError(
            400,
            `workspace_id ${workspaceId} has ${limits.byok_credentials_max} credentials already`,
          );
        }
        const id = randomUUID();
        const stored = await store.insert({
          id,
          organization_id,
          workspace_id: workspaceId,
          provider,
          label: labelOfCredential(body.key),
          sealed: vault.seal(body.key, placeOf({ organization_id, id })),
          name: settings.name ?? null,
          disabled: settings.disabled ?? false,
          is_fallback: settings.is_fallback ?? false,
          allow_shared_fallback: settings.allow_shared_fallback ?? false,
          sort_order: settings.sort_order ?? (await store.nextSortOrder({ workspace_id: workspaceId, provider })),
          allowed_models: settings.allowed_models ?? null,
          allowed_api_key_hashes: settings.allowed_api_key_hashes ?? null,
          allowed_user_ids: settings.allowed_user_ids ?? null,
          declared_zdr: settings.declared_zdr ?? null,
          declared_region: settings.declared_region ?? null,
          is_byok_only: settings.is_byok_only ?? false,
          created_at: at,
          updated_at: null,
        });
        const after = describeByok(stored);
        await audit({ action: 'create', resource_type: 'byok_credential', resource_id: id, before: null, after });
        announce({ topic: 'policy', id: workspaceId });
        return stored;
      });
      setVersion(reply, made.version);
      return reply.code(201).send({ data: describeByok(made) });
    },
  });
}
