import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { lookupTable } from '../schemas/lookup-table.ts';
import type { Server } from './server.ts';

const FAULTS: Readonly<Record<string, { status: number; reason: string; message: string }>> = lookupTable({
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
});
const INVALID = { status: 400, reason: 'Bad Request', message: 'The request is not valid HTTP' };

/** Answers bytes that never became a request with an error, and closes the connection. */
export function answerClientError(error: Error, socket: Socket): void {
  const { _httpMessage: answer } = socket as Socket & { _httpMessage?: ServerResponse | null };
  // An answer is in progress, or is due to a request that was received whole. The fault is in a later request: its error would corrupt
  // that answer, or replace it.
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
  // Node ignores the header in HTTP/1.0, and any other expectation.
  return headers.expect !== undefined && httpVersion === '1.1' && /^100-continue$/i.test(headers.expect);
}

/** Sends 100 Continue at once if the request announces no body: nothing is withheld, and otherwise Node would close the connection after a refusal. */
export function continueWithoutBody(request: IncomingMessage, response: ServerResponse): void {
  const { headers } = request;
  if (headers.expect === undefined || !isBodyWithheld(request)) return;
  if (headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0) return;
  delete headers.expect;
  response.writeContinue();
}

/**
 * Sends 100 Continue only after all checks that need no body: key, path, method, length. A client that is refused earlier does not get it,
 * and its connection is closed, since it is unknown whether the body follows. Register it after those checks.
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
