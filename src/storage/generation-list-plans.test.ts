/** The indexes that lists of generations use in SQLite. PostgreSQL chooses by statistics, which an empty table lacks. */
import type { CompiledQuery } from 'kysely';
import { expect, onTestFinished, test } from 'vitest';
import { openDatabase } from './database.ts';
import { type GenerationFilter, generationLists } from './generation-lists.ts';

const FILTERS: readonly [Partial<GenerationFilter>, index: string][] = [
  [{}, 'ledger_generations_time'],
  [{ key_hash: 'k' }, 'ledger_generations_key'],
  [{ workspace_id: 'w' }, 'ledger_generations_workspace'],
  [{ model: 'm' }, 'ledger_generations_model'],
  [{ user_id: 'u' }, 'ledger_generations_user'],
  [{ app: 'a' }, 'ledger_generations_app'],
  [{ session_id: 's' }, 'ledger_generations_sessions?'],
  [{ key_hash: 'k', provider_name: 'p' }, 'ledger_generations_key'],
  [{ user_id: 'u', workspace_id: 'w' }, 'ledger_generations_user'],
];

test('a list with an indexed filter reads the index, starts at the cursor and keeps its order', async () => {
  const database = await openDatabase({});
  onTestFinished(() => database.close());
  const after = { created_at: '2026-11-21T10:00:00.000Z', id: 'g' };
  for (const [filter, index] of FILTERS) {
    const plan = await database.queries.connection().execute(async (connection) => {
      const sent: CompiledQuery[] = [];
      const executor = connection.getExecutor();
      const compile = executor.compileQuery.bind(executor);
      executor.compileQuery = (...args) => {
        const query = compile(...args);
        sent.push(query as CompiledQuery);
        return query;
      };
      await generationLists(connection).list({ organization_id: 'o', ...filter }, { limit: 10, order: 'desc', after });
      const { rows } = await connection.executeQuery({ ...sent[0]!, sql: `EXPLAIN QUERY PLAN ${sent[0]!.sql}` });
      return JSON.stringify(rows);
    });
    expect([filter, plan]).toEqual([filter, expect.stringMatching(new RegExp(`${index}\\b`))]);
    // The order by time comes from the index; only rows of one time are sorted.
    expect([filter, plan]).not.toEqual([filter, expect.stringContaining('TEMP B-TREE FOR ORDER BY')]);
  }
});
