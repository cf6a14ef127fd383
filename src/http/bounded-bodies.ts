import type { Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import type { FastifyRequest } from 'fastify';
import { GatewayError } from '../errors.ts';
import { limits } from '../limits.ts';
import { type GatheredCount, gathered, tooLarge } from './gathered-body.ts';
import { type FastifyParse, JsonBody, receive } from './json-body.ts';
import type { Claim, Memory } from './memory.ts';
import { callerName } from './principal.ts';
import type { HttpReply, HttpRequest } from './request.ts';
import type { Server } from './server.ts';

/** The memory that any request takes, in addition to its body: half again as much as was measured. */
export const REQUEST_BYTES = 32 * 1024;
/** The size of the chunks in which a body is decompressed. */
const INFLATED_CHUNK_BYTES = 16 * 1024;

declare module 'fastify' {
  interface FastifyRequest {
    /** The memory that the request holds; undefined until `claimOf` makes it. */
    claim: Claim | undefined;
  }
  interface FastifyInstance {
    memory: Memory | undefined;
  }
}

/** The memory claim of a request, made at the first call. It ends when the answer is sent and the handler is done. */
export function claimOf(request: HttpRequest): Claim | undefined {
  request.claim ??= request.server.memory?.claim(
    request.principal === undefined ? 'nobody' : callerName(request.principal),
  );
  return request.claim;
}

/** Calls `take`, which may throw or wait, then `done` with its error if there is one. */
export function takeThen(take: () => Promise<void> | undefined, done: (error?: Error) => void): void {
  try {
    const waiting = take();
    if (waiting === undefined) done();
    else waiting.then(() => done(), done);
  } catch (error) {
    done(error as Error);
  }
}

/** Whether a body with this coding is compressed: gzip, one time, JSON, of a caller with a key. Throws a 400 for any other coding. */
function isCompressed(contentEncoding: string, { raw: { headers }, principal }: HttpRequest): boolean {
  const coding = contentEncoding.trim().toLowerCase();
  if (coding === 'identity') return false;
  if (principal !== undefined && coding === 'gzip' && headers['content-type']?.startsWith('application/json'))
    return true;
  const why = coding === 'gzip' ? 'is for bodies of JSON, with a key' : 'is not supported';
  throw new GatewayError(400, `content-encoding ${coding} ${why}; send the body without encoding`);
}

/** Decompresses a body. After an error the rest of the body is read and dropped, so that a client that still sends sees the answer. */
function decompressed(payload: Readable, count: GatheredCount): Readable {
  const gunzip = createGunzip({ chunkSize: INFLATED_CHUNK_BYTES });
  const stop = (error?: Error) => {
    payload.unpipe(gunzip);
    payload.resume();
    gunzip.destroy();
    if (!body.destroyed) body.destroy(error);
  };
  gunzip.on('error', () => stop(new GatewayError(400, 'The request body is not valid gzip')));
  const body = gathered(gunzip, count);
  payload.once('error', stop);
  payload.once('close', () => {
    if (!payload.readableEnded) stop(new GatewayError(400, 'The request body ended too early'));
  });
  body.once('error', () => stop());
  payload.pipe(gunzip);
  return body;
}

/** Reads the JSON body of a request within the bounds of its route. `parse`: `jsonParser`. */
export function readJson(request: HttpRequest, payload: Readable, parse: FastifyParse): Promise<unknown> {
  return receive(payload, new JsonBody(request, request.claim ?? claimOf(request), parse));
}

/** Fastify's own JSON parser, which refuses the names of prototypes. */
export function jsonParser(server: Server): FastifyParse {
  return server.getDefaultJsonParser('error', 'error') as unknown as FastifyParse;
}

/**
 * Counts requests with a body in the shared memory before the body is read: a request that does not fit waits for a short time, then
 * it is refused. Applies to all routes that are registered afterwards.
 */
export function boundBodies(server: Server, memory: Memory | undefined): void {
  server.decorate('memory', memory);
  const parse = jsonParser(server);
  server.removeContentTypeParser('application/json');
  server.addContentTypeParser('application/json', (request: FastifyRequest, payload: Readable) =>
    readJson(request, payload, parse),
  );
  if (memory !== undefined) {
    server.addHook('preParsing', (request, reply, payload, done) => {
      try {
        const body = boundedBody(request, reply, payload);
        if (body instanceof Promise) body.then((later) => done(null, later), done);
        // In the same turn: nobody else listens to the errors of the body.
        else done(null, body);
      } catch (error) {
        done(error as Error);
      }
    });
  }
}

/** The body of a request as a stream whose bytes are counted. Throws or rejects with the refusal of the request. */
export function boundedBody(request: HttpRequest, reply: HttpReply, payload: Readable): Readable | Promise<Readable> {
  if (request.server.memory === undefined) return payload;
  const { headers } = request.raw;
  const { 'content-length': announcedLength, 'content-encoding': coding } = headers;
  const length = announcedLength === undefined ? undefined : Number(announcedLength);
  const isEmpty = length === undefined ? headers['transfer-encoding'] === undefined : length === 0;
  if (isEmpty || request.method === 'GET' || request.method === 'HEAD') return payload;
  const isGzip = coding !== undefined && isCompressed(coding, request);
  // Callers without a key have a small bound, so that they cannot take the memory of others.
  const { principal, route } = request;
  const longest = principal === undefined ? limits.form_bytes_max : (route.bodyLimit ?? limits.body_bytes_max);
  const claim = length !== undefined && length > longest ? undefined : claimOf(request);
  if (claim === undefined) throw tooLarge();
  // A client that left during authentication causes no further event: release at once.
  if (reply.raw.destroyed) claim.release();
  const firstBytes = (isGzip ? undefined : length) ?? Math.min(limits.counted_bytes_step, longest);
  if (isGzip) {
    // Both describe the compressed body.
    delete headers['content-encoding'];
    delete headers['content-length'];
  }
  const waiting = claim.take(REQUEST_BYTES + firstBytes * limits.body_copies);
  if (length !== undefined && !isGzip) return waiting === undefined ? payload : waiting.then(() => payload);
  const count = { claim, claimed_bytes: firstBytes, bytes_max: longest };
  const counted = () => {
    if (!isGzip) return gathered(payload, count);
    const packed = length === undefined ? gathered(payload, { ...count, claimed_bytes: longest }) : payload;
    return decompressed(packed, count);
  };
  return waiting === undefined ? counted() : waiting.then(counted);
}
