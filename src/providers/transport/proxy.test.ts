import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { privateCa } from '../../../test/private-ca.ts';
import { createMediaFetcher } from './fetch-media.ts';
import { createServices } from './services.ts';
import { createUpstream, readText, type Upstream } from './upstream.ts';

const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);
const ms = { upstream_connect_ms_max: 1_000, upstream_headers_ms_max: 2_000, upstream_idle_ms_max: 2_000 };

/** The requests at the server behind the proxy, with the server name of the handshake. */
let received: { servername: unknown; host: string | undefined; url: string | undefined; headers: object }[] = [];
/** The requested targets. */
let proxyRequests: { target: string; authorization: string | undefined }[] = [];
let secure: Server;
let proxy: Server;
/** The behavior of the proxy in place of a tunnel. */
let refuses: ((socket: Socket) => void) | undefined;
const ca = privateCa(['DNS:upstream.test', 'DNS:media.test']);
const trusted = getCACertificates('default');

const port = (server: Server) => (server.address() as AddressInfo).port;
const listen = async (server: Server) => {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
};
const proxyUrl = () => `http://user:p%40ss@127.0.0.1:${port(proxy)}/`;
const rules = () => ({ http: proxyUrl(), https: proxyUrl(), direct: [] });

function answer(request: IncomingMessage, servername: unknown): Buffer | string {
  received.push({ servername, host: request.headers.host, url: request.url, headers: request.headers });
  return request.url === '/image.png' ? PNG : 'an answer';
}

beforeAll(async () => {
  setDefaultCACertificates([...trusted, ca.ca]);
  secure = createSecureServer({ cert: ca.cert, key: ca.key }, (request, response) => {
    response.end(answer(request, (request.socket as unknown as { servername: unknown }).servername));
  });
  await listen(secure);
  // Every requested name resolves to the server above.
  proxy = createServer((request, response) => {
    proxyRequests.push({ target: request.url ?? '', authorization: request.headers['proxy-authorization'] });
    response.end(answer(request, undefined));
  });
  proxy.on('connect', (request: IncomingMessage, client: Socket) => {
    client.on('error', () => {});
    proxyRequests.push({ target: request.url ?? '', authorization: request.headers['proxy-authorization'] });
    if (refuses !== undefined) return refuses(client);
    const server = connect(port(secure), '127.0.0.1', () => {
      client.write('HTTP/1.1 200 OK\r\n\r\n');
      server.pipe(client).pipe(server);
    });
    server.on('error', () => client.destroy());
    client.on('close', () => server.destroy());
  });
  await listen(proxy);
});
afterAll(() => {
  setDefaultCACertificates(trusted);
  ca.remove();
  for (const server of [secure, proxy]) {
    server.closeAllConnections();
    server.close();
  }
});

let upstream: Upstream | undefined;
afterEach(async () => {
  await upstream?.close();
  upstream = undefined;
  refuses = undefined;
  received = [];
  proxyRequests = [];
});

const authorization = `Basic ${Buffer.from('user:p@ss').toString('base64')}`;
const headers = { authorization: 'Bearer of-the-provider' };

test('a provider with TLS is reached through a tunnel, and each credential is sent to its own server only', async () => {
  upstream = createUpstream(ms, rules());
  for (let turn = 0; turn < 2; turn += 1) {
    const response = await upstream.send({ url: 'https://upstream.test/v1/chat', headers, payload: '{}' }).response;
    expect(await readText(response, { bytes_max: 100, cut: false })).toBe('an answer');
    // A connection is free again a turn of the loop after its answer ended.
    await nextTurn();
  }
  // The tunnel stays open for later requests, like every connection of the pool.
  expect(proxyRequests).toEqual([{ target: 'upstream.test:443', authorization }]);
  expect(received).toMatchObject([
    { servername: 'upstream.test', host: 'upstream.test', url: '/v1/chat', headers },
    { servername: 'upstream.test' },
  ]);
  expect(received[0]?.headers).not.toHaveProperty('proxy-authorization');
});

