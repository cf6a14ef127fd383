import type { FastifyRequest } from 'fastify';
import { GatewayError } from '../errors.ts';
import { limits } from '../limits.ts';

/** How browsers know this gateway. Proxies in front of it are not asked: they say what a client tells them. */
export interface Site {
  /** `auth.public_url`; undefined: without TLS, under whatever host a browser names. */
  public_origin: string | undefined;
}

/** Whether browsers come by TLS. */
export function isSecure({ public_origin }: Site): boolean {
  return public_origin?.startsWith('https:') ?? false;
}

/** Refuses a form that another site has sent: browsers say where each comes from, in one header or the other. */
export function checkSameSite(request: FastifyRequest, site: Site): void {
  const fetched = request.headers['sec-fetch-site'];
  const { origin } = request.headers;
  const own = site.public_origin ?? `http://${request.headers.host ?? ''}`;
  // An `Origin` that is there must be ours, also where a browser says both.
  const same =
    origin === undefined ? fetched === 'same-origin' : origin === own && (fetched ?? 'same-origin') === 'same-origin';
  if (same) return;
  throw new GatewayError(
    403,
    site.public_origin === undefined
      ? 'This form did not come from a page of this gateway. Behind a proxy, auth.public_url must name the address that browsers use.'
      : `This form did not come from a page of ${site.public_origin}.`,
  );
}

/** A path of this gateway to go back to after signing in; undefined where the text could lead anywhere else. */
export function returnPath(text: string | undefined): string | undefined {
  if (text === undefined || text.length > limits.return_path_chars_max) return undefined;
  // Browsers read a backslash as a slash and drop control characters and white space, so `/\evil` is another host.
  if (!/^\/(?![/\\])[\x21-\x5b\x5d-\x7e]*$/.test(text)) return undefined;
  const base = 'http://gateway.invalid';
  const url = URL.parse(text, base);
  // What is left of `/..//evil` once its dots are gone is another host too.
  return url?.origin === base && !url.pathname.startsWith('//') ? `${url.pathname}${url.search}` : undefined;
}
