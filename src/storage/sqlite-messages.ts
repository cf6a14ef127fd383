import type { SQLInputValue } from 'node:sqlite';

/** What the serving thread and the thread that owns the SQLite file say to each other. */
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
