import { sql } from 'kysely';
import type { GenerationPlace } from './generation-lists.ts';
import type { Queries } from './queries.ts';

/** Calls that one query examines for the last ones of their sessions. */
const EXAMINED_CALLS_MAX = 10_000;

/** The calls with one session id, as far as the filter shows them. Money is nano-USD. */
export interface GenerationSession {
  session_id: string;
  count: number;
  failed: number;
  first_at: string;
  last_at: string;
  cost_nano: number;
  /** The most called first. */
  models: string[];
}

export interface SessionFilter {
  organization_id: string;
  user_id?: string | undefined;
  from?: string | undefined;
  to?: string | undefined;
}

/** Sessions of calls, which clients name in `session_id`. */
export function generationSessions(queries: Queries) {
  return {
    /** The sessions whose last calls are in a time range, the latest first. Each is summed over all its calls. */
    list: async (
      filter: SessionFilter,
      { limit, after }: { limit: number; after?: GenerationPlace | undefined },
    ): Promise<{ sessions: GenerationSession[]; next: GenerationPlace | undefined }> => {
      const { organization_id, user_id, from, to } = filter;
      const visible = (table: string) =>
        user_id === undefined ? sql`` : sql`AND ${sql.ref(`${table}.user_id`)} = ${user_id}`;
      const rows = sql`FROM ledger_generations AS g WHERE g.organization_id = ${organization_id} AND g.session_id IS NOT NULL
        ${visible('g')}
        ${from === undefined ? sql`` : sql`AND g.created_at >= ${from}`} ${to === undefined ? sql`` : sql`AND g.created_at < ${to}`}
        ${after === undefined ? sql`` : sql`AND (g.created_at, g.id) < (${after.created_at}, ${after.id})`}
        ORDER BY g.created_at DESC, g.id DESC`;
      const { rows: last } = await sql<GenerationPlace & { session_id: string }>`
        SELECT g.created_at, g.id, g.session_id FROM (SELECT g.created_at, g.id, g.session_id ${rows} LIMIT ${EXAMINED_CALLS_MAX}) AS g
        WHERE NOT EXISTS (SELECT 1 FROM ledger_generations AS l WHERE l.organization_id = ${organization_id}
          AND l.session_id IS NOT NULL AND l.session_id = g.session_id AND (l.created_at, l.id) > (g.created_at, g.id)
          ${visible('l')})
        ORDER BY g.created_at DESC, g.id DESC LIMIT ${limit}`.execute(queries);
      let next: GenerationPlace | undefined = last.at(-1);
      if (last.length < limit) {
        const end =
          await sql<GenerationPlace>`SELECT g.created_at, g.id ${rows} LIMIT 1 OFFSET ${EXAMINED_CALLS_MAX - 1}`.execute(
            queries,
          );
        next = end.rows[0];
      }
      if (last.length === 0) return { sessions: [], next };
      const { rows: sums } = await sql<{
        session_id: string;
        model: string | null;
        count: number;
        failed: number;
        first_at: string;
        last_at: string;
        cost: number;
      }>`SELECT g.session_id, g.model, COUNT(*) AS count, COUNT(*) FILTER (WHERE g.outcome <> 'completed') AS failed,
          MIN(g.created_at) AS first_at, MAX(g.created_at) AS last_at,
          CAST(SUM(g.cost + COALESCE(a.amount, 0)) AS BIGINT) AS cost
        FROM ledger_generations AS g LEFT JOIN ledger_adjustments AS a ON a.id = g.id || ':usage'
        WHERE g.organization_id = ${organization_id} AND g.session_id IS NOT NULL
          AND g.session_id IN (${sql.join(last.map(({ session_id }) => session_id))}) ${visible('g')}
        GROUP BY g.session_id, g.model`.execute(queries);
      const bySession = Map.groupBy(sums, ({ session_id }) => session_id);
      const sessions = last.map(({ session_id }): GenerationSession => {
        const parts = (bySession.get(session_id) ?? []).sort((a, b) => b.count - a.count);
        const sum = (of: 'count' | 'failed' | 'cost') => parts.reduce((total, part) => total + part[of], 0);
        return {
          session_id,
          count: sum('count'),
          failed: sum('failed'),
          first_at: parts.map((part) => part.first_at).sort()[0] ?? '',
          last_at:
            parts
              .map((part) => part.last_at)
              .sort()
              .at(-1) ?? '',
          cost_nano: sum('cost'),
          models: parts.flatMap(({ model }) => model ?? []),
        };
      });
      return { sessions, next };
    },
  };
}

export type GenerationSessions = ReturnType<typeof generationSessions>;
