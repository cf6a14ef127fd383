import type { SQLInputValue } from 'node:sqlite';

/** A parameter as other engines accept it; the thread converts it for SQLite. */
export type SqliteParameter = SQLInputValue | boolean | undefined;

/** A statement of a whole transaction: run once for each row of parameters. */
export interface SqliteStep {
  sql: string;
  rows: readonly (readonly SqliteParameter[])[];
  /** Each row must change or return one row; otherwise the transaction is rolled back. */
  must_change: boolean;
}

/** The options of the thread that owns the SQLite file. */
export interface SqliteWorkerOptions {
  file: string;
  busy_ms: number;
  statements_max: number;
}

export type SqliteRequest = { id: number } & (
  | { do: 'query'; connection: 'read' | 'write'; sql: string; parameters: readonly SqliteParameter[] }
  /** A whole transaction; the rows of the reply are the answers of each step. */
  | { do: 'transact'; steps: readonly SqliteStep[] }
  /** Rolls back a transaction that its owner could not end. */
  | { do: 'reset' }
  | { do: 'close' }
);

/** An error of SQLite, as the thread reports it. */
export interface SqliteFailure {
  message: string;
  code: string | undefined;
  /** SQLite's extended result code. */
  errcode: number | undefined;
  /** The statement of a transaction that failed. */
  sql: string | undefined;
}

/** The result of one statement. */
export interface SqliteResult {
  rows: Record<string, unknown>[];
  /** Undefined if the statement does not change tables. */
  changes: number | undefined;
}

export type SqliteOutcome = SqliteResult | { rows: SqliteResult['rows'][]; changes: undefined };

export type SqliteReply = { id: number } & (SqliteOutcome | { error: SqliteFailure });
