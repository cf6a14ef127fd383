import { isIP } from 'node:net';
import { limits } from '../../../limits.ts';
import { Connection, ConnectionError, type ConnectionOwner, type ConnectionTimeouts, type Job } from './connection.ts';
import { lowerName } from './head.ts';
import { Wheel } from './wheel.ts';

/** Origins, each with a TLS session. Requests to more are not ordinary. */
const ORIGINS_MAX = 1_000;
/** Headers of the connection and of the framing, which a client sets itself. */
const SPECIAL: ReadonlySet<string | undefined> = new Set(
  'host connection content-length transfer-encoding keep-alive proxy-connection upgrade expect te trailer'.split(' '),
);
const NOT_IN_VALUES = /[^\t\x20-\x7e]/;
const NOT_IN_PATHS = /[^\x21-\x7e]/;
/** RFC 7301, section 3.2 */
const NO_PROTOCOL = 'ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL';

export interface Http1Request extends Pick<Job, 'payload' | 'reader' | 'refused'> {
  method: string;
  origin: string;
  path: string;
  headers: Record<string, string>;
}

/** The head of a request up to its length. Undefined if it has other characters than ASCII, or special headers. */
function headOf({ method, path, headers }: Http1Request, host: string): string | undefined {
  if (NOT_IN_PATHS.test(path)) return undefined;
  let head = `${method} ${path} HTTP/1.1\r\nhost: ${host}\r\nconnection: keep-alive\r\n`;
  for (const name in headers) {
    const value = headers[name];
    const lower = lowerName(name);
    if (value === undefined || lower === undefined || SPECIAL.has(lower) || NOT_IN_VALUES.test(value)) return undefined;
    head += `${name}: ${value}\r\n`;
  }
  return head;
}

/** The connections to one origin. */
class Origin implements ConnectionOwner {
  readonly host: string;
  readonly client: Http1Client;
  readonly address: ConnectionOwner['address'];
  tls: ConnectionOwner['tls'];
  /** Whether its server does not speak HTTP/1.1. */
  isRefused = false;
  readonly #open = new Set<Connection>();
  /** The last one was used last. */
  readonly #idle: Connection[] = [];
  readonly #waiting: Job[] = [];

  constructor(client: Http1Client, { host, hostname, port, protocol }: URL) {
    this.client = client;
    this.host = host;
    const name = hostname.replace(/^\[|\]$/g, '');
    const isSecure = protocol === 'https:';
    this.address = { host: name, port: Number(port) || (isSecure ? 443 : 80) };
    if (isSecure) this.tls = { ALPNProtocols: ['http/1.1'], ...(isIP(name) === 0 && { servername: name }) };
  }

  send(job: Job): void {
    const nowMs = performance.now();
    for (let connection = this.#idle.pop(); connection !== undefined; connection = this.#idle.pop()) {
      if (connection.isUsable(nowMs)) {
        connection.reserve(job);
        this.client.nextTurn(() => connection.flush());
        return;
      }
      connection.destroy();
    }
    if (this.client.isClosed) job.reader.failed(new ConnectionError('UND_ERR_DESTROYED'), true);
    else if (this.#open.size < limits.upstream_connections_per_origin_max) this.#open.add(new Connection(this, job));
    else this.#waiting.push(job);
  }

  freed(connection: Connection): void {
    this.client.nextTurn(() => {
      if (!connection.isUsable(performance.now())) return;
      const job = this.#nextWaiting();
      if (job === undefined) this.#idle.push(connection);
      else {
        connection.reserve(job);
        connection.flush();
      }
    });
  }

  closed(connection: Connection, job: Job | undefined, error: Error | undefined): void {
    this.#open.delete(connection);
    const at = this.#idle.indexOf(connection);
    if (at !== -1) this.#idle.splice(at, 1);
    if (error !== undefined) delete this.tls?.session;
    const isRefused = (error as NodeJS.ErrnoException | undefined)?.code === NO_PROTOCOL;
    this.isRefused ||= isRefused;
    if (isRefused) job?.refused();
    else if (error !== undefined) job?.reader.failed(error, true);
    else if (job !== undefined) this.send(job);
    const next = this.#nextWaiting();
    if (next !== undefined) this.send(next);
  }

  #nextWaiting(): Job | undefined {
    let job = this.#waiting.shift();
    while (job?.reader.ended) job = this.#waiting.shift();
    return job;
  }

  destroy(): void {
    for (const { reader } of this.#waiting.splice(0)) reader.failed(new ConnectionError('UND_ERR_DESTROYED'), true);
    for (const connection of this.#open) connection.fail('UND_ERR_DESTROYED');
  }
}

/**
 * Sends ordinary requests by HTTP/1.1: pools of connections by origin, one request at a time on each. A request is never written
 * twice.
 */
export class Http1Client {
  readonly wheel = new Wheel();
  readonly timeouts: ConnectionTimeouts;
  readonly #isDirect: (url: URL) => boolean;
  /** By their texts. Null for those that this client does not serve. */
  readonly #origins = new Map<string, Origin | null>();
  #nextTurn: (() => void)[] = [];
  isClosed = false;

  constructor(timeouts: ConnectionTimeouts, isDirect: (url: URL) => boolean) {
    this.timeouts = timeouts;
    this.#isDirect = isDirect;
  }

  /** Returns false if the request is not ordinary and was not sent. */
  send(request: Http1Request): boolean {
    const origin = this.#originOf(request.origin);
    if (origin === null || origin.isRefused) return false;
    const head = headOf(request, origin.host);
    if (head === undefined) return false;
    const { payload, reader, refused } = request;
    origin.send({ head, payload, reader, refused });
    return true;
  }

  #originOf(text: string): Origin | null {
    const known = this.#origins.get(text);
    if (known !== undefined) return known;
    if (this.#origins.size >= ORIGINS_MAX) return null;
    const url = URL.canParse(text) ? new URL(text) : undefined;
    const isOrdinary = url !== undefined && /^https?:\/\/[^/@?#\\]+$/.test(text) && this.#isDirect(url);
    const origin = isOrdinary ? new Origin(this, url) : null;
    this.#origins.set(text, origin);
    return origin;
  }

  /**
   * Runs a step after everything that has arrived was read. A used connection is written to only then: its end, or bytes that answer
   * no request, may have arrived.
   */
  nextTurn(step: () => void): void {
    if (this.#nextTurn.push(step) > 1) return;
    setImmediate(() => {
      const steps = this.#nextTurn;
      this.#nextTurn = [];
      for (const each of steps) each();
    });
  }

  /** Closes all connections. Requests without an answer fail. */
  destroy(): void {
    this.isClosed = true;
    for (const origin of this.#origins.values()) origin?.destroy();
  }
}
