import { type RawBuilder, sql } from 'kysely';

/**
 * What nodes have settled of their leases of a window since they last raised it: part of its `leased`, not yet of its
 * `spent`. `windows`: the name of the windows' table in the statement.
 */
export function settledOf(windows: 'ledger_windows' | 'w'): RawBuilder<number> {
  return sql<number>`(SELECT CAST(COALESCE(SUM(s.settled), 0) AS BIGINT) FROM ledger_leases AS s
    WHERE s.budget_id = ${sql.ref(`${windows}.budget_id`)} AND s.window_start = ${sql.ref(`${windows}.window_start`)})`;
}
