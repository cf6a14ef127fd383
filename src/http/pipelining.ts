import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { limits } from '../limits.ts';

const QUEUE = Symbol('queue');
type QueuedSocket = Socket & { [QUEUE]?: RequestQueue };

/** The requests of one connection: one is under way, the others wait unprocessed for the end of its answer. */
class RequestQueue {
  underWay: ServerResponse | undefined;
  readonly waiting: ServerResponse[] = [];
  readonly #socket: Socket;

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  /** Node resumes reading on its own, at the end of each request that it has parsed and when an answer has been read. */
  readonly hold = (): void => void this.#socket.pause();

  add(response: ServerResponse): void {
    if (this.waiting.length === 0) this.#socket.on('resume', this.hold);
    this.waiting.push(response);
    this.#socket.pause();
  }

  next(): ServerResponse | undefined {
    this.underWay = undefined;
    const response = this.waiting.shift();
    if (response === undefined) return undefined;
    if (this.#socket.destroyed || this.#socket.writableEnded) {
      this.waiting.length = 0;
      return undefined;
    }
    if (this.waiting.length === 0) {
      this.#socket.off('resume', this.hold);
      this.#socket.resume();
    }
    // The bound on the unread bytes of the last answer is not one of this answer.
    this.#socket.setTimeout(0);
    return response;
  }
}

/**
 * Lets one request of a connection be under way at a time, in the order in which they were sent. While others wait, nothing is
 * read from the connection. One read may bring more than `pipelined_requests_max` requests: then the connection is closed.
 */
export function inTurn(server: Server, handle: RequestListener, onExcess: (socket: Socket) => void): void {
  const begin = (queue: RequestQueue, response: ServerResponse) => {
    queue.underWay = response;
    // Not by the request's socket: a request that is done may have none.
    response.on('close', () => {
      if (queue.underWay !== response) return;
      const next = queue.next();
      if (next !== undefined) begin(queue, next);
    });
    handle(response.req, response);
  };
  const admit = (request: IncomingMessage, response: ServerResponse) => {
    const socket = request.socket as QueuedSocket;
    if (socket.destroyed) return;
    socket[QUEUE] ??= new RequestQueue(socket);
    const queue = socket[QUEUE];
    if (queue.underWay === undefined) begin(queue, response);
    else if (queue.waiting.length < limits.pipelined_requests_max) queue.add(response);
    else {
      queue.waiting.length = 0;
      onExcess(socket);
      socket.destroy();
    }
  };
  server.on('request', admit);
  // Without listeners Node answers these itself, before anything of them is looked at (`continueLate` does it in time).
  server.on('checkContinue', admit);
  server.on('checkExpectation', admit);
}
