import type { Queries } from '../../src/storage/queries.ts';
import { settledOf } from '../../src/storage/settled.ts';

/** All windows in the order of their budgets. The settled parts of leases count as spent. */
export function windowSums(queries: Queries) {
  return queries
    .selectFrom('ledger_windows')
    .select(['budget_id', 'window_start'])
    .select((eb) => [
      eb('spent', '+', settledOf('ledger_windows')).as('spent'),
      eb('leased', '-', settledOf('ledger_windows')).as('leased'),
    ])
    .orderBy('budget_id')
    .orderBy('window_start');
}
