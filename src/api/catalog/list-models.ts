import type { FastifyRequest } from 'fastify';
import Type from 'typebox';
import type { StatisticsOf } from '../../catalog/describe.ts';
import { invalidField } from '../../errors.ts';
import { claimOf } from '../../http/bounded-bodies.ts';
import { NotModified, sendCached } from '../../http/cached-answer.ts';
import type { Server } from '../../http/server.ts';
import type { Site } from '../../http/site.ts';
import { errors } from '../../schemas/error.ts';
import { answerModels } from './answer-models.ts';
import { catalogCacheControl, type Listings } from './listings.ts';
import { feedContentType, modelFeed } from './model-feed.ts';
import { ModelList } from './model-list.ts';
import { type ModelQuery, modelFilters, modelPage, modelQuery } from './model-query.ts';
import { isByPerformance, paged, sorted } from './model-selection.ts';

const flag = (description: string) => Type.Optional(Type.String({ maxLength: 10, description }));

/**
 * `GET /models`: all models that can be called, newest first, as JSON or as an RSS feed. An answer is built once per catalog and set of
 * filters.
 */
export function listModels(
  server: Server,
  {
    listings: current,
    site,
    statistics,
    now,
  }: { listings: () => Listings; site: Site; statistics: StatisticsOf; now: () => number },
): void {
  server.route({
    method: 'GET',
    url: '/models',
    config: { access: 'public' },
    schema: {
      operationId: 'listModels',
      tags: ['Catalog'],
      summary: 'Lists the models that can be called.',
      querystring: Type.Object({
        ...modelFilters,
        ...modelPage,
        use_rss: flag('true: an RSS 2.0 feed, newest first.'),
        use_rss_chat_links: flag('true, with use_rss: items link to a conversation with the model.'),
      }),
      response: {
        200: {
          description: 'The models, or a feed of them.',
          content: {
            'application/json': { schema: ModelList },
            'application/rss+xml': { schema: Type.String() },
          },
        },
        304: NotModified,
        ...errors(400, 500),
      },
    },
    handler: async (request, reply) => {
      const query = modelQuery(request.query, now());
      const listings = current();
      const isFeed = isOn('use_rss', request.query.use_rss);
      const chatLinks = isOn('use_rss_chat_links', request.query.use_rss_chat_links);
      if (!isFeed) return answerModels(request, reply, { listings, statistics, query, path: '/models' });
      if (isByPerformance(query.sort)) throw invalidField('sort', `${query.sort} cannot be used with use_rss`);
      const place = { origin: originOf(request, site), path: feedPath(query, chatLinks), chat_links: chatLinks };
      const answer = listings.answer(`${place.origin}${place.path}`, () => {
        const listed = sorted(listings.models(query), query.sort, statistics).map(({ model }) => model);
        const { models } = paged(listed, query.page, ({ id }) => id);
        return { text: modelFeed(models, place), content_type: feedContentType };
      });
      await claimOf(request)?.take(answer.body.byteLength);
      return sendCached(request, reply, answer, catalogCacheControl);
    },
  });
}

function isOn(field: string, text: string | undefined): boolean {
  if (text === undefined || /^(?:false|0|no)?$/i.test(text)) return false;
  if (/^(?:true|1|yes)$/i.test(text)) return true;
  throw invalidField(field, 'must be true or false');
}

/** The canonical path of a feed, whatever the order of its parameters. */
function feedPath({ whole }: ModelQuery, chatLinks: boolean): string {
  return `/api/v1/models?use_rss=true&${whole}${chatLinks ? '&use_rss_chat_links=true' : ''}`;
}

/** The origin of this gateway for readers of the feed: as configured, else as in the request. */
function originOf(request: FastifyRequest, { public_origin }: Site): string {
  return public_origin ?? `${request.protocol}://${request.host}`;
}
