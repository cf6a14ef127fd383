import type { FastifyReply, FastifyRequest } from 'fastify';
import { GatewayError } from '../errors.ts';

/** Tells a client which version of a record it was shown (RFC 9110, section 8.8.3). */
export function setVersion(reply: FastifyReply, version: number): void {
  reply.header('etag', `"${version}"`);
}

/**
 * Refuses a change that was decided on an older version of the record: a request with `If-Match` (RFC 9110, section
 * 13.1.1) names the version it has seen. Without the header, fields that the request does not name stay as they are.
 */
export function checkVersion(request: FastifyRequest, version: number): void {
  const wanted = request.headers['if-match'];
  if (wanted === undefined || wanted.trim() === '*') return;
  const tags = wanted.split(',').map((tag) => tag.trim().replace(/^W\//, ''));
  if (tags.includes(`"${version}"`)) return;
  throw new GatewayError(
    409,
    'The resource has changed since you read it. Read it again and repeat the change (If-Match)',
    {
      headers: { etag: `"${version}"` },
    },
  );
}
