import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, constants, openSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { LOG_GATHER_MS_MAX } from '../../src/telemetry/log.ts';
import { describeStores } from '../ledger/store-variants.ts';
import { chat, freshDir, makeKey, serve, stop, until } from './gateway-process.ts';

const PROMPT = 'the-words-of-the-prompt';
const ANSWER = 'the-words-of-the-answer';
const CREDENTIAL = 'sk-upstream-credential-0123456789';

/**
 * An upstream that records its requests, and fails or answers as the model's name says, with an echo of the request.
 */
async function startUpstream() {
  const seen: { headers: Record<string, unknown>; body: string }[] = [];
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const part of request) body += part;
    seen.push({ headers: request.headers, body });
    const { model, stream } = JSON.parse(body) as { model: string; stream?: boolean };
    const echo = `You sent ${body} with ${request.headers.authorization}`;
    const status = Number(/\d+$/.exec(model)?.[0] ?? 200);
    if (status !== 200) {
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ error: { message: echo, type: 'server_error', code: 'broken' } }));
    } else if (stream) {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      const chunk = { id: 'x', object: 'chat.completion.chunk', choices: [{ index: 0, delta: { content: ANSWER } }] };
      response.write(`data: ${JSON.stringify(chunk)}\n\n`);
      if (model === 'late') response.write(`data: ${JSON.stringify({ error: { message: echo, code: 500 } })}\n\n`);
      else await sleep(300);
      response.end('data: [DONE]\n\n');
    } else {
      response.writeHead(200, { 'content-type': 'application/json' });
      const choices = [{ index: 0, message: { role: 'assistant', content: ANSWER }, finish_reason: 'stop' }];
      response.end(
        JSON.stringify({
          id: 'x',
          object: 'chat.completion',
          choices,
          usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
        }),
      );
    }
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { seen, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`, close: () => server.close() };
}

test('each request has one valid line with its id and without content or secrets, for any outcome', async () => {
  const upstream = await startUpstream();
  const models = ['fine', 'late', 'fails-400', 'fails-401', 'fails-500', 'fails-503'];
  const gateway = await serve({
    yaml: `
providers:
  acme: { name: Acme, dialect: openai-chat, base_url: "${upstream.url}", api_key: ${CREDENTIAL} }
models:
${models.map((model) => `  acme/${model}: { endpoints: [{ provider: acme, upstream_model: ${model}, pricing: { prompt: 1, completion: 2 } }] }`).join('\n')}
`,
  });
  const { key } = await makeKey(gateway);
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
  const answers: { id: string; status: number }[] = [];
  const ask = async (id: string, body: Record<string, unknown>, options: { key?: string; path?: string } = {}) => {
    const answer = await gateway.call('POST', options.path ?? '/chat/completions', {
      key: options.key ?? key,
      body: { messages: [{ role: 'user', content: PROMPT }], ...body },
      headers: { 'x-request-id': id, traceparent, tracestate: 'vendor=1' },
    });
    await answer.text();
    expect(answer.headers.get('x-request-id')).toBe(id);
    answers.push({ id, status: answer.status });
  };
  for (const stream of [false, true]) {
    for (const model of models) await ask(`${model}-${stream}`, { model: `acme/${model}`, stream });
  }
  await ask('unknown-model', { model: 'acme/nothing' });
  await ask('bad-field', { model: 'acme/fine', temperature: PROMPT });
  await ask('wrong-key', { model: 'acme/fine' }, { key: `${key.slice(0, -1)}x` });
  await ask('no-path', { model: 'acme/fine' }, { path: `/chat/completion/${key}/${key.slice(12)}?q=${PROMPT}` });
  const leave = new AbortController();
  const left = await gateway.call('POST', '/chat/completions', {
    key,
    body: { ...chat('acme/fine', { stream: true }), messages: [{ role: 'user', content: PROMPT }] },
    headers: { 'x-request-id': 'left' },
    signal: leave.signal,
  });
  await left.body?.getReader().read();
  leave.abort();
  await fetch(`${gateway.url}/health/ready`);
  await until('the line of the request whose client disconnected', () =>
    gateway.log().some(({ request_id }) => request_id === 'left'),
  );
  expect(await stop(gateway)).toBe(0);
  upstream.close();

  const lines = gateway
    .out()
    .split('\n')
    .filter((line) => line !== '');
  for (const line of lines) expect(() => JSON.parse(line), line).not.toThrow();
  const requests = gateway.log().filter(({ msg }) => msg === 'request');
  for (const { id, status } of answers) {
    const own = requests.filter(({ request_id }) => request_id === id);
    expect(own, id).toHaveLength(1);
    expect(own[0]).toMatchObject({ level: 'info', method: 'POST', status });
    expect(own[0]?.['ms']).toBeTypeOf('number');
  }
  expect(requests.filter(({ request_id }) => request_id === 'left')).toMatchObject([
    { status: 200, client_left: true },
  ]);
  const lineOf = (id: string) => requests.find(({ request_id }) => request_id === id);
  expect(lineOf('no-path')).toMatchObject({ path: '/api/v1/chat/completion/[redacted]/[redacted]' });
  const used = { provider: 'Acme', prompt_tokens: 3, completion_tokens: 2, cost: 0.000007 };
  expect(lineOf('fine-false')).toMatchObject({ model: 'acme/fine', ...used });
  expect(lineOf('fine-true')).toMatchObject({ model: 'acme/fine', provider: 'Acme', cost: expect.any(Number) });
  expect(requests.map(({ path }) => path)).not.toContain('/health/ready');
  expect(answers.map(({ status }) => status)).toEqual([
    200, 200, 400, 502, 502, 503, 200, 200, 400, 502, 502, 503, 400, 400, 401, 404,
  ]);
  const output = gateway.out() + gateway.err();
  for (const secret of [PROMPT, ANSWER, CREDENTIAL, key, key.slice(0, -1), 'test-management-key']) {
    expect(output.includes(secret), `the log holds ${secret}`).toBe(false);
  }
  expect(gateway.err()).toBe('');

  expect(upstream.seen[0]?.headers).toMatchObject({
    traceparent,
    tracestate: 'vendor=1',
    authorization: `Bearer ${CREDENTIAL}`,
  });
});

test('a request id that could break the log is replaced', async () => {
  const gateway = await serve();
  for (const requestId of ['with space', 'x'.repeat(200), '{"a":1}']) {
    const answer = await gateway.call('GET', '/models', { headers: { 'x-request-id': requestId } });
    await answer.text();
    expect(answer.headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/);
  }
  await stop(gateway);
});

test('if neither output nor errors can be written, as on a full disk, requests are served and the process ends cleanly', async () => {
  const node = join(freshDir(), 'node');
  writeFileSync(node, `#!/bin/sh\nexec "${process.execPath}" "$@" >/dev/full 2>&1\n`, { mode: 0o755 });
  const gateway = await serve({ node });
  const { key } = await makeKey(gateway);
  for (let calls = 0; calls < 3; calls += 1) {
    const answer = await gateway.call('POST', '/chat/completions', { key, body: chat('sandbox/echo') });
    expect(answer.status).toBe(200);
    await answer.text();
    await sleep(2 * LOG_GATHER_MS_MAX);
  }
  expect(await stop(gateway)).toBe(0);
});

describeStores('a pipe without a reader', ({ freshUrl }) => {
  test('delays neither requests nor the end of a gateway', async () => {
    const folder = freshDir();
    const [node, pipe] = [join(folder, 'node'), join(folder, 'pipe')];
    execFileSync('mkfifo', [pipe]);
    const reader = openSync(pipe, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      writeFileSync(node, `#!/bin/sh\nexec "${process.execPath}" "$@" >${pipe}\n`, { mode: 0o755 });
      const url = await freshUrl();
      const gateway = await serve({ node, environment: url === undefined ? {} : { DATABASE_URL: url } });
      // More than the 64 KiB of a pipe's buffer.
      for (let calls = 0; calls < 600; calls += 1) await (await gateway.call('GET', '/models/count')).text();
      expect(await stop(gateway)).toBe(0);
    } finally {
      closeSync(reader);
    }
  });
});
