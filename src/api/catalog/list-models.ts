import Type, { type Static } from 'typebox';
import type { Catalog } from '../../catalog/catalog.ts';
import { describeModel } from '../../catalog/describe.ts';
import { GatewayError } from '../../errors.ts';
import type { Server } from '../../http/server.ts';
import { errors } from '../../schemas/error.ts';
import { type OutputModality, outputModalities, PublicModel } from '../../schemas/model.ts';

/** What the public service sends for its catalog (api-facts 10). */
export const catalogCacheControl = 'public, max-age=120, stale-while-revalidate=3600, stale-if-error=3600';

/** What lists of models answer. */
export const ModelList = Type.Object({ data: Type.Array(PublicModel) });
export type ModelList = Static<typeof ModelList>;

const categories = [
  'programming',
  'roleplay',
  'marketing',
  'marketing/seo',
  'technology',
  'science',
  'translation',
  'legal',
  'finance',
  'health',
  'trivia',
  'academia',
] as const;

/** `GET /models`: all models that can be called, newest first. The answer of a catalog is built once for each choice of modalities. */
export function listModels(server: Server, { catalog }: { catalog: () => Catalog }): void {
  const built = new WeakMap<Catalog, Map<string, string>>();
  server.route({
    method: 'GET',
    url: '/models',
    config: { access: 'public' },
    schema: {
      operationId: 'listModels',
      tags: ['Catalog'],
      summary: 'Lists the models that can be called.',
      querystring: Type.Object({
        category: Type.Optional(Type.Enum(categories)),
        supported_parameters: Type.Optional(Type.String({ maxLength: 1_000 })),
        output_modalities: Type.Optional(
          Type.String({
            maxLength: 200,
            description: `Comma-separated: ${outputModalities.join(', ')}, or all. Default: text.`,
          }),
        ),
        use_rss: Type.Optional(Type.String({ maxLength: 10 })),
        use_rss_chat_links: Type.Optional(Type.String({ maxLength: 10 })),
      }),
      response: { 200: ModelList, ...errors(400, 500) },
    },
    handler: async (request, reply) => {
      const wanted = wantedModalities(request.query.output_modalities ?? 'text');
      const source = catalog();
      const answers = built.get(source) ?? new Map<string, string>();
      built.set(source, answers);
      const key = wanted.join(',');
      const body = answers.get(key) ?? modelList(source, wanted);
      answers.set(key, body);
      reply.header('cache-control', catalogCacheControl).type('application/json; charset=utf-8');
      // A string is sent as it is; the schema stands for the document.
      return body as unknown as ModelList;
    },
  });
}

/** The modalities asked for, each once and in a fixed order, so that there are few different answers. */
function wantedModalities(text: string): readonly OutputModality[] {
  const names = text.split(',').map((name) => name.trim());
  if (names.includes('all') && names.length === 1) return outputModalities;
  const unknown = names.find((name) => !outputModalities.some((known) => known === name));
  if (unknown !== undefined) {
    throw new GatewayError(400, `output_modalities must be all, or a list of ${outputModalities.join(', ')}`);
  }
  return outputModalities.filter((known) => names.includes(known));
}

/** The models with one of these outputs, newest first, as JSON. */
export function modelList(catalog: Catalog, wanted: readonly OutputModality[]): string {
  const models = catalog
    .models()
    .filter(({ output_modalities }) => wanted.some((modality) => output_modalities.includes(modality)));
  return JSON.stringify({ data: models.map(describeModel) });
}
