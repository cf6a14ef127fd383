import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { startGateway, type TestGateway } from '../harness.ts';

let server: Server;
let address: string;
let listed: unknown = { data: [] };
let requests: { url: string | undefined; authorization: string | undefined }[] = [];
let gateway: TestGateway | undefined;

beforeAll(async () => {
  server = createServer((request, response) => {
    requests.push({ url: request.url, authorization: request.headers.authorization });
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(typeof listed === 'string' ? listed : JSON.stringify(listed));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => server.close());
afterEach(async () => {
  await gateway?.stop();
  gateway = undefined;
  requests = [];
});

async function ids(path = '/models'): Promise<string[]> {
  const { data } = (await (await gateway!.call('GET', path)).json()) as { data: { id: string }[] };
  return data.map(({ id }) => id);
}

describe('the models of local servers', () => {
  test('are listed by the names that requests use, in every list', async () => {
    listed = { object: 'list', data: [{ id: 'llama3.2:3b' }, { id: 'nomic-embed-text' }] };
    gateway = await startGateway({
      yaml: 'bundled_catalog: false',
      environment: { OLLAMA_HOST: address, VLLM_BASE_URL: `${address}/v1`, VLLM_API_KEY: 'local' },
    });
    await vi.waitFor(async () => expect(await ids()).toContain('ollama/llama3.2:3b'), { timeout: 60_000 });
    expect(await ids()).toContain('vllm/llama3.2:3b');
    expect(await ids('/models/user')).toContain('ollama/llama3.2:3b');
    expect(await ids('/embeddings/models')).toContain('ollama/nomic-embed-text');
    expect((await gateway.call('GET', '/models/ollama/llama3.2:3b/endpoints')).status).toBe(200);
    expect(requests).toContainEqual({ url: '/v1/models', authorization: 'Bearer local' });
  });

  test.each([
    ['no JSON', 'Hello'],
    ['another form', { models: ['a'] }],
    ['names that no request can have', { data: [{ id: 'a b' }, { id: 7 }, null, { id: 'x'.repeat(500) }] }],
  ])('are missing if the server answers with %s', async (_, answer) => {
    listed = answer;
    gateway = await startGateway({ yaml: 'bundled_catalog: false', environment: { OLLAMA_HOST: address } });
    await vi.waitFor(() => expect(requests).toHaveLength(1), { timeout: 60_000 });
    expect(await ids()).toEqual([]);
  });

  test('are not requested without a local server', async () => {
    gateway = await startGateway();
    await ids();
    expect(requests).toEqual([]);
  });

  test('answer requests without a model if nothing else is enabled', async () => {
    listed = { data: [{ id: 'llama3.2:3b' }] };
    gateway = await startGateway({ yaml: 'bundled_catalog: false', environment: { OLLAMA_HOST: address } });
    await vi.waitFor(async () => expect(await ids()).toHaveLength(1), { timeout: 60_000 });
    const body = { messages: [{ role: 'user', content: 'Hi' }] };
    const response = await gateway.call('POST', '/route/explain', body);
    expect(await response.text()).toContain('ollama/llama3.2:3b');
  });
});
