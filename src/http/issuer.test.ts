import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, expect, test } from 'vitest';
import { withLimits } from '../../test/changed-limits.ts';
import { limits } from '../limits.ts';
import { createServices } from '../providers/transport/services.ts';
import { createIssuer } from './issuer.ts';

withLimits({ issuer_ms_max: 1_000 });

const services = createServices();
afterAll(() => services.close());

const cleanups: (() => unknown)[] = [];
afterEach(() => {
  for (const cleanUp of cleanups.splice(0)) cleanUp();
});

/** A connection to an issuer with scripted answers. */
async function issuerThat(answers: RequestListener) {
  const server = createServer(answers).listen(0, '127.0.0.1');
  await once(server, 'listening');
  cleanups.push(() => {
    server.closeAllConnections();
    server.close();
  });
  const settings = { client_id: 'gateway', client_secret: undefined, scopes: ['openid'] };
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return createIssuer({ ...settings, issuer, redirect_uri: 'https://gateway.example/back' }, () => 0, services.ask);
}

const unanswering = { status: 502, message: expect.stringContaining('did not answer correctly') };

test('an issuer with an endless answer fails at the bound of its size', async () => {
  const part = Buffer.alloc(64 * 1024, ' ');
  const issuer = await issuerThat((_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    const more = () => {
      while (!response.destroyed && response.write(part));
    };
    response.on('drain', more);
    more();
  });
  await expect(issuer.begin()).rejects.toMatchObject({
    ...unanswering,
    cause: expect.objectContaining({
      message: expect.stringContaining(`more than ${limits.issuer_body_bytes_max} bytes`),
    }),
  });
});

test('an issuer that sends nothing, or never ends, fails', async () => {
  const silent = issuerThat(() => {});
  const slow = issuerThat((_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).write('{');
  });
  const outcomes = [silent, slow].map(async (issuer) =>
    expect((await issuer).begin()).rejects.toMatchObject(unanswering),
  );
  await Promise.all(outcomes);
});

test('a redirect of the issuer is not followed, and metadata of another issuer is refused', async () => {
  const requests: string[] = [];
  const moved = await issuerThat(({ url = '' }, response) => {
    requests.push(url);
    response.writeHead(302, { location: '/elsewhere' }).end();
  });
  await expect(moved.begin()).rejects.toMatchObject(unanswering);
  expect(requests).toEqual(['/.well-known/openid-configuration']);
  const other = await issuerThat((_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    const issuer = 'https://other.example';
    response.end(JSON.stringify({ issuer, authorization_endpoint: `${issuer}/a`, token_endpoint: `${issuer}/t` }));
  });
  await expect(other.begin()).rejects.toMatchObject(unanswering);
});

test.each([
  ['authorization_endpoint', 'javascript:alert(1)'],
  ['authorization_endpoint', undefined],
  ['token_endpoint', 'file:///etc/passwd'],
  ['token_endpoint', 'not an address'],
  ['jwks_uri', undefined],
])('metadata in which %s is %s is refused, and requested again by the next login', async (name, value) => {
  let requests = 0;
  let wrong: Record<string, unknown> = { [name]: value };
  const issuer = await issuerThat((request, response) => {
    requests += 1;
    const url = `http://${request.headers.host}`;
    const endpoints = { authorization_endpoint: `${url}/a`, token_endpoint: `${url}/t`, jwks_uri: `${url}/k` };
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ issuer: url, ...endpoints, ...wrong }));
  });
  await expect(issuer.begin()).rejects.toMatchObject(unanswering);
  wrong = {};
  expect((await issuer.begin()).url).toContain('/a?');
  expect(requests).toBe(2);
});
