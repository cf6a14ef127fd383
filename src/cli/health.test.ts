import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test, vi } from 'vitest';
import { healthCommand } from './health.ts';

let server: Server | undefined;
afterEach(() => {
  vi.restoreAllMocks();
  server?.closeAllConnections();
  server?.close();
  server = undefined;
});

/** A gateway as seen from outside: it answers each path with a status. */
async function gatewayThat(statuses: Record<string, number>): Promise<string> {
  server = createServer((request, response) => {
    const status = statuses[request.url ?? ''] ?? 404;
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(status === 200 ? '{"status":"ok"}' : '{"error":{"message":"Not ready: the store does not answer"}}');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return String((server.address() as AddressInfo).port);
}

async function health(args: string[], environment: Record<string, string>) {
  const written: string[] = [];
  for (const stream of [process.stdout, process.stderr]) {
    vi.spyOn(stream, 'write').mockImplementation((text) => written.push(String(text)) > 0);
  }
  return { code: await healthCommand.run(args, environment), text: written.join('') };
}

test.each(['127.0.0.1', '0.0.0.0', 'localhost'])(
  'a ready gateway results in exit code 0, also if it listens on %s',
  async (host) => {
    const port = await gatewayThat({ '/health/ready': 200 });
    expect(await health([], { GATEWAY_HOST: host, GATEWAY_PORT: port })).toEqual({ code: 0, text: 'ready\n' });
  },
);

test('one that is not ready results in 1 with its reason, and with --live in 0', async () => {
  const port = await gatewayThat({ '/health/ready': 503, '/health/live': 200 });
  expect(await health([], { GATEWAY_PORT: port })).toEqual({
    code: 1,
    text: `The gateway at 127.0.0.1 port ${port} answered 503: Not ready: the store does not answer\n`,
  });
  expect(await health(['--live'], { GATEWAY_PORT: port })).toEqual({ code: 0, text: 'live\n' });
});

test('without an answer it results in 1 and names the address, and uses no proxy', async () => {
  const port = await gatewayThat({});
  server?.close();
  const proxy = { HTTP_PROXY: `http://127.0.0.1:${port}` };
  expect(await health([], { GATEWAY_PORT: port, ...proxy })).toEqual({
    code: 1,
    text: `No gateway answers at 127.0.0.1 port ${port} (ECONNREFUSED). Start it, or set GATEWAY_HOST and GATEWAY_PORT to its address.\n`,
  });
});

test('port 0 cannot be checked', async () => {
  await expect(healthCommand.run([], { GATEWAY_PORT: '0' })).rejects.toThrow(
    'GATEWAY_PORT is 0, so the port is not known',
  );
});
