import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { StreamWriter } from './stream-writer.ts';

let server: Server;
afterEach(() => void server.close());

/** The bytes that a client receives for each request with this `write`, as text, and the writes to the server's socket. */
async function received(
  write: (writer: StreamWriter, response: ServerResponse) => Promise<void>,
  version = '1.1',
): Promise<{ text: string; writes: string[] }> {
  const writes: string[] = [];
  server = createServer((_request, response) => {
    const { socket } = response;
    const { _write, _writev } = socket as unknown as Record<string, (...of: unknown[]) => void>;
    Object.assign(socket as object, {
      _write(...of: unknown[]) {
        writes.push(String(of[0]));
        return Reflect.apply(_write!, socket, of);
      },
      _writev(...of: unknown[]) {
        writes.push((of[0] as { chunk: string | Buffer }[]).map(({ chunk }) => String(chunk)).join(''));
        return Reflect.apply(_writev!, socket, of);
      },
    });
    const writer = new StreamWriter(response, { 'content-type': 'text/event-stream' });
    void write(writer, response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
  let text = '';
  client.setEncoding('utf8');
  client.on('data', (more: string) => {
    text += more;
  });
  client.write(`GET / HTTP/${version}\r\nhost: x\r\nconnection: close\r\n\r\n`);
  await once(client, 'close');
  return { text: text.slice(text.indexOf('\r\n\r\n') + 4), writes };
}

test('the head and first texts are one write, texts of a later turn another, and the end is in the last', async () => {
  const { text, writes } = await received(async (writer) => {
    writer.write('one ');
    writer.write('two ');
    await nextTurn();
    await nextTurn();
    writer.write('three ');
    await null;
    writer.write('four ');
    await nextTurn();
    await nextTurn();
    writer.write('five');
    writer.end();
  });
  expect(text).toBe('8\r\none two \r\nb\r\nthree four \r\n4\r\nfive\r\n0\r\n\r\n');
  expect(writes).toHaveLength(3);
  expect(writes[0]).toMatch(/^HTTP\/1\.1 200 OK\r\n[\s\S]*\r\n\r\n8\r\none two \r\n$/);
});

test('the length of a chunk counts bytes', async () => {
  const { text } = await received(async (writer) => {
    writer.write('é€😀');
    writer.end();
  });
  expect(text).toBe('9\r\né€😀\r\n0\r\n\r\n');
});

test('a stream without texts has an end', async () => {
  const { text } = await received(async (writer) => writer.end());
  expect(text).toBe('0\r\n\r\n');
});

test('HTTP/1.0 gets the texts without chunks', async () => {
  const { text } = await received(async (writer) => {
    writer.write('one ');
    await nextTurn();
    writer.write('two');
    writer.end();
  }, '1.0');
  expect(text).toBe('one two');
});

test('texts above the bound of a turn are written immediately, and a writer is full until its client reads', async () => {
  const piece = 'x'.repeat(1024 * 1024);
  let pieces = 0;
  const { text } = await received(async (writer, response) => {
    while (writer.write(piece)) pieces += 1;
    pieces += 1;
    expect(response.writableLength).toBeGreaterThanOrEqual(piece.length / 2);
    expect(writer.isFull).toBe(true);
    expect(await writer.drained()).toBe(true);
    expect(writer.isFull).toBe(false);
    writer.end();
  });
  expect(text.replaceAll(/[^x]/g, '')).toHaveLength(pieces * piece.length);
});
