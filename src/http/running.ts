import type { FastifyReply, FastifyRequest } from 'fastify';
import { shuttingDown } from '../errors.ts';
import type { Server } from './server.ts';

declare module 'fastify' {
  interface FastifyInstance {
    running: Running;
  }
  interface FastifyRequest {
    /** Its handler is at work. */
    is_handled: boolean;
    /** The gateway stopped before it was at its end. */
    is_stopped: boolean;
  }
}

/** What a server has under way: handlers that have not come to their end yet, also without their client. */
export interface Running {
  /** Resolves when none is running. */
  idle(): Promise<void>;
  /** From now on each answer closes its connection, so that clients look for another gateway. */
  leave(): void;
  isLeaving(): boolean;
  /** Tells handlers that are at work that they are not waited for any longer (`on_stop`). What begins after it is refused. */
  stop(): void;
  /** It was told to stop. */
  hasStopped(): boolean;
}

/** Follows the handlers of all routes that are registered after it, and tells of the end of each, also without its client. */
export function trackRunning(server: Server, told: (request: FastifyRequest, reply: FastifyReply) => void): Running {
  const running = new Set<FastifyRequest>();
  let is_stopped = false;
  let is_leaving = false;
  let waiting: (() => void)[] = [];
  server.addHook('onRoute', (route) => {
    const { handler } = route;
    route.handler = function (request, reply) {
      if (is_stopped) throw shuttingDown();
      running.add(request);
      request.is_handled = true;
      const ended = () => {
        request.is_handled = false;
        told(request, reply);
        running.delete(request);
        if (running.size > 0) return;
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
    idle: () => (running.size === 0 ? Promise.resolve() : new Promise((resolve) => void waiting.push(resolve))),
    stop() {
      is_stopped = true;
      for (const request of running) {
        request.is_stopped = true;
        request.on_stop?.();
      }
    },
    hasStopped: () => is_stopped,
    leave() {
      is_leaving = true;
    },
    isLeaving: () => is_leaving,
  };
}
