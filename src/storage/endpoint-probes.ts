import type { Database, Queries } from './database.ts';
import { storeNow } from './store-now.ts';

/** Who of all processes probes an endpoint, and when. */
export function endpointProbeStore(queries: Queries, engine: Database['engine']) {
  return {
    /** Whether the caller is the one that probes it now; nobody is again before so long. `at`: as for statistics. */
    claim: async (endpoint_id: string, every_ms: number, at: number): Promise<boolean> => {
      const { now } = await queries.selectNoFrom(storeNow(engine, at).as('now')).executeTakeFirstOrThrow();
      const claimed = await queries
        .insertInto('endpoint_probes')
        .values({ endpoint_id, probed_at: now })
        .onConflict((conflict) =>
          conflict
            .column('endpoint_id')
            .doUpdateSet({ probed_at: now })
            // One of a time that is far to come is of a clock that was wrong.
            .where(({ eb, or }) =>
              or([
                eb('endpoint_probes.probed_at', '<=', now - every_ms),
                eb('endpoint_probes.probed_at', '>', now + every_ms),
              ]),
            ),
        )
        .returning('endpoint_id')
        .executeTakeFirst();
      return claimed !== undefined;
    },

    /** Forgets endpoints that nobody probed since a moment. */
    sweep: async (before: number): Promise<void> => {
      await queries.deleteFrom('endpoint_probes').where('probed_at', '<', before).execute();
    },
  };
}
