/** The length of the message of an error. */
export const ERROR_MESSAGE_CHARS_MAX = 1_000;

/** The statuses that an answer of this service can have: the specification's list, and 405 for a known path with another method. */
export type ErrorStatus = 400 | 401 | 402 | 403 | 404 | 405 | 408 | 409 | 413 | 422 | 429 | 500 | 502 | 503;

export interface GatewayErrorOptions {
  /** Shown to the client as `error.metadata`. */
  metadata?: Record<string, unknown>;
  /** Shown to the client as `gateway_metadata`, beside `error`. */
  gateway_metadata?: Record<string, unknown>;
  /** Sent as HTTP headers with the error, such as `retry-after`. */
  headers?: Record<string, string>;
  /** For the log only; never reaches a client. */
  cause?: unknown;
}

/** Rules of money and streams that always hold. A broken rule is a fault of the gateway, and the affected call fails closed. */
export const assertedRules = [
  'held_not_negative',
  'grant_within_lease',
  'settled_once',
  'no_chunk_after_settlement',
] as const;
export type AssertedRule = (typeof assertedRules)[number];
type RuleListener = (rule: AssertedRule, facts: Readonly<Record<string, unknown>>) => void;

const listeners = new Set<RuleListener>();

/** Calls the listener whenever a rule is broken in this process, until the returned function is called. */
export function watchRules(listener: RuleListener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Reports a broken rule. The caller must fail closed: throw the returned error, or keep what is held. */
export function brokenRule(rule: AssertedRule, facts: Readonly<Record<string, unknown>>): GatewayError {
  for (const listener of listeners) listener(rule, facts);
  return internalError(new Error(`broken rule: ${rule} ${JSON.stringify(facts)}`));
}

/** The error for a fault of the gateway: one fixed sentence; the cause is only logged. */
export function internalError(cause: unknown): GatewayError {
  return new GatewayError(500, 'Internal Server Error', { cause });
}

/** The error for requests that arrive while the gateway stops, or are not answered by then. */
export function shuttingDown(): GatewayError {
  return new GatewayError(503, 'The gateway is shutting down', {
    headers: { connection: 'close', 'retry-after': '1' },
  });
}

/** Bounds the length of a message that quotes a client: removes its middle, and keeps the beginning and the end. */
function clipped(message: string): string {
  if (message.length <= ERROR_MESSAGE_CHARS_MAX) return message;
  const shown = ERROR_MESSAGE_CHARS_MAX / 2;
  return `${message.slice(0, shown)}…${message.slice(-shown)}`.toWellFormed();
}

/** A 400 for a field that breaks a rule: in the sentence, and as `metadata.violations`. */
export function invalidField(path: string, rule: string): GatewayError {
  return new GatewayError(400, `${path} ${rule}`, { metadata: { violations: [{ path, rule }] } });
}

/** The only error that a client can see: its message is for the client, of bounded length; its cause is for the log. */
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

  /** A copy of the error with other details. */
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
