import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Server } from './server.ts';

const FAULTS: Readonly<Record<string, { status: number; reason: string; message: string }>> = {
  HPE_HEADER_OVERFLOW: {
    status: 431,
    reason: 'Request Header Fields Too Large',
    message: 'The request headers are too large',
  },
  ERR_HTTP_REQUEST_TIMEOUT: {
    status: 408,
    reason: 'Request Timeout',
    message: 'The complete request did not arrive in time; send it again',
  },
};
const INVALID = { status: 400, reason: 'Bad Request', message: 'The request is not valid HTTP' };

/** Answers what never became a request, and closes. */
export function answerClientError(error: Error, socket: Socket): void {
  const { _httpMessage: answer } = socket as Socket & { _httpMessage?: ServerResponse | null };
  // An answer is under way, or is owed to a request that was received whole. The fault is of a later request: its error would stand inside
  // that answer, or in its place.
  if (answer && (answer.headersSent || answer.req.complete)) socket.destroy();
  if (!socket.writable) return;
  const { status, reason, message } = FAULTS[(error as NodeJS.ErrnoException).code ?? ''] ?? INVALID;
  const body = JSON.stringify({
    error: { code: status, message, metadata: null },
    gateway_metadata: null,
    user_id: null,
  });
  socket.end(
    `HTTP/1.1 ${status} ${reason}\r\nconnection: close\r\ncontent-type: application/json; charset=utf-8\r\n` +
      `content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}

/** Whether a client waits for 100 Continue before it sends its body (RFC 9110, section 10.1.1). */
export function isBodyWithheld({ headers, httpVersion }: IncomingMessage): boolean {
  // The server ignores it in HTTP/1.0, and any other expectation.
  return headers.expect !== undefined && httpVersion === '1.1' && /^100-continue$/i.test(headers.expect);
}

/** Continues at once where no body was announced: nothing is withheld, and Node would end the connection of a refused request. */
export function continueWithoutBody(request: IncomingMessage, response: ServerResponse): void {
  const { headers } = request;
  if (headers.expect === undefined || !isBodyWithheld(request)) return;
  if (headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0) return;
  delete headers.expect;
  response.writeContinue();
}

/**
 * Tells clients to send a body they announced once all is known that needs no body: the key, the path, the method, the length.
 * Who is refused before does not get it, and the connection ends, since nobody knows whether the body still comes. Must be
 * registered behind what refuses.
 */
export function continueLate(server: Server): void {
  server.addHook('preParsing', ({ raw }, reply, payload, done) => {
    if (isBodyWithheld(raw)) {
      delete raw.headers.expect;
      reply.raw.writeContinue();
    }
    done(null, payload);
  });
}
