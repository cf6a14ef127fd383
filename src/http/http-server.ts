import { once } from 'node:events';
import { type AddressInfo, createServer, type ListenOptions, type Server as TcpServer } from 'node:net';

// An import would also load Node's fetch and web sockets, some 10 MB.
const { Server: NodeServer } = process.getBuiltinModule('node:http');

/** Error codes of listening on an address that the machine does not have. */
const NO_SUCH_ADDRESS: ReadonlySet<string | undefined> = new Set(['EADDRNOTAVAIL', 'EAFNOSUPPORT']);

/**
 * An HTTP server that can listen on a second address. Timeouts, bounds of connections and close apply to the connections of both.
 */
export class HttpServer extends NodeServer {
  #second: TcpServer | undefined;

  /** Listens on the other loopback address as well. Undefined if this machine has only one. */
  async listenOnOtherLoopback(options: ListenOptions): Promise<AddressInfo | undefined> {
    const { family, port } = this.address() as AddressInfo;
    const host = family === 'IPv6' ? '127.0.0.1' : '::1';
    // The options with which Node's HTTP server creates its own listener.
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

  /** Calls `onClosed` when all connections of both addresses have ended. */
  override close(onClosed?: (error?: Error) => void): this {
    const second = this.#second;
    this.#second = undefined;
    if (second === undefined) return super.close(onClosed);
    const secondClosed = once(second, 'close');
    second.close();
    return super.close((error) => void secondClosed.then(() => onClosed?.(error)));
  }
}
