import { afterEach, expect, test } from 'vitest';
import { createLog } from '../telemetry/log.ts';
import { createServer } from './create-server.ts';
import type { Server } from './server.ts';

let server: Server | undefined;
afterEach(() => server?.close());

test('messages of Fastify are in the gateway’s log, without its own lines about requests', async () => {
  const lines: { level: string; msg?: string; err?: { message: string } }[] = [];
  const logger = createLog('info', { write: (line) => void lines.push(JSON.parse(line) as (typeof lines)[0]) });
  server = createServer({ authenticate: () => Promise.reject(new Error()), logger, body_bytes_max: 1000 });
  server.get('/twice', { config: { access: 'open' } }, async (_request, reply) => {
    void reply.send('once');
    throw new Error('too late');
  });
  const url = await server.listen({ host: '127.0.0.1', port: 0 });
  expect(await (await fetch(`${url}/twice`)).text()).toBe('once');
  expect(lines.map(({ level, msg, err }) => [level, err?.message ?? msg])).toEqual([
    ['info', `Server listening at ${url}`],
    ['error', 'too late'],
  ]);
});

test('a request uses the logger itself, without inspecting or copying it', async () => {
  const looked: string[] = [];
  const logger = createLog('info', { write: () => undefined });
  for (const method of ['trace', 'child'] as const) {
    const own = logger[method];
    Object.defineProperty(logger, method, {
      get() {
        looked.push(method);
        return own;
      },
    });
  }
  server = createServer({ authenticate: () => Promise.reject(new Error()), logger, body_bytes_max: 1000 });
  server.get('/', { config: { access: 'open' } }, (request, reply) => {
    void reply.send([request.log === logger, reply.log === logger]);
  });
  const url = await server.listen({ host: '127.0.0.1', port: 0 });
  looked.length = 0;
  expect(await (await fetch(url)).json()).toEqual([true, true]);
  expect(looked).toEqual([]);
});
