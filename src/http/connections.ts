import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { limits } from '../limits.ts';
import { noteArrival } from '../next-turn.ts';
import { networkOf, type TrustedProxies } from './trusted-proxies.ts';

/** The bound that a connection exceeds; metrics and the log use these names. */
export type ConnectionExcess = 'connections_max' | 'connections_per_address_max' | 'pipelined_requests_max';

export interface ConnectionBounds {
  connections_max: number;
  connections_per_address_max: number;
  trustedProxies: TrustedProxies;
}

/** The connections of clients to one server. */
export interface Connections {
  count(): number;
  /** The connections beyond the bounds: each serves only requests for the gateway's health, and only one. */
  readonly reserved: { has(socket: object): boolean };
  /** Closes connections without a request in progress, including those that never sent a byte, which Node counts as active. */
  closeIdle(): void;
}

/**
 * Bounds the client connections of a server, in total and per address. A few connections beyond the bounds are accepted for health
 * probes: they are closed after a moment, and the oldest one closes when another arrives.
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
    noteArrival();
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
    reserved: reserved as Connections['reserved'],
    closeIdle() {
      server.closeIdleConnections();
      for (const socket of open) if (socket.bytesRead === 0) socket.destroy();
    },
  };
}
