import { shuttingDown } from '../errors.ts';
import type { HttpRequest } from './request.ts';
import type { Server } from './server.ts';

declare module 'fastify' {
  interface FastifyInstance {
    running: Running;
  }
  interface FastifyRequest {
    /** Its place among the requests whose handlers are running; -1 if its handler is not. */
    running_at: number;
    /** Whether the gateway stopped before the request ended. */
    is_stopped: boolean;
  }
}

/** The handlers that are running, also those whose clients have left. */
export interface Running {
  /** Resolves when no handler is running. */
  idle(): Promise<void>;
  /** From now on each answer closes its connection, so that clients connect to another gateway. */
  leave(): void;
  readonly isLeaving: boolean;
  /** Stops waiting for handlers: notifies those that are running (`on_stop`), and refuses requests that arrive later. */
  stop(): void;
  /** Whether `stop` was called. */
  readonly hasStopped: boolean;
}

/**
 * The requests whose handlers are running, in no order. Not a Set: whenever requests come and go, a Set makes new tables, and each
 * table refers to the next. Once an old table is no longer part of the young generation, what later ones have had outlives all of its
 * collections: whole requests, with their bodies and records.
 */
class RunningRequests {
  readonly list: HttpRequest[] = [];

  add(request: HttpRequest): void {
    request.running_at = this.list.push(request) - 1;
  }

  remove(request: HttpRequest): void {
    const last = this.list.pop()!;
    if (last !== request) {
      this.list[request.running_at] = last;
      last.running_at = request.running_at;
    }
    request.running_at = -1;
  }
}

/** Tracks the handlers of all routes that are registered afterwards, also those whose clients have left. */
export function trackRunning(server: Server): Running {
  const running = new RunningRequests();
  let waiting: (() => void)[] = [];
  const state = {
    isLeaving: false,
    hasStopped: false,
    idle: (): Promise<void> =>
      running.list.length === 0 ? Promise.resolve() : new Promise((resolve) => void waiting.push(resolve)),
    stop() {
      state.hasStopped = true;
      for (const request of [...running.list]) {
        request.is_stopped = true;
        request.on_stop?.();
      }
    },
    leave() {
      state.isLeaving = true;
    },
  };
  server.addHook('onRoute', (route) => {
    const { handler } = route;
    route.handler = function (request, reply) {
      if (state.hasStopped) throw shuttingDown();
      running.add(request);
      const ended = () => {
        running.remove(request);
        // The close of the answer releases the memory if it comes later. An injected request has no connection that closes.
        if (reply.raw.writableFinished || reply.raw.destroyed) request.claim?.release();
        if (running.list.length > 0) return;
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
  return state;
}
