import { sql } from 'kysely';
import type { Queries } from './queries.ts';

/** The numbered resources; each name is a row of `counters`. */
type Sequence =
  | 'api_keys'
  | 'apps'
  | 'audit_events'
  | 'byok_credentials'
  | 'guardrails'
  | 'guardrail_assignments'
  | 'organization_members'
  | 'workspaces'
  | 'workspace_members';

/**
 * The first of `count` new numbers of a sequence. No number is assigned twice. Other transactions that need one wait until
 * this one ends, so the order of numbers is the order of commits.
 */
export async function nextNumber(tx: Queries, sequence: Sequence, count = 1): Promise<number> {
  const { value } = await tx
    .insertInto('counters')
    .values({ name: sequence, value: count })
    .onConflict((conflict) => conflict.column('name').doUpdateSet({ value: sql`counters.value + ${count}` }))
    .returning('value')
    .executeTakeFirstOrThrow();
  return value - count + 1;
}
