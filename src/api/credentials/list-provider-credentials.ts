import Type from 'typebox';
import type { Catalog } from '../../catalog/catalog.ts';
import type { Server } from '../../http/server.ts';
import type { Provider } from '../../providers/provider.ts';
import { ProviderCredential } from '../../schemas/credential-check.ts';
import { errors } from '../../schemas/error.ts';
import { requireHome } from '../ledger/get-ledger-status.ts';

/** The providers of the configuration. */
export interface ConfiguredProviders {
  on: readonly Provider[];
  own_only: readonly Provider[];
  off: readonly { slug: string; name: string; reason: string }[];
}

export interface ListProviderCredentialsDependencies {
  configured: () => ConfiguredProviders;
  catalog: () => Catalog;
  isRefused: (endpointId: string) => boolean;
  home: { organization_id: string };
}

/** Serves `GET /provider-credentials`. */
export function listProviderCredentials(server: Server, options: ListProviderCredentialsDependencies): void {
  const { configured, catalog, isRefused, home } = options;
  server.route({
    method: 'GET',
    url: '/provider-credentials',
    config: { access: 'management' },
    schema: {
      operationId: 'listProviderCredentials',
      tags: ['Credentials'],
      summary: "Lists all known providers with the state of the operator's credential.",
      description:
        'Credentials are set where the gateway is configured, and never shown. For management keys and administrators of the organization that runs the gateway.',
      response: { 200: Type.Object({ data: Type.Array(ProviderCredential) }), ...errors(401, 403, 429, 500) },
    },
    handler: async (request) => {
      requireHome(request, home);
      const { on, own_only, off } = configured();
      const counts = new Map<string, { endpoints: number; refused: number }>();
      for (const model of catalog().models()) {
        for (const { provider, id } of model.endpoints) {
          const count = counts.get(provider) ?? { endpoints: 0, refused: 0 };
          count.endpoints += 1;
          if (isRefused(id)) count.refused += 1;
          counts.set(provider, count);
        }
      }
      const enabled = on.map(({ slug, name, credential, is_sandbox }) => {
        const { endpoints, refused } = counts.get(slug) ?? { endpoints: 0, refused: 0 };
        return {
          slug,
          name,
          state: refused > 0 ? ('refused' as const) : ('on' as const),
          has_credential: credential !== undefined,
          is_sandbox: is_sandbox === true,
          reason: null,
          endpoints,
          refused_endpoints: refused,
        };
      });
      const ownOnly = new Set(own_only.map(({ slug }) => slug));
      const disabled = off.map(({ slug, name, reason }) => ({
        slug,
        name,
        state: ownOnly.has(slug) ? ('own_only' as const) : ('off' as const),
        has_credential: false,
        is_sandbox: false,
        reason,
        endpoints: 0,
        refused_endpoints: 0,
      }));
      return { data: [...enabled, ...disabled] };
    },
  });
}
