import Type from 'typebox';
import type { Catalog } from '../../catalog/catalog.ts';
import type { Server } from '../../http/server.ts';
import type { RouterRules } from '../../routing/router-models.ts';
import { errors } from '../../schemas/error.ts';
import { PublicModel } from '../../schemas/model.ts';
import { EscapedModelParams, ModelParams, namedModel } from './named-model.ts';

/** `GET /model/{author}/{slug}`: one model, by any name that requests can use. */
export function getModel(
  server: Server,
  { catalog, routers }: { catalog: () => Catalog; routers: () => RouterRules },
): void {
  const find = (name: string) => ({ data: namedModel(name, { catalog: catalog(), routers: routers() }).shown });
  server.route({
    method: 'GET',
    url: '/model/:author/:slug',
    config: { access: 'any', forMembers: true },
    schema: {
      operationId: 'getModel',
      tags: ['Catalog'],
      summary: 'Shows one model.',
      params: ModelParams,
      response: { 200: Type.Object({ data: PublicModel }), ...errors(401, 404, 500) },
    },
    handler: async ({ params: { author, slug } }) => find(`${author}/${slug}`),
  });
  server.route({
    method: 'GET',
    url: '/model/:model',
    config: { access: 'any', forMembers: true },
    schema: {
      tags: ['Catalog'],
      params: EscapedModelParams,
      response: { 200: Type.Object({ data: PublicModel }), ...errors(401, 404, 500) },
    },
    handler: async ({ params: { model } }) => find(model),
  });
}
