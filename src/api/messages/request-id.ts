import type { HttpReply, HttpRequest } from '../../http/request.ts';

/** Sends the request id in the header in which clients of this API read it, also with errors. */
export function sendRequestId(request: HttpRequest, reply: HttpReply, _payload: unknown, done: () => void): void {
  if (!reply.hasHeader('request-id')) reply.header('request-id', request.id);
  done();
}
