import type { ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { limits } from '../limits.ts';

/**
 * Closes the connection of an answer if its client reads nothing for `client_stall_ms_max`. Node sets its own timeout again when the
 * answer is sent.
 */
export function boundUnread({ socket }: ServerResponse): void {
  // An injected request has no connection.
  if (socket instanceof Socket) socket.setTimeout(limits.client_stall_ms_max);
}

/** Does the same for an answer that was sent, unless the operating system took all of it at once, as it mostly does. */
export function boundIfUnread(answer: ServerResponse): void {
  if (answer.writableEnded && answer.writableLength === 0) return;
  boundUnread(answer);
}
