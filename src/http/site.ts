import type { FastifyRequest } from 'fastify';
import { GatewayError } from '../errors.ts';

/** The path to which a person returns after the sign-in. */
const RETURN_PATH_CHARS_MAX = 8_192;

/** The address under which browsers reach this gateway. Headers of proxies are not used, since they repeat what a client sent. */
export interface Site {
  /** `auth.public_url`; undefined: no TLS, and any host that a browser uses. */
  public_origin: string | undefined;
}

/** Whether browsers use TLS. */
export function isSecure({ public_origin }: Site): boolean {
  return public_origin?.startsWith('https:') ?? false;
}

/** Refuses a form that another site sent: browsers state the origin in one of two headers. Throws a 403. */
export function checkSameSite(request: FastifyRequest, site: Site): void {
  const fetched = request.headers['sec-fetch-site'];
  const { origin } = request.headers;
  const own = site.public_origin ?? `http://${request.headers.host ?? ''}`;
  // An `Origin` must be this site's, also if the browser sends both headers.
  const isSameSite =
    origin === undefined ? fetched === 'same-origin' : origin === own && (fetched ?? 'same-origin') === 'same-origin';
  if (isSameSite) return;
  throw new GatewayError(
    403,
    site.public_origin === undefined
      ? 'This form did not come from a page of this gateway. Behind a proxy, auth.public_url must name the address that browsers use.'
      : `This form did not come from a page of ${site.public_origin}.`,
  );
}

/** The path of this gateway to return to after signing in; undefined if the text could lead to another host. */
export function returnPath(text: string | undefined): string | undefined {
  if (text === undefined || text.length > RETURN_PATH_CHARS_MAX) return undefined;
  // Browsers read a backslash as a slash and drop control characters and white space, so `/\evil` is another host.
  if (!/^\/(?![/\\])[\x21-\x5b\x5d-\x7e]*$/.test(text)) return undefined;
  const base = 'http://gateway.invalid';
  const url = URL.parse(text, base);
  // `/..//evil` without its dots is another host too.
  return url?.origin === base && !url.pathname.startsWith('//') ? `${url.pathname}${url.search}` : undefined;
}
