/**
 * A server that sends endless interim answers costs a bounded number of them, for each of its callers: media, pages and
 * services.
 */
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createMediaFetcher, createPageFetcher } from '../../src/providers/transport/fetch-media.ts';
import { createServices } from '../../src/providers/transport/services.ts';

const INTERIM = 'HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n'.repeat(100);

let server: Server;
let port: number;
beforeAll(async () => {
  server = createServer((socket) => {
    const more = () => {
      while (!socket.destroyed && socket.write(INTERIM));
    };
    socket.on('error', () => {});
    socket.on('drain', more);
    socket.once('data', more);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  ({ port } = server.address() as AddressInfo);
});
afterAll(() => {
  server.close();
});

const never = () => new AbortController().signal;
const rules = () => ({ ports: [], private_hosts: [`127.0.0.1:${port}`] });
const REASON = 'too many interim answers';

test('media', async () => {
  const url = `http://127.0.0.1:${port}/a.png`;
  const fetching = createMediaFetcher(rules()).fetch(
    { url, kind: 'image' },
    { signal: never(), bytes_max: 1_000, owner: 'one' },
  );
  await expect(fetching).rejects.toThrow(REASON);
});

test('pages', async () => {
  const fetching = createPageFetcher(rules()).fetch(`http://127.0.0.1:${port}/`, {
    signal: never(),
    bytes_max: 1_000,
    owner: 'one',
    allows: () => true,
  });
  await expect(fetching).rejects.toThrow(REASON);
});

test('services', async () => {
  const services = createServices();
  const asking = services.ask({
    url: `http://127.0.0.1:${port}/`,
    method: 'GET',
    bytes_max: 1_000,
    timeout_ms: 20_000,
  });
  await expect(asking).rejects.toThrow(REASON);
  await services.close();
});
