/** A gateway that listens on `localhost` serves both of its addresses, with the same protection on each. */
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { limits } from '../../src/limits.ts';
import { startGateway, type TestGateway } from '../harness.ts';
import { rawClient } from './raw-http.ts';

const ADDRESSES = ['127.0.0.1', '::1'];
/** Longer than a busy machine needs. */
const WAIT = { timeout: 60_000 };
const GET_LIVE = 'GET /health/live HTTP/1.1\r\nhost: x\r\n\r\n';

const probe = createServer().listen(0, '::1');
const hasIpv6 = await once(probe, 'listening').then(
  () => true,
  () => false,
);
probe.close();

describe.skipIf(!hasIpv6)('a gateway on localhost', () => {
  let gateway: TestGateway;
  const sockets: Socket[] = [];
  afterEach(async () => {
    for (const socket of sockets.splice(0)) socket.destroy();
    await gateway?.stop();
  });

  const port = () => Number(new URL(gateway.url).port);
  const urlOf = (host: string) => `http://${host === '::1' ? '[::1]' : host}:${port()}`;
  const open = async (host: string): Promise<Socket> => {
    const socket = connect(port(), host).on('error', () => {});
    sockets.push(socket);
    await once(socket, 'connect');
    return socket;
  };
  const start = async (http: object = {}, more: object = {}) => {
    gateway = await startGateway({
      yaml: JSON.stringify({ http, ...more }),
      environment: { GATEWAY_HOST: 'localhost' },
    });
    gateway.gateway.app.server.server.closeIdleConnections();
    await vi.waitFor(() => expect(gateway.gateway.app.server.connections.count()).toBe(0), WAIT);
  };

  test('answers on 127.0.0.1 and on ::1, like the listener of its metrics', async () => {
    const metrics = createServer().listen(0, '127.0.0.1');
    await once(metrics, 'listening');
    const { port: metricsPort } = metrics.address() as { port: number };
    metrics.close();
    await once(metrics, 'close');
    await start({}, { metrics: { host: 'localhost', port: metricsPort } });
    for (const host of ADDRESSES) {
      expect((await fetch(`${urlOf(host)}/health/live`)).status).toBe(200);
      const url = new URL(urlOf(host));
      url.port = String(metricsPort);
      expect((await fetch(new URL('/metrics', url))).status).toBe(200);
    }
  });

  test('bounds the connections of both addresses together', async () => {
    await start({ connections_max: 2, connections_per_address_max: 2 });
    for (const host of ADDRESSES) await open(host);
    await vi.waitFor(() => expect(gateway.gateway.app.server.connections.count()).toBe(2), WAIT);
    for (const host of ADDRESSES) {
      expect((await fetch(`${urlOf(host)}/api/v1/models`)).status).toBe(503);
      expect((await fetch(`${urlOf(host)}/health/live`)).status).toBe(200);
    }
  });

  test.each(ADDRESSES)('closes a connection to %s with too many requests at once', async (host) => {
    await start();
    const client = await open(host);
    client.resume().write(GET_LIVE.repeat(4 * limits.pipelined_requests_max));
    await once(client, 'close');
  });

  test('closes silent connections of both addresses when it stops, and lets running calls end', async () => {
    await start();
    const silent = await Promise.all(ADDRESSES.map(open));
    const busy = await Promise.all(ADDRESSES.map((host) => rawClient(urlOf(host))));
    const body = JSON.stringify({ model: 'sandbox/echo', messages: [{ role: 'user', content: 'hello' }] });
    const head = `POST /api/v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${gateway.key}\r\n`;
    for (const { send } of busy) {
      send(`${head}content-type: application/json\r\ncontent-length: ${body.length}\r\nexpect: 100-continue\r\n\r\n`);
    }
    // A connection is accepted when it gets 100 Continue.
    for (const { received } of busy) await vi.waitFor(() => expect(received()).toContain('100 Continue'), WAIT);
    const closed = [...silent, ...busy.map(({ socket }) => socket)].map((socket) => once(socket.resume(), 'close'));
    const stopped = gateway.gateway.stop();
    await once(silent[1] as Socket, 'close');
    for (const { send } of busy) send(body);
    await Promise.all(closed);
    await stopped;
    for (const { received } of busy) expect(received()).toContain('HTTP/1.1 200 OK');
    for (const host of ADDRESSES) {
      const [error] = (await once(connect(port(), host), 'error')) as [NodeJS.ErrnoException];
      expect(error.code).toBe('ECONNREFUSED');
    }
  });

  test('does not start if another process listens on one of its addresses', async () => {
    await start();
    const other = createServer().listen(0, '::1');
    await once(other, 'listening');
    const { port: taken } = other.address() as { port: number };
    const starting = startGateway({ environment: { GATEWAY_HOST: 'localhost', GATEWAY_PORT: String(taken) } });
    await expect(starting).rejects.toThrow(/EADDRINUSE.*::1/);
    other.close();
  });
});
