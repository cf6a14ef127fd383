/** The store cannot be asked at the moment: no connection, a thread that is gone, a writer before this one that does not end. */
export class StoreUnavailable extends Error {
  override readonly name = 'StoreUnavailable';
}

/** The work's result; rejects with `StoreUnavailable` where it takes longer. */
export async function inTime<T>(work: Promise<T>, ms_max: number): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new StoreUnavailable(`The store did not answer within ${ms_max} ms`)), ms_max);
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

// Primary result codes BUSY, LOCKED, IOERR and FULL (https://www.sqlite.org/rescode.html).
const SQLITE: ReadonlySet<number> = new Set([5, 6, 10, 13]);
// Connection exceptions, a server that only reads, insufficient resources, a statement that timed out, a server that shuts
// down or starts (PostgreSQL, appendix A).
const POSTGRES = /^(?:08...|25006|53...|57014|57P0[123])$/;
/** What Node and pg say of a connection that broke under a statement; the texts of pg's client.js have no code. */
const BROKEN = /^(?:ECONNRESET|ETIMEDOUT|EPIPE)$/;
const BROKEN_TEXT = /^(?:Query read timeout|Connection terminated|Client has encountered a connection error)/;

/** Whether a question to the store failed for a reason that has nothing to do with the question; it may work later. */
export function isUnavailable(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (error instanceof StoreUnavailable) return true;
  const { code, errcode } = error as { code?: unknown; errcode?: unknown };
  // The low byte; the others say more about the same.
  if (typeof errcode === 'number') return SQLITE.has(errcode % 256);
  if (typeof code === 'string') return POSTGRES.test(code) || BROKEN.test(code);
  return BROKEN_TEXT.test(error.message);
}
