import type { SQLInputValue } from 'node:sqlite';

/** A value as other engines take it; the thread makes of it what SQLite takes. */
export type SqliteParameter = SQLInputValue | boolean | undefined;

/** A statement of a transaction that is one message: run once for each row of parameters. */
export interface SqliteStep {
  sql: string;
  rows: readonly (readonly SqliteParameter[])[];
  /** Each row changes one row, or answers one; else the transaction is rolled back. */
  must_change: boolean;
}

/** What the serving thread and the thread that owns the SQLite file say to each other. */
export interface SqliteWorkerOptions {
  /** Undefined: in memory. */
  file: string | undefined;
  busy_ms: number;
  statements_max: number;
}

export type SqliteRequest = { id: number } & (
  | { do: 'query'; connection: 'read' | 'write'; sql: string; parameters: readonly SqliteParameter[] }
  /** A whole transaction; its rows are the answers of each step. */
  | { do: 'transact'; steps: readonly SqliteStep[] }
  /** Ends a transaction that its owner could not end. */
  | { do: 'reset' }
  | { do: 'close' }
);

export interface SqliteFailure {
  message: string;
  code: string | undefined;
  /** SQLite's extended result code. */
  errcode: number | undefined;
  /** The statement of a transaction that failed. */
  sql: string | undefined;
}

export interface SqliteResult {
  rows: Record<string, unknown>[];
  /** Undefined where nothing was asked of a table. */
  changes: number | undefined;
}

export type SqliteOutcome = SqliteResult | { rows: SqliteResult['rows'][]; changes: undefined };

export type SqliteReply = { id: number } & (SqliteOutcome | { error: SqliteFailure });
