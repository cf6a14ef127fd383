import { recordOf } from '../ledger/journal/record-values.ts';
import type { GenerationRecord } from '../ledger/records.ts';
import type { Queries } from './queries.ts';

/** Stored generation records. The ledger writes them; this store reads them. */
export function generationStore(queries: Queries) {
  return {
    /** A generation of this organization; undefined for those of others. */
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
