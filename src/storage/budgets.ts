import type { Budget } from '../schemas/budget.ts';
import type { Queries } from './database.ts';

/** Limits in force, and what was spent under them. Whatever sets a limit keeps it here in step, in the same transaction. */
export function budgetStore(queries: Queries) {
  return {
    /** The budgets that requests of these subjects count against, in one order. */
    findBySubjects: async (subjects: readonly string[]): Promise<Budget[]> => {
      const rows = await queries
        .selectFrom('ledger_budgets')
        .select(['id', 'scope', 'label', 'reset_interval', 'limit_nano', 'include_byok'])
        .where('subject', 'in', [...subjects])
        .where('limit_nano', 'is not', null)
        .orderBy('id')
        .execute();
      // The columns' CHECKs name the values that TypeScript cannot know.
      return rows as Budget[];
    },
  };
}

export type BudgetStore = ReturnType<typeof budgetStore>;
