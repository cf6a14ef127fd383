import diagnostics from 'node:diagnostics_channel';
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import type { TestGateway } from '../harness.ts';

/** The current cost of one connection for the server. */
export interface Cost {
  /** Parsed requests that are not answered completely. */
  parsed: number;
  /** Those of them whose answer has begun. */
  under_way: number;
  /** Bytes of answers that the client has not read. */
  unread_bytes: number;
}

/** The server's side of the connections of a gateway in this process, seen through Node's diagnostics channels. */
export interface WatchedServer {
  /** Opens a connection whose client reads nothing. Returns the server's side of it. */
  open(localAddress?: string): Promise<{ client: Socket; server: Socket }>;
  costOf(server: Socket): Cost;
  /** The highest cost of this connection since it was opened, each number by itself. */
  worstOf(server: Socket): Cost;
  stop(): void;
}

export function watchServer({ gateway, url }: TestGateway): WatchedServer {
  const responses = new Map<Socket, Set<ServerResponse>>();
  const worst = new Map<Socket, Cost>();
  const clients = new Set<Socket>();
  const http = gateway.app.server.server;
  // One waiter for each connection.
  http.setMaxListeners(0);

  const costOf = (socket: Socket): Cost => {
    const open = [...(responses.get(socket) ?? [])];
    return {
      parsed: open.length,
      under_way: open.filter(({ headersSent }) => headersSent).length,
      unread_bytes: open.reduce((sum, { writableLength }) => sum + writableLength, 0),
    };
  };
  const note = (socket: Socket) => {
    const [now, before] = [costOf(socket), worst.get(socket)];
    worst.set(socket, {
      parsed: Math.max(now.parsed, before?.parsed ?? 0),
      under_way: Math.max(now.under_way, before?.under_way ?? 0),
      unread_bytes: Math.max(now.unread_bytes, before?.unread_bytes ?? 0),
    });
  };
  const onStart = (message: unknown) => {
    const { response, socket } = message as { response: ServerResponse; socket: Socket };
    const open = responses.get(socket) ?? new Set();
    responses.set(socket, open.add(response));
    note(socket);
    const end = response.end;
    response.end = function (this: ServerResponse, ...parts: unknown[]) {
      const ended = Reflect.apply(end, this, parts);
      note(socket);
      return ended;
    } as typeof end;
    response.once('finish', () => void open.delete(response));
  };
  diagnostics.subscribe('http.server.request.start', onStart);
  const onConnection = (socket: Socket) => socket.once('close', () => responses.delete(socket));
  http.on('connection', onConnection);

  return {
    async open(localAddress) {
      const accepted = once(http, 'connection');
      const client = connect({
        port: Number(new URL(url).port),
        host: '127.0.0.1',
        ...(localAddress === undefined ? {} : { localAddress }),
      });
      client.on('error', () => {}).pause();
      clients.add(client);
      const [server] = (await accepted) as [Socket];
      return { client, server };
    },
    costOf,
    worstOf: (socket) => worst.get(socket) ?? { parsed: 0, under_way: 0, unread_bytes: 0 },
    stop() {
      diagnostics.unsubscribe('http.server.request.start', onStart);
      http.off('connection', onConnection);
      for (const client of clients) client.destroy();
    },
  };
}

/** Every registered path with its methods, as Fastify prints them. */
export function routesOf({ gateway }: TestGateway): { method: string; path: string }[] {
  const stack: string[] = [];
  return gateway.app.server
    .printRoutes({ commonPrefix: false })
    .split('\n')
    .flatMap((line) => {
      const [, indent = '', piece = '', methods] = /^((?:[│ ] {3})*)[├└]── (.*?)(?: \(([A-Z, ]+)\))?$/.exec(line) ?? [];
      if (piece === '') return [];
      stack.length = indent.length / 4;
      stack.push(piece === '(empty root node)' ? '' : piece);
      const path = stack
        .join('')
        .replace(/:model\|:author|:author/, 'sandbox')
        .replace(/:slug/, 'echo')
        .replace(/:(\w+)/g, 'some');
      return (methods ?? '').split(', ').flatMap((method) => (method === '' ? [] : [{ method, path }]));
    });
}
