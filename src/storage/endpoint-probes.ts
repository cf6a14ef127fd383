import type { Database } from './database.ts';
import type { Queries } from './queries.ts';
import { storeNow } from './store-now.ts';

/** Coordinates the processes of the gateway: which one probes an endpoint, and when. */
export function endpointProbeStore(queries: Queries, engine: Database['engine']) {
  return {
    /** Whether the caller may probe the endpoint now; then no process may again for `everyMs`. `at`: as for statistics. */
    claim: async (endpointId: string, everyMs: number, at: number): Promise<boolean> => {
      const { now } = await queries.selectNoFrom(storeNow(engine, at).as('now')).executeTakeFirstOrThrow();
      const claimed = await queries
        .insertInto('endpoint_probes')
        .values({ endpoint_id: endpointId, probed_at: now })
        .onConflict((conflict) =>
          conflict
            .column('endpoint_id')
            .doUpdateSet({ probed_at: now })
            // A time far in the future is of a wrong clock.
            .where(({ eb, or }) =>
              or([
                eb('endpoint_probes.probed_at', '<=', now - everyMs),
                eb('endpoint_probes.probed_at', '>', now + everyMs),
              ]),
            ),
        )
        .returning('endpoint_id')
        .executeTakeFirst();
      return claimed !== undefined;
    },

    /** Deletes endpoints that were not probed since `before`. */
    sweep: async (before: number): Promise<void> => {
      await queries.deleteFrom('endpoint_probes').where('probed_at', '<', before).execute();
    },
  };
}
