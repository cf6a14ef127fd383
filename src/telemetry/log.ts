import { write, writeSync } from 'node:fs';
import pino, { type Logger as PinoLogger } from 'pino';
import { limits } from '../limits.ts';

/** A provider's own code for a failure; what does not look like a code may be anything. */
const CODE = /^[\w.:-]{1,100}$/;

/**
 * What is written of an error: what it is and where it came from, not what it carries (headers, bodies, credentials). A
 * provider's failure is written without its words: providers quote prompts and keys.
 */
function describeError(error: unknown): unknown {
  if (!(error instanceof Error)) return String(error);
  const { code, failure, status, native_code, transport_code } = error as Error & Record<string, unknown>;
  // What failed while an answer was read quotes it, as `JSON.parse` does.
  const is_quoting = failure === 'invalid_response';
  const cause = error.cause === undefined || is_quoting ? {} : { cause: describeError(error.cause) };
  if (typeof failure === 'string') {
    const told = typeof native_code === 'string' && CODE.test(native_code) ? { native_code } : {};
    const transport = typeof transport_code === 'string' && CODE.test(transport_code) ? { transport_code } : {};
    return { type: error.name, failure, upstream_status: status, ...told, ...transport, ...cause };
  }
  return {
    type: error.name,
    message: error.message,
    ...(typeof code === 'string' ? { code } : {}),
    stack: error.stack,
    ...cause,
  };
}

/** The one line that every request has. */
export interface RequestFacts {
  request_id: string;
  method: string;
  path: string;
  status: number;
  ms: number;
  key_id: number | null;
  [fact: string]: unknown;
}

/** pino's, with a way of its own for the line that comes with every request. */
export interface Logger extends PinoLogger {
  request(facts: RequestFacts): void;
}

/** Where the lines of a log go. */
export interface Destination {
  write(line: string): void;
}

const NOTHING = Buffer.alloc(0);

/**
 * Standard output, a piece at a time, so that the system is called seldom. Where it takes nothing (a file on a full disk, a
 * reader that is slow), lines wait, up to a bound, and nothing else does. pino's own destination would never end the process then.
 */
export function standardOutput(): Destination {
  // Node's stream makes a pipe one that refuses what it has no room for: a write that waits for room would keep the process from its end.
  Reflect.get(process, 'stdout');
  let lines = '';
  /** What is being written, or was not taken yet. */
  let piece: Buffer = NOTHING;
  let writing = false;
  let gone = false;
  let timer: NodeJS.Timeout | undefined;
  const later = () => {
    timer ??= setTimeout(flush, limits.log_gather_ms_max).unref();
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
        gone = true;
        piece = NOTHING;
        lines = '';
        return;
      }
      piece = piece.subarray(error ? 0 : written);
      if (piece.length === 0 && lines.length >= limits.log_gather_chars) flush();
      else if (piece.length > 0 || lines !== '') later();
    });
  };
  process.on('exit', () => {
    // What is being written already is the system's.
    if (writing) piece = NOTHING;
    take();
    const until = performance.now() + limits.log_stop_ms_max;
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
      if (gone || piece.length + lines.length > limits.log_waiting_chars_max) return;
      lines += line;
      if (lines.length >= limits.log_gather_chars && piece.length === 0) flush();
      else later();
    },
  };
}

/** The time as text, made once a millisecond. */
function createIsoTime(): () => string {
  let at_ms = 0;
  let text = '';
  return () => {
    const now_ms = Date.now();
    if (now_ms !== at_ms) {
      at_ms = now_ms;
      text = `,"time":"${new Date(now_ms).toISOString()}"`;
    }
    return text;
  };
}

/**
 * The process's log: JSON lines on standard output, gathered for a moment. Content and secrets are not for it: callers
 * name the fields they write, and of errors only `describeError` gets through.
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
    // The same line as `log.info(facts, 'request')` writes, for half its time: there is one a request.
    request(facts: RequestFacts) {
      if (!log.isLevelEnabled('info')) return;
      destination.write(`{"level":"info"${timestamp()},${JSON.stringify(facts).slice(1, -1)},"msg":"request"}\n`);
    },
  });
}
