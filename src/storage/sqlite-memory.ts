import { setImmediate as turn } from 'node:timers/promises';
import { type Ask, SqliteError, type SqliteStore, sqliteOptions } from './sqlite-driver.ts';
import type { SqliteOutcome } from './sqlite-messages.ts';
import { openSqlite } from './sqlite-requests.js';
import { StoreUnavailable } from './unavailable.ts';

/** A store in memory, in this thread: none of its statements waits for a disk. Its answers are copies and come in a later turn, as those of a thread do. */
export function openSqliteMemory(): SqliteStore {
  const answer = openSqlite(sqliteOptions(undefined));
  let is_closed = false;
  async function ask(request: Ask): Promise<SqliteOutcome> {
    if (is_closed) throw new StoreUnavailable('The store is closed');
    await turn();
    const reply = structuredClone(answer({ id: 0, ...request }));
    if ('error' in reply)
      throw new SqliteError(reply.error, reply.error.sql ?? (request.do === 'query' ? request.sql : undefined));
    return reply;
  }
  return {
    ask,
    async close() {
      if (is_closed) return;
      const closed = ask({ do: 'close' });
      is_closed = true;
      await closed;
    },
  };
}
