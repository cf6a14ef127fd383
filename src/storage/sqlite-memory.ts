import { setImmediate as nextTurn } from 'node:timers/promises';
import { type SqliteCommand, SqliteError, type SqliteStore, sqliteOptions } from './sqlite-driver.ts';
import type { SqliteOutcome } from './sqlite-messages.ts';
import { openSqlite } from './sqlite-requests.js';
import { StoreUnavailable } from './unavailable.ts';

/** A store in memory, in this thread. Its answers are copies and arrive in a later turn, like those of the SQLite thread. */
export function openSqliteMemory(): SqliteStore {
  const execute = openSqlite(sqliteOptions(undefined));
  let isClosed = false;
  async function run(command: SqliteCommand): Promise<SqliteOutcome> {
    if (isClosed) throw new StoreUnavailable('The store is closed');
    await nextTurn();
    const reply = structuredClone(execute({ id: 0, ...command }));
    if ('error' in reply)
      throw new SqliteError(reply.error, reply.error.sql ?? (command.do === 'query' ? command.sql : undefined));
    return reply;
  }
  return {
    run,
    async close() {
      if (isClosed) return;
      const closed = run({ do: 'close' });
      isClosed = true;
      await closed;
    },
  };
}
