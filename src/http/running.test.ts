import { afterEach, expect, test } from 'vitest';
import { createServer } from './create-server.ts';
import type { Server } from './server.ts';

let server: Server | undefined;
afterEach(() => server?.close());

test('a stop notifies running handlers, and later requests are refused with 503', async () => {
  server = createServer({ authenticate: () => Promise.reject(new Error()), logger: false, body_bytes_max: 1000 });
  const notified: string[] = [];
  let ended = () => {};
  const begun = Promise.withResolvers<void>();
  server.get('/asks', { config: { access: 'open' } }, async (request) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    request.on_stop = () => {
      notified.push(request.id);
      resolve();
    };
    begun.resolve();
    await promise;
    return 'stopped';
  });
  server.get('/waits', { config: { access: 'open' } }, async (request) => {
    await new Promise<void>((resolve) => {
      ended = resolve;
    });
    return String(request.is_stopped);
  });
  const send = (url: string, id: string) => server!.inject({ url, headers: { 'x-request-id': id } });
  const asking = send('/asks', 'one');
  const waiting = send('/waits', 'two');
  await begun.promise;
  server.running.stop();
  expect(notified).toEqual(['one']);
  expect((await asking).body).toBe('stopped');
  const late = await send('/asks', 'three');
  expect(late.statusCode).toBe(503);
  expect(late.json()).toMatchObject({ error: { code: 503, message: 'The gateway is shutting down' } });
  let isIdle = false;
  const idle = server.running.idle().then(() => {
    isIdle = true;
  });
  await new Promise(setImmediate);
  expect(isIdle).toBe(false);
  ended();
  await idle;
  expect((await waiting).body).toBe('true');
});

test('a stop notifies exactly the handlers that still run, in whatever order the others ended', async () => {
  server = createServer({ authenticate: () => Promise.reject(new Error()), logger: false, body_bytes_max: 1000 });
  const notified: string[] = [];
  const ends = new Map<string, () => void>();
  server.get('/waits/:id', { config: { access: 'open' } }, async (request) => {
    const { id } = request.params as { id: string };
    const { promise, resolve } = Promise.withResolvers<void>();
    request.on_stop = () => notified.push(id);
    ends.set(id, resolve);
    await promise;
    return id;
  });
  const answers = new Map(['a', 'b', 'c', 'd', 'e'].map((id) => [id, server!.inject(`/waits/${id}`)]));
  await expect.poll(() => ends.size).toBe(5);
  for (const id of ['b', 'e', 'a']) {
    ends.get(id)!();
    expect((await answers.get(id)!).body).toBe(id);
  }
  server.running.stop();
  expect(notified.sort()).toEqual(['c', 'd']);
  const idle = server.running.idle();
  for (const id of ['c', 'd']) ends.get(id)!();
  await idle;
});
