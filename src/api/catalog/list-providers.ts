import Type from 'typebox';
import type { Catalog } from '../../catalog/catalog.ts';
import type { Server } from '../../http/server.ts';
import { errors } from '../../schemas/error.ts';

const nullableText = Type.Union([Type.String(), Type.Null()]);

const PublicProvider = Type.Object(
  {
    name: Type.String({ description: 'The display name, as in provider_name.' }),
    slug: Type.String(),
    privacy_policy_url: nullableText,
    terms_of_service_url: nullableText,
    status_page_url: nullableText,
    headquarters: nullableText,
    datacenters: Type.Union([Type.Array(Type.String()), Type.Null()]),
  },
  { title: 'Provider' },
);

/** Serves `GET /providers`: the enabled providers. Unknown facts are null. */
export function listProviders(server: Server, { catalog }: { catalog: () => Catalog }): void {
  server.route({
    method: 'GET',
    url: '/providers',
    config: { access: 'any', forMembers: true },
    schema: {
      operationId: 'listProviders',
      tags: ['Catalog'],
      summary: 'Lists the providers that can be called.',
      response: { 200: Type.Object({ data: Type.Array(PublicProvider) }), ...errors(401, 500) },
    },
    handler: async () => ({
      data: catalog()
        .providers()
        .map(({ name, slug }) => ({
          name,
          slug,
          privacy_policy_url: null,
          terms_of_service_url: null,
          status_page_url: null,
          headquarters: null,
          datacenters: null,
        }))
        .sort((a, b) => (a.slug < b.slug ? -1 : 1)),
    }),
  });
}
