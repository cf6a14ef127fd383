import { recordOf } from '../ledger/journal/record-values.ts';
import type { GenerationRecord } from '../ledger/records.ts';
import type { Queries } from './database.ts';

/** Generation records at rest. The ledger writes them; here they are read. */
export function generationStore(queries: Queries) {
  return {
    /** A generation of this organization; another organization's is not found. */
    findById: async ({
      organization_id,
      id,
    }: {
      organization_id: string;
      id: string;
    }): Promise<GenerationRecord | undefined> => {
      const row = await queries
        .selectFrom('ledger_generations')
        .select('record')
        .where('id', '=', id)
        .where('organization_id', '=', organization_id)
        .executeTakeFirst();
      return row && recordOf(row.record);
    },
  };
}
