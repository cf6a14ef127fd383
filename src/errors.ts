import { limits } from './limits.ts';

/** The statuses an answer of this service may carry: the specification's list, and 405 for a known path with another method. */
export type ErrorStatus = 400 | 401 | 402 | 403 | 404 | 405 | 408 | 409 | 413 | 422 | 429 | 500 | 502 | 503;

export interface GatewayErrorOptions {
  /** Shown to the client as `error.metadata`. */
  metadata?: Record<string, unknown>;
  /** Shown to the client beside `error` as `gateway_metadata`. */
  gateway_metadata?: Record<string, unknown>;
  /** Sent as HTTP headers with the error, such as `retry-after`. */
  headers?: Record<string, string>;
  /** For the log only; never reaches a client. */
  cause?: unknown;
}

/** Rules of money and streams that hold whatever happens. A broken one is a fault of the gateway's: the call that shows it fails closed. */
export const assertedRules = [
  'held_not_negative',
  'grant_within_lease',
  'settled_once',
  'no_chunk_after_settlement',
] as const;
export type AssertedRule = (typeof assertedRules)[number];
type RuleListener = (rule: AssertedRule, facts: Readonly<Record<string, unknown>>) => void;

const listeners = new Set<RuleListener>();

/** Calls the listener each time that a rule is broken, in the whole process, until the returned function is called. */
export function watchRules(listener: RuleListener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Reports a broken rule. The caller then fails closed: it throws the returned error, or keeps what is set aside. */
export function brokenRule(rule: AssertedRule, facts: Readonly<Record<string, unknown>>): GatewayError {
  for (const listener of listeners) listener(rule, facts);
  return internalError(new Error(`broken rule: ${rule} ${JSON.stringify(facts)}`));
}

/** The error of a fault of ours: one fixed sentence; the reason goes to the log. */
export function internalError(cause: unknown): GatewayError {
  return new GatewayError(500, 'Internal Server Error', { cause });
}

/** The error of whoever comes while the gateway stops, or is not answered by then. */
export function shuttingDown(): GatewayError {
  return new GatewayError(503, 'The gateway is shutting down', {
    headers: { connection: 'close', 'retry-after': '1' },
  });
}

/** A message that quotes what a client sent does not grow with it: the middle goes, the beginning and what is said of it stay. */
function clipped(message: string): string {
  if (message.length <= limits.error_message_chars_max) return message;
  const shown = limits.error_message_chars_max / 2;
  return `${message.slice(0, shown)}…${message.slice(-shown)}`.toWellFormed();
}

/** A field that breaks a rule: named in the sentence, and beside it for clients that read it there. */
export function invalidField(path: string, rule: string): GatewayError {
  return new GatewayError(400, `${path} ${rule}`, { metadata: { violations: [{ path, rule }] } });
}

/** The one error a client may see: its message is written for the client, of bounded length, its cause for the log. */
export class GatewayError extends Error {
  override readonly name = 'GatewayError';
  readonly status: ErrorStatus;
  readonly metadata: Record<string, unknown> | undefined;
  readonly gateway_metadata: Record<string, unknown> | undefined;
  readonly headers: Record<string, string> | undefined;

  constructor(status: ErrorStatus, message: string, options: GatewayErrorOptions = {}) {
    super(clipped(message), options.cause === undefined ? undefined : { cause: options.cause });
    this.status = status;
    this.metadata = options.metadata;
    this.gateway_metadata = options.gateway_metadata;
    this.headers = options.headers;
  }

  /** The same error with other details. */
  with(details: Pick<GatewayErrorOptions, 'metadata' | 'gateway_metadata'> & { message?: string }): GatewayError {
    const { status, message, metadata, gateway_metadata, headers, cause } = this;
    return new GatewayError(status, details.message ?? message, {
      metadata,
      gateway_metadata,
      headers,
      cause,
      ...details,
    } as GatewayErrorOptions);
  }
}
