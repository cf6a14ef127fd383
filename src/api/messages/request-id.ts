import type { FastifyReply, FastifyRequest } from 'fastify';

/** Clients of this API read the id of a request in a header of its own, also of one that was refused. */
export function tellRequestId(request: FastifyRequest, reply: FastifyReply, _payload: unknown, done: () => void): void {
  if (!reply.hasHeader('request-id')) reply.header('request-id', request.id);
  done();
}
