import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import fastify, { type FastifyInstance } from 'fastify';
import { afterEach, expect, test } from 'vitest';
import { limits } from '../limits.ts';
import { sendEventStream } from './event-stream.ts';
import { withSources } from './sources.ts';

let server: FastifyInstance;
afterEach(() => server.close());

interface TextEvent {
  text: string;
}

/** Serves one stream of texts, and reports whether its source was read to the end. */
async function serve(
  events: () => AsyncGenerator<TextEvent, void, undefined>,
  encode: (text: string) => string | readonly string[] = (text) => text,
  heartbeatMs = 60_000,
  encodeFailure = (error: unknown) => `failed: ${(error as Error).message}\n\n`,
) {
  const departures: true[] = [];
  server = fastify();
  server.get('/', async (request, reply) => {
    await sendEventStream(request, reply, {
      events: withSources(events()),
      encode: ({ text }) => encode(text),
      encodeFailure,
      heartbeat: ': beat\n\n',
      onClientLeft: () => departures.push(true),
      onStop: () => {},
      heartbeat_first_ms: heartbeatMs,
      heartbeat_ms: heartbeatMs,
    });
    return reply;
  });
  return { url: await server.listen({ host: '127.0.0.1', port: 0 }), departures };
}

const say = (text: string): TextEvent => ({ text });

function refuse(word: string) {
  return (text: string) => {
    if (text === word) throw new Error('no text for it');
    return text;
  };
}

test('an event that cannot be encoded is reported to the source, which ends the stream', async () => {
  const reported: unknown[] = [];
  const { url } = await serve(async function* () {
    try {
      yield say('one\n\n');
      yield say('bad');
      yield say('never\n\n');
    } catch (error) {
      reported.push(error);
      yield say('end\n\n');
    } finally {
      reported.push('closed');
    }
  }, refuse('bad'));
  expect(await (await fetch(url)).text()).toBe('one\n\nend\n\n');
  expect(reported).toEqual([expect.objectContaining({ message: 'no text for it' }), 'closed']);
});

test('a first event that cannot be encoded is an error, and the source is closed', async () => {
  let closed = false;
  const { url } = await serve(async function* () {
    try {
      yield say('bad');
    } finally {
      closed = true;
    }
  }, refuse('bad'));
  expect((await fetch(url)).status).toBe(500);
  expect(closed).toBe(true);
});

test('a source that fails late ends the stream with its failure', async () => {
  const { url } = await serve(async function* () {
    yield say('one\n\n');
    throw new Error('late');
  });
  expect(await (await fetch(url)).text()).toBe('one\n\nfailed: late\n\n');
});

test('heartbeats resume when a client that did not read continues reading, even if nothing else is sent', async () => {
  let finish = () => {};
  const finished = new Promise<void>((resolve) => {
    finish = resolve;
  });
  const { url } = await serve(
    async function* () {
      yield say('x'.repeat(20_000_000));
      await finished;
    },
    undefined,
    50,
  );
  const socket: Socket = connect({ port: Number(new URL(url).port), host: '127.0.0.1' });
  socket.pause();
  socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
  // Several heartbeats are due while nothing can be written.
  await sleep(400);
  let beats = 0;
  socket.on('data', (bytes) => {
    beats += bytes.toString('latin1').split(': beat').length - 1;
  });
  socket.resume();
  await expect.poll(() => beats).toBeGreaterThan(2);
  finish();
  socket.destroy();
  await once(socket, 'close');
});

test('several texts of one event are written in order', async () => {
  const { url } = await serve(
    async function* () {
      yield say('one,two,three');
    },
    (text) => text.split(','),
  );
  expect(await (await fetch(url)).text()).toBe('onetwothree');
});

test('a stream whose failure cannot be encoded is cut, so that it does not look complete', async () => {
  const { url } = await serve(
    async function* () {
      yield say('one\n\n');
      throw new Error('lost');
    },
    undefined,
    undefined,
    () => {
      throw new RangeError('Invalid string length');
    },
  );
  await expect(fetch(url).then((response) => response.text())).rejects.toThrow();
});

test('no heartbeat is written inside an event that is written in several pieces', async () => {
  const { json_long_chars_min } = limits;
  Object.assign(limits, { json_long_chars_min: 1024 });
  const text = `data: ${'x'.repeat(20 * 1024)}\n\n`;
  let isOver = false;
  // Other work runs between two pieces for longer than the heartbeat interval.
  const serveOthers = () => {
    const until = performance.now() + 3;
    while (performance.now() < until);
    if (!isOver) setImmediate(serveOthers);
  };
  try {
    const { url } = await serve(
      async function* () {
        setImmediate(serveOthers);
        yield say(text);
      },
      undefined,
      1,
    );
    expect(await (await fetch(url)).text()).toContain(text);
  } finally {
    isOver = true;
    Object.assign(limits, { json_long_chars_min });
  }
});
