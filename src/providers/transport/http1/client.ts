import { isIP } from 'node:net';
import { limits } from '../../../limits.ts';
import {
  Connection,
  ConnectionError,
  type ConnectionOwner,
  type ConnectionTimeouts,
  HTTP2,
  type Job,
} from './connection.ts';
import { lowerName } from './head.ts';
import { Wheel } from './wheel.ts';

const ORIGINS_MAX = 1_000;
/** Headers of the connection and of the framing, which a client sets itself. */
const SPECIAL: ReadonlySet<string | undefined> = new Set(
  'host connection content-length transfer-encoding keep-alive proxy-connection upgrade expect te trailer'.split(' '),
);
const ORDINARY_ORIGIN = /^https?:\/\/[^/@?#\\]+$/;
const NOT_IN_VALUES = /[^\t\x20-\x7e]/;
const NOT_IN_PATHS = /[^\x21-\x7e]/;

/** A request that becomes the job of a connection when its head is made. */
export interface Http1Request extends Job {
  method: string;
  origin: string;
  path: string;
  headers: Record<string, string>;
}

/** Headers with the same values in most requests, whose lines are kept. No header that may have a credential. */
const KEPT_NAMES = ['content-type', 'accept', 'accept-encoding', 'user-agent'];
const keptLines: Record<string, { value: string; line: string } | undefined> = Object.fromEntries(
  KEPT_NAMES.map((name) => [name, { value: '', line: '' }]),
);

/** The line of a header. Undefined for other characters than ASCII, or a special header. */
function lineOf(name: string, value: string | undefined): string | undefined {
  const kept = keptLines[name];
  if (kept !== undefined && kept.value === value && kept.line !== '') return kept.line;
  const lower = lowerName(name);
  if (value === undefined || lower === undefined || SPECIAL.has(lower) || NOT_IN_VALUES.test(value)) return undefined;
  const line = `${name}: ${value}\r\n`;
  if (kept !== undefined) Object.assign(kept, { value, line });
  return line;
}

class Origin implements ConnectionOwner {
  readonly host: string;
  readonly client: Http1Client;
  readonly address: ConnectionOwner['address'];
  tls: ConnectionOwner['tls'];
  /** Whether its server chooses HTTP/2. Unknown by TLS until there was a connection: the first one is made alone. */
  isHttp2: boolean | undefined;
  readonly #open = new Set<Connection>();
  readonly #idle: Connection[] = [];
  readonly #waiting: Job[] = [];
  /** The beginning of the last request: most have the same. */
  #begun = { method: '', path: '', text: '' };

  constructor(client: Http1Client, { host, hostname, port, protocol }: URL) {
    this.client = client;
    this.host = host;
    const name = hostname.replace(/^\[|\]$/g, '');
    const isSecure = protocol === 'https:';
    this.address = { host: name, port: Number(port || (isSecure ? 443 : 80)) };
    if (isSecure) this.tls = { ALPNProtocols: ['http/1.1', HTTP2], ...(isIP(name) === 0 && { servername: name }) };
    else this.isHttp2 = false;
  }

  /** The head of a request up to its length. Undefined if it has other characters than ASCII, or special headers. */
  headOf({ method, path, headers }: Http1Request): string | undefined {
    if (path !== this.#begun.path || method !== this.#begun.method) {
      if (NOT_IN_PATHS.test(path)) return undefined;
      const text = `${method} ${path} HTTP/1.1\r\nhost: ${this.host}\r\nconnection: keep-alive\r\n`;
      this.#begun = { method, path, text };
    }
    let head = this.#begun.text;
    for (const name in headers) {
      const line = lineOf(name, headers[name]);
      if (line === undefined) return undefined;
      head += line;
    }
    return head;
  }

  send(job: Job): void {
    const nowMs = performance.now();
    for (let connection = this.#idle.pop(); connection !== undefined; connection = this.#idle.pop()) {
      if (connection.isUsable(nowMs)) {
        connection.reserve(job);
        this.client.nextTurn(connection);
        return;
      }
      connection.destroy();
    }
    const max = this.isHttp2 === undefined ? 1 : limits.upstream_connections_per_origin_max;
    if (this.client.isClosed) job.reader.failed(new ConnectionError('UND_ERR_DESTROYED'), true);
    else if (this.isHttp2) job.refused();
    else if (this.#open.size < max) this.#open.add(new Connection(this, job));
    else this.#waiting.push(job);
  }

  opened(isHttp2 = false): void {
    const isNew = this.isHttp2 === undefined;
    this.isHttp2 = isHttp2;
    if (isNew || isHttp2) for (const job of this.#waiting.splice(0)) if (!job.reader.ended) this.send(job);
  }

  freed(connection: Connection): void {
    if (!connection.isUsable(performance.now())) return;
    const job = this.#waiting.length === 0 ? undefined : this.#nextWaiting();
    if (job === undefined) this.#idle.push(connection);
    else {
      connection.reserve(job);
      connection.flush();
    }
  }

  closed(connection: Connection, job: Job | undefined, error: Error | undefined): void {
    this.#open.delete(connection);
    const at = this.#idle.indexOf(connection);
    if (at !== -1) this.#idle.splice(at, 1);
    if (error !== undefined) delete this.tls?.session;
    const isHttp2 = (error as ConnectionError | undefined)?.code === HTTP2;
    if (isHttp2 || this.isHttp2 === undefined) this.opened(isHttp2);
    if (error !== undefined && !isHttp2) job?.reader.failed(error, true);
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

/** Sends ordinary requests by HTTP/1.1, each on a connection of its own while it is answered, and none twice. */
export class Http1Client {
  readonly wheel = new Wheel();
  readonly timeouts: ConnectionTimeouts;
  readonly #isDirect: (url: URL) => boolean;
  /** By their texts. Null for those that this client does not serve. */
  readonly #origins = new Map<string, Origin | null>();
  #nextTurn: Connection[] = [];
  isClosed = false;

  constructor(timeouts: ConnectionTimeouts, isDirect: (url: URL) => boolean) {
    this.timeouts = timeouts;
    this.#isDirect = isDirect;
  }

  /** Returns false if the request is not ordinary and was not sent. */
  send(request: Http1Request): boolean {
    const known = this.#origins.get(request.origin);
    const origin = known === undefined ? this.#addOrigin(request.origin) : known;
    if (origin === null || origin.isHttp2) return false;
    const head = origin.headOf(request);
    if (head === undefined) return false;
    request.head = head;
    origin.send(request);
    return true;
  }

  #addOrigin(text: string): Origin | null {
    if (this.#origins.size >= ORIGINS_MAX) return null;
    const isOrdinary = ORDINARY_ORIGIN.test(text) && URL.canParse(text) && this.#isDirect(new URL(text));
    const origin = isOrdinary ? new Origin(this, new URL(text)) : null;
    this.#origins.set(text, origin);
    return origin;
  }

  /** Flushes a connection after what has arrived is read: the end of an idle connection, or bytes that answer no request. */
  nextTurn(connection: Connection): void {
    if (this.#nextTurn.length > 0) {
      this.#nextTurn.push(connection);
      return;
    }
    // A list of one takes less memory than an empty one that grows.
    this.#nextTurn = [connection];
    setImmediate(() => {
      const connections = this.#nextTurn;
      this.#nextTurn = [];
      for (let at = 0; at < connections.length; at += 1) connections[at]!.flush();
    });
  }

  destroy(): void {
    this.isClosed = true;
    for (const origin of this.#origins.values()) origin?.destroy();
  }
}
