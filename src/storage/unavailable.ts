/** The store cannot be used at the moment: no connection, an ended thread, or a writer before this one that does not finish. */
export class StoreUnavailable extends Error {
  override readonly name = 'StoreUnavailable';
}

/** The result of `work`; rejects with `StoreUnavailable` if it takes longer than `msMax`. */
export async function inTime<T>(work: Promise<T>, msMax: number): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new StoreUnavailable(`The store did not answer within ${msMax} ms`)), msMax);
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

// Primary result codes BUSY, LOCKED, IOERR and FULL (https://www.sqlite.org/rescode.html).
const SQLITE: ReadonlySet<number> = new Set([5, 6, 10, 13]);
// Connection exceptions, a read-only server, insufficient resources, a statement timeout, a server that shuts
// down or starts (PostgreSQL, appendix A).
const POSTGRES = /^(?:08...|25006|53...|57014|57P0[123])$/;
/** The codes of a connection that broke during a statement; the messages of pg's client.js have no code. */
const BROKEN = /^(?:ECONNRESET|ETIMEDOUT|EPIPE)$/;
const BROKEN_TEXT = /^(?:Query read timeout|Connection terminated|Client has encountered a connection error)/;

// Data exceptions, a missing value, a failed check, a limit of the server (the size of a row of an index), a value of another type.
const POSTGRES_DATA = /^(?:22...|23502|23514|54...|42804)$/;
// Primary result codes TOOBIG, CONSTRAINT, MISMATCH and RANGE.
const SQLITE_DATA: ReadonlySet<number> = new Set([18, 19, 20, 25]);
/** The thread of SQLite and its driver take no functions and no objects as values. */
const BINDING = /^(?:DataCloneError|ERR_INVALID_ARG_TYPE|ERR_OUT_OF_RANGE)$/;

/** Whether the data of a statement are at fault, so that it fails each time. */
export function isDataFault(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  // The query builder takes a function for an expression.
  if (error instanceof TypeError) return true;
  const { name, code, errcode } = error as { name: string; code?: unknown; errcode?: unknown };
  if (typeof errcode === 'number') return SQLITE_DATA.has(errcode % 256);
  return BINDING.test(name) || (typeof code === 'string' && (POSTGRES_DATA.test(code) || BINDING.test(code)));
}

/** Whether a query failed for a reason that has nothing to do with the query, so that it may succeed later. */
export function isUnavailable(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (error instanceof StoreUnavailable) return true;
  const { code, errcode } = error as { code?: unknown; errcode?: unknown };
  // The low byte; the others give details of the same error.
  if (typeof errcode === 'number') return SQLITE.has(errcode % 256);
  if (typeof code === 'string') return POSTGRES.test(code) || BROKEN.test(code);
  return BROKEN_TEXT.test(error.message);
}
