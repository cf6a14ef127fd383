import type { FastifyReply, FastifyRequest } from 'fastify';
import type { StatisticsOf } from '../../catalog/describe.ts';
import { invalidField } from '../../errors.ts';
import { claimOf } from '../../http/bounded-bodies.ts';
import { sendBytes, sendCached } from '../../http/cached-answer.ts';
import { catalogCacheControl, jsonContentType, type Listings, modelListJson } from './listings.ts';
import { type ModelQuery, modelQuery, queryKey } from './model-query.ts';
import { isByPerformance, paged, sorted } from './model-selection.ts';

/** The key of the list without filters, whose bytes most requests share. */
const unfiltered = queryKey(modelQuery({}));

/** Refuses an order by performance for callers without a credential, who may not see performance (specification, Public endpoint record). */
function checkSort({ sort }: ModelQuery, { principal }: Pick<FastifyRequest, 'principal'>): void {
  if (principal !== undefined || !isByPerformance(sort)) return;
  throw invalidField('sort', `${sort} needs an API key: the speed of models is shown only with a credential`);
}

/** Sends a page of the models that match a query. `path` is that of the list. */
export async function answerModels(
  request: FastifyRequest,
  reply: FastifyReply,
  {
    listings,
    statistics,
    query,
    path,
  }: { listings: Listings; statistics: StatisticsOf; query: ModelQuery; path: string },
): Promise<FastifyReply> {
  checkSort(query, request);
  const pageOf = (listed: Parameters<typeof modelListJson>[0]['models']) =>
    modelListJson(
      paged(listed, query.page, ({ model }) => model.id),
      path,
      query,
    );
  if (isByPerformance(query.sort)) {
    const body = Buffer.from(pageOf(await listings.ranked(query, statistics)));
    reply.header('cache-control', 'private, no-cache').header('vary', 'authorization, x-api-key');
    await claimOf(request)?.take(body.byteLength);
    return sendBytes(reply, body, jsonContentType);
  }
  const key = queryKey(query);
  const answer = listings.answer(`${path};${key}`, () => ({
    text: pageOf(sorted(listings.models(query), query.sort, statistics)),
    content_type: jsonContentType,
  }));
  // Other answers may be many and long, so they count against the request's memory.
  if (key !== unfiltered) await claimOf(request)?.take(answer.body.byteLength);
  return sendCached(request, reply, answer, catalogCacheControl);
}
