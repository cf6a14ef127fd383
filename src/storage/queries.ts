import type { Kysely } from 'kysely';
import type { Tables } from './schema.ts';

/** Runs the queries of stores: the database itself, or a transaction on it. */
export type Queries = Kysely<Tables>;
