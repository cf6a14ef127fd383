import type { FastifyReply, FastifyRequest } from 'fastify';
import type { StatisticsOf } from '../../catalog/describe.ts';
import { invalidField } from '../../errors.ts';
import { claimOf } from '../../http/bounded-bodies.ts';
import { sendBytes, sendCached } from '../../http/cached-answer.ts';
import { catalogCacheControl, jsonContentType, type Listings, modelListJson } from './listings.ts';
import { type ModelQuery, modelQuery, queryKey } from './model-query.ts';
import { isOfPerformance, paged, sorted } from './model-selection.ts';

/** The list that most ask for, whose bytes all of them share. */
const unfiltered = queryKey(modelQuery({}));

/** How fast endpoints are is shown to those alone who bring a credential (specification, Public endpoint record), and so is an order that follows from it. */
function checkSort({ sort }: ModelQuery, { principal }: Pick<FastifyRequest, 'principal'>): void {
  if (principal !== undefined || !isOfPerformance(sort)) return;
  throw invalidField('sort', `${sort} needs an API key: the speed of models is shown only with a credential`);
}

/** Answers with a page of the models that a query wants. `path`: of the list. */
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
  if (isOfPerformance(query.sort)) {
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
  // All others may be as many as there are clients, and as long.
  if (key !== unfiltered) await claimOf(request)?.take(answer.body.byteLength);
  return sendCached(request, reply, answer, catalogCacheControl);
}
