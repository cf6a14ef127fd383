import { write, writeSync } from 'node:fs';
import pino, { type Logger as PinoLogger } from 'pino';
import { GatewayError } from '../errors.ts';

/** Log lines are written when this many characters have gathered, or after this time. */
const LOG_GATHER_CHARS = 64 * 1024;
export const LOG_GATHER_MS_MAX = 100;
/**
 * Characters of lines that wait while standard output accepts none (further lines are lost), and how long an ending process tries
 * to write its last lines.
 */
const LOG_WAITING_CHARS_MAX = 8 * 1024 * 1024;
const LOG_STOP_MS_MAX = 2_000;

/** A provider's error code. Anything else in that place may be any text and is not logged. */
const CODE = /^[\w.:-]{1,100}$/;

/**
 * The logged form of an error: its type and origin, not its contents (headers, bodies, credentials). The message of a
 * provider's failure is omitted: providers quote prompts and keys.
 */
function describeError(error: unknown): unknown {
  if (!(error instanceof Error)) return String(error);
  const { code, failure, status, native_code, transport_code } = error as Error & Record<string, unknown>;
  // A failure to read an answer quotes it, as `JSON.parse` does.
  const isQuoting = failure === 'invalid_response';
  const cause = error.cause === undefined || isQuoting ? {} : { cause: describeError(error.cause) };
  if (typeof failure === 'string') {
    const native = typeof native_code === 'string' && CODE.test(native_code) ? { native_code } : {};
    const transport = typeof transport_code === 'string' && CODE.test(transport_code) ? { transport_code } : {};
    return { type: error.name, failure, upstream_status: status, ...native, ...transport, ...cause };
  }
  return {
    type: error.name,
    message: error.message,
    ...(typeof code === 'string' ? { code } : {}),
    // The message says what was refused. A stack adds nothing, and takes longer to format than the refusal of an overloaded gateway.
    ...(error instanceof GatewayError ? {} : { stack: error.stack }),
    ...cause,
  };
}

/** The fields of the line that every request has. */
export interface RequestFacts {
  request_id: string;
  method: string;
  path: string;
  status: number;
  ms: number;
  key_id: number | null;
  [fact: string]: unknown;
}

/** The fields of an object as JSON without its braces, each after a comma. */
function members(object: object): string {
  const text = JSON.stringify(object);
  return text === '{}' ? '' : `,${text.slice(1, -1)}`;
}

/** pino's logger, with a faster method for the line of each request. */
export interface Logger extends PinoLogger {
  /** `more`: further fields, those of its calls. */
  request(facts: RequestFacts, more?: Record<string, unknown>): void;
}

/** Receives the lines of a log. */
export interface Destination {
  write(line: string): void;
}

const NOTHING = Buffer.alloc(0);

/**
 * Standard output, written in large pieces, so that the system is called seldom. If it accepts nothing (a file on a full disk,
 * a slow reader), lines wait, up to a limit, and no other work waits. pino's own destination would never let the process end then.
 */
export function standardOutput(): Destination {
  // Node's stream makes the pipe non-blocking: a write that waited for room would keep the process from ending.
  Reflect.get(process, 'stdout');
  let lines = '';
  /** The lines that are being written, or were not accepted yet. */
  let piece: Buffer = NOTHING;
  let writing = false;
  let isClosed = false;
  let timer: NodeJS.Timeout | undefined;
  const flushLater = () => {
    timer ??= setTimeout(flush, LOG_GATHER_MS_MAX).unref();
  };
  const take = () => {
    piece = piece.length === 0 ? Buffer.from(lines) : Buffer.concat([piece, Buffer.from(lines)]);
    lines = '';
  };
  const flush = () => {
    clearTimeout(timer);
    timer = undefined;
    if (writing) return;
    take();
    if (piece.length === 0) return;
    writing = true;
    write(1, piece, (error, written) => {
      writing = false;
      if (error?.code === 'EPIPE') {
        isClosed = true;
        piece = NOTHING;
        lines = '';
        return;
      }
      piece = piece.subarray(error ? 0 : written);
      if (piece.length === 0 && lines.length >= LOG_GATHER_CHARS) flush();
      else if (piece.length > 0 || lines !== '') flushLater();
    });
  };
  process.on('exit', () => {
    // The system completes a write that has begun.
    if (writing) piece = NOTHING;
    take();
    const until = performance.now() + LOG_STOP_MS_MAX;
    for (let done = 0; done < piece.length; ) {
      try {
        done += writeSync(1, piece, done);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EAGAIN' || performance.now() > until) return;
      }
    }
  });
  return {
    write(line) {
      if (isClosed || piece.length + lines.length > LOG_WAITING_CHARS_MAX) return;
      lines += line;
      if (lines.length >= LOG_GATHER_CHARS && piece.length === 0) flush();
      else flushLater();
    },
  };
}

/** The time as text, formatted once for each millisecond. */
function createIsoTime(): () => string {
  let atMs = 0;
  let text = '';
  return () => {
    const nowMs = Date.now();
    if (nowMs !== atMs) {
      atMs = nowMs;
      text = `,"time":"${new Date(nowMs).toISOString()}"`;
    }
    return text;
  };
}

/**
 * The process's log: JSON lines on standard output, gathered for a moment. It must not contain content or secrets: callers
 * name the fields that they write, and errors are reduced by `describeError`.
 */
export function createLog(level: string, destination: Destination = standardOutput()): Logger {
  const timestamp = createIsoTime();
  const log = pino(
    {
      level,
      base: null,
      timestamp,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: describeError },
    },
    destination,
  );
  return Object.assign(log, {
    // The same line as of `log.info(facts, 'request')` in half the time: there is one for each request.
    request(facts: RequestFacts, more?: Record<string, unknown>) {
      if (!log.isLevelEnabled('info')) return;
      const others = more === undefined ? '' : members(more);
      destination.write(`{"level":"info"${timestamp()}${members(facts)}${others},"msg":"request"}\n`);
    },
  });
}
