import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { openDatabase } from '../../src/storage/database.ts';
import { chat, type GatewayProcess, makeKey, serve, start, stop, until } from './gateway-process.ts';

const slow = (tokens: number) => chat('sandbox/story', { stream: true, sandbox: { tokens, chunk_delay_ms: 10 } });

interface Row {
  id: string;
  outcome: string;
  cost: number;
}

/** The generations in the embedded store, read without a gateway. */
async function stored(dataDir: string): Promise<Row[]> {
  const database = await openDatabase({ data_dir: dataDir });
  try {
    return await database.queries.selectFrom('ledger_generations').select(['id', 'outcome', 'cost']).execute();
  } finally {
    await database.close();
  }
}

/** Opens a stream and waits for its first bytes; the rest is read in the background. */
async function openStream(gateway: GatewayProcess, key: string, body: unknown) {
  const answer = await gateway.call('POST', '/chat/completions', { key, body });
  expect(answer.status).toBe(200);
  const id = answer.headers.get('x-generation-id') ?? '';
  const reader = (answer.body as ReadableStream<Uint8Array>).getReader();
  let text = '';
  const first = await reader.read();
  text += Buffer.from(first.value ?? []).toString();
  const rest = (async () => {
    try {
      for (let read = await reader.read(); !read.done; read = await reader.read()) {
        text += Buffer.from(read.value).toString();
      }
    } catch {
      text += '(broken)';
    }
    return text;
  })();
  return { id, rest };
}

test('SIGTERM: running streams finish, new requests are refused, everything is in the store, and the code is 0', async () => {
  const gateway = await serve();
  const { key } = await makeKey(gateway);
  // Connections that were opened before may still send requests.
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const ask = async (path: string) => {
    const sent = request(`${gateway.url}${path}`, { agent, headers: { authorization: `Bearer ${key}` } });
    sent.end();
    const [answer] = await once(sent, 'response');
    let body = '';
    for await (const part of answer) body += part;
    return { status: answer.statusCode as number, body, connection: answer.headers.connection };
  };
  const streams = await Promise.all([1, 2, 3].map(() => openStream(gateway, key, slow(120))));
  const body = chat('sandbox/story', { sandbox: { delay_ms: 800 } });
  const whole = gateway.call('POST', '/chat/completions', { key, body });
  await sleep(100);
  const signalled = stop(gateway);
  await until('new connections are refused', async () =>
    fetch(`${gateway.url}/health/live`).then(
      () => false,
      () => true,
    ),
  );
  for (const { id, rest } of streams) {
    const text = await rest;
    expect(text).toMatch(/data: \[DONE\]\n\n$/);
    expect(text).toContain(id);
  }
  const answer = await whole;
  expect(answer.status).toBe(200);
  const { usage, id } = (await answer.json()) as { id: string; usage: { cost: number } };
  expect(await signalled).toBe(0);
  await expect(ask('/api/v1/models')).rejects.toThrow();
  const rows = new Map((await stored(gateway.data_dir)).map((row) => [row.id, row]));
  expect([...streams.map((stream) => stream.id), id].map((each) => rows.get(each)?.outcome)).toEqual(
    Array(4).fill('completed'),
  );
  expect(rows.get(id)?.cost).toBe(Math.round(usage.cost * 1e9));
});

test('a connection that was opened before SIGTERM gets a 503 in the usual error format for a new request', async () => {
  const gateway = await serve();
  const { key } = await makeKey(gateway);
  const { rest } = await openStream(gateway, key, slow(100));
  const socket = connect(Number(new URL(gateway.url).port), '127.0.0.1');
  await once(socket, 'connect');
  let received = '';
  socket.on('data', (bytes) => {
    received += bytes;
  });
  socket.on('error', () => undefined);
  // The head of a request is incomplete when the signal arrives, so that the connection is not idle.
  socket.write(`POST /api/v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\n`);
  await sleep(100);
  const signalled = stop(gateway);
  await until('draining', () => gateway.log().some(({ msg }) => msg === 'draining'));
  const body = JSON.stringify(chat('sandbox/echo'));
  socket.write(`content-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
  await until('an answer', () => received.includes('\r\n\r\n') && received.endsWith('}'));
  expect(received).toMatch(/^HTTP\/1\.1 503 /);
  expect(received).toMatch(/^connection: close\r$/im);
  expect(JSON.parse(received.slice(received.indexOf('\r\n\r\n')))).toMatchObject({
    error: { code: 503, message: 'The gateway is shutting down' },
  });
  await rest;
  expect(await signalled).toBe(0);
});

test('a connection without a request does not delay the drain', async () => {
  const gateway = await serve();
  const socket = connect(Number(new URL(gateway.url).port), '127.0.0.1');
  await once(socket, 'connect');
  const closed = once(socket, 'close');
  gateway.child.kill('SIGTERM');
  await closed;
  expect(await gateway.ended).toBe(0);
});

test('a stream longer than the bound is ended, and recorded up to there', async () => {
  const gateway = await serve({ yaml: 'timeouts: { shutdown_ms_max: 500 }\n' });
  const { key } = await makeKey(gateway);
  const { id, rest } = await openStream(gateway, key, slow(5_000));
  const hung = gateway.call('POST', '/chat/completions', { key, body: chat('sandbox/hang') });
  await sleep(100);
  expect(await stop(gateway)).toBe(0);
  expect(await rest).toMatch(/"finish_reason":"error"[\s\S]*data: \[DONE\]\n\n$/);
  expect((await hung).status).toBe(503);
  const rows = await stored(gateway.data_dir);
  expect(rows.map(({ outcome }) => outcome)).toEqual(['failed', 'failed']);
  expect(rows.find((row) => row.id === id)?.cost).toBeGreaterThan(0);
});

test('an upstream that bills in any case is not read beyond the bound, and what it sent is recorded', async () => {
  const upstream = await serve();
  const { key: upstreamKey } = await makeKey(upstream);
  const gateway = await serve({
    yaml: `
timeouts: { shutdown_ms_max: 500 }
providers:
  acme:
    name: Acme
    dialect: openai-chat
    base_url: ${upstream.base_url}
    api_key: ${upstreamKey}
    abort_stops_billing: false
models:
  acme/story:
    endpoints: [{ provider: acme, upstream_model: 'sandbox/story:floor', pricing: { prompt: 1, completion: 2 } }]
`,
  });
  const { key } = await makeKey(gateway);
  const leave = new AbortController();
  const answer = await gateway.call('POST', '/chat/completions', {
    key,
    body: { ...slow(5_000), model: 'acme/story' },
    signal: leave.signal,
  });
  const id = answer.headers.get('x-generation-id');
  await answer.body?.getReader().read();
  leave.abort();
  await sleep(100);
  expect(await stop(gateway)).toBe(0);
  const rows = await stored(gateway.data_dir);
  expect(rows).toMatchObject([{ id, outcome: 'cancelled' }]);
  expect(rows[0]?.cost).toBeGreaterThan(0);
  await stop(upstream);
});

test('a second signal that is not an echo of the first ends a drain at once', async () => {
  const gateway = await serve();
  const { key } = await makeKey(gateway);
  const { rest } = await openStream(gateway, key, slow(3_000));
  gateway.child.kill('SIGTERM');
  await sleep(1_200);
  gateway.child.kill('SIGTERM');
  expect(await gateway.ended).toBe(1);
  expect(await rest).not.toContain('[DONE]');
  const next = await start({ data_dir: gateway.data_dir });
  await next.ready();
  expect(await stop(next)).toBe(0);
});
