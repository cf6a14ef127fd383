/** Names and values of all headers of one answer together; Node's bound for clients. */
const FIELD_BYTES_MAX = 16 * 1024;
const FIELDS_MAX = 1_000;
const STATUS_LINE = /^HTTP\/1\.[01] [1-5]\d\d(?: .*)?$/;
const VERSION = 'HTTP/1.';
const STATUS_AT = 'HTTP/1.1 '.length;
/** Matches characters that no line may have: control characters except tabs. */
const CONTROL = /[^\t\x20-\x7e\x80-\xff]/;
const TOKEN = /^[!#$%&'*+\-.^_`|~\dA-Za-z]+$/;
const CLOSE = /(?:^|,)[\t ]*close[\t ]*(?:,|$)/i;
const KEEP_ALIVE = /(?:^|,)[\t ]*keep-alive[\t ]*(?:,|$)/i;
const KEEP_ALIVE_TIMEOUT = /(?:^|[,\s])timeout=(\d{1,6})\b/i;

/** The last value of `keep-alive`, and its time: most servers always state the same. */
const lastKept: { value: string; ms: number | undefined } = { value: '', ms: undefined };

function keptMsOf(value: string): number | undefined {
  if (value === lastKept.value) return lastKept.ms;
  const seconds = KEEP_ALIVE_TIMEOUT.exec(value)?.[1];
  lastKept.value = value;
  lastKept.ms = seconds === undefined ? undefined : Number(seconds) * 1_000;
  return lastKept.ms;
}

export type Headers = Record<string, string | string[]>;

/** Names of headers in lower case, so that most are looked up. */
const names = new Map<string, string>();

/** The name of a header in lower case; undefined if it is not a token. */
export function lowerName(name: string): string | undefined {
  const known = names.get(name);
  if (known !== undefined) return known;
  if (!TOKEN.test(name)) return undefined;
  const lower = name.toLowerCase();
  if (names.size < FIELDS_MAX && name.length <= 64) names.set(name, lower);
  return lower;
}

/**
 * The head of one answer, read line by line (RFC 9112, sections 4 to 6). Strict: what two readers could read differently is refused.
 * Methods return the code of a failure, or undefined.
 */
export class ResponseHead {
  /** 0 before the status line. */
  status = 0;
  headers: Headers = {};
  /** The length of the body, `chunked`, or undefined if neither is stated. */
  framing: number | 'chunked' | undefined;
  /** Whether the connection stays open after the answer. */
  isKept = false;
  /** How long it stays open, if the server states it. */
  keptMs: number | undefined;
  #isVersion11 = false;
  #isClosed = false;
  #fields = 0;
  #bytes = 0;

  /** Checks the beginning of a line whose end has not arrived: its characters from `from` on. */
  checkPart(part: string, from: number): string | undefined {
    if (part.length > FIELD_BYTES_MAX) return 'UND_ERR_HEADERS_OVERFLOW';
    if (CONTROL.test(part.slice(from, part.endsWith('\r') ? -1 : undefined))) return 'HPE_INVALID_HEADER_TOKEN';
    const isStatusLine = this.status > 0 || part.startsWith(VERSION) || VERSION.startsWith(part);
    return isStatusLine ? undefined : 'HPE_INVALID_CONSTANT';
  }

  /** Takes the status line, then one header after the other. */
  add(line: string): string | undefined {
    if (CONTROL.test(line)) return 'HPE_INVALID_HEADER_TOKEN';
    if (this.status === 0) {
      if (!STATUS_LINE.test(line)) return line.startsWith(VERSION) ? 'HPE_INVALID_STATUS' : 'HPE_INVALID_CONSTANT';
      this.status = Number(line.slice(STATUS_AT, STATUS_AT + 3));
      this.#isVersion11 = line[VERSION.length] === '1';
      this.isKept = this.#isVersion11;
      return undefined;
    }
    const colon = line.indexOf(':');
    const name = colon === -1 ? undefined : lowerName(line.slice(0, colon));
    if (name === undefined) return 'HPE_INVALID_HEADER_TOKEN';
    let start = colon + 1;
    let end = line.length;
    while (line[start] === ' ' || line[start] === '\t') start += 1;
    while (end > start && (line[end - 1] === ' ' || line[end - 1] === '\t')) end -= 1;
    const value = line.slice(start, end);
    this.#fields += 1;
    this.#bytes += colon + value.length;
    if (this.#fields > FIELDS_MAX || this.#bytes >= FIELD_BYTES_MAX) return 'UND_ERR_HEADERS_OVERFLOW';
    const earlier = this.headers[name];
    if (typeof earlier === 'string') this.headers[name] = [earlier, value];
    else if (Array.isArray(earlier)) earlier.push(value);
    else this.headers[name] = value;
    return this.#addFraming(name, value);
  }

  #addFraming(name: string, value: string): string | undefined {
    if (name === 'content-length') {
      if (this.framing !== undefined) return 'HPE_UNEXPECTED_CONTENT_LENGTH';
      if (!/^\d{1,15}$/.test(value)) return 'HPE_INVALID_CONTENT_LENGTH';
      this.framing = Number(value);
    } else if (name === 'transfer-encoding') {
      // HTTP/1.0 has no transfer codings (RFC 9112, section 6.1).
      const isChunked = value.toLowerCase() === 'chunked' && this.#isVersion11;
      if (this.framing !== undefined || !isChunked) return 'HPE_INVALID_TRANSFER_ENCODING';
      this.framing = 'chunked';
    } else if (name === 'connection') {
      this.#isClosed ||= CLOSE.test(value);
      this.isKept = !this.#isClosed && (this.isKept || KEEP_ALIVE.test(value));
    } else if (name === 'keep-alive') {
      this.keptMs = keptMsOf(value) ?? this.keptMs;
    }
    return undefined;
  }
}
