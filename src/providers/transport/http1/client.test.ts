import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener } from 'node:http';
import { createSecureServer as createHttp2Server } from 'node:http2';
import { createServer as createSecureServer } from 'node:https';
import { type AddressInfo, createServer as createPlainServer, type Server, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { createServer as createTlsServer, getCACertificates, setDefaultCACertificates, type TLSSocket } from 'node:tls';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { privateCa } from '../../../../test/private-ca.ts';
import { limits } from '../../../limits.ts';
import type { UpstreamError } from '../../dialect.ts';
import { createUpstream, readText, type Upstream } from '../upstream.ts';

const ms = { upstream_connect_ms_max: 2_000, upstream_headers_ms_max: 5_000, upstream_idle_ms_max: 5_000 };
const bounds = { bytes_max: 1_000, cut: false };

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function listen<S extends Server>(server: S, host = '127.0.0.1'): Promise<number> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket.on('error', () => {}));
  });
  server.listen(0, host);
  await once(server, 'listening');
  closing.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

const answerOf = async (upstream: Upstream, url: string, payload = 'x') =>
  readText(await upstream.send({ url, headers: {}, payload }).response, bounds);
const failureOf = (upstream: Upstream, url: string) =>
  upstream.send({ url, headers: {}, payload: 'x' }).response.then(
    () => undefined,
    (error: UpstreamError) => error,
  );

