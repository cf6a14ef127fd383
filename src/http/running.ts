import type { Socket } from 'node:net';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Server } from './server.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Its handler is at work. */
    is_handled: boolean;
  }
}

/** What a server has under way: handlers that have not come to their end yet, also without their client, and connections. */
export interface Running {
  /** Resolves when none is running. */
  idle(): Promise<void>;
  /** Closes connections on which nothing is under way, those included that never brought a byte: Node calls these active. */
  closeIdleConnections(): void;
}

/** Follows the handlers of all routes that are registered after it, and tells of the end of each, also without its client. */
export function trackRunning(server: Server, told: (request: FastifyRequest, reply: FastifyReply) => void): Running {
  const sockets = new Set<Socket>();
  server.server.on('connection', (socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  let running = 0;
  let waiting: (() => void)[] = [];
  server.addHook('onRoute', (route) => {
    const { handler } = route;
    route.handler = function (request, reply) {
      running += 1;
      request.is_handled = true;
      const ended = () => {
        request.is_handled = false;
        told(request, reply);
        running -= 1;
        if (running > 0) return;
        for (const resolve of waiting) resolve();
        waiting = [];
      };
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
  return {
    idle: () => (running === 0 ? Promise.resolve() : new Promise((resolve) => void waiting.push(resolve))),
    closeIdleConnections() {
      server.server.closeIdleConnections();
      for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy();
    },
  };
}
