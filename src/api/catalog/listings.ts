import type { Catalog } from '../../catalog/catalog.ts';
import type { StatisticsOf } from '../../catalog/describe.ts';
import type { Model } from '../../catalog/model.ts';
import { type CachedAnswer, cachedAnswer } from '../../http/cached-answer.ts';
import { coalesced } from '../../http/coalesced.ts';
import type { RouterRules } from '../../routing/router-models.ts';
import { listedModels } from './listed-models.ts';
import type { ModelList } from './model-list.ts';
import type { ModelQuery, ModelSort } from './model-query.ts';
import { factsOf, type ModelFacts, matchesQuery, type PagedModels, sorted } from './model-selection.ts';
import { retrieved } from './retrieve-model.ts';

/** Answers about the catalog that are kept ready, one for each choice of filters. */
export const CATALOG_ANSWERS_MAX = 256;
export const CATALOG_ANSWERS_BYTES_MAX = 48 * 1024 * 1024;

/** The cache policy of the public service for its catalog. */
export const catalogCacheControl = 'public, max-age=120, stale-while-revalidate=3600, stale-if-error=3600';
export const jsonContentType = 'application/json; charset=utf-8';

/** A model with its JSON text in the list. */
interface WrittenModel {
  model: Model;
  facts: ModelFacts;
  json: string;
}

/** Cached answers about one catalog and its routers. A reload or a change of prices makes another catalog, and another cache. */
export interface Listings {
  /** All models that match a query, newest first. */
  models(query: ModelQuery): readonly WrittenModel[];
  /** The same in an order by performance, which is refreshed within the bounds of `coalesced`. */
  ranked(query: ModelQuery, statistics: StatisticsOf): Promise<readonly WrittenModel[]>;
  /** The answer for this key, made at first use. The least recently used answers are dropped. */
  answer(key: string, make: () => { text: string; content_type: string }): CachedAnswer;
  /** An answer that includes performance, shared by its callers and refreshed within the bounds of `coalesced`. */
  current(key: string, make: () => string): Promise<Buffer>;
}

/** Makes the cache of answers. It holds those of the last requested catalog only, so that an old catalog can be freed. */
export function createListings(): (catalog: Catalog, routers: RouterRules) => Listings {
  let last: { catalog: Catalog; routers: RouterRules; listings: Listings } | undefined;
  return (catalog, routers) => {
    if (last?.catalog !== catalog || last.routers !== routers) {
      last = { catalog, routers, listings: listingsOf(catalog, routers) };
    }
    return last.listings;
  };
}

function listingsOf(catalog: Catalog, routers: RouterRules): Listings {
  const answers = new Map<string, CachedAnswer>();
  let bytes = 0;
  let written: WrittenModel[] | undefined;
  const all = () => {
    written ??= listedModels(catalog, routers).map(({ model, shown }) => ({
      model,
      facts: factsOf(shown),
      json: JSON.stringify(retrieved(shown)),
    }));
    return written;
  };
  const matching = (models: readonly WrittenModel[], query: ModelQuery) =>
    models.filter(({ model, facts }) => matchesQuery(model, facts, query, catalog));
  const orders = new Map<ModelSort, () => Promise<readonly WrittenModel[]>>();
  const current = new Map<string, () => Promise<Buffer>>();
  const forget = (key: string, { body }: CachedAnswer) => {
    answers.delete(key);
    bytes -= body.byteLength;
  };
  return {
    models: (query) => matching(all(), query),
    async ranked(query, statistics) {
      const load = orders.get(query.sort) ?? coalesced(() => sorted(all(), query.sort, statistics));
      orders.set(query.sort, load);
      return matching(await load(), query);
    },
    answer(key, make) {
      const known = answers.get(key);
      if (known !== undefined) {
        answers.delete(key);
        answers.set(key, known);
        return known;
      }
      const { text, content_type } = make();
      const made = cachedAnswer(text, content_type);
      answers.set(key, made);
      bytes += made.body.byteLength;
      // A Map keeps insertion order.
      for (const [oldest, answer] of answers) {
        if (answers.size <= CATALOG_ANSWERS_MAX && bytes <= CATALOG_ANSWERS_BYTES_MAX) break;
        forget(oldest, answer);
      }
      return made;
    },
    current(key, make) {
      const known = current.get(key);
      if (known !== undefined) return known();
      const load = coalesced(() => Buffer.from(make()));
      const [oldest] = current.keys();
      if (current.size >= CATALOG_ANSWERS_MAX && oldest !== undefined) current.delete(oldest);
      current.set(key, load);
      return load();
    },
  };
}

/** The fields of a list of models besides `data`: the total count, and the link to the next page. `path` is that of the list. */
export function besides(
  { models, total_count, next_offset, has_more }: PagedModels<{ id: string }>,
  path: string,
  { filters, sort, page }: Pick<ModelQuery, 'filters' | 'sort' | 'page'>,
): Omit<ModelList, 'data'> {
  const next = new URLSearchParams(filters);
  if (sort !== 'newest') next.set('sort', sort);
  if (next_offset !== undefined) next.set('offset', String(next_offset));
  if (page.limit !== undefined) next.set('limit', String(page.limit));
  return {
    total_count,
    links: { next: next_offset === undefined ? null : `/api/v1${path}?${next}` },
    object: 'list',
    has_more,
    first_id: models[0]?.id ?? null,
    last_id: models.at(-1)?.id ?? null,
  };
}

/** A page of models as JSON text. */
export function modelListJson(page: PagedModels<WrittenModel>, path: string, query: ModelQuery): string {
  const models = page.models.map(({ model }) => model);
  const rest = JSON.stringify(besides({ ...page, models }, path, query)).slice(1);
  return `{"data":[${page.models.map(({ json }) => json).join(',')}],${rest}`;
}
