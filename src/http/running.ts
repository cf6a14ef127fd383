import type { Server } from './server.ts';

/** Which handlers have not come to their end yet, those included whose client has left. */
export interface Running {
  /** Resolves when none is running. */
  idle(): Promise<void>;
}

/** Follows the handlers of all routes that are registered after it. */
export function trackRunning(server: Server): Running {
  let running = 0;
  let waiting: (() => void)[] = [];
  const ended = () => {
    running -= 1;
    if (running > 0) return;
    for (const resolve of waiting) resolve();
    waiting = [];
  };
  server.addHook('onRoute', (route) => {
    const { handler } = route;
    route.handler = function (request, reply) {
      running += 1;
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
  return { idle: () => (running === 0 ? Promise.resolve() : new Promise((resolve) => void waiting.push(resolve))) };
}