describe.each(['own', 'undici'] as const)('the client %s', (client) => {
  const open = (): Upstream => {
    const upstream = createUpstream(ms, undefined, client);
    closing.push(() => upstream.close());
    return upstream;
  };

  test('bytes that arrive one by one do not extend the time limit of a head', async () => {
    const port = await listen(
      createPlainServer((socket) => {
        const bytes = [...'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n'];
        const timer = setInterval(() => socket.write(bytes.shift() ?? ''), 100);
        socket.on('close', () => clearInterval(timer));
      }),
    );
    const upstream = createUpstream({ ...ms, upstream_headers_ms_max: 400 }, undefined, client);
    closing.push(() => upstream.close());
    expect(await failureOf(upstream, `http://127.0.0.1:${port}/`)).toMatchObject({
      failure: 'timeout',
      transport_code: 'UND_ERR_HEADERS_TIMEOUT',
    });
  });

  test('writes the same request: line, host, headers, length and body', async () => {
    const received: unknown[] = [];
    const port = await listen(
      createServer(async (request, response) => {
        const chunks: Buffer[] = [];
        for await (const chunk of request) chunks.push(chunk as Buffer);
        received.push([request.method, request.url, request.rawHeaders, Buffer.concat(chunks).toString()]);
        response.end('{}');
      }),
    );
    const upstream = open();
    const url = `http://127.0.0.1:${port}/v1/chat?a=b`;
    const headers = { 'content-type': 'application/json', 'X-Name': 'a "b"' };
    await upstream.send({ url, headers, payload: '{"a":"b"}' }).response;
    await upstream.send({ url, headers, payload: 'é€😀' }).response;
    await upstream.send({ url, headers, payload: Buffer.from('bytes') }).response;
    await upstream.send({ url, headers, payload: '' }).response;
    await upstream.send({ method: 'GET', url, headers, payload: 'ignored' }).response;
    const fields = ['host', `127.0.0.1:${port}`, 'connection', 'keep-alive', ...Object.entries(headers).flat()];
    const post = (bytes: number, text: string) => [
      'POST',
      '/v1/chat?a=b',
      [...fields, 'content-length', String(bytes)],
      text,
    ];
    expect(received).toEqual([
      post(9, '{"a":"b"}'),
      post(9, 'é€😀'),
      post(5, 'bytes'),
      post(0, ''),
      ['GET', '/v1/chat?a=b', fields, ''],
    ]);
  });

  test('a request on an idle connection that the server closed is sent on a new one, once', async () => {
    let requests = 0;
    const server = createServer((_request, response) => {
      requests += 1;
      response.end('ok');
      response.socket?.setTimeout(20, () => response.socket?.end());
    });
    server.keepAliveTimeout = 0;
    const port = await listen(server);
    const upstream = open();
    for (let nth = 1; nth <= 3; nth += 1) {
      expect(await answerOf(upstream, `http://127.0.0.1:${port}/`)).toBe('ok');
      await sleep(60);
      expect(requests).toBe(nth);
    }
  });

  test('a request whose connection ends before any byte of the answer fails and is not sent again', async () => {
    let requests = 0;
    const port = await listen(
      createServer((_request, response) => {
        requests += 1;
        if (requests === 1) response.end('ok');
        else response.socket?.destroy();
      }),
    );
    const upstream = open();
    const url = `http://127.0.0.1:${port}/`;
    expect(await answerOf(upstream, url)).toBe('ok');
    await sleep(20);
    expect(await failureOf(upstream, url)).toMatchObject({ failure: 'unavailable', never_sent: false });
    await sleep(20);
    expect(requests).toBe(2);
  });

  test('requests above the connection bound wait for a connection', async () => {
    const { upstream_connections_per_origin_max: max } = limits;
    Object.assign(limits, { upstream_connections_per_origin_max: 2 });
    try {
      let connections = 0;
      let most = 0;
      const server = createServer((_request, response) => void setTimeout(() => response.end('ok'), 10));
      server.on('connection', (socket) => {
        connections += 1;
        most = Math.max(most, connections);
        socket.on('close', () => {
          connections -= 1;
        });
      });
      const url = `http://127.0.0.1:${await listen(server)}/`;
      const upstream = open();
      const aborted = [1, 2, 3, 4].map(() => upstream.send({ url, headers: {}, payload: 'x' })).slice(2);
      const failures = aborted.map(({ response }) => response.catch((error: Error) => error.message));
      for (const exchange of aborted) exchange.abort(new Error('enough'));
      expect(await Promise.all(failures)).toEqual(['enough', 'enough']);
      const answers = await Promise.all(Array.from({ length: 20 }, () => answerOf(upstream, url)));
      expect(new Set(answers)).toEqual(new Set(['ok']));
      // undici opens one more for a moment.
      expect(most).toBeLessThanOrEqual(client === 'own' ? 2 : 3);
    } finally {
      Object.assign(limits, { upstream_connections_per_origin_max: max });
    }
  });

  test('an abort closes the connection of its request', async () => {
    const server = createServer((request, response) => {
      if (request.url === '/body') response.writeHead(200).write('a');
    });
    const port = await listen(server);
    const upstream = open();
    for (const path of ['/head', '/body']) {
      const received = once(server, 'request') as Promise<[IncomingMessage]>;
      const exchange = upstream.send({ url: `http://127.0.0.1:${port}${path}`, headers: {}, payload: 'x' });
      const [{ socket }] = await received;
      const failure = path === '/head' ? exchange.response.catch((error: Error) => error) : exchange.response;
      if (path === '/body') await failure;
      const closed = once(socket, 'close');
      exchange.abort(new Error('enough'));
      await closed;
      if (path === '/body') {
        await expect(readText(await exchange.response, bounds)).rejects.toThrow('enough');
      }
    }
  });

  test('an answer that is not read is not received further, and is complete after reading', async () => {
    const size = 64 * 1024 * 1024;
    const piece = Buffer.alloc(64 * 1024, 'a');
    let sent = 0;
    const port = await listen(
      createServer((_request, response) => {
        const more = () => {
          while (sent < size && !response.destroyed) {
            sent += piece.length;
            if (!response.write(piece)) return;
          }
          response.end();
        };
        response.on('drain', more);
        more();
      }),
    );
    const response = await open().send({ url: `http://127.0.0.1:${port}/`, headers: {}, payload: 'x' }).response;
    let before = -1;
    while (before !== sent) {
      before = sent;
      await sleep(50);
    }
    expect(sent).toBeLessThan(size / 2);
    let bytes = 0;
    for (;;) {
      await response.ready();
      const taken = response.read();
      if (taken === undefined) break;
      bytes += taken.length;
    }
    expect([bytes, response.complete]).toEqual([size, true]);
  });

  test('a name with several addresses is reached at the one that listens', async () => {
    const port = await listen(createServer((_request, response) => response.end('ok')));
    expect(await answerOf(open(), `http://localhost:${port}/`)).toBe('ok');
  });

  test('requests without an answer fail when the client closes, and so do later ones', async () => {
    const port = await listen(createServer(() => {}));
    const upstream = createUpstream(ms, undefined, client);
    const url = `http://127.0.0.1:${port}/`;
    const waiting = failureOf(upstream, url);
    await sleep(50);
    await upstream.close();
    expect(await waiting).toMatchObject({ failure: 'unavailable', never_sent: false });
    expect(await failureOf(upstream, url)).toMatchObject({ failure: 'unavailable', never_sent: true });
  });

  test('a blocked event loop does not time out an answer that arrived; a silent server times out', async () => {
    const port = await listen(
      createServer((request, response) => {
        if (request.url !== '/silent') response.end('ok');
      }),
    );
    const short = { ...ms, upstream_headers_ms_max: 300, upstream_idle_ms_max: 300 };
    const upstream = createUpstream(short, undefined, client);
    closing.push(() => upstream.close());
    const answer = answerOf(upstream, `http://127.0.0.1:${port}/`);
    await sleep(1);
    const until = performance.now() + 1_500;
    while (performance.now() < until);
    expect(await answer).toBe('ok');
    expect(await failureOf(upstream, `http://127.0.0.1:${port}/silent`)).toMatchObject({
      failure: 'timeout',
      transport_code: 'UND_ERR_HEADERS_TIMEOUT',
      never_sent: false,
    });
  });

  test('a connection that is not established in time is reported as never sent', async () => {
    const port = await listen(createPlainServer(() => {}));
    const upstream = createUpstream({ ...ms, upstream_connect_ms_max: 300 }, undefined, client);
    closing.push(() => upstream.close());
    expect(await failureOf(upstream, `https://127.0.0.1:${port}/`)).toMatchObject({
      failure: 'timeout',
      transport_code: 'UND_ERR_CONNECT_TIMEOUT',
      never_sent: true,
    });
  });
});

