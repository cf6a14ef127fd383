/** One read of a connection may contain a thousand requests: at most as many of them are parsed as may wait. */
import diagnostics from 'node:diagnostics_channel';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { afterAll, expect, test } from 'vitest';
import { inTurn } from '../../src/http/pipelining.ts';
import { limits } from '../../src/limits.ts';

const server = createServer();
afterAll(() => void server.close());

test('the requests after the one that closes a connection are not parsed, and others are served', async () => {
  let excesses = 0;
  inTurn(
    server,
    (request, response) => {
      if (request.url === '/other') response.end('ok');
    },
    () => {
      excesses += 1;
    },
  );
  let parsed = 0;
  const count = (message: unknown) => {
    if ((message as { server: unknown }).server === server) parsed += 1;
  };
  diagnostics.subscribe('http.server.request.start', count);
  try {
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const many = 'GET / HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(2_000);
    for (let times = 0; times < 3; times += 1) {
      parsed = 0;
      const client = connect(port, '127.0.0.1');
      client.on('error', () => {});
      client.write(many);
      await once(client.resume(), 'close');
      expect(parsed).toBeLessThanOrEqual(limits.pipelined_requests_max + 2);
      // Node reuses parsers: the next connection has the one that was stopped.
      expect(await (await fetch(`http://127.0.0.1:${port}/other`)).text()).toBe('ok');
    }
    expect(excesses).toBe(3);
  } finally {
    diagnostics.unsubscribe('http.server.request.start', count);
  }
});
