import { pipeline, type Readable, Transform } from 'node:stream';
import { createGunzip } from 'node:zlib';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { GatewayError } from '../errors.ts';
import { limits } from '../limits.ts';
import { type FastifyParse, readJsonBody } from './json-body.ts';
import type { Claim, Memory } from './memory.ts';
import type { Server } from './server.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** What it holds of the memory that all share. Made when first asked for: see `claimOf`. */
    claim: Claim | undefined;
  }
  interface FastifyInstance {
    memory: Memory | undefined;
  }
}

/** The claim of a request, which ends with it: when it is answered and its handler is done. */
export function claimOf(request: FastifyRequest): Claim | undefined {
  request.claim ??= request.server.memory?.claim(request.principal?.key_hash ?? request.principal?.kind ?? 'nobody');
  return request.claim;
}

function tooLarge(): GatewayError {
  return new GatewayError(413, 'Request payload too large');
}

/** Counts a body of unknown length as it comes, but for what was taken for it, and stops reading it while there is no room. */
function counted(claim: Claim, taken_bytes: number, bytes_max: number): Transform {
  let received = 0;
  let taken = taken_bytes;
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      received += chunk.length;
      if (received > bytes_max) return void done(tooLarge());
      if (received <= taken) return void done(null, chunk);
      const more = Math.max(limits.counted_bytes_step, received - taken);
      taken += more;
      try {
        const waiting = claim.take(more * limits.body_copies);
        if (waiting === undefined) done(null, chunk);
        else waiting.then(() => done(null, chunk), done);
      } catch (error) {
        done(error as Error);
      }
    },
  });
}

/** At the end of its handler; where its answer is not out yet, the close of it gives the claim back. */
export function releaseClaim(request: FastifyRequest, { raw }: FastifyReply): void {
  // An injected request has no connection that closes.
  if (raw.writableFinished || raw.destroyed) request.claim?.release();
}

/** How long a body may be: of those who show no key it is small, so that they cannot have the memory of those who do. */
function bytesMax({ principal, route }: FastifyRequest): number {
  return principal === undefined ? limits.form_bytes_max : (route.bodyLimit ?? limits.body_bytes_max);
}

/** Runs what may throw or wait, then `done` with what went wrong. */
function whenTaken(take: () => Promise<void> | undefined, done: (error?: Error) => void): void {
  try {
    const waiting = take();
    if (waiting === undefined) done();
    else waiting.then(() => done(), done);
  } catch (error) {
    done(error as Error);
  }
}

/** Whether a body is packed: as gzip, once, and as JSON of one who has shown a key. Throws a 400 for any other coding. */
function isPacked({ raw: { headers }, principal }: FastifyRequest): boolean {
  const coding = headers['content-encoding']?.trim().toLowerCase() ?? 'identity';
  if (coding === 'identity') return false;
  if (principal !== undefined && coding === 'gzip' && headers['content-type']?.startsWith('application/json'))
    return true;
  const why = coding === 'gzip' ? 'is for bodies of JSON, with a key' : 'is not supported';
  throw new GatewayError(400, `content-encoding ${coding} ${why}; send the body without encoding`);
}

/** What a packed body holds, as it comes, through what counts it. Where that is refused the rest is read and dropped: a client that is still sending would not see why. */
function unpacked(payload: Readable, into: Transform): Transform {
  const gunzip = createGunzip({ chunkSize: limits.inflated_chunk_bytes });
  const stop = (error?: Error) => {
    payload.unpipe(gunzip);
    payload.resume();
    gunzip.destroy();
    if (!into.destroyed) into.destroy(error);
  };
  gunzip.on('error', () => stop(new GatewayError(400, 'The request body is not valid gzip')));
  payload.once('error', stop);
  payload.once('close', () => {
    if (!payload.readableEnded) stop(new GatewayError(400, 'The request body ended too early'));
  });
  into.once('error', () => stop());
  return payload.pipe(gunzip).pipe(into);
}

function readJson(server: Server): void {
  const parse = server.getDefaultJsonParser('error', 'error') as unknown as FastifyParse;
  server.removeContentTypeParser('application/json');
  server.addContentTypeParser('application/json', (request: FastifyRequest, payload, done) => {
    const reading = {
      bytes_max: request.route.bodyLimit ?? limits.body_bytes_max,
      parse,
      take: (bytes: number) => claimOf(request)?.take(bytes),
      isLeft: () => request.raw.socket?.destroyed === true,
    };
    readJsonBody(request, payload, reading, done);
  });
}

/**
 * Counts requests with a body in the memory that all share, before it is read: what finds no room waits a little, then is refused.
 * For all routes that are registered after it.
 */
export function boundBodies(server: Server, memory: Memory | undefined): void {
  server.decorate('memory', memory);
  readJson(server);
  if (memory === undefined) return;

  server.addHook('preParsing', (request, reply, payload, done) => {
    const { 'content-length': told, 'transfer-encoding': encoding } = request.raw.headers;
    const length = told === undefined ? undefined : Number(told);
    const is_empty = length === undefined ? encoding === undefined : length === 0;
    if (is_empty || request.method === 'GET' || request.method === 'HEAD') {
      done(null, payload);
      return;
    }
    let is_packed: boolean;
    try {
      is_packed = isPacked(request);
    } catch (error) {
      done(error as Error);
      return;
    }
    const bytes_max = bytesMax(request);
    const claim = length !== undefined && length > bytes_max ? undefined : claimOf(request);
    if (claim === undefined) {
      done(tooLarge());
      return;
    }
    // Whoever has left already, while its key was asked for, is not heard of again.
    if (reply.raw.destroyed) claim.release();
    const first_bytes = (is_packed ? undefined : length) ?? Math.min(limits.counted_bytes_step, bytes_max);
    const { headers } = request.raw;
    if (is_packed) {
      // Both are of what was sent, and the body is not that any more.
      delete headers['content-encoding'];
      delete headers['content-length'];
    }
    const read = () => {
      if (is_packed) return unpacked(payload, counted(claim, first_bytes, bytes_max));
      return length === undefined
        ? pipeline(payload, counted(claim, first_bytes, bytes_max), () => undefined)
        : payload;
    };
    whenTaken(
      () => claim.take(limits.request_bytes + first_bytes * limits.body_copies),
      (error) => {
        if (error !== undefined) done(error);
        else done(null, read());
      },
    );
  });
}
