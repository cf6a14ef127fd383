import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Site } from './site.ts';
import { isSecure } from './site.ts';

/** The name on the wire. With TLS it has the prefix that makes browsers bind the cookie to this host and to TLS (RFC 6265bis, section 4.1.3.2). */
const nameOf = (site: Site, name: string) => (isSecure(site) ? `__Host-${name}` : name);

/** The value of a cookie of the gateway; undefined if there is none, or more than one. */
export function readCookie(request: FastifyRequest, site: Site, name: string): string | undefined {
  const wireName = nameOf(site, name);
  const values = (request.headers.cookie ?? '').split(';').flatMap((pair) => {
    const [key = '', ...value] = pair.split('=');
    return key.trim() === wireName ? [value.join('=').trim()] : [];
  });
  return values.length === 1 ? values[0] : undefined;
}

/** Sets a cookie that scripts cannot read and that other sites' requests do not carry, except for top-level navigation. */
export function setCookie(
  reply: FastifyReply,
  site: Site,
  { name, value, ms }: { name: string; value: string; ms: number },
): void {
  const secure = isSecure(site) ? '; Secure' : '';
  const age = `Max-Age=${Math.floor(ms / 1000)}`;
  reply.header('set-cookie', `${nameOf(site, name)}=${value}; Path=/; ${age}; HttpOnly; SameSite=Lax${secure}`);
}

/** Deletes a cookie in the browser. */
export function clearCookie(reply: FastifyReply, site: Site, name: string): void {
  setCookie(reply, site, { name, value: '', ms: 0 });
}
