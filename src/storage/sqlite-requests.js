// Plain JavaScript: the thread does not load the type stripper, which saves 18 MB.

/** Runs requests on SQLite, one after another. The driver decides who may use the write connection. */
import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { SqliteStatements } from './sqlite-statements.js';

/** @import { SqliteFailure, SqliteOutcome, SqliteReply, SqliteRequest, SqliteWorkerOptions } from './sqlite-messages.ts' */
/** @typedef {{ database: DatabaseSync; statements: SqliteStatements }} Connection */
/** @typedef {{ read: Connection; write: Connection }} Connections */

/**
 * Switches to WAL, which needs exclusive access for a moment and does not always wait by itself. Returns the journal mode.
 *
 * @param {DatabaseSync} database
 * @param {number} busyMs
 */
function enterWal(database, busyMs) {
  const deadline = Date.now() + busyMs;
  for (;;) {
    try {
      return String(database.prepare('PRAGMA journal_mode = WAL').get()?.['journal_mode']);
    } catch (error) {
      // SQLITE_CORRUPT 11 and SQLITE_NOTADB 26 (sqlite.org/rescode.html): waiting does not help.
      const { errcode = 0 } = /** @type {{ errcode?: number }} */ (error);
      const code = errcode & 0xff;
      if (code === 11 || code === 26 || Date.now() > deadline) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
    }
  }
}

/**
 * @param {SqliteWorkerOptions} options
 * @returns {Connections}
 */
function open(options) {
  /** @type {(readOnly: boolean) => Connection} */
  const connect = (readOnly) => {
    const database = new DatabaseSync(options.file, { timeout: options.busy_ms, readOnly });
    return { database, statements: new SqliteStatements(database, options.statements_max) };
  };
  mkdirSync(dirname(options.file), { recursive: true });
  const write = connect(false);
  // Takes effect for a new file only. A generation takes about 2 KB: pages of twice the usual size halve the writes of a flush.
  write.database.exec('PRAGMA page_size = 8192');
  const mode = enterWal(write.database, options.busy_ms);
  if (mode !== 'wal') {
    throw new Error(
      `SQLite cannot use a write-ahead log for ${options.file} (journal mode "${mode}"); is the disk local?`,
    );
  }
  write.database.exec('PRAGMA synchronous = FULL');
  // KiB. A batch of many keys changes a page for each of them: the usual 2 MB would be written and read again within the batch.
  write.database.exec('PRAGMA cache_size = -8000');
  return { write, read: connect(true) };
}

/**
 * @param {unknown} error
 * @returns {SqliteFailure}
 */
function failure(error) {
  const { message, code, errcode, sql } = /** @type {Partial<SqliteFailure>} */ (error);
  return { message: message ?? String(error), code, errcode, sql };
}

/**
 * Opens the file; throws SQLite's error. Returns what runs requests on it.
 *
 * @param {SqliteWorkerOptions} options
 */
export function openSqlite(options) {
  return requestsOn(open(options));
}

/**
 * What runs requests on open connections, of which `read` and `write` may be the same.
 *
 * @param {Connections} connections
 * @returns {(request: SqliteRequest) => SqliteReply}
 */
export function requestsOn({ read, write }) {
  /** @type {SqliteOutcome} */
  const nothing = { rows: [], changes: undefined };
  /** @type {(request: SqliteRequest) => SqliteOutcome} */
  const run = (request) => {
    switch (request.do) {
      case 'query':
        return (request.connection === 'read' ? read : write).statements.query(request.sql, request.parameters);
      case 'transact':
        return { rows: write.statements.transact(request.steps), changes: undefined };
      case 'reset':
        if (write.database.isTransaction) write.database.exec('ROLLBACK');
        return nothing;
      case 'close':
        if (read !== write) read.database.close();
        write.database.close();
        return nothing;
    }
  };
  return (request) => {
    try {
      return { id: request.id, ...run(request) };
    } catch (error) {
      return { id: request.id, error: failure(error) };
    }
  };
}