describe('with TLS', () => {
  const trusted = getCACertificates('default');
  let ca: ReturnType<typeof privateCa>;
  beforeAll(() => {
    ca = privateCa(['DNS:localhost']);
    setDefaultCACertificates([...trusted, ca.ca]);
  });
  afterAll(() => {
    setDefaultCACertificates(trusted);
    ca.remove();
  });

  interface Handshake {
    name: unknown;
    protocol: unknown;
    isReused: boolean;
  }
  const secure = async (options: object = {}, answer: RequestListener = (_request, response) => response.end('ok')) => {
    const handshakes: Handshake[] = [];
    const server = createSecureServer({ cert: ca.cert, key: ca.key, ...options }, answer);
    server.on('secureConnection', (socket: TLSSocket & { servername: unknown }) => {
      handshakes.push({ name: socket.servername, protocol: socket.alpnProtocol, isReused: socket.isSessionReused() });
    });
    return { port: await listen(server), handshakes };
  };
  const open = () => {
    const upstream = createUpstream(ms, undefined, 'own');
    closing.push(() => upstream.close());
    return upstream;
  };

  test('the name and HTTP/1.1 are in the handshake, and a later connection resumes the session', async () => {
    const { port, handshakes } = await secure({}, (_request, response) => {
      response.setHeader('connection', 'close').end('ok');
    });
    const upstream = open();
    for (let nth = 0; nth < 2; nth += 1) {
      expect(await answerOf(upstream, `https://localhost:${port}/`)).toBe('ok');
      await sleep(30);
    }
    const handshake = { name: 'localhost', protocol: 'http/1.1', isReused: false };
    expect(handshakes).toEqual([handshake, { ...handshake, isReused: true }]);
  });

  test('connections are reused, and long answers and bodies are transferred whole', async () => {
    const long = 'é'.repeat(3 * 1024 * 1024);
    const { port, handshakes } = await secure({}, async (request, response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      response.end(Buffer.concat(chunks));
    });
    const upstream = open();
    for (let nth = 0; nth < 2; nth += 1) {
      const url = `https://localhost:${port}/`;
      const response = await upstream.send({ url, headers: {}, payload: Buffer.from(long) }).response;
      expect((await readText(response, { bytes_max: 10_000_000, cut: false })) === long).toBe(true);
      await sleep(10);
    }
    expect(handshakes).toHaveLength(1);
  });

  test('a certificate for another name or by an unknown authority fails before a request is sent', async () => {
    let requests = 0;
    const answer: RequestListener = (_request, response) => {
      requests += 1;
      response.end();
    };
    const { port } = await secure({}, answer);
    expect(await failureOf(open(), `https://127.0.0.1:${port}/`)).toMatchObject({
      transport_code: 'ERR_TLS_CERT_ALTNAME_INVALID',
      never_sent: true,
    });
    const other = privateCa(['DNS:localhost']);
    const unknown = await secure({ cert: other.cert, key: other.key }, answer);
    other.remove();
    expect(await failureOf(open(), `https://localhost:${unknown.port}/`)).toMatchObject({
      failure: 'unavailable',
      never_sent: true,
    });
    expect(requests).toBe(0);
  });

  test.each([false, true])(
    'a server that selects HTTP/2 gets its requests from undici (HTTP/1.1 allowed: %s)',
    async (allowHTTP1) => {
      const protocols: unknown[] = [];
      const server = createHttp2Server({ cert: ca.cert, key: ca.key, allowHTTP1 }, (request, response) => {
        response.end(request.httpVersion);
      });
      server.on('secureConnection', (socket: TLSSocket) => protocols.push(socket.alpnProtocol));
      const port = await listen(server as unknown as Server);
      const upstream = open();
      for (let nth = 0; nth < 2; nth += 1) {
        const answers = Array.from({ length: 20 }, () => answerOf(upstream, `https://localhost:${port}/`));
        expect(new Set(await Promise.all(answers))).toEqual(new Set(['2.0']));
      }
      // The first handshake reveals it for all requests that wait meanwhile.
      expect(protocols.length).toBeLessThanOrEqual(2);
    },
  );

  /** More HTTP chunks in one write than are read in a turn: TLS passes on all of its records and its end, also while it is paused. */
  test.each(['chunks', 'until the end of its connection'])('many small parts arrive in order: %s', async (framing) => {
    const texts = Array.from({ length: 20_000 }, (_, index) => String(index).padStart(6, '0'));
    const port = await listen(
      createTlsServer({ cert: ca.cert, key: ca.key }, (socket) => {
        socket.on('error', () => {});
        socket.once('data', () => {
          if (framing === 'chunks') {
            const chunks = texts.map((text) => `6\r\n${text}\r\n`).join('');
            socket.end(`HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n${chunks}0\r\n\r\n`);
            return;
          }
          socket.write('HTTP/1.1 200 OK\r\n\r\n');
          // A record each.
          socket.cork();
          for (const text of texts.slice(0, 1_800)) socket.write(text);
          socket.end();
        });
      }) as unknown as Server,
    );
    const { response } = open().send({ url: `https://localhost:${port}/`, headers: {}, payload: 'x' });
    const text = await readText(await response, { bytes_max: 1_000_000, cut: false });
    expect(text === texts.slice(0, framing === 'chunks' ? undefined : 1_800).join('')).toBe(true);
  });

  test('requests to a server with a slow first handshake wait for it and then use a connection each', async () => {
    const { port, handshakes } = await secure(
      {},
      (_request, response) => void setTimeout(() => response.end('ok'), 50),
    );
    const upstream = open();
    const answers = Array.from({ length: 5 }, () => answerOf(upstream, `https://localhost:${port}/`));
    expect(await Promise.all(answers)).toEqual(Array(5).fill('ok'));
    expect(handshakes).toHaveLength(5);
  });

  test('requests that wait for a failing handshake fail with connections of their own', async () => {
    let connections = 0;
    const plain = createPlainServer((socket) => {
      connections += 1;
      socket.destroy();
    });
    const port = await listen(plain);
    const upstream = open();
    const failures = Array.from({ length: 5 }, () => failureOf(upstream, `https://localhost:${port}/`));
    expect(await Promise.all(failures)).toEqual(Array(5).fill(expect.objectContaining({ never_sent: true })));
    expect(connections).toBe(5);
  });
});
