import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { startGateway, type TestGateway } from '../../test/harness.ts';
import { responseHead, startWireServer, type WireServer } from '../../test/wires/wire-server.ts';
import { limits } from '../limits.ts';
import { createServer } from './create-server.ts';

const stallMsMax = limits.client_stall_ms_max;
const PIECE = 'word '.repeat(10_000);
/** More than the system buffers for a connection whose other end does not read. */
const PIECES = 300;
const usage = { prompt_tokens: 10, completion_tokens: 3_000_000, total_tokens: 3_000_010 };
const chunk = (choices: object[], more: object = {}) =>
  `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices, ...more })}\n\n`;

let wire: WireServer;
let gateway: TestGateway;
let client: Socket;
beforeEach(async () => {
  Object.assign(limits, { client_stall_ms_max: 300 });
  wire = await startWireServer(({ body }) => {
    if (!(JSON.parse(body) as { stream?: boolean }).stream) {
      const message = { role: 'assistant', content: PIECE.repeat(PIECES) };
      const answer = { id: 'c', object: 'chat.completion', created: 1, model: 'm', usage };
      const choices = [{ index: 0, finish_reason: 'stop', message }];
      return [responseHead(200, 'application/json'), JSON.stringify({ ...answer, choices }), 'END'];
    }
    return [
      responseHead(200, 'text/event-stream'),
      { repeat: chunk([{ index: 0, delta: { content: PIECE } }]), times: PIECES },
      chunk([{ index: 0, delta: {}, finish_reason: 'stop' }], { usage }),
      'data: [DONE]\n\n',
      'END',
    ];
  });
  const endpoints = [{ provider: 'wire', upstream_model: 'm', pricing: { prompt: 1, completion: 2 } }];
  const providers = { wire: { dialect: 'openai-chat', base_url: wire.url } };
  const file = { bundled_catalog: false, providers, models: { 'wire/m': { endpoints } } };
  gateway = await startGateway({ yaml: JSON.stringify(file) });
  client = connect(Number(new URL(gateway.url).port), '127.0.0.1');
  client.on('error', () => {});
  await once(client, 'connect');
});
afterEach(async () => {
  Object.assign(limits, { client_stall_ms_max: stallMsMax });
  client.destroy();
  await gateway.stop();
  await wire.stop();
});

/** Requests an answer and reads nothing of it. */
function send(stream: boolean): void {
  client.pause();
  const text = JSON.stringify({ model: 'wire/m', messages: [{ role: 'user', content: 'x' }], stream });
  client.write(
    `POST /api/v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${gateway.key}\r\n` +
      `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`,
  );
}

const lines = () => gateway.log_lines.map((line) => JSON.parse(line) as Record<string, unknown>);
const ended = () => lines().find(({ msg, path }) => msg === 'request' && path === '/api/v1/chat/completions');

test.each([
  ['a whole answer', false],
  ['a stream', true],
])(
  '%s that the client does not read ends its connection after a while, and is charged',
  { timeout: 30_000 },
  async (_, stream) => {
    send(stream);
    await vi.waitFor(() => expect(ended()).toMatchObject({ status: 200, client_left: true }), { timeout: 60_000 });
    const answer = await gateway.call('GET', `/generation?id=${ended()?.['generation_id']}`);
    expect(answer.status).toBe(200);
    const { data } = (await answer.json()) as { data: { cancelled: boolean; usage: number } };
    expect(data.cancelled).toBe(stream);
    expect(data.usage).toBeGreaterThan(0);
  },
);

test('an answer that is read slowly is read to its end', async () => {
  let bytes = 0;
  Object.assign(limits, { client_stall_ms_max: 2_000 });
  send(false);
  // More than twice as long as a client may stall.
  client.on('data', (part) => {
    bytes += part.length;
    client.pause();
    setTimeout(() => client.resume(), (5_000 * part.length) / (PIECES * PIECE.length));
  });
  client.resume();
  await vi.waitFor(() => expect(ended()).toMatchObject({ status: 200 }), { timeout: 60_000 });
  await vi.waitFor(() => expect(bytes).toBeGreaterThan(PIECES * PIECE.length), { timeout: 60_000 });
  expect(ended()).not.toHaveProperty('client_left');
});

test('an unread pipelined answer ends its connection after a while', {
  timeout: 30_000,
}, async () => {
  const authenticate = () => Promise.reject(new Error());
  const { promise: turn, resolve: go } = Promise.withResolvers<void>();
  const ends: [string, boolean][] = [];
  const server = createServer({
    authenticate,
    logger: false,
    body_bytes_max: 1000,
    observe: ({ url }, { raw }) => void ends.push([url, raw.writableFinished]),
  });
  server.get('/first', { config: { access: 'open' } }, async () => {
    await turn;
    return 'small';
  });
  server.get('/second', { config: { access: 'open' } }, (_request, reply) => {
    void reply.send(PIECE.repeat(PIECES));
  });
  const url = await server.listen({ host: '127.0.0.1', port: 0 });
  const pipelining = connect(Number(new URL(url).port), '127.0.0.1');
  pipelining.on('error', () => {}).pause();
  try {
    pipelining.write('GET /first HTTP/1.1\r\nhost: x\r\n\r\nGET /second HTTP/1.1\r\nhost: x\r\n\r\n');
    go();
    const both = [
      ['/first', true],
      ['/second', false],
    ];
    await vi.waitFor(() => expect(ends).toEqual(both), { timeout: 60_000 });
  } finally {
    pipelining.destroy();
    await server.close();
  }
});