test('a provider by plain http is requested from the proxy', async () => {
  upstream = createUpstream(ms, rules());
  const response = await upstream.send({ url: 'http://upstream.test:8000/v1/chat', headers, payload: '{}' }).response;
  expect(await readText(response, { bytes_max: 100, cut: false })).toBe('an answer');
  expect(proxyRequests).toEqual([{ target: 'http://upstream.test:8000/v1/chat', authorization }]);
});

test('services of the operator are reached in the same way', async () => {
  const services = createServices(rules());
  const request = { url: 'https://upstream.test/search', bytes_max: 100, timeout_ms: 5_000 };
  expect(await services.ask(request)).toMatchObject({ status: 200, body: Buffer.from('an answer') });
  await services.close();
  expect(proxyRequests.map(({ target }) => target)).toEqual(['upstream.test:443']);
});

test('hosts listed as direct, and this machine, are reached without the proxy', async () => {
  upstream = createUpstream(ms, { ...rules(), direct: [{ host: 'upstream.test', port: undefined }] });
  await upstream.send({ url: 'https://upstream.test:1/', headers, payload: '' }).response.catch(() => {});
  await upstream.send({ url: `http://127.0.0.1:${port(proxy)}/own`, headers, payload: '' }).response;
  expect(proxyRequests.map(({ target }) => target)).toEqual(['/own']);
});

test.each([
  ['refuses', (socket: Socket) => socket.end('HTTP/1.1 407 Proxy Authentication Required\r\n\r\n'), /\(status 407\)$/],
  ['closes the connection', (socket: Socket) => socket.destroy(), /could not be reached$/],
  ['never answers', () => {}, /did not start to answer in time$|timed out$/],
] as const)('a proxy that %s fails the attempt before anything of it is sent', async (_, refusal, message) => {
  refuses = refusal;
  upstream = createUpstream(ms, rules());
  const sent = upstream.send({ url: 'https://upstream.test/v1/chat', headers, payload: '{}' });
  await expect(sent.response).rejects.toMatchObject({ never_sent: true, message: expect.stringMatching(message) });
  expect(received).toEqual([]);
});

const fetchOptions = () => ({ signal: new AbortController().signal, bytes_max: 10_000, owner: 'somebody' });
const need = (url: string) => ({ url, kind: 'image' as const });
const media = (addresses: readonly string[], privateHosts: string[] = []) =>
  createMediaFetcher(
    { ports: [80, 443], private_hosts: privateHosts },
    { proxies: rules(), resolve: async () => addresses },
  );

test('the proxy gets the checked address of media, not the name, which may resolve to another', async () => {
  const fetched = await media(['93.184.216.34']).fetch(need('https://media.test/image.png'), fetchOptions());
  expect(fetched.mime_type).toBe('image/png');
  expect(proxyRequests.map(({ target }) => target)).toEqual(['93.184.216.34:443']);
  expect(received).toMatchObject([{ servername: 'media.test', host: 'media.test', url: '/image.png' }]);
});

test.each([
  ['https://media.test/image.png', ['10.1.2.3']],
  ['https://media.test/image.png', ['93.184.216.34', '169.254.169.254']],
  ['https://169.254.169.254/latest', []],
  ['http://[::1]/image.png', []],
])('no proxy is used for media inside the network: %s at %j', async (url, addresses) => {
  await expect(media(addresses).fetch(need(url), fetchOptions())).rejects.toThrow(
    'does not resolve to a public address',
  );
  expect(proxyRequests).toEqual([]);
});

test('media of a host that the operator listed is fetched without a proxy', async () => {
  const listed = media(['127.0.0.1'], [`files.test:${port(proxy)}`]);
  await listed.fetch(need(`http://files.test:${port(proxy)}/image.png`), fetchOptions());
  expect(proxyRequests.map(({ target }) => target)).toEqual(['/image.png']);
});
