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

/** How often a request names its host. `headers` keeps the first alone. */
function hostCount({ rawHeaders }: IncomingMessage): number {
  let count = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index];
    if (name?.length === 4 && name.toLowerCase() === 'host') count += 1;
  }
  return count;
}

/** What a request that cannot be read in one way alone is refused with; undefined: it can. Expects the path of `pathOf`. */
export function ambiguityOf(request: IncomingMessage): string | undefined {
  const { httpVersion, headers, url = '' } = request;
  if (httpVersion !== '1.1' && httpVersion !== '1.0')
    return `HTTP/${httpVersion} is not supported on this connection; use HTTP/1.1`;
  const encoding = headers['transfer-encoding'];
  if (encoding !== undefined && (httpVersion === '1.0' || encoding.toLowerCase() !== 'chunked'))
    return 'transfer-encoding must be chunked, of HTTP/1.1, or absent';
  const hosts = hostCount(request);
  if (hosts > 1) return 'The request has more than one Host header; send one';
  if (hosts === 0 && httpVersion === '1.1') return 'The request has no Host header; HTTP/1.1 requires one';
  if (!HOST.test(headers.host ?? '')) return 'The Host header is not a host with an optional port';
  if (url === '*' ? request.method !== 'OPTIONS' : !url.startsWith('/') || url.includes('#'))
    return 'The request target must be a path, or an http(s) address, without a fragment';
  return undefined;
}
