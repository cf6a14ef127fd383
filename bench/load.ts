import { Connection } from './connection.ts';
import { EventCounter } from './event-counter.ts';

/** The measurements of a load since its window began. */
interface Tally {
  completed: number;
  failed: number;
  chunks: number;
  /** The time of the whole answer, or for streams the time to the first text. */
  samples_ms: number[];
  /** The highest delay of the generator itself: above a few milliseconds its samples mean little. */
  generator_lag_ms: number;
}

/** A load that runs until it is stopped. */
export interface Load {
  readonly tally: Tally;
  /** Begins the counted window: all counts from zero. */
  begin(): void;
  /** Ends the load at once and closes its connections. */
  stop(): void;
}

/** After a failed request its connection rests, so that a dead server is not hammered. */
const REST_MS = 10;
/** Above this bound an open loop waits: the server is saturated, and its numbers show it. */
const OUTSTANDING_MAX = 2_000;

abstract class BaseLoad implements Load {
  readonly tally: Tally = { completed: 0, failed: 0, chunks: 0, samples_ms: [], generator_lag_ms: 0 };
  protected stopped = false;
  protected readonly connections: Connection[] = [];

  begin(): void {
    Object.assign(this.tally, { completed: 0, failed: 0, chunks: 0, samples_ms: [], generator_lag_ms: 0 });
  }

  stop(): void {
    this.stopped = true;
    for (const connection of this.connections) connection.close();
  }

  protected open(port: number): Connection {
    const connection = new Connection(port);
    this.connections.push(connection);
    return connection;
  }

  /** Counts an answer, and returns whether it was correct. */
  protected count(status: number): boolean {
    if (status === 200) this.tally.completed += 1;
    else this.tally.failed += 1;
    return status === 200;
  }
}

/** Every connection sends its next request as soon as it has an answer: measures the highest throughput. */
export class ClosedLoop extends BaseLoad {
  readonly #request: Buffer;

  constructor(port: number, request: Buffer, connections: number) {
    super();
    this.#request = request;
    for (let index = 0; index < connections; index += 1) this.#ask(this.open(port));
  }

  #ask(connection: Connection): void {
    if (this.stopped) return;
    const sentMs = performance.now();
    connection.send(this.#request, {
      onEnd: (status) => {
        if (this.stopped) return;
        if (!this.count(status)) {
          setTimeout(() => this.#ask(connection), REST_MS);
          return;
        }
        this.tally.samples_ms.push(performance.now() - sentMs);
        this.#ask(connection);
      },
    });
  }
}

/**
 * Requests are sent at a fixed rate, whether or not earlier ones were answered: measures the time that a server adds
 * under a given load.
 */
export class OpenLoop extends BaseLoad {
  readonly #port: number;
  readonly #request: Buffer;
  readonly #ratePerMs: number;
  readonly #idle: Connection[] = [];
  readonly #beganMs = performance.now();
  #sent = 0;
  #outstanding = 0;

  constructor(port: number, request: Buffer, ratePerSecond: number) {
    super();
    this.#port = port;
    this.#request = request;
    this.#ratePerMs = ratePerSecond / 1_000;
    this.#tick();
  }

  #tick(): void {
    if (this.stopped) return;
    const nowMs = performance.now();
    const due = Math.floor((nowMs - this.#beganMs) * this.#ratePerMs);
    while (this.#sent < due) {
      if (this.#outstanding >= OUTSTANDING_MAX) {
        this.#sent = due;
        break;
      }
      const lagMs = nowMs - this.#beganMs - this.#sent / this.#ratePerMs;
      this.tally.generator_lag_ms = Math.max(this.tally.generator_lag_ms, lagMs);
      this.#sent += 1;
      this.#ask(this.#idle.pop() ?? this.open(this.#port));
    }
    setTimeout(() => this.#tick(), 1);
  }

  #ask(connection: Connection): void {
    this.#outstanding += 1;
    const sentMs = performance.now();
    connection.send(this.#request, {
      onEnd: (status) => {
        this.#outstanding -= 1;
        if (this.count(status)) this.tally.samples_ms.push(performance.now() - sentMs);
        this.#idle.push(connection);
      },
    });
  }
}

/** A number of streams open at all times; one that ends is followed by the next on the same connection. */
export class Streams extends BaseLoad {
  readonly #request: Buffer;

  /**
   * The first requests are spread evenly over the given time: all at once would measure the backlog of the listening
   * socket.
   */
  constructor(port: number, request: Buffer, count: number, spreadMs: number) {
    super();
    this.#request = request;
    for (let index = 0; index < count; index += 1) {
      const connection = this.open(port);
      setTimeout(() => this.#ask(connection), (index * spreadMs) / count);
    }
  }

  #ask(connection: Connection): void {
    if (this.stopped) return;
    const sentMs = performance.now();
    const counter = new EventCounter(() => this.tally.samples_ms.push(performance.now() - sentMs));
    connection.send(this.#request, {
      onBody: (bytes, start, end) => {
        this.tally.chunks += counter.push(bytes, start, end);
      },
      onEnd: (status) => {
        if (this.stopped) return;
        if (this.count(status)) this.#ask(connection);
        else setTimeout(() => this.#ask(connection), REST_MS);
      },
    });
  }
}
