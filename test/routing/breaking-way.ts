import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/**
 * A proxy to a server that can be broken. `open`: bytes pass. `closed`: open connections are cut, and new ones are
 * refused at once. `silent`: connections stay, new ones are accepted, and nothing passes, as if packets were dropped or
 * the server were frozen; what is sent meanwhile is lost.
 */
export interface BreakingWay {
  port: number;
  /** The server's address through this proxy. */
  url(of: string): string;
  set(state: 'open' | 'closed' | 'silent'): void;
  /** The delay of every answer. */
  delay(ms: number): void;
  /** Calls this for each piece of an answer, before it is passed on. */
  onAnswer(listener: () => void): void;
  /** Connections of clients that are open now. */
  connections(): number;
  stop(): Promise<void>;
}

export async function breakingWay(target: string): Promise<BreakingWay> {
  const { hostname, port: to } = new URL(target);
  const pairs = new Map<Socket, Socket>();
  let state: 'open' | 'closed' | 'silent' = 'open';
  let lateMs = 0;
  let answered: (() => void) | undefined;
  const server = createServer((client) => {
    if (state === 'closed') {
      client.resetAndDestroy();
      return;
    }
    const upstream = connect(Number(to || 5432), hostname);
    pairs.set(client, upstream);
    // A proxy that fell silent stays silent for the connections of that time.
    let isDead = false;
    const pass = (bytes: Buffer, onward: Socket, waitMs: number) => {
      isDead ||= state === 'silent';
      if (isDead) return;
      if (waitMs === 0) onward.write(bytes);
      else setTimeout(() => onward.destroyed || onward.write(bytes), waitMs);
    };
    client.on('data', (bytes) => pass(bytes, upstream, 0));
    upstream.on('data', (bytes) => {
      answered?.();
      pass(bytes, client, lateMs);
    });
    for (const socket of [client, upstream]) socket.on('error', () => {});
    client.on('close', () => {
      pairs.delete(client);
      upstream.destroy();
    });
    upstream.on('close', () => client.destroy());
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    port,
    url: (of) => Object.assign(new URL(of), { hostname: '127.0.0.1', port: String(port) }).href,
    set(next) {
      state = next;
      if (next === 'closed') for (const client of pairs.keys()) client.resetAndDestroy();
    },
    delay(ms) {
      lateMs = ms;
    },
    onAnswer(listener) {
      answered = listener;
    },
    connections: () => pairs.size,
    async stop() {
      server.close();
      for (const client of pairs.keys()) client.destroy();
      await once(server, 'close');
    },
  };
}
