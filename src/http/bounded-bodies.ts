import { pipeline, Transform } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { limits } from '../limits.ts';
import { type Claim, type Memory, structureBytes } from './memory.ts';
import type { Server } from './server.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** What it holds of the memory that all share. Made when first asked for: see `claimOf`. */
    claim: Claim | undefined;
    /** Its handler gives the claim back. */
    is_handled: boolean;
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

/** Counts a body of unknown length as it comes, and stops reading it while there is no room. */
function counted(claim: Claim): Transform {
  let received = 0;
  let taken = limits.counted_bytes_min;
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      received += chunk.length;
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

function releaseAfter({ claim }: FastifyRequest, { raw }: FastifyReply): void {
  if (claim === undefined) return;
  // An injected request has no connection that closes.
  if (claim.held_bytes === 0 || raw.writableFinished || raw.destroyed) claim.release();
  else raw.once('close', () => claim.release());
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

/**
 * Counts the bodies of requests in the memory that all share, before they are read: what finds no room waits a little, then is
 * refused. Small ones cost nothing. For all routes that are registered after it.
 */
export function boundBodies(server: Server, memory: Memory | undefined): void {
  server.decorateRequest('claim', undefined);
  server.decorateRequest('is_handled', false);
  server.decorate('memory', memory);
  if (memory === undefined) return;

  server.addHook('preParsing', (request, reply, payload, done) => {
    const { 'content-length': told, 'transfer-encoding': encoding } = request.raw.headers;
    const length = told === undefined ? undefined : Number(told);
    const is_small = length === undefined ? encoding === undefined : length <= limits.counted_bytes_min;
    const is_refused = length !== undefined && length > request.routeOptions.bodyLimit;
    const claim = is_small || is_refused || request.method === 'GET' ? undefined : claimOf(request);
    if (claim === undefined) {
      done(null, payload);
      return;
    }
    reply.raw.once('close', () => {
      if (!request.is_handled) claim.release();
    });
    if (length === undefined) {
      done(
        null,
        pipeline(payload, counted(claim), () => undefined),
      );
    } else
      whenTaken(
        () => claim.take(length * limits.body_copies),
        (error) => done(error ?? null, payload),
      );
  });

  const parse = server.getDefaultJsonParser('error', 'error');
  server.removeContentTypeParser('application/json');
  server.addContentTypeParser<string>('application/json', { parseAs: 'string' }, (request, body, done) => {
    const claim = body.length <= limits.counted_bytes_min ? undefined : claimOf(request);
    if (claim === undefined) void parse(request, body, done);
    else
      whenTaken(
        () => claim.take(structureBytes(body)),
        (error) => (error === undefined ? void parse(request, body, done) : done(error)),
      );
  });

  server.addHook('onRoute', (route) => {
    const { handler } = route;
    route.handler = function (request, reply) {
      request.is_handled = true;
      const ended = () => releaseAfter(request, reply);
      try {
        const answer: unknown = handler.call(this, request, reply);
        if (answer instanceof Promise) answer.then(ended, ended);
        else ended();
        return answer;
      } catch (error) {
        ended();
        throw error;
      }
    };
  });
}
