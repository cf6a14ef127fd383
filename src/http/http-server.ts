import { once } from 'node:events';
import { type AddressInfo, createServer, type ListenOptions, type Server as TcpServer } from 'node:net';

// An import would load Node's fetch and web sockets as well: some 10 MB.
const { Server: NodeServer } = process.getBuiltinModule('node:http');

/** What a machine without an address says when somebody is to listen on it. */
const NO_SUCH_ADDRESS: ReadonlySet<string | undefined> = new Set(['EADDRNOTAVAIL', 'EAFNOSUPPORT']);

/**
 * An HTTP server that can listen on a second address. All connections are its own, so that its timeouts, the bounds of its
 * connections and its close cover both.
 */
export class HttpServer extends NodeServer {
  #second: TcpServer | undefined;

  /** Listens on the other address of `localhost` as well; undefined: this machine has only one of them. */
  async listenOnOtherLoopback(options: ListenOptions): Promise<AddressInfo | undefined> {
    const { family, port } = this.address() as AddressInfo;
    const host = family === 'IPv6' ? '127.0.0.1' : '::1';
    // As Node's HTTP server listens for itself.
    const second = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => this.emit('connection', socket));
    try {
      second.listen({ ...options, host, port });
      await once(second, 'listening');
    } catch (error) {
      if (NO_SUCH_ADDRESS.has((error as NodeJS.ErrnoException).code)) return undefined;
      throw error;
    }
    this.#second = second;
    return second.address() as AddressInfo;
  }

  /** `onClosed` is called when all connections of both addresses have ended. */
  override close(onClosed?: (error?: Error) => void): this {
    const second = this.#second;
    this.#second = undefined;
    if (second === undefined) return super.close(onClosed);
    const secondClosed = once(second, 'close');
    second.close();
    return super.close((error) => void secondClosed.then(() => onClosed?.(error)));
  }
}
