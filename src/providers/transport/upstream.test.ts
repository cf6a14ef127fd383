import { createServer, type IncomingMessage } from 'node:http';
import { type AddressInfo, createServer as createPlainServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { limits } from '../../limits.ts';
import { UpstreamError } from '../dialect.ts';
import { createUpstream as createUpstreamBy, readText, type UpstreamTimeouts } from './upstream.ts';

const ms = { upstream_connect_ms_max: 1_000, upstream_headers_ms_max: 1_000, upstream_idle_ms_max: 1_000 };

describe.each(['own', 'undici'] as const)('the client %s', (client) => {
  const createUpstream = (timeouts: UpstreamTimeouts) => createUpstreamBy(timeouts, undefined, client);

  test.each([
    ['a header', { url: 'http://127.0.0.1:9/a', headers: { authorization: 'Bearer a\nb' } }],
    ['an address', { url: 'https://example.test:8080-x.example.test/a', headers: {} }],
  ])('a request that cannot be sent for %s is never sent, and the message does not contain it', async (_, request) => {
    const upstream = createUpstream(ms);
    const failure: unknown = await upstream
      .send({ ...request, payload: 'x' })
      .response.catch((error: unknown) => error);
    await upstream.close();
    if (!(failure instanceof UpstreamError)) throw failure;
    expect(failure.never_sent).toBe(true);
    expect(failure.message).toBe('The provider could not be reached');
  });

  test('interim responses above a bound fail the request, and fewer are ignored', async () => {
    const interim = (count: number) => 'HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n'.repeat(count);
    const server = createPlainServer((socket) => {
      socket.on('error', () => {});
      socket.once('data', (bytes) => {
        const count = Number(/x-count: (\d+)/.exec(bytes.toString())?.[1]);
        socket.write(`${interim(count)}HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}`);
      });
    }).listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    const upstream = createUpstream(ms);
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/a`;
    const ask = (count: number) => upstream.send({ url, headers: { 'x-count': String(count) }, payload: 'x' }).response;
    expect((await ask(limits.upstream_interim_answers_max)).status).toBe(200);
    await expect(ask(limits.upstream_interim_answers_max + 1)).rejects.toMatchObject({ failure: 'invalid_response' });
    await upstream.close();
    server.close();
  });

  test('a connection error code is a transport code, not a native code', async () => {
    const server = createServer((request) => request.socket.destroy()).listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    const { port } = server.address() as AddressInfo;
    const upstream = createUpstream(ms);
    const failures: unknown[] = [];
    for (const url of [`http://127.0.0.1:${port}/a`, 'http://127.0.0.1:1/a']) {
      failures.push(await upstream.send({ url, headers: {}, payload: 'x' }).response.catch((error: unknown) => error));
    }
    await upstream.close();
    server.close();
    expect(failures).toMatchObject([
      { failure: 'unavailable', native_code: null, transport_code: 'UND_ERR_SOCKET', never_sent: false },
      { failure: 'unavailable', native_code: null, transport_code: 'ECONNREFUSED', never_sent: true },
    ]);
  });

  test.each<[string, (socket: Socket) => void]>([
    ['does not support TLS', (socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n')],
    ['closes the connection in the handshake', (socket) => socket.destroy()],
  ])('a request to a server that %s was never sent', async (_, answer) => {
    const server = createPlainServer((socket) => {
      socket.on('error', () => {});
      socket.once('data', () => answer(socket));
    }).listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    const upstream = createUpstream(ms);
    const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}/a`;
    const failure = await upstream.send({ url, headers: {}, payload: 'x' }).response.catch((error: unknown) => error);
    await upstream.close();
    server.close();
    expect(failure).toMatchObject({ failure: 'unavailable', never_sent: true });
  });

  test('an answer or a failure is available to late readers, and a failure without a reader rejects nothing', async () => {
    const server = createServer((request, response) => {
      if (request.url === '/slow') return;
      response.end('late');
    }).listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    const upstream = createUpstream(ms);
    const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const send = (path: string) => upstream.send({ url: address + path, headers: {}, payload: 'x' });
    try {
      const answered = send('/');
      while (!answered.ended) await sleep(5);
      const response = await answered.response;
      expect([response.status, await readText(response, { bytes_max: 9, cut: false })]).toEqual([200, 'late']);

      const [unread, readAnswer] = [send('/slow'), send('/slow')];
      await sleep(20);
      for (const exchange of [unread, readAnswer]) exchange.abort(new Error('enough'));
      await expect(readAnswer.response).rejects.toThrow('enough');
      await sleep(20);
    } finally {
      await upstream.close();
      server.closeAllConnections();
      server.close();
    }
  });

  /** A server that reads the head of each request and sends a scripted answer. */
  async function serverThat(answer: Parameters<typeof createServer>[1]) {
    const server = createServer(answer).listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/a`, close: () => server.close() };
  }

  const long = Buffer.alloc(20 * limits.joined_slice_bytes + 1, 'abc');

  test('a long body is sent whole with its length, and other work runs between its parts', async () => {
    const server = await serverThat(async (request, response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk);
      const { 'content-length': length, 'transfer-encoding': coding = null } = request.headers;
      response.end(JSON.stringify({ length, coding, is_whole: Buffer.concat(chunks).equals(long) }));
    });
    const upstream = createUpstream(ms);
    let turns = 0;
    const count = setInterval(() => {
      turns += 1;
    }, 0);
    for (let nth = 0; nth < 2; nth += 1) {
      const response = await upstream.send({ url: server.url, headers: {}, payload: long }).response;
      const text = await readText(response, { bytes_max: 1_000, cut: false });
      expect(JSON.parse(text)).toEqual({ length: String(long.length), coding: null, is_whole: true });
    }
    clearInterval(count);
    expect(turns).toBeGreaterThan(5);
    await upstream.close();
    server.close();
  });

  test('an answer before a long body was read is accepted, and the next request is served', async () => {
    const server = await serverThat((request, response) => {
      if (request.headers['content-length'] === '1') response.end('next');
      else response.writeHead(413).end('too large');
    });
    const upstream = createUpstream(ms);
    const response = await upstream.send({ url: server.url, headers: {}, payload: long }).response;
    expect([response.status, await readText(response, { bytes_max: 100, cut: false })]).toEqual([413, 'too large']);
    const next = await upstream.send({ url: server.url, headers: {}, payload: 'x' }).response;
    expect(await readText(next, { bytes_max: 100, cut: false })).toBe('next');
    await upstream.close();
    server.close();
  });

  test('a long body that the server does not read ends with the abort', async () => {
    const { promise: coming, resolve: come } = Promise.withResolvers<IncomingMessage>();
    const server = await serverThat(come);
    const upstream = createUpstream({ ...ms, upstream_headers_ms_max: 60_000 });
    const exchange = upstream.send({ url: server.url, headers: {}, payload: long });
    const request = await coming;
    const reason = new Error('given up');
    const failure = exchange.response.catch((error: unknown) => error);
    exchange.abort(reason);
    expect(await failure).toBe(reason);
    let bytes = 0;
    request.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
    });
    await new Promise((resolve) => request.once('error', resolve));
    expect(bytes).toBeLessThan(long.length);
    await upstream.close();
    server.close();
  });

  test('a long body to a closed port was never sent', async () => {
    const upstream = createUpstream(ms);
    const failure = await upstream
      .send({ url: 'http://127.0.0.1:1/a', headers: {}, payload: long })
      .response.catch((error: unknown) => error);
    await upstream.close();
    expect(failure).toMatchObject({ failure: 'unavailable', never_sent: true });
  });
});
