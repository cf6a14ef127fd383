import type { Socket } from 'node:net';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Server } from './server.ts';

/** What a server has under way: handlers that have not come to their end yet, also without their client, and connections. */
export interface Running {
  /** Resolves when none is running. */
  idle(): Promise<void>;
  /** Closes connections on which nothing is under way, those included that never brought a byte: Node calls these active. */
  closeIdleConnections(): void;
}

/** Calls `begin` before the handler of each route that is registered after it, and what that returns at the handler's end, also without its client. */
export function followHandlers(
  server: Server,
  begin: (request: FastifyRequest, reply: FastifyReply) => () => void,
): void {
  server.addHook('onRoute', (route) => {
    const { handler } = route;
    route.handler = function (request, reply) {
      const ended = begin(request, reply);
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

/** Follows the handlers of all routes that are registered after it. */
export function trackRunning(server: Server): Running {
  const sockets = new Set<Socket>();
  server.server.on('connection', (socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  let running = 0;
  let waiting: (() => void)[] = [];
  const ended = () => {
    running -= 1;
    if (running > 0) return;
    for (const resolve of waiting) resolve();
    waiting = [];
  };
  followHandlers(server, () => {
    running += 1;
    return ended;
  });
  return {
    idle: () => (running === 0 ? Promise.resolve() : new Promise((resolve) => void waiting.push(resolve))),
    closeIdleConnections() {
      server.server.closeIdleConnections();
      for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy();
    },
  };
}
