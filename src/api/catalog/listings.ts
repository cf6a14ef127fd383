import type { Catalog } from '../../catalog/catalog.ts';
import type { Model } from '../../catalog/model.ts';
import { type CachedAnswer, cachedAnswer } from '../../http/cached-answer.ts';
import { coalesced } from '../../http/coalesced.ts';
import { limits } from '../../limits.ts';
import type { RouterRules } from '../../routing/router-models.ts';
import type { ModelList } from './list-models.ts';
import { listedModels } from './listed-models.ts';
import { isWanted, type ModelQuery } from './model-query.ts';
import { retrieved } from './retrieve-model.ts';

/** What the public service sends for its catalog. */
export const catalogCacheControl = 'public, max-age=120, stale-while-revalidate=3600, stale-if-error=3600';
export const jsonContentType = 'application/json; charset=utf-8';

/** A model as it is listed, and as the list has it. */
interface WrittenModel {
  model: Model;
  supported_parameters: readonly string[];
  json: string;
}

/** What is said of one catalog and its routers, made once. A reload or a change of prices makes another catalog, and another of these. */
export interface Listings {
  /** The models that a query wants, newest first. */
  models(query: ModelQuery): WrittenModel[];
  /** The answer of this key, made when first asked for. The ones asked for longest ago are forgotten. */
  answer(key: string, make: () => { text: string; content_type: string }): CachedAnswer;
  /** An answer of this key that also says how endpoints do: bytes that all who ask share, made anew within the bounds of `coalesced`. */
  current(key: string, make: () => string): Promise<Buffer>;
}

/** What answers about catalogs are kept in. Only those of the last catalog asked for are, so that an old one can go. */
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
      supported_parameters: shown.supported_parameters,
      json: JSON.stringify(retrieved(shown)),
    }));
    return written;
  };
  const current = new Map<string, () => Promise<Buffer>>();
  const forget = (key: string, { body }: CachedAnswer) => {
    answers.delete(key);
    bytes -= body.byteLength;
  };
  return {
    models: (query) => all().filter(({ model, supported_parameters }) => isWanted(model, supported_parameters, query)),
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
      // A Map keeps the order of insertion.
      for (const [oldest, answer] of answers) {
        if (answers.size <= limits.catalog_answers_max && bytes <= limits.catalog_answers_bytes_max) break;
        forget(oldest, answer);
      }
      return made;
    },
    current(key, make) {
      const known = current.get(key);
      if (known !== undefined) return known();
      const ask = coalesced(() => Buffer.from(make()));
      const [oldest] = current.keys();
      if (current.size >= limits.catalog_answers_max && oldest !== undefined) current.delete(oldest);
      current.set(key, ask);
      return ask();
    },
  };
}

/** What a list of models says beside them: that they are all there are. */
export function onePage(models: readonly { id: string }[]): Omit<ModelList, 'data'> {
  return {
    total_count: models.length,
    links: { next: null },
    object: 'list',
    has_more: false,
    first_id: models[0]?.id ?? null,
    last_id: models.at(-1)?.id ?? null,
  };
}

/** Models as the list that clients read. */
export function modelListJson(models: readonly WrittenModel[]): string {
  const rest = JSON.stringify(onePage(models.map(({ model }) => model))).slice(1);
  return `{"data":[${models.map(({ json }) => json).join(',')}],${rest}`;
}
