import type { ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { limits } from '../limits.ts';

/**
 * From now to its end an answer must be taken, piece by piece: a client that takes nothing for `client_stall_ms_max` is
 * cut off. Node sets the time of an idle connection again when the answer is out.
 */
export function boundUnread({ socket }: ServerResponse): void {
  // An injected request has no connection.
  if (socket instanceof Socket) socket.setTimeout(limits.client_stall_ms_max);
}

/** The same of an answer that is about to be sent, unless the system takes all of it at once, as it does with most. */
export function boundUnreadSoon(answer: ServerResponse): void {
  process.nextTick(() => {
    if (answer.writableEnded && answer.writableLength === 0) return;
    boundUnread(answer);
  });
}
