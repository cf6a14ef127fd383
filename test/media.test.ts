import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { type Sandbox, startSandbox } from '../sandbox/server.ts';
import { startGateway, type TestGateway } from './harness.ts';

const png = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);

let sandbox: Sandbox;
let gateway: TestGateway;
let files: Server;
let visited: string[] = [];
let answer: (request: IncomingMessage, response: ServerResponse) => void;
/** The server of files, by the name that the operator has allowed. */
let allowed: string;
/** The same server, by its address. */
let address: string;

beforeAll(async () => {
  sandbox = await startSandbox();
  files = createServer((request, response) => {
    visited.push(request.url ?? '');
    answer(request, response);
  });
  await new Promise<void>((resolve) => {
    files.listen(0, '127.0.0.1', resolve);
  });
  const { port } = files.address() as AddressInfo;
  allowed = `http://localhost:${port}`;
  address = `http://127.0.0.1:${port}`;
  const baseUrl = `${sandbox.url}/v1`;
  const endpoint = (provider: string, upstreamModel: string, variant?: string) => ({
    provider,
    upstream_model: upstreamModel,
    ...(variant ? { variant } : {}),
    pricing: { prompt: provider === 'inline' ? 1 : 2, completion: 1 },
  });
  const model = (...endpoints: object[]) => ({
    context_length: 200_000,
    input_modalities: ['text', 'image', 'file'],
    endpoints,
  });
  gateway = await startGateway({
    yaml: JSON.stringify({
      bundled_catalog: false,
      providers: {
        inline: { name: 'Inline', dialect: 'openai-chat', base_url: baseUrl, quirks: { inline_images: true } },
        fetching: {
          name: 'Fetching',
          dialect: 'anthropic-messages',
          base_url: baseUrl,
          quirks: { inline_media: false },
        },
      },
      models: {
        'media/echo': model(endpoint('inline', 'echo')),
        'media/twice': model(endpoint('inline', 'fail-503', 'a'), endpoint('inline', 'echo', 'b')),
        'media/either': model(endpoint('inline', 'echo'), endpoint('fetching', 'echo')),
      },
      media: { private_hosts: [`localhost:${port}`], ports: [port] },
    }),
  });
});
afterAll(async () => {
  await gateway.stop();
  await sandbox.stop();
  files.closeAllConnections();
  await new Promise((resolve) => {
    files.close(resolve);
  });
});
beforeEach(() => {
  visited = [];
  answer = (_request, response) => response.end(png);
});

function ask(model: string, urls: string[], more: object = {}, headers: Record<string, string> = {}) {
  const images = urls.map((url) => ({ type: 'image_url', image_url: { url } }));
  const content = [{ type: 'text', text: 'What is this?' }, ...images];
  return gateway.call(
    'POST',
    '/chat/completions',
    {
      model: `media/${model}`,
      messages: [
        { role: 'user', content: 'Hi' },
        { role: 'user', content },
      ],
      ...more,
    },
    headers,
  );
}

const shown = { 'x-gateway-experimental-metadata': 'enabled' };

test('an upstream that accepts no addresses gets the bytes, fetched once for two parts and two attempts', async () => {
  const url = `${allowed}/a.png`;
  const response = await ask('twice', [url, url], { stream: true, debug: { echo_upstream_body: true } });
  const text = await response.text();
  expect(
    text.match(new RegExp(`data:image/png;base64,${png.toString('base64').replaceAll('+', '\\+')}`, 'g')),
  ).toHaveLength(4);
  expect(text).not.toContain(url);
  expect(visited).toEqual(['/a.png']);
});

test('a private address is refused with the name of its field, and without details of the network', async () => {
  const response = await ask('echo', [`${allowed}/a.png`, `${address}/secret`]);
  expect(response.status).toBe(400);
  const { error } = (await response.json()) as { error: { message: string } };
  expect(error.message).toBe(
    "messages[1].content[2].image_url.url must be on the public internet, or on a host that the operator lists in media.private_hosts; or send the file's data",
  );
  expect(visited).not.toContain('/secret');
  expect(sandbox.requests().open).toBe(0);
});

test('content that is not an image is refused, and so is a redirect into the private network', async () => {
  answer = (_request, response) => response.writeHead(200, { 'content-type': 'image/png' }).end('<html></html>');
  expect(((await (await ask('echo', [`${allowed}/a`])).json()) as { error: object }).error).toMatchObject({
    message: 'messages[1].content[1].image_url.url cannot be fetched: it is text/plain, not image',
  });
  answer = (_request, response) => response.writeHead(302, { location: `${address}/secret` }).end();
  expect((await ask('echo', [`${allowed}/a`])).status).toBe(400);
  expect(visited).toEqual(['/a', '/a']);
});

test('if another endpoint takes the address itself, the request goes there, and the routing states the reason', async () => {
  const response = await ask('either', ['http://nowhere.invalid/a.png'], {}, shown);
  expect(response.status).toBe(200);
  const body = (await response.json()) as { provider: string; gateway_metadata: { endpoints: { excluded: object[] } } };
  expect(body.provider).toBe('Fetching');
  expect(body.gateway_metadata.endpoints.excluded).toMatchObject([
    { provider: 'Inline', step: 'Encode', reason: expect.stringMatching(/^messages\[1\].* cannot be fetched/) },
  ]);
  expect(visited).toEqual([]);
});

test('more addresses than allowed are refused before any is fetched', async () => {
  const many = Array.from({ length: 65 }, (_, at) => `${allowed}/${at}`);
  const response = await ask('echo', many);
  expect(response.status).toBe(400);
  expect(await response.text()).toContain('a request may have at most 64 of them');
  expect(visited).toEqual([]);
});

test('a client that disconnects ends the fetch, and nothing is sent upstream', async () => {
  const before = sandbox.requests().requests;
  const closed = Promise.withResolvers<void>();
  const client = new AbortController();
  answer = (_request, response) => {
    response.on('close', closed.resolve);
    response.writeHead(200).write(png);
    client.abort();
  };
  const left = fetch(`${gateway.base_url}/chat/completions`, {
    method: 'POST',
    signal: client.signal,
    headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      model: 'media/echo',
      messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: `${allowed}/slow` } }] }],
    }),
  });
  await expect(left).rejects.toThrow();
  await closed.promise;
  expect(sandbox.requests().requests).toBe(before);
});
