/**
 * Bodies in very many short HTTP chunks, and forms that resemble their boundary, take a bounded part of each turn.
 * Chunks, reads and steps are counted.
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { type Readable, Transform } from 'node:stream';
import { text } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { parseForm } from '../../src/http/form.ts';
import { gathered } from '../../src/http/gathered-body.ts';
import { createMemory } from '../../src/http/memory.ts';
import { limits } from '../../src/limits.ts';

const READ_BYTES = 64 * 1024;
const CHUNK_BYTES = '1\r\na\r\n'.length;
const MEMORY = 1e9;
const count = (bytesMax = 1e7) => ({ claim: createMemory(MEMORY).claim('a'), claimed_bytes: 0, bytes_max: bytesMax });

/** Sends a body in HTTP chunks of one byte. Returns what the server read of it in its busiest turn. */
async function inSingleBytes(body: Buffer, read: (payload: Readable) => Promise<string>) {
  let chunks = 0;
  let most = 0;
  let isOver = false;
  const turn = () => {
    most = Math.max(most, chunks);
    chunks = 0;
    if (!isOver) setImmediate(turn);
  };
  const server = createServer((request, response) => {
    request.on('data', () => {
      chunks += 1;
    });
    read(request).then(
      (answer) => response.end(answer),
      (error: Error) => response.end(error.message),
    );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  setImmediate(turn);
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  socket.write('POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n');
  const pieces = Buffer.alloc(body.length * CHUNK_BYTES, '1\r\na\r\n');
  for (let at = 0; at < body.length; at += 1) pieces[at * CHUNK_BYTES + 3] = body[at]!;
  socket.write(pieces);
  socket.write('0\r\n\r\n');
  const answer = await text(socket);
  isOver = true;
  server.close();
  return { answer: answer.slice(answer.indexOf('\r\n\r\n') + 4), most };
}

const BYTES = Buffer.from('She said "yes". '.repeat(12_500));

describe('a body in HTTP chunks of one byte', () => {
  test('is one read of its connection a turn, and is passed on in blocks', async () => {
    let blocks = 0;
    const { answer, most } = await inSingleBytes(BYTES, (payload) => {
      const body = gathered(payload, count());
      body.on('data', () => {
        blocks += 1;
      });
      return text(body);
    });
    expect(answer.includes(BYTES.toString())).toBe(true);
    expect(most).toBeLessThanOrEqual(READ_BYTES / CHUNK_BYTES + limits.body_turn_chunks_max);
    expect(blocks).toBeLessThanOrEqual(BYTES.length / 16_000 + 1);
  });

  test('is refused beyond its bound, and the rest of it is read', async () => {
    const { answer } = await inSingleBytes(BYTES, (payload) => text(gathered(payload, count(BYTES.length - 1))));
    expect(answer).toContain('Request payload too large');
  });

  test('waits for memory, and continues once memory is available', async () => {
    const memory = createMemory(MEMORY);
    const other = memory.claim('other');
    await other.take(MEMORY * 0.7);
    const claim = memory.claim('a');
    await claim.take(MEMORY * 0.16);
    const { answer } = await inSingleBytes(BYTES, (payload) => {
      setTimeout(() => other.release(), 50);
      return text(gathered(payload, { claim, claimed_bytes: 0, bytes_max: 1e7 }));
    });
    expect(answer.includes(BYTES.toString())).toBe(true);
  });
});

test('a body to gather may be any stream, and its error is passed on', async () => {
  const packed = gzipSync(BYTES);
  const pass = new Transform({ transform: (chunk, _encoding, done) => done(null, chunk) });
  const reading = text(gathered(pass, count()));
  for (const byte of packed) pass.write(Buffer.from([byte]));
  pass.destroy(new Error('broke off'));
  await expect(reading).rejects.toThrow('broke off');
});

test('a form that nearly repeats its own boundary is searched in many steps', () => {
  const boundary = '-'.repeat(60);
  const file = Buffer.alloc(8 * limits.joined_slice_bytes, `\r\n--${'-'.repeat(59)}x`);
  const head = `--${boundary}\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\n`;
  const body = Buffer.concat([Buffer.from(head), file, Buffer.from(`\r\n--${boundary}--`)]);
  const parsing = parseForm(body, `multipart/form-data; boundary=${boundary}`);
  for (let steps = 1; ; steps += 1) {
    const { done, value } = parsing.next();
    if (done !== true) continue;
    expect(steps).toBeGreaterThanOrEqual(file.length / limits.joined_slice_bytes);
    expect((value['file'] as { bytes: Buffer }).bytes.equals(file)).toBe(true);
    return;
  }
});
