import Type, { type Static } from 'typebox';
import type { Catalog } from '../../catalog/catalog.ts';
import { expiresAt } from '../../catalog/expiry.ts';
import type { Server } from '../../http/server.ts';
import type { RouterRules } from '../../routing/router-models.ts';
import { errors } from '../../schemas/error.ts';
import { PublicModel } from '../../schemas/model.ts';
import { ModelParams, namedModel } from './named-model.ts';

const nullable = Type.Union([Type.Integer(), Type.Null()]);

/**
 * A model's record, with the fields that `models.retrieve()` and `models.list()` return in the SDKs of OpenAI
 * (https://platform.openai.com/docs/api-reference/models/object) and Anthropic (https://platform.claude.com/docs/en/api/models/retrieve).
 */
export const RetrievedModel = Type.Object(
  {
    ...PublicModel.properties,
    object: Type.Literal('model'),
    owned_by: Type.String({ description: 'Organization of the model.' }),
    type: Type.Literal('model'),
    display_name: Type.String(),
    created_at: Type.String({ format: 'date-time' }),
    max_input_tokens: nullable,
    max_tokens: nullable,
    lifecycle: Type.Union([Type.Literal('active'), Type.Literal('deprecated')], {
      description: 'Deprecated: it has an `expiration_date`.',
    }),
    retires_at: Type.Union([Type.String({ format: 'date-time' }), Type.Null()], {
      description: 'The end of its `expiration_date`.',
    }),
  },
  { title: 'RetrievedModel' },
);

/** The record in the form of the SDKs. */
export function retrieved(shown: PublicModel): Static<typeof RetrievedModel> {
  const { expiration_date } = shown;
  return {
    ...shown,
    object: 'model',
    owned_by: ownerOf(shown.id),
    type: 'model',
    display_name: shown.name,
    created_at: new Date(shown.created * 1000).toISOString(),
    max_input_tokens: shown.context_length,
    max_tokens: shown.top_provider.max_completion_tokens,
    lifecycle: expiration_date == null ? 'active' : 'deprecated',
    retires_at: expiration_date == null ? null : new Date(expiresAt(expiration_date)).toISOString(),
  };
}

const ownerOf = (id: string) => id.slice(0, id.indexOf('/'));

/**
 * `GET /models/{model}`, an addition to the contract: one model for SDKs, which escape the slash of its id as `%2F`. A plain slash works as
 * well.
 */
export function retrieveModel(
  server: Server,
  { catalog, routers }: { catalog: () => Catalog; routers: () => RouterRules },
): void {
  const find = (name: string) => retrieved(namedModel(name, { catalog: catalog(), routers: routers() }).shown);
  const schema = {
    tags: ['Catalog'],
    response: { 200: RetrievedModel, ...errors(401, 404, 500) },
  };
  server.route({
    method: 'GET',
    url: '/models/:model',
    config: { access: 'any', forMembers: true },
    schema: {
      ...schema,
      operationId: 'retrieveModel',
      summary: 'Shows one model in the form that the SDKs of OpenAI and Anthropic read.',
      params: Type.Object({
        model: Type.String({ description: 'Id of the model, plain or dated, with suffixes such as `:free`.' }),
      }),
    },
    handler: ({ params }) => find(params.model),
  });
  server.route({
    method: 'GET',
    url: '/models/:author/:slug',
    config: { access: 'any', forMembers: true },
    schema: { ...schema, params: ModelParams },
    handler: ({ params }) => find(`${params.author}/${params.slug}`),
  });
}
