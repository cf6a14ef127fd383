import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { limits } from '../limits.ts';
import { networkOf, type TrustedProxies } from './trusted-proxies.ts';

/** Why a connection was closed, or serves nothing but the health of the gateway: metrics and the log name it. */
export type ConnectionExcess = 'connections_max' | 'connections_per_address_max' | 'pipelined_requests_max';

export interface ConnectionBounds {
  connections_max: number;
  connections_per_address_max: number;
  trustedProxies: TrustedProxies;
}

/** The connections of clients to one server. */
export interface Connections {
  count(): number;
  /** Whether a connection is beyond the bounds: it is served the health of the gateway, once, and nothing else. */
  isReserved(socket: object): boolean;
  /** Closes connections on which nothing is under way, those included that never brought a byte: Node calls these active. */
  closeIdle(): void;
}

/**
 * Bounds the connections of clients, in all and of one address. Beyond the bounds a few more are accepted, so that a health
 * probe gets its answer: they are closed after a moment, and the oldest at once when another one comes.
 */
export function boundConnections(
  server: Server,
  bounds: ConnectionBounds,
  onExcess: (reason: ConnectionExcess, socket: Socket) => void,
): Connections {
  const open = new Set<Socket>();
  const reserved = new Set<Socket>();
  const byNetwork = new Map<string, number>();

  const reserve = (socket: Socket) => {
    const [oldest] = reserved;
    if (reserved.size >= limits.connections_reserved_max) oldest?.destroy();
    if (oldest?.destroyed) reserved.delete(oldest);
    reserved.add(socket);
    const late = setTimeout(() => socket.destroy(), limits.connection_reserved_ms_max).unref();
    socket.once('close', () => {
      clearTimeout(late);
      reserved.delete(socket);
    });
  };
  const count = (network: string) => {
    byNetwork.set(network, (byNetwork.get(network) ?? 0) + 1);
    return () => {
      const left = (byNetwork.get(network) ?? 0) - 1;
      if (left > 0) byNetwork.set(network, left);
      else byNetwork.delete(network);
    };
  };
  const excessOf = (network: string | undefined): ConnectionExcess | undefined => {
    if (open.size - reserved.size >= bounds.connections_max) return 'connections_max';
    const has = network === undefined ? 0 : (byNetwork.get(network) ?? 0);
    return has >= bounds.connections_per_address_max ? 'connections_per_address_max' : undefined;
  };

  server.on('connection', (socket: Socket) => {
    const { remoteAddress } = socket;
    const network = bounds.trustedProxies.includes(remoteAddress) ? undefined : networkOf(remoteAddress);
    const excess = excessOf(network);
    open.add(socket);
    socket.once('close', () => open.delete(socket));
    if (excess !== undefined) {
      onExcess(excess, socket);
      reserve(socket);
    } else if (network !== undefined) socket.once('close', count(network));
  });
  return {
    count: () => open.size,
    isReserved: (socket) => reserved.has(socket as Socket),
    closeIdle() {
      server.closeIdleConnections();
      for (const socket of open) if (socket.bytesRead === 0) socket.destroy();
    },
  };
}
