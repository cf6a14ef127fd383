import type { FastifyReply, FastifyRequest } from 'fastify';
import { GatewayError } from '../errors.ts';

/** Sends the version of a record as the entity tag (RFC 9110, section 8.8.3). */
export function setVersion(reply: FastifyReply, version: number): void {
  reply.header('etag', `"${version}"`);
}

/**
 * Throws a 409 if `If-Match` (RFC 9110, section 13.1.1) names another version of the record than the current one. Without the header,
 * fields that the request does not name stay unchanged.
 */
export function checkVersion(request: FastifyRequest, version: number): void {
  const ifMatch = request.headers['if-match'];
  if (ifMatch === undefined || ifMatch.trim() === '*') return;
  const tags = ifMatch.split(',').map((tag) => tag.trim().replace(/^W\//, ''));
  if (tags.includes(`"${version}"`)) return;
  throw new GatewayError(
    409,
    'The resource has changed since you read it. Read it again and repeat the change (If-Match)',
    {
      headers: { etag: `"${version}"` },
    },
  );
}
