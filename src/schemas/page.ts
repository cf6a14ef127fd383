import Type, { type Static, type TSchema } from 'typebox';
import { limits } from '../limits.ts';

/** Records of one page if the request does not say. */
const PAGE_RECORDS_DEFAULT = 50;

/** Query parameters of paginated lists. */
export const PageQuery = {
  offset: Type.Optional(
    Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description: 'Records to skip.' }),
  ),
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: limits.page_records_max,
      description: `Records to return; default ${PAGE_RECORDS_DEFAULT}.`,
    }),
  ),
};

/** A part of a list in order of creation, which stays stable while a client reads its pages. */
export interface Page {
  offset: number;
  limit: number;
}

/** The page that a query requests. */
export function pageOf(query: { offset?: number | undefined; limit?: number | undefined }): Page {
  return { offset: query.offset ?? 0, limit: query.limit ?? PAGE_RECORDS_DEFAULT };
}

/** The envelope of a page: its records, and the total count. */
export const PageOf = <T extends TSchema>(record: T) =>
  Type.Object({
    data: Type.Array(record),
    total_count: Type.Integer({ description: 'The number of records in all.' }),
  });

/** One page of records, as a store returns it. */
export interface Paged<T> {
  data: T[];
  total_count: number;
}

/** The answer of every deletion. */
export const Deleted = Type.Object({ deleted: Type.Literal(true) });
export type Deleted = Static<typeof Deleted>;
