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
export const NotModified = Type.Null({ description: 'What the client has is the answer still (If-None-Match).' });

/** Makes an answer that can be kept and sent any number of times. `content_type` is its media type. */
export function cachedAnswer(text: string, content_type: string): CachedAnswer {
  const body = Buffer.from(text);
  return { body, content_type, etag: `"${hash('sha256', body, 'base64url').slice(0, 22)}"` };
}

/** Whether `if-none-match` contains the tag of the answer (RFC 9110, section 13.1.2: weak comparison). */
function isKnown(if_none_match: string | undefined, etag: string): boolean {
  if (if_none_match === undefined) return false;
  if (if_none_match.trim() === '*') return true;
  return if_none_match.split(',').some((tag) => tag.trim().replace(/^W\//, '') === etag);
}

/**
 * Lets shared caches store an answer that is the same for everybody, and lets them serve it to pages of any origin, whoever requested it
 * first (`cors.ts`).
 */
export function letCachesKeep(reply: FastifyReply, cache_control: string): FastifyReply {
  return reply.header('cache-control', cache_control).header('access-control-allow-origin', '*');
}

/** Sends shared bytes as they are, without the serializer of the operation's schema. */
export function sendBytes(reply: FastifyReply, body: Buffer, content_type: string): FastifyReply {
  return reply.type(content_type).send(body);
}

/** Sends the answer, or a 304 if the client has it. */
export function sendCached(
  request: FastifyRequest,
  reply: FastifyReply,
  { body, content_type, etag }: CachedAnswer,
  cache_control: string,
): FastifyReply {
  letCachesKeep(reply, cache_control).header('etag', etag);
  const is_known = isKnown(request.headers['if-none-match'], etag);
  if (is_known && request.method !== 'HEAD') return reply.code(304).send();
  // The 304 to a HEAD carries the length too, otherwise caches would take the answer for empty; the body is not sent.
  if (is_known) reply.code(304);
  return reply.type(content_type).send(body);
}
