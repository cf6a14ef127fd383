import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { limits } from '../limits.ts';

const QUEUE = Symbol('queue');
type QueuedSocket = Socket & { [QUEUE]?: RequestQueue };

/** The requests of one connection: one in progress, the others unprocessed until its answer ends. */
class RequestQueue {
  current: ServerResponse | undefined;
  readonly waiting: ServerResponse[] = [];
  readonly #socket: Socket;

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  /** Node resumes reading by itself, at the end of each parsed request and when an answer has been read. */
  readonly hold = (): void => void this.#socket.pause();

  add(response: ServerResponse): void {
    if (this.waiting.length === 0) this.#socket.on('resume', this.hold);
    this.waiting.push(response);
    this.#socket.pause();
  }

  /** Takes the first that waits; undefined if the connection has ended. */
  next(): ServerResponse | undefined {
    const response = this.waiting.shift();
    if (this.#socket.destroyed || this.#socket.writableEnded) {
      this.waiting.length = 0;
      return undefined;
    }
    if (this.waiting.length === 0) {
      this.#socket.off('resume', this.hold);
      this.#socket.resume();
    }
    // The timeout on unread bytes belonged to the last answer.
    this.#socket.setTimeout(0);
    return response;
  }
}

/** The function that Node's HTTP server calls for each parsed request; 2: an upgrade of the protocol, after which it parses nothing more. */
interface Parser {
  onIncoming: () => number;
}

/** Ends the connection. Without the first step Node parses all requests of one read, even if the connection is destroyed. */
function cutOff(socket: Socket): void {
  const { parser } = socket as Socket & { parser?: Parser | null };
  if (parser) parser.onIncoming = () => 2;
  socket.destroy();
}

/**
 * Processes the requests of a connection one at a time, in order. While others wait, nothing is read from the connection. If one read
 * has more than `pipelined_requests_max` requests, the connection is closed.
 */
export function inTurn(server: Server, handle: RequestListener, onExcess: (socket: Socket) => void): void {
  const begin = (queue: RequestQueue, response: ServerResponse) => {
    queue.current = response;
    // The request's own socket may already be detached.
    response.on('close', () => {
      if (queue.current !== response) return;
      queue.current = undefined;
      const next = queue.waiting.length > 0 ? queue.next() : undefined;
      if (next !== undefined) begin(queue, next);
    });
    handle(response.req, response);
  };
  const admit = (request: IncomingMessage, response: ServerResponse) => {
    const socket = request.socket as QueuedSocket;
    if (socket.destroyed) return;
    socket[QUEUE] ??= new RequestQueue(socket);
    const queue = socket[QUEUE];
    if (queue.current === undefined) begin(queue, response);
    else if (queue.waiting.length < limits.pipelined_requests_max) queue.add(response);
    else {
      queue.waiting.length = 0;
      onExcess(socket);
      cutOff(socket);
    }
  };
  server.on('request', admit);
  // Without listeners Node answers these events itself, before any check (`continueLate` answers them in time).
  server.on('checkContinue', admit);
  server.on('checkExpectation', admit);
}
