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

/** What a request takes from its beginning to its end, however small: measured, half again as much as it is. */
export const REQUEST_BYTES = 32 * 1024;
/** A packed body is unpacked in pieces of so much. */
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

/** Releases the claim when a handler is done, if its answer is out. Otherwise the close of the answer releases it. */
export function releaseClaim(request: HttpRequest, { raw }: HttpReply): void {
  // An injected request has no connection that closes.
  if (raw.writableFinished || raw.destroyed) request.claim?.release();
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

/** Reads the JSON body of a request within the bounds of its route. */
export type ReadJson = (
  request: HttpRequest,
  payload: Readable,
  done: (error: Error | null, body?: unknown) => void,
) => void;

/** Makes the reader of JSON bodies of a server. */
export function jsonReader(server: Server): ReadJson {
  const parse = server.getDefaultJsonParser('error', 'error') as unknown as FastifyParse;
  return (request, payload, done) => {
    const reading = {
      bytes_max: request.route.bodyLimit ?? limits.body_bytes_max,
      parse,
      take: (bytes: number) => (request.claim ?? claimOf(request))?.take(bytes),
      isCancelled: () => request.raw.socket?.destroyed === true,
    };
    receive(payload, new JsonBody(request, reading), done);
  };
}

/**
 * Counts requests with a body in the shared memory before the body is read: a request that does not fit waits for a short time, then
 * it is refused. Applies to all routes that are registered afterwards.
 */
export function boundBodies(server: Server, memory: Memory | undefined): void {
  server.decorate('memory', memory);
  const readJson = jsonReader(server);
  server.removeContentTypeParser('application/json');
  server.addContentTypeParser('application/json', (request: FastifyRequest, payload, done) =>
    readJson(request, payload, done),
  );
  if (memory !== undefined) {
    server.addHook('preParsing', (request, reply, payload, done) => boundBody(request, reply, payload, done));
  }
}

/** Calls `done` with the body of a request as a stream whose bytes are counted, or with the refusal of the request. */
export function boundBody(
  request: HttpRequest,
  reply: HttpReply,
  payload: Readable,
  done: (error: Error | null, payload?: Readable) => void,
): void {
  if (request.server.memory === undefined) {
    done(null, payload);
    return;
  }
  const { 'content-length': announcedLength, 'transfer-encoding': encoding } = request.raw.headers;
  const length = announcedLength === undefined ? undefined : Number(announcedLength);
  const isEmpty = length === undefined ? encoding === undefined : length === 0;
  if (isEmpty || request.method === 'GET' || request.method === 'HEAD') {
    done(null, payload);
    return;
  }
  const { 'content-encoding': coding } = request.raw.headers;
  let isGzip: boolean;
  try {
    isGzip = coding !== undefined && isCompressed(coding, request);
  } catch (error) {
    done(error as Error);
    return;
  }
  // Callers without a key have a small bound, so that they cannot take the memory of others.
  const { principal, route } = request;
  const longest = principal === undefined ? limits.form_bytes_max : (route.bodyLimit ?? limits.body_bytes_max);
  const claim = length !== undefined && length > longest ? undefined : claimOf(request);
  if (claim === undefined) {
    done(tooLarge());
    return;
  }
  // A client that left during authentication causes no further event: release at once.
  if (reply.raw.destroyed) claim.release();
  const firstBytes = (isGzip ? undefined : length) ?? Math.min(limits.counted_bytes_step, longest);
  const { headers } = request.raw;
  if (isGzip) {
    // Both describe the compressed body.
    delete headers['content-encoding'];
    delete headers['content-length'];
  }
  const count = { claim, claimed_bytes: firstBytes, bytes_max: longest };
  const read = () => {
    if (!isGzip) return done(null, length === undefined ? gathered(payload, count) : payload);
    const packed = length === undefined ? gathered(payload, { ...count, claimed_bytes: longest }) : payload;
    done(null, decompressed(packed, count));
  };
  try {
    const waiting = claim.take(REQUEST_BYTES + firstBytes * limits.body_copies);
    if (waiting === undefined) read();
    else waiting.then(read, done);
  } catch (error) {
    done(error as Error);
  }
}
