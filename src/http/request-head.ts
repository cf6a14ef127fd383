import type { IncomingMessage } from 'node:http';

/**
 * What Node's parser accepts and another reader of the same bytes may read otherwise (RFC 9112, sections 2.3, 3.2 and 6.1). A
 * proxy and this gateway must never disagree on where a request ends, or on what it asks for.
 */

/** scheme://authority and the rest, as a proxy sends its target (RFC 9112, section 3.2.2). */
const ABSOLUTE = /^https?:\/\/([^/?#@\\]+)((?:[/?].*)?)$/i;

/** The characters of a host with a port (RFC 3986, section 3.2.2), without the comma that joins two headers to one. */
const HOST = /^[\w.~%!$&'()*+;=:[\]-]*$/;

/**
 * The path of a request target, which routes are looked up by. An absolute target names the host as well, in place of the
 * header. Clients of other services call /v1; it is the same service under another name.
 */
export function pathOf(request: IncomingMessage): string {
  const { url = '/' } = request;
  let path = url;
  if (!url.startsWith('/')) {
    const [, host, rest = ''] = ABSOLUTE.exec(url) ?? [];
    if (host === undefined) return url;
    request.headers.host = host;
    path = rest.startsWith('/') ? rest : `/${rest}`;
  }
  return path.startsWith('/v1/') ? `/api${path}` : path;
}

/**
 * Headers that say who sends a request, from where, and what it is. Of several of one name Node keeps the first, or joins them:
 * a proxy that reads the last would have checked another key, or another type of body.
 */
const SINGLE: readonly string[] = [
  'host',
  'authorization',
  'x-api-key',
  'content-type',
  'content-encoding',
  'expect',
  'origin',
  'sec-fetch-site',
];
const SINGLE_LENGTHS: ReadonlySet<number> = new Set(SINGLE.map(({ length }) => length));

/** What is wrong with how often these headers stand in a request. */
function singleFault({ rawHeaders, httpVersion }: IncomingMessage): string | undefined {
  let seen = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] ?? '';
    if (!SINGLE_LENGTHS.has(name.length)) continue;
    const at = SINGLE.indexOf(name.toLowerCase());
    if (at < 0) continue;
    if ((seen & (1 << at)) !== 0) return `The request has more than one ${SINGLE[at]} header; send one`;
    seen |= 1 << at;
  }
  const hasHost = (seen & 1) !== 0;
  return hasHost || httpVersion === '1.0' ? undefined : 'The request has no host header; HTTP/1.1 requires one';
}

/** What a request that cannot be read in one way alone is refused with; undefined: it can. Expects the path of `pathOf`. */
export function ambiguityOf(request: IncomingMessage): string | undefined {
  const { httpVersion, headers, url = '' } = request;
  if (httpVersion !== '1.1' && httpVersion !== '1.0')
    return `HTTP/${httpVersion} is not supported on this connection; use HTTP/1.1`;
  const encoding = headers['transfer-encoding'];
  if (encoding !== undefined && (httpVersion === '1.0' || encoding.toLowerCase() !== 'chunked'))
    return 'transfer-encoding must be chunked, of HTTP/1.1, or absent';
  const fault = singleFault(request);
  if (fault !== undefined) return fault;
  if (!HOST.test(headers.host ?? '')) return 'The Host header is not a host with an optional port';
  if (url === '*' ? request.method !== 'OPTIONS' : !url.startsWith('/') || url.includes('#'))
    return 'The request target must be a path, or an http(s) address, without a fragment';
  return undefined;
}
