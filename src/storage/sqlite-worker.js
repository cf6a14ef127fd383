// Plain JavaScript: a thread that never sees TypeScript does not load the type stripper, which saves 18 MB.

/**
 * The thread that owns the SQLite file, so that the serving event loop never waits for a commit or a long query.
 * It does what it is told, one message after another; who may use the write connection when is the driver's business.
 */
import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { parentPort, workerData } from 'node:worker_threads';

/** @import { SQLInputValue, StatementSync } from 'node:sqlite' */
/** @import { SqliteFailure, SqliteReply, SqliteRequest, SqliteResult, SqliteWorkerOptions } from './sqlite-messages.ts' */
/** @typedef {{ statement: StatementSync; reads: boolean; booleans: string[]; json: string[] }} Prepared */
/** @typedef {{ database: DatabaseSync; prepared: Map<string, Prepared> }} Connection */

const options = /** @type {SqliteWorkerOptions} */ (workerData);

/**
 * Switching to WAL needs the file alone for a moment and does not always wait by itself.
 *
 * @param {DatabaseSync} database
 */
function enterWal(database) {
  const deadline = Date.now() + options.busy_ms;
  for (;;) {
    try {
      return String(database.prepare('PRAGMA journal_mode = WAL').get()?.['journal_mode']);
    } catch (error) {
      if (Date.now() > deadline) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
    }
  }
}

function open() {
  /** @type {(readOnly: boolean) => Connection} */
  const connect = (readOnly) => ({
    database: new DatabaseSync(options.file ?? ':memory:', { timeout: options.busy_ms, readOnly }),
    prepared: new Map(),
  });
  if (options.file === undefined) {
    const only = connect(false);
    return { read: only, write: only };
  }
  mkdirSync(dirname(options.file), { recursive: true });
  const write = connect(false);
  // Of a new file only. A generation takes about 2 KB: pages of twice the usual size cut the writes of a flush in half.
  write.database.exec('PRAGMA page_size = 8192');
  const mode = enterWal(write.database);
  if (mode !== 'wal') {
    throw new Error(
      `SQLite cannot use a write-ahead log for ${options.file} (journal mode "${mode}"); is the disk local?`,
    );
  }
  write.database.exec('PRAGMA synchronous = FULL');
  return { write, read: connect(true) };
}

/**
 * @param {Connection} connection
 * @param {string} sql
 * @returns {Prepared}
 */
function prepare(connection, sql) {
  const known = connection.prepared.get(sql);
  if (known) {
    connection.prepared.delete(sql);
    connection.prepared.set(sql, known);
    return known;
  }
  const statement = connection.database.prepare(sql);
  const columns = statement.columns();
  const declared = (/** @type {string} */ type) =>
    columns.filter((column) => column.type === type).map((column) => column.name);
  const fresh = { statement, reads: columns.length > 0, booleans: declared('BOOLEAN'), json: declared('JSON') };
  connection.prepared.set(sql, fresh);
  const [oldest] = connection.prepared.keys();
  if (connection.prepared.size > options.statements_max && oldest !== undefined) connection.prepared.delete(oldest);
  return fresh;
}

/**
 * @param {Connection} connection
 * @param {string} sql
 * @param {readonly SQLInputValue[]} parameters
 * @returns {SqliteResult}
 */
function query(connection, sql, parameters) {
  const { statement, reads, booleans, json } = prepare(connection, sql);
  if (!reads) return { rows: [], changes: Number(statement.run(...parameters).changes) };
  const rows = /** @type {Record<string, unknown>[]} */ (statement.all(...parameters));
  for (const row of rows) {
    for (const name of booleans) if (row[name] !== null) row[name] = row[name] === 1;
    for (const name of json) if (row[name] !== null) row[name] = JSON.parse(String(row[name]));
  }
  return { rows, changes: rows.length };
}

/**
 * @param {unknown} error
 * @returns {SqliteFailure}
 */
function failure(error) {
  const { message, code, errcode } = /** @type {{ message?: string; code?: string; errcode?: number }} */ (error);
  return { message: message ?? String(error), code, errcode };
}

function serve() {
  const port = parentPort;
  if (!port) throw new Error('sqlite-worker runs in a worker thread only');
  const { read, write } = open();
  /** @type {SqliteResult} */
  const nothing = { rows: [], changes: undefined };
  /** @type {(request: SqliteRequest) => SqliteResult} */
  const run = (request) => {
    switch (request.do) {
      case 'query':
        return query(request.connection === 'read' ? read : write, request.sql, request.parameters);
      case 'reset':
        if (write.database.isTransaction) write.database.exec('ROLLBACK');
        return nothing;
      case 'close':
        if (read !== write) read.database.close();
        write.database.close();
        return nothing;
    }
  };
  /** @type {(request: SqliteRequest) => SqliteReply} */
  const answer = (request) => {
    try {
      return { id: request.id, ...run(request) };
    } catch (error) {
      return { id: request.id, error: failure(error) };
    }
  };
  port.on('message', (/** @type {SqliteRequest} */ request) => port.postMessage(answer(request)));
  port.postMessage(/** @type {SqliteReply} */ ({ id: 0, ...nothing }));
}

serve();
