import { hash } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import Type from 'typebox';

/** An answer as bytes, with a tag that is another one for any other bytes. */
export interface CachedAnswer {
  body: Buffer;
  content_type: string;
  etag: string;
}

/** Declares the answer to a client that has the current one already. */
export const NotModified = Type.Null({ description: 'What the client has is the answer still (If-None-Match).' });

/** Makes an answer that can be kept and sent any number of times. */
export function cachedAnswer(text: string, content_type: string): CachedAnswer {
  const body = Buffer.from(text);
  return { body, content_type, etag: `"${hash('sha256', body, 'base64url').slice(0, 22)}"` };
}

/** Whether a client names this answer as one that it has (RFC 9110, section 13.1.2: by weak comparison). */
function isKnown(if_none_match: string | undefined, etag: string): boolean {
  if (if_none_match === undefined) return false;
  if (if_none_match.trim() === '*') return true;
  return if_none_match.split(',').some((tag) => tag.trim().replace(/^W\//, '') === etag);
}

/**
 * Lets shared caches keep an answer that is the same for everybody: they may give it to a page of a browser, whoever asked
 * for it first (`cors.ts`).
 */
export function letCachesKeep(reply: FastifyReply, cache_control: string): FastifyReply {
  return reply.header('cache-control', cache_control).header('access-control-allow-origin', '*');
}

/** Sends bytes that many answers may share: the schema of the operation does not write them anew. */
export function sendBytes(reply: FastifyReply, body: Buffer, content_type: string): FastifyReply {
  return reply.type(content_type).send(body);
}

/** Sends the answer, or 304 to a client that has it. */
export function sendCached(
  request: FastifyRequest,
  reply: FastifyReply,
  { body, content_type, etag }: CachedAnswer,
  cache_control: string,
): FastifyReply {
  letCachesKeep(reply, cache_control).header('etag', etag);
  const is_known = isKnown(request.headers['if-none-match'], etag);
  if (is_known && request.method !== 'HEAD') return reply.code(304).send();
  // To HEAD a 304 tells the length of the answer too, or caches would take it for an empty one; its bytes go nowhere.
  if (is_known) reply.code(304);
  return reply.type(content_type).send(body);
}
