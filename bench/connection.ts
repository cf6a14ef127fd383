import { connect, type Socket } from 'node:net';
import { HttpReader } from './http-reader.ts';

/** The address of a server and its requests without their bodies. */
export interface Target {
  port: number;
  path: string;
  headers: Readonly<Record<string, string>>;
}

/** The bytes of one POST, made once and sent many times. */
export function requestBytes(target: Target, body: string): Buffer {
  const headers: Record<string, string> = {
    host: `127.0.0.1:${target.port}`,
    'content-type': 'application/json',
    accept: '*/*',
    ...target.headers,
    'content-length': String(Buffer.byteLength(body)),
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return Buffer.from(`POST ${target.path} HTTP/1.1\r\n${lines.join('')}\r\n${body}`);
}

/** What a connection reports to the listener of its answer. */
export interface Listener {
  /** Bytes of the body, without the transfer coding. */
  onBody?(bytes: Buffer, start: number, end: number): void;
  /** The answer is complete. Status 0: the connection broke before that. */
  onEnd(status: number): void;
}

/** A keep-alive connection that carries one request at a time, and reconnects after the server has closed it. */
export class Connection {
  readonly #port: number;
  #socket: Socket | undefined;
  #listener: Listener | undefined;
  #status = 0;

  constructor(port: number) {
    this.#port = port;
  }

  /** Sends one request. The previous answer must have ended. */
  send(request: Buffer, listener: Listener): void {
    this.#listener = listener;
    this.#status = 0;
    this.#socket ??= this.#open();
    this.#socket.write(request);
  }

  /** Disconnects without waiting for the answer; the listener gets no further calls. */
  close(): void {
    this.#listener = undefined;
    this.#socket?.destroy();
    this.#socket = undefined;
  }

  #open(): Socket {
    const socket = connect({ host: '127.0.0.1', port: this.#port, noDelay: true });
    const reader = new HttpReader({
      onHead: (head) => {
        this.#status = Number.parseInt(head.slice(9, 12), 10);
      },
      onBody: (bytes, start, end) => this.#listener?.onBody?.(bytes, start, end),
      onEnd: () => this.#finish(this.#status),
    });
    socket.on('data', (bytes) => reader.push(bytes));
    socket.on('error', () => socket.destroy());
    socket.on('close', () => {
      if (this.#socket !== socket) return;
      this.#socket = undefined;
      if (this.#listener !== undefined) this.#finish(0);
    });
    return socket;
  }

  #finish(status: number): void {
    const listener = this.#listener;
    this.#listener = undefined;
    listener?.onEnd(status);
  }
}

/** The whole answer to one request, for checks and for setting a server up. */
export function exchange(port: number, request: Buffer): Promise<{ status: number; body: string }> {
  return new Promise((resolve) => {
    const connection = new Connection(port);
    let body = '';
    connection.send(request, {
      onBody: (bytes, start, end) => {
        body += bytes.toString('utf8', start, end);
      },
      onEnd: (status) => {
        connection.close();
        resolve({ status, body });
      },
    });
  });
}
