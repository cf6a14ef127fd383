import { hash } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import Type from 'typebox';

/** An answer as bytes, with an entity tag that identifies these bytes. */
export interface CachedAnswer {
  body: Buffer;
  content_type: string;
  etag: string;
}

/** Schema of the 304 to a client that has the current answer. */
export const NotModified = Type.Null({ description: 'The client has the current answer (If-None-Match).' });

/** Makes an answer that can be kept and sent any number of times. `contentType` is its media type. */
export function cachedAnswer(text: string, contentType: string): CachedAnswer {
  const body = Buffer.from(text);
  return { body, content_type: contentType, etag: `"${hash('sha256', body, 'base64url').slice(0, 22)}"` };
}

/** Whether `if-none-match` contains the tag of the answer (RFC 9110, section 13.1.2: weak comparison). */
function isKnown(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false;
  if (ifNoneMatch.trim() === '*') return true;
  return ifNoneMatch.split(',').some((tag) => tag.trim().replace(/^W\//, '') === etag);
}

/**
 * Lets shared caches store an answer that is the same for everybody, and lets them serve it to pages of any origin, whoever requested it
 * first (`cors.ts`).
 */
export function letCachesKeep(reply: FastifyReply, cacheControl: string): FastifyReply {
  return reply.header('cache-control', cacheControl).header('access-control-allow-origin', '*');
}

/** Sends shared bytes as they are, without the serializer of the operation's schema. */
export function sendBytes(reply: FastifyReply, body: Buffer, contentType: string): FastifyReply {
  return reply.type(contentType).send(body);
}

/** Sends the answer, or a 304 if the client has it. */
export function sendCached(
  request: FastifyRequest,
  reply: FastifyReply,
  { body, content_type, etag }: CachedAnswer,
  cacheControl: string,
): FastifyReply {
  letCachesKeep(reply, cacheControl).header('etag', etag);
  const hasCurrent = isKnown(request.headers['if-none-match'], etag);
  if (hasCurrent && request.method !== 'HEAD') return reply.code(304).send();
  // The 304 to a HEAD carries the length too, otherwise caches would take the answer for empty; the body is not sent.
  if (hasCurrent) reply.code(304);
  return reply.type(content_type).send(body);
}
