import pino, { type Logger } from 'pino';
import { limits } from '../limits.ts';

export type { Logger };

/** A provider's own code for a failure; what does not look like a code may be anything. */
const CODE = /^[\w.:-]{1,100}$/;

/**
 * What is written of an error: what it is and where it came from, not what it carries (headers, bodies, credentials). A
 * provider's failure is written without its words: providers quote prompts and keys.
 */
function describeError(error: unknown): unknown {
  if (!(error instanceof Error)) return String(error);
  const { code, failure, status, native_code } = error as Error & Record<string, unknown>;
  const cause = error.cause === undefined ? {} : { cause: describeError(error.cause) };
  if (typeof failure === 'string') {
    const told = typeof native_code === 'string' && CODE.test(native_code) ? { native_code } : {};
    return { type: error.name, failure, upstream_status: status, ...told, ...cause };
  }
  return {
    type: error.name,
    message: error.message,
    ...(typeof code === 'string' ? { code } : {}),
    stack: error.stack,
    ...cause,
  };
}

/**
 * The process's log: JSON lines on standard output, gathered for a moment. Content and secrets are not for it: callers
 * name the fields they write, and of errors only `describeError` gets through.
 */
export function createLog(level: string, destination?: { write(line: string): void }): Logger {
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: describeError },
    },
    destination ??
      pino.destination({
        fd: 1,
        sync: false,
        minLength: limits.log_gather_bytes,
        periodicFlush: limits.log_gather_ms_max,
      }),
  );
}
