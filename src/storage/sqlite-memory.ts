import { DatabaseSync } from 'node:sqlite';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { DATABASE_STATEMENTS_MAX, type SqliteCommand, SqliteError, type SqliteStore } from './sqlite-driver.ts';
import type { SqliteOutcome } from './sqlite-messages.ts';
import { requestsOn } from './sqlite-requests.js';
import { SqliteStatements } from './sqlite-statements.js';
import { StoreUnavailable } from './unavailable.ts';

/** An empty store of this version. */
let migrated: Uint8Array | undefined;

interface SqliteMemory extends SqliteStore {
  /** After the migrations, before anything is written: later stores of this process begin as its copy. */
  keepMigrated(): void;
}

/** A store in memory, in this thread. Its answers are copies and arrive in a later turn, like those of the SQLite thread. */
export function openSqliteMemory(): SqliteMemory {
  const database = new DatabaseSync(':memory:');
  // The migrations take longer than most tests.
  if (migrated !== undefined) database.deserialize(migrated);
  const only = { database, statements: new SqliteStatements(database, DATABASE_STATEMENTS_MAX) };
  const execute = requestsOn({ read: only, write: only });
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
    keepMigrated() {
      migrated ??= database.serialize();
    },
    async close() {
      if (isClosed) return;
      const closed = run({ do: 'close' });
      isClosed = true;
      await closed;
    },
  };
}
