/**
 * The thread that owns the SQLite file, so that the serving event loop never waits for a commit or a long query.
 * It does what it is told, one message after another; who may use the write connection when is the driver's business.
 */
import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite';
import { parentPort, workerData } from 'node:worker_threads';

export interface SqliteWorkerOptions {
  /** Undefined: in memory. */
  file: string | undefined;
  busy_ms: number;
  statements_max: number;
}

export type SqliteRequest = { id: number } & (
  | { do: 'query'; connection: 'read' | 'write'; sql: string; parameters: readonly SQLInputValue[] }
  /** Ends a transaction that its owner could not end. */
  | { do: 'reset' }
  | { do: 'close' }
);

export interface SqliteFailure {
  message: string;
  code: string | undefined;
  /** SQLite's extended result code. */
  errcode: number | undefined;
}

export interface SqliteResult {
  rows: Record<string, unknown>[];
  /** Undefined where nothing was asked of a table. */
  changes: number | undefined;
}

export type SqliteReply = { id: number } & (SqliteResult | { error: SqliteFailure });

interface Prepared {
  statement: StatementSync;
  reads: boolean;
  booleans: string[];
  json: string[];
}

interface Connection {
  database: DatabaseSync;
  prepared: Map<string, Prepared>;
}

const options = workerData as SqliteWorkerOptions;

/** Switching to WAL needs the file alone for a moment and does not always wait by itself. */
function enterWal(database: DatabaseSync): string {
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

function open(): { read: Connection; write: Connection } {
  const connect = (readOnly: boolean): Connection => ({
    database: new DatabaseSync(options.file ?? ':memory:', { timeout: options.busy_ms, readOnly }),
    prepared: new Map(),
  });
  if (options.file === undefined) {
    const only = connect(false);
    return { read: only, write: only };
  }
  mkdirSync(dirname(options.file), { recursive: true });
  const write = connect(false);
  const mode = enterWal(write.database);
  if (mode !== 'wal') {
    throw new Error(
      `SQLite cannot use a write-ahead log for ${options.file} (journal mode "${mode}"); is the disk local?`,
    );
  }
  write.database.exec('PRAGMA synchronous = FULL');
  return { write, read: connect(true) };
}

function prepare(connection: Connection, sql: string): Prepared {
  const known = connection.prepared.get(sql);
  if (known) {
    connection.prepared.delete(sql);
    connection.prepared.set(sql, known);
    return known;
  }
  const statement = connection.database.prepare(sql);
  const columns = statement.columns();
  const declared = (type: string) => columns.filter((column) => column.type === type).map((column) => column.name);
  const fresh = { statement, reads: columns.length > 0, booleans: declared('BOOLEAN'), json: declared('JSON') };
  connection.prepared.set(sql, fresh);
  const [oldest] = connection.prepared.keys();
  if (connection.prepared.size > options.statements_max && oldest !== undefined) connection.prepared.delete(oldest);
  return fresh;
}

function query(connection: Connection, sql: string, parameters: readonly SQLInputValue[]): SqliteResult {
  const { statement, reads, booleans, json } = prepare(connection, sql);
  if (!reads) return { rows: [], changes: Number(statement.run(...parameters).changes) };
  const rows = statement.all(...parameters) as Record<string, unknown>[];
  for (const row of rows) {
    for (const name of booleans) if (row[name] !== null) row[name] = row[name] === 1;
    for (const name of json) if (row[name] !== null) row[name] = JSON.parse(String(row[name]));
  }
  return { rows, changes: rows.length };
}

function failure(error: unknown): SqliteFailure {
  const { message, code, errcode } = error as { message?: string; code?: string; errcode?: number };
  return { message: message ?? String(error), code, errcode };
}

function serve(): void {
  const port = parentPort;
  if (!port) throw new Error('sqlite-worker runs in a worker thread only');
  const { read, write } = open();
  const nothing: SqliteResult = { rows: [], changes: undefined };
  const run = (request: SqliteRequest): SqliteResult => {
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
  const answer = (request: SqliteRequest): SqliteReply => {
    try {
      return { id: request.id, ...run(request) };
    } catch (error) {
      return { id: request.id, error: failure(error) };
    }
  };
  port.on('message', (request: SqliteRequest) => port.postMessage(answer(request)));
  port.postMessage({ id: 0, ...nothing } satisfies SqliteReply);
}

serve();
