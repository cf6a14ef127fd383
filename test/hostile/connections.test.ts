import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, test, vi } from 'vitest';
import { limits } from '../../src/limits.ts';
import { startGateway, type TestGateway } from '../harness.ts';

const reservedMsMax = limits.connection_reserved_ms_max;
/** Longer than a busy machine needs. */
const WAIT = { timeout: 60_000 };

let gateway: TestGateway;
const sockets: Socket[] = [];
afterEach(async () => {
  Object.assign(limits, { connection_reserved_ms_max: reservedMsMax });
  for (const socket of sockets.splice(0)) socket.destroy();
  await gateway.stop();
});

/** Starts a gateway, and waits until its own creation of a key uses no connection any more. */
async function startWith(http: object): Promise<void> {
  gateway = await startGateway({ yaml: JSON.stringify({ http }) });
  gateway.gateway.app.server.server.closeIdleConnections();
  await vi.waitFor(() => expect(gateway.gateway.app.server.connections.count()).toBe(0), WAIT);
}

/** A connection from an address of this machine, counted once it is accepted. */
async function open(localAddress: string): Promise<Socket> {
  const accepted = once(gateway.gateway.app.server.server, 'connection');
  const socket = connect({ port: Number(new URL(gateway.url).port), host: '127.0.0.1', localAddress });
  socket.on('error', () => {});
  sockets.push(socket);
  await accepted;
  return socket;
}

async function ask(localAddress: string, path: string): Promise<string> {
  const socket = await open(localAddress);
  socket.write(`GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`);
  // Refused connections are closed with their answer; others are left open.
  const answer = await Promise.race([text(socket), once(socket, 'data').then(([part]) => String(part))]);
  socket.destroy();
  await vi.waitFor(() => expect(gateway.gateway.app.server.connections.reserved.has(socket)).toBe(false), WAIT);
  return answer;
}

const refusals = async () => {
  const lines = (await ask('127.0.0.9', '/metrics')).matchAll(
    /^gateway_connections_refused_total\{bound="(\w+)"\} (\d+)$/gm,
  );
  return Object.fromEntries([...lines].map(([, bound, count]) => [bound, Number(count)]));
};

test('one address is limited to its connections; others, and its own health probes, are served', async () => {
  await startWith({ connections_max: 100, connections_per_address_max: 3 });
  for (let count = 0; count < 3; count += 1) await open('127.0.0.2');
  const refused = await ask('127.0.0.2', '/api/v1/models');
  expect(refused).toMatch(/^HTTP\/1\.1 503 /);
  expect(refused).toMatch(/^connection: close\r$/im);
  expect(refused).toMatch(/^retry-after: 1\r$/im);
  expect(refused).toContain('The gateway has reached its limit of connections');
  expect(await ask('127.0.0.2', '/health/ready')).toMatch(/^HTTP\/1\.1 200 /);
  expect(await ask('127.0.0.3', '/api/v1/models')).toMatch(/^HTTP\/1\.1 200 /);
  expect(await refusals()).toEqual({ connections_per_address_max: 2 });
  const warnings = gateway.log_lines.filter((line) => line.includes('connections_per_address_max'));
  expect(warnings.length).toBe(1);
  expect(warnings[0]).toContain('http.trusted_proxies');
});

test('closed connections of an address can be opened again', async () => {
  await startWith({ connections_max: 100, connections_per_address_max: 2 });
  for (let round = 0; round < 5; round += 1) {
    const opened = [await open('127.0.0.2'), await open('127.0.0.2')];
    expect(await ask('127.0.0.2', '/api/v1/models')).toMatch(/^HTTP\/1\.1 503 /);
    for (const socket of opened) socket.destroy();
    await vi.waitFor(() => expect(gateway.gateway.app.server.connections.count()).toBe(0), WAIT);
  }
});

test('connections of a trusted proxy are not counted by address', async () => {
  await startWith({ connections_max: 100, connections_per_address_max: 1, trusted_proxies: ['127.0.0.2'] });
  for (let count = 0; count < 20; count += 1) await open('127.0.0.2');
  expect(await ask('127.0.0.2', '/api/v1/models')).toMatch(/^HTTP\/1\.1 200 /);
});

test('if all connections are used, a health probe is served, and the store answers it', async () => {
  await startWith({ connections_max: 5, connections_per_address_max: 5 });
  for (let index = 0; index < 5; index += 1) await open(`127.0.0.${index + 2}`);
  expect(await ask('127.0.0.20', '/api/v1/models')).toMatch(/^HTTP\/1\.1 503 /);
  expect(await ask('127.0.0.20', '/health/ready')).toMatch(/^HTTP\/1\.1 200 /);
});

test('beyond the bounds a flood of silent connections keeps few open, and a health probe is still served', async () => {
  await startWith({ connections_max: 1, connections_per_address_max: 1 });
  for (let index = 0; index < 5 * limits.connections_reserved_max; index += 1) await open('127.0.0.2');
  const { connections } = gateway.gateway.app.server;
  await vi.waitFor(() => expect(connections.count()).toBeLessThanOrEqual(1 + limits.connections_reserved_max), WAIT);
  expect(await ask('127.0.0.3', '/health/live')).toMatch(/^HTTP\/1\.1 200 /);
});

test('a silent connection beyond the bounds is closed after two seconds', async () => {
  Object.assign(limits, { connection_reserved_ms_max: 50 });
  await startWith({ connections_max: 1, connections_per_address_max: 1 });
  await open('127.0.0.2');
  const beyond = await open('127.0.0.2');
  beyond.resume();
  await once(beyond, 'close');
  await sleep(1);
  expect(gateway.gateway.app.server.connections.count()).toBe(1);
});

test('a request without a Host header is refused in its turn', async () => {
  await startWith({});
  const socket = await open('127.0.0.2');
  socket.write('GET /health/live HTTP/1.1\r\nhost: x\r\n\r\nGET /health/live HTTP/1.1\r\n\r\n');
  const answers = await text(socket);
  expect([...answers.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status)).toEqual(['200', '400']);
  expect(answers).toContain('The request has no host header');
});
