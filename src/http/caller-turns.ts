import { GatewayError } from '../errors.ts';
import { limits } from '../limits.ts';
import { nextTurn } from '../next-turn.ts';
import { callerName } from './principal.ts';
import type { HttpRequest } from './request.ts';
import { accessOf, type Server } from './server.ts';

declare module 'fastify' {
  interface FastifyInstance {
    callerTurns: CallerTurns;
  }
  interface FastifyRequest {
    /** Ends the turn of its operation; further calls do nothing. Undefined for operations without turns. */
    end_turn: (() => void) | undefined;
  }
}

/** Ends a turn. Further calls do nothing. */
type End = () => void;

interface CallerQueue {
  running: number;
  readonly waiting: ((end: End) => void)[];
}

/**
 * Gives each caller at most `turnsMax` turns at a time. Further operations of a caller wait in order; other callers do not wait
 * for them.
 */
class CallerTurns {
  readonly #queues = new Map<string, CallerQueue>();
  readonly #turnsMax: number;
  /** Throws or rejects with the refusal of a caller that has ended since it was found. */
  readonly confirm: (request: HttpRequest) => Promise<void> | undefined;

  constructor(
    confirm: (request: HttpRequest) => Promise<void> | undefined,
    turnsMax: number = limits.caller_operations_max,
  ) {
    this.confirm = confirm;
    this.#turnsMax = turnsMax;
  }

  /** Begins a turn at once if the caller has few, otherwise when one of them ends. */
  begin(caller: string): End | Promise<End> {
    let queue = this.#queues.get(caller);
    if (queue === undefined) {
      queue = { running: 0, waiting: [] };
      this.#queues.set(caller, queue);
    }
    const { waiting } = queue;
    if (queue.running >= this.#turnsMax) return new Promise((resolve) => void waiting.push(resolve));
    queue.running += 1;
    return this.#endOf(caller, queue);
  }

  #endOf(caller: string, queue: CallerQueue): End {
    let hasEnded = false;
    return () => {
      if (hasEnded) return;
      hasEnded = true;
      const next = queue.waiting.shift();
      if (next === undefined) {
        queue.running -= 1;
        if (queue.running === 0) this.#queues.delete(caller);
        return;
      }
      // In a later turn of the event loop: many short operations must not become one long turn.
      setImmediate(next, this.#endOf(caller, queue));
    };
  }
}

/**
 * Makes a part of an answer that is sent while the client reads it, in a turn of its caller. Rejects if the caller's key, secret or session
 * has ended, or the role of a person is another one: the answer was begun with the rights of the former role.
 */
export async function inCallerTurn<T>(request: HttpRequest, make: () => Promise<T>): Promise<T> {
  const { principal, server } = request;
  // A client that reads fast leaves turns of the event loop to others as well.
  await nextTurn();
  const end = principal && (await server.callerTurns.begin(callerName(principal)));
  try {
    await server.callerTurns.confirm(request);
    if (request.principal?.session?.role !== principal?.session?.role) {
      throw new GatewayError(403, 'Your role in the organization has changed; send the request again');
    }
    return await make();
  } finally {
    end?.();
  }
}

/**
 * Bounds the operations of one caller that run at a time, for all operations with a key or session that call no model and are registered
 * afterwards: most read the store, which all callers share. An operation ends when its answer is made
 * (the server's `onSend` calls `end_turn`): the time in which the client reads it does not count.
 */
export function boundCallers(server: Server, confirm: (request: HttpRequest) => Promise<void> | undefined): void {
  const turns = new CallerTurns(confirm);
  server.decorate('callerTurns', turns);
  server.addHook('onRoute', (route) => {
    const access = accessOf(route.config);
    if ((access !== 'management' && access !== 'any') || route.config?.shared === true) return;
    const { handler } = route;
    route.handler = function (request, reply) {
      const { principal } = request;
      const run = (end: End | undefined): unknown => {
        request.end_turn = end;
        // The client left while its request waited.
        if (reply.raw.destroyed) {
          end?.();
          return reply.hijack();
        }
        try {
          const answer: unknown = handler.call(this, request, reply);
          if (end !== undefined && answer instanceof Promise) answer.then(end, end);
          return answer;
        } catch (error) {
          end?.();
          throw error;
        }
      };
      const confirmed = async (end: End): Promise<unknown> => {
        try {
          await turns.confirm(request);
        } catch (error) {
          end();
          throw error;
        }
        return run(end);
      };
      const turn = principal && turns.begin(callerName(principal));
      return turn instanceof Promise ? turn.then(confirmed) : run(turn);
    };
  });
}
