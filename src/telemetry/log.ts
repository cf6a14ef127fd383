import pino, { type Logger } from 'pino';

export type { Logger };

/** What is written of an error: what it is and where it came from, not what it carries (headers, bodies, credentials). */
function describeError(error: unknown): unknown {
  if (!(error instanceof Error)) return String(error);
  const { code } = error as { code?: unknown };
  return {
    type: error.name,
    message: error.message,
    ...(typeof code === 'string' ? { code } : {}),
    stack: error.stack,
    ...(error.cause === undefined ? {} : { cause: describeError(error.cause) }),
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
    destination ?? pino.destination({ fd: 1, sync: false, minLength: 4_096, periodicFlush: 100 }),
  );
}
