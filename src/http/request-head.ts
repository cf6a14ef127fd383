import type { IncomingMessage } from 'node:http';
import { GatewayError } from '../errors.ts';

/**
 * Refuses requests that Node's parser accepts and another reader of the same bytes may read otherwise (RFC 9112, sections 2.3, 3.2 and
 * 6.1). A proxy and this gateway must never disagree on where a request ends, or what its target is.
 */

/** An absolute target, as sent to proxies: scheme://authority and the rest (RFC 9112, section 3.2.2). */
const ABSOLUTE = /^https?:\/\/([^/?#@\\]+)((?:[/?].*)?)$/i;

/** The characters of a host with a port (RFC 3986, section 3.2.2), without the comma that joins two headers to one. */
const HOST = /^[\w.~%!$&'()*+;=:[\]-]*$/;

/**
 * The path of a request target, for the router. The host of an absolute target replaces the `host` header. `/v1` is an alias of `/api/v1`,
 * for clients of other services.
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
 * Headers that identify the sender, the origin or the type of a request. If one is repeated, Node keeps the first value or joins them; a proxy
 * that reads the last one would have checked another value.
 */
const SINGLETONS: readonly string[] = [
  'host',
  'authorization',
  'x-api-key',
  'content-type',
  'content-encoding',
  'expect',
  'origin',
  'sec-fetch-site',
];
const SINGLETON_LENGTHS: ReadonlySet<number> = new Set(SINGLETONS.map(({ length }) => length));

/** Why the number of these headers in a request is wrong; undefined if it is right. */
function singletonFault({ rawHeaders, httpVersion }: IncomingMessage): string | undefined {
  let seen = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] ?? '';
    if (!SINGLETON_LENGTHS.has(name.length)) continue;
    const at = SINGLETONS.indexOf(name.toLowerCase());
    if (at < 0) continue;
    if ((seen & (1 << at)) !== 0) return `The request has more than one ${SINGLETONS[at]} header; send one`;
    seen |= 1 << at;
  }
  const hasHost = (seen & 1) !== 0;
  return hasHost || httpVersion === '1.0' ? undefined : 'The request has no host header; HTTP/1.1 requires one';
}

function refusal(message: string): GatewayError {
  return new GatewayError(400, message, { headers: { connection: 'close' } });
}

/**
 * The refusal of a request that another reader could interpret differently, or end elsewhere; undefined if none can. Its connection is
 * closed. Call `pathOf` first.
 */
export function ambiguous(request: IncomingMessage): GatewayError | undefined {
  const { httpVersion, headers, url = '' } = request;
  if (httpVersion !== '1.1' && httpVersion !== '1.0')
    return refusal(`HTTP/${httpVersion} is not supported on this connection; use HTTP/1.1`);
  const encoding = headers['transfer-encoding'];
  if (encoding !== undefined && (httpVersion === '1.0' || encoding.toLowerCase() !== 'chunked'))
    return refusal('transfer-encoding must be chunked, of HTTP/1.1, or absent');
  const fault = singletonFault(request);
  if (fault !== undefined) return refusal(fault);
  if (!HOST.test(headers.host ?? '')) return refusal('The Host header is not a host with an optional port');
  if (url === '*' ? request.method !== 'OPTIONS' : !url.startsWith('/') || url.includes('#'))
    return refusal('The request target must be a path, or an http(s) address, without a fragment');
  return undefined;
}
